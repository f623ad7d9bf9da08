//! A statement's description, as whoever sends its `Bind` is to see it.

use longshore_core::Result;

use crate::connection::message::{HEADER, Reader};

/// The `RowDescription` in `message` with other types: that of `columns` in their order, and `otherwise` beyond them.
///
/// Who sends `Bind` picks each column's format by its type; with the type, the format is chosen.
pub fn substitute(message: &[u8], columns: &[u32], otherwise: u32) -> Result<Vec<u8>> {
    let body = message.get(HEADER..).unwrap_or_default();
    let mut reader = Reader::new(body);
    let mut substituted = message.to_vec();
    let count = usize::from(reader.i16()?.cast_unsigned());
    for index in 0..count {
        reader.name()?;
        let (_table, _attribute) = (reader.u32()?, reader.i16()?);
        let at = message.len() - reader.left();
        let oid = columns.get(index).copied().unwrap_or(otherwise);
        let (_oid, _size, _modifier, _format) = (reader.u32()?, reader.i16()?, reader.i32()?, reader.i16()?);
        substituted[at..at + 4].copy_from_slice(&oid.to_be_bytes());
    }
    Ok(substituted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::row_description;

    fn message(names: &[&str]) -> Vec<u8> {
        let mut body = u16::try_from(names.len()).unwrap().to_be_bytes().to_vec();
        for name in names {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(b"\0\0\0\0\x07\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
        }
        let length = u32::try_from(body.len() + 4).unwrap();
        [b"T".as_slice(), &length.to_be_bytes(), &body].concat()
    }

    #[test]
    fn types_alone_are_others() {
        let original = message(&["a", "", "a longer name"]);
        let substituted = substitute(&original, &[790, 17], 25).unwrap();
        assert_eq!(substituted.len(), original.len());
        let columns = row_description(Reader::new(&substituted[HEADER..])).unwrap();
        let seen: Vec<_> = columns.iter().map(|column| (column.name.as_str(), column.oid)).collect();
        assert_eq!(seen, [("a", 790), ("", 17), ("a longer name", 25)]);
        assert!(columns.iter().all(|column| (column.table, column.attribute, column.modifier) == (7, 1, -1)));
        assert_eq!(substitute(&original, &[23, 23, 23], 0).unwrap(), original);
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let original = message(&["a", "b"]);
        for end in 0..original.len() {
            assert!(substitute(&original[..end], &[], 17).is_err());
        }
    }
}
