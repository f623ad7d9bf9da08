//! Numbers and booleans.

use std::any::type_name;
use std::marker::PhantomData;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, PrimitiveArray};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::Maker;
use crate::fault::Fault;
use crate::numbers::no_array_of;

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

/// `array` as an array of `T`.
pub(super) fn primitive<T: ArrowPrimitiveType>(array: &dyn Array) -> Result<&PrimitiveArray<T>, Fault> {
    array.as_primitive_opt::<T>().ok_or_else(|| no_array_of(type_name::<T>()))
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

pub(super) struct Scalars<T>(PhantomData<fn(T)>);

impl<T: Scalar> Scalars<T> {
    pub(super) fn boxed() -> Box<dyn Maker> {
        Box::new(Self(PhantomData))
    }
}

impl<T: Scalar> Maker for Scalars<T> {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let array = primitive::<T>(array)?;
        each_row(py, array, objects, |row| Ok(T::object(py, array.value(row))))
    }
}

pub(super) struct Booleans;

impl Maker for Booleans {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let Some(array) = array.as_boolean_opt() else { return Err(no_array_of("booleans")) };
        each_row(py, array, objects, |row| {
            Ok(PyBool::new(py, array.value(row)).to_owned().into_any().unbind())
        })
    }
}

/// Columns of nothing but NULL.
pub(super) struct Nothing;

impl Maker for Nothing {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        objects.extend((0..array.len()).map(|_| py.None()));
        Ok(())
    }
}
