//! THE TABLE: what each of Trino's types becomes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use longshore_core::{EXTENSION, Error, Place, Result};
use serde_json::Value;

/// A type, as its values are decoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Unknown,
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Real,
    Double,
    Decimal { precision: u8, scale: u8 },
    Text,
    Json,
    Bytes,
    Uuid,
    Date,
    Time(TimeUnit),
    Timestamp(TimeUnit),
    TimestampTz(TimeUnit),
    DayToSecond,
    YearToMonth,
    List(Box<Kind>),
    Map(Box<(Kind, Kind)>),
    Row(Vec<(String, Kind)>),
}

impl Kind {
    /// The type of a signature: `{"rawType": "array", "arguments": [...]}`.
    pub(crate) fn of(signature: &Value) -> Result<Self> {
        let name = signature["rawType"].as_str().unwrap_or_default();
        let none = Vec::new();
        let arguments = signature["arguments"].as_array().unwrap_or(&none);
        let number = |at: usize| arguments.get(at).and_then(|each| each["value"].as_u64());
        let inner = |at: usize| match arguments.get(at) {
            Some(argument) => Self::of(&argument["value"]),
            None => Err(Error::internal(format!("the type {name} has no argument {at}"))),
        };
        Ok(match name {
            "unknown" => Self::Unknown,
            "boolean" => Self::Boolean,
            "tinyint" => Self::Int8,
            "smallint" => Self::Int16,
            "integer" => Self::Int32,
            "bigint" => Self::Int64,
            "real" => Self::Real,
            "double" => Self::Double,
            "decimal" => match (number(0).map(u8::try_from), number(1).map(u8::try_from)) {
                (Some(Ok(precision @ 1..=38)), Some(Ok(scale))) if scale <= precision => {
                    Self::Decimal { precision, scale }
                }
                _ => return Err(Error::internal("a decimal without its digits")),
            },
            "json" => Self::Json,
            "varbinary" => Self::Bytes,
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            "time" => Self::Time(unit(name, number(0))?),
            "timestamp" => Self::Timestamp(unit(name, number(0))?),
            "timestamp with time zone" => Self::TimestampTz(unit(name, number(0))?),
            "interval day to second" => Self::DayToSecond,
            "interval year to month" => Self::YearToMonth,
            "array" => Self::List(Box::new(inner(0)?)),
            "map" => Self::Map(Box::new((inner(0)?, inner(1)?))),
            "row" => Self::Row(
                arguments
                    .iter()
                    .enumerate()
                    .map(|(at, argument)| {
                        let value = &argument["value"];
                        let name = value["fieldName"]["name"].as_str();
                        let name = name.map_or_else(|| format!("field{at}"), str::to_owned);
                        let signature = value.get("typeSignature").unwrap_or(value);
                        Ok((name, Self::of(signature)?))
                    })
                    .collect::<Result<_>>()?,
            ),
            // Every other type has a text.
            _ => Self::Text,
        })
    }

    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Unknown => DataType::Null,
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Real => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(*precision, scale.cast_signed()),
            Self::Text | Self::Json => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Date => DataType::Date32,
            Self::Time(unit) => DataType::Time64(*unit),
            Self::Timestamp(unit) => DataType::Timestamp(*unit, None),
            Self::TimestampTz(unit) => DataType::Timestamp(*unit, Some("UTC".into())),
            Self::DayToSecond | Self::YearToMonth => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::List(item) => DataType::List(Arc::new(item.field("item", true))),
            Self::Map(kinds) => {
                let entries = Fields::from(vec![kinds.0.field("key", false), kinds.1.field("value", true)]);
                DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
            }
            Self::Row(fields) => {
                DataType::Struct(fields.iter().map(|(name, kind)| kind.field(name, true)).collect())
            }
        }
    }

    pub(crate) fn field(&self, name: &str, nullable: bool) -> Field {
        let extension = match self {
            Self::Json => Some("arrow.json"),
            Self::Uuid => Some("arrow.uuid"),
            _ => None,
        };
        let field = Field::new(name, self.data_type(), nullable);
        let Some(extension) = extension else { return field };
        field.with_metadata(HashMap::from([
            (EXTENSION.to_owned(), extension.to_owned()),
            ("ARROW:extension:metadata".to_owned(), String::new()),
        ]))
    }
}

/// The unit that holds so many digits of a second.
fn unit(name: &str, digits: Option<u64>) -> Result<TimeUnit> {
    match digits.unwrap_or(3) {
        0..=6 => Ok(TimeUnit::Microsecond),
        7..=9 => Ok(TimeUnit::Nanosecond),
        more => {
            let short = name.split(' ').next().unwrap_or(name);
            let rest = name.strip_prefix(short).unwrap_or_default();
            Err(Error::not_supported(format!("{short}({more}){rest} has picoseconds, for which Arrow has no unit"),
            )
            .with_hint(format!(
                "CAST(\"<column>\" AS {short}(9){rest}) rounds to nanoseconds, CAST(\"<column>\" AS varchar) keeps all digits"
            )))
        }
    }
}

/// The column of a result: its field, and how its values are decoded.
pub(crate) fn column(column: &Value) -> Result<(Field, Kind)> {
    let name = column["name"].as_str().unwrap_or_default();
    let kind = Kind::of(&column["typeSignature"]).map_err(|error| {
        let native_type = column["type"].as_str().map(str::to_owned);
        error.at(Place { column: Some(name.to_owned()), row: None, native_type })
    })?;
    Ok((kind.field(name, true), kind))
}
