//! Parameters -> SQLite: each bound value in a storage class that holds it as it is.

use std::ffi::c_int;

use longshore_core::{Error, Params, Result, Value};
use longshore_values::uuid;

use crate::cell::OwnedCell;
use crate::connection::Statement;
use crate::datetime::{date_text, time_text, timestamp_text};

/// Binds `params`: a list to `?` and `?NNN`, names to `:name`, `@name` and `$name`.
pub(crate) fn bind(statement: &mut Statement, params: &Params) -> Result<()> {
    match params {
        Params::None => positional(statement, &[]),
        Params::Positional(values) => positional(statement, values),
        Params::Named(params) => {
            let mut used = vec![false; params.len()];
            for number in 1..=statement.parameters() {
                let Some(name) = statement.parameter(number) else {
                    return Err(Error::programming(
                        "the statement has a parameter without a name, params is a dict",
                    )
                    .with_hint("write :name for a dict of params, or ? for a list"));
                };
                let bare = name.trim_start_matches([':', '@', '$']);
                let found = params.iter().position(|param| param.name == bare);
                let Some(index) = found else {
                    return Err(Error::programming(format!("params has no value for {name}"))
                        .with_hint("add it to the dict"));
                };
                used[index] = true;
                one(statement, number, &params[index].value, &name)?;
            }
            match used.iter().position(|used| !used) {
                None => Ok(()),
                Some(unused) => Err(Error::programming(format!(
                    "the statement has no parameter :{}",
                    params[unused].name
                ))
                .with_hint("write it as :name in the statement, or leave it out of params")),
            }
        }
    }
}

fn positional(statement: &mut Statement, values: &[Value]) -> Result<()> {
    let count = statement.parameters();
    if usize::try_from(count) != Ok(values.len()) {
        let plural = if count == 1 { "" } else { "s" };
        return Err(Error::programming(format!(
            "the statement has {count} parameter{plural}, params has {}",
            values.len()
        ))
        .with_hint("write ? for a list of params, or :name for a dict"));
    }
    (1..=count)
        .zip(values)
        .try_for_each(|(number, value)| one(statement, number, value, &format!("?{number}")))
}

fn one(statement: &mut Statement, number: c_int, value: &Value, name: &str) -> Result<()> {
    statement.bind(number, encode(value, name)?.cell())
}

/// The storage class that holds `value` as it is; `name` is the parameter's, for errors.
pub fn encode(value: &Value, name: &str) -> Result<OwnedCell> {
    Ok(match value {
        Value::Null => OwnedCell::Null,
        Value::Bool(value) => OwnedCell::Integer(i64::from(*value)),
        Value::Int(value) => match i64::try_from(*value) {
            Ok(value) => OwnedCell::Integer(value),
            Err(_) => {
                return Err(no(name, "the integer does not fit 64 bits", "bind it as text: str(value)"));
            }
        },
        Value::Float(value) if value.is_nan() => {
            return Err(no(name, "SQLite has no NaN, and would store NULL", "bind None where NULL is meant"));
        }
        Value::Float(value) => OwnedCell::Real(*value),
        Value::Decimal(text) | Value::Text(text) | Value::Json(text) => OwnedCell::Text(text.clone()),
        Value::Bytes(bytes) => OwnedCell::Blob(bytes.clone()),
        Value::Date(days) => in_years(date_text(*days), name)?,
        Value::Time(at, offset) => OwnedCell::Text(time_text(*at) + &offset.map(zone).unwrap_or_default()),
        Value::Timestamp(at) => in_years(timestamp_text(*at), name)?,
        Value::TimestampTz(at) => in_years(timestamp_text(*at).map(|text| text + "+00:00"), name)?,
        Value::Uuid(bytes) => OwnedCell::Text(uuid(bytes)),
        Value::Interval(..) => {
            return Err(no(name, "SQLite has no intervals", "bind a number of seconds, or text"));
        }
        Value::List(_) | Value::Row(_) => {
            return Err(no(name, "SQLite has no lists", "bind each element, or JSON for json_each()"));
        }
    })
}

/// The text of a date that SQLite's functions know.
fn in_years(text: Option<String>, name: &str) -> Result<OwnedCell> {
    let beyond = || no(name, "SQLite's dates have the years 0 to 9999", "bind it as text");
    text.map(OwnedCell::Text).ok_or_else(beyond)
}

#[cold]
fn no(name: &str, why: &str, hint: &str) -> Error {
    Error::data(format!("parameter {name}: {why}")).with_hint(hint)
}

fn zone(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}
