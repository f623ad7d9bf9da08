//! hstore as maps of texts, whose values may be NULL.
//!
//! The binary form is `hstore_send`'s: the count of pairs, then the length and the bytes of each key and each value, where
//! the length -1 is a NULL.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, MapArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use longshore_source::fit;
use longshore_values::{CellBuffer, CellFault, Cells, Decoder, Item, Items, Misfit, Validity, text};

use crate::decode::nested::binary::{value, word};
use crate::decode::nested::{self, Ends, at_owner};
use crate::encode;
use crate::types::Format;

/// The Arrow type of all of them.
pub(crate) fn map_type() -> DataType {
    let entries = Field::new("entries", DataType::Struct(entry_fields()), false);
    DataType::Map(Arc::new(entries), false)
}

fn entry_fields() -> Fields {
    vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)].into()
}

/// The decoder into that type.
pub(crate) fn decoder(format: Format) -> Box<dyn Decoder> {
    let split = match format {
        Format::Text => split_text,
        Format::Binary => split_binary,
    };
    Box::new(Maps {
        split,
        keys: text(),
        values: text(),
        parts: Pairs::default(),
        owners: Vec::new(),
        ends: Ends::default(),
        validity: Validity::default(),
    })
}

/// The keys and values of a chunk of cells.
#[derive(Default)]
struct Pairs {
    keys: CellBuffer,
    values: CellBuffer,
}

struct Maps {
    split: fn(&[u8], &mut Pairs) -> Result<(), Misfit>,
    keys: Box<dyn Decoder>,
    values: Box<dyn Decoder>,
    parts: Pairs,
    /// The row of the chunk that each pair belongs to, for a fault's place.
    owners: Vec<usize>,
    ends: Ends,
    validity: Validity,
}

impl Maps {
    fn push(&mut self, row: usize, cell: Option<&[u8]>) -> Result<(), Misfit> {
        let before = self.parts.keys.cells().len();
        if let Some(cell) = cell {
            (self.split)(cell, &mut self.parts)?;
        }
        let count = self.parts.keys.cells().len() - before;
        self.owners.resize(before + count, row);
        self.ends.push(count)?;
        self.validity.push(cell.is_some());
        Ok(())
    }
}

impl Decoder for Maps {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.keys.clear();
        self.parts.values.clear();
        self.owners.clear();
        cells.try_for_each(|row, cell| self.push(row, cell))?;
        self.keys.decode(self.parts.keys.cells()).map_err(at_owner(&self.owners))?;
        self.values.decode(self.parts.values.cells()).map_err(at_owner(&self.owners))
    }

    fn finish(&mut self) -> ArrayRef {
        let entries = StructArray::new(entry_fields(), vec![self.keys.finish(), self.values.finish()], None);
        let DataType::Map(field, sorted) = map_type() else { return Arc::new(entries) };
        // `new` panics on what cannot be here: a key that is NULL, which `split` refuses, and maps that do not end where
        // the pairs do.
        Arc::new(MapArray::new(field, self.ends.finish(), entries, self.validity.finish(), sorted))
    }

    fn size(&self) -> usize {
        self.keys.size() + self.values.size() + self.ends.size()
    }
}

#[cold]
fn damage() -> Misfit {
    nested::damage("hstore")
}

fn split_binary(cell: &[u8], into: &mut Pairs) -> Result<(), Misfit> {
    let mut rest = cell;
    for _ in 0..word(&mut rest).ok_or_else(damage)? {
        let Some(key) = value(&mut rest, "hstore")? else { return Err(damage()) };
        into.keys.push(Some(key))?;
        into.values.push(value(&mut rest, "hstore")?)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(damage()) }
}

/// `"a"=>"1", "b"=>NULL`, with backslashes before quotes and backslashes.
fn split_text(cell: &[u8], into: &mut Pairs) -> Result<(), Misfit> {
    let (mut rest, mut scratch) = (cell, Vec::new());
    while !rest.is_empty() {
        rest = unquote(rest, &mut scratch)?;
        into.keys.push(Some(&scratch))?;
        rest = rest.strip_prefix(b"=>").ok_or_else(damage)?;
        if let Some(after) = rest.strip_prefix(b"NULL") {
            rest = after;
            into.values.push(None)?;
        } else {
            rest = unquote(rest, &mut scratch)?;
            into.values.push(Some(&scratch))?;
        }
        match rest.strip_prefix(b", ") {
            Some(after) if !after.is_empty() => rest = after,
            None if rest.is_empty() => {}
            _ => return Err(damage()),
        }
    }
    Ok(())
}

/// Puts the text in the quotes at the beginning of `text` into `scratch`; gives what follows them.
fn unquote<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], Misfit> {
    scratch.clear();
    let mut rest = text.strip_prefix(b"\"").ok_or_else(damage)?;
    loop {
        match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                scratch.push(*byte);
                rest = after;
            }
            [] => return Err(damage()),
        }
    }
}

