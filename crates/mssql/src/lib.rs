//! SQL Server and Azure SQL, on Microsoft's own client.

mod connection;
mod decode;
mod describe;
mod dialect;
mod driver;
mod encode;
mod error;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod metadata;
mod render;
mod rows;
mod session;
mod settings;
mod sink;
mod split;
mod temporal;
mod text;
mod types;
mod variant;
mod write;

pub use driver::MsSql;
