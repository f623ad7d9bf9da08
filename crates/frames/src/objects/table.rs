//! THE TABLE: which maker each Arrow type has.

use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use longshore_core::{Error, Kind, Result};

use super::Maker;
use super::binary::{Bytes, Uuids};
use super::decimals::Decimals;
use super::nested::{Dictionaries, Lists, Maps, Structs, Unions};
use super::scalars::{Booleans, Nothing, Scalars};
use super::strings::{Json, Strings};
use super::temporal::{Dates, Durations, Intervals, Times, Timestamps};
use crate::shape::{is_json, is_text, is_uuid};

/// The maker of the objects of `field`; JSON is parsed if `json`.
pub(super) fn maker(field: &Field, json: bool) -> Result<Box<dyn Maker>> {
    use DataType as T;
    Ok(match field.data_type() {
        text if is_text(text) && json && is_json(field) => Box::<Json>::default(),
        T::FixedSizeBinary(16) if is_uuid(field) => Box::new(Uuids),
        T::Null => Box::new(Nothing),
        T::Boolean => Box::new(Booleans),
        T::Int8 => Scalars::<Int8Type>::boxed(),
        T::Int16 => Scalars::<Int16Type>::boxed(),
        T::Int32 => Scalars::<Int32Type>::boxed(),
        T::Int64 => Scalars::<Int64Type>::boxed(),
        T::UInt8 => Scalars::<UInt8Type>::boxed(),
        T::UInt16 => Scalars::<UInt16Type>::boxed(),
        T::UInt32 => Scalars::<UInt32Type>::boxed(),
        T::UInt64 => Scalars::<UInt64Type>::boxed(),
        T::Float16 => Scalars::<Float16Type>::boxed(),
        T::Float32 => Scalars::<Float32Type>::boxed(),
        T::Float64 => Scalars::<Float64Type>::boxed(),
        T::Decimal32(precision, scale) => Decimals::<Decimal32Type>::boxed(*precision, *scale),
        T::Decimal64(precision, scale) => Decimals::<Decimal64Type>::boxed(*precision, *scale),
        T::Decimal128(precision, scale) => Decimals::<Decimal128Type>::boxed(*precision, *scale),
        T::Decimal256(precision, scale) => Decimals::<Decimal256Type>::boxed(*precision, *scale),
        T::Date32 => Dates::<Date32Type>::boxed(1),
        T::Date64 => Dates::<Date64Type>::boxed(86_400_000),
        T::Time32(TimeUnit::Second | TimeUnit::Millisecond)
        | T::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => Box::new(Times),
        T::Timestamp(unit, zone) => Box::new(Timestamps::new(*unit, zone.clone())),
        T::Duration(unit) => Box::new(Durations::new(*unit)),
        T::Interval(IntervalUnit::MonthDayNano | IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            Box::new(Intervals)
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Box::<Strings>::default(),
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => Box::new(Bytes),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            Box::new(Lists::new(maker(item, json)?))
        }
        T::Struct(fields) => {
            let names = fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
            let makers = fields.iter().map(|field| maker(field, json)).collect::<Result<_>>()?;
            Box::new(Structs::new(&names, makers))
        }
        T::Map(entries, _) => {
            let T::Struct(fields) = entries.data_type() else { return Err(unsupported(field)) };
            let [key, value] = fields.as_ref() else { return Err(unsupported(field)) };
            Box::new(Maps::new(maker(key, json)?, maker(value, json)?))
        }
        T::Union(types, _) => {
            let types = types.iter().map(|(number, field)| Ok((number, maker(field, json)?)));
            Box::new(Unions::new(types.collect::<Result<_>>()?))
        }
        T::Dictionary(_, values) => {
            let value =
                Field::new("value", values.as_ref().clone(), true).with_metadata(field.metadata().clone());
            Box::new(Dictionaries::new(maker(&value, json)?))
        }
        _ => return Err(unsupported(field)),
    })
}

fn unsupported(field: &Field) -> Error {
    Error::new(Kind::NotSupported, format!("no Python object stands for {}", field.data_type())).with_hint(
        "use return_type=\"arrow\", or make text of it: with a CAST in the query, or with \
         schema={\"<column>\": \"string\"} of read_sql",
    )
}
