//! A column while its values come.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, NullBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType,
};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, PrimitiveArray, StructArray, make_array};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, TimeUnit};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use longshore_values::{Misfit as Value, decimal, text as texts};
use serde_json::value::RawValue;

use crate::envelope::Entries;
use crate::kind::Kind;
use crate::temporal::{self, Misfit};

/// A fault of a value: what is wrong, and what to do.
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) hint: Option<&'static str>,
}

const AS_TEXT: &str = "read it as text with CAST(\"<column>\" AS varchar)";
const IN_UTC: &str = "\"<column>\" AT TIME ZONE 'UTC' in the query is the same timestamp";

type Pushed = Result<(), Fault>;

/// The values so far.
pub(crate) struct Column {
    data_type: DataType,
    data: Data,
}

enum Data {
    Null(NullBuilder),
    Boolean(BooleanBuilder),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Real(PrimitiveBuilder<Float32Type>),
    Double(PrimitiveBuilder<Float64Type>),
    Decimal(PrimitiveBuilder<Decimal128Type>, decimal::DecimalType),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    Time(PrimitiveBuilder<Int64Type>, TimeUnit, fn(&str, TimeUnit) -> Result<i64, Misfit>),
    Interval(
        PrimitiveBuilder<IntervalMonthDayNanoType>,
        fn(&str) -> Result<arrow_buffer::IntervalMonthDayNano, Misfit>,
    ),
    List {
        offsets: Vec<i32>,
        nulls: NullBufferBuilder,
        item: Box<Column>,
    },
    Map {
        offsets: Vec<i32>,
        nulls: NullBufferBuilder,
        entries: Box<(Column, Column)>,
    },
    Row {
        nulls: NullBufferBuilder,
        fields: Vec<Column>,
    },
}

impl Column {
    pub(crate) fn new(kind: &Kind) -> Self {
        let data = match kind {
            Kind::Unknown => Data::Null(NullBuilder::new()),
            Kind::Boolean => Data::Boolean(BooleanBuilder::new()),
            Kind::Int8 => Data::Int8(PrimitiveBuilder::new()),
            Kind::Int16 => Data::Int16(PrimitiveBuilder::new()),
            Kind::Int32 => Data::Int32(PrimitiveBuilder::new()),
            Kind::Int64 => Data::Int64(PrimitiveBuilder::new()),
            Kind::Real => Data::Real(PrimitiveBuilder::new()),
            Kind::Double => Data::Double(PrimitiveBuilder::new()),
            Kind::Decimal { precision, scale } => Data::Decimal(
                PrimitiveBuilder::new(),
                decimal::DecimalType {
                    precision: *precision,
                    scale: scale.cast_signed(),
                    numeric_nan: longshore_core::Unrepresentable::default(),
                },
            ),
            Kind::Text | Kind::Json => Data::Text(StringBuilder::new()),
            Kind::Bytes => Data::Bytes(BinaryBuilder::new()),
            Kind::Uuid => Data::Uuid(FixedSizeBinaryBuilder::new(16)),
            Kind::Date => Data::Date(PrimitiveBuilder::new()),
            Kind::Time(unit) => Data::Time(PrimitiveBuilder::new(), *unit, temporal::time),
            Kind::Timestamp(unit) => Data::Time(PrimitiveBuilder::new(), *unit, temporal::timestamp),
            Kind::TimestampTz(unit) => Data::Time(PrimitiveBuilder::new(), *unit, temporal::timestamp_tz),
            Kind::DayToSecond => Data::Interval(PrimitiveBuilder::new(), temporal::day_to_second),
            Kind::YearToMonth => Data::Interval(PrimitiveBuilder::new(), temporal::year_to_month),
            Kind::List(item) => Data::List {
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
                item: Box::new(Self::new(item)),
            },
            Kind::Map(kinds) => Data::Map {
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
                entries: Box::new((Self::new(&kinds.0), Self::new(&kinds.1))),
            },
            Kind::Row(fields) => Data::Row {
                nulls: NullBufferBuilder::new(0),
                fields: fields.iter().map(|(_, kind)| Self::new(kind)).collect(),
            },
        };
        Self { data_type: kind.data_type(), data }
    }

