//! Decimals under another precision and scale, exactly.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, DecimalType as Arrow};
use arrow_array::{ArrayRef, PrimitiveArray};
use longshore_core::Unrepresentable;
use longshore_values::Fault;
use longshore_values::decimal::{DecimalType, rescale};

/// The hint where a stream's type holds no value of the result.
pub const WHOLE: &str = "fetch_arrow_table gives the whole result one type; or CAST the column in the query";

/// `array`, of the scale `own`, under the precision and scale `to`; `narrow` gives a value's integer where it has so few digits.
pub(crate) fn rescaled<T: Arrow>(
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
