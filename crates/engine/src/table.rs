//! THE TABLE: what each of the engine's Arrow types becomes.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use longshore_core::{EXTENSION, NATIVE_TYPE};

use crate::exported::Odds;
use crate::plan::{Plan, Step};
use crate::values::bignum;
use crate::values::bits;
use crate::values::clocks;
use crate::values::uuids;

const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// The zone of every instant: consumers tell zones apart that are one.
const UTC: &str = "UTC";

const SECONDS_PER_DAY: i64 = 86_400;

/// What becomes of a column, or of what is inside one.
pub(crate) fn plan(field: &Field, odds: Odds) -> Plan {
    use DataType as T;
    let keep = || Plan { field: Arc::new(field.clone()), step: Step::Keep };
    let step = |data_type: T, step| Plan { field: Arc::new(field.clone().with_data_type(data_type)), step };
    match field.data_type() {
        T::Int8 if has_extension(field, "arrow.bool8") => native(field, T::Boolean, None, Step::Booleans),
        T::FixedSizeBinary(16) if odds.uuid_text && has_extension(field, "arrow.uuid") => {
            native(field, T::Utf8, Some("uuid"), Step::Texts(uuids::text))
        }
        T::FixedSizeBinary(_) | T::Binary | T::LargeBinary | T::BinaryView => {
            opaque(field).unwrap_or_else(keep)
        }
        T::Date32 => step(T::Date32, Step::Dates),
        T::Time64(unit) => step(T::Time64(*unit), Step::Times { day: SECONDS_PER_DAY * per_second(*unit) }),
        T::Timestamp(unit, zone) => {
            let zone = zone.as_ref().map(|_| UTC.into());
            step(T::Timestamp(*unit, zone), Step::Timestamps)
        }
        T::Interval(unit) => step(T::Interval(*unit), Step::Intervals),
        T::List(item) => inner(field, &[item], odds, Step::Lists, |mut items| T::List(items.remove(0))),
        T::LargeList(item) => {
            inner(field, &[item], odds, Step::LargeLists, |mut items| T::LargeList(items.remove(0)))
        }
        T::FixedSizeList(item, size) => {
            let size = *size;
            inner(field, &[item], odds, Step::FixedLists, |mut items| T::FixedSizeList(items.remove(0), size))
        }
        T::Struct(fields) => {
            let fields: Vec<_> = fields.iter().collect();
            inner(field, &fields, odds, Step::Structs, |fields| T::Struct(Fields::from(fields)))
        }
        T::Map(entries, sorted) => {
            let sorted = *sorted;
            inner(field, &[entries], odds, Step::Maps, |mut entries| T::Map(entries.remove(0), sorted))
        }
        _ => keep(),
    }
}

/// A type with others inside: kept whole where all of them are.
fn inner(
    field: &Field,
    fields: &[&FieldRef],
    odds: Odds,
    step: fn(Vec<Plan>) -> Step,
    data_type: impl FnOnce(Vec<FieldRef>) -> DataType,
) -> Plan {
    let plans: Vec<Plan> = fields.iter().map(|field| plan(field, odds)).collect();
    if plans.iter().all(Plan::keeps) {
        return Plan { field: Arc::new(field.clone()), step: Step::Keep };
    }
    let data_type = data_type(plans.iter().map(|plan| plan.field.clone()).collect());
    Plan { field: Arc::new(field.clone().with_data_type(data_type)), step: step(plans) }
}

/// What the engine exports as bytes that only it can read; `None` where anybody can.
fn opaque(field: &Field) -> Option<Plan> {
    use DataType as T;
    let name = opaque_name(field)?;
    let integer = |signed| native(field, T::Decimal128(38, 0), Some(name), Step::Integers { signed });
    let text = |text| native(field, T::Utf8, Some(name), Step::Texts(text));
    match (name, field.data_type()) {
        ("hugeint", T::FixedSizeBinary(16)) => Some(integer(true)),
        ("uhugeint", T::FixedSizeBinary(16)) => Some(integer(false)),
        ("time_tz", T::FixedSizeBinary(8)) => Some(text(clocks::with_zone)),
        ("bit", T::Binary | T::LargeBinary | T::BinaryView) => Some(text(bits::text)),
        ("bignum" | "varint", T::Binary | T::LargeBinary | T::BinaryView) => Some(text(bignum::text)),
        _ => None,
    }
}

/// The name inside the metadata of `arrow.opaque`, which is an object of texts in JSON.
fn opaque_name(field: &Field) -> Option<&str> {
    if !has_extension(field, "arrow.opaque") {
        return None;
    }
    let (_, rest) = field.metadata().get(EXTENSION_METADATA)?.split_once("\"type_name\"")?;
    rest.split('"').nth(1)
}

fn native(field: &Field, data_type: DataType, name: Option<&str>, step: Step) -> Plan {
    let mut metadata = field.metadata().clone();
    metadata.remove(EXTENSION);
    metadata.remove(EXTENSION_METADATA);
    metadata.extend(name.map(|name| (NATIVE_TYPE.to_owned(), name.to_owned())));
    let field = field.clone().with_data_type(data_type).with_metadata(metadata);
    Plan { field: Arc::new(field), step }
}

fn has_extension(field: &Field, name: &str) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|extension| extension == name)
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
