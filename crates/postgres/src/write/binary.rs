//! Values -> cells of the binary format, where a column's Arrow type and its native type are of one kind.

use arrow_schema::{DataType, Field, TimeUnit};
use longshore_cells::{Item, Odd, whole_day};
use longshore_core::EXTENSION;

use super::{fit, numeric};
use crate::types::{Class, Kind, Type};

/// Days from 1970-01-01 to 2000-01-01, from which the server counts.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH: i64 = 10_957 * DAY;
const DAY: i64 = 86_400_000_000;

/// Whether every value of `field` has a cell here that a column of `native` takes. The others go as texts.
pub(super) fn suits(field: &Field, native: &Type) -> bool {
    let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
    let mut data_type = field.data_type();
    while let Some(values) = inner(data_type) {
        data_type = values;
    }
    if *data_type == DataType::Null {
        return true;
    }
    let class = match &native.kind {
        Kind::Plain(class) => *class,
        Kind::Enum(_) => return is_text(data_type),
        Kind::Array { .. } | Kind::Composite(_) => return false,
    };
    let is_decimal = matches!(
        data_type,
        DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)
    );
    match class {
        Class::Bool => *data_type == DataType::Boolean,
        Class::Int2 | Class::Int4 | Class::Int8 | Class::Unsigned => data_type.is_integer(),
        Class::Float4 | Class::Float8 => data_type.is_floating(),
        Class::Numeric => data_type.is_integer() || data_type.is_floating() || is_decimal,
        Class::Text | Class::Json | Class::Jsonb => is_text(data_type),
        Class::Bytes => {
            matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
                || matches!(data_type, DataType::FixedSizeBinary(_)) && !is_uuid
        }
        Class::Date => matches!(data_type, DataType::Date32 | DataType::Timestamp(_, None)),
        Class::Time => matches!(data_type, DataType::Time32(_) | DataType::Time64(_)),
        Class::Timestamp => matches!(data_type, DataType::Timestamp(_, None)),
        Class::Instant => matches!(data_type, DataType::Timestamp(_, Some(_))),
        Class::Interval => matches!(data_type, DataType::Interval(_) | DataType::Duration(_)),
        Class::Uuid => is_uuid,
        Class::Xid8 | Class::TextOnly => false,
    }
}

