//! Python objects read one by one.

mod datetime;
mod numbers;
mod numpy;

use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::class::{Class, Classes};
use crate::fault::{changed_object, python_fault};

pub(crate) use datetime::{
    NANOSECONDS, Temporal, date, delta, interval, temporal, time, time_and_zone, timedelta, uuid,
};
pub(crate) use numbers::{Extent, decimal_text, extent, float, integer, integer_text, is_exact, truth};

/// Lists in lists and dicts in dicts, counted together: Arrow's readers take no more than 64 levels.
const DEEPEST: usize = 60;

/// Why an object could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Python(PyErr),
    /// A value that Arrow cannot hold: what is wrong with it, and what to do.
    Unrepresentable(&'static str, &'static str),
    /// It is not of the type that it was of.
    Changed,
}

impl From<PyErr> for ReadError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// The state that all readings share: the types met so far, and where in the column the reading is.
pub(crate) struct Reader<'py> {
    py: Python<'py>,
    classes: Classes,
    pub(crate) row: usize,
    depth: usize,
    /// Lists that have served, for the entries of the next dicts.
    spare: Vec<Entries<'py>>,
}

type Entries<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

impl<'py> Reader<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, classes: Classes::default(), row: 0, depth: 0, spare: Vec::new() }
    }

    /// The class of an object; NumPy's NaT is nothing, which only its value tells.
    #[inline]
    pub(crate) fn class(&mut self, item: &Bound<'py, PyAny>) -> Result<Class, Fault> {
        let class = self.classes.of(item).map_err(|error| python_fault(self.py, self.row, error))?;
        match class {
            Class::NumpyDatetime | Class::NumpyTimedelta
                if numpy::is_nat(item).map_err(|error| self.fault(error))? =>
            {
                Ok(Class::Null)
            }
            class => Ok(class),
        }
    }

    /// The value of an `Enum`'s member. That of a class which makes one of its own may be a member again, without an end.
    pub(crate) fn value(&mut self, member: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Fault> {
        let value = member.getattr("value").map_err(|error| self.fault(error.into()))?;
        if self.class(&value)? == Class::Enum {
            return Err(Fault::data(self.row, "the value of the enum's member is a member again")
                .with_hint("write the values that the members mean"));
        }
        Ok(value)
    }

    /// The failure to read an object of the row.
    #[cold]
    pub(crate) fn fault(&self, error: ReadError) -> Fault {
        match error {
            ReadError::Python(error) => python_fault(self.py, self.row, error),
            ReadError::Unrepresentable(what, remedy) => Fault::data(self.row, what).with_hint(remedy),
            ReadError::Changed => changed_object(self.row),
        }
    }

    /// Does `each` with the entries of `dict` and their numbers.
    ///
    /// The entries are taken out first, for `each` may run Python, which may change the dict.
    pub(crate) fn entries(
        &mut self,
        dict: &Bound<'py, PyAny>,
        mut each: impl FnMut(&mut Self, usize, &Bound<'py, PyAny>, &Bound<'py, PyAny>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let dict = dict.cast::<PyDict>().map_err(|_| changed_object(self.row))?;
        self.descend()?;
        let mut entries = self.spare.pop().unwrap_or_default();
        entries.extend(dict.iter());
        for (at, (key, value)) in entries.drain(..).enumerate() {
            each(self, at, &key, &value)?;
        }
        self.spare.push(entries);
        self.depth -= 1;
        Ok(())
    }

    /// Does `each` with the values of a list, a tuple or an array, and gives their number.
    pub(crate) fn items(
        &mut self,
        list: &Bound<'py, PyAny>,
        class: Class,
        mut each: impl FnMut(&mut Self, &Bound<'py, PyAny>) -> Result<(), Fault>,
    ) -> Result<usize, Fault> {
        self.descend()?;
        let mut count = 0;
        let mut counted = |reader: &mut Self, item: &Bound<'py, PyAny>| {
            count += 1;
            each(reader, item).map_err(Fault::in_list)
        };
        if class == Class::Array {
            let items = numpy::items(list).map_err(|error| self.fault(error))?;
            items.iter().try_for_each(|item| counted(self, &item))?;
        } else if let Ok(items) = list.cast::<PyList>() {
            items.iter().try_for_each(|item| counted(self, &item))?;
        } else if let Ok(items) = list.cast::<PyTuple>() {
            items.iter().try_for_each(|item| counted(self, &item))?;
        } else {
            return Err(changed_object(self.row));
        }
        self.depth -= 1;
        Ok(count)
    }

    fn descend(&mut self) -> Result<(), Fault> {
        if self.depth == DEEPEST {
            return Err(Fault::data(self.row, "it is nested more than 60 levels deep, or contains itself")
                .with_hint("flatten it, or make JSON text of it"));
        }
        self.depth += 1;
        Ok(())
    }
}

/// Why a text has no form in UTF-8.
pub(crate) const SURROGATE: ReadError = ReadError::Unrepresentable(
    "the text holds a lone surrogate, which UTF-8 has no form of",
    "replace it, with .encode(\"utf-8\", \"replace\").decode() for example",
);

/// A text in UTF-8, which lives as long as its object.
#[inline]
pub(crate) fn text<'a>(item: &'a Bound<'_, PyAny>) -> Result<&'a str, ReadError> {
    item.cast::<PyString>().map_err(|_| ReadError::Changed)?.to_str().map_err(|_| SURROGATE)
}

/// Bytes of any of Python's kinds. What can be written to meanwhile is copied.
pub(crate) fn with_bytes<T>(
    item: &Bound<'_, PyAny>,
    class: Class,
    work: impl FnOnce(&[u8]) -> T,
) -> Result<T, ReadError> {
    match class {
        Class::Bytes => Ok(work(item.cast::<PyBytes>().map_err(|_| ReadError::Changed)?.as_bytes())),
        Class::ByteArray => Ok(work(&item.cast::<PyByteArray>().map_err(|_| ReadError::Changed)?.to_vec())),
        Class::MemoryView => {
            let copy = item.call_method0("tobytes")?;
            Ok(work(copy.cast::<PyBytes>().map_err(|_| ReadError::Changed)?.as_bytes()))
        }
        _ => Err(ReadError::Changed),
    }
}
