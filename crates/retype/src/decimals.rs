//! Decimals as doubles, each the nearest one, as integers where the source has no fractions, both for pandas' own dtypes, and
//! exactly under another precision and scale.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type, DecimalType as Arrow, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{NATIVE_TYPE, Result, Unrepresentable, Warnings};
use longshore_values::decimal::{ALWAYS_BACK, DecimalType, EXACT_POWERS, rescale};
use longshore_values::{Fault, Losses};

use crate::batch::{retyped_batch, with_inner_fields};

/// The hint where a stream's type holds no value of the result.
pub const WHOLE: &str = "fetch_arrow_table gives the whole result one type; or CAST the column in the query";

/// Types of sources whose integers are wider than Arrow's.
const INTEGERS: [&str; 2] = ["hugeint", "uhugeint"];

/// Integers up to here have a double each.
const EXACT_INTEGERS: u64 = 1 << 53;

/// `schema` with doubles or integers for decimals at every depth, save in the columns of the names `exact`.
#[must_use]
pub fn double_schema(schema: &Schema, exact: &[String]) -> SchemaRef {
    change(schema, |field| {
        let is_exact = exact.iter().any(|name| name == field.name());
        if is_exact { field.clone() } else { double(field) }
    })
}

/// `schema` with integers at every depth for decimals that stand for them, and no other change.
#[must_use]
pub fn integer_schema(schema: &Schema) -> SchemaRef {
    change(schema, integer)
}

/// `batch` under what [`double_schema`] or [`integer_schema`] made of its schema; `before` rows of the result went before.
/// Decimals that their doubles round are told of in `warnings`.
pub fn double_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    before: u64,
    warnings: &Arc<Warnings>,
) -> Result<RecordBatch> {
    retyped_batch(batch, schema, before, |field| Losses::of_doubles(field.name(), warnings))
}

fn change(schema: &Schema, change: impl Fn(&Field) -> Field) -> SchemaRef {
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
pub(crate) fn doubles(
    decimals: &PrimitiveArray<Decimal128Type>,
    losses: &mut Losses,
) -> PrimitiveArray<Float64Type> {
    let doubles = decimals.unary(|value| nearest(value, decimals.scale()));
    if u32::from(decimals.precision()) > f64::DIGITS {
        look(decimals, &doubles, losses, |value| value.unsigned_abs() >= ALWAYS_BACK.into());
    }
    doubles
}

/// The doubles nearest to `decimals`, whose values may need 256 bits.
pub(crate) fn doubles_of_wide(
    decimals: &PrimitiveArray<Decimal256Type>,
    losses: &mut Losses,
) -> PrimitiveArray<Float64Type> {
    let doubles = decimals.unary(|value| nearest_of_wide(value, decimals.scale()));
    look(decimals, &doubles, losses, |value| value.wrapping_abs() >= i256::from_i128(ALWAYS_BACK.into()));
    doubles
}

/// Looks at the decimals that `is_long` says have more digits than their doubles may keep.
fn look<T: Arrow>(
    decimals: &PrimitiveArray<T>,
    doubles: &PrimitiveArray<Float64Type>,
    losses: &mut Losses,
    is_long: impl Fn(T::Native) -> bool,
) {
    for (row, value) in decimals.values().iter().enumerate() {
        if !losses.looks() {
            return;
        }
        if is_long(*value) && decimals.is_valid(row) {
            losses.look(&decimals.value_as_string(row), doubles.value(row));
        }
    }
}

/// The double nearest to `value` / 10 ^ `scale`.
fn nearest(value: i128, scale: i8) -> f64 {
    let power = usize::try_from(scale).ok().and_then(|scale| EXACT_POWERS.get(scale));
    match (i64::try_from(value), power) {
        // Both operands are exact, so that the division rounds once.
        #[allow(clippy::cast_precision_loss)]
        (Ok(small), Some(power)) if small.unsigned_abs() <= EXACT_INTEGERS => small as f64 / power,
        _ => parse(&value, scale),
    }
}

/// As [`nearest`], of a value that may need 256 bits.
fn nearest_of_wide(value: i256, scale: i8) -> f64 {
    value.to_i128().map_or_else(|| parse(&value, scale), |narrow| nearest(narrow, scale))
}

fn parse(value: &impl std::fmt::Display, scale: i8) -> f64 {
    format!("{value}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

/// `array`, of the scale `own`, under the precision and scale `to`; `narrow` gives a value's integer where it has so few digits.
pub(crate) fn to_scale<T: Arrow>(
    array: &PrimitiveArray<T>,
    narrow: impl Fn(T::Native) -> Option<i128>,
    own: i8,
    to: (u8, i8),
) -> Result<ArrayRef, Fault> {
    let decimal = DecimalType { precision: to.0, scale: to.1, numeric_nan: Unrepresentable::Error };
    let value = |(row, value): (usize, Option<T::Native>)| {
        let Some(value) = value else { return Ok(None) };
        let fitting = narrow(value).and_then(|value| rescale(value, own.into(), decimal).ok());
        fitting.map(Some).ok_or_else(|| {
            let (text, (precision, scale)) = (array.value_as_string(row), to);
            Fault::data(row, format!("{text} does not fit decimal128({precision}, {scale})")).with_hint(WHOLE)
        })
    };
    let values =
        array.iter().enumerate().map(value).collect::<Result<PrimitiveArray<Decimal128Type>, Fault>>()?;
    let values = values.with_precision_and_scale(to.0, to.1);
    values.map(|values| Arc::new(values) as ArrayRef).map_err(|error| Fault::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::cast::AsArray;
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
