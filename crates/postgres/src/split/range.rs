//! Bounds of equal width between two values that the caller gives.

use longshore_core::{Error, Result, Value};

use super::key::Key;
use crate::encode;
use crate::types::{Class, Kind};

const DAY: i64 = 86_400_000_000;

/// The bounds that cut the span from `low` to `high` into at most `number` parts of one width, as texts of the key's
/// type.
pub(super) fn bounds(key: &Key, (low, high): &(Value, Value), number: usize) -> Result<Vec<String>> {
    let Kind::Plain(class) = key.native.kind else { return Err(unfit(key)) };
    let Some((low, high)) = span(class, low).zip(span(class, high)) else { return Err(unfit(key)) };
    if low > high {
        return Err(Error::interface("partition_range ends before it begins")
            .with_hint("give the lowest value first: partition_range=(low, high)"));
    }
    between(class, low, high, number).iter().map(|point| text(key, class, point)).collect()
}

/// The points that cut the span into at most `number` parts: in their order, and each once. A bound that is not behind
/// the one before it would have rows in two parts.
fn between(class: Class, low: Point, high: Point, number: usize) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for part in 1..number {
        let point = low.towards(&high, part, number).rounded(class);
        if points.last().is_none_or(|last| *last < point) {
            points.push(point);
        }
    }
    points
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
                // What rounding adds must not lead out of the span.
                Self::Real((low * (1.0 - share) + high * share).clamp(*low, *high))
            }
            _ => *self,
        }
    }

    /// What becomes of the point in a type that has fewer numbers.
    #[allow(clippy::cast_possible_truncation)] // to the nearest is meant
    fn rounded(self, class: Class) -> Self {
        match (self, class) {
            // Below it the server would say that a float4 is out of range.
            (Self::Real(number), Class::Float4) if number.abs() < f64::from(f32::MIN_POSITIVE) => {
                Self::Real(0.0)
            }
            (Self::Real(number), Class::Float4) => Self::Real(f64::from(number as f32)),
            _ => self,
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
        (Point::Real(number), _) => Some(Value::Float(number)),
    };
    let value = value.ok_or_else(|| unfit(key))?;
    let encoded = encode::parameters(&[&value], std::slice::from_ref(&key.native))?;
    let text = encoded.into_iter().next().flatten().unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: &[(Class, &str)] = &[
        (Class::Int2, "int2"),
        (Class::Int4, "int4"),
        (Class::Int8, "int8"),
        (Class::Unsigned, "oid"),
        (Class::Xid8, "xid8"),
        (Class::Float4, "float4"),
        (Class::Float8, "float8"),
        (Class::Numeric, "numeric"),
        (Class::Date, "date"),
        (Class::Timestamp, "timestamp"),
        (Class::Instant, "timestamptz"),
    ];

    /// Spans of the type `class`: of one value, of neighbours, and wide ones.
    fn spans(class: Class) -> Vec<(Point, Point)> {
        let values: Vec<Value> = match class {
            Class::Date => [-1, 0, 1, 20_000, i32::MAX].map(Value::Date).into(),
            Class::Timestamp => [-1, 0, 1, DAY, i64::MAX].map(Value::Timestamp).into(),
            Class::Instant => [-1, 0, 1, DAY, i64::MAX].map(Value::Instant).into(),
            _ => [0.1, 0.3, 0.7, 1.1, 19.99, -0.05, 99.95, 1e-300, -1e300, 0.0, -0.0, 1e300, f64::MAX]
                .into_iter()
                .flat_map(|value| [value, f64::next_up(value)])
                .chain([1.0, 1.0 + f64::from(f32::EPSILON), f64::from(f32::MAX), f64::MIN])
                .map(Value::Float)
                .collect(),
        };
        let points: Vec<Point> = values.iter().filter_map(|value| span(class, value)).collect();
        let pairs = points.iter().flat_map(|low| points.iter().map(|high| (*low, *high)));
        pairs.filter(|(low, high)| low <= high).collect()
    }

    #[test]
    fn bounds_are_in_order_and_distinct() {
        for (class, name) in CLASSES {
            let spans = spans(*class);
            assert!(spans.len() > 10, "{name}");
            for (low, high) in spans {
                for number in 1..40 {
                    let points = between(*class, low, high, number);
                    assert!(points.len() < number, "{name}");
                    assert!(
                        points.windows(2).all(|pair| pair[0] < pair[1]),
                        "{name} {low:?} {high:?} {points:?}"
                    );
                    let (low, high) = (low.rounded(*class), high.rounded(*class));
                    let within = points.iter().all(|point| low <= *point && *point <= high);
                    assert!(within, "{name} {low:?} {high:?} {points:?}");
                }
            }
        }
    }

    #[test]
    fn a_wide_span_is_cut_into_all_its_parts() {
        for class in [Class::Int4, Class::Float4, Class::Float8, Class::Numeric] {
            let (low, high) = (Value::Int(0), Value::Int(1000));
            let (low, high) = span(class, &low).zip(span(class, &high)).unwrap();
            assert_eq!(between(class, low, high, 16).len(), 15);
        }
    }
}
