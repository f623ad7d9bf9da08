//! THE TABLE: what each of the engine's Arrow types becomes, decided once for a column and done batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int8Type, Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    PrimitiveArray, StructArray,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use longshore_core::{EXTENSION, NATIVE_TYPE};
use longshore_values::{CellFault, per_second};

use crate::clickhouse::{self, Convert, Labels};
use crate::datetime::Infinity;
use crate::error::{Reason, internal, unrepresentable};
use crate::result::ValueOptions;
use crate::text::{Text, texts};
use crate::{datetime, text};

const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// The key by which a source marks a field whose values it has made exact itself.
const EXACT: &str = "longshore:exact";

/// The key by which a store marks texts that lie in its files: they are looked at where that is asked for.
const MAPPED: &str = "longshore:mapped";

/// The key under which PostgreSQL's ADBC driver tells a field's type there.
const POSTGRESQL_TYPE: &str = "POSTGRESQL:type";

/// The zone of every timestamp that has one: consumers tell apart zones that are the same.
pub(crate) const UTC: &str = "UTC";

const SECONDS_PER_DAY: i64 = 86_400;

/// A column's field in the result, and how its arrays become that field's.
pub(crate) struct Plan {
    pub(crate) field: FieldRef,
    pub(crate) step: Step,
}

pub(crate) enum Step {
    /// The arrays are exact.
    Keep,
    Booleans,
    Integers {
        signed: bool,
    },
    /// Unsigned integers under a signed type.
    Unsigned,
    Texts(Text),
    Dates(Infinity),
    Times {
        /// The count of a whole day.
        day: i64,
    },
    Timestamps(Infinity),
    Intervals,
    /// Another array.
    Convert(Convert),
    /// The same values under the field's type.
    Retyped,
    /// Numbers that stand for labels.
    Labels(Arc<Labels>),
    /// The plans of the values inside a list, a struct or a map.
    Inner(Vec<Plan>),
}

impl Plan {
    /// `array` as an array of the field.
    pub(crate) fn apply(&self, array: &ArrayRef, options: ValueOptions) -> Result<ArrayRef, CellFault> {
        let data_type = self.field.data_type();
        match &self.step {
            Step::Keep => Ok(array.clone()),
            Step::Booleans => booleans(array),
            Step::Integers { signed } => decimals(array, *signed, data_type),
            Step::Texts(text) => texts(array, *text),
            Step::Unsigned => to_unsigned(array),
            Step::Dates(infinity) => datetime::dates(array, *infinity, options.infinity),
            Step::Times { day } => datetime::times(array, *day, options.time_24),
            Step::Timestamps(infinity) => datetime::timestamps(array, data_type, *infinity, options.infinity),
            Step::Intervals => datetime::intervals(array, options.infinity),
            Step::Convert(convert) => convert(array),
            Step::Retyped => clickhouse::retype(array, data_type),
            Step::Labels(labels) => labels.apply(array),
            Step::Inner(plans) => match (data_type, plans.as_slice()) {
                (DataType::List(_), [item]) => list::<i32>(array, item, options),
                (DataType::LargeList(_), [item]) => list::<i64>(array, item, options),
                (DataType::FixedSizeList(..), [item]) => fixed_list(array, item, options),
                (DataType::Struct(_), fields) => Ok(Arc::new(structure(array.as_struct(), fields, options)?)),
                (DataType::Map(_, sorted), [Plan { field, step: Step::Inner(fields) }]) => {
                    map(array.as_map(), field, fields, *sorted, options)
                }
                _ => Err(internal("values inside others that are not a list, a struct or a map")),
            },
        }
    }
}

/// The plan of a column, or of a field inside one.
pub(crate) fn plan(field: &Field, options: ValueOptions) -> Plan {
    match field.metadata().get(clickhouse::TYPE) {
        Some(native) => clickhouse::plan(field, native, options),
        None => arrow_plan(field, options),
    }
}

