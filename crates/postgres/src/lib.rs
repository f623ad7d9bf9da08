//! PostgreSQL, and the servers that speak its wire.

mod catalogue;
mod columns;
mod connection;
mod decode;
mod dialect;
mod driver;
mod encode;
mod foreign;
mod geometry;
mod hstore;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod many;
mod metadata;
mod range;
mod rows;
mod session;
mod settings;
mod split;
mod types;
mod vector;
mod write;

pub use connection::message::HEADER;
pub use driver::Postgres;
pub use foreign::{
    Answers, Arrival, Description, Piece, Port, RowSink, Splitter, TypeCache, TypeLookup, Wanted, inline,
};
pub use metadata::CATALOGUE;
pub use types::native_name;
pub use write::{CopyData, copy_columns};
