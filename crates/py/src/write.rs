//! `write_sql`: pours frames into a table.

use std::sync::Arc;

use longshore_core::{IfExists, Load, Meter, TableName};
use pyo3::prelude::*;

use crate::error::raise;
use crate::incoming::Incoming;
use crate::progress::Progress;
use crate::source::source;
use crate::switch::{Switch, reading_watch};

/// Writes the frames that the iterator `frames` gives, and returns the number of rows.
///
/// `longshore.writing` has checked the words.
#[pyfunction]
#[pyo3(signature = (frames, *, source, schema, table, if_exists, key, types, timeout, progress, switch))]
// One call from one place, by keyword; the interpreter gives values.
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub(crate) fn write(
    py: Python<'_>,
    frames: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
    schema: Option<String>,
    table: String,
    if_exists: &str,
    key: Vec<String>,
    types: Vec<(String, String)>,
    timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    switch: Switch,
) -> PyResult<u64> {
    let source = self::source(source)?;
    let incoming = Incoming::new(frames)?;
    let meter = Arc::<Meter>::default();
    let load = Load {
        table: TableName { schema, table },
        schema: incoming.schema(),
        if_exists: mode(if_exists),
        key,
        types,
        meter: meter.clone(),
    };
    let progress = Arc::new(Progress::new(progress, meter));
    let watch = reading_watch(py, timeout, switch, progress.clone())?;
    let written = py.detach(|| {
        let rows = longshore_core::write(source.as_ref(), &load, incoming, &watch)?;
        progress.finish()?;
        Ok(rows)
    });
    progress.end();
    written.map_err(raise)
}

fn mode(word: &str) -> IfExists {
    match word {
        "append" => IfExists::Append,
        "replace" => IfExists::Replace,
        "truncate" => IfExists::Truncate,
        "upsert" => IfExists::Upsert,
        _ => IfExists::Fail,
    }
}
