//! Lists and structs: a nested cell is divided into its children's cells, from its binary form or its literal
//! (PostgreSQL documentation, "Array Input and Output Syntax" and "Composite Type Input and Output Syntax").

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{FieldRef, Fields};
use longshore_values::{CellFault, Cells, Decoder, Losses, Odd, Span, Validity, fault};

/// Receives the parts of one nested value, in order.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    any_null: bool,
}

impl Parts {
    /// Adds a part, `None` for NULL.
    pub(crate) fn push(&mut self, part: Option<&[u8]>) -> Result<(), Odd> {
        let Some(part) = part else {
            self.any_null = true;
            self.spans.push(Span::NULL);
            return Ok(());
        };
        let too_large = |_| Odd::fault("the nested values of one chunk of rows hold over 4 GiB");
        let start = u32::try_from(self.bytes.len()).map_err(too_large)?;
        let length = u32::try_from(part.len()).map_err(too_large)?;
        self.bytes.extend_from_slice(part);
        self.spans.push(Span::new(start, length));
        Ok(())
    }

    fn cells(&self) -> Cells<'_> {
        Cells::new(&self.bytes, &self.spans, self.any_null)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.any_null = false;
    }
}

/// Takes an array's cell apart.
pub(crate) trait SplitArray: Send {
    /// Pushes the elements in row-major order and returns the length of each dimension; none for `{}`.
    fn split(&self, cell: &[u8], into: &mut Parts) -> Result<Dimensions, Odd>;
}

/// The lengths of an array's dimensions, at most six.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dimensions {
    lengths: [usize; 6],
    count: usize,
    /// Whether one of them begins elsewhere than at 1.
    pub(crate) has_bounds: bool,
}

impl Dimensions {
    pub(crate) fn push(&mut self, length: usize) -> Result<(), Odd> {
        let Some(slot) = self.lengths.get_mut(self.count) else {
            return Err(Odd::fault("the server sent an array of more than six dimensions"));
        };
        *slot = length;
        self.count += 1;
        Ok(())
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.lengths[..self.count]
    }

    /// The number of elements that the lengths promise.
    pub(crate) fn elements(&self) -> Option<usize> {
        match self.lengths() {
            [] => Some(0),
            lengths => lengths.iter().try_fold(1_usize, |all, length| all.checked_mul(*length)),
        }
    }
}

/// A column of arrays. Every dimension below the first is a level of lists.
pub(crate) struct Lists {
    levels: Vec<Level>,
    values: Box<dyn Decoder>,
    split: Box<dyn SplitArray>,
    parts: Parts,
    /// The row of the chunk that each part belongs to, for a fault's place.
    owners: Vec<usize>,
    /// What tells of an array that does not begin at 1, until it has.
    losses: Option<Losses>,
}

struct Level {
    item: FieldRef,
    offsets: Vec<i32>,
    validity: Validity,
}

impl Level {
    fn push(&mut self, length: usize) -> Result<(), Odd> {
        let last = self.offsets.last().copied().unwrap_or_default();
        let end = i32::try_from(length).ok().and_then(|length| last.checked_add(length));
        self.offsets.push(end.ok_or_else(|| Odd::fault("a batch of arrays holds over 2^31 elements"))?);
        Ok(())
    }
}

impl Lists {
    /// A column of lists whose items are `item`, `dimensions` deep.
    pub(crate) fn new(
        item: FieldRef,
        dimensions: usize,
        values: Box<dyn Decoder>,
        split: Box<dyn SplitArray>,
        losses: Option<Losses>,
    ) -> Self {
        let mut levels = Vec::new();
        let mut item = item;
        for depth in 0..dimensions {
            levels.push(Level { item: item.clone(), offsets: vec![0], validity: Validity::default() });
            if let (arrow_schema::DataType::List(inner), true) = (item.data_type(), depth + 1 < dimensions) {
                item = inner.clone();
            }
        }
        Self { levels, values, split, parts: Parts::default(), owners: Vec::new(), losses }
    }

