//! Results that are taken batch by batch.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use longshore_core::LiveResult;
use longshore_frames::{Choices, Column, Columns, polars_batch, polars_schema};
use longshore_interpreter::capsule::{Batch, Schema, external, schema_capsule, stream_capsule};
use longshore_interpreter::raise;
use longshore_retype::polars_refusal;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::read::backend_named;

/// A result on its way, taken batch by batch or handed over as a whole.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Stream(pub(crate) longshore_core::Stream);

/// The most columns that its `repr` names.
const SHOWN: usize = 10;

#[pymethods]
impl Stream {
    /// The stream itself, once. The consumer casts if it wants another schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let live = py.detach(|| self.0.hand_over()).map_err(raise)?;
        stream_capsule(py, Box::new(Export(live)))
    }

    /// The schema, as often as wanted.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.schema().as_ref())
    }

    /// The schema, which does not keep the stream alive.
    fn schema(&self) -> Schema {
        Schema(self.0.schema().clone())
    }

    /// The next batch; `None` after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = py.detach(|| self.0.next_batch()).map_err(raise)?;
        Ok(next.map(|(_, batch)| Batch(batch)))
    }

    /// The next batch in the types and names that polars takes.
    fn next_for_polars(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = py.detach(|| {
            let schema = self.0.schema();
            polars_refusal(schema).map_or(Ok(()), Err)?;
            self.0.next_as(|_, batch| polars_batch(&batch, &polars_schema(schema)))
        });
        Ok(next.map_err(raise)?.map(Batch))
    }

    /// The next batch as finished columns, and the number of its rows.
    ///
    /// Decimals become doubles, save in the columns of the names `exact`; `None` for all of them.
    #[pyo3(signature = (*, backend, arrow_strings, json_objects, exact))]
    // The interpreter gives values.
    #[allow(clippy::needless_pass_by_value)]
    fn next_columns(
        &self,
        py: Python<'_>,
        backend: &str,
        arrow_strings: bool,
        json_objects: bool,
        exact: Option<Vec<String>>,
    ) -> PyResult<Option<(Vec<Column>, u64)>> {
        let choices = Choices { backend: backend_named(backend), arrow_strings, json_objects };
        let columns = py.detach(|| {
            self.0.next_as(|before, batch| {
                Columns::of_batch(batch, before, choices, exact.as_deref(), self.0.warnings())
            })
        });
        let Some(columns) = columns.map_err(raise)? else { return Ok(None) };
        let rows = columns.rows();
        Ok(Some((columns.finish(py)?, rows)))
    }

    /// Stops the query on the server, from any thread; who waits for a batch gets an error.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }

    /// Its columns and its state; of many columns, the first.
    fn __repr__(&self) -> String {
        let fields = self.0.schema().fields();
        let mut names: Vec<&str> = fields.iter().take(SHOWN).map(|field| field.name().as_str()).collect();
        if fields.len() > SHOWN {
            names.push("...");
        }
        format!("<Stream ({}) {}>", names.join(", "), self.0.state())
    }

    /// Stops the query on the server where it still runs.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// A result behind Arrow's C interface.
struct Export(LiveResult);

impl Iterator for Export {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_batch().transpose()?.map_err(external))
    }
}

impl RecordBatchReader for Export {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