/// The plan of a field that its Arrow type and its extension tell all of.
pub(crate) fn arrow_plan(field: &Field, options: ValueOptions) -> Plan {
    use DataType as T;
    let keep = || Plan { field: Arc::new(field.clone()), step: Step::Keep };
    let step = |data_type: T, step| Plan { field: Arc::new(field.clone().with_data_type(data_type)), step };
    match field.data_type() {
        T::Int8 if has_extension(field, "arrow.bool8") => native(field, T::Boolean, None, Step::Booleans),
        T::FixedSizeBinary(16) if options.uuid_text && has_extension(field, "arrow.uuid") => {
            native(field, T::Utf8, Some("uuid"), Step::Texts(text::uuid))
        }
        T::FixedSizeBinary(_) | T::Binary | T::LargeBinary | T::BinaryView => {
            opaque(field).unwrap_or_else(keep)
        }
        T::Int32 if postgresql_type(field) == Some("oid") => step(T::UInt32, Step::Unsigned),
        T::Date32 => step(T::Date32, Step::Dates(infinity(field))),
        T::Time64(unit) => step(T::Time64(*unit), Step::Times { day: SECONDS_PER_DAY * per_second(*unit) }),
        T::Timestamp(unit, zone) => {
            let zone = zone.as_ref().map(|_| UTC.into());
            step(T::Timestamp(*unit, zone), Step::Timestamps(infinity(field)))
        }
        // What its source has made exact may have nanoseconds.
        T::Interval(_) if field.metadata().contains_key(EXACT) => keep(),
        T::Interval(unit) => step(T::Interval(*unit), Step::Intervals),
        T::List(item) => inner(field, &[item], options, |items| T::List(items[0].clone())),
        T::LargeList(item) => inner(field, &[item], options, |items| T::LargeList(items[0].clone())),
        T::FixedSizeList(item, size) => {
            inner(field, &[item], options, |items| T::FixedSizeList(items[0].clone(), *size))
        }
        T::Struct(fields) => {
            let fields: Vec<_> = fields.iter().collect();
            inner(field, &fields, options, |fields| T::Struct(Fields::from(fields)))
        }
        T::Map(entries, sorted) => {
            inner(field, &[entries], options, |entries| T::Map(entries[0].clone(), *sorted))
        }
        _ => keep(),
    }
}

/// A type with others inside: kept whole where all of them are.
fn inner(
    field: &Field,
    fields: &[&FieldRef],
    options: ValueOptions,
    data_type: impl FnOnce(Vec<FieldRef>) -> DataType,
) -> Plan {
    let plans: Vec<Plan> = fields.iter().map(|field| plan(field, options)).collect();
    let data_type = data_type(plans.iter().map(|plan| plan.field.clone()).collect());
    let is_kept = plans.iter().all(|plan| matches!(plan.step, Step::Keep));
    let step = if is_kept { Step::Keep } else { Step::Inner(plans) };
    Plan { field: Arc::new(field.clone().with_data_type(data_type)), step }
}

/// Whether the field's texts lie in the files of a store.
pub(crate) fn is_mapped(field: &Field) -> bool {
    field.metadata().contains_key(MAPPED)
}

