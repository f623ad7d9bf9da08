//! The literals of arrays and composites, taken apart.

use longshore_values::{CellBuffer, Misfit};

use super::{Dimensions, damage};

/// `{1,NULL,"a b",{...}}`, with bounds before it where they do not start at 1; or `1 2`, of a delimiter that is a
/// blank.
pub(crate) fn split_array(delimiter: u8, cell: &[u8], into: &mut CellBuffer) -> Result<Dimensions, Misfit> {
    if delimiter == b' ' {
        return vector(cell, into);
    }
    let start = cell.iter().position(|byte| *byte == b'{').ok_or_else(|| damage("array"))?;
    let mut parser =
        ArrayParser { rest: &cell[start..], lengths: Vec::new(), element_depth: None, scratch: Vec::new() };
    parser.list(delimiter, 0, into)?;
    if !parser.rest.is_empty() {
        return Err(damage("array"));
    }
    let mut dimensions = Dimensions { has_bounds: start > 0, ..Dimensions::default() };
    if parser.lengths == [Some(0)] {
        return Ok(dimensions);
    }
    for length in parser.lengths {
        dimensions.push(length.ok_or_else(|| damage("array"))?)?;
    }
    Ok(dimensions)
}

/// The text of an `int2vector` or `oidvector`.
fn vector(cell: &[u8], into: &mut CellBuffer) -> Result<Dimensions, Misfit> {
    let (mut dimensions, mut length) = (Dimensions::default(), 0);
    for element in cell.split(|byte| *byte == b' ').filter(|element| !element.is_empty()) {
        into.push(Some(element))?;
        length += 1;
    }
    if length > 0 {
        dimensions.push(length)?;
    }
    Ok(dimensions)
}

struct ArrayParser<'a> {
    rest: &'a [u8],
    /// The length of each dimension, as its first list tells it.
    lengths: Vec<Option<usize>>,
    /// The depth at which elements stand, once one was seen.
    element_depth: Option<usize>,
    scratch: Vec<u8>,
}

impl ArrayParser<'_> {
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// One braced list at `depth`; all lists of a depth have one length.
    fn list(&mut self, delimiter: u8, depth: usize, into: &mut CellBuffer) -> Result<(), Misfit> {
        if depth == 6 || self.next() != Some(b'{') {
            return Err(damage("array"));
        }
        if self.lengths.len() == depth {
            self.lengths.push(None);
        }
        let mut length = 0;
        if self.rest.first() == Some(&b'}') {
            self.next();
            return self.end_list(depth, length);
        }
        loop {
            match self.rest.first() {
                Some(b'{') if self.element_depth != Some(depth) => self.list(delimiter, depth + 1, into)?,
                Some(b'{') => return Err(damage("array")),
                _ if *self.element_depth.get_or_insert(depth) != depth => return Err(damage("array")),
                _ => self.element(delimiter, into)?,
            }
            length += 1;
            match self.next() {
                Some(byte) if byte == delimiter => {}
                Some(b'}') => return self.end_list(depth, length),
                _ => return Err(damage("array")),
            }
        }
    }

    fn end_list(&mut self, depth: usize, length: usize) -> Result<(), Misfit> {
        match self.lengths.get_mut(depth) {
            Some(known @ None) => *known = Some(length),
            Some(Some(known)) if *known == length => {}
            _ => return Err(damage("array")),
        }
        Ok(())
    }

    fn element(&mut self, delimiter: u8, into: &mut CellBuffer) -> Result<(), Misfit> {
        if self.rest.first() == Some(&b'"') {
            self.next();
            self.scratch.clear();
            loop {
                match self.next().ok_or_else(|| damage("array"))? {
                    b'"' => return into.push(Some(&self.scratch)),
                    b'\\' => {
                        let escaped = self.next().ok_or_else(|| damage("array"))?;
                        self.scratch.push(escaped);
                    }
                    byte => self.scratch.push(byte),
                }
            }
        }
        let end = self.rest.iter().position(|byte| *byte == delimiter || *byte == b'}');
        let (element, rest) = self.rest.split_at(end.ok_or_else(|| damage("array"))?);
        self.rest = rest;
        into.push((element != b"NULL").then_some(element))
    }
}