/// Appends the length and the bytes of a map in the binary format.
pub(crate) fn put(item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    let length = |bytes: usize| {
        let too_long = |_| Misfit::fault("PostgreSQL's values have 1 GiB at most");
        i32::try_from(bytes).map(i32::to_be_bytes).map_err(too_long)
    };
    let mut count = 0;
    pairs(item, &mut |key, value| {
        count += 1;
        for part in [Some(key), value] {
            out.extend_from_slice(&part.map_or(Ok((-1_i32).to_be_bytes()), |part| length(part.len()))?);
            out.extend_from_slice(part.unwrap_or_default().as_bytes());
        }
        Ok(())
    })?;
    let whole = length(out.len() - start - 4)?;
    out[start..start + 4].copy_from_slice(&whole);
    out[start + 4..start + 8].copy_from_slice(&length(count)?);
    Ok(())
}

/// The text of a map.
pub(crate) fn literal(item: &Item<'_>) -> Result<String, Misfit> {
    let mut literal = String::new();
    let quote = |literal: &mut String, text: &str| encode::quote(literal, text, "\\\"", "\\\\");
    pairs(item, &mut |key, value| {
        if !literal.is_empty() {
            literal.push(',');
        }
        quote(&mut literal, key);
        literal.push_str("=>");
        match value {
            Some(value) => quote(&mut literal, value),
            None => literal.push_str("NULL"),
        }
        Ok(())
    })?;
    Ok(literal)
}

/// A function that takes a key and its value.
type Take<'a> = dyn FnMut(&str, Option<&str>) -> Result<(), Misfit> + 'a;

/// Hands over the pairs of a map, all of whose keys differ: of two that are the same the server would keep one.
fn pairs(item: &Item<'_>, take: &mut Take<'_>) -> Result<(), Misfit> {
    let Item::List(entries) = item else { return Err(fit::wrong_type(item)) };
    let entries = entries.as_struct_opt().filter(|entries| entries.num_columns() == 2);
    let entries = entries.ok_or_else(|| fit::wrong_type(item))?;
    let column = |at: usize| Items::new(entries.column(at), &entries.fields()[at]).map_err(Misfit::from);
    let (keys, values) = (column(0)?, column(1)?);
    let mut seen = HashSet::new();
    for at in 0..entries.len() {
        let Item::Text(key) = keys.get(at) else { return Err(no_text()) };
        let value = match values.get(at) {
            Item::Text(value) => Some(value),
            Item::Null => None,
            _ => return Err(no_text()),
        };
        if !seen.insert(key) {
            return Err(Misfit::with_hint(
                format!("the key {key:?} is there twice, and hstore keeps one"),
                "drop the other",
            ));
        }
        take(key, value)?;
    }
    Ok(())
}

#[cold]
fn no_text() -> Misfit {
    Misfit::with_hint(
        "hstore's keys and values are texts",
        "cast the data to a map of strings, or write it as JSON",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Split = fn(&[u8], &mut Pairs) -> Result<(), Misfit>;

    fn read(split: Split, cell: &[u8]) -> Result<Vec<(String, Option<String>)>, Misfit> {
        let mut pairs = Pairs::default();
        split(cell, &mut pairs)?;
        let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
        let keys = pairs.keys.cells().iter().map(|key| key.map(text).unwrap_or_default()).collect::<Vec<_>>();
        let values = pairs.values.cells().iter().map(|value| value.map(text)).collect::<Vec<_>>();
        Ok(keys.into_iter().zip(values).collect())
    }

    #[test]
    fn pairs_are_read_out_of_both_forms() {
        let expected = vec![("a\"\\".to_owned(), Some(String::new())), (String::new(), None)];
        assert_eq!(read(split_text, br#""a\"\\"=>"", ""=>NULL"#), Ok(expected.clone()));
        let binary = [&[0, 0, 0, 2, 0, 0, 0, 3][..], b"a\"\\", &[0; 8], &[255; 4]].concat();
        assert_eq!(read(split_binary, &binary), Ok(expected));
        assert_eq!(read(split_text, b""), Ok(vec![]));
        assert_eq!(read(split_binary, &[0; 4]), Ok(vec![]));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for bad in
            ["\"a\"", "\"a\"=>", "\"a\"=>\"b\", ", "a=>b", "\"a\"=>\"b\"\"c\"=>NULL", "\"a", "\"a\"=>NIL"]
        {
            assert!(read(split_text, bad.as_bytes()).is_err(), "{bad}");
        }
        for bad in [&[][..], &[0, 0, 0, 1], &[0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0], &[0, 0, 0, 0, 1]] {
            assert!(read(split_binary, bad).is_err(), "{bad:?}");
        }
    }
}
