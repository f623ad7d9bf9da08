//! Columns of Python objects.

mod binary;
mod decimals;
mod nested;
mod scalars;
mod strings;
mod table;
mod temporal;

use arrow_array::Array;
use arrow_schema::Field;
use longshore_core::Result;
use pyo3::prelude::*;

use crate::column::Parts;
use crate::fault::Fault;
use crate::mask::Mask;
use crate::memory::object_array;
use crate::numbers::mask_array;
use crate::shape::{is_json, is_text};

/// Makes the Python objects of one type. Chosen once per column; loops over a batch at a time.
trait Maker: Send {
    /// Appends one object for each value of `array`, `None` for each NULL.
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault>;

    /// The memory of the objects made so far, `rows` of them: an estimate.
    fn bytes(&self, rows: usize) -> usize {
        32 * rows
    }
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

    /// Makes the objects of `array`.
    pub(crate) fn absorb(&mut self, py: Python<'_>, array: &dyn Array) -> Result<(), Fault> {
        self.values.reserve(array.len());
        self.maker.make(py, array, &mut self.values)?;
        if self.masked {
            self.mask.extend(array.logical_nulls().as_ref(), array.len());
        }
        Ok(())
    }

    /// The memory held: an estimate.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.mask.bytes() + self.maker.bytes(self.values.len())
    }

    /// Hands the objects over as one array.
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Parts> {
        let mut parts = Parts::new("objects", object_array(py, self.values)?);
        parts.masked = self.masked;
        parts.mask = mask_array(py, self.mask)?;
        parts.text = self.text;
        Ok(parts)
    }
}
