//! Rows that go into NumPy's memory next to asyncpg.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_core::Error;
use longshore_core::memory::{Budget, MemoryLimit, NoRoom};
use longshore_numpy_records::{Column, Fault, Field, Form, Leaf, Mismatch, Rows, Shape, Step, Unit, plan};
use longshore_postgres::native_name;
use pyo3::prelude::*;

use crate::block::Block;
use crate::taker::Taker;
use longshore_interpreter::raise;

/// A field of a dtype: NumPy's kind, offset and size, the unit of a time, and the numbers that a void is made of.
type PyField = (char, usize, usize, Option<(String, i64)>, Vec<(char, usize, usize)>);

#[derive(FromPyObject)]
enum PyShape {
    Records(usize),
    Blocks(Vec<Vec<usize>>),
}

impl From<PyShape> for Shape {
    fn from(shape: PyShape) -> Self {
        match shape {
            PyShape::Records(size) => Self::Records(size),
            PyShape::Blocks(groups) => Self::Blocks(groups),
        }
    }
}

/// Which column of a statement goes into which field of a dtype, and how.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Plan {
    steps: Vec<Step>,
    shape: Shape,
}

#[pymethods]
impl Plan {
    /// The plan; or the index of the first field that does not take its column.
    ///
    /// `columns` are the OIDs of the types, and whether their cells come in binary; `shape` is the bytes of a record, or the
    /// columns of each block.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        columns: Vec<(u32, bool)>,
        fields: Vec<PyField>,
        shape: PyShape,
    ) -> PyResult<Py<PyAny>> {
        let columns: Vec<Column> = columns
            .into_iter()
            .map(|(oid, binary)| Column { native: native_name(oid).unwrap_or_default(), binary })
            .collect();
        let fields: Vec<Field> = fields.into_iter().map(field).collect();
        match plan(&columns, &fields) {
            Ok(steps) => {
                let shape = shape.into();
                if !Shape::holds(&shape, &steps) {
                    return Err(raise(Error::internal("a field has no place in its array")));
                }
                Ok(Py::new(py, Self { steps, shape })?.into_any())
            }
            Err(Mismatch::Field(index)) => Ok(index.into_pyobject(py)?.into_any().unbind()),
            Err(Mismatch::Count(fields, columns)) => {
                Err(raise(Error::internal(format!("{fields} fields for {columns} columns"))))
            }
        }
    }

    /// No rows yet, but room for as many as may come.
    fn rows(&self, expected: u64) -> PyRows {
        let mut rows = Rows::new(self.steps.clone(), &self.shape);
        rows.expect(expected);
        PyRows(Arc::new(Mutex::new(Kept { rows, budget: Budget::new(MemoryLimit::Auto), failure: None })))
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

/// Rows, and what they may hold.
pub(crate) struct Kept {
    rows: Rows,
    budget: Budget,
    /// Why no more are taken, where memory is why.
    failure: Option<Error>,
}

impl Taker for Kept {
    fn push(&mut self, message: &[u8]) {
        if self.failure.is_none()
            && let Err(error) = self.budget.grow(message.len())
        {
            self.rows.fail(None, Fault::NoRoom);
            self.failure = Some(error);
        }
        self.rows.push(message);
    }

    fn take_objects(&mut self) -> Option<Vec<u8>> {
        self.rows.take_objects()
    }
}

/// What was wrong with a row.
type PyFailure = (Option<usize>, u64, String, &'static str);

/// The rows of one result.
#[pyclass(frozen, name = "Rows", module = "longshore._core")]
pub(crate) struct PyRows(Arc<Mutex<Kept>>);

impl PyRows {
    pub(crate) fn shared(&self) -> Arc<Mutex<Kept>> {
        self.0.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyRows {
    #[getter]
    fn count(&self) -> u64 {
        self.kept().rows.count()
    }

    /// What was wrong: the column's index, the row, what, and what to do. No column where the whole row is at fault.
    ///
    /// Raises where there was no memory.
    fn failure(&self) -> PyResult<Option<PyFailure>> {
        let mut kept = self.kept();
        let Some(failure) = kept.rows.failure() else { return Ok(None) };
        if failure.fault == Fault::NoRoom {
            return Err(raise(kept.failure.take().unwrap_or_else(|| NoRoom.into())));
        }
        let (what, hint) = failure.fault.text();
        Ok(Some((failure.column, failure.row, what, hint)))
    }

    /// The memory of the records, or that of each block, and the indexes of the NULLs.
    fn finish(&self) -> (Vec<Block>, Vec<u64>) {
        let rows = std::mem::replace(&mut self.kept().rows, Rows::new(Vec::new(), &Shape::Records(0)));
        let (memories, nulls) = rows.finish();
        (memories.into_iter().map(Block::of).collect(), nulls)
    }
}
