//! Decimals in pandas' own dtypes: doubles, each the nearest one, and integers where the source has no fractions.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, DecimalType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{NATIVE_TYPE, Result, Warnings};
use longshore_values::Losses;
use longshore_values::decimal::ALWAYS_BACK;

use crate::fault::Fault;
use crate::retype::{retyped_batch, with_inner_fields};

/// Types of sources whose integers are wider than Arrow's.
const INTEGERS: [&str; 2] = ["hugeint", "uhugeint"];

/// Powers of ten that doubles hold exactly.
const EXACT_POWERS: i8 = 22;

/// Integers up to here have a double each.
const EXACT_INTEGERS: u128 = 1 << 53;

/// `schema` with doubles or integers for decimals at every depth, save in the columns of the names `exact`.
#[must_use]
pub fn double_schema(schema: &Schema, exact: &[String]) -> SchemaRef {
    changed(schema, |field| {
        let is_exact = exact.iter().any(|name| name == field.name());
        if is_exact { field.clone() } else { double(field) }
    })
}

/// `schema` with integers at every depth for decimals that stand for them, and no other change.
#[must_use]
pub fn integer_schema(schema: &Schema) -> SchemaRef {
    changed(schema, integer)
}

/// `batch` under what [`double_schema`] or [`integer_schema`] made of its schema; `before` rows of the result went before.
/// Decimals that their doubles round are told of in `warnings`.
pub fn double_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    before: u64,
    warnings: &Arc<Warnings>,
) -> Result<RecordBatch> {
    let retyped = retyped_batch(batch, schema, before)?;
    for ((decimals, doubles), field) in batch.columns().iter().zip(retyped.columns()).zip(schema.fields()) {
        look(decimals, doubles, &mut Losses::of_doubles(field.name(), warnings));
    }
    Ok(retyped)
}

/// Looks for decimals, at any depth, that their doubles round.
fn look(decimals: &ArrayRef, doubles: &ArrayRef, losses: &mut Losses) {
    if decimals.data_type() == doubles.data_type() {
        return;
    }
    match decimals.data_type() {
        DataType::Decimal128(precision, scale) if u32::from(*precision) > f64::DIGITS => {
            look_at::<Decimal128Type>(decimals, doubles, losses, |value| {
                let is_long = value.unsigned_abs() >= ALWAYS_BACK.into();
                is_long.then(|| Decimal128Type::format_decimal(value, *precision, *scale))
            });
        }
        DataType::Decimal256(precision, scale) => {
            look_at::<Decimal256Type>(decimals, doubles, losses, |value| {
                let is_long = value.wrapping_abs() >= i256::from_i128(ALWAYS_BACK.into());
                is_long.then(|| Decimal256Type::format_decimal(value, *precision, *scale))
            });
        }
        DataType::List(_) => {
            look(decimals.as_list::<i32>().values(), doubles.as_list::<i32>().values(), losses);
        }
        DataType::LargeList(_) => {
            look(decimals.as_list::<i64>().values(), doubles.as_list::<i64>().values(), losses);
        }
        DataType::FixedSizeList(..) => {
            look(decimals.as_fixed_size_list().values(), doubles.as_fixed_size_list().values(), losses);
        }
        DataType::Struct(_) => {
            let (decimals, doubles) = (decimals.as_struct().columns(), doubles.as_struct().columns());
            decimals.iter().zip(doubles).for_each(|(decimals, doubles)| look(decimals, doubles, losses));
        }
        DataType::Map(..) => {
            let (decimals, doubles) = (decimals.as_map().entries(), doubles.as_map().entries());
            let columns = decimals.columns().iter().zip(doubles.columns());
            columns.for_each(|(decimals, doubles)| look(decimals, doubles, losses));
        }
        _ => {}
    }
}

/// Looks at the decimals that `long` gives the text of.
fn look_at<T: DecimalType>(
    decimals: &ArrayRef,
    doubles: &ArrayRef,
    losses: &mut Losses,
    long: impl Fn(T::Native) -> Option<String>,
) {
    let (decimals, doubles) = (decimals.as_primitive::<T>(), doubles.as_primitive_opt::<Float64Type>());
    // Integers wider than Arrow's stay integers.
    let Some(doubles) = doubles else { return };
    for (row, value) in decimals.values().iter().enumerate() {
        if !losses.looks() {
            return;
        }
        if decimals.is_valid(row)
            && let Some(text) = long(*value)
        {
            losses.look(&text, doubles.value(row));
        }
    }
}

fn changed(schema: &Schema, change: impl Fn(&Field) -> Field) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|field| change(field)).collect::<Vec<Field>>()))
}

fn double(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Decimal128(_, 0) if is_integer(field) => DataType::Int64,
        DataType::Decimal128(..) | DataType::Decimal256(..) => DataType::Float64,
        other => with_inner_fields(other, &double),
    };
    field.clone().with_data_type(data_type)
}

fn integer(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Decimal128(_, 0) if is_integer(field) => DataType::Int64,
        other => with_inner_fields(other, &integer),
    };
    field.clone().with_data_type(data_type)
}

fn is_integer(field: &Field) -> bool {
    field.metadata().get(NATIVE_TYPE).is_some_and(|native| INTEGERS.contains(&native.as_str()))
}

