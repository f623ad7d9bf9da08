//! An Arrow array as the values that go into a database.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, RunEndIndexType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef};
use arrow_buffer::{ArrowNativeType, NullBuffer, i256};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use longshore_core::{EXTENSION, Error, Result};

use crate::{Item, stored_values};

/// The values of one array. Dictionaries, run ends and views are gone: what they stand for is left.
pub struct Items<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Uniform(Uniform<'a>),
    Other(Value<'a>),
}

/// The value of a row that is not NULL.
type Value<'a> = Box<dyn Fn(usize) -> Item<'a> + 'a>;

/// Values of one of the commonest forms.
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

impl<'a> Items<'a> {
    /// The values of `array`, which is a column of `field`.
    pub fn new(array: &'a dyn Array, field: &Field) -> Result<Self> {
        let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
        Self::of(array, is_uuid)
    }

    fn of(array: &'a dyn Array, is_uuid: bool) -> Result<Self> {
        let values = match Uniform::of(array) {
            Some(values) => Values::Uniform(values),
            None => Values::Other(value(array, is_uuid)?),
        };
        Ok(Self { nulls: array.nulls(), values })
    }

    /// All values at once, where they are of the commonest forms and none is NULL.
    #[must_use]
    pub fn uniform(&self) -> Option<Uniform<'a>> {
        match self.values {
            Values::Uniform(values) if self.nulls.is_none_or(|nulls| nulls.null_count() == 0) => Some(values),
            _ => None,
        }
    }

    /// The value of `row`, which is below the array's length.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> Item<'a> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Item::Null;
        }
        match &self.values {
            Values::Uniform(values) => values.get(row),
            Values::Other(value) => value(row),
        }
    }
}

impl<'a> Uniform<'a> {
    fn of(array: &'a dyn Array) -> Option<Self> {
        Some(match *array.data_type() {
            DataType::Int32 => Self::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Self::Int(array.as_primitive::<Int64Type>().values()),
            DataType::Float64 => Self::Double(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(_, scale) => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().values(), scale)
            }
            DataType::Date32 => Self::Date(array.as_primitive::<Date32Type>().values()),
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string()),
            _ => return None,
        })
    }

    #[inline]
    fn get(&self, row: usize) -> Item<'a> {
        match self {
            Self::Int32(values) => Item::Int(values[row].into()),
            Self::Int(values) => Item::Int(values[row]),
            Self::Double(values) => Item::Double(values[row]),
            Self::Decimal(values, scale) => Item::Decimal(values[row], *scale),
            Self::Date(values) => Item::Date(values[row]),
            Self::Text(array) => Item::Text(array.value(row)),
            Self::LargeText(array) => Item::Text(array.value(row)),
        }
    }
}

/// A day, unless the milliseconds have a time of day, too.
fn date<'a>(milliseconds: i64) -> Item<'a> {
    const DAY: i64 = 86_400_000;
    match i32::try_from(milliseconds / DAY) {
        Ok(days) if milliseconds % DAY == 0 => Item::Date(days),
        _ => Item::Timestamp(milliseconds, TimeUnit::Millisecond),
    }
}

fn wide_decimal(value: i256, scale: i8) -> Item<'static> {
    value.to_i128().map_or(Item::WideDecimal(value, scale), |value| Item::Decimal(value, scale))
}

fn each<'a, A: ArrayAccessor + 'a>(array: A, item: impl Fn(A::Item) -> Item<'a> + 'a) -> Value<'a> {
    Box::new(move |row| item(array.value(row)))
}

fn count<'a, T: ArrowNativeType + Into<i64>>(
    array: &dyn Array,
    unit: TimeUnit,
    item: impl Fn(i64, TimeUnit) -> Item<'a> + 'a,
) -> Value<'a> {
    let values = stored_values::<T>(array);
    Box::new(move |row| item(values[row].into(), unit))
}

