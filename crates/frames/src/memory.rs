//! A vector's memory lent to NumPy without a copy.
//!
//! NumPy takes the memory through its array interface, the one protocol by which it takes arrays of objects
//! too. It keeps the [`Memory`] as the array's base, and so alive.

use std::any::Any;

use arrow_buffer::ArrowNativeType;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The memory of one NumPy array.
#[pyclass(frozen, module = "longshore._core")]
pub struct Memory {
    address: usize,
    items: usize,
    /// NumPy's own notation of byte order, kind and size.
    typestr: String,
    /// Keeps the address valid; touched again only to be dropped. Its heap memory does not move with the box.
    _values: Box<dyn Any + Send + Sync>,
}

#[pymethods]
impl Memory {
    /// The array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.items,))?;
        interface.set_item("typestr", &self.typestr)?;
        // Not read-only: pandas writes in place.
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}

/// The NumPy array of `dtype` over `values`, whose memory it takes. NumPy may write any bits there: each is a number.
///
/// Their alignment is at most 16, so that the allocator grows a large vector by remapping pages, not by copying.
pub(crate) fn number_array<'py, T: ArrowNativeType>(
    py: Python<'py>,
    values: Vec<T>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    array(py, values, dtype)
}

/// The NumPy array of dtype `object` over `objects`, whose memory it takes.
pub(crate) fn object_array(py: Python<'_>, objects: Vec<Py<PyAny>>) -> PyResult<Bound<'_, PyAny>> {
    const { assert!(size_of::<Option<Py<PyAny>>>() == size_of::<usize>()) };
    // NumPy's slots may be null pointers, as `None` is here. The collection reuses the memory.
    let slots: Vec<Option<Py<PyAny>>> = objects.into_iter().map(Some).collect();
    array(py, slots, "O")
}

fn array<'py, T: Send + Sync + 'static>(
    py: Python<'py>,
    mut values: Vec<T>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    if values.is_empty() {
        return numpy.call_method1("empty", (0, dtype));
    }
    values.shrink_to_fit();
    let memory = Memory {
        address: values.as_mut_ptr().expose_provenance(),
        items: values.len(),
        typestr: numpy.call_method1("dtype", (dtype,))?.getattr("str")?.extract()?,
        _values: Box::new(values),
    };
    numpy.call_method1("asarray", (memory,))
}
