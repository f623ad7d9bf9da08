//! The SQL engine's two edges: `DuckDB`'s Arrow stream becomes the batches that every frame takes, and texts are made ready for it.
//!
//! The engine exports some types as bytes that only it can read, others with values that Arrow's consumers would misread.
//! [`Exported`] makes each of them exact, or an error with column, row and remedy; the table is in `table.rs`.

mod apart;
mod error;
mod exported;
mod fault;
pub mod given;
mod plan;
mod table;
mod values;

pub use apart::Apart;
pub use error::error_of;
pub use exported::{Exported, Odds, stopped};
