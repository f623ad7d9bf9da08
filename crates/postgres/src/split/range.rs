//! Bounds of equal width between two values that the caller gives.

use longshore_core::{Error, Result, Value};

use super::key::Key;
use crate::encode;
use crate::types::{Class, Kind};

const DAY: i64 = 86_400_000_000;

/// The bounds that cut the span from `low` to `high` into `number` parts of one width, as texts of the key's type.
pub(super) fn bounds(key: &Key, (low, high): &(Value, Value), number: usize) -> Result<Vec<String>> {
    let Kind::Plain(class) = key.native.kind else { return Err(unfit(key)) };
    let Some((low, high)) = span(class, low).zip(span(class, high)) else { return Err(unfit(key)) };
    if low > high {
        return Err(Error::interface("partition_range ends before it begins")
            .with_hint("give the lowest value first: partition_range=(low, high)"));
    }
    (1..number).map(|part| text(key, class, &low.towards(&high, part, number))).collect()
}

fn unfit(key: &Key) -> Error {
    Error::interface(format!("partition_range does not fit the type {} of partition_on", key.native.label()))
        .with_hint("give two numbers, two dates or two datetimes, as the column has them; or leave it out")
}

/// A value on the scale of the key's type.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Point {
    /// Integers, days, microseconds.
    Steps(i128),
    Real(f64),
}

impl Point {
    /// The point after `part` of `number` parts of the way to `high`.
    #[allow(clippy::cast_precision_loss)] // numbers of parts are small
    fn towards(&self, high: &Self, part: usize, number: usize) -> Self {
        match (self, high) {
            // A whole number takes a step: the last one belongs to the span.
            (Self::Steps(low), Self::Steps(high)) => {
                Self::Steps(low + (high - low + 1) * part as i128 / number as i128)
            }
            (Self::Real(low), Self::Real(high)) => {
                let share = part as f64 / number as f64;
                Self::Real(low * (1.0 - share) + high * share)
            }
            _ => *self,
        }
    }
}

/// A given value on the scale of a type; `None` where it is of another kind.
fn span(class: Class, value: &Value) -> Option<Point> {
    let limits = match class {
        Class::Int2 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Class::Int4 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Class::Int8 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Class::Unsigned => (0, i128::from(u32::MAX)),
        Class::Xid8 => (0, i128::from(u64::MAX)),
        Class::Float4 => {
            return real(value).map(|it| Point::Real(it.clamp(-f64::from(f32::MAX), f64::from(f32::MAX))));
        }
        Class::Float8 | Class::Numeric => return real(value).map(Point::Real),
        Class::Date => return days(value).map(Point::Steps),
        Class::Timestamp => return microseconds(value).map(Point::Steps),
        Class::Instant => {
            return match value {
                Value::Instant(at) => Some(Point::Steps(i128::from(*at))),
                _ => None,
            };
        }
        _ => return None,
    };
    whole(value).map(|value| Point::Steps(value.clamp(limits.0, limits.1)))
}

fn real(value: &Value) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // a bound need not be exact
    let real = match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        Value::Decimal(text) => text.parse().ok()?,
        _ => return None,
    };
    real.is_finite().then_some(real)
}

#[allow(clippy::cast_possible_truncation)] // what is beyond 128 bits is beyond the type, too
fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(*value),
        other => real(other).map(|value| value.floor() as i128),
    }
}

fn days(value: &Value) -> Option<i128> {
    match value {
        Value::Date(days) => Some(i128::from(*days)),
        Value::Timestamp(at) => Some(i128::from(at.div_euclid(DAY))),
        _ => None,
    }
}

fn microseconds(value: &Value) -> Option<i128> {
    match value {
        Value::Date(days) => Some(i128::from(*days) * i128::from(DAY)),
        Value::Timestamp(at) => Some(i128::from(*at)),
        _ => None,
    }
}

/// A point as a text of the key's type.
fn text(key: &Key, class: Class, point: &Point) -> Result<String> {
    let value = match (*point, class) {
        (Point::Steps(days), Class::Date) => i32::try_from(days).ok().map(Value::Date),
        (Point::Steps(at), Class::Timestamp) => i64::try_from(at).ok().map(Value::Timestamp),
        (Point::Steps(at), Class::Instant) => i64::try_from(at).ok().map(Value::Instant),
        (Point::Steps(number), _) => Some(Value::Int(number)),
        // Below it the server would say that a float4 is out of range.
        (Point::Real(number), Class::Float4) if number.abs() < f64::from(f32::MIN_POSITIVE) => {
            Some(Value::Float(0.0))
        }
        (Point::Real(number), _) => Some(Value::Float(number)),
    };
    let value = value.ok_or_else(|| unfit(key))?;
    let encoded = encode::parameters(&[&value], std::slice::from_ref(&key.native))?;
    let text = encoded.into_iter().next().flatten().unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned())
}