/// A field as its readers see it.
pub(crate) fn strip_mark(field: &FieldRef) -> FieldRef {
    if !is_mapped(field) {
        return field.clone();
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(MAPPED);
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

fn postgresql_type(field: &Field) -> Option<&str> {
    field.metadata().get(POSTGRESQL_TYPE).map(String::as_str)
}

fn infinity(field: &Field) -> Infinity {
    if postgresql_type(field).is_some() { Infinity::Wrapped } else { Infinity::Last }
}

/// The plan for what the engine exports as bytes that only it can read; `None` where every consumer can.
fn opaque(field: &Field) -> Option<Plan> {
    use DataType as T;
    let name = opaque_name(field)?;
    let integer = |signed| native(field, T::Decimal128(38, 0), Some(name), Step::Integers { signed });
    let as_text = |text| native(field, T::Utf8, Some(name), Step::Texts(text));
    match (name, field.data_type()) {
        ("hugeint", T::FixedSizeBinary(16)) => Some(integer(true)),
        ("uhugeint", T::FixedSizeBinary(16)) => Some(integer(false)),
        ("time_tz", T::FixedSizeBinary(8)) => Some(as_text(text::time_tz)),
        ("bit", T::Binary | T::LargeBinary | T::BinaryView) => Some(as_text(text::bits)),
        ("bignum" | "varint", T::Binary | T::LargeBinary | T::BinaryView) => Some(as_text(text::bignum)),
        _ => None,
    }
}

/// The engine's name inside the metadata of `arrow.opaque`, which is an object of texts in JSON; other vendors have other
/// bytes under the same names.
fn opaque_name(field: &Field) -> Option<&str> {
    let metadata =
        field.metadata().get(EXTENSION_METADATA).filter(|_| has_extension(field, "arrow.opaque"))?;
    let text = |key| metadata.split_once(key)?.1.split('"').nth(1);
    text("\"type_name\"").filter(|_| text("\"vendor_name\"") == Some("DuckDB"))
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

/// Booleans of a byte each, as bits.
fn booleans(array: &dyn Array) -> Result<ArrayRef, CellFault> {
    let Some(bytes) = array.as_primitive_opt::<Int8Type>() else {
        return Err(internal("booleans that are not bytes"));
    };
    let values = bytes.values();
    let bits = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
    Ok(Arc::new(BooleanArray::new(bits, bytes.nulls().cloned())))
}

/// The same bits, which the driver has put under a sign.
fn to_unsigned(array: &dyn Array) -> Result<ArrayRef, CellFault> {
    let Some(signed) = array.as_primitive_opt::<Int32Type>() else {
        return Err(internal("integers that are not four bytes"));
    };
    Ok(Arc::new(signed.unary::<_, UInt32Type>(i32::cast_unsigned)))
}

/// The first integer of 39 digits.
const TOO_LARGE: u128 = 10_u128.pow(38);

const BEYOND: Reason = (
    "the integer has 39 digits, one more than Arrow's decimal of 128 bits",
    "read it as text with CAST(\"<column>\" AS VARCHAR)",
);

/// Sixteen bytes each, the lowest first, as decimals without a fraction.
fn decimals(array: &dyn Array, signed: bool, data_type: &DataType) -> Result<ArrayRef, CellFault> {
    let Some(bytes) = array.as_fixed_size_binary_opt() else {
        return Err(internal("integers that are not sixteen bytes"));
    };
    let mut values = Vec::with_capacity(bytes.len());
    for row in 0..bytes.len() {
        let value = if bytes.is_null(row) { Some(0) } else { decimal(bytes.value(row), signed) };
        values.push(value.ok_or_else(|| unrepresentable(BEYOND, row))?);
    }
    let decimals = PrimitiveArray::<Decimal128Type>::new(values.into(), bytes.nulls().cloned());
    Ok(Arc::new(decimals.with_data_type(data_type.clone())))
}

fn decimal(bytes: &[u8], signed: bool) -> Option<i128> {
    let bytes = bytes.try_into().ok()?;
    if signed {
        let value = i128::from_le_bytes(bytes);
        return (value.unsigned_abs() < TOO_LARGE).then_some(value);
    }
    i128::try_from(u128::from_le_bytes(bytes)).ok().filter(|value| value.unsigned_abs() < TOO_LARGE)
}

/// The same failure in the row around it: `offsets` are the rows' in what is inside them.
fn outward<O: OffsetSizeTrait>(fault: CellFault, offsets: &[O]) -> CellFault {
    let row = offsets.partition_point(|offset| offset.as_usize() <= fault.row).saturating_sub(1);
    CellFault { row, ..fault }
}

fn list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &Plan,
    options: ValueOptions,
) -> Result<ArrayRef, CellFault> {
    let list = array.as_list::<O>();
    let values = item.apply(list.values(), options).map_err(|fault| outward(fault, list.offsets()))?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    let list = GenericListArray::<O>::try_new(item.field.clone(), offsets, values, nulls);
    Ok(Arc::new(list.map_err(|error| internal(&error))?))
}

fn fixed_list(array: &ArrayRef, item: &Plan, options: ValueOptions) -> Result<ArrayRef, CellFault> {
    let list = array.as_fixed_size_list();
    let size = list.value_length();
    let values = item.apply(list.values(), options).map_err(|fault| {
        let row = fault.row / usize::try_from(size).unwrap_or(1).max(1);
        CellFault { row, ..fault }
    })?;
    let list = FixedSizeListArray::try_new(item.field.clone(), size, values, list.nulls().cloned());
    Ok(Arc::new(list.map_err(|error| internal(&error))?))
}

fn structure(array: &StructArray, plans: &[Plan], options: ValueOptions) -> Result<StructArray, CellFault> {
    let columns = array.columns().iter().zip(plans);
    let columns = columns.map(|(column, plan)| plan.apply(column, options)).collect::<Result<_, _>>()?;
    let fields = plans.iter().map(|plan| plan.field.clone()).collect();
    StructArray::try_new_with_length(fields, columns, array.nulls().cloned(), array.len())
        .map_err(|error| internal(&error))
}

fn map(
    array: &MapArray,
    field: &FieldRef,
    fields: &[Plan],
    sorted: bool,
    options: ValueOptions,
) -> Result<ArrayRef, CellFault> {
    let entries =
        structure(array.entries(), fields, options).map_err(|fault| outward(fault, array.offsets()))?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let map = MapArray::try_new(field.clone(), offsets, entries, nulls, sorted);
    Ok(Arc::new(map.map_err(|error| internal(&error))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_38_digits_is_a_decimal() {
        let largest = i128::try_from(TOO_LARGE).unwrap() - 1;
        for value in [0, -5, largest, -largest] {
            assert_eq!(decimal(&value.to_le_bytes(), true), Some(value));
        }
        assert_eq!(decimal(&(largest + 1).to_le_bytes(), true), None);
        assert_eq!(decimal(&i128::MIN.to_le_bytes(), true), None);
        assert_eq!(decimal(&u128::MAX.to_le_bytes(), false), None);
    }
}
