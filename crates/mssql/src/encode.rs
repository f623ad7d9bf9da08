//! Values -> the parameters of `sp_executesql`.

use longshore_core::{Error, Kind, Result, Unrepresentable, Value};
use longshore_values::decimal::{DecimalType, Text};
use mssql_tds::datatypes::column_values::{SqlDate, SqlDateTime2, SqlDateTimeOffset, SqlTime};
use mssql_tds::datatypes::decoder::DecimalParts;
use mssql_tds::datatypes::sql_string::SqlString;
use mssql_tds::datatypes::sqltypes::SqlType;
use mssql_tds::message::parameters::rpc_parameters::{RpcParameter, StatusFlags};
use uuid::Uuid;

use crate::dialect::Bound;
use crate::temporal::FROM_YEAR_1;

/// The longest text, in units of UTF-16, and the longest bytes of types with a length.
const LONGEST_TEXT: usize = 4000;
const LONGEST_BYTES: u16 = 8000;

const DAY: i64 = 86_400_000_000;

/// The parameters of a statement.
pub(crate) fn parameters(bound: &Bound<'_>) -> Result<Vec<RpcParameter>> {
    let encoded = bound.values.iter().enumerate().map(|(index, value)| {
        let value = encode(value).map_err(|error| error.within(format!("parameter {}", index + 1)))?;
        Ok(parameter(&format!("@{}{}", bound.prefix, index + 1), value))
    });
    encoded.collect()
}

/// The declarations of the same, as `@p1 bigint, @p2 nvarchar(4000)`.
pub(crate) fn declarations(bound: &Bound<'_>) -> Result<String> {
    let declared = bound.values.iter().enumerate().map(|(index, value)| {
        let name = format!("@{}{}", bound.prefix, index + 1);
        Ok(format!("{name} {}", type_name(&encode(value)?)))
    });
    Ok(declared.collect::<Result<Vec<_>>>()?.join(", "))
}

/// The name of a parameter's type.
fn type_name(value: &SqlType) -> String {
    match value {
        SqlType::Bit(_) => "bit".into(),
        SqlType::BigInt(_) => "bigint".into(),
        SqlType::Float(_) => "float".into(),
        SqlType::Decimal(Some(parts)) => format!("decimal({},{})", parts.precision, parts.scale),
        SqlType::VarBinary(..) => "varbinary(8000)".into(),
        SqlType::VarBinaryMax(_) => "varbinary(max)".into(),
        SqlType::Date(_) => "date".into(),
        SqlType::Time(_) => "time(6)".into(),
        SqlType::DateTime2(_) => "datetime2(6)".into(),
        SqlType::DateTimeOffset(_) => "datetimeoffset(6)".into(),
        SqlType::Uuid(_) => "uniqueidentifier".into(),
        SqlType::NVarchar(..) => "nvarchar(4000)".into(),
        _ => "nvarchar(max)".into(),
    }
}

/// A parameter of this name.
pub(crate) fn parameter(name: &str, value: SqlType) -> RpcParameter {
    RpcParameter::new(Some(name.to_owned()), StatusFlags::NONE, value)
}

/// A text of any length.
pub(crate) fn text(text: &str) -> SqlType {
    let encoded = SqlString::from_utf8_string(text.to_owned());
    if encoded.bytes.len() <= 2 * LONGEST_TEXT {
        SqlType::NVarchar(Some(encoded), u16::try_from(LONGEST_TEXT).unwrap_or(u16::MAX))
    } else {
        SqlType::NVarcharMax(Some(encoded))
    }
}

