//! `longshore._core`: hands over between Python and the Rust crates, and does nothing else.

mod array;
mod block;
mod borrowed;
mod describe;
mod error;
mod given;
mod guest;
mod incoming;
mod limit;
mod objects;
mod params;
mod port;
mod progress;
mod read;
mod registry;
mod result;
mod rows;
mod signals;
mod source;
mod stream;
mod switch;
mod table;
mod taker;
mod target;
mod trim;
mod types;
mod warn;
mod write;

use longshore_core::memory::Reserving;
use pyo3::prelude::*;

/// Has what would end the process for want of memory be an error; see `docs/design/memory.md`.
#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read::open_read, module)?)?;
    module.add_function(wrap_pyfunction!(describe::describe, module)?)?;
    module.add_function(wrap_pyfunction!(describe::partition, module)?)?;
    module.add_function(wrap_pyfunction!(result::open_result, module)?)?;
    module.add_function(wrap_pyfunction!(source::first_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(limit::memory_left, module)?)?;
    module.add_function(wrap_pyfunction!(limit::room_for_thread, module)?)?;
    module.add_function(wrap_pyfunction!(limit::with_reserve, module)?)?;
    module.add_function(wrap_pyfunction!(write::write, module)?)?;
    module.add_function(wrap_pyfunction!(write::copy, module)?)?;
    module.add_function(wrap_pyfunction!(objects::texts, module)?)?;
    module.add_function(wrap_pyfunction!(given::search, module)?)?;
    module.add_function(wrap_pyfunction!(given::taken, module)?)?;
    module.add_function(wrap_pyfunction!(given::codes, module)?)?;
    module.add_class::<read::Reading>()?;
    module.add_class::<result::Begun>()?;
    module.add_class::<source::PyTarget>()?;
    module.add_class::<borrowed::PySqliteConnection>()?;
    module.add_class::<longshore_arrow_source::ArrowConnection>()?;
    module.add_class::<source::PyPool>()?;
    module.add_class::<source::PyHeld>()?;
    module.add_class::<source::PyConnection>()?;
    module.add_class::<switch::Switch>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<stream::Batch>()?;
    module.add_class::<stream::Schema>()?;
    module.add_class::<longshore_frames::Column>()?;
    module.add_class::<objects::PyObjects>()?;
    module.add_class::<array::PyArray>()?;
    module.add_class::<port::Port>()?;
    module.add_class::<rows::Plan>()?;
    module.add_class::<taker::PyDescription>()?;
    module.add_class::<guest::PyKnowledge>()?;
    module.add_class::<guest::PyInquiry>()?;
    module.add_class::<guest::PyAnswers>()?;
    module.add_class::<guest::PyArrival>()?;
    module.add_class::<rows::PyRows>()?;
    module.add("SCHEMES", registry::schemes())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
