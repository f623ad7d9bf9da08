//! A finished column, as Python sees it.

use pyo3::prelude::*;

use crate::memory::number_array;
use crate::pages::zeros;

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
