//! The types of `schema=`: a column as the type that the caller asks for, exactly or with a fault.

use arrow_array::temporal_conversions::{as_date, as_datetime, as_time};
use arrow_array::types::{
    Date32Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::memory::check_available;
use longshore_core::{Place, ReadOptions, Result};
use longshore_values::calendar::DAY;
use longshore_values::text::uuid;
use longshore_values::{Cast, CellFault, Form, Item, Items, Losses, Misfit, microseconds, push_number};

use crate::numeric::is_numeric;

const CAST: &str = "cast it in the query, or leave schema= out";

/// Whether there is a way from one type to the other.
#[must_use]
pub fn can(from: &DataType, wanted: &DataType) -> bool {
    use DataType as T;
    let Some(form) = Form::of(wanted) else { return false };
    let is_text = matches!(from, T::Utf8 | T::LargeUtf8 | T::Utf8View) || is_labels(from);
    let is_number = from.is_numeric() || matches!(from, T::Boolean);
    match form {
        Form::Text => {
            is_text
                || is_number
                || matches!(from, T::Date32 | T::Timestamp(..) | T::Time64(_) | T::FixedSizeBinary(16))
        }
        Form::Number => (is_number && !matches!(from, T::Float16)) || is_text,
        Form::Bytes => is_text || matches!(from, T::Binary | T::LargeBinary | T::FixedSizeBinary(_)),
        Form::Uuid => is_text || matches!(from, T::FixedSizeBinary(16)),
        Form::Timestamp { zoned } => match from {
            T::Timestamp(_, zone) => zone.is_some() == zoned,
            T::Date32 => !zoned,
            _ => false,
        },
        Form::Date => matches!(from, T::Date32 | T::Timestamp(_, None)),
        Form::Time => matches!(from, T::Time64(_)),
    }
}

fn is_labels(from: &DataType) -> bool {
    matches!(from, DataType::Dictionary(_, values) if matches!(**values, DataType::Utf8 | DataType::LargeUtf8))
}

/// `array` in the type of `wanted`, exactly; [`can`] says whether there is a way.
pub fn cast(array: &ArrayRef, wanted: &Field) -> Result<ArrayRef> {
    let own = Field::new(wanted.name(), array.data_type().clone(), true);
    exact(array, &own, wanted.data_type(), &ReadOptions::default()).map_err(|fault| {
        let row = Some(fault.row as u64);
        fault.into_error(Place { column: Some(wanted.name().clone()), row, native_type: None })
    })
}

/// `array`, whose field is `own`, as `wanted`.
pub(crate) fn exact(
    array: &ArrayRef,
    own: &Field,
    wanted: &DataType,
    options: &ReadOptions,
) -> Result<ArrayRef, CellFault> {
    let of_decimals = own.data_type().is_decimal() || is_numeric(own);
    let cast = Cast::to(wanted, of_decimals, options, &Losses::of(own.name(), options));
    let (Some(form), Some(mut cast)) = (Form::of(wanted), cast) else { return Ok(array.clone()) };
    let Ok(items) = Items::new(array, own) else { return Ok(array.clone()) };
    check_available(2 * array.get_array_memory_size())?;
    let mut digits = String::new();
    for row in 0..array.len() {
        match items.get(row) {
            Item::Null => cast.push_null(),
            item => cast.push(|to| render(&item, form, &mut digits, to)).map_err(with_hint)?,
        }
    }
    cast.finish().map_err(with_hint)
}

fn with_hint(fault: CellFault) -> CellFault {
    CellFault { hint: fault.hint.or(Some(CAST.into())), ..fault }
}

#[allow(clippy::unnecessary_wraps)] // one of several functions of one type
fn copy(cell: &[u8], to: &mut Vec<u8>) -> Result<(), Misfit> {
    to.extend_from_slice(cell);
    Ok(())
}

/// Writes a value in the form that a decoder reads.
fn render(item: &Item<'_>, form: Form, digits: &mut String, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match item {
        Item::Bool(value) => {
            let words = if form == Form::Text { ["false", "true"] } else { ["0", "1"] };
            copy(words[usize::from(*value)].as_bytes(), to)
        }
        Item::Int(_) | Item::UInt(_) | Item::Decimal(..) | Item::WideDecimal(..) => {
            digits.clear();
            push_number(digits, item);
            copy(digits.as_bytes(), to)
        }
        Item::Float(value) => copy(real(f64::from(*value), form).as_bytes(), to),
        Item::Double(value) => copy(real(*value, form).as_bytes(), to),
        Item::Text(text) => of_text(text, form, to),
        Item::Bytes(bytes) => of_bytes(bytes, form, to),
        Item::Uuid(bytes) => of_bytes(bytes.as_slice(), form, to),
        item if form == Form::Text => copy(show(item)?.as_bytes(), to),
        item => temporal(item, form, to),
    }
}