/// `(1,,"a ""b""")`: nothing between two commas is NULL, quotes and backslashes are doubled or escaped.
pub(crate) fn split_record(cell: &[u8], into: &mut [CellBuffer]) -> Result<(), Misfit> {
    let inner = cell.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let mut rest = inner.ok_or_else(|| damage("composite"))?;
    let count = into.len();
    let mut scratch = Vec::new();
    for (index, part) in into.iter_mut().enumerate() {
        let (is_there, after) = field(rest, &mut scratch).ok_or_else(|| damage("composite"))?;
        part.push(is_there.then_some(&scratch))?;
        rest = after;
        if index + 1 < count {
            rest = rest.strip_prefix(b",").ok_or_else(|| damage("composite"))?;
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(damage("composite")) }
}

/// Unescapes one field, or one bound of a range, into `scratch`; tells whether it is there, and what follows it. `None`
/// where its quotes do not end.
pub(crate) fn field<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Option<(bool, &'a [u8])> {
    scratch.clear();
    let (mut rest, mut quoted, mut seen) = (text, false, false);
    loop {
        match rest {
            [] | [b',', ..] if !quoted => return Some((seen, rest)),
            [b'"', b'"', after @ ..] if quoted => {
                scratch.push(b'"');
                rest = after;
            }
            [b'"', after @ ..] => {
                quoted = !quoted;
                seen = true;
                rest = after;
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                scratch.push(*byte);
                seen = true;
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(text: &str) -> Result<(Vec<usize>, Vec<Option<String>>), Misfit> {
        let mut parts = CellBuffer::default();
        let dimensions = split_array(b',', text.as_bytes(), &mut parts)?;
        Ok((dimensions.lengths().to_vec(), texts(&parts)))
    }

    fn texts(parts: &CellBuffer) -> Vec<Option<String>> {
        parts.cells().iter().map(|cell| cell.map(|cell| String::from_utf8_lossy(cell).into_owned())).collect()
    }

    #[test]
    fn arrays_of_several_dimensions_with_nulls_and_quotes() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(array("{}"), Ok((vec![], vec![])));
        assert_eq!(
            array(r#"{a,NULL,"NULL","x\"y\\",""}"#),
            Ok((vec![5], vec![some("a"), None, some("NULL"), some("x\"y\\"), some("")]))
        );
        assert_eq!(
            array("[0:1][1:2]={{1,2},{3,4}}"),
            Ok((vec![2, 2], vec![some("1"), some("2"), some("3"), some("4")]))
        );
        for bad in ["", "{", "{a", "{a,}x", "{{1,2},{3}}", "{{1},2}", "{1,{2}}", "{\"a}", "{{{{{{{1}}}}}}}"] {
            assert!(array(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn vectors_are_parted_by_blanks() {
        let vector = |text: &str| {
            let mut parts = CellBuffer::default();
            let split = split_array(b' ', text.as_bytes(), &mut parts);
            split.map(|dimensions| (dimensions.lengths().to_vec(), texts(&parts)))
        };
        assert_eq!(vector("1 -2"), Ok((vec![2], vec![Some("1".to_owned()), Some("-2".to_owned())])));
        assert_eq!(vector(""), Ok((vec![], vec![])));
    }

    #[test]
    fn records_with_nulls_and_quotes() {
        let record = |text: &str, count: usize| {
            let mut parts: Vec<CellBuffer> = (0..count).map(|_| CellBuffer::default()).collect();
            split_record(text.as_bytes(), &mut parts)
                .map(|()| parts.iter().flat_map(texts).collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            record(r#"(1,,"a ""b"" \\","")"#, 4),
            Ok(vec![some("1"), None, some("a \"b\" \\"), some("")])
        );
        assert_eq!(record("(,)", 2), Ok(vec![None, None]));
        assert!(record("(1)", 2).is_err() && record("(1,2)", 1).is_err() && record("(\"1", 1).is_err());
    }
}