    fn append(&mut self, row: usize, cell: Option<&[u8]>) -> Result<(), Odd> {
        let Some(cell) = cell else {
            return self.append_empty(false);
        };
        let before = self.parts.spans.len();
        let dimensions = self.split.split(cell, &mut self.parts)?;
        // An element more or less would move every list after it, such as that of `{{{}},{1}}`.
        if dimensions.elements() != Some(self.parts.spans.len() - before) {
            return Err(damaged("array"));
        }
        if dimensions.has_bounds
            && let Some(losses) = self.losses.take()
        {
            losses.bounds();
        }
        self.owners.resize(self.parts.spans.len(), row);
        let lengths = dimensions.lengths();
        if lengths.is_empty() {
            return self.append_empty(true);
        }
        if lengths.len() != self.levels.len() {
            return Err(wrong_dimensions(lengths.len(), self.levels.len()));
        }
        let mut lists = 1;
        for (level, length) in self.levels.iter_mut().zip(lengths) {
            for _ in 0..lists {
                level.push(*length)?;
                level.validity.push(true);
            }
            lists *= *length;
        }
        Ok(())
    }

    /// An empty list, or NULL: no level below gets anything.
    fn append_empty(&mut self, valid: bool) -> Result<(), Odd> {
        let Some(top) = self.levels.first_mut() else { return Ok(()) };
        top.push(0)?;
        top.validity.push(valid);
        Ok(())
    }
}

#[cold]
fn wrong_dimensions(got: usize, expected: usize) -> Odd {
    let lists = format!("{}element{}", "list<".repeat(got), ">".repeat(got));
    Odd::with_hint(
        format!("an array of {got} dimensions where the column's type has {expected}"),
        format!(
            "name the column's depth, such as schema={{\"<column>\": \"{lists}\"}} with the element's type"
        ),
    )
}

impl Decoder for Lists {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.clear();
        self.owners.clear();
        for (row, cell) in cells.iter().enumerate() {
            if let Some(fault) = self.append(row, cell).err().and_then(|odd| fault(row, odd)) {
                return Err(fault);
            }
        }
        let owners = &self.owners;
        let at_owner =
            |fault: CellFault| CellFault { row: owners.get(fault.row).copied().unwrap_or_default(), ..fault };
        self.values.decode(self.parts.cells()).map_err(at_owner)
    }

    fn finish(&mut self) -> ArrayRef {
        let mut values = self.values.finish();
        for level in self.levels.iter_mut().rev() {
            let offsets = std::mem::replace(&mut level.offsets, vec![0]);
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            // `new` panics on what cannot be here: a NULL among items that are not nullable (`wanted` and
            // `Type::field` make all of them nullable), values of another type (the decoder was chosen by the
            // item's), and offsets that fall or pass the values (`append` counts the elements).
            values = Arc::new(ListArray::new(level.item.clone(), offsets, values, level.validity.finish()));
        }
        values
    }

    fn size(&self) -> usize {
        let offsets: usize = self.levels.iter().map(|level| level.offsets.len() * 4).sum();
        self.values.size() + offsets
    }
}

/// Takes a composite's cell apart.
pub(crate) trait SplitRecord: Send {
    /// Pushes the fields' cells, one into each of `into`.
    fn split(&self, cell: &[u8], into: &mut [Parts]) -> Result<(), Odd>;
}

pub(crate) struct Records {
    fields: Fields,
    children: Vec<Box<dyn Decoder>>,
    parts: Vec<Parts>,
    split: Box<dyn SplitRecord>,
    validity: Validity,
    rows: usize,
}

impl Records {
    pub(crate) fn new(fields: Fields, children: Vec<Box<dyn Decoder>>, split: Box<dyn SplitRecord>) -> Self {
        let parts = children.iter().map(|_| Parts::default()).collect();
        Self { fields, children, parts, split, validity: Validity::default(), rows: 0 }
    }
}

