//! Integers of 128 bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

use crate::fault::{Fault, What};

/// The first integer of 39 digits.
const TOO_LARGE: u128 = 10_u128.pow(38);

const BEYOND: What = What::Data {
    message: "the integer has 39 digits, one more than Arrow's decimal of 128 bits",
    hint: "read it as text with CAST(\"<column>\" AS VARCHAR)",
};

/// Sixteen bytes each, the lowest first, as decimals without a fraction.
pub(crate) fn decimals(array: &dyn Array, signed: bool, data_type: &DataType) -> Result<ArrayRef, Fault> {
    let Some(bytes) = array.as_fixed_size_binary_opt() else {
        return Err(What::internal("integers that are not sixteen bytes").at_row(0));
    };
    let mut values = Vec::with_capacity(bytes.len());
    for row in 0..bytes.len() {
        let value = if bytes.is_null(row) { Some(0) } else { decimal(bytes.value(row), signed) };
        values.push(value.ok_or_else(|| BEYOND.at_row(row))?);
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
