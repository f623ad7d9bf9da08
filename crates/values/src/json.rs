//! Lists, structs and maps as JSON documents.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use longshore_core::EXTENSION;
use serde_json::{Map, Number, Value};

use crate::{Item, Items, Misfit, microseconds, push_date, push_period, push_time, push_timestamp, uuid};

const DAY: i64 = 86_400_000_000;

/// The text of the document of `item`, which is a value of `field`. Exact, or a fault.
pub fn json(item: &Item<'_>, field: &Field) -> Result<String, Misfit> {
    document(item, field).map(|document| document.to_string())
}

fn document(item: &Item<'_>, field: &Field) -> Result<Value, Misfit> {
    Ok(match item {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(*value),
        Item::Int(value) => Value::Number((*value).into()),
        Item::UInt(value) => Value::Number((*value).into()),
        Item::Float(value) => number(f64::from(*value), &value.to_string())?,
        Item::Double(value) => number(*value, "")?,
        // A reader would make doubles of numbers with many digits.
        Item::Decimal(..) | Item::WideDecimal(..) => Value::String(item.digits().unwrap_or_default()),
        Item::Text(value) if is_json(field) => embed(value)?,
        Item::Text(value) => Value::String((*value).to_owned()),
        Item::Bytes(_) => return Err(Misfit::with_hint("JSON has no bytes", "encode them as text")),
        Item::Uuid(value) => Value::String(uuid(value)),
        Item::Date(days) => temporal(|text| push_date(text, i64::from(*days)))?,
        Item::Time(value, unit) => temporal(|text| {
            let is_of_a_day = microseconds(*value, *unit).is_none_or(|at| (0..=DAY).contains(&at));
            push_time(text, *value, *unit);
            is_of_a_day
        })?,
        Item::Timestamp(value, unit) => temporal(|text| push_timestamp(text, *value, *unit))?,
        Item::TimestampTz(value, unit) => temporal(|text| {
            let is_written = push_timestamp(text, *value, *unit);
            text.push('Z');
            is_written
        })?,
        Item::Duration(value, unit) => period(0, 0, *value, *unit),
        Item::Interval(months, days, nanoseconds) => {
            period(*months, *days, *nanoseconds, TimeUnit::Nanosecond)
        }
        Item::List(values) => {
            let field = element(field, values);
            let items = Items::new(values, &field).map_err(Misfit::from)?;
            let each = (0..values.len()).map(|row| document(&items.get(row), &field));
            Value::Array(each.collect::<Result<_, _>>()?)
        }
        Item::Row(array, row) => {
            let mut members = Map::new();
            for (field, column) in array.fields().iter().zip(array.columns()) {
                let items = Items::new(column, field).map_err(Misfit::from)?;
                let member = document(&items.get(*row), field)?;
                if members.insert(field.name().clone(), member).is_some() {
                    return Err(Misfit::with_hint(
                        format!("the struct has two fields named {:?}", field.name()),
                        "rename one",
                    ));
                }
            }
            Value::Object(members)
        }
    })
}

/// A span of time in the form of ISO 8601.
fn period(months: i32, days: i32, value: i64, unit: TimeUnit) -> Value {
    let mut text = String::new();
    push_period(&mut text, months, days, value, unit);
    Value::String(text)
}

/// The field of a list's elements.
#[must_use]
pub fn element(field: &Field, values: &ArrayRef) -> FieldRef {
    match field.data_type() {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => item.clone(),
        _ => Arc::new(Field::new("item", values.data_type().clone(), true)),
    }
}

/// Whether a column's values are lists, structs or maps, behind dictionaries and runs as well.
#[must_use]
pub fn is_nested(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_nested(values),
        DataType::RunEndEncoded(_, values) => is_nested(values.data_type()),
        other => other.is_nested(),
    }
}

fn is_json(field: &Field) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|extension| extension == "arrow.json")
}

/// A document within a document.
fn embed(text: &str) -> Result<Value, Misfit> {
    serde_json::from_str(text).map_err(|error| {
        Misfit::with_hint(format!("the text is not JSON: {error}"), "mend it, or write it as plain text")
    })
}

/// A float of 32 bits has a shorter text, which reads back as the same.
fn number(value: f64, short: &str) -> Result<Value, Misfit> {
    let value = short.parse().unwrap_or(value);
    Number::from_f64(value).map(Value::Number).ok_or_else(|| {
        Misfit::with_hint("JSON has no NaN and no infinity", "replace them, or write a table of floats")
    })
}

fn temporal(write: impl Fn(&mut String) -> bool) -> Result<Value, Misfit> {
    let mut text = String::new();
    if write(&mut text) {
        return Ok(Value::String(text));
    }
    Err(Misfit::with_hint(
        "JSON's texts of dates have years of four digits, and times are those of a day",
        "convert it",
    ))
}