/// The values of an array that is not [`Uniform`].
fn value(array: &dyn Array, is_uuid: bool) -> Result<Value<'_>> {
    macro_rules! of {
        ($kind:ty, $item:expr) => {
            each(array.as_primitive::<$kind>(), $item)
        };
    }
    Ok(match *array.data_type() {
        DataType::Null => Box::new(|_| Item::Null),
        DataType::Boolean => each(array.as_boolean(), Item::Bool),
        DataType::Int8 => of!(Int8Type, |value| Item::Int(value.into())),
        DataType::Int16 => of!(Int16Type, |value| Item::Int(value.into())),
        DataType::UInt8 => of!(UInt8Type, |value| Item::UInt(value.into())),
        DataType::UInt16 => of!(UInt16Type, |value| Item::UInt(value.into())),
        DataType::UInt32 => of!(UInt32Type, |value| Item::UInt(value.into())),
        DataType::UInt64 => of!(UInt64Type, Item::UInt),
        DataType::Float16 => of!(Float16Type, |value| Item::Float(value.to_f32())),
        DataType::Float32 => of!(Float32Type, Item::Float),
        DataType::Decimal32(_, scale) => of!(Decimal32Type, move |value| Item::Decimal(value.into(), scale)),
        DataType::Decimal64(_, scale) => of!(Decimal64Type, move |value| Item::Decimal(value.into(), scale)),
        DataType::Decimal256(_, scale) => of!(Decimal256Type, move |value| wide_decimal(value, scale)),
        DataType::Utf8View => each(array.as_string_view(), Item::Text),
        DataType::Binary => each(array.as_binary::<i32>(), Item::Bytes),
        DataType::LargeBinary => each(array.as_binary::<i64>(), Item::Bytes),
        DataType::BinaryView => each(array.as_binary_view(), Item::Bytes),
        DataType::FixedSizeBinary(_) if is_uuid => each(array.as_fixed_size_binary(), |bytes| {
            bytes.try_into().map_or(Item::Bytes(bytes), Item::Uuid)
        }),
        DataType::FixedSizeBinary(_) => each(array.as_fixed_size_binary(), Item::Bytes),
        DataType::Date64 => of!(Date64Type, date),
        DataType::Time32(unit) => count::<i32>(array, unit, Item::Time),
        DataType::Time64(unit) => count::<i64>(array, unit, Item::Time),
        DataType::Timestamp(unit, None) => count::<i64>(array, unit, Item::Timestamp),
        DataType::Timestamp(unit, Some(_)) => count::<i64>(array, unit, Item::TimestampTz),
        DataType::Duration(unit) => count::<i64>(array, unit, Item::Duration),
        DataType::Interval(IntervalUnit::YearMonth) => {
            of!(IntervalYearMonthType, |months| Item::Interval(months, 0, 0))
        }
        DataType::Interval(IntervalUnit::DayTime) => of!(IntervalDayTimeType, |value| {
            Item::Interval(0, value.days, i64::from(value.milliseconds) * 1_000_000)
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => of!(IntervalMonthDayNanoType, |value| {
            Item::Interval(value.months, value.days, value.nanoseconds)
        }),
        DataType::List(_) => each(array.as_list::<i32>(), Item::List),
        DataType::LargeList(_) => each(array.as_list::<i64>(), Item::List),
        DataType::FixedSizeList(..) => each(array.as_fixed_size_list(), Item::List),
        DataType::ListView(_) => each(array.as_list_view::<i32>(), Item::List),
        DataType::LargeListView(_) => each(array.as_list_view::<i64>(), Item::List),
        DataType::Map(..) => each(array.as_map(), |entries| Item::List(std::sync::Arc::new(entries))),
        DataType::Struct(_) => {
            let array = array.as_struct();
            Box::new(move |row| Item::Row(array, row))
        }
        DataType::Dictionary(..) => return dictionary(array, is_uuid),
        DataType::RunEndEncoded(ref ends, _) => {
            return match ends.data_type() {
                DataType::Int16 => runs::<Int16Type>(array, is_uuid),
                DataType::Int32 => runs::<Int32Type>(array, is_uuid),
                _ => runs::<Int64Type>(array, is_uuid),
            };
        }
        ref other => return Err(no_value(other)),
    })
}

fn dictionary(array: &dyn Array, is_uuid: bool) -> Result<Value<'_>> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return Ok(Box::new(|_| Item::Null));
    }
    // The keys of NULLs may be anything.
    let keys = dictionary.normalized_keys().into_iter().map(|key| key.min(values.len() - 1));
    look_up(keys.collect(), values, is_uuid)
}

fn runs<R: RunEndIndexType>(array: &dyn Array, is_uuid: bool) -> Result<Value<'_>> {
    let runs = array.as_run::<R>();
    look_up((0..array.len()).map(|row| runs.get_physical_index(row)).collect(), runs.values(), is_uuid)
}

/// The values that each row's number of `keys` stands for.
fn look_up(keys: Vec<usize>, values: &ArrayRef, is_uuid: bool) -> Result<Value<'_>> {
    let items = Items::of(values, is_uuid)?;
    Ok(Box::new(move |row| items.get(keys[row])))
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

    fn show_all(array: impl Array + 'static) -> Vec<String> {
        let array: ArrayRef = Arc::new(array);
        let field = Field::new("a", array.data_type().clone(), true);
        let items = Items::new(&array, &field).unwrap();
        (0..array.len()).map(|row| items.get(row).show()).collect()
    }

    #[test]
    fn dictionaries_and_runs_are_their_values() {
        let words: DictionaryArray<Int32Type> = [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        assert_eq!(show_all(words), ["\"b\"", "NULL", "\"a\"", "\"b\""]);
        let runs =
            RunArray::try_new(&Int32Array::from(vec![2, 3]), &StringArray::from(vec![Some("x"), None]))
                .unwrap();
        assert_eq!(show_all(runs), ["\"x\"", "\"x\"", "NULL"]);
    }

    #[test]
    fn a_dictionary_of_nothing_is_null() {
        let empty: DictionaryArray<Int32Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(show_all(empty), ["NULL", "NULL"]);
    }
}
