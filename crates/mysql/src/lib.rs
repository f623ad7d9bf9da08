//! MySQL and MariaDB, and the servers that speak their wire.

mod authentication;
mod channel;
mod client;
mod columns;
mod connection;
mod decode;
mod dialect;
mod driver;
mod encode;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod literals;
mod many;
mod message;
mod metadata;
mod options;
mod packet;
mod rows;
mod session;
mod settings;
mod split;
mod startup;
mod temporal;
mod types;
mod write;

pub use client::{Client, Greeted, adopt};
pub use driver::MySql;
pub use metadata::CATALOGUE;
pub use write::{column_types, new_table_statement};
