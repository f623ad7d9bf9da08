//! Columns of fixed-width values: one NumPy array, and a mask where the type needs one.

use std::any::type_name;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use longshore_values::Fault;
use pyo3::prelude::*;

use crate::column::{Column, Mask};
use crate::columns::Accumulator;
use crate::memory::{number_array, try_reserve};
use crate::pages::populate;
use crate::shape::{DateUnit, Nulls};

/// NumPy's NaT.
const NAT: i64 = i64::MIN;

const SECONDS_PER_DAY: i64 = 86_400;

/// The accumulator of `data_type`: one line a type. `None` for a type that is not a number.
pub(crate) fn accumulator(
    data_type: &DataType,
    nulls: Nulls,
    dates: DateUnit,
) -> Option<Box<dyn Accumulator>> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let per_date = if dates == DateUnit::Days { 1 } else { SECONDS_PER_DAY };
    let date = if dates == DateUnit::Days { "datetime64[D]" } else { "datetime64[s]" };
    let half_nan = <Float16Type as ArrowPrimitiveType>::Native::NAN.to_bits();
    Some(match data_type {
        DataType::Boolean => booleans(nulls),
        DataType::Int8 => plain::<Int8Type>(nulls, "int8", 0),
        DataType::Int16 => plain::<Int16Type>(nulls, "int16", 0),
        DataType::Int32 => plain::<Int32Type>(nulls, "int32", 0),
        DataType::Int64 => plain::<Int64Type>(nulls, "int64", 0),
        DataType::UInt8 => plain::<UInt8Type>(nulls, "uint8", 0),
        DataType::UInt16 => plain::<UInt16Type>(nulls, "uint16", 0),
        DataType::UInt32 => plain::<UInt32Type>(nulls, "uint32", 0),
        DataType::UInt64 => plain::<UInt64Type>(nulls, "uint64", 0),
        DataType::Float16 => map::<Float16Type, _>(
            nulls,
            "float16",
            half_nan,
            <Float16Type as ArrowPrimitiveType>::Native::to_bits,
        ),
        DataType::Float32 => plain::<Float32Type>(nulls, "float32", f32::NAN),
        DataType::Float64 => plain::<Float64Type>(nulls, "float64", f64::NAN),
        DataType::Date32 => map::<Date32Type, _>(nulls, date, NAT, move |day| i64::from(day) * per_date),
        DataType::Date64 => temporal::<Date64Type>(nulls, "datetime64[ms]"),
        DataType::Timestamp(Second, _) => temporal::<TimestampSecondType>(nulls, "datetime64[s]"),
        DataType::Timestamp(Millisecond, _) => temporal::<TimestampMillisecondType>(nulls, "datetime64[ms]"),
        DataType::Timestamp(Microsecond, _) => temporal::<TimestampMicrosecondType>(nulls, "datetime64[us]"),
        DataType::Timestamp(Nanosecond, _) => temporal::<TimestampNanosecondType>(nulls, "datetime64[ns]"),
        DataType::Duration(Second) => temporal::<DurationSecondType>(nulls, "timedelta64[s]"),
        DataType::Duration(Millisecond) => temporal::<DurationMillisecondType>(nulls, "timedelta64[ms]"),
        DataType::Duration(Microsecond) => temporal::<DurationMicrosecondType>(nulls, "timedelta64[us]"),
        DataType::Duration(Nanosecond) => temporal::<DurationNanosecondType>(nulls, "timedelta64[ns]"),
        _ => return None,
    })
}

/// Values that NumPy stores as Arrow does.
fn plain<T: ArrowPrimitiveType>(
    nulls: Nulls,
    dtype: &'static str,
    filler: T::Native,
) -> Box<dyn Accumulator> {
    Box::new(Numbers::new(nulls, dtype, filler, extend::<T>))
}

fn extend<T: ArrowPrimitiveType>(array: &dyn Array, values: &mut Vec<T::Native>) -> Result<(), Fault> {
    values.extend_from_slice(primitive::<T>(array)?.values());
    Ok(())
}

fn map<T: ArrowPrimitiveType, V: ArrowNativeType>(
    nulls: Nulls,
    dtype: &'static str,
    filler: V,
    map: impl Fn(T::Native) -> V + Send + 'static,
) -> Box<dyn Accumulator> {
    Box::new(Numbers::new(nulls, dtype, filler, move |array, values| {
        values.extend(primitive::<T>(array)?.values().iter().map(|value| map(*value)));
        Ok(())
    }))
}

/// Counts of which the smallest is NumPy's NaT, and so no value.
fn temporal<T: ArrowPrimitiveType<Native = i64>>(nulls: Nulls, dtype: &'static str) -> Box<dyn Accumulator> {
    Box::new(Numbers::new(nulls, dtype, NAT, move |array, values| {
        let array = primitive::<T>(array)?;
        let meant = |row: &usize| array.is_valid(*row) && array.value(*row) == NAT;
        let is_there = array.values().contains(&NAT);
        if let Some(row) = (0..array.len()).filter(|_| is_there).find(meant) {
            return Err(Fault::data(row, format!("{dtype} reads this value as NULL"))
                .with_hint("use dtype_backend=\"pyarrow\" or return_type=\"arrow\""));
        }
        extend::<T>(array, values)
    }))
}

