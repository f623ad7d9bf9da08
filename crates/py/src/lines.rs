//! A batch as the lines of a text file.

use longshore_core::{Frame, Result};
use longshore_interpreter::capsule::frame;
use longshore_interpreter::raise;
use longshore_values as values;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The lines of a frame as CSV; `before` rows went before it.
#[pyfunction]
pub(crate) fn csv_lines<'py>(
    of: &Bound<'py, PyAny>,
    delimiter: char,
    before: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, frame) = (of.py(), frame(of)?);
    let lines =
        py.detach(|| join(frame, before, |batch, before| values::csv_lines(batch, delimiter, before)));
    Ok(PyBytes::new(py, &lines.map_err(raise)?))
}

/// The lines of a frame as JSON; `before` rows went before it.
#[pyfunction]
pub(crate) fn json_lines<'py>(of: &Bound<'py, PyAny>, before: u64) -> PyResult<Bound<'py, PyBytes>> {
    let (py, frame) = (of.py(), frame(of)?);
    let lines = py.detach(|| join(frame, before, values::json_lines));
    Ok(PyBytes::new(py, &lines.map_err(raise)?))
}

fn join(
    frame: Frame,
    mut before: u64,
    lines: impl Fn(&arrow_array::RecordBatch, u64) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for batch in frame.batches {
        let batch = batch?;
        let more = lines(&batch, before)?;
        before += batch.num_rows() as u64;
        if all.is_empty() {
            all = more;
        } else {
            longshore_core::memory::try_reserve(&mut all, more.len())?;
            all.extend_from_slice(&more);
        }
    }
    Ok(all)
}

/// The texts of the first batch's columns, as CSV or JSON has them.
#[pyfunction]
pub(crate) fn file_texts(of: &Bound<'_, PyAny>, as_json: bool) -> PyResult<Vec<Vec<Option<String>>>> {
    match frame(of)?.batches.next() {
        Some(batch) => values::texts(&batch.map_err(raise)?, as_json).map_err(raise),
        None => Ok(Vec::new()),
    }
}