/// A float's text, with all the digits of the very number where a number is wanted.
fn real(value: f64, form: Form) -> String {
    if form == Form::Number && value.is_finite() && value.fract() == 0.0 && value.abs() < 1e30 {
        return format!("{value:.0}");
    }
    value.to_string()
}

fn of_text(text: &str, form: Form, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match form {
        Form::Uuid => copy(&uuid(text.as_bytes())?, to),
        // As PostgreSQL's ADBC driver writes them.
        Form::Number if text == "nan" => copy(b"NaN", to),
        Form::Number if text == "inf" => copy(b"Infinity", to),
        Form::Number if text == "-inf" => copy(b"-Infinity", to),
        _ => copy(text.as_bytes(), to),
    }
}

fn of_bytes(bytes: &[u8], form: Form, to: &mut Vec<u8>) -> Result<(), Misfit> {
    if form != Form::Text {
        return copy(bytes, to);
    }
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            to.push(b'-');
        }
        copy(format!("{byte:02x}").as_bytes(), to)?;
    }
    Ok(())
}

/// Dates and times as counts of days or microseconds.
fn temporal(item: &Item<'_>, form: Form, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let micros = match item {
        Item::Date(days) => i64::from(*days).checked_mul(DAY),
        Item::Time(count, unit) | Item::Timestamp(count, unit) | Item::TimestampTz(count, unit) => {
            microseconds(*count, *unit)
        }
        _ => return Err(Misfit::fault("the value has no such form")),
    };
    let micros = micros.ok_or_else(|| Misfit::fault("the value does not fit microseconds"))?;
    match form {
        Form::Date if micros % DAY == 0 => {
            let days = i32::try_from(micros / DAY).map_err(|_| Misfit::fault("the date is out of range"))?;
            copy(&days.to_le_bytes(), to)
        }
        Form::Date => Err(Misfit::fault("the timestamp is not at midnight")),
        _ => copy(&micros.to_le_bytes(), to),
    }
}

/// The text of a date or a time.
fn show(item: &Item<'_>) -> Result<String, Misfit> {
    let datetime = |count: i64, unit: TimeUnit| match unit {
        TimeUnit::Second => as_datetime::<TimestampSecondType>(count),
        TimeUnit::Millisecond => as_datetime::<TimestampMillisecondType>(count),
        TimeUnit::Microsecond => as_datetime::<TimestampMicrosecondType>(count),
        TimeUnit::Nanosecond => as_datetime::<TimestampNanosecondType>(count),
    };
    let text = match item {
        Item::Date(days) => as_date::<Date32Type>(i64::from(*days)).map(|date| date.to_string()),
        Item::Timestamp(count, unit) => datetime(*count, *unit).map(|it| it.to_string()),
        Item::TimestampTz(count, unit) => datetime(*count, *unit).map(|it| format!("{it}+00")),
        Item::Time(count, TimeUnit::Microsecond) => {
            as_time::<Time64MicrosecondType>(*count).map(|time| time.to_string())
        }
        Item::Time(count, _) => as_time::<Time64NanosecondType>(*count).map(|time| time.to_string()),
        _ => None,
    };
    text.ok_or_else(|| Misfit::fault(format!("{} is beyond the calendar", item.show())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int8Type;
    use arrow_array::{Date32Array, Decimal128Array, DictionaryArray, TimestampNanosecondArray};

    use super::*;

    fn texts(array: impl Array + 'static) -> Result<Vec<Option<String>>> {
        let made = cast(&(Arc::new(array) as ArrayRef), &Field::new("c", DataType::Utf8, true))?;
        Ok(made.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
    }

    #[test]
    fn values_are_written_as_texts() {
        let some = |text: &str| Some(text.to_owned());
        let labels: DictionaryArray<Int8Type> = vec![Some("a"), None].into_iter().collect();
        assert_eq!(texts(labels).unwrap(), [some("a"), None]);
        let decimals = Decimal128Array::from(vec![-5, 150]).with_precision_and_scale(5, 2).unwrap();
        assert_eq!(texts(decimals).unwrap(), [some("-0.05"), some("1.50")]);
        assert_eq!(texts(Date32Array::from(vec![-1])).unwrap(), [some("1969-12-31")]);
        let at = TimestampNanosecondArray::from(vec![1_500_000_000]).with_timezone("UTC");
        assert_eq!(texts(at).unwrap(), [some("1970-01-01 00:00:01.500+00")]);
    }

    #[test]
    fn a_day_beyond_the_calendar_has_no_text() {
        let error = texts(Date32Array::from(vec![0, i32::MAX])).unwrap_err();
        assert!(error.message().contains("is beyond the calendar"), "{error}");
        assert_eq!(error.place().row, Some(1));
    }
}
