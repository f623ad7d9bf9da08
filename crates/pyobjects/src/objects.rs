//! A column of objects, from its first look to its last array.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::{Field, FieldRef};
use longshore_core::Result;
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::build::builder;
use crate::class::Class;
use crate::fault::{changed_object, is_raised, locate, python_fault};
use crate::kind::Kind;
use crate::profile::Profile;
use crate::read::{Reader, decimal_text, float};
use crate::slots::Slots;

/// Rows between two looks at Python's signals.
const ROWS: usize = 1 << 16;

/// Bytes of the longest text that a view tells.
const LONGEST: usize = i32::MAX as usize;

/// The treatment of objects that could become one or the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Whether a NaN among the rows, and not within a list or a dict, is NULL.
    pub nan_is_null: bool,
    /// Whether objects not of one type are the text of each.
    pub as_text: bool,
}

/// The objects of a column and the one type that all of them have.
#[derive(Debug)]
pub struct Objects {
    values: Py<PyAny>,
    rows: usize,
    field: FieldRef,
    kind: Kind,
    choices: Choices,
}

impl Objects {
    /// Finds the type of `values`, a NumPy array of objects.
    pub fn new(values: &Bound<'_, PyAny>, name: &str, choices: Choices) -> Result<Self> {
        let slots = Slots::of(values)?;
        let kind = kind(values.py(), &slots, choices).map_err(|fault| locate(fault, name))?;
        let field: Field = kind.field(name);
        Ok(Self { values: values.clone().unbind(), rows: slots.len(), field: field.into(), kind, choices })
    }

    /// The Arrow field.
    #[must_use]
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The array of the rows from `start` up to `end`, or up to the last.
    pub fn array(&self, py: Python<'_>, start: usize, end: usize) -> Result<ArrayRef> {
        let slots = Slots::of(self.values.bind(py))?;
        let end = end.min(self.rows);
        self.build(py, &slots, start.min(end)..end).map_err(|fault| locate(fault, self.field.name()))
    }

    fn build<'py>(&self, py: Python<'py>, slots: &Slots<'py>, rows: Range<usize>) -> Result<ArrayRef, Fault> {
        // A shorter array would look complete.
        if slots.len() != self.rows {
            return Err(changed_object(rows.start));
        }
        let mut reader = Reader::new(py);
        let mut builder = builder(&self.kind, rows.len());
        for row in rows {
            match item(&mut reader, slots, row, self.choices)? {
                None => builder.push_nulls(1),
                Some((item, class)) => builder.push(&mut reader, &item, class)?,
            }
        }
        Ok(builder.finish())
    }
}

/// The arrays of a column of texts and what is missing, `chunk` rows in each, in one pass; `None` for every other column.
pub fn texts(
    values: &Bound<'_, PyAny>,
    name: &str,
    choices: Choices,
    chunk: usize,
) -> Result<Option<Vec<ArrayRef>>> {
    let (py, slots) = (values.py(), Slots::of(values)?);
    let mut reader = Reader::new(py);
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut has_text = false;
    for start in (0..slots.len()).step_by(chunk.max(1)) {
        py.check_signals().map_err(|error| locate(python_fault(py, start, error), name))?;
        let end = slots.len().min(start.saturating_add(chunk));
        let mut array = StringViewBuilder::with_capacity(end - start);
        for row in start..end {
            match item(&mut reader, &slots, row, choices) {
                Ok(None) => array.append_null(),
                Ok(Some((item, Class::Text))) => {
                    let text = item.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
                    let Some(text) = text.filter(|text| text.len() <= LONGEST) else { return Ok(None) };
                    array.append_value(text);
                    has_text = true;
                }
                Err(fault) if is_raised(&fault) => return Err(locate(fault, name)),
                _ => return Ok(None),
            }
        }
        arrays.push(Arc::new(array.finish()));
    }
    Ok(has_text.then_some(arrays))
}

fn kind(py: Python<'_>, slots: &Slots<'_>, choices: Choices) -> Result<Kind, Fault> {
    let found =
        profile_of(py, slots, choices).and_then(|profile| crate::kind::infer(&profile, choices.as_text));
    match found {
        Err(fault) if choices.as_text && !is_raised(&fault) => Ok(Kind::Str),
        found => found,
    }
}

fn profile_of<'py>(py: Python<'py>, slots: &Slots<'py>, choices: Choices) -> Result<Profile, Fault> {
    let mut reader = Reader::new(py);
    let mut profile = Profile::default();
    for row in 0..slots.len() {
        if row % ROWS == 0 {
            py.check_signals().map_err(|error| python_fault(py, row, error))?;
        }
        if let Some((item, _)) = item(&mut reader, slots, row, choices)? {
            profile.add(&mut reader, &item)?;
        }
    }
    Ok(profile)
}

/// The object of a row and its class; `None` if it is missing.
#[inline]
fn item<'py>(
    reader: &mut Reader<'py>,
    slots: &Slots<'py>,
    row: usize,
    choices: Choices,
) -> Result<Option<(Bound<'py, PyAny>, Class)>, Fault> {
    reader.row = row;
    let Some(mut item) = slots.get(row) else { return Ok(None) };
    let mut found = class(reader, &item, choices)?;
    if found == Some(Class::Enum) {
        item = reader.value(&item)?;
        found = class(reader, &item, choices)?;
    }
    Ok(found.map(|class| (item, class)))
}

/// The class of an object among the rows; `None` if it says that there is nothing.
#[inline]
fn class<'py>(
    reader: &mut Reader<'py>,
    item: &Bound<'py, PyAny>,
    choices: Choices,
) -> Result<Option<Class>, Fault> {
    let class = reader.class(item)?;
    let is_nan = match class {
        Class::Null => return Ok(None),
        Class::Float | Class::NumpyFloat if choices.nan_is_null => float(item, class).map(f64::is_nan),
        Class::Decimal if choices.nan_is_null => decimal_text(item, class).map(|text| text.ends_with("NaN")),
        _ => return Ok(Some(class)),
    };
    let is_nan = is_nan.map_err(|error| reader.fault(error))?;
    Ok((!is_nan).then_some(class))
}
