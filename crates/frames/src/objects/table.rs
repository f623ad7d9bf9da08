//! THE TABLE: which maker each Arrow type has.

use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use longshore_core::{Error, Result};

use super::Maker;
use super::binary::{bytes, uuids};
use super::nested::{Dictionaries, Lists, Maps, Structs, Unions};
use super::scalars::{Each, booleans, decimals, scalars};
use super::strings::{Json, Strings};
use super::temporal::{dates, durations, intervals, times, timestamps};
use crate::shape::{is_json, is_text, is_uuid};

/// The maker of the objects of `field`; JSON is parsed if `json`.
pub(super) fn maker(field: &Field, json: bool) -> Result<Box<dyn Maker>> {
    use DataType as T;
    Ok(match field.data_type() {
        text if is_text(text) && json && is_json(field) => Box::<Json>::default(),
        T::FixedSizeBinary(16) if is_uuid(field) => Each::boxed(112, uuids),
        T::Null => Each::boxed(0, |py, array, objects| {
            objects.extend((0..array.len()).map(|_| py.None()));
            Ok(())
        }),
        T::Boolean => Each::boxed(0, booleans),
        T::Int8 => Each::boxed(32, scalars::<Int8Type>),
        T::Int16 => Each::boxed(32, scalars::<Int16Type>),
        T::Int32 => Each::boxed(32, scalars::<Int32Type>),
        T::Int64 => Each::boxed(32, scalars::<Int64Type>),
        T::UInt8 => Each::boxed(32, scalars::<UInt8Type>),
        T::UInt16 => Each::boxed(32, scalars::<UInt16Type>),
        T::UInt32 => Each::boxed(32, scalars::<UInt32Type>),
        T::UInt64 => Each::boxed(32, scalars::<UInt64Type>),
        T::Float16 => Each::boxed(32, scalars::<Float16Type>),
        T::Float32 => Each::boxed(32, scalars::<Float32Type>),
        T::Float64 => Each::boxed(32, scalars::<Float64Type>),
        T::Decimal32(..) => decimals::<Decimal32Type>(),
        T::Decimal64(..) => decimals::<Decimal64Type>(),
        T::Decimal128(..) => decimals::<Decimal128Type>(),
        T::Decimal256(..) => decimals::<Decimal256Type>(),
        T::Date32 => dates::<Date32Type>(),
        T::Date64 => dates::<Date64Type>(),
        T::Time32(TimeUnit::Second | TimeUnit::Millisecond)
        | T::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => Each::boxed(64, times),
        T::Timestamp(_, zone) => timestamps(zone.clone()),
        T::Duration(_) => Each::boxed(32, durations),
        T::Interval(IntervalUnit::MonthDayNano | IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            Each::boxed(128, intervals)
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Box::<Strings>::default(),
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => Each::boxed(32, bytes),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            Box::new(Lists::new(maker(item, json)?))
        }
        T::Struct(fields) => {
            let names = fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
            let makers = fields.iter().map(|field| maker(field, json)).collect::<Result<_>>()?;
            Box::new(Structs::new(&names, makers))
        }
        T::Map(entries, _) => {
            let T::Struct(fields) = entries.data_type() else { return Err(not_supported(field)) };
            let [key, value] = fields.as_ref() else { return Err(not_supported(field)) };
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
        _ => return Err(not_supported(field)),
    })
}

fn not_supported(field: &Field) -> Error {
    Error::not_supported(format!("no Python object stands for {}", field.data_type())).with_hint(
        "use return_type=\"arrow\", or make text of it: with a CAST in the query, or with \
         schema={\"<column>\": \"string\"} of read_sql",
    )
}
