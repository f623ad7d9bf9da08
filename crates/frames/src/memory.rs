//! The memory of large columns: mapped by itself, so that it grows by moving pages and not by copying bytes, and handed to NumPy
//! without a copy.
//!
//! NumPy takes it through its array interface, the one protocol by which it takes arrays of objects too. It keeps the [`Memory`]
//! as the array's base, and so alive.

use std::any::Any;

use arrow_buffer::ArrowNativeType;
use longshore_core::memory::{self, OutOfMemory};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// From this size on a column has pages of its own.
const LARGE: usize = 1 << 20;

/// From this size on it has them as soon as it grows.
const GROWING: usize = 128 << 10;

/// More than glibc ever takes from memory that it keeps: the largest `M_MMAP_THRESHOLD` (mallopt(3)), and one.
const MAPPED: usize = (32 << 20) + 1;

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

/// Has `values` take `more` without a copy of those it has, if it is large.
pub(crate) fn try_reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    let wanted = (values.len() + more).max(values.capacity() * 2);
    if wanted * size_of::<T>() < LARGE && values.capacity() * size_of::<T>() < GROWING {
        return memory::try_reserve(values, more);
    }
    // Pages that are never touched are never there, but a system may have promised all that it has.
    let wanted = wanted.max(MAPPED.div_ceil(size_of::<T>()));
    values.try_reserve_exact(wanted - values.len()).or_else(|_| memory::try_reserve(values, more))
}

/// So many zeros, which take no memory until something else is written among them; `None` for few, or without memory.
pub(crate) fn zeros(count: usize) -> Option<Vec<u8>> {
    if count < GROWING {
        return None;
    }
    let mut zeros = memory::zeros(count.max(MAPPED)).ok()?;
    zeros.truncate(count);
    zeros.shrink_to_fit();
    Some(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_as_many_as_asked_for() {
        assert_eq!(zeros(GROWING - 1), None);
        for count in [GROWING, MAPPED + 1] {
            let zeros = zeros(count).unwrap();
            assert_eq!((zeros.len(), zeros.capacity()), (count, count));
            assert!(zeros.iter().all(|zero| *zero == 0));
        }
    }

    #[test]
    fn a_small_column_takes_no_more_than_a_vector_would() {
        let mut values = vec![1_u8; 100];
        try_reserve(&mut values, 1).unwrap();
        assert!(values.capacity() < 1000);
    }

    #[test]
    fn a_large_column_grows_and_keeps_its_values() {
        let mut values: Vec<u64> = Vec::new();
        for start in (0..12_u64 << 20).step_by(1 << 17) {
            try_reserve(&mut values, 1 << 17).unwrap();
            let room = values.capacity();
            values.extend(start..start + (1 << 17));
            assert_eq!(values.capacity(), room);
        }
        assert!(values.iter().copied().eq(0..12 << 20));
        values.shrink_to_fit();
        assert_eq!(values.capacity(), 12 << 20);
    }
}
