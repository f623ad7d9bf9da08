//! A column of objects, from its first look to its last array.

use arrow_array::ArrayRef;
use arrow_schema::{Field, FieldRef};
use longshore_core::Result;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::build::{builder, texts};
use crate::class::Class;
use crate::fault::Fault;
use crate::kind::Kind;
use crate::read::{Reader, decimal_text, float};
use crate::seen::Seen;
use crate::settle;
use crate::walk::see;

/// Rows between two looks at Python's signals.
const ROWS: usize = 1 << 16;

/// What becomes of objects that could become one or the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Whether a NaN among the rows, and not within a list or a dict, is NULL.
    pub nan_is_null: bool,
    /// Whether objects of no one type are the text of each.
    pub as_text: bool,
}

/// The objects of a column and the one type that all of them have.
#[derive(Debug)]
pub struct Objects {
    values: Py<PyList>,
    field: FieldRef,
    kind: Kind,
    choices: Choices,
}

impl Objects {
    /// Finds the type of `values`. The list is the caller's own, so that it stays as it is while arrays are made of it.
    pub fn new(values: &Bound<'_, PyList>, name: &str, choices: Choices) -> Result<Self> {
        let kind = kind(values, choices).map_err(|fault| fault.into_error(name))?;
        let field: Field = kind.field(name);
        Ok(Self { values: values.clone().unbind(), field: field.into(), kind, choices })
    }

    /// The Arrow field.
    #[must_use]
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The array of the rows from `start` up to `end`, or up to the last.
    pub fn array(&self, py: Python<'_>, start: usize, end: usize) -> Result<ArrayRef> {
        self.made(py, start, end).map_err(|fault| fault.into_error(self.field.name()))
    }

    fn made(&self, py: Python<'_>, start: usize, end: usize) -> Result<ArrayRef, Fault> {
        let values = self.values.bind(py);
        let mut reader = Reader::new(py);
        let rows = start..end.min(values.len());
        if let Kind::Text { large } = self.kind {
            let mut objects = Vec::with_capacity(rows.len());
            for row in rows {
                let item = item(&mut reader, values, row)?;
                let is_null = is_null(&mut reader, &item, self.choices)?;
                objects.push(if is_null { None } else { Some(item) });
            }
            let make = if large { texts::<i64> } else { texts::<i32> };
            return make(&mut reader, &objects, start);
        }
        let mut builder = builder(&self.kind, rows.len());
        for row in rows {
            let item = item(&mut reader, values, row)?;
            if is_null(&mut reader, &item, self.choices)? {
                builder.push_nulls(1);
                continue;
            }
            let class = reader.class(&item)?;
            builder.push(&mut reader, &item, class)?;
        }
        Ok(builder.finish())
    }
}

fn kind(values: &Bound<'_, PyList>, choices: Choices) -> Result<Kind, Fault> {
    let mut reader = Reader::new(values.py());
    let found = look(&mut reader, values, choices).and_then(|seen| settle::column(&seen, choices.as_text));
    match found {
        Err(fault) if choices.as_text && !fault.is_raised() => Ok(Kind::Shown),
        found => found,
    }
}

fn look<'py>(reader: &mut Reader<'py>, values: &Bound<'py, PyList>, choices: Choices) -> Result<Seen, Fault> {
    let mut seen = Seen::default();
    for row in 0..values.len() {
        let item = item(reader, values, row)?;
        if row % ROWS == 0 {
            reader.py().check_signals().map_err(|error| Fault::python(reader.py(), row, error))?;
        }
        if !is_null(reader, &item, choices)? {
            see(reader, &item, &mut seen)?;
        }
    }
    Ok(seen)
}

fn item<'py>(
    reader: &mut Reader<'py>,
    values: &Bound<'py, PyList>,
    row: usize,
) -> Result<Bound<'py, PyAny>, Fault> {
    reader.row = row;
    values.get_item(row).map_err(|_| Fault::changed(row))
}

/// Whether a row's value is missing.
#[inline]
fn is_null<'py>(reader: &mut Reader<'py>, item: &Bound<'py, PyAny>, choices: Choices) -> Result<bool, Fault> {
    let class = reader.class(item)?;
    let is_nan = match class {
        Class::Null => return Ok(true),
        Class::Float | Class::NumpyFloat if choices.nan_is_null => float(item, class).map(f64::is_nan),
        Class::Decimal if choices.nan_is_null => decimal_text(item, class).map(|text| text.ends_with("NaN")),
        _ => return Ok(false),
    };
    is_nan.map_err(|misread| reader.fault(misread))
}
