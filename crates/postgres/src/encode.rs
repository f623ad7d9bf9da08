//! Parameters -> wire: each bound value in the text form of the type that the server expects.
//!
//! The server parses the text; what it would silently shift or truncate is refused here, and integers that it would
//! round. Decimals and floats for a narrower float become the nearest one.

use longshore_core::{Error, Result, Value};
use longshore_values::calendar::{DAY, civil_from_days, push_time_micros};
use longshore_values::text::hex;
use serde_json::Value as Json;

use crate::types::{Attribute, Class, Kind, Type};

/// The text of each of `values` for parameters of `types`; `None` is NULL.
pub(crate) fn parameters(values: &[&Value], types: &[Type]) -> Result<Vec<Option<Vec<u8>>>> {
    if values.len() != types.len() {
        return Err(Error::programming(format!(
            "the statement has {} parameter{}, params has {}",
            types.len(),
            if types.len() == 1 { "" } else { "s" },
            values.len()
        ))
        .with_hint("write $1, $2, ... for a list of params, or :name for a dict"));
    }
    let numbered = values.iter().zip(types).enumerate();
    let encoded = numbered.map(|(index, (value, native))| {
        text(value, native)
            .and_then(|text| text.map(sendable).transpose())
            .map_err(|error| error.within(format!("parameter ${}", index + 1)))
    });
    encoded.collect()
}

fn sendable(text: String) -> Result<Vec<u8>> {
    if text.contains('\0') {
        return Err(Error::data("the text holds a zero byte, which PostgreSQL's text cannot")
            .with_sqlstate("22021")
            .with_hint("give it as bytes, for a bytea parameter, or without the zero byte"));
    }
    Ok(text.into_bytes())
}

/// The text of `value` for a parameter of type `native`; `None` is NULL.
pub(crate) fn text(value: &Value, native: &Type) -> Result<Option<String>> {
    refuse_loss(value, native)?;
    if let Kind::Plain(Class::Json | Class::Jsonb) = native.kind {
        return Ok(match value {
            Value::Null => None,
            Value::Text(text) => Some(text.clone()),
            other => Some(json(other)?),
        });
    }
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float(*value),
        Value::Decimal(text) | Value::Text(text) | Value::Json(text) => text.clone(),
        Value::Bytes(bytes) if native.is(Class::Geometry) => hex(bytes),
        Value::Bytes(bytes) => format!("\\x{}", hex(bytes)),
        Value::Date(days) => date(i64::from(*days)),
        Value::Time(microseconds, offset) => time(*microseconds) + &offset.map(zone).unwrap_or_default(),
        Value::Timestamp(microseconds) => timestamp(*microseconds, ""),
        Value::TimestampTz(microseconds) => timestamp(*microseconds, "+00"),
        Value::Interval(months, days, microseconds) => interval(*months, *days, *microseconds),
        Value::Uuid(bytes) => hex(bytes),
        // A tuple for an array parameter is a list.
        Value::List(items) | Value::Row(items) => nest(value, items, native)?,
    }))
}

fn nest(value: &Value, items: &[Value], native: &Type) -> Result<String> {
    match (&native.kind, value) {
        (Kind::Array { element, delimiter, .. }, _) => array(items, element, char::from(*delimiter)),
        (Kind::Composite(fields), _) => row(items, Some(fields.as_ref())),
        (Kind::Plain(Class::Vector | Class::HalfVector), _) => vector(items),
        (_, Value::Row(_)) => row(items, None),
        _ => array(items, &Type::text_only(&native.name), ','),
    }
}