impl Decoder for Records {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.iter_mut().for_each(Parts::clear);
        for (row, cell) in cells.iter().enumerate() {
            let done = match cell {
                Some(cell) => self.split.split(cell, &mut self.parts),
                None => self.parts.iter_mut().try_for_each(|part| part.push(None)),
            };
            if let Some(fault) = done.err().and_then(|odd| fault(row, odd)) {
                return Err(fault);
            }
            self.validity.push(cell.is_some());
            self.rows += 1;
        }
        for ((child, part), field) in self.children.iter_mut().zip(&self.parts).zip(&self.fields) {
            child.decode(part.cells()).map_err(|fault| CellFault {
                what: format!("field {:?}: {}", field.name(), fault.what).into(),
                ..fault
            })?;
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let columns = self.children.iter_mut().map(|child| child.finish()).collect();
        let rows = std::mem::take(&mut self.rows);
        let validity = self.validity.finish();
        if self.fields.is_empty() {
            return Arc::new(StructArray::new_empty_fields(rows, validity));
        }
        // `new` panics on what cannot be here: NULLs in fields that are not nullable (`wanted` and `Type::field`
        // make all of them nullable), and columns of another type or length (each child's decoder was chosen by
        // its field, and gets a cell of every row).
        Arc::new(StructArray::new(self.fields.clone(), columns, validity))
    }

    fn size(&self) -> usize {
        self.children.iter().map(|child| child.size()).sum()
    }
}

fn damaged(what: &'static str) -> Odd {
    Odd::fault(format!("the server sent a damaged {what}"))
}

fn word(bytes: &mut &[u8]) -> Option<i32> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(i32::from_be_bytes(*word))
}

/// A value behind its length word, `None` for NULL.
fn value<'a>(bytes: &mut &'a [u8], inside: &'static str) -> Result<Option<&'a [u8]>, Odd> {
    let length = word(bytes).ok_or_else(|| damaged(inside))?;
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| damaged(inside))?;
    let (value, rest) = bytes.split_at_checked(length).ok_or_else(|| damaged(inside))?;
    *bytes = rest;
    Ok(Some(value))
}

/// `array_send`'s form: dimensions, a flag, the element's OID, length and lower bound of each dimension, then
/// the elements.
pub(crate) struct BinaryArray;

impl BinaryArray {
    fn header(bytes: &mut &[u8]) -> Option<Result<Dimensions, Odd>> {
        let count = u32::try_from(word(bytes)?).ok()?;
        let (_flags, _element) = (word(bytes)?, word(bytes)?);
        let mut dimensions = Dimensions::default();
        for _ in 0..count {
            let length = usize::try_from(word(bytes)?).ok()?;
            dimensions.has_bounds |= word(bytes)? != 1;
            if let Err(odd) = dimensions.push(length) {
                return Some(Err(odd));
            }
        }
        Some(Ok(dimensions))
    }
}

impl SplitArray for BinaryArray {
    fn split(&self, cell: &[u8], into: &mut Parts) -> Result<Dimensions, Odd> {
        let mut rest = cell;
        let dimensions = Self::header(&mut rest).ok_or_else(|| damaged("array"))??;
        // An empty array has no dimensions, but int2vector and oidvector keep their one. Next to a dimension without
        // length, another could be any number of lists.
        let dimensions = if dimensions.lengths() == [0] { Dimensions::default() } else { dimensions };
        if dimensions.lengths().contains(&0) {
            return Err(damaged("array"));
        }
        let elements = dimensions.elements().ok_or_else(|| damaged("array"))?;
        // Each element has at least its length word: a damaged count cannot run long. No length is 0, so that none
        // is above their product.
        if elements > rest.len() / 4 {
            return Err(damaged("array"));
        }
        for _ in 0..elements {
            into.push(value(&mut rest, "array")?)?;
        }
        if rest.is_empty() { Ok(dimensions) } else { Err(damaged("array")) }
    }
}

/// `record_send`'s form: the number of fields, then OID, length and bytes of each. Holds the expected OIDs.
pub(crate) struct BinaryRecord(pub(crate) Vec<u32>);

