//! A database's contents: objects, statistics, names.

use arrow_array::{RecordBatch, RecordBatchIterator};
use longshore_core::{
    CatalogueQueries, Current, Deadline, Depth, Error, ObjectFilter, Result, Source, TableName,
};
use longshore_interpreter::capsule::Table;
use longshore_interpreter::raise;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::{CancelHandle, deadline};
use crate::source::source;

/// How long to wait for the catalogue, and what ends the wait.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wait {
    timeout: Option<f64>,
    cancel_handle: CancelHandle,
}

/// Asks the catalogue of `given` without the interpreter's lock.
fn ask<T: Send>(
    given: &Bound<'_, PyAny>,
    wait: Wait,
    ask: impl FnOnce(&dyn Source, &Deadline) -> Result<T> + Send,
) -> PyResult<T> {
    let (py, source) = (given.py(), source(given)?);
    let deadline = deadline(py, wait.timeout, Some(wait.cancel_handle))?;
    py.detach(|| ask(source.as_ref(), &deadline)).map_err(raise)
}

fn table(batch: RecordBatch) -> Table {
    let schema = batch.schema();
    Table::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// The objects that have these names, as ADBC nests them.
#[pyfunction]
#[pyo3(signature = (source, wait, *, depth, catalog, schema, table, table_types, column))]
// One call from one place, by keyword.
#[allow(clippy::too_many_arguments)]
pub(crate) fn objects(
    source: &Bound<'_, PyAny>,
    wait: Wait,
    depth: &str,
    catalog: Option<String>,
    schema: Option<String>,
    table: Option<String>,
    table_types: Option<Vec<String>>,
    column: Option<String>,
) -> PyResult<Table> {
    let depth = match depth {
        "catalogs" => Depth::Catalogs,
        "schemas" => Depth::Schemas,
        "tables" => Depth::Tables,
        "columns" => Depth::Columns,
        other => return Err(raise(Error::internal(format!("{other:?} is not a depth")))),
    };
    let filter = ObjectFilter { depth, catalog, schema, table, table_types, column };
    ask(source, wait, move |source, deadline| longshore_core::objects(source, &filter, deadline))
        .map(self::table)
}

/// The statistics of the tables that have these names, as ADBC nests them.
#[pyfunction]
#[pyo3(signature = (source, wait, *, catalog, schema, table, approximate))]
pub(crate) fn statistics(
    source: &Bound<'_, PyAny>,
    wait: Wait,
    catalog: Option<String>,
    schema: Option<String>,
    table: Option<String>,
    approximate: bool,
) -> PyResult<Table> {
    let filter = ObjectFilter { catalog, schema, table, ..ObjectFilter::default() };
    let known = ask(source, wait, move |source, deadline| {
        longshore_core::statistics(source, &filter, approximate, deadline)
    });
    known.map(self::table)
}

/// Where a session is, and whose it is: catalog, schema, vendor, version.
#[pyfunction]
pub(crate) fn current(
    source: &Bound<'_, PyAny>,
    wait: Wait,
) -> PyResult<(Option<String>, Option<String>, String, String)> {
    let Current { catalog, schema, vendor, version } = ask(source, wait, longshore_core::current)?;
    Ok((catalog, schema, vendor, version))
}

/// The types of tables that there are.
#[pyfunction]
pub(crate) fn table_types(source: &Bound<'_, PyAny>, wait: Wait) -> PyResult<Vec<String>> {
    ask(source, wait, longshore_core::table_types)
}

/// Whether a statement finds a table or view by this name.
#[pyfunction]
pub(crate) fn has_table(
    source: &Bound<'_, PyAny>,
    wait: Wait,
    schema: Option<String>,
    table: String,
) -> PyResult<bool> {
    let table = TableName { schema, table };
    ask(source, wait, move |source, deadline| longshore_core::has_table(source, &table, deadline))
}

/// The schema in which a table that is written is temporary.
#[pyfunction]
pub(crate) fn temporary_schema(source: &Bound<'_, PyAny>, wait: Wait) -> PyResult<String> {
    ask(source, wait, longshore_core::temporary_schema)
}

/// The queries of the catalogues that drivers of Python ask, too, by the database's name.
pub(crate) fn catalogues(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let catalogues = PyDict::new(py);
    let known: [(&str, &CatalogueQueries); 3] = [
        ("postgresql", &longshore_postgres::CATALOGUE),
        ("mysql", &longshore_mysql::CATALOGUE),
        ("sqlite", &longshore_sqlite::CATALOGUE),
    ];
    for (name, queries) in known {
        let entries = PyDict::new(py);
        for (key, query) in queries.clone().entries() {
            entries.set_item(key, query.as_ref())?;
        }
        catalogues.set_item(name, entries)?;
    }
    Ok(catalogues)
}
