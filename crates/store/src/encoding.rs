//! Columns in the form in which the SQL engine computes: decimals of 64 bits, and texts of few values as dictionaries. They lie in a
//! file next to the chunk's own, so that a query converts nothing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal64Type, Decimal128Type, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, GenericByteArray, RecordBatch, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

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

/// A column, encoded; `None` where it cannot be, or has too many values.
pub(crate) fn encoded(field: &Field, column: &ArrayRef) -> Option<ArrayRef> {
    match encoded_type(field)? {
        DataType::Decimal64(digits, scale) => decimals(column, digits, scale),
        _ if column.data_type() == &DataType::LargeUtf8 => dictionary(column.as_bytes::<LargeUtf8Type>()),
        _ => dictionary(column.as_bytes::<Utf8Type>()),
    }
}

/// The columns of a batch that can be encoded; `None` where none can be.
pub(crate) fn encoded_batch(batch: &RecordBatch) -> Option<RecordBatch> {
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .filter_map(|(field, column)| {
            let column = encoded(field, column)?;
            Some((field.as_ref().clone().with_data_type(column.data_type().clone()), column))
        })
        .unzip();
    if columns.is_empty() { None } else { RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).ok() }
}

fn decimals(column: &ArrayRef, digits: u8, scale: i8) -> Option<ArrayRef> {
    let narrow =
        column.as_primitive::<Decimal128Type>().try_unary::<_, Decimal64Type, _>(i64::try_from).ok()?;
    narrow.with_precision_and_scale(digits, scale).ok().map(|made| Arc::new(made) as ArrayRef)
}

fn dictionary<T: ByteArrayType>(column: &GenericByteArray<T>) -> Option<ArrayRef> {
    let mut numbers: HashMap<&[u8], u8> = HashMap::new();
    let mut firsts = Vec::new();
    let mut keys = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        if column.is_null(row) {
            keys.push(0);
            continue;
        }
        let next = numbers.len();
        keys.push(match numbers.entry(column.value(row).as_ref()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                firsts.push(row as u64);
                *new.insert(u8::try_from(next).ok()?)
            }
        });
    }
    let values = take(column, &UInt64Array::from(firsts), None).ok()?;
    let keys = UInt8Array::new(keys.into(), column.nulls().cloned());
    DictionaryArray::try_new(keys, values).ok().map(|made| Arc::new(made) as ArrayRef)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::types::UInt8Type;
    use arrow_array::{Decimal128Array, StringArray};

    use super::*;

    fn encode(column: &ArrayRef) -> Option<ArrayRef> {
        encoded(&field(column), column)
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
        let all = ["", "a", "b", "abcdefgh", "abcdefghi", "abcdefgh-x-abcdefgh", "abcdefgh-y-abcdefgh"];
        let column = texts((0..5_000).map(|row| (row % 8 < 7).then(|| all[row % 8].to_owned())));
        let made = encode(&column).unwrap();
        assert_eq!(Some(made.data_type().clone()), encoded_type(&field(&column)));
        let made = made.as_dictionary::<UInt8Type>();
        assert_eq!(made.values().len(), all.len());
        let shown: Vec<Option<&str>> = made.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(shown, column.as_string::<i32>().iter().collect::<Vec<_>>());
    }

    #[test]
    fn an_extension_stays_what_it_is() {
        let column = texts([Some("{}".to_owned())]);
        let field = field(&column)
            .with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())]));
        assert!(encoded(&field, &column).is_none());
    }

    #[test]
    fn a_dictionary_has_as_many_values_as_its_keys_can_tell() {
        let many = |count: usize| texts((0..2_000).map(|row| Some((row % count).to_string())));
        assert!(encode(&many(256)).is_some());
        assert!(encode(&many(257)).is_none());
    }

    #[test]
    fn decimals_stay_what_they_are() {
        let column = |values: Vec<Option<i128>>| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(18, 2).unwrap())
        };
        let made = encode(&column(vec![Some(-999_999_999_999_999_999), None, Some(1)])).unwrap();
        assert_eq!(made.data_type(), &DataType::Decimal64(18, 2));
        let made: Vec<Option<i64>> = made.as_primitive::<Decimal64Type>().iter().collect();
        assert_eq!(made, [Some(-999_999_999_999_999_999), None, Some(1)]);
        // A frame may hold more digits than its type says.
        assert!(encode(&column(vec![Some(1), Some(i128::from(i64::MAX) + 1)])).is_none());
        // Below a NULL there is anything.
        let wide = Decimal128Array::new(vec![1, i128::MAX].into(), Some(vec![true, false].into()));
        let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(18, 2).unwrap());
        assert_eq!(
            encode(&wide).unwrap().as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(),
            [Some(1), None]
        );
    }
}