/// The integers of `decimals`, which have no fraction.
pub(crate) fn integers(decimals: &PrimitiveArray<Decimal128Type>) -> Result<ArrayRef, Fault> {
    let mut values = Vec::with_capacity(decimals.len());
    for (row, value) in decimals.values().iter().enumerate() {
        match i64::try_from(*value) {
            Ok(value) => values.push(value),
            // What lies under a NULL may be anything.
            Err(_) if decimals.is_null(row) => values.push(0),
            Err(_) => {
                let beyond = Fault::data(row, format!("{value} is beyond the 64 bits of pandas' integers"));
                return Err(beyond.with_hint(
                    "use dtype_backend=\"pyarrow\" or return_type=\"arrow\", or CAST it to DOUBLE in the query",
                ));
            }
        }
    }
    Ok(Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), decimals.nulls().cloned())))
}

/// The doubles nearest to `decimals`.
pub(crate) fn doubles(decimals: &PrimitiveArray<Decimal128Type>, scale: i8) -> PrimitiveArray<Float64Type> {
    if !(0..=EXACT_POWERS).contains(&scale) {
        return decimals.unary(|value| nearest(value, scale));
    }
    let power = 10_f64.powi(i32::from(scale));
    decimals.unary(|value| match i64::try_from(value) {
        // By way of 64 bits, which the processor converts itself.
        #[allow(clippy::cast_precision_loss, reason = "it has a double of its own")]
        Ok(small) if u128::from(small.unsigned_abs()) <= EXACT_INTEGERS => small as f64 / power,
        _ => parsed(&value, scale),
    })
}

/// The double nearest to `value` / 10 ^ `scale`.
pub(crate) fn nearest(value: i128, scale: i8) -> f64 {
    if value.unsigned_abs() <= EXACT_INTEGERS && (0..=EXACT_POWERS).contains(&scale) {
        // Both operands are exact, so that the division rounds once.
        #[allow(clippy::cast_precision_loss)]
        return value as f64 / 10_f64.powi(i32::from(scale));
    }
    parsed(&value, scale)
}

/// As [`nearest`], of a value that may need 256 bits.
pub(crate) fn nearest_of_wide(value: i256, scale: i8) -> f64 {
    value.to_i128().map_or_else(|| parsed(&value, scale), |narrow| nearest(narrow, scale))
}

fn parsed(value: &impl std::fmt::Display, scale: i8) -> f64 {
    format!("{value}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::{ArrayRef, Decimal128Array};
    use longshore_core::Kind;

    use super::*;

    #[test]
    fn the_nearest_double_is_found() {
        let one_tenth = 10_000_000_000_000_000_000_i128;
        for (value, scale, expected) in [
            (1_i128, 1_i8, 0.1),
            (one_tenth, 20, 0.1),
            (-one_tenth, 20, -0.1),
            (123_456_789_012_345_678, 2, 1_234_567_890_123_456.8),
            (0, 20, 0.0),
            (5, -3, 5000.0),
            (i128::MAX, 0, 1.701_411_834_604_692_3e38),
        ] {
            assert_eq!(nearest(value, scale).to_bits(), f64::to_bits(expected), "{value} {scale}");
            assert_eq!(nearest_of_wide(i256::from_i128(value), scale).to_bits(), f64::to_bits(expected));
            let many = doubles(&PrimitiveArray::from_iter_values([value]), scale);
            assert_eq!(many.value(0).to_bits(), f64::to_bits(expected), "{value} {scale}");
        }
        let wide = i256::from_string("123456789012345678901234567890123456789012345").unwrap();
        assert_eq!(nearest_of_wide(wide, 2).to_bits(), 1.234_567_890_123_456_8e42_f64.to_bits());
    }

    #[test]
    fn named_columns_stay_exact() {
        let decimals = |values: Vec<Option<i128>>| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 1).unwrap())
        };
        let field = |name: &str| Field::new(name, DataType::Decimal128(38, 1), true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let columns = vec![decimals(vec![Some(15), None]), decimals(vec![Some(15), None])];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        let batch = double_batch(&batch, &double_schema(&schema, &["b".into()]), 0, &Arc::default()).unwrap();
        assert_eq!(batch.column(0).as_primitive::<Float64Type>().value(0).to_bits(), 1.5_f64.to_bits());
        assert!(batch.column(0).is_null(1));
        assert_eq!(batch.column(1).data_type(), &DataType::Decimal128(38, 1));
    }
    #[test]
    fn integers_stay_integers_or_fail_in_their_row() {
        let metadata = HashMap::from([(NATIVE_TYPE.to_owned(), "hugeint".to_owned())]);
        let field = Field::new("a", DataType::Decimal128(38, 0), true).with_metadata(metadata);
        let schema = Arc::new(Schema::new(vec![field]));
        let wide = double_schema(&schema, &[]);
        let batch = |values: Vec<Option<i128>>| {
            let column = Decimal128Array::from(values).with_precision_and_scale(38, 0).unwrap();
            RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).unwrap()
        };
        let integers =
            double_batch(&batch(vec![Some(i128::from(i64::MIN)), None]), &wide, 0, &Arc::default()).unwrap();
        assert_eq!(
            integers.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
            [Some(i64::MIN), None]
        );
        let error = double_batch(&batch(vec![None, Some(1 << 63)]), &wide, 10, &Arc::default()).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (Kind::Data, Some(11)));
    }
}
