//! Memory that Python reads and writes in place.

use std::ffi::c_int;

use longshore_numpy_records::Memory;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use longshore_interpreter::raise;

/// A block of memory that neither moves nor changes its size while Python has a view of it: a longer one is another block.
///
/// What an event loop receives into is read and written by those alone who hold the interpreter's lock: Rust, which runs no
/// Python code meanwhile, and Python through a view. What a result has been made in is Python's alone from then on.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Block(Memory);

impl Block {
    /// `size` zeros.
    pub(crate) fn new(size: usize) -> PyResult<Self> {
        Memory::new(size).map(Self).map_err(|no_room| raise(no_room.into()))
    }

    /// The bytes of a vector.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    /// The bytes. `use_` runs no Python code.
    #[allow(unsafe_code)]
    pub(crate) fn read<T>(&self, _: Python<'_>, use_: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the interpreter's lock is held until `use_` returns, which runs no code that might write meanwhile.
        unsafe { self.0.read(use_) }
    }

    /// Moves the bytes of `from` to the beginning of `into`, which may be this block.
    #[allow(unsafe_code)]
    pub(crate) fn shift(&self, _: Python<'_>, from: std::ops::Range<usize>, into: &Self) {
        // SAFETY: the interpreter's lock is held, and `read` has returned.
        unsafe { self.0.shift(from, &into.0) };
    }
}

#[pymethods]
impl Block {
    // The interface gives a value.
    #[allow(unsafe_code, clippy::needless_pass_by_value)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let memory = &slf.get().0;
        let length = memory.len().cast_signed();
        // SAFETY: the address is valid for as long as the block, which the view keeps alive; `view` is the caller's, and
        // not null.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), memory.start().cast(), length, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
