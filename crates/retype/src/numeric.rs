//! PostgreSQL's numeric, which its ADBC driver hands over as text: decimals under the type policy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    DEFERRED, Decimals, Error, Finalised, Finaliser, NATIVE_TYPE, Place, ReadOptions, Result,
    finalise_columns, has_deferred,
};
use longshore_values::decimal::Text;

use crate::cast;

const TYPE: &str = "ADBC:postgresql:typname";
const MODIFIER: &str = "POSTGRESQL:typmod";

/// The scale of an undeclared numeric in a stream.
const STREAM_SCALE: i8 = 20;

/// Whether the driver says that the texts of a column are numerics.
pub(crate) fn is_numeric(field: &Field) -> bool {
    *field.data_type() == DataType::Utf8 && field.metadata().get(TYPE).is_some_and(|name| name == "numeric")
}

/// The type of a numeric; text where only the whole result tells its scale.
pub(crate) fn data_type(field: &Field, options: &ReadOptions) -> DataType {
    match (declared_precision(field), options.decimals) {
        (_, Decimals::Float64) => DataType::Float64,
        (Some((precision @ ..=38, scale)), _) => DataType::Decimal128(precision, scale),
        (Some((precision, scale)), _) if precision <= options.decimal_digits => {
            DataType::Decimal256(precision, scale)
        }
        (_, Decimals::Streamed) => DataType::Decimal128(38, STREAM_SCALE),
        (_, Decimals::Inferred) => DataType::Utf8,
    }
}

/// Precision and scale of `numeric(p, s)` in Arrow: p and s are packed, and s has 11 bits with its sign.
fn declared_precision(field: &Field) -> Option<(u8, i8)> {
    let packed = field.metadata().get(MODIFIER)?.parse::<i32>().ok()?.checked_sub(4).filter(|it| *it >= 0)?;
    let (precision, scale) = ((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024);
    let digits = if scale < 0 { precision - scale } else { precision.max(scale) };
    let digits = u8::try_from(digits).ok().filter(|digits| *digits <= 76)?;
    Some((digits, i8::try_from(scale.max(0)).ok()?))
}

/// A field whose type the whole result tells.
pub(crate) fn defer(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(DEFERRED.to_owned(), "numeric".to_owned());
    field.with_metadata(metadata)
}

/// The numerics of a whole result in the smallest type that holds all of a column.
pub(crate) struct Scales(pub(crate) ReadOptions);

impl Scales {
    fn field(&self, field: &Field, arrays: &[ArrayRef]) -> Result<Field> {
        let (mut decimals, mut whole) = (0, 0);
        for text in arrays.iter().flat_map(AsArray::as_string::<i32>).flatten() {
            // Faults are found, with their row, by the conversion.
            let extent = Text::parse(text).map_or((0, 0), |text| text.extent());
            (decimals, whole) = (decimals.max(extent.0), whole.max(extent.1));
        }
        let (digits, limit) = (decimals.saturating_add(whole), self.0.decimal_digits);
        let scale = i8::try_from(decimals).ok().filter(|_| digits <= i32::from(limit));
        let data_type = match scale {
            Some(scale) if digits <= 38 => DataType::Decimal128(38, scale),
            Some(scale) => DataType::Decimal256(76, scale),
            None => {
                let message = format!(
                    "its values need {whole} digits before the point and {decimals} after it; {limit} are the limit"
                );
                let hint = format!("choose a type with schema={{{:?}: \"string\"}}", field.name());
                return Err(Error::data(message).with_hint(hint).at(Place::of(field, None)));
            }
        };
        let mut metadata = field.metadata().clone();
        metadata.retain(|key, _| key == NATIVE_TYPE);
        Ok(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
    }

    fn array(&self, array: &ArrayRef, own: &Field, field: &Field, before: u64) -> Result<ArrayRef> {
        let array = cast::exact(array, own, field.data_type(), &self.0).map_err(|fault| {
            let row = before + fault.row as u64;
            fault.into_error(Place::of(own, Some(row)))
        })?;
        self.0.budget.grow(array.get_array_memory_size())?;
        Ok(array)
    }
}

impl Finaliser for Scales {
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised> {
        finalise_columns(schema, batches, |_, own, mut arrays| {
            if !has_deferred(own) {
                return Ok((own.clone(), arrays));
            }
            let (field, mut before) = (self.field(own, &arrays)?, 0);
            for array in &mut arrays {
                *array = self.array(array, own, &field, before)?;
                before += array.len() as u64;
            }
            Ok((Arc::new(field), arrays))
        })
    }
}
