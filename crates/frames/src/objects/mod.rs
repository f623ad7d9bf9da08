//! Columns of Python objects.

mod binary;
mod nested;
mod rows;
mod scalars;
mod strings;
mod table;
mod temporal;

pub use rows::RowMaker;
pub(crate) use strings::Texts;

use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::Array;
use arrow_schema::Field;
use longshore_core::memory::{OutOfMemory, try_reserve};
use longshore_core::{Kind, Result};
use longshore_values::Fault;
use pyo3::exceptions::{PyArithmeticError, PyMemoryError, PyRecursionError, PyValueError};
use pyo3::prelude::*;

use crate::column::{Column, Mask};
use crate::columns::Accumulator;
use crate::memory::object_array;
use crate::numbers::mask_array;
use crate::shape::{is_json, is_text};

/// Makes the Python objects of one type. Chosen once per column; loops over a batch at a time.
trait Maker: Send {
    /// Appends one object for each value of `array`, `None` for each NULL.
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault>;

    /// The memory of the objects made so far, `rows` of them: an estimate.
    fn bytes(&self, rows: usize) -> usize;
}

/// The objects of one column so far.
pub(crate) struct Objects {
    maker: Box<dyn Maker>,
    values: Vec<Py<PyAny>>,
    masked: bool,
    mask: Mask,
    text: bool,
}

impl Objects {
    /// Objects of `field`; NULLs masked too if `masked`; JSON parsed if `json`.
    pub(crate) fn new(field: &Field, masked: bool, json: bool) -> Result<Self> {
        Ok(Self {
            maker: table::maker(field, json)?,
            values: Vec::new(),
            masked,
            mask: Mask::default(),
            text: is_text(field.data_type()) && !(json && is_json(field)),
        })
    }
}

impl Accumulator for Objects {
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        try_reserve(&mut self.values, array.len())?;
        Python::try_attach(|py| catch(py, || self.maker.make(py, array, &mut self.values)))
            .ok_or_else(|| Fault::new(0, Kind::Operational, "the Python interpreter is shutting down"))??;
        if self.masked {
            self.mask.extend(array.logical_nulls().as_ref(), array.len())?;
        }
        Ok(())
    }

    /// An estimate.
    fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.mask.bytes() + self.maker.bytes(self.values.len())
    }

    fn finish(mut self: Box<Self>, py: Python<'_>) -> PyResult<Column> {
        let mut column = Column::new("objects", object_array(py, take(&mut self.values))?);
        column.masked = self.masked;
        column.mask = mask_array(py, take(&mut self.mask))?;
        column.text = self.text;
        Ok(column)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let values = take(&mut self.values);
        if !values.is_empty() {
            // Without its lock the interpreter keeps a list of all that is dropped, for which there may be no memory.
            let _ = Python::try_attach(move |_| drop(values));
        }
    }
}

/// The result of `make`: where the interpreter has no memory, much of pyo3 panics.
fn catch<T>(py: Python<'_>, make: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|_| Err(without_memory(py)))
}

/// The fault of a panic: for want of memory, or a defect.
#[cold]
fn without_memory(py: Python<'_>) -> Fault {
    match PyErr::take(py) {
        Some(error) if !error.is_instance_of::<PyMemoryError>(py) => Fault::internal(error.to_string()),
        _ => OutOfMemory.into(),
    }
}

/// The fault of an exception while the object of `row` was made. One that is about the value becomes an error of ours, with its
/// place; any other stays what is raised.
fn python_fault(row: usize, what: &str, error: PyErr) -> Fault {
    let fault = Fault::data(row, format!("{what}: {error}"));
    Python::attach(|py| {
        let is_any_of_value = error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyArithmeticError>(py)
            || error.is_instance_of::<PyRecursionError>(py);
        match error {
            error if error.is_instance_of::<PyMemoryError>(py) => OutOfMemory.into(),
            _ if is_any_of_value => fault,
            error => fault.with_source(error),
        }
    })
}
