//! Rows that go into NumPy's memory beside asyncpg.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_core::Error;
use longshore_postgres::native_name;
use longshore_rows::{Column, Field, Form, Layout, Leaf, Mismatch, Rows, Step, Unit, block, plan};
use pyo3::prelude::*;

use crate::block::Block;
use crate::error::raise;

/// A field of a dtype: NumPy's kind, offset and size, the unit of a time, and the numbers that a void is made of.
type PyField = (char, usize, usize, Option<(String, i64)>, Vec<(char, usize, usize)>);

/// Which column of a statement goes into which field of a dtype, and how.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// The bytes of a record; `None` where each column is an array of its own.
    size: Option<usize>,
}

#[pymethods]
impl Plan {
    /// The plan; or the index of the first field that does not take its column.
    ///
    /// `columns` are the OIDs of the types, and whether their cells come in binary.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        columns: Vec<(u32, bool)>,
        fields: Vec<PyField>,
        size: Option<usize>,
    ) -> PyResult<Py<PyAny>> {
        let columns: Vec<Column> = columns
            .into_iter()
            .map(|(oid, binary)| Column { native: native_name(oid).unwrap_or_default(), binary })
            .collect();
        let fields: Vec<Field> = fields.into_iter().map(field).collect();
        if let Some(size) = size.filter(|size| fields.iter().any(|field| field.offset + field.size > *size)) {
            return Err(raise(Error::internal(format!(
                "a field lies beyond the {size} bytes of its record"
            ))));
        }
        match plan(&columns, &fields) {
            Ok(steps) => Ok(Py::new(py, Self { steps, size })?.into_any()),
            Err(Mismatch::Field(index)) => Ok(index.into_pyobject(py)?.into_any().unbind()),
            Err(Mismatch::Count(fields, columns)) => {
                Err(raise(Error::internal(format!("{fields} fields for {columns} columns"))))
            }
        }
    }

    /// No rows yet, but room for as many as may come.
    fn rows(&self, expected: u64) -> PyRows {
        let mut rows = Rows::new(self.steps.clone(), self.size);
        rows.expect(expected);
        PyRows(Arc::new(Mutex::new(rows)))
    }
}

fn field((kind, offset, size, unit, leaves): PyField) -> Field {
    let (name, multiple) = unit.unwrap_or_default();
    let unit = Unit { name, multiple };
    let form = match kind {
        'b' => Form::Bool,
        'i' => Form::Signed,
        'u' => Form::Unsigned,
        'f' => Form::Float,
        'M' => Form::Instant(unit),
        'm' => Form::Duration(unit),
        'S' => Form::Bytes,
        'U' => Form::Characters,
        'V' => Form::Void(leaves.into_iter().map(leaf).collect()),
        'O' => Form::Object,
        _ => Form::Other,
    };
    Field { form, offset, size }
}

fn leaf((kind, size, offset): (char, usize, usize)) -> Leaf {
    Leaf { kind, size, offset }
}

/// The rows of one result.
#[pyclass(frozen, name = "Rows", module = "longshore._core")]
pub(crate) struct PyRows(Arc<Mutex<Rows>>);

impl PyRows {
    pub(crate) fn shared(&self) -> Arc<Mutex<Rows>> {
        self.0.clone()
    }
}

#[pymethods]
impl PyRows {
    #[getter]
    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// What was wrong: the column's index, the row, what, and what to do. No column where the whole row is at fault.
    fn failure(&self) -> Option<(Option<usize>, u64, String, &'static str)> {
        let failure = self.0.lock().unwrap_or_else(PoisonError::into_inner).failure()?;
        let (what, hint) = failure.fault.text();
        Some((failure.column, failure.row, what, hint))
    }

    /// The memory of the records, or that of each group of columns, and the indexes of the NULLs. `groups` names the
    /// columns of each.
    fn finish(&self, groups: Vec<Vec<usize>>) -> (Vec<Block>, Vec<u64>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = std::mem::replace(&mut *held, Rows::new(Vec::new(), None));
        drop(held);
        let (layout, nulls) = rows.finish();
        let memories = match layout {
            Layout::Records { memory, .. } => vec![memory],
            Layout::Columns(mut columns) => groups
                .into_iter()
                .map(|group| {
                    block(group.into_iter().map(|index| std::mem::take(&mut columns[index])).collect())
                })
                .collect(),
        };
        (memories.into_iter().map(Block::of).collect(), nulls)
    }
}