impl SplitRecord for BinaryRecord {
    fn split(&self, cell: &[u8], into: &mut [Parts]) -> Result<(), Odd> {
        let mut rest = cell;
        let count = word(&mut rest).and_then(|count| usize::try_from(count).ok());
        if count != Some(self.0.len()) {
            return Err(altered());
        }
        for (oid, part) in self.0.iter().zip(into) {
            let got = word(&mut rest).ok_or_else(|| damaged("composite"))?;
            if got.cast_unsigned() != *oid {
                return Err(altered());
            }
            part.push(value(&mut rest, "composite")?)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(damaged("composite")) }
    }
}

fn altered() -> Odd {
    Odd::with_hint(
        "the composite's fields are not those of the catalogue",
        "its type was altered while the query ran: run it again",
    )
}

/// `{1,NULL,"a b",{...}}`, with bounds before it where they do not start at 1; or `1 2`, of a delimiter that is a
/// blank.
pub(super) struct TextArray {
    pub(super) delimiter: u8,
}

impl SplitArray for TextArray {
    fn split(&self, cell: &[u8], into: &mut Parts) -> Result<Dimensions, Odd> {
        if self.delimiter == b' ' {
            return vector(cell, into);
        }
        let start = cell.iter().position(|byte| *byte == b'{').ok_or_else(|| damaged("array"))?;
        let mut parser = ArrayParser {
            rest: &cell[start..],
            lengths: Vec::new(),
            element_depth: None,
            scratch: Vec::new(),
        };
        parser.list(self.delimiter, 0, into)?;
        if !parser.rest.is_empty() {
            return Err(damaged("array"));
        }
        let mut dimensions = Dimensions { has_bounds: start > 0, ..Dimensions::default() };
        if parser.lengths == [Some(0)] {
            return Ok(dimensions);
        }
        for length in parser.lengths {
            dimensions.push(length.ok_or_else(|| damaged("array"))?)?;
        }
        Ok(dimensions)
    }
}

/// The text of an `int2vector` or `oidvector`.
fn vector(cell: &[u8], into: &mut Parts) -> Result<Dimensions, Odd> {
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
    fn list(&mut self, delimiter: u8, depth: usize, into: &mut Parts) -> Result<(), Odd> {
        if depth == 6 || self.next() != Some(b'{') {
            return Err(damaged("array"));
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
                Some(b'{') => return Err(damaged("array")),
                _ if *self.element_depth.get_or_insert(depth) != depth => return Err(damaged("array")),
                _ => self.element(delimiter, into)?,
            }
            length += 1;
            match self.next() {
                Some(byte) if byte == delimiter => {}
                Some(b'}') => return self.end_list(depth, length),
                _ => return Err(damaged("array")),
            }
        }
    }

    fn end_list(&mut self, depth: usize, length: usize) -> Result<(), Odd> {
        match self.lengths.get_mut(depth) {
            Some(known @ None) => *known = Some(length),
            Some(Some(known)) if *known == length => {}
            _ => return Err(damaged("array")),
        }
        Ok(())
    }

    fn element(&mut self, delimiter: u8, into: &mut Parts) -> Result<(), Odd> {
        if self.rest.first() == Some(&b'"') {
            self.next();
            self.scratch.clear();
            loop {
                match self.next().ok_or_else(|| damaged("array"))? {
                    b'"' => return into.push(Some(&self.scratch)),
                    b'\\' => {
                        let escaped = self.next().ok_or_else(|| damaged("array"))?;
                        self.scratch.push(escaped);
                    }
                    byte => self.scratch.push(byte),
                }
            }
        }
        let end = self.rest.iter().position(|byte| *byte == delimiter || *byte == b'}');
        let (element, rest) = self.rest.split_at(end.ok_or_else(|| damaged("array"))?);
        self.rest = rest;
        into.push((element != b"NULL").then_some(element))
    }
}

/// `(1,,"a ""b""")`: nothing between two commas is NULL, quotes and backslashes are doubled or escaped.
pub(super) struct TextRecord;