    /// Takes a value in JSON.
    pub(crate) fn push(&mut self, raw: &RawValue) -> Pushed {
        let json = raw.get();
        if json == "null" {
            self.push_null();
            return Ok(());
        }
        match &mut self.data {
            Data::List { offsets, nulls, item } => {
                let values: Vec<&RawValue> = parse(json)?;
                for value in values {
                    item.push(value)?;
                }
                offsets.push(end(item.len())?);
                nulls.append_non_null();
            }
            Data::Map { offsets, nulls, entries } => {
                let Entries(found) = parse(json)?;
                for (key, value) in found {
                    entries.0.push_text(&key)?;
                    entries.1.push(value)?;
                }
                offsets.push(end(entries.1.len())?);
                nulls.append_non_null();
            }
            Data::Row { nulls, fields } => {
                let values: Vec<&RawValue> = parse(json)?;
                if values.len() != fields.len() {
                    return Err(unlike("a row of another length than its type's"));
                }
                for (field, value) in fields.iter_mut().zip(values) {
                    field.push(value)?;
                }
                nulls.append_non_null();
            }
            _ => {
                let text = plain(json)?;
                self.push_text(&text)?;
            }
        }
        Ok(())
    }

    /// Takes a value's text, which a key of a map is, too.
    fn push_text(&mut self, text: &str) -> Pushed {
        match &mut self.data {
            Data::Null(_) => return Err(unlike("a value of the type unknown")),
            Data::Boolean(values) => values.append_value(match text {
                "true" => true,
                "false" => false,
                _ => return Err(unlike("a boolean that is neither true nor false")),
            }),
            Data::Int8(values) => values.append_value(integer(text)?),
            Data::Int16(values) => values.append_value(integer(text)?),
            Data::Int32(values) => values.append_value(integer(text)?),
            Data::Int64(values) => values.append_value(integer(text)?),
            Data::Real(values) => values.append_value(float(text)?),
            Data::Double(values) => values.append_value(float(text)?),
            Data::Decimal(values, kind) => {
                values.append_value(kind.text(text.as_bytes()).map_err(|misfit| fault(&misfit))?);
            }
            Data::Text(values) => values.append_value(text),
            Data::Bytes(values) => {
                let bytes = BASE64_STANDARD.decode(text);
                values.append_value(bytes.map_err(|_| unlike("bytes that are not in base64"))?);
            }
            Data::Uuid(values) => {
                let bytes = texts::uuid(text.as_bytes()).map_err(|misfit| fault(&misfit))?;
                values.append_value(bytes).map_err(|_| unlike("a UUID that is not sixteen bytes"))?;
            }
            Data::Date(values) => {
                values.append_value(temporal::date(text).map_err(|misfit| temporal_fault(&misfit, text))?);
            }
            Data::Time(values, unit, read) => {
                values.append_value(read(text, *unit).map_err(|misfit| temporal_fault(&misfit, text))?);
            }
            Data::Interval(values, read) => {
                values.append_value(read(text).map_err(|misfit| temporal_fault(&misfit, text))?);
            }
            Data::List { .. } | Data::Map { .. } | Data::Row { .. } => {
                // As a key of a map, such a value has a text that only the server can read.
                return Err(Fault {
                    what: "a key of a map that is a list, a map or a row".into(),
                    hint: Some(AS_TEXT),
                });
            }
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match &mut self.data {
            Data::Null(values) => values.append_null(),
            Data::Boolean(values) => values.append_null(),
            Data::Int8(values) => values.append_null(),
            Data::Int16(values) => values.append_null(),
            Data::Int32(values) => values.append_null(),
            Data::Int64(values) | Data::Time(values, ..) => values.append_null(),
            Data::Real(values) => values.append_null(),
            Data::Double(values) => values.append_null(),
            Data::Decimal(values, _) => values.append_null(),
            Data::Text(values) => values.append_null(),
            Data::Bytes(values) => values.append_null(),
            Data::Uuid(values) => values.append_null(),
            Data::Date(values) => values.append_null(),
            Data::Interval(values, _) => values.append_null(),
            Data::List { offsets, nulls, .. } | Data::Map { offsets, nulls, .. } => {
                offsets.push(offsets.last().copied().unwrap_or(0));
                nulls.append_null();
            }
            Data::Row { nulls, fields } => {
                fields.iter_mut().for_each(Self::push_null);
                nulls.append_null();
            }
        }
    }

    fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        match &self.data {
            Data::Null(values) => values.len(),
            Data::Boolean(values) => values.len(),
            Data::Int8(values) => values.len(),
            Data::Int16(values) => values.len(),
            Data::Int32(values) => values.len(),
            Data::Int64(values) | Data::Time(values, ..) => values.len(),
            Data::Real(values) => values.len(),
            Data::Double(values) => values.len(),
            Data::Decimal(values, _) => values.len(),
            Data::Text(values) => values.len(),
            Data::Bytes(values) => values.len(),
            Data::Uuid(values) => values.len(),
            Data::Date(values) => values.len(),
            Data::Interval(values, _) => values.len(),
            Data::List { nulls, .. } | Data::Map { nulls, .. } | Data::Row { nulls, .. } => nulls.len(),
        }
    }

