//! The kit's scanner of statements, for the sources and the engine that Python has.

use longshore_source::sql::{self, Dialect, STANDARD};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The statement in pieces: every second one is a parameter's place.
#[pyfunction]
pub(crate) fn sql_places<'a>(statement: &'a str, dialect: &str) -> PyResult<Vec<&'a str>> {
    Ok(sql::places(dialect_of(dialect)?, statement))
}

/// The statements of a script, without those that say nothing.
#[pyfunction]
pub(crate) fn sql_statements<'a>(script: &'a str, dialect: &str) -> PyResult<Vec<&'a str>> {
    Ok(sql::statements(dialect_of(dialect)?, script))
}

/// The first tokens of a statement in capitals, `most` at most.
#[pyfunction]
pub(crate) fn sql_words(statement: &str, most: usize) -> Vec<String> {
    sql::first_words(&STANDARD, statement, most)
}

fn dialect_of(dialect: &str) -> PyResult<&'static Dialect> {
    Dialect::from_name(dialect).ok_or_else(|| PyValueError::new_err(format!("no dialect {dialect:?}")))
}
