//! Columns in the form in which the SQL engine computes: decimals of 64 bits, and texts of few values as dictionaries. They lie in a
//! file next to the chunk's own, so that a query converts nothing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal128Type, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, Decimal64Array, DictionaryArray, GenericByteArray, RecordBatch, UInt8Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;

/// The most digits of a decimal of 64 bits.
const MOST_DIGITS: u8 = 18;

/// The places of a table of up to 256 texts, as many as a byte tells apart.
const SLOTS: usize = 1 << 10;

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
    let column = column.as_primitive::<Decimal128Type>();
    let mut fits = true;
    let values: Vec<i64> = column
        .values()
        .iter()
        .map(|value| {
            #[expect(clippy::cast_possible_truncation, reason = "what does not fit is seen below")]
            let narrow = *value as i64;
            fits &= i128::from(narrow) == *value;
            narrow
        })
        .collect();
    // There is anything below a NULL.
    let fits =
        fits || (0..column.len()).all(|row| column.is_null(row) || i64::try_from(column.value(row)).is_ok());
    let made = Decimal64Array::new(values.into(), column.nulls().cloned());
    fits.then(|| made.with_precision_and_scale(digits, scale).ok())
        .flatten()
        .map(|made| Arc::new(made) as ArrayRef)
}

fn dictionary<T: ByteArrayType>(column: &GenericByteArray<T>) -> Option<ArrayRef> {
    let mut numbers = Numbers::new();
    let mut firsts = Vec::new();
    let mut keys = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        if column.is_null(row) {
            keys.push(0);
            continue;
        }
        let number = numbers.number(column.value(row).as_ref())?;
        if usize::from(number) == firsts.len() {
            firsts.push(row as u64);
        }
        keys.push(number);
    }
    let values = take(column, &UInt64Array::from(firsts), None).ok()?;
    let keys = UInt8Array::new(keys.into(), column.nulls().cloned());
    DictionaryArray::try_new(keys, values).ok().map(|made| Arc::new(made) as ArrayRef)
}

/// The numbers of texts, in the order in which they come: few enough that a small table finds each at once.
struct Numbers<'a> {
    /// One more than a text's number; 0 where there is none.
    slots: [u16; SLOTS],
    texts: Vec<&'a [u8]>,
}

impl<'a> Numbers<'a> {
    fn new() -> Self {
        Self { slots: [0; SLOTS], texts: Vec::new() }
    }

    /// A text's number; `None` where there are too many.
    fn number(&mut self, text: &'a [u8]) -> Option<u8> {
        let mut slot = Self::slot(text);
        loop {
            match self.slots[slot] {
                0 => {
                    let number = u8::try_from(self.texts.len()).ok()?;
                    self.texts.push(text);
                    self.slots[slot] = u16::from(number) + 1;
                    return Some(number);
                }
                next if self.texts[usize::from(next) - 1] == text => return u8::try_from(next - 1).ok(),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }

    fn slot(text: &[u8]) -> usize {
        let (first, last) = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
        };
        let mixed = (first ^ last.rotate_left(23) ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> (u64::BITS - SLOTS.ilog2())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::types::{Decimal64Type, UInt8Type};
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
