//! Values -> the parameters of a prepared statement (MySQL Internals, `COM_STMT_EXECUTE`).

use longshore_core::{Error, Result, Value};
use longshore_values::calendar::{DAY, SECOND, civil_from_days};
use longshore_values::decimal::Text;
use longshore_values::uuid;

use crate::packet::put_counted;
use crate::temporal::{MAX_TIME, Zone, unknown_zone};

/// Types of parameters: the code and the sign.
pub(crate) mod kind {
    pub(crate) const TINY: [u8; 2] = [1, 0];
    pub(crate) const DOUBLE: [u8; 2] = [5, 0];
    pub(crate) const NULL: [u8; 2] = [6, 0];
    pub(crate) const LONGLONG: [u8; 2] = [8, 0];
    pub(crate) const UNSIGNED: [u8; 2] = [8, 0x80];
    pub(crate) const DATE: [u8; 2] = [10, 0];
    pub(crate) const TIME: [u8; 2] = [11, 0];
    pub(crate) const DATETIME: [u8; 2] = [12, 0];
    pub(crate) const DECIMAL: [u8; 2] = [246, 0];
    pub(crate) const BLOB: [u8; 2] = [252, 0];
    pub(crate) const TEXT: [u8; 2] = [253, 0];
}

/// The bytes that bind `values`, as the session in `zone` takes them; nothing where there are none.
pub(crate) fn parameters(values: &[&Value], zone: Zone) -> Result<Vec<u8>> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut nulls = vec![0_u8; values.len().div_ceil(8)];
    let mut types = Vec::with_capacity(2 * values.len());
    let mut cells = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let kind =
            put(value, zone, &mut cells).map_err(|error| error.within(format!("parameter {}", index + 1)))?;
        if kind == kind::NULL {
            nulls[index / 8] |= 1 << (index % 8);
        }
        types.extend(kind);
    }
    // The types come with the values.
    Ok([nulls.as_slice(), &[1], &types, &cells].concat())
}

/// Refuses more values than places, and fewer.
pub(crate) fn check_count(places: usize, values: usize) -> Result<()> {
    if places == values {
        return Ok(());
    }
    Err(Error::programming(format!("the statement has {places} parameters, and params {values}"))
        .with_hint("write one ? for each value; a ? in a text or a comment is not one"))
}

/// Appends a value; gives the type that it has.
pub(crate) fn put(value: &Value, zone: Zone, into: &mut Vec<u8>) -> Result<[u8; 2]> {
    Ok(match value {
        Value::Null => kind::NULL,
        Value::Bool(value) => {
            into.push(u8::from(*value));
            kind::TINY
        }
        Value::Int(value) => integer(*value, into),
        Value::Float(value) if value.is_finite() => {
            into.extend(value.to_le_bytes());
            kind::DOUBLE
        }
        Value::Float(value) => return Err(not_a_number(&value.to_string())),
        Value::Decimal(text) => {
            let (decimals, digits) = Text::parse(text).ok_or_else(|| not_a_number(text))?.extent();
            // The server would cut or replace what does not fit, without a word.
            if decimals > 30 || decimals + digits > 65 {
                return Err(Error::data(
                    "the decimal has more than 65 digits, or more than 30 behind the point",
                )
                .with_hint("MySQL has no such number: round it, or pass it as text"));
            }
            put_counted(text.as_bytes(), into);
            kind::DECIMAL
        }
        Value::Text(text) | Value::Json(text) => {
            put_counted(text.as_bytes(), into);
            kind::TEXT
        }
        Value::Bytes(bytes) => {
            put_counted(bytes, into);
            kind::BLOB
        }
        Value::Date(days) => {
            into.push(4);
            into.extend(date(i64::from(*days))?);
            kind::DATE
        }
        Value::Time(time, None) => {
            put_time(*time, into);
            kind::TIME
        }
        Value::Time(_, Some(_)) => {
            return Err(Error::programming("MySQL has no time of day with a time zone")
                .with_hint("pass a time without tzinfo"));
        }
        Value::Timestamp(at) => {
            put_datetime(*at, into)?;
            kind::DATETIME
        }
        Value::TimestampTz(at) => {
            let offset = zone.offset().ok_or_else(unknown_zone)?;
            put_datetime(at.checked_add(offset).ok_or_else(out_of_range)?, into)?;
            kind::DATETIME
        }
        Value::Interval(months, days, micros) => {
            put_time(duration(*months, *days, *micros)?, into);
            kind::TIME
        }
        Value::Uuid(bytes) => {
            put_counted(uuid(bytes).as_bytes(), into);
            kind::TEXT
        }
        Value::List(_) | Value::Row(_) => {
            return Err(Error::programming("MySQL has no lists as values")
                .with_hint("write one placeholder for each value: WHERE id IN (?, ?, ?)"));
        }
    })
}

