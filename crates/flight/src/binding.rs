//! Parameters as a batch: one row for each set, in the types that the server asks for, or in their own.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, IntervalMonthDayNano};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float64Array, Int64Array, IntervalMonthDayNanoArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Schema};
use longshore_core::{Error, Place, Result, Unrepresentable, Value};
use longshore_retype::{can_cast, cast};
use longshore_values::decimal::{DecimalType, Text};

/// The most digits of a decimal parameter.
const DIGITS: u8 = 38;

/// The rows of `sets`, each of which has as many values; `asked` is what the server says of them, where it does.
pub(crate) fn rows(sets: &[Vec<&Value>], asked: Option<&Schema>) -> Result<RecordBatch> {
    let count = sets.first().map_or(0, Vec::len);
    let asked = asked.filter(|asked| !asked.fields().is_empty());
    if let Some(asked) = asked
        && asked.fields().len() != count
    {
        return Err(Error::programming(format!(
            "the statement has {} parameters, and {count} were given",
            asked.fields().len()
        ))
        .with_hint("give one value for each"));
    }
    let (mut fields, mut columns) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for at in 0..count {
        let values: Vec<&Value> = sets.iter().map(|set| set[at]).collect();
        let field = asked.map(|asked| asked.field(at));
        let number = (at + 1).to_string();
        let name = field.map_or(number.as_str(), |field| field.name());
        let column = column(&values, name)?;
        let column = match field {
            Some(field) => convert(column, field)?,
            None => column,
        };
        let own = Field::new(name, column.data_type().clone(), true);
        let is_uuid = *own.data_type() == DataType::FixedSizeBinary(16)
            && values.iter().any(|value| matches!(value, Value::Uuid(_)));
        fields.push(if is_uuid { own.with_metadata(uuid()) } else { own });
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| Error::internal(format!("parameters that are not a batch: {error}")))
}

/// The sets in runs whose values are of one type for each parameter, as the columns of a batch are.
pub(crate) fn alike<'a, 'v>(sets: &'a [Vec<&'v Value>]) -> Vec<&'a [Vec<&'v Value>]> {
    let kind = |value: &Value| match value {
        Value::Null => None,
        Value::Decimal(_) => Some(discriminant(&Value::Int(0))),
        Value::Json(_) => Some(discriminant(&Value::Text(String::new()))),
        value => Some(discriminant(value)),
    };
    let (mut runs, mut start) = (Vec::new(), 0);
    let mut kinds: Vec<Option<Discriminant<Value>>> = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let own: Vec<_> = set.iter().map(|value| kind(value)).collect();
        let differs =
            |(known, own): (&Option<_>, &Option<_>)| known.is_some() && own.is_some() && known != own;
        if kinds.iter().zip(&own).any(differs) {
            runs.push(&sets[start..at]);
            (start, kinds) = (at, Vec::new());
        }
        kinds = if kinds.is_empty() {
            own
        } else {
            kinds.into_iter().zip(own).map(|(known, own)| known.or(own)).collect()
        };
    }
    runs.push(&sets[start..]);
    runs
}

/// The metadata that tells a UUID from other bytes.
fn uuid() -> HashMap<String, String> {
    HashMap::from([(EXTENSION_TYPE_NAME_KEY.to_owned(), "arrow.uuid".to_owned())])
}

/// The values in the type of `field`, where there is a way.
fn convert(column: ArrayRef, field: &Field) -> Result<ArrayRef> {
    let wanted = field.data_type();
    if column.data_type() == wanted || matches!(wanted, DataType::Null | DataType::Union(..)) {
        return Ok(column);
    }
    if column.null_count() == column.len() || *column.data_type() == DataType::Null {
        return Ok(new_null_array(wanted, column.len()));
    }
    // The server knows best what becomes of others.
    if !can_cast(column.data_type(), wanted) {
        return Ok(column);
    }
    match cast(&column, field) {
        // What is asked for may be no more than a guess: a number is compared with another of more digits.
        Err(_) if is_guess(column.data_type(), wanted) => Ok(column),
        cast => cast.map_err(|error| error.within("a parameter")),
    }
}

fn is_guess(own: &DataType, wanted: &DataType) -> bool {
    (own.is_numeric() && wanted.is_numeric()) || (own.is_temporal() && wanted.is_temporal())
}