/// Refuses a value that the server would take and change without a word.
fn refuse_loss(value: &Value, native: &Type) -> Result<()> {
    let Kind::Plain(class) = native.kind else { return Ok(()) };
    match (value, class) {
        (Value::Int(value), Class::Float8) if float_differs(*value) => {
            Err(lossy("float8", "it has no exact double"))
        }
        (Value::Int(value), Class::Float4) if value.unsigned_abs() > 1 << 24 && float_differs_32(*value) => {
            Err(lossy("float4", "it has no exact float"))
        }
        (Value::Timestamp(_), Class::Timestamptz) => Err(lossy(
            "timestamptz",
            "a timestamp without a time zone is not a point in time; give it one: value.replace(tzinfo=timezone.utc)",
        )),
        (Value::TimestampTz(_), Class::Timestamp) => Err(lossy(
            "timestamp",
            "the server would drop the time zone; convert it: value.astimezone(timezone.utc).replace(tzinfo=None)",
        )),
        (Value::Timestamp(at), Class::Date) if at.rem_euclid(DAY) != 0 => {
            Err(lossy("date", "the server would drop the time of day; give value.date()"))
        }
        (Value::TimestampTz(_), Class::Date | Class::Time) | (Value::Timestamp(_), Class::Time) => {
            Err(lossy("date or time", "the server would drop part of it; give value.date() or value.time()"))
        }
        (Value::Date(_), Class::Timestamptz) => Err(lossy(
            "timestamptz",
            "which midnight it means depends on a time zone; give a datetime with tzinfo",
        )),
        (Value::Time(_, Some(_)), Class::Time) => {
            Err(lossy("time", "the server would drop the offset; give value.replace(tzinfo=None)"))
        }
        (Value::Time(_, None), _) if native.name == "timetz" => {
            Err(lossy("timetz", "its offset would depend on the session; give the time a tzinfo"))
        }
        // The server would compare its text, and find nothing.
        (Value::List(_) | Value::Row(_), _)
            if !matches!(
                class,
                Class::TextOnly | Class::Json | Class::Jsonb | Class::Vector | Class::HalfVector
            ) =>
        {
            Err(Error::data(format!("a list or a tuple is not a value of {}", native.name))
                .with_hint("write = ANY($1) instead of IN ($1), or cast the parameter: $1::text[]"))
        }
        (Value::Bytes(_), _) if !matches!(class, Class::Bytes | Class::Geometry) => Err(lossy(
            "a type that is not bytea",
            "the server would store the text \\x...; decode the bytes, or cast the parameter: $1::bytea",
        )),
        _ => Ok(()),
    }
}

#[cold]
fn lossy(native: &str, why: &str) -> Error {
    Error::data(format!("the value does not fit {native} exactly")).with_hint(why)
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // the loss is what is looked for
fn float_differs(value: i128) -> bool {
    value as f64 as i128 != value
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // the loss is what is looked for
fn float_differs_32(value: i128) -> bool {
    value as f32 as i128 != value
}

/// The shortest text that reads back as the same double.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Exponents keep 1e300 from becoming 301 digits; below that, whole numbers read as integers too.
    if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

/// `YYYY-MM-DD`, and whether the year is before Christ.
fn civil(days: i64) -> (String, &'static str) {
    let (year, month, day) = civil_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{year:04}-{month:02}-{day:02}"), era)
}

fn date(days: i64) -> String {
    let (civil, era) = civil(days);
    civil + era
}

fn time(microseconds: i64) -> String {
    let mut text = String::new();
    push_time_micros(&mut text, microseconds);
    text
}

fn timestamp(microseconds: i64, zone: &str) -> String {
    let (civil, era) = civil(microseconds.div_euclid(DAY));
    format!("{civil} {}{zone}{era}", time(microseconds.rem_euclid(DAY)))
}

fn zone(seconds: i32) -> String {
    let (sign, east) =
        if seconds < 0 { ('-', seconds.unsigned_abs()) } else { ('+', seconds.unsigned_abs()) };
    format!("{sign}{:02}:{:02}:{:02}", east / 3600, east / 60 % 60, east % 60)
}

fn interval(months: i32, days: i32, microseconds: i64) -> String {
    let span = microseconds.unsigned_abs();
    let (sign, seconds, fraction) =
        (if microseconds < 0 { '-' } else { '+' }, span / 1_000_000, span % 1_000_000);
    // Every part with its sign: in the style sql_standard a lone minus would count for all of them.
    format!(
        "{months:+} mons {days:+} days {sign}{}:{:02}:{:02}.{fraction:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The text of one of pgvector's vectors.
fn vector(items: &[Value]) -> Result<String> {
    let number = |item: &Value| match item {
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) => text(item, &Type::text_only("number")),
        _ => Err(Error::data("a vector has numbers alone").with_hint("fill in what is missing")),
    };
    let numbers = items.iter().map(|item| Ok(number(item)?.unwrap_or_default()));
    Ok(format!("[{}]", numbers.collect::<Result<Vec<_>>>()?.join(",")))
}

/// An array literal; every element but NULL and lists in quotes.
fn array(items: &[Value], element: &Type, delimiter: char) -> Result<String> {
    let is_json = matches!(element.kind, Kind::Plain(Class::Json | Class::Jsonb));
    let mut literal = String::from("{");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            literal.push(delimiter);
        }
        match item {
            Value::List(inner) if !is_json => literal.push_str(&array(inner, element, delimiter)?),
            _ => match text(item, element)? {
                None => literal.push_str("NULL"),
                Some(text) => quote(&mut literal, &text, "\\\"", "\\\\"),
            },
        }
    }
    literal.push('}');
    Ok(literal)
}

/// A record literal, of `fields` where they are known; NULL is nothing between two commas.
fn row(items: &[Value], fields: Option<&[Attribute]>) -> Result<String> {
    if let Some(fields) = fields.filter(|fields| fields.len() != items.len()) {
        return Err(Error::data(format!(
            "the composite has {} fields, the tuple {}",
            fields.len(),
            items.len()
        ))
        .with_hint("give a value for each field, None for NULL"));
    }
    let unknown = Type::text_only("record");
    let mut literal = String::from("(");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            literal.push(',');
        }
        let native = fields.and_then(|fields| fields.get(index)).map_or(&unknown, |field| &field.native);
        if let Some(text) = text(item, native)? {
            quote(&mut literal, &text, "\"\"", "\\\\");
        }
    }
    literal.push(')');
    Ok(literal)
}

