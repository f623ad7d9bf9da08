//! The functions that the fuzz targets call: every reader of ours of a cell's bytes. There is none in an ordinary build.

use arrow_array::Array;
use arrow_schema::DataType;
use longshore_core::ReadOptions;
use longshore_values::{Cells, Span};
use mssql_tds::datatypes::sqldatatypes::TdsDataType;
use mssql_tds::token::tokens::SqlCollation;

use crate::decode::decoder;
use crate::types::{Described, Type};

/// The types that a column may be read as next to its own.
const WANTED: &[DataType] = &[
    DataType::Utf8,
    DataType::LargeUtf8,
    DataType::Int64,
    DataType::Float64,
    DataType::Boolean,
    DataType::Date32,
];

/// Decodes `bytes` as a cell. Its first bytes choose the column and the Arrow type.
///
/// # Panics
/// When a decoder makes an array that is not valid.
pub fn cells(bytes: &[u8]) {
    let Some((&[tds, length, precision, scale, sort_id, locale, wanted], cell)) =
        bytes.split_first_chunk::<7>()
    else {
        return;
    };
    let Ok(tds) = TdsDataType::try_from(tds) else { return };
    let column = Described {
        name: "c".into(),
        tds,
        length: length.into(),
        precision,
        scale: scale & 7,
        collation: SqlCollation::try_from([locale, 4, sort_id & 0xd0, sort_id & 4, sort_id].as_slice()).ok(),
        nullable: true,
        is_rowversion: false,
        is_identity: false,
        is_generated: false,
        udt: None,
    };
    let options = ReadOptions::default();
    let Ok(native) = Type::of(&column) else { return };
    let own = native.arrow(&options);
    let arrow = WANTED.get(usize::from(wanted)).unwrap_or(&own);
    let Ok(mut decoder) = decoder("c", &native, arrow, &options) else { return };
    let span = Span::new(0, u32::try_from(cell.len()).unwrap_or_default());
    if decoder.decode(Cells::new(cell, &[span, Span::NULL], true)).is_ok() {
        let array = decoder.finish();
        assert_eq!(array.len(), 2);
        assert!(array.to_data().validate_full().is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_values_or_errors() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()[7]
        };
        for tds in 0..=255 {
            for round in 0..400_usize {
                let length = [1, 2, 4, 8, 20][round % 5];
                let mut bytes = vec![tds, length, random() % 40, random(), random(), random(), random() % 9];
                bytes.extend((0..[0, 1, 2, 4, 8, 10, 16, 12, 9][round % 9]).map(|_| random()));
                cells(&bytes);
            }
        }
    }
}
