//! `sql_variant`: values that have their types with them, read as the texts that the server would cast them to.

use longshore_values::Misfit;
use mssql_tds::datatypes::sql_string::EncodingType;
use mssql_tds::token::tokens::SqlCollation;

use crate::render::render;
use crate::text::Encoding;
use crate::types::Class;

/// A value's type, as it stands before the value in its cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Head {
    Bit,
    UInt8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    Decimal(u8, u8),
    Date,
    Time(u8),
    DateTime(u8),
    DateTimeOffset(u8),
    Text(EncodingType),
    Uuid,
    Bytes,
}

/// The bytes of a head: its kind, two numbers, and a text's collation.
const LENGTH: usize = 8;

impl Head {
    /// Appends the head.
    pub(crate) fn write(self, into: &mut Vec<u8>) {
        let [kind, first, second, rest @ ..] = match self {
            Self::Bit => [0, 0, 0, 0, 0, 0, 0, 0],
            Self::UInt8 => [1, 0, 0, 0, 0, 0, 0, 0],
            Self::Int16 => [2, 0, 0, 0, 0, 0, 0, 0],
            Self::Int32 => [3, 0, 0, 0, 0, 0, 0, 0],
            Self::Int64 => [4, 0, 0, 0, 0, 0, 0, 0],
            Self::Float => [5, 0, 0, 0, 0, 0, 0, 0],
            Self::Double => [6, 0, 0, 0, 0, 0, 0, 0],
            Self::Decimal(precision, scale) => [7, precision, scale, 0, 0, 0, 0, 0],
            Self::Date => [8, 0, 0, 0, 0, 0, 0, 0],
            Self::Time(scale) => [9, scale, 0, 0, 0, 0, 0, 0],
            Self::DateTime(scale) => [10, scale, 0, 0, 0, 0, 0, 0],
            Self::DateTimeOffset(scale) => [11, scale, 0, 0, 0, 0, 0, 0],
            Self::Text(EncodingType::Utf16) => [12, 0, 0, 0, 0, 0, 0, 0],
            Self::Text(EncodingType::LcidBased(collation)) => {
                collation_bytes(collation.info, collation.sort_id)
            }
            Self::Text(EncodingType::Utf8) => collation_bytes(UTF8, 0),
            // Never of a value that comes.
            Self::Text(EncodingType::DelayedSet) => collation_bytes(0, 0),
            Self::Uuid => [14, 0, 0, 0, 0, 0, 0, 0],
            Self::Bytes => [15, 0, 0, 0, 0, 0, 0, 0],
        };
        into.extend_from_slice(&[kind, first, second]);
        into.extend_from_slice(&rest);
    }
}

/// The flag of collations whose texts are UTF-8.
const UTF8: u32 = 1 << 26;

fn collation_bytes(info: u32, sort_id: u8) -> [u8; LENGTH] {
    let [a, b, c, d] = info.to_le_bytes();
    [13, sort_id, 0, a, b, c, d, 0]
}

/// Appends the text of a cell that begins with its head.
pub(crate) fn append(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let Some(([kind, first, second, a, b, c, d, _], value)) = cell.split_first_chunk::<LENGTH>() else {
        return Err(Misfit::fault("the server sent a damaged sql_variant"));
    };
    let class = match kind {
        0 => Class::Bit,
        1 => Class::UInt8,
        2 => Class::Int16,
        3 => Class::Int32,
        4 => Class::Int64,
        5 => Class::Float,
        6 => Class::Double,
        7 => Class::Decimal(*first, *second),
        8 => Class::Date,
        9 => Class::Time(*first),
        10 => Class::DateTime(*first),
        11 => Class::DateTimeOffset(*first),
        12 => Class::Text(Encoding::Utf16),
        13 => {
            let collation = SqlCollation::try_from([*a, *b, *c, *d, *first].as_slice());
            Class::Text(Encoding::of(collation.ok())?)
        }
        14 => Class::Uuid,
        _ => {
            into.extend_from_slice(b"0x");
            into.extend(longshore_values::text::hex(value).to_ascii_uppercase().into_bytes());
            return Ok(());
        }
    };
    render(class, value, into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: Head, value: &[u8]) -> Result<String, Misfit> {
        let mut cell = Vec::new();
        head.write(&mut cell);
        cell.extend_from_slice(value);
        let mut into = Vec::new();
        append(&cell, &mut into)?;
        Ok(String::from_utf8(into).unwrap())
    }

    #[test]
    fn each_value_reads_as_its_own_type() {
        let collation = SqlCollation::try_from([0x09, 0x04, 0xd0, 0x00, 0x34].as_slice()).unwrap();
        assert_eq!(text(Head::Int32, &(-7_i32).to_le_bytes()).unwrap(), "-7");
        assert_eq!(text(Head::Decimal(5, 2), &(-5_i128).to_le_bytes()).unwrap(), "-0.05");
        assert_eq!(text(Head::Text(EncodingType::LcidBased(collation)), b"caf\xe9").unwrap(), "café");
        assert_eq!(text(Head::Text(EncodingType::Utf8), "é".as_bytes()).unwrap(), "é");
        assert_eq!(text(Head::Text(EncodingType::Utf16), b"a\0").unwrap(), "a");
        assert_eq!(text(Head::Bytes, &[0, 0xab]).unwrap(), "0x00AB");
        assert_eq!(text(Head::Time(2), &5_000_000_i64.to_le_bytes()).unwrap(), "00:00:00.50");
        assert!(append(&[1, 2], &mut Vec::new()).is_err());
        assert!(text(Head::Int32, &[1]).is_err());
    }
}