/// Appends `text` in quotes, with these in place of its own and of its backslashes.
pub(crate) fn quote(literal: &mut String, text: &str, quote: &str, backslash: &str) {
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str(quote),
            '\\' => literal.push_str(backslash),
            _ => literal.push(c),
        }
    }
    literal.push('"');
}

fn json(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if !value.is_finite() => {
            return Err(lossy("json", "JSON has no NaN and no infinity"));
        }
        Value::Float(value) => float(*value),
        Value::Decimal(text) if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'.')) => {
            text.clone()
        }
        Value::Json(text) => text.clone(),
        Value::List(items) | Value::Row(items) => {
            let items = items.iter().map(json).collect::<Result<Vec<_>>>()?;
            format!("[{}]", items.join(","))
        }
        Value::Bytes(_) => return Err(lossy("json", "JSON has no bytes; encode them as text")),
        other => Json::from(text(other, &Type::text_only("json"))?.unwrap_or_default()).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(oid: u32) -> Type {
        Type::builtin(oid).unwrap()
    }

    fn plain(value: &Value) -> String {
        text(value, &Type::text_only("any")).unwrap().unwrap()
    }

    #[test]
    fn texts_of_every_kind() {
        assert_eq!(plain(&Value::Float(2.0)), "2");
        assert_eq!(plain(&Value::Float(1e300)), "1e300");
        assert_eq!(plain(&Value::Float(-0.0)), "-0");
        assert_eq!(plain(&Value::Timestamp(-1)), "1969-12-31 23:59:59.999999");
        assert_eq!(plain(&Value::TimestampTz(0)), "1970-01-01 00:00:00+00");
        assert_eq!(plain(&Value::Date(-719_528)), "0001-01-01 BC");
        assert_eq!(plain(&Value::Interval(-1, 2, -3_000_001)), "-1 mons +2 days -0:00:03.000001");
        assert_eq!(plain(&Value::Time(1, Some(-3600))), "00:00:00.000001-01:00:00");
        assert_eq!(text(&Value::Bytes(vec![0, 255]), &builtin(17)).unwrap().unwrap(), "\\x00ff");
    }

    #[test]
    fn lists_and_rows_quote_what_they_hold() {
        let text = |text: &str| Value::Text(text.to_owned());
        let list = Value::List(vec![text("a\"b\\"), Value::Null, text(""), Value::List(vec![text("x")])]);
        assert_eq!(plain(&list), r#"{"a\"b\\",NULL,"",{"x"}}"#);
        assert_eq!(plain(&Value::Row(vec![text("a\"b\\"), Value::Null])), r#"("a""b\\",)"#);
        assert_eq!(
            json(&Value::List(vec![text("a\n\""), Value::Json("{}".into())])).unwrap(),
            r#"["a\n\"",{}]"#
        );
    }

    #[test]
    fn loss_is_refused() {
        assert!(super::text(&Value::Timestamp(0), &builtin(1184)).is_err());
        assert!(super::text(&Value::Int((1 << 53) + 1), &builtin(701)).is_err());
        assert!(super::text(&Value::Int(1 << 53), &builtin(701)).is_ok());
        assert!(super::text(&Value::Timestamp(1), &builtin(1082)).is_err());
        assert!(super::text(&Value::Bytes(vec![]), &builtin(25)).is_err());
        for value in [Value::List(vec![]), Value::Row(vec![])] {
            assert!(super::text(&value, &builtin(25)).is_err());
            assert!(super::text(&value, &builtin(1009)).is_ok());
        }
    }
}