    /// The values as an array of the column's type.
    pub(crate) fn finish(self) -> Result<ArrayRef, arrow_schema::ArrowError> {
        let kind = self.data_type;
        Ok(match self.data {
            Data::Null(mut values) => Arc::new(values.finish()),
            Data::Boolean(mut values) => Arc::new(values.finish()),
            Data::Int8(values) => with_type(values, &kind)?,
            Data::Int16(values) => with_type(values, &kind)?,
            Data::Int32(values) => with_type(values, &kind)?,
            Data::Int64(values) | Data::Time(values, ..) => with_type(values, &kind)?,
            Data::Real(values) => with_type(values, &kind)?,
            Data::Double(values) => with_type(values, &kind)?,
            Data::Decimal(values, _) => with_type(values, &kind)?,
            Data::Date(values) => with_type(values, &kind)?,
            Data::Interval(values, _) => with_type(values, &kind)?,
            Data::Text(mut values) => Arc::new(values.finish()),
            Data::Bytes(mut values) => Arc::new(values.finish()),
            Data::Uuid(mut values) => Arc::new(values.finish()),
            Data::List { offsets, mut nulls, item } => {
                let DataType::List(field) = kind else { return Err(wrong_type()) };
                Arc::new(ListArray::try_new(
                    field,
                    OffsetBuffer::new(offsets.into()),
                    item.finish()?,
                    nulls.finish(),
                )?)
            }
            Data::Map { offsets, mut nulls, entries } => {
                let DataType::Map(field, sorted) = kind else { return Err(wrong_type()) };
                let DataType::Struct(fields) = field.data_type() else { return Err(wrong_type()) };
                let (keys, values) = *entries;
                let entries =
                    StructArray::try_new(fields.clone(), vec![keys.finish()?, values.finish()?], None)?;
                Arc::new(MapArray::try_new(
                    field,
                    OffsetBuffer::new(offsets.into()),
                    entries,
                    nulls.finish(),
                    sorted,
                )?)
            }
            Data::Row { mut nulls, fields: columns } => {
                let DataType::Struct(fields) = kind else { return Err(wrong_type()) };
                let length = nulls.len();
                let columns = columns.into_iter().map(Self::finish).collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new_with_length(fields, columns, nulls.finish(), length)?)
            }
        })
    }
}

fn wrong_type() -> arrow_schema::ArrowError {
    arrow_schema::ArrowError::SchemaError("a column of another type than its field's".to_owned())
}

fn with_type<T: ArrowPrimitiveType>(
    mut values: PrimitiveBuilder<T>,
    kind: &DataType,
) -> Result<ArrayRef, arrow_schema::ArrowError> {
    let array: PrimitiveArray<T> = values.finish();
    Ok(make_array(array.into_data().into_builder().data_type(kind.clone()).build()?))
}

fn end(length: usize) -> Result<i32, Fault> {
    i32::try_from(length).map_err(|_| unlike("a page of more than two thousand million values"))
}

fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|_| unlike("a value of another form than its type's"))
}

/// A text without its quotes; any other value as it is written.
fn plain(json: &str) -> Result<Cow<'_, str>, Fault> {
    let Some(inner) = json.strip_prefix('"') else { return Ok(Cow::Borrowed(json)) };
    if inner.contains('\\') {
        return parse(json).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(inner.strip_suffix('"').unwrap_or(inner)))
}

fn integer<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| unlike("an integer beyond its type"))
}

fn float<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    // Rust's words are NaN and inf, and it takes Infinity for the latter.
    text.parse().map_err(|_| unlike("a number that is not one"))
}

fn unlike(what: &str) -> Fault {
    Fault { what: format!("the server sent {what}"), hint: None }
}

fn fault(misfit: &Value) -> Fault {
    match misfit {
        Value::Fault(fault) => Fault { what: fault.0.to_string(), hint: None },
        Value::Null => unlike("a value that its type does not have"),
    }
}

fn temporal_fault(misfit: &Misfit, text: &str) -> Fault {
    match misfit {
        Misfit::Broken => unlike("a date or a time that is not one"),
        Misfit::Range => Fault { what: format!("{text} is beyond what Arrow counts"), hint: Some(AS_TEXT) },
        Misfit::Zone => Fault {
            what: format!("{text} has no offset, and the name of its zone may stand for two"),
            hint: Some(IN_UTC),
        },
    }
}
