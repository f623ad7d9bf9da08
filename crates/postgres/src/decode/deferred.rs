//! Numerics without a declared scale: their cells wait until the whole result tells the smallest exact type.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, PrimitiveArray, StructArray, cast::AsArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use longshore_cells::Odd;
use longshore_cells::decimal::{self, DecimalType, Mantissa};
use longshore_core::{DEFERRED, Error, Kind, NATIVE_TYPE, Place, ReadOptions, Result, has_deferred};

use super::numeric::{self, Parsed};
use crate::types::Format;

/// The batches' arrays of one column with every deferred part of them in its final type.
pub(crate) fn settle(
    column: &FieldRef,
    arrays: Vec<ArrayRef>,
    format: Format,
    options: &ReadOptions,
) -> Result<(FieldRef, Vec<ArrayRef>)> {
    settle_part(column, column, arrays, format, options)
}

/// The same for `field`, which is the `column` or a part of it.
fn settle_part(
    column: &FieldRef,
    field: &FieldRef,
    arrays: Vec<ArrayRef>,
    format: Format,
    options: &ReadOptions,
) -> Result<(FieldRef, Vec<ArrayRef>)> {
    if field.metadata().contains_key(DEFERRED) {
        return Leaf { column, field, format, options }.settle(arrays);
    }
    match field.data_type() {
        DataType::List(item) if has_deferred(item) => {
            let values = arrays.iter().map(|array| array.as_list::<i32>().values().clone()).collect();
            let settled = settle_part(column, item, values, format, options);
            let (item, values) = settled.map_err(|error| at_row_of_element(error, &arrays))?;
            let lists = arrays.into_iter().zip(values).map(|(array, values)| {
                let list = array.as_list::<i32>();
                ListArray::try_new(item.clone(), list.offsets().clone(), values, list.nulls().cloned())
                    .map(|list| Arc::new(list) as ArrayRef)
                    .map_err(|error| inconsistent(&error))
            });
            let lists = lists.collect::<Result<_>>()?;
            Ok((with_type(field, DataType::List(item)), lists))
        }
        DataType::Struct(fields) if fields.iter().any(|field| has_deferred(field)) => {
            let mut settled = Vec::new();
            for (index, child) in fields.iter().enumerate() {
                let columns = arrays.iter().map(|array| array.as_struct().column(index).clone()).collect();
                settled.push(settle_part(column, child, columns, format, options)?);
            }
            let (fields, columns): (Vec<_>, Vec<_>) = settled.into_iter().unzip();
            let fields = Fields::from(fields);
            let structs = arrays.iter().enumerate().map(|(batch, array)| {
                let children = columns.iter().map(|column| column[batch].clone()).collect();
                StructArray::try_new(fields.clone(), children, array.nulls().cloned())
                    .map(|array| Arc::new(array) as ArrayRef)
                    .map_err(|error| inconsistent(&error))
            });
            let structs = structs.collect::<Result<_>>()?;
            Ok((with_type(field, DataType::Struct(fields)), structs))
        }
        _ => Ok((field.clone(), arrays)),
    }
}

/// Settled parts that do not make the whole they came from.
#[cold]
fn inconsistent(error: &ArrowError) -> Error {
    Error::new(Kind::Internal, format!("settled decimals do not fit their column: {error}"))
}

/// The error of an element of `lists`, at the row of the list that holds it.
fn at_row_of_element(error: Error, lists: &[ArrayRef]) -> Error {
    let place = error.place().clone();
    let Some(mut element) = place.row.and_then(|row| usize::try_from(row).ok()) else { return error };
    let mut rows = 0;
    for list in lists.iter().map(AsArray::as_list::<i32>) {
        if element < list.values().len() {
            let ends = list.value_offsets().iter().skip(1);
            rows += ends.take_while(|end| usize::try_from(**end).is_ok_and(|end| end <= element)).count();
            break;
        }
        element -= list.values().len();
        rows += list.len();
    }
    error.at(Place { row: Some(rows as u64), ..place })
}

fn with_type(field: &FieldRef, data_type: DataType) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
}

/// One array of numerics as they came.
struct Leaf<'a> {
    /// The column that the errors name: the field, or what the field is a part of.
    column: &'a FieldRef,
    field: &'a FieldRef,
    format: Format,
    options: &'a ReadOptions,
}