fn integer(value: i128, into: &mut Vec<u8>) -> [u8; 2] {
    if let Ok(value) = i64::try_from(value) {
        into.extend(value.to_le_bytes());
        return kind::LONGLONG;
    }
    if let Ok(value) = u64::try_from(value) {
        into.extend(value.to_le_bytes());
        return kind::UNSIGNED;
    }
    put_counted(value.to_string().as_bytes(), into);
    kind::DECIMAL
}

fn not_a_number(shown: &str) -> Error {
    Error::data(format!("{shown} is not a number that MySQL has")).with_hint("pass None for NULL instead")
}

#[cold]
fn out_of_range() -> Error {
    Error::data("the date is outside of the years 0 to 9999").with_hint("MySQL has no such date")
}

/// Year, month and day of a day.
fn date(days: i64) -> Result<[u8; 4]> {
    let (year, month, day) = civil_from_days(days);
    let year = u16::try_from(year).ok().filter(|year| *year <= 9999).ok_or_else(out_of_range)?;
    let [low, high] = year.to_le_bytes();
    let byte = |number: i64| u8::try_from(number).map_err(|_| out_of_range());
    Ok([low, high, byte(month)?, byte(day)?])
}

/// Hours, minutes, seconds and microseconds of a time within a day.
fn time_of_day(time: i64) -> [u8; 7] {
    let seconds = time / SECOND;
    let byte = |number: i64| u8::try_from(number).unwrap_or_default();
    let [a, b, c, d] = u32::try_from(time % SECOND).unwrap_or_default().to_le_bytes();
    [byte(seconds / 3600), byte(seconds / 60 % 60), byte(seconds % 60), a, b, c, d]
}

fn put_datetime(at: i64, into: &mut Vec<u8>) -> Result<()> {
    into.push(11);
    into.extend(date(at.div_euclid(DAY))?);
    into.extend(time_of_day(at.rem_euclid(DAY)));
    Ok(())
}

fn put_time(time: i64, into: &mut Vec<u8>) {
    let days = u32::try_from(time.abs() / DAY).unwrap_or_default();
    into.extend([12, u8::from(time < 0)]);
    into.extend(days.to_le_bytes());
    into.extend(time_of_day(time.abs() % DAY));
}

fn duration(months: i32, days: i32, micros: i64) -> Result<i64> {
    let time = (i64::from(days) * DAY).checked_add(micros);
    time.filter(|time| months == 0 && time.abs() <= MAX_TIME).ok_or_else(|| {
        Error::data("the span does not fit MySQL's TIME, which ends at 838:59:59 and has no months")
            .with_hint("pass it as a number of seconds")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(value: &Value) -> Result<([u8; 2], Vec<u8>)> {
        let mut into = Vec::new();
        put(value, Zone::Fixed(60), &mut into).map(|kind| (kind, into))
    }

    #[test]
    fn integers_of_any_size_are_exact() {
        assert_eq!(bound(&Value::Int(-1)).unwrap(), (kind::LONGLONG, vec![0xff; 8]));
        assert_eq!(bound(&Value::Int(u64::MAX.into())).unwrap(), (kind::UNSIGNED, vec![0xff; 8]));
        assert_eq!(
            bound(&Value::Int(1 << 70)).unwrap(),
            (kind::DECIMAL, b"\x161180591620717411303424".to_vec())
        );
    }

    #[test]
    fn timestamps_are_in_the_sessions_time_zone() {
        let (kind, bytes) = bound(&Value::TimestampTz(0)).unwrap();
        assert_eq!((kind, bytes), (kind::DATETIME, vec![11, 0xb2, 7, 1, 1, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(
            bound(&Value::Timestamp(-1)).unwrap().1,
            [11, 0xb1, 7, 12, 31, 23, 59, 59, 0x3f, 0x42, 0x0f, 0]
        );
        assert!(bound(&Value::Timestamp(i64::MAX)).is_err() && bound(&Value::Date(i32::MAX)).is_err());
        let mut into = Vec::new();
        assert!(put(&Value::TimestampTz(0), Zone::Other, &mut into).is_err());
    }

    #[test]
    fn what_mysql_cannot_hold_is_an_error() {
        for value in [
            Value::Float(f64::NAN),
            Value::Decimal("NaN".into()),
            Value::Decimal("1e70".into()),
            Value::Decimal("1e-31".into()),
            Value::Interval(1, 0, 0),
            Value::Interval(0, 35, 0),
            Value::Time(0, Some(0)),
            Value::List(vec![]),
        ] {
            assert!(bound(&value).is_err(), "{value:?}");
        }
        assert_eq!(
            bound(&Value::Interval(0, -1, -SECOND)).unwrap().1,
            [12, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        );
    }

    #[test]
    fn nulls_have_their_bits() {
        let values = [Value::Null, Value::Bool(true), Value::Null];
        let bytes = parameters(&values.iter().collect::<Vec<_>>(), Zone::UTC).unwrap();
        assert_eq!(bytes, [0b101, 1, 6, 0, 1, 0, 6, 0, 1]);
        assert!(parameters(&[], Zone::UTC).unwrap().is_empty());
    }
}