/// Booleans: Arrow has a bit for each, NumPy a byte.
fn booleans(nulls: Nulls) -> Box<dyn Accumulator> {
    Box::new(Numbers::new(nulls, "bool", 0_u8, |array, values| {
        let Some(array) = array.as_boolean_opt() else { return Err(no_array_of("booleans")) };
        values.extend(array.values().iter().map(u8::from));
        Ok(())
    }))
}

/// `array` as an array of `T`.
pub(crate) fn primitive<T: ArrowPrimitiveType>(array: &dyn Array) -> Result<&PrimitiveArray<T>, Fault> {
    array.as_primitive_opt::<T>().ok_or_else(|| no_array_of(type_name::<T>()))
}

struct Numbers<V, F> {
    values: Vec<V>,
    nulls: Nulls,
    mask: Mask,
    dtype: &'static str,
    /// The value that stands where a row is NULL.
    filler: V,
    /// Appends the values of an array, for which there is room.
    append: F,
}

impl<V, F: Fn(&dyn Array, &mut Vec<V>) -> Result<(), Fault>> Numbers<V, F> {
    fn new(nulls: Nulls, dtype: &'static str, filler: V, append: F) -> Self {
        Self { values: Vec::new(), nulls, mask: Mask::default(), dtype, filler, append }
    }
}

impl<V: ArrowNativeType, F> Accumulator for Numbers<V, F>
where
    F: Fn(&dyn Array, &mut Vec<V>) -> Result<(), Fault> + Send,
{
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        let start = self.values.len();
        try_reserve(&mut self.values, array.len())?;
        populate(&mut self.values, array.len());
        (self.append)(array, &mut self.values)?;
        note_nulls(array.nulls(), array.len(), self.nulls, &mut self.mask)?;
        fill_nulls(&mut self.values[start..], array.nulls(), self.filler);
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.mask.bytes()
    }

    fn finish(self: Box<Self>, py: Python<'_>) -> PyResult<Column> {
        let mut column = Column::new("numbers", number_array(py, self.values, self.dtype)?);
        column.masked = self.nulls == Nulls::Masked;
        column.mask = mask_array(py, self.mask)?;
        Ok(column)
    }
}

/// Refuses NULLs, or masks them, as `rule` says.
fn note_nulls(nulls: Option<&NullBuffer>, rows: usize, rule: Nulls, mask: &mut Mask) -> Result<(), Fault> {
    match rule {
        Nulls::Marked => {}
        Nulls::Masked => mask.extend(nulls, rows)?,
        Nulls::Refused => {
            let first = nulls.and_then(|nulls| nulls.iter().position(|valid| !valid));
            if let Some(row) = first {
                return Err(Fault::data(row, "NULL has no place in a NumPy array of integers or booleans")
                    .with_hint("leave dtype_backend out, use \"numpy_nullable\", or COALESCE in the query"));
            }
        }
    }
    Ok(())
}

/// Arrow leaves anything under a NULL; what a frame shows there must not depend on the source.
fn fill_nulls<V: Copy>(values: &mut [V], nulls: Option<&NullBuffer>, filler: V) {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return };
    for (value, valid) in values.iter_mut().zip(nulls) {
        if !valid {
            *value = filler;
        }
    }
}

/// The NumPy array of a mask; `None` where nothing is masked.
pub(crate) fn mask_array(py: Python<'_>, mask: Mask) -> PyResult<Option<Py<PyAny>>> {
    mask.finish().map(|bytes| number_array(py, bytes, "bool").map(Bound::unbind)).transpose()
}

/// The schema was checked before: an array of another type is a defect of this crate.
pub(crate) fn no_array_of(what: &str) -> Fault {
    Fault::internal(format!("the array holds no {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Date32Array, Int32Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn nulls_are_filled_masked_or_refused() {
        let array = Int32Array::from(vec![Some(7), None]);
        let mut masked = Numbers::new(Nulls::Masked, "int32", 0, extend::<Int32Type>);
        masked.absorb(&array).unwrap();
        assert_eq!(masked.values, [7, 0]);
        assert_eq!(masked.mask.finish(), Some(vec![0, 1]));

        let mut refused = Numbers::new(Nulls::Refused, "int32", 0, extend::<Int32Type>);
        assert_eq!(refused.absorb(&array).unwrap_err().row(), 1);
    }

    #[test]
    fn no_value_becomes_nat() {
        let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(0), None, Some(i64::MIN)]));
        let mut times = accumulator(array.data_type(), Nulls::Marked, DateUnit::Seconds).unwrap();
        assert_eq!(times.absorb(&array).unwrap_err().row(), 2);
        times.absorb(&array.slice(0, 2)).unwrap();
    }

    #[test]
    fn every_date_fits_in_seconds() {
        let array = Date32Array::from(vec![i32::MIN, i32::MAX]);
        let mut dates = accumulator(&DataType::Date32, Nulls::Marked, DateUnit::Seconds).unwrap();
        dates.absorb(&array).unwrap();
        assert_eq!(dates.bytes(), 16);
    }
}