fn encode(value: &Value) -> Result<SqlType> {
    Ok(match value {
        // Written into the statement's text.
        Value::Null => SqlType::NVarchar(None, 1),
        Value::Bool(value) => SqlType::Bit(Some(*value)),
        Value::Int(value) => match i64::try_from(*value) {
            Ok(value) => SqlType::BigInt(Some(value)),
            Err(_) => decimal(&value.to_string())?,
        },
        Value::Float(value) if value.is_finite() => SqlType::Float(Some(*value)),
        Value::Float(value) => return Err(no_number(&value.to_string())),
        Value::Decimal(text) => decimal(text)?,
        Value::Text(value) | Value::Json(value) => text(value),
        Value::Bytes(value) if value.len() <= LONGEST_BYTES.into() => {
            SqlType::VarBinary(Some(value.clone()), LONGEST_BYTES)
        }
        Value::Bytes(value) => SqlType::VarBinaryMax(Some(value.clone())),
        Value::Date(days) => SqlType::Date(Some(date(i64::from(*days))?)),
        Value::Time(at, None) => SqlType::Time(Some(time(*at)?)),
        Value::Timestamp(at) => SqlType::DateTime2(Some(datetime(*at)?)),
        Value::TimestampTz(at) => {
            SqlType::DateTimeOffset(Some(SqlDateTimeOffset { datetime2: datetime(*at)?, offset: 0 }))
        }
        Value::Uuid(bytes) => SqlType::Uuid(Some(Uuid::from_bytes(*bytes))),
        Value::Time(_, Some(_)) => {
            return Err(refusal(
                "SQL Server has no time of day with a time zone",
                "pass a time without tzinfo",
            ));
        }
        Value::Interval(..) => {
            return Err(refusal(
                "SQL Server has no type for spans of time",
                "pass a number, such as seconds",
            ));
        }
        Value::List(_) | Value::Row(_) => {
            return Err(refusal(
                "SQL Server has no lists as values",
                "write one placeholder for each value: WHERE id IN (?, ?, ?)",
            ));
        }
    })
}

fn refusal(what: &str, hint: &str) -> Error {
    Error::new(Kind::Programming, what).with_hint(hint)
}

#[cold]
fn no_number(text: &str) -> Error {
    Error::data(format!("{text} is not a number of SQL Server's")).with_hint("pass None for an unknown value")
}

fn decimal(text: &str) -> Result<SqlType> {
    let (scale, whole) = Text::parse(text).ok_or_else(|| no_number(text))?.extent();
    let digits = scale.saturating_add(whole).max(1);
    let (Ok(precision @ ..=38), Ok(scale)) = (u8::try_from(digits), i8::try_from(scale)) else {
        return Err(Error::data("the decimal has more than 38 digits")
            .with_hint("SQL Server has no such number: round it, or pass it as text"));
    };
    let to = DecimalType { precision, scale, numeric_nan: Unrepresentable::Error };
    let value: i128 = to.text(text.as_bytes()).map_err(|_| no_number(text))?;
    let parts = DecimalParts::new(value >= 0, precision, scale.cast_unsigned(), value.unsigned_abs());
    Ok(SqlType::Decimal(Some(parts)))
}

fn date(days: i64) -> Result<SqlDate> {
    let days = u32::try_from(days + FROM_YEAR_1).ok();
    days.and_then(|days| SqlDate::create(days).ok()).ok_or_else(|| {
        Error::data("the date is beyond the years 1 to 9999").with_hint("SQL Server has no such dates")
    })
}

fn time(at: i64) -> Result<SqlTime> {
    let within = u64::try_from(at).ok().filter(|_| at < DAY);
    let at = within
        .ok_or_else(|| Error::data("the time is not within a day").with_hint("pass a time from 00:00 on"))?;
    Ok(SqlTime { time_nanoseconds: at * 10, scale: 6 })
}

fn datetime(at: i64) -> Result<SqlDateTime2> {
    let date = date(at.div_euclid(DAY))?;
    Ok(SqlDateTime2 { days: date.get_days(), time: time(at.rem_euclid(DAY))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_as_many_digits_as_they_need() {
        for (given, precision, scale, magnitude) in [
            ("-12.50", 3, 1, 125),
            ("0", 1, 0, 0),
            ("1E+3", 4, 0, 1000),
            ("0.001", 3, 3, 1),
            ("99999999999999999999999999999999999999", 38, 0, 10_u128.pow(38) - 1),
        ] {
            let SqlType::Decimal(Some(parts)) = decimal(given).unwrap() else { panic!("{given}") };
            assert_eq!(
                (parts.precision, parts.scale, parts.magnitude()),
                (precision, scale, magnitude),
                "{given}"
            );
        }
        for refused in ["NaN", "1e38", "1e-39", "x"] {
            assert!(decimal(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_the_server_has_not_is_refused() {
        for value in [
            Value::Float(f64::NAN),
            Value::Interval(1, 2, 3),
            Value::List(vec![]),
            Value::Time(0, Some(0)),
            Value::Time(DAY, None),
            Value::Date(-719_163),
            Value::Timestamp(i64::MAX),
        ] {
            assert!(encode(&value).unwrap_err().hint().is_some(), "{value:?}");
        }
        assert!(encode(&Value::Date(-719_162)).is_ok());
        assert!(matches!(encode(&Value::Int(1 << 70)).unwrap(), SqlType::Decimal(_)));
        assert!(matches!(text(&"x".repeat(4001)), SqlType::NVarcharMax(_)));
    }
}