fn inner(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Dictionary(_, values) => Some(values),
        DataType::RunEndEncoded(_, values) => Some(values.data_type()),
        _ => None,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Appends the length and the bytes of one cell.
#[inline]
pub(super) fn put(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Odd> {
    if matches!(item, Item::Null) {
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    }
    match &native.kind {
        Kind::Plain(class) => plain(*class, native, item, out),
        Kind::Enum(labels) => label(labels, item, out),
        Kind::Array { .. } | Kind::Composite(_) => Err(unsuited()),
    }
}

#[inline]
fn plain(class: Class, native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Odd> {
    match (class, item) {
        (Class::Bool, Item::Bool(value)) => fixed([u8::from(*value)], out),
        (Class::Int8, Item::Int(value)) => fixed(value.to_be_bytes(), out),
        (Class::Int8, Item::UInt(value)) => fixed(ranged::<i64, _>(*value)?.to_be_bytes(), out),
        (Class::Int4, Item::Int(value)) => fixed(ranged::<i32, _>(*value)?.to_be_bytes(), out),
        (Class::Int4, Item::UInt(value)) => fixed(ranged::<i32, _>(*value)?.to_be_bytes(), out),
        (Class::Int2, Item::Int(value)) => fixed(ranged::<i16, _>(*value)?.to_be_bytes(), out),
        (Class::Int2, Item::UInt(value)) => fixed(ranged::<i16, _>(*value)?.to_be_bytes(), out),
        (Class::Unsigned, Item::Int(value)) => fixed(ranged::<u32, _>(*value)?.to_be_bytes(), out),
        (Class::Unsigned, Item::UInt(value)) => fixed(ranged::<u32, _>(*value)?.to_be_bytes(), out),
        (Class::Float8, Item::Double(value)) => fixed(value.to_be_bytes(), out),
        (Class::Float8, Item::Float(value)) => fixed(f64::from(*value).to_be_bytes(), out),
        (Class::Float4, Item::Float(value)) => fixed(value.to_be_bytes(), out),
        (Class::Float4, Item::Double(value)) => fixed(fit::narrow(*value)?.to_be_bytes(), out),
        (Class::Numeric, Item::Decimal(value, scale)) => return numeric::put(native, *value, *scale, out),
        (Class::Numeric, Item::Int(value)) => return numeric::put(native, (*value).into(), 0, out),
        (Class::Numeric, Item::UInt(value)) => return numeric::put(native, (*value).into(), 0, out),
        (Class::Numeric, Item::WideDecimal(value, scale)) => {
            return numeric::put_digits(native, &value.to_string(), *scale, out);
        }
        (Class::Numeric, Item::Double(value)) => return numeric::put_double(native, *value, out),
        (Class::Numeric, Item::Float(value)) => {
            return numeric::put_float(native, (*value).into(), &value.to_string(), out);
        }
        (Class::Text, Item::Text(value)) => {
            fit::length(native, value)?;
            return bytes(&[], value.as_bytes(), out);
        }
        (Class::Json, Item::Text(value)) => return bytes(&[], value.as_bytes(), out),
        // jsonb's version.
        (Class::Jsonb, Item::Text(value)) => return bytes(&[1], value.as_bytes(), out),
        (Class::Bytes, Item::Bytes(value)) => return bytes(&[], value, out),
        (Class::Uuid, Item::Uuid(value)) => fixed(**value, out),
        (Class::Date, Item::Date(days)) => {
            fixed(self::days(*days).ok_or_else(beyond)?.to_be_bytes(), out);
        }
        (Class::Date, Item::Timestamp(value, unit)) => {
            fixed(day(*value, *unit)?.to_be_bytes(), out);
        }
        (Class::Time, Item::Time(value, unit)) => {
            fixed(fit::moment(native, *value, *unit)?.to_be_bytes(), out);
        }
        (Class::Timestamp, Item::Timestamp(value, unit)) | (Class::Instant, Item::Instant(value, unit)) => {
            let at = fit::moment(native, *value, *unit)?.checked_sub(EPOCH);
            let at = at.filter(|at| *at != i64::MIN).ok_or_else(beyond)?;
            fixed(at.to_be_bytes(), out);
        }
        (Class::Interval, Item::Duration(value, unit)) => {
            fit::check(item, native)?;
            interval(0, 0, fit::moment(native, *value, *unit)?, out);
        }
        (Class::Interval, Item::Interval(months, days, nanoseconds)) => {
            fit::check(item, native)?;
            let span = fit::moment(native, *nanoseconds, TimeUnit::Nanosecond)?;
            interval(*months, *days, span, out);
        }
        _ => return Err(unsuited()),
    }
    Ok(())
}

#[inline]
pub(super) fn fixed<const N: usize>(value: [u8; N], out: &mut Vec<u8>) {
    const { assert!(N < 256) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // below 256
    out.extend_from_slice(&(N as i32).to_be_bytes());
    out.extend_from_slice(&value);
}

#[inline]
pub(super) fn bytes(prefix: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
    let length = i32::try_from(prefix.len() + value.len())
        .map_err(|_| Odd::fault("PostgreSQL's values have 1 GiB at most"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(prefix);
    out.extend_from_slice(value);
    Ok(())
}

/// The day of a timestamp at midnight, as the server counts it.
#[inline]
pub(super) fn day(value: i64, unit: TimeUnit) -> Result<i32, Odd> {
    let Some(whole) = whole_day(value, unit) else {
        return Err(Odd::with_hint(
            "the column would drop the time of day",
            "make it a timestamp, or the data dates",
        ));
    };
    i32::try_from(whole).ok().and_then(days).ok_or_else(beyond)
}

/// Days as the server counts them. The least number stands for -infinity there.
#[inline]
pub(super) fn days(days: i32) -> Option<i32> {
    days.checked_sub(EPOCH_DAYS).filter(|days| *days != i32::MIN)
}

fn interval(months: i32, days: i32, microseconds: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&16_i32.to_be_bytes());
    out.extend_from_slice(&microseconds.to_be_bytes());
    out.extend_from_slice(&days.to_be_bytes());
    out.extend_from_slice(&months.to_be_bytes());
}

fn label(labels: &[String], item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Odd> {
    let Item::Text(value) = item else { return Err(unsuited()) };
    if labels.iter().any(|label| label == value) {
        return bytes(&[], value.as_bytes(), out);
    }
    let known: Vec<&str> = labels.iter().take(20).map(String::as_str).collect();
    Err(Odd::with_hint("it is not a label of the enum", format!("its labels are {}", known.join(", "))))
}

fn ranged<To, From>(value: From) -> Result<To, Odd>
where
    To: TryFrom<From>,
{
    To::try_from(value).map_err(|_| Odd::with_hint("the column is too narrow for it", "widen the column"))
}

#[cold]
fn beyond() -> Odd {
    Odd::fault("it is beyond what PostgreSQL's dates and times hold")
}

#[cold]
fn unsuited() -> Odd {
    Odd::fault("a column of one kind brought a value of another")
}
