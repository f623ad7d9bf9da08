//! The types of `schema=`: a column as the type that the caller asks for, exactly or with a fault.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime, as_time};
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::memory::check_available;
use longshore_core::{Place, ReadOptions, Result};
use longshore_values::calendar::DAY;
use longshore_values::text::uuid;
use longshore_values::{Cast, CellFault, Form, Losses, Misfit, counts, microseconds, stored};

use crate::numeric::is_numeric;

/// Writes the value of a row in the form that a decoder reads.
type Render<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Misfit> + 'a>;

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
    let plain = plain(array);
    let Some(render) = render(&plain, form) else { return Ok(array.clone()) };
    check_available(2 * plain.get_array_memory_size())?;
    for row in 0..plain.len() {
        if plain.is_null(row) {
            cast.push_null();
        } else {
            cast.push(|to| render(row, to)).map_err(with_hint)?;
        }
    }
    cast.finish().map_err(with_hint)
}

fn with_hint(fault: CellFault) -> CellFault {
    CellFault { hint: fault.hint.or(Some(CAST.into())), ..fault }
}

/// Labels as the texts that they are.
fn plain(array: &ArrayRef) -> ArrayRef {
    let Some(labels) = array.as_any_dictionary_opt() else { return array.clone() };
    let keys = labels.normalized_keys();
    let values = labels.values();
    let text = |row: usize| {
        let key = *keys.get(row)?;
        (array.is_valid(row) && key < values.len()).then(|| match values.data_type() {
            DataType::LargeUtf8 => values.as_string::<i64>().value(key).to_owned(),
            _ => values.as_string::<i32>().value(key).to_owned(),
        })
    };
    std::sync::Arc::new((0..array.len()).map(text).collect::<arrow_array::StringArray>())
}

#[allow(clippy::unnecessary_wraps)] // one of several functions of one type
fn copied(cell: &[u8], to: &mut Vec<u8>) -> Result<(), Misfit> {
    to.extend_from_slice(cell);
    Ok(())
}

/// The writer of the values of `array` in a form; `None` where [`can`] has said so.
fn render(array: &ArrayRef, form: Form) -> Option<Render<'_>> {
    use DataType as T;
    macro_rules! shown {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>();
            Box::new(move |row, to: &mut Vec<u8>| copied(values.value(row).to_string().as_bytes(), to))
        }};
    }
    Some(match array.data_type() {
        T::Boolean => {
            let values = array.as_boolean();
            let words = if form == Form::Text { ["false", "true"] } else { ["0", "1"] };
            Box::new(move |row, to| copied(words[usize::from(values.value(row))].as_bytes(), to))
        }
        T::Int8 => shown!(Int8Type),
        T::Int16 => shown!(Int16Type),
        T::Int32 => shown!(Int32Type),
        T::Int64 => shown!(Int64Type),
        T::UInt8 => shown!(UInt8Type),
        T::UInt16 => shown!(UInt16Type),
        T::UInt32 => shown!(UInt32Type),
        T::UInt64 => shown!(UInt64Type),
        T::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Box::new(move |row, to| copied(real(f64::from(values.value(row)), form).as_bytes(), to))
        }
        T::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Box::new(move |row, to| copied(real(values.value(row), form).as_bytes(), to))
        }
        T::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            Box::new(move |row, to| copied(values.value_as_string(row).as_bytes(), to))
        }
        T::Decimal256(..) => {
            let values = array.as_primitive::<Decimal256Type>();
            Box::new(move |row, to| copied(values.value_as_string(row).as_bytes(), to))
        }
        T::Utf8 => {
            let values = array.as_string::<i32>();
            Box::new(move |row, to| of_text(values.value(row), form, to))
        }
        T::LargeUtf8 => {
            let values = array.as_string::<i64>();
            Box::new(move |row, to| of_text(values.value(row), form, to))
        }
        T::Utf8View => {
            let values = array.as_string_view();
            Box::new(move |row, to| of_text(values.value(row), form, to))
        }
        T::Binary => {
            let values = array.as_binary::<i32>();
            Box::new(move |row, to| copied(values.value(row), to))
        }
        T::LargeBinary => {
            let values = array.as_binary::<i64>();
            Box::new(move |row, to| copied(values.value(row), to))
        }
        T::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            Box::new(move |row, to| of_bytes(values.value(row), form, to))
        }
        T::Date32 | T::Timestamp(..) | T::Time64(_) => temporal(array, form)?,
        _ => return None,
    })
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
        Form::Uuid => copied(&uuid(text.as_bytes())?, to),
        // As PostgreSQL's ADBC driver writes them.
        Form::Number if text == "nan" => copied(b"NaN", to),
        Form::Number if text == "inf" => copied(b"Infinity", to),
        Form::Number if text == "-inf" => copied(b"-Infinity", to),
        _ => copied(text.as_bytes(), to),
    }
}

fn of_bytes(bytes: &[u8], form: Form, to: &mut Vec<u8>) -> Result<(), Misfit> {
    if form != Form::Text {
        return copied(bytes, to);
    }
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            to.push(b'-');
        }
        copied(format!("{byte:02x}").as_bytes(), to)?;
    }
    Ok(())
}

/// Times as texts, or as counts in microseconds.
fn temporal(array: &ArrayRef, form: Form) -> Option<Render<'_>> {
    let data_type = array.data_type();
    let (counts, unit) = match data_type {
        DataType::Date32 => (stored::<i32>(array).iter().map(|days| i64::from(*days)).collect(), None),
        _ => counts(array).map(|(counts, unit)| (counts, Some(unit)))?,
    };
    Some(Box::new(move |row, to| {
        let count = counts[row];
        if form == Form::Text {
            return copied(shown(count, unit, data_type).as_bytes(), to);
        }
        let micros = unit.map_or_else(|| count.checked_mul(DAY), |unit| microseconds(count, unit));
        let micros = micros.ok_or_else(|| Misfit::fault("the value does not fit microseconds"))?;
        match form {
            Form::Date if micros % DAY == 0 => {
                let days =
                    i32::try_from(micros / DAY).map_err(|_| Misfit::fault("the date is out of range"))?;
                copied(&days.to_le_bytes(), to)
            }
            Form::Date => Err(Misfit::fault("the timestamp is not at midnight")),
            _ => copied(&micros.to_le_bytes(), to),
        }
    }))
}

fn shown(count: i64, unit: Option<TimeUnit>, data_type: &DataType) -> String {
    let text = match data_type {
        DataType::Date32 => as_date::<Date32Type>(count).map(|date| date.to_string()),
        DataType::Timestamp(..) => {
            let datetime = match unit {
                Some(TimeUnit::Second) => as_datetime::<TimestampSecondType>(count),
                Some(TimeUnit::Millisecond) => as_datetime::<TimestampMillisecondType>(count),
                Some(TimeUnit::Microsecond) => as_datetime::<TimestampMicrosecondType>(count),
                _ => as_datetime::<TimestampNanosecondType>(count),
            };
            let zone = if matches!(data_type, DataType::Timestamp(_, Some(_))) { "+00" } else { "" };
            datetime.map(|datetime| format!("{datetime}{zone}"))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            as_time::<Time64MicrosecondType>(count).map(|t| t.to_string())
        }
        _ => as_time::<Time64NanosecondType>(count).map(|time| time.to_string()),
    };
    text.unwrap_or_default()
}
