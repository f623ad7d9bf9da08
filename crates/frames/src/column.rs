//! A finished column, as Python sees it, and its mask.

use arrow_buffer::NullBuffer;
use longshore_core::memory::OutOfMemory;
use pyo3::prelude::*;

use crate::memory::{number_array, try_reserve, zeros};

/// One finished column; `longshore.frames` makes the frame's own column of it.
#[pyclass(frozen, get_all, module = "longshore._core")]
#[derive(Debug)]
pub struct Column {
    /// The name in the frame.
    pub name: String,
    /// `numbers`, `objects`, `dictionary` or `chunks`.
    pub kind: &'static str,
    /// The NumPy array of values or codes, or the list of Arrow arrays.
    pub data: Py<PyAny>,
    /// Whether NULLs show in `mask` and nowhere else.
    pub masked: bool,
    /// The NumPy array of booleans, true where a row is NULL; `None` where no row is.
    pub mask: Option<Py<PyAny>>,
    /// The list of a dictionary's labels.
    pub labels: Option<Py<PyAny>>,
    /// Whether the labels are in a meaningful order.
    pub ordered: bool,
    /// The time zone in which a timestamp's instants are shown.
    pub timezone: Option<String>,
    /// Whether the values are strings.
    pub text: bool,
}

#[pymethods]
impl Column {
    /// A mask for a column that has none: false for every row.
    fn no_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.data.bind(py).len()?;
        match zeros(rows) {
            Some(zeros) => number_array(py, zeros, "bool"),
            None => py.import("numpy")?.call_method1("zeros", (rows, "bool")),
        }
    }
}

impl Column {
    /// Values without a mask, which have neither a name nor a time zone yet.
    pub(crate) fn new(kind: &'static str, data: Bound<'_, PyAny>) -> Self {
        Self {
            name: String::new(),
            kind,
            data: data.unbind(),
            masked: false,
            mask: None,
            labels: None,
            ordered: false,
            timezone: None,
            text: false,
        }
    }
}

/// The rows that are NULL: one byte a row, 1 for NULL, as NumPy and pandas want it. Holds nothing until there is one.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    rows: usize,
    bytes: Vec<u8>,
}

impl Mask {
    /// Adds `rows` rows, those of `nulls` NULL.
    pub(crate) fn extend(&mut self, nulls: Option<&NullBuffer>, rows: usize) -> Result<(), OutOfMemory> {
        let before = self.rows;
        self.rows += rows;
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let Some(nulls) = nulls else {
            if !self.bytes.is_empty() {
                try_reserve(&mut self.bytes, rows)?;
                self.bytes.resize(self.rows, 0);
            }
            return Ok(());
        };
        let missing = self.rows - self.bytes.len();
        try_reserve(&mut self.bytes, missing)?;
        self.bytes.resize(before, 0);
        self.bytes.extend(nulls.iter().map(|valid| u8::from(!valid)));
        Ok(())
    }

    /// The memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The mask's bytes; `None` where there was no NULL.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        (!self.bytes.is_empty()).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_until_the_first_null_and_then_every_row() {
        let mut mask = Mask::default();
        mask.extend(None, 2).unwrap();
        mask.extend(Some(&NullBuffer::new_valid(1)), 1).unwrap();
        assert_eq!(mask.bytes(), 0);
        mask.extend(Some(&NullBuffer::from(vec![true, false])), 2).unwrap();
        mask.extend(None, 1).unwrap();
        assert_eq!(mask.finish(), Some(vec![0, 0, 0, 0, 1, 0]));
    }

    #[test]
    fn a_null_in_the_first_row() {
        let mut mask = Mask::default();
        mask.extend(Some(&NullBuffer::new_null(1)), 1).unwrap();
        assert_eq!(mask.finish(), Some(vec![1]));
    }
}
