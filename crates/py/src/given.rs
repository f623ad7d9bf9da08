//! Columns of texts on their way into the SQL engine.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use longshore_core::Error;
use longshore_duckdb::texts::{self, Position};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::error::raise;
use crate::incoming::{invalid, reader};

/// Tells for each row of a table's one column whether its text has `piece` in its place: `"whole"`, `"start"`, `"end"` or
/// `"anywhere"`. `None` where the column is not of texts.
#[pyfunction]
#[pyo3(signature = (table, piece, place, *, threads=None))]
pub(crate) fn search(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    piece: &str,
    place: &str,
    threads: Option<usize>,
) -> PyResult<Option<PyArray>> {
    let place = match place {
        "whole" => Position::Whole,
        "start" => Position::Start,
        "end" => Position::End,
        "anywhere" => Position::Anywhere,
        other => return Err(raise(Error::internal(format!("no place in a text is {other:?}")))),
    };
    let (field, arrays) = column(table)?;
    let found = py.detach(|| texts::search(&arrays, piece.as_bytes(), place, threads));
    let field = FieldRef::new(Field::new(field.name(), DataType::Boolean, false));
    Ok(found.map(|found| PyArray::new(field, Arc::new(found))))
}

/// The texts of a table's one column as dictionaries, one an array, of `most` texts at most; `None` where there are more.
#[pyfunction]
#[pyo3(signature = (table, *, most, threads=None))]
pub(crate) fn codes(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    most: u16,
    threads: Option<usize>,
) -> PyResult<Option<Vec<PyArray>>> {
    let (field, arrays) = column(table)?;
    let made = py.detach(|| texts::dictionaries(&arrays, most, threads));
    Ok(made.map(|made| parts(&field, made)))
}

/// Some rows of a table's one column of texts as large UTF-8, in arrays of `piece` rows; `rows` is a table's one column of their
/// numbers.
///
/// `None` where the column is not of texts, or one of these is not UTF-8.
#[pyfunction]
#[pyo3(signature = (table, rows, *, piece, threads=None))]
pub(crate) fn taken(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
    piece: usize,
    threads: Option<usize>,
) -> PyResult<Option<Vec<PyArray>>> {
    let (field, arrays) = column(table)?;
    let (_, rows) = column(rows)?;
    let [rows] = rows.as_slice() else { return Ok(None) };
    let Some(rows) = rows.as_primitive_opt::<UInt64Type>() else { return Ok(None) };
    let made = py.detach(|| texts::take(&arrays, rows.values(), piece, threads));
    Ok(made.map(|made| parts(&field, made)))
}

fn parts(field: &FieldRef, arrays: Vec<ArrayRef>) -> Vec<PyArray> {
    let part = |array: ArrayRef| {
        let field = Field::new(field.name(), array.data_type().clone(), true);
        PyArray::new(FieldRef::new(field), array)
    };
    arrays.into_iter().map(part).collect()
}

/// The one column of a table, which lies in memory.
fn column(table: &Bound<'_, PyAny>) -> PyResult<(FieldRef, Vec<ArrayRef>)> {
    let reader = reader(table)?;
    let schema = reader.schema();
    let [field] = schema.fields().as_ref() else {
        return Err(raise(Error::internal(format!("{} columns, not one", schema.fields().len()))));
    };
    let arrays = reader.map(|batch| batch.map(|batch| batch.column(0).clone()));
    Ok((field.clone(), arrays.collect::<Result<_, _>>().map_err(invalid)?))
}
