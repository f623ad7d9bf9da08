//! An Arrow array as the values that go into a database.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, RunEndIndexType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, StructArray};
use arrow_buffer::{NullBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use half::f16;
use longshore_core::{EXTENSION, Error, Result};

use crate::{Item, stored};

/// The values of one array. Dictionaries, run ends and views are gone: what they stand for is left.
pub struct Items<'a> {
    nulls: Option<NullBuffer>,
    values: Values<'a>,
}

/// Values that are all of one form.
#[derive(Clone, Copy, Debug)]
pub enum Uniform<'a> {
    /// Integers with a sign, of 32 bits.
    Int32(&'a [i32]),
    /// Integers with a sign.
    Int(&'a [i64]),
    /// Doubles.
    Double(&'a [f64]),
    /// Decimals, and their scale.
    Decimal(&'a [i128], i8),
    /// Days since 1970-01-01.
    Date(&'a [i32]),
    /// Texts.
    Text(&'a arrow_array::StringArray),
    /// Texts with offsets of 64 bits, as pandas has them.
    LargeText(&'a arrow_array::LargeStringArray),
}

enum Values<'a> {
    Null,
    Bool(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float16(&'a [f16]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal32(&'a [i32], i8),
    Decimal64(&'a [i64], i8),
    Decimal128(&'a [i128], i8),
    Decimal256(&'a [i256], i8),
    Text(&'a arrow_array::StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
    Bytes(&'a arrow_array::BinaryArray),
    LargeBytes(&'a arrow_array::LargeBinaryArray),
    BytesView(&'a arrow_array::BinaryViewArray),
    Fixed(&'a arrow_array::FixedSizeBinaryArray),
    Uuid(&'a arrow_array::FixedSizeBinaryArray),
    Date32(&'a [i32]),
    Date64(&'a [i64]),
    Time32(ScalarBuffer<i32>, TimeUnit),
    Time64(ScalarBuffer<i64>, TimeUnit),
    Timestamp(ScalarBuffer<i64>, TimeUnit),
    TimestampTz(ScalarBuffer<i64>, TimeUnit),
    Duration(ScalarBuffer<i64>, TimeUnit),
    Months(&'a [i32]),
    DayTime(&'a [arrow_buffer::IntervalDayTime]),
    MonthDayNano(&'a [arrow_buffer::IntervalMonthDayNano]),
    List(&'a arrow_array::ListArray),
    LargeList(&'a arrow_array::LargeListArray),
    FixedList(&'a arrow_array::FixedSizeListArray),
    ListView(&'a arrow_array::ListViewArray),
    LargeListView(&'a arrow_array::LargeListViewArray),
    Map(&'a arrow_array::MapArray),
    Struct(&'a StructArray),
    /// The values that each row's number of `keys` stands for.
    Dictionary(Vec<usize>, Box<Items<'a>>),
}

impl<'a> Items<'a> {
    /// The values of `array`, which is a column of `field`.
    pub fn new(array: &'a dyn Array, field: &Field) -> Result<Self> {
        let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
        Ok(Self { nulls: array.nulls().cloned(), values: values(array, is_uuid)? })
    }

    /// All values at once, where they are of the commonest forms and none is NULL.
    #[must_use]
    pub fn uniform(&self) -> Option<Uniform<'a>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) {
            return None;
        }
        match &self.values {
            Values::Int32(values) => Some(Uniform::Int32(values)),
            Values::Int64(values) => Some(Uniform::Int(values)),
            Values::Float64(values) => Some(Uniform::Double(values)),
            Values::Decimal128(values, scale) => Some(Uniform::Decimal(values, *scale)),
            Values::Date32(values) => Some(Uniform::Date(values)),
            Values::Text(array) => Some(Uniform::Text(array)),
            Values::LargeText(array) => Some(Uniform::LargeText(array)),
            _ => None,
        }
    }

    /// The value of `row`, which is below the array's length.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> Item<'a> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Item::Null;
        }
        match &self.values {
            Values::Null => Item::Null,
            Values::Bool(array) => Item::Bool(array.value(row)),
            Values::Int8(values) => Item::Int(values[row].into()),
            Values::Int16(values) => Item::Int(values[row].into()),
            Values::Int32(values) => Item::Int(values[row].into()),
            Values::Int64(values) => Item::Int(values[row]),
            Values::UInt8(values) => Item::UInt(values[row].into()),
            Values::UInt16(values) => Item::UInt(values[row].into()),
            Values::UInt32(values) => Item::UInt(values[row].into()),
            Values::UInt64(values) => Item::UInt(values[row]),
            Values::Float16(values) => Item::Float(values[row].to_f32()),
            Values::Float32(values) => Item::Float(values[row]),
            Values::Float64(values) => Item::Double(values[row]),
            Values::Decimal32(values, scale) => Item::Decimal(values[row].into(), *scale),
            Values::Decimal64(values, scale) => Item::Decimal(values[row].into(), *scale),
            Values::Decimal128(values, scale) => Item::Decimal(values[row], *scale),
            Values::Decimal256(values, scale) => match values[row].to_i128() {
                Some(value) => Item::Decimal(value, *scale),
                None => Item::WideDecimal(values[row], *scale),
            },
            Values::Text(array) => Item::Text(array.value(row)),
            Values::LargeText(array) => Item::Text(array.value(row)),
            Values::TextView(array) => Item::Text(array.value(row)),
            Values::Bytes(array) => Item::Bytes(array.value(row)),
            Values::LargeBytes(array) => Item::Bytes(array.value(row)),
            Values::BytesView(array) => Item::Bytes(array.value(row)),
            Values::Fixed(array) => Item::Bytes(array.value(row)),
            Values::Uuid(array) => {
                array.value(row).try_into().map_or_else(|_| Item::Bytes(array.value(row)), Item::Uuid)
            }
            Values::Date32(values) => Item::Date(values[row]),
            Values::Date64(values) => date(values[row]),
            Values::Time32(values, unit) => Item::Time(values[row].into(), *unit),
            Values::Time64(values, unit) => Item::Time(values[row], *unit),
            Values::Timestamp(values, unit) => Item::Timestamp(values[row], *unit),
            Values::TimestampTz(values, unit) => Item::TimestampTz(values[row], *unit),
            Values::Duration(values, unit) => Item::Duration(values[row], *unit),
            Values::Months(values) => Item::Interval(values[row], 0, 0),
            Values::DayTime(values) => {
                Item::Interval(0, values[row].days, i64::from(values[row].milliseconds) * 1_000_000)
            }
            Values::MonthDayNano(values) => {
                Item::Interval(values[row].months, values[row].days, values[row].nanoseconds)
            }
            Values::List(array) => Item::List(array.value(row)),
            Values::LargeList(array) => Item::List(array.value(row)),
            Values::FixedList(array) => Item::List(array.value(row)),
            Values::ListView(array) => Item::List(array.value(row)),
            Values::LargeListView(array) => Item::List(array.value(row)),
            Values::Map(array) => Item::List(std::sync::Arc::new(array.value(row))),
            Values::Struct(array) => Item::Row(array, row),
            Values::Dictionary(keys, items) => items.get(keys[row]),
        }
    }
}

/// A day, unless the milliseconds have a time of day, too.
fn date(milliseconds: i64) -> Item<'static> {
    const DAY: i64 = 86_400_000;
    match i32::try_from(milliseconds / DAY) {
        Ok(days) if milliseconds % DAY == 0 => Item::Date(days),
        _ => Item::Timestamp(milliseconds, TimeUnit::Millisecond),
    }
}

#[allow(clippy::too_many_lines)] // one line a type
fn values(array: &dyn Array, is_uuid: bool) -> Result<Values<'_>> {
    macro_rules! of {
        ($kind:ty) => {
            array.as_primitive::<$kind>().values().as_ref()
        };
    }
    Ok(match array.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Bool(array.as_boolean()),
        DataType::Int8 => Values::Int8(of!(Int8Type)),
        DataType::Int16 => Values::Int16(of!(Int16Type)),
        DataType::Int32 => Values::Int32(of!(Int32Type)),
        DataType::Int64 => Values::Int64(of!(Int64Type)),
        DataType::UInt8 => Values::UInt8(of!(UInt8Type)),
        DataType::UInt16 => Values::UInt16(of!(UInt16Type)),
        DataType::UInt32 => Values::UInt32(of!(UInt32Type)),
        DataType::UInt64 => Values::UInt64(of!(UInt64Type)),
        DataType::Float16 => Values::Float16(of!(Float16Type)),
        DataType::Float32 => Values::Float32(of!(Float32Type)),
        DataType::Float64 => Values::Float64(of!(Float64Type)),
        DataType::Decimal32(_, scale) => Values::Decimal32(of!(Decimal32Type), *scale),
        DataType::Decimal64(_, scale) => Values::Decimal64(of!(Decimal64Type), *scale),
        DataType::Decimal128(_, scale) => Values::Decimal128(of!(Decimal128Type), *scale),
        DataType::Decimal256(_, scale) => Values::Decimal256(of!(Decimal256Type), *scale),
        DataType::Utf8 => Values::Text(array.as_string()),
        DataType::LargeUtf8 => Values::LargeText(array.as_string()),
        DataType::Utf8View => Values::TextView(array.as_string_view()),
        DataType::Binary => Values::Bytes(array.as_binary()),
        DataType::LargeBinary => Values::LargeBytes(array.as_binary()),
        DataType::BinaryView => Values::BytesView(array.as_binary_view()),
        DataType::FixedSizeBinary(_) if is_uuid => Values::Uuid(array.as_fixed_size_binary()),
        DataType::FixedSizeBinary(_) => Values::Fixed(array.as_fixed_size_binary()),
        DataType::Date32 => Values::Date32(of!(Date32Type)),
        DataType::Date64 => Values::Date64(of!(Date64Type)),
        DataType::Time32(unit) => Values::Time32(stored(array), *unit),
        DataType::Time64(unit) => Values::Time64(stored(array), *unit),
        DataType::Timestamp(unit, None) => Values::Timestamp(stored(array), *unit),
        DataType::Timestamp(unit, Some(_)) => Values::TimestampTz(stored(array), *unit),
        DataType::Duration(unit) => Values::Duration(stored(array), *unit),
        DataType::Interval(IntervalUnit::YearMonth) => Values::Months(of!(IntervalYearMonthType)),
        DataType::Interval(IntervalUnit::DayTime) => Values::DayTime(of!(IntervalDayTimeType)),
        DataType::Interval(IntervalUnit::MonthDayNano) => Values::MonthDayNano(of!(IntervalMonthDayNanoType)),
        DataType::List(_) => Values::List(array.as_list()),
        DataType::LargeList(_) => Values::LargeList(array.as_list()),
        DataType::FixedSizeList(..) => Values::FixedList(array.as_fixed_size_list()),
        DataType::ListView(_) => Values::ListView(array.as_list_view()),
        DataType::LargeListView(_) => Values::LargeListView(array.as_list_view()),
        DataType::Map(..) => Values::Map(array.as_map()),
        DataType::Struct(_) => Values::Struct(array.as_struct()),
        DataType::Dictionary(..) => return dictionary(array, is_uuid),
        DataType::RunEndEncoded(ends, _) => {
            return match ends.data_type() {
                DataType::Int16 => runs::<Int16Type>(array, is_uuid),
                DataType::Int32 => runs::<Int32Type>(array, is_uuid),
                _ => runs::<Int64Type>(array, is_uuid),
            };
        }
        other @ DataType::Union(..) => return Err(no_value(other)),
    })
}

fn dictionary(array: &dyn Array, is_uuid: bool) -> Result<Values<'_>> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return Ok(Values::Null);
    }
    // The keys of NULLs may be anything.
    let keys = dictionary.normalized_keys().into_iter().map(|key| key.min(values.len() - 1));
    nested(keys.collect(), values, is_uuid)
}

fn runs<R: RunEndIndexType>(array: &dyn Array, is_uuid: bool) -> Result<Values<'_>> {
    let runs = array.as_run::<R>();
    nested((0..array.len()).map(|row| runs.get_physical_index(row)).collect(), runs.values(), is_uuid)
}

fn nested(keys: Vec<usize>, values: &ArrayRef, is_uuid: bool) -> Result<Values<'_>> {
    let items = Items { nulls: values.nulls().cloned(), values: self::values(values, is_uuid)? };
    Ok(Values::Dictionary(keys, Box::new(items)))
}

#[cold]
fn no_value(data_type: &DataType) -> Error {
    Error::not_supported(format!("no database has a type for {data_type}"))
        .with_hint("leave the column out, or give it one type")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{DictionaryArray, Int32Array, RunArray, StringArray};

    use super::*;

    fn shown(array: impl Array + 'static) -> Vec<String> {
        let array: ArrayRef = Arc::new(array);
        let field = Field::new("a", array.data_type().clone(), true);
        let items = Items::new(&array, &field).unwrap();
        (0..array.len()).map(|row| items.get(row).shown()).collect()
    }

    #[test]
    fn dictionaries_and_runs_are_their_values() {
        let words: DictionaryArray<Int32Type> = [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        assert_eq!(shown(words), ["\"b\"", "NULL", "\"a\"", "\"b\""]);
        let runs =
            RunArray::try_new(&Int32Array::from(vec![2, 3]), &StringArray::from(vec![Some("x"), None]))
                .unwrap();
        assert_eq!(shown(runs), ["\"x\"", "\"x\"", "NULL"]);
    }

    #[test]
    fn a_dictionary_of_nothing_is_null() {
        let empty: DictionaryArray<Int32Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(shown(empty), ["NULL", "NULL"]);
    }
}
