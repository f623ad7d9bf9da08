//! The SQL engine's two edges: `DuckDB`'s Arrow stream becomes the batches that every frame takes, and texts are made ready for it.
//!
//! The engine exports some types as bytes that only it can read, others with values that Arrow's consumers would take for
//! others. [`EngineBatches`] makes each of them exact, or an error with column, row and remedy; the table is in `types.rs`.

mod clickhouse;
mod datetime;
mod error;
mod result;
mod text;
pub mod texts;
mod types;

pub use error::{error_of, stream_error};
pub use result::{EngineBatches, Exact, ValueOptions};
