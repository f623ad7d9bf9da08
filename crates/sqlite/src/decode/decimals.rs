//! Decimals that are kept as texts, so that SQLite rounds none.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use longshore_cells::decimal::{DecimalType, text_double};
use longshore_cells::{CellFault, Losses, Odd, fault};
use longshore_core::{Kind, OnOdd};

use crate::cell::Cell;
use crate::decode::buffer::try_walk;
use crate::types::Class;

pub(crate) fn is_decimal(class: Class) -> bool {
    matches!(class, Class::Decimal(..) | Class::Rounded(..))
}

/// Whether every text of `array` is a decimal of `class`.
pub(crate) fn fit(array: &ArrayRef, class: Class) -> bool {
    is_decimal(class) && array.as_string::<i32>().iter().flatten().all(|text| is_one(text.as_bytes(), class))
}

/// Whether `text` is a decimal of `class`.
pub(crate) fn is_one(text: &[u8], class: Class) -> bool {
    match of(class) {
        Some(to) if to.precision <= 38 => to.text::<i128>(text).is_ok(),
        Some(to) => to.text::<i256>(text).is_ok(),
        None => false,
    }
}

fn of(class: Class) -> Option<DecimalType> {
    let (Class::Decimal(precision, scale) | Class::Rounded(precision, scale)) = class else { return None };
    Some(DecimalType { precision, scale, numeric_nan: OnOdd::Error })
}

/// The texts of `array` as what `class` becomes; a fault names the first that is no decimal of it.
pub(crate) fn convert(array: &ArrayRef, class: Class, losses: &mut Losses) -> Result<ArrayRef, CellFault> {
    let to = of(class).unwrap_or(DecimalType { precision: 0, scale: 0, numeric_nan: OnOdd::Error });
    match class {
        Class::Decimal(..=38, _) => each::<Decimal128Type>(array, class, |text| to.text(text)),
        Class::Decimal(..) => each::<Decimal256Type>(array, class, |text| to.text(text)),
        // Whether it is one is asked of the decimal, not of the double.
        _ => each::<Float64Type>(array, class, |text| {
            to.text::<i256>(text).and_then(|_| text_double(text, OnOdd::Error, losses))
        }),
    }
}

fn each<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    class: Class,
    mut read: impl FnMut(&[u8]) -> Result<T::Native, Odd>,
) -> Result<ArrayRef, CellFault> {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(array.len());
    try_walk(array, class, |row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Text(text) => builder.append_value(read(text).map_err(|odd| misfit(row, odd))?),
            _ => return Err(misfit(row, Odd::fault(format!("{} is not a decimal", cell.shown())))),
        }
        Ok(())
    })?;
    Ok(Arc::new(builder.finish().with_data_type(class.arrow())))
}

#[cold]
fn misfit(row: usize, odd: Odd) -> CellFault {
    let hint = "read its text: schema={\"<column>\": \"string\"}";
    fault(row, odd).map_or_else(
        || CellFault { row, what: "is not a decimal".into(), hint: None, kind: Kind::Data },
        |fault| CellFault { hint: Some(hint.into()), ..fault },
    )
}
