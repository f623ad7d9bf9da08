//! Memory that Python's objects lend by the buffer protocol.

use std::cell::Cell;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

/// The elements of a buffer; `None` where they do not lie one after another. Others may change them between two calls.
#[must_use]
#[allow(unsafe_code)]
pub(crate) fn elements<'a, T: Element>(_py: Python<'a>, buffer: &'a PyBuffer<T>) -> Option<&'a [Cell<T>]> {
    let elements = buffer.as_slice_ptr()?.as_ptr() as *const [Cell<T>];
    // SAFETY: a `PyBuffer` has looked at type and alignment, and keeps its elements where they are for as long as it lives. This
    // thread has the interpreter's lock, and a `Cell` stays on it: who writes to the memory does not meanwhile.
    Some(unsafe { &*elements })
}