/// The values in their own type, which is the same for all.
fn column(values: &[&Value], name: &str) -> Result<ArrayRef> {
    let place = || Place { column: Some(name.to_owned()), ..Place::default() };
    let mixed = || {
        Error::programming("a parameter has values of several types")
            .with_hint("give it values of one type in all sets")
            .at(place())
    };
    macro_rules! all {
        ($array:ty, $($pattern:pat => $value:expr),+) => {
            values.iter().map(|value| match value {
                Value::Null => Ok(None),
                $($pattern => Ok(Some($value)),)+
                _ => Err(mixed()),
            }).collect::<Result<Vec<_>>>().map(|values| Arc::new(<$array>::from(values)) as ArrayRef)
        };
    }
    let Some(first) = values.iter().find(|value| !matches!(value, Value::Null)) else {
        return Ok(new_null_array(&DataType::Null, values.len()));
    };
    match first {
        Value::Null => Err(mixed()),
        Value::Bool(_) => all!(BooleanArray, Value::Bool(value) => *value),
        Value::Int(_) | Value::Decimal(_) => numbers(values, place, mixed),
        Value::Float(_) => all!(Float64Array, Value::Float(value) => *value),
        Value::Text(_) | Value::Json(_) => {
            all!(StringArray, Value::Text(text) => text.as_str(), Value::Json(text) => text.as_str())
        }
        Value::Bytes(_) => all!(BinaryArray, Value::Bytes(bytes) => bytes.as_slice()),
        Value::Date(_) => all!(Date32Array, Value::Date(days) => *days),
        Value::Time(_, None) => all!(Time64MicrosecondArray, Value::Time(micros, None) => *micros),
        Value::Time(_, Some(_)) => Err(Error::not_supported("Arrow has no time with an offset")
            .with_hint("give it as text, and cast it in the statement")
            .at(place())),
        Value::Timestamp(_) => all!(TimestampMicrosecondArray, Value::Timestamp(micros) => *micros),
        Value::TimestampTz(_) => {
            let values = values.iter().map(|value| match value {
                Value::Null => Ok(None),
                Value::TimestampTz(micros) => Ok(Some(*micros)),
                _ => Err(mixed()),
            });
            let values = values.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")))
        }
        Value::Interval(..) => {
            let values = values.iter().map(|value| match value {
                Value::Null => Ok(None),
                Value::Interval(months, days, micros) => {
                    let nanos = micros.checked_mul(1000).ok_or_else(|| {
                        Error::data("the interval's hours are beyond Arrow's nanoseconds").at(place())
                    })?;
                    Ok(Some(IntervalMonthDayNano::new(*months, *days, nanos)))
                }
                _ => Err(mixed()),
            });
            Ok(Arc::new(IntervalMonthDayNanoArray::from(values.collect::<Result<Vec<_>>>()?)))
        }
        Value::Uuid(_) => {
            let values = values.iter().map(|value| match value {
                Value::Null => Ok(None),
                Value::Uuid(bytes) => Ok(Some(bytes.as_slice())),
                _ => Err(mixed()),
            });
            let values = values.collect::<Result<Vec<_>>>()?;
            let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 16);
            Ok(Arc::new(uuids.map_err(|error| Error::internal(error.to_string()))?))
        }
        Value::List(_) => lists(values, name, mixed),
        Value::Row(_) => Err(Error::not_supported("a composite cannot be a parameter here")
            .with_hint("give its fields as parameters of their own")
            .at(place())),
    }
}

fn lists(values: &[&Value], name: &str, mixed: impl Fn() -> Error) -> Result<ArrayRef> {
    let (mut items, mut lengths, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let list = match value {
            Value::List(list) => Some(list.as_slice()),
            Value::Null => None,
            _ => return Err(mixed()),
        };
        nulls.push(list.is_some());
        lengths.push(list.map_or(0, <[Value]>::len));
        items.extend(list.unwrap_or_default());
    }
    let items = column(&items, name)?;
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let list =
        ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), items, Some(NullBuffer::from(nulls)));
    Ok(Arc::new(list.map_err(|error| Error::internal(error.to_string()))?))
}

/// Whole numbers of 64 bits, or decimals with as many digits after the point as any of them needs.
fn numbers(values: &[&Value], place: impl Fn() -> Place, mixed: impl Fn() -> Error) -> Result<ArrayRef> {
    let mut texts = Vec::with_capacity(values.len());
    let mut small = Vec::with_capacity(values.len());
    for value in values {
        let (text, int) = match value {
            Value::Null => (None, Some(None)),
            Value::Int(int) => (Some(int.to_string()), i64::try_from(*int).ok().map(Some)),
            Value::Decimal(text) => (Some(text.clone()), None),
            _ => return Err(mixed()),
        };
        texts.push(text);
        small.extend(int);
    }
    if small.len() == values.len() {
        return Ok(Arc::new(Int64Array::from(small)));
    }
    let extents = texts.iter().flatten().map(|text| Text::parse(text).map_or((0, 0), |text| text.extent()));
    let (decimals, whole) = extents.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
    let too_wide = || {
        Error::data(format!("a number with more than {DIGITS} digits"))
            .with_hint("give it as text")
            .at(place())
    };
    let scale = i8::try_from(decimals).map_err(|_| too_wide())?;
    let digits = decimals.saturating_add(whole);
    let precision =
        u8::try_from(digits.max(1)).ok().filter(|digits| *digits <= DIGITS).ok_or_else(too_wide)?;
    let kind = DecimalType { precision, scale, numeric_nan: Unrepresentable::Error };
    let values = texts.iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        kind.text(text.as_bytes()).map(Some).map_err(|_| {
            Error::data(format!("{text} is not a decimal")).with_hint("give it as a float").at(place())
        })
    });
    let values: PrimitiveArray<Decimal128Type> = values.collect::<Result<Decimal128Array>>()?;
    let values = values.with_precision_and_scale(precision, scale);
    values.map(|values| Arc::new(values) as ArrayRef).map_err(|_| too_wide())
}
