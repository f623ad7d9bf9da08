//! `longshore._core`: hands over between Python and the Rust crates, and does nothing else.

mod asyncpg;
mod blocks;
mod buffer;
mod catalogue;
mod columns;
mod cursor;
mod describe;
mod interrupt;
mod limit;
mod lines;
mod policy;
mod progress;
mod read;
mod registry;
mod result;
mod server;
mod source;
mod statement;
mod store;
mod stream;
mod target;
mod trino;
mod types;
mod warn;
mod write;

use longshore_core::memory::Reserving;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Has what would end the process for want of memory be an error; see `docs/design/memory.md`.
#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read::open_read, module)?)?;
    module.add_function(wrap_pyfunction!(describe::describe, module)?)?;
    module.add_function(wrap_pyfunction!(describe::parameters, module)?)?;
    module.add_function(wrap_pyfunction!(describe::table_schema, module)?)?;
    module.add_function(wrap_pyfunction!(read::tables, module)?)?;
    module.add_function(wrap_pyfunction!(describe::partition, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::objects, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::statistics, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::current, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::table_types, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::has_table, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::temporary_schema, module)?)?;
    module.add_function(wrap_pyfunction!(result::open_result, module)?)?;
    module.add_function(wrap_pyfunction!(source::first_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(limit::memory_left, module)?)?;
    module.add_function(wrap_pyfunction!(limit::check_available_for_thread, module)?)?;
    module.add_function(wrap_pyfunction!(limit::with_reserve, module)?)?;
    module.add_function(wrap_pyfunction!(write::write, module)?)?;
    module.add_function(wrap_pyfunction!(write::copy, module)?)?;
    module.add_function(wrap_pyfunction!(write::mysql_columns, module)?)?;
    module.add_function(wrap_pyfunction!(write::mysql_new_table, module)?)?;
    module.add_function(wrap_pyfunction!(write::postgresql_columns, module)?)?;
    module.add_function(wrap_pyfunction!(write::postgresql_copy, module)?)?;
    module.add_function(wrap_pyfunction!(write::postgresql_inlined, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::block, module)?)?;
    module.add_function(wrap_pyfunction!(lines::csv_lines, module)?)?;
    module.add_function(wrap_pyfunction!(lines::json_lines, module)?)?;
    module.add_function(wrap_pyfunction!(lines::file_texts, module)?)?;
    module.add_function(wrap_pyfunction!(columns::texts, module)?)?;
    module.add_function(wrap_pyfunction!(columns::search, module)?)?;
    module.add_function(wrap_pyfunction!(columns::codes, module)?)?;
    module.add_function(wrap_pyfunction!(target::url_query, module)?)?;
    module.add_function(wrap_pyfunction!(target::url_settings, module)?)?;
    module.add_function(wrap_pyfunction!(statement::sql_places, module)?)?;
    module.add_function(wrap_pyfunction!(statement::sql_statements, module)?)?;
    module.add_function(wrap_pyfunction!(statement::sql_words, module)?)?;
    module.add_function(wrap_pyfunction!(trino::trino_answer, module)?)?;
    module.add_class::<trino::TrinoPages>()?;
    module.add_class::<read::Reading>()?;
    module.add_class::<result::EngineStream>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<store::StoreTransaction>()?;
    module.add_class::<store::StoreTable>()?;
    module.add_class::<store::StoreScan>()?;
    module.add_function(wrap_pyfunction!(server::user_line, module)?)?;
    module.add_class::<server::FlightServer>()?;
    module.add_class::<source::PyTarget>()?;
    module.add_class::<longshore_arrow_source::SqliteConnection>()?;
    module.add_class::<longshore_arrow_source::MySqlConnection>()?;
    module.add_class::<longshore_arrow_source::ArrowConnection>()?;
    module.add_class::<source::PyPool>()?;
    module.add_class::<source::PyHold>()?;
    module.add_class::<source::PyConnection>()?;
    module.add_class::<cursor::StatementResult>()?;
    module.add_class::<interrupt::CancelHandle>()?;
    module.add_class::<longshore_interpreter::capsule::Table>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<longshore_interpreter::capsule::Batch>()?;
    module.add_class::<longshore_interpreter::capsule::Schema>()?;
    module.add_class::<longshore_frames::Column>()?;
    module.add_class::<columns::PyObjects>()?;
    module.add_class::<longshore_interpreter::capsule::Array>()?;
    module.add_class::<asyncpg::PyPort>()?;
    module.add_class::<asyncpg::Plan>()?;
    module.add_class::<asyncpg::PyDescription>()?;
    module.add_class::<asyncpg::PyTypeCache>()?;
    module.add_class::<asyncpg::PyInquiry>()?;
    module.add_class::<asyncpg::PyAnswers>()?;
    module.add_class::<asyncpg::PyArrival>()?;
    module.add_class::<asyncpg::PyRows>()?;
    let [read, own] = policy::declared_options(module.py())?;
    module.add("READ_OPTIONS", read)?;
    module.add("SOURCE_OPTIONS", own)?;
    module.add("CATALOGUES", catalogue::catalogues(module.py())?)?;
    module.add("SCHEMES", longshore_registry::schemes().into_py_dict(module.py())?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
