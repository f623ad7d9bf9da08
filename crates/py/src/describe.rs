//! `schema` and `partition_sql`: what queries would return, and the parts of one, without a run.

use longshore_core::{Decimals, Query, ReadOptions, TableName};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::{CancelHandle, deadline};
use crate::policy::Policy;
use crate::read::Partition;
use crate::source::source;
use crate::types::data_types;
use longshore_interpreter::capsule::Schema;
use longshore_interpreter::raise;

/// The one schema of what `queries` would return; the arguments are those of `open_read`.
#[pyfunction]
#[pyo3(signature = (*, source, queries, params, types, policy, timeout))]
// The interpreter gives values.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn describe(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    queries: Vec<String>,
    params: Option<&Bound<'_, PyAny>>,
    types: &Bound<'_, PyDict>,
    policy: Policy,
    timeout: Option<f64>,
) -> PyResult<Schema> {
    let source = self::source(source)?;
    let params = longshore_pyobjects::params(params)?;
    let queries: Vec<Query> =
        queries.into_iter().map(|text| Query { text, params: params.clone() }).collect();
    let options = ReadOptions { schema: data_types(types)?, ..policy.options };
    let deadline = deadline(py, timeout, None)?;
    let schema = py.detach(|| longshore_core::describe(source.as_ref(), &queries, &options, &deadline));
    schema.map(Schema).map_err(raise)
}

/// The parameters of `statement`, as a stream would have columns of their types.
#[pyfunction]
#[pyo3(signature = (*, source, statement, timeout, cancel_handle))]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn parameters(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    statement: String,
    timeout: Option<f64>,
    cancel_handle: CancelHandle,
) -> PyResult<Schema> {
    let source = self::source(source)?;
    let options = ReadOptions { decimals: Decimals::Streamed, ..ReadOptions::default() };
    let deadline = deadline(py, timeout, Some(cancel_handle))?;
    let schema = py.detach(|| longshore_core::parameters(source.as_ref(), &statement, &options, &deadline));
    schema.map(Schema).map_err(raise)
}

/// The columns of a table, as a stream of its rows has them.
#[pyfunction]
#[pyo3(signature = (*, source, schema, table, timeout, cancel_handle))]
pub(crate) fn table_schema(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    schema: Option<String>,
    table: String,
    timeout: Option<f64>,
    cancel_handle: CancelHandle,
) -> PyResult<Schema> {
    let source = self::source(source)?;
    let table = TableName { schema, table };
    let options = ReadOptions { decimals: Decimals::Streamed, ..ReadOptions::default() };
    let deadline = deadline(py, timeout, Some(cancel_handle))?;
    let schema = py.detach(|| longshore_core::table_schema(source.as_ref(), &table, &options, &deadline));
    schema.map(Schema).map_err(raise)
}

/// The texts of the parts of `query`.
#[pyfunction]
#[pyo3(signature = (*, source, query, partition, timeout))]
pub(crate) fn partition(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    query: String,
    partition: Partition<'_>,
    timeout: Option<f64>,
) -> PyResult<Vec<String>> {
    let (source, split) = (self::source(source)?, partition.split()?);
    let deadline = deadline(py, timeout, None)?;
    let parts =
        py.detach(|| longshore_core::partition(source.as_ref(), Query::new(query), &split, &deadline));
    Ok(parts.map_err(raise)?.into_iter().map(|part| part.text).collect())
}
