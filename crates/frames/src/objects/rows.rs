//! Rows as tuples of Python objects.

use std::vec::IntoIter;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use longshore_core::memory::{OutOfMemory, check_available};
use longshore_core::{Error, Place, Result};
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Maker, catch, table};
use crate::columns::locate;

/// The memory that has to be free on top of that of the next objects.
const HEADROOM: usize = 16 << 20;

/// The memory that there always is.
const FEW: usize = 64 << 10;

/// Makes the rows of a result's batches.
#[derive(Default)]
pub struct RowMaker {
    /// One for each column, with the type that it makes objects of: that may change where a source has no types.
    columns: Vec<(DataType, Box<dyn Maker>)>,
}

impl RowMaker {
    /// The rows of `batch`, which has `before` rows of the result before it.
    pub fn rows(
        &mut self,
        py: Python<'_>,
        batch: &RecordBatch,
        before: u64,
    ) -> Result<IntoIter<Py<PyTuple>>> {
        // An object for each value, and what it is made from. To ask costs more than to make a few.
        let wanted = batch.num_columns() * batch.num_rows() * 128 + 2 * batch.get_array_memory_size();
        if wanted > FEW {
            check_available(wanted + HEADROOM)?;
        }
        let schema = batch.schema();
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (at, (field, array)) in schema.fields().iter().zip(batch.columns()).enumerate() {
            let mut objects = Vec::with_capacity(array.len());
            let maker = self.maker(at, field)?;
            catch(py, || maker.make(py, array, &mut objects))
                .map_err(|fault| locate(fault, field, before))?;
            columns.push(objects.into_iter());
        }
        let rows = catch(py, || {
            let row = |_| {
                let values: Vec<Py<PyAny>> = columns.iter_mut().filter_map(Iterator::next).collect();
                PyTuple::new(py, values).map(Bound::unbind)
            };
            (0..batch.num_rows()).map(row).collect::<PyResult<Vec<_>>>().map_err(|_| Fault::from(OutOfMemory))
        });
        Ok(rows.map_err(|fault| fault.into_error(Place::default()))?.into_iter())
    }

    fn maker(&mut self, at: usize, field: &Field) -> Result<&mut Box<dyn Maker>> {
        if self.columns.get(at).is_none_or(|(known, _)| known != field.data_type()) {
            let column = (field.data_type().clone(), table::maker(field, false)?);
            self.columns.truncate(at);
            self.columns.push(column);
        }
        let column = self.columns.get_mut(at);
        column.map(|(_, maker)| maker).ok_or_else(|| Error::internal("a column without objects"))
    }
}
