//! Values -> texts that the server parses: arrays, composites, and whatever has no binary form here.

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::Field;
use longshore_core::Value;
use longshore_source::fit;
use longshore_values::{Item, Items, Misfit, element, json, parameter};

use super::exact;
use crate::encode;
use crate::types::{Class, Kind, Type};
use crate::{geometry, hstore, range, vector};

/// Appends the text of `item`; `false` is NULL, of which nothing is appended.
pub(super) fn put(item: &Item<'_>, field: &Field, native: &Type, cell: &mut String) -> Result<bool, Misfit> {
    let value = value(item, field, native)?;
    let text = encode::text(&value, native).map_err(Misfit::from)?;
    match text {
        None => Ok(false),
        Some(text) if text.as_bytes().contains(&0) => Err(exact::zero_byte()),
        Some(text) => {
            cell.push_str(&text);
            Ok(true)
        }
    }
}

/// The value, which [`exact::check`] has let pass, in the words of a parameter: the server parses them in the same way.
fn value(item: &Item<'_>, field: &Field, native: &Type) -> Result<Value, Misfit> {
    Ok(match item {
        Item::Bool(value) if is_integer(native) => Value::Int((*value).into()),
        Item::Float(value) if is_integer(native) => whole(f64::from(*value)),
        Item::Double(value) if is_integer(native) => whole(*value),
        // The shortest text of a float of 32 bits, which a double's would lengthen.
        Item::Float(value) if value.is_finite() && !native.is(Class::Float8) => {
            Value::Text(value.to_string())
        }
        Item::Decimal(..) | Item::WideDecimal(..) => decimal(item, native),
        Item::Bytes(value) if native.is(Class::Geometry) => Value::Bytes(geometry::ewkb(native, value)?),
        Item::List(_) | Item::Row(..) if native.is(Class::Json) || native.is(Class::Jsonb) => {
            Value::Json(json(item, field)?)
        }
        Item::List(_) if native.is(Class::Vector) || native.is(Class::HalfVector) => {
            Value::Text(vector::literal(native, item)?)
        }
        Item::List(_) if native.is(Class::Hstore) => Value::Text(hstore::literal(item)?),
        Item::List(values) => list(values, field, native)?,
        Item::Row(row, at) => match &native.kind {
            Kind::Range(bound) => Value::Text(range_text(row, *at, bound)?),
            _ => composite(item, native)?,
        },
        _ => parameter(item, field)?,
    })
}

/// A float for an integer: the text of a large one has an exponent, or fewer digits than the number itself.
fn whole(value: f64) -> Value {
    fit::whole_double(value).map_or(Value::Float(value), Value::Int)
}

fn is_integer(native: &Type) -> bool {
    matches!(native.kind, Kind::Plain(Class::Int2 | Class::Int4 | Class::Int8 | Class::Unsigned))
}

/// Integers have no point: one with nothing but zeros after it goes.
fn decimal(item: &Item<'_>, native: &Type) -> Value {
    let mut plain = exact::digits(item).unwrap_or_default();
    if is_integer(native)
        && let Some((whole, fraction)) = plain.split_once('.')
        && fraction.bytes().all(|digit| digit == b'0')
    {
        plain = whole.to_owned();
    }
    Value::Decimal(plain)
}

fn list(values: &ArrayRef, field: &Field, native: &Type) -> Result<Value, Misfit> {
    let item_field = element(field, values);
    let items = Items::new(values, &item_field).map_err(Misfit::from)?;
    // The elements of an inner list are those of the whole array.
    let inner = match &native.kind {
        Kind::Array { element, .. } if !values.data_type().is_list() => element.as_ref(),
        _ => native,
    };
    let each = (0..values.len()).map(|row| {
        let item = items.get(row);
        exact::list_within(&item, values.data_type().is_list())?;
        exact::check(&item, inner)?;
        value(&item, &item_field, inner)
    });
    Ok(Value::List(each.collect::<Result<_, _>>()?))
}

/// A struct's values in the order of the composite's fields, which have the same names.
fn composite(item: &Item<'_>, native: &Type) -> Result<Value, Misfit> {
    let Item::Row(array, row) = item else { return Ok(Value::Null) };
    if native.is(Class::Hstore) {
        return Err(Misfit::with_hint(
            "a struct has the same keys in every row, hstore its own",
            "cast the data to a map of strings: pyarrow.map_(pyarrow.string(), pyarrow.string())",
        ));
    }
    let Kind::Composite(attributes) = &native.kind else {
        return Err(Misfit::with_hint(
            "the column is not a composite",
            "write structs into a composite, or into json",
        ));
    };
    let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    if array.columns().len() != attributes.len()
        || array.column_names().iter().any(|name| !names.contains(name))
    {
        return Err(Misfit::with_hint(
            "the struct has other fields than the composite",
            format!("its fields are {}", names.join(", ")),
        ));
    }
    let each = attributes.iter().map(|attribute| {
        let (field, column) = array
            .fields()
            .iter()
            .zip(array.columns())
            .find(|(field, _)| *field.name() == attribute.name)
            .ok_or_else(|| Misfit::fault("the struct lacks a field"))?;
        let items = Items::new(column, field).map_err(Misfit::from)?;
        let item = items.get(*row);
        exact::check(&item, &attribute.native)?;
        value(&item, field, &attribute.native)
    });
    Ok(Value::Row(each.collect::<Result<_, _>>()?))
}

/// A struct's text for a range between bounds of the type `bound`.
fn range_text(row: &StructArray, at: usize, bound: &Type) -> Result<String, Misfit> {
    range::literal(row, at, |item, index| {
        exact::check(item, bound)?;
        encode::text(&value(item, &row.fields()[index], bound)?, bound).map_err(Misfit::from)
    })
}