impl Leaf<'_> {
    fn settle(&self, arrays: Vec<ArrayRef>) -> Result<(FieldRef, Vec<ArrayRef>)> {
        let (mut decimals, mut whole) = (0, 0);
        for cell in arrays.iter().flat_map(AsArray::as_binary::<i32>).flatten() {
            let (cell_decimals, cell_whole) = self.extent(cell);
            decimals = decimals.max(cell_decimals);
            whole = whole.max(cell_whole);
        }
        let digits = decimals.saturating_add(whole);
        let scale = i8::try_from(decimals).ok().filter(|_| digits <= i32::from(self.options.decimal_digits));
        let Some(scale) = scale else { return Err(self.too_wide(whole, decimals)) };
        if digits <= 38 {
            return self.convert::<Decimal128Type>(arrays, 38, scale, DataType::Decimal128(38, scale));
        }
        self.convert::<Decimal256Type>(arrays, 76, scale, DataType::Decimal256(76, scale))
    }

    fn extent(&self, cell: &[u8]) -> (i32, i32) {
        match self.format {
            Format::Binary => match numeric::parse(cell) {
                Ok(Parsed::Finite(numeric)) => numeric.extent(),
                // Faults are found, with their row, by the conversion.
                Ok(Parsed::Special(_)) | Err(_) => (0, 0),
            },
            Format::Text => {
                let text = std::str::from_utf8(cell).unwrap_or_default();
                decimal::Text::parse(text).map_or((0, 0), |text| text.extent())
            }
        }
    }

    fn convert<T>(
        &self,
        arrays: Vec<ArrayRef>,
        precision: u8,
        scale: i8,
        to: DataType,
    ) -> Result<(FieldRef, Vec<ArrayRef>)>
    where
        T: ArrowPrimitiveType<Native: Mantissa>,
    {
        let decimal = DecimalType { precision, scale, numeric_nan: self.options.numeric_nan };
        let mut row = 0;
        let mut converted = Vec::with_capacity(arrays.len());
        // Each batch of cells is freed once its decimals are there.
        for array in arrays {
            self.options.budget.grow(array.len() * size_of::<T::Native>())?;
            let array = array.as_binary::<i32>();
            converted
                .push(Arc::new(self.cells::<T>(array, decimal, row)?.with_data_type(to.clone())) as ArrayRef);
            row += array.len() as u64;
        }
        Ok((with_type(self.field, to), converted))
    }

    fn cells<T>(&self, array: &BinaryArray, decimal: DecimalType, first: u64) -> Result<PrimitiveArray<T>>
    where
        T: ArrowPrimitiveType<Native: Mantissa>,
    {
        let read = |(row, cell): (u64, Option<&[u8]>)| match (cell, self.format) {
            (None, _) => Ok(None),
            (Some(cell), Format::Binary) => self.value(numeric::binary(decimal, cell), row),
            (Some(cell), Format::Text) => self.value(decimal.text(cell), row),
        };
        (first..).zip(array).map(read).collect()
    }

    fn value<M>(&self, parsed: Result<M, Odd>, row: u64) -> Result<Option<M>> {
        match parsed {
            Ok(value) => Ok(Some(value)),
            Err(Odd::Null) => Ok(None),
            Err(Odd::Fault(text)) => {
                let (what, hint) = *text;
                let error = Error::data(what).at(self.place(Some(row)));
                Err(match hint {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                })
            }
        }
    }

    fn place(&self, row: Option<u64>) -> Place {
        let native_type = self.column.metadata().get(NATIVE_TYPE).cloned();
        Place { column: Some(self.column.name().clone()), row, native_type }
    }

    fn too_wide(&self, whole: i32, decimals: i32) -> Error {
        let limit = self.options.decimal_digits;
        Error::new(
            Kind::Data,
            format!("its values need {whole} digits before the point and {decimals} after it; {limit} are the limit"),
        )
        .with_hint(format!(
            "choose a type with schema={{{:?}: \"string\"}}, \"float64\" or \"decimal128(38, <scale>)\"",
            self.column.name()
        ))
        .at(self.place(None))
    }
}