impl SplitRecord for TextRecord {
    fn split(&self, cell: &[u8], into: &mut [Parts]) -> Result<(), Odd> {
        let inner = cell.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
        let mut rest = inner.ok_or_else(|| damaged("composite"))?;
        let count = into.len();
        let mut scratch = Vec::new();
        for (index, part) in into.iter_mut().enumerate() {
            let (is_null, after) = field(rest, &mut scratch)?;
            part.push((!is_null).then_some(&scratch))?;
            rest = after;
            if index + 1 < count {
                rest = rest.strip_prefix(b",").ok_or_else(|| damaged("composite"))?;
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(damaged("composite")) }
    }
}

/// Unescapes one field into `scratch`; tells whether it is NULL, and what follows it.
fn field<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Result<(bool, &'a [u8]), Odd> {
    scratch.clear();
    let (mut rest, mut quoted, mut seen) = (text, false, false);
    loop {
        match rest {
            [] | [b',', ..] if !quoted => return Ok((!seen, rest)),
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
            [] => return Err(damaged("composite")),
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_values::Cells;

    use super::*;

    fn binary(count: i32, lengths: &[i32], elements: &[i32]) -> Result<Vec<usize>, Odd> {
        let mut cell: Vec<u8> = [count, 0, 23].iter().flat_map(|word| word.to_be_bytes()).collect();
        cell.extend(lengths.iter().flat_map(|length| [*length, 1]).flat_map(i32::to_be_bytes));
        cell.extend(elements.iter().flat_map(|element| [4, *element]).flat_map(i32::to_be_bytes));
        let split = BinaryArray.split(&cell, &mut Parts::default());
        split.map(|dimensions| dimensions.lengths().to_vec())
    }

    #[test]
    fn binary_arrays_have_the_elements_that_their_lengths_promise() {
        assert_eq!(binary(0, &[], &[]), Ok(vec![]));
        assert_eq!(binary(2, &[2, 1], &[7, 8]), Ok(vec![2, 1]));
        assert!(binary(2, &[i32::MAX, 0], &[]).is_err());
        assert!(binary(2, &[0, i32::MAX], &[]).is_err());
        assert_eq!(binary(1, &[0], &[]), Ok(vec![]));
        assert!(binary(3, &[i32::MAX, i32::MAX, i32::MAX], &[]).is_err());
        assert!(binary(1, &[3], &[7, 8]).is_err() && binary(1, &[1], &[7, 8]).is_err());
        assert!(binary(1, &[-1], &[]).is_err() && binary(-1, &[], &[]).is_err());
        assert!(binary(7, &[1; 7], &[7]).is_err());
    }

    fn array(text: &str) -> Result<(Vec<usize>, Vec<Option<String>>), Odd> {
        let mut parts = Parts::default();
        let dimensions = TextArray { delimiter: b',' }.split(text.as_bytes(), &mut parts)?;
        Ok((dimensions.lengths().to_vec(), texts(&parts)))
    }

    fn texts(parts: &Parts) -> Vec<Option<String>> {
        let cells = Cells::new(&parts.bytes, &parts.spans, true);
        cells.iter().map(|cell| cell.map(|cell| String::from_utf8_lossy(cell).into_owned())).collect()
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
            let mut parts = Parts::default();
            let split = TextArray { delimiter: b' ' }.split(text.as_bytes(), &mut parts);
            split.map(|dimensions| (dimensions.lengths().to_vec(), texts(&parts)))
        };
        assert_eq!(vector("1 -2"), Ok((vec![2], vec![Some("1".to_owned()), Some("-2".to_owned())])));
        assert_eq!(vector(""), Ok((vec![], vec![])));
    }

    #[test]
    fn records_with_nulls_and_quotes() {
        let record = |text: &str, count: usize| {
            let mut parts: Vec<Parts> = (0..count).map(|_| Parts::default()).collect();
            TextRecord
                .split(text.as_bytes(), &mut parts)
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
