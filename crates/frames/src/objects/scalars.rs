//! Numbers, decimals and booleans.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyType};

use super::Maker;
use crate::fault::python_fault;
use crate::numbers::{no_array_of, primitive};

/// The maker that a function is, whose objects take about so many bytes each.
pub(super) struct Each<F> {
    size: usize,
    make: F,
}

impl<F> Each<F>
where
    F: FnMut(Python<'_>, &dyn Array, &mut Vec<Py<PyAny>>) -> Result<(), Fault> + Send + 'static,
{
    pub(super) fn boxed(size: usize, make: F) -> Box<dyn Maker> {
        Box::new(Self { size, make })
    }
}

impl<F> Maker for Each<F>
where
    F: FnMut(Python<'_>, &dyn Array, &mut Vec<Py<PyAny>>) -> Result<(), Fault> + Send,
{
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        (self.make)(py, array, objects)
    }

    fn bytes(&self, rows: usize) -> usize {
        self.size * rows
    }
}

/// Appends what `object` makes of every row of `array` that is not a NULL.
pub(super) fn each_row(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
    mut object: impl FnMut(usize) -> Result<Py<PyAny>, Fault>,
) -> Result<(), Fault> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for row in 0..array.len() {
        let null = nulls.is_some_and(|nulls| nulls.is_null(row));
        objects.push(if null { py.None() } else { object(row)? });
    }
    Ok(())
}

/// An Arrow type whose values are Python's `int` or `float`.
pub(super) trait Scalar: ArrowPrimitiveType {
    /// The object of `value`.
    fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny>;
}

macro_rules! integers {
    ($($arrow:ty),*) => { $(
        impl Scalar for $arrow {
            fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny> {
                PyInt::new(py, value).into_any().unbind()
            }
        }
    )* };
}

macro_rules! floats {
    ($($arrow:ty),*) => { $(
        impl Scalar for $arrow {
            fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny> {
                PyFloat::new(py, f64::from(value)).into_any().unbind()
            }
        }
    )* };
}

integers!(Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);
floats!(Float16Type, Float32Type, Float64Type);

pub(super) fn scalars<T: Scalar>(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
) -> Result<(), Fault> {
    let array = primitive::<T>(array)?;
    each_row(py, array, objects, |row| Ok(T::object(py, array.value(row))))
}

pub(super) fn booleans(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let Some(array) = array.as_boolean_opt() else { return Err(no_array_of("booleans")) };
    each_row(py, array, objects, |row| Ok(PyBool::new(py, array.value(row)).to_owned().into_any().unbind()))
}

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `decimal.Decimal` objects, exact to the last digit.
pub(super) fn decimals<T: DecimalType>(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
) -> Result<(), Fault> {
    let failed = |error| python_fault(0, "decimal.Decimal cannot be made", error);
    let class = DECIMAL.import(py, "decimal", "Decimal").map_err(failed)?;
    let array = primitive::<T>(array)?;
    // Built from text: the constructor takes every digit, whatever the caller's decimal context is.
    each_row(py, array, objects, |row| {
        class.call1((array.value_as_string(row),)).map(Bound::unbind).map_err(failed)
    })
}
