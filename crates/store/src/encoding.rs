//! Columns in the form in which the SQL engine computes: decimals of 64 bits, and texts of few values as dictionaries. They lie in a
//! file next to the chunk's own, so that a query converts nothing.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{LargeUtf8Type, Utf8Type};
use arrow_schema::{DataType, Field, Schema};
use longshore_parts::{Parts, decimals, dictionary};

/// The most digits of a decimal of 64 bits.
const MOST_DIGITS: u8 = 18;

/// The bytes of rows from which on they have a file of encoded columns: fewer are encoded in no time.
pub(crate) const SMALLEST: usize = 1 << 20;

/// The type of a field's column, encoded; `None` where the engine takes it as it is.
pub(crate) fn encoded_type(field: &Field) -> Option<DataType> {
    // An extension is one of its own storage type.
    if field.metadata().contains_key("ARROW:extension:name") {
        return None;
    }
    match field.data_type() {
        DataType::Decimal128(digits, scale) if *digits <= MOST_DIGITS => {
            Some(DataType::Decimal64(*digits, *scale))
        }
        DataType::Utf8 | DataType::LargeUtf8 => {
            Some(DataType::Dictionary(Box::new(DataType::UInt8), Box::new(field.data_type().clone())))
        }
        _ => None,
    }
}

/// A column in parts, encoded; `None` where it cannot be, or has too many values.
pub(crate) fn encode(field: &Field, parts: &[ArrayRef]) -> Option<ArrayRef> {
    match encoded_type(field)? {
        DataType::Decimal64(digits, scale) => decimals(parts, digits, scale),
        _ if field.data_type() == &DataType::LargeUtf8 => dictionary::<LargeUtf8Type>(parts),
        _ => dictionary::<Utf8Type>(parts),
    }
}

/// The columns of rows that can be encoded; `None` where none can be.
pub(crate) fn encode_columns(rows: &Parts) -> Option<Parts> {
    let (fields, columns): (Vec<Field>, Vec<Vec<ArrayRef>>) = rows
        .schema
        .fields()
        .iter()
        .zip(&rows.columns)
        .filter_map(|(field, parts)| {
            let column = encode(field, parts)?;
            Some((field.as_ref().clone().with_data_type(column.data_type().clone()), vec![column]))
        })
        .unzip();
    (!columns.is_empty()).then(|| Parts { schema: Arc::new(Schema::new(fields)), columns })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal64Type, UInt8Type};
    use arrow_array::{Array, Decimal128Array, StringArray};

    use super::*;

    fn encode_all_ways(column: &ArrayRef) -> Option<ArrayRef> {
        let whole = encode(&field(column), std::slice::from_ref(column));
        for at in [0, column.len() / 3, column.len() - 1] {
            let parts = [column.slice(0, at), column.slice(at, column.len() - at)];
            assert_eq!(whole.as_ref(), encode(&field(column), &parts).as_ref());
        }
        whole
    }

    fn field(column: &ArrayRef) -> Field {
        Field::new("a", column.data_type().clone(), true)
    }

    fn texts(values: impl IntoIterator<Item = Option<String>>) -> ArrayRef {
        Arc::new(StringArray::from_iter(values))
    }

    #[test]
    fn texts_of_few_values_become_a_dictionary() {
        // Of lengths around a word's, which differ in the middle alone.
        let all = [
            "",
            "a",
            "ab",
            "abc",
            "acc",
            "abcde",
            "abcdefgh",
            "abcdefghi",
            "abcdefgh-x-abcdefgh",
            "abcdefgh-y-abcdefgh",
        ];
        let column = texts((0..5_000).map(|row| (row % 11 < 10).then(|| all[row % 11].to_owned())));
        let made = encode_all_ways(&column).unwrap();
        assert_eq!(Some(made.data_type().clone()), encoded_type(&field(&column)));
        let made = made.as_dictionary::<UInt8Type>();
        assert_eq!(made.values().len(), all.len());
        let shown: Vec<Option<&str>> = made.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(shown, column.as_string::<i32>().iter().collect::<Vec<_>>());
        assert_eq!(encode_all_ways(&texts([None, None])).unwrap().null_count(), 2);
    }

    #[test]
    fn an_extension_stays_what_it_is() {
        let column = texts([Some("{}".to_owned())]);
        let field = field(&column)
            .with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())]));
        assert!(encode(&field, &[column]).is_none());
    }

    #[test]
    fn a_dictionary_has_as_many_values_as_its_keys_can_tell() {
        let many = |count: usize| texts((0..2_000).map(|row| Some((row % count).to_string())));
        assert!(encode_all_ways(&many(256)).is_some());
        assert!(encode_all_ways(&many(257)).is_none());
    }

    #[test]
    fn decimals_stay_what_they_are() {
        let column = |values: Vec<Option<i128>>| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(18, 2).unwrap())
        };
        let made = encode_all_ways(&column(vec![Some(-999_999_999_999_999_999), None, Some(1)])).unwrap();
        assert_eq!(made.data_type(), &DataType::Decimal64(18, 2));
        let made: Vec<Option<i64>> = made.as_primitive::<Decimal64Type>().iter().collect();
        assert_eq!(made, [Some(-999_999_999_999_999_999), None, Some(1)]);
        // A frame may hold more digits than its type says.
        assert!(encode_all_ways(&column(vec![Some(1), Some(i128::from(i64::MAX) + 1)])).is_none());
        // Below a NULL there is anything.
        let wide = Decimal128Array::new(vec![1, i128::MAX].into(), Some(vec![true, false].into()));
        let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(18, 2).unwrap());
        assert_eq!(
            encode_all_ways(&wide).unwrap().as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(),
            [Some(1), None]
        );
    }
}
