//! `decimal.Decimal`, exact to the last digit.

use std::marker::PhantomData;

use arrow_array::Array;
use arrow_array::types::DecimalType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::Maker;
use super::scalars::{each_row, primitive};
use crate::fault::Fault;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

pub(super) struct Decimals<T> {
    precision: u8,
    scale: i8,
    arrow: PhantomData<fn(T)>,
}

impl<T: DecimalType> Decimals<T> {
    pub(super) fn boxed(precision: u8, scale: i8) -> Box<dyn Maker> {
        Box::new(Self { precision, scale, arrow: PhantomData })
    }
}

impl<T: DecimalType> Maker for Decimals<T> {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let failed = |error| Fault::python(0, "decimal.Decimal cannot be made", error);
        let class = DECIMAL.import(py, "decimal", "Decimal").map_err(failed)?;
        let array = primitive::<T>(array)?;
        each_row(py, array, objects, |row| {
            // Built from text: the constructor takes every digit, whatever the caller's decimal context is.
            let text = T::format_decimal(array.value(row), self.precision, self.scale);
            class.call1((text,)).map(Bound::unbind).map_err(failed)
        })
    }

    fn bytes(&self, rows: usize) -> usize {
        104 * rows
    }
}
