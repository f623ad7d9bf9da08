//! SQLite: files and databases in memory, through the library itself.

mod cell;
mod connection;
mod datetime;
mod decode;
mod dialect;
mod driver;
mod encode;
mod error;
mod metadata;
mod session;
mod settings;
mod split;
mod types;
mod write;

pub use cell::{Cell, OwnedCell};
pub use connection::{first_bytes, install_locks};
pub use decode::Collector;
pub use driver::Sqlite;
pub use encode::encode;
pub use error::error_of;
pub use metadata::CATALOGUE;
pub use session::{Database, describe_in_copy};
pub use types::{Facts, Plan, plan};
pub use write::{ForeignRows, Row, Statements, begin_foreign};
