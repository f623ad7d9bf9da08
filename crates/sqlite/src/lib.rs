//! SQLite: files and databases in memory, through the library itself.

mod cell;
mod convert;
mod decimals;
mod dialect;
mod driver;
mod encode;
mod fault;
mod kinds;
mod library;
mod moment;
mod plan;
mod replica;
mod rows;
mod session;
mod settings;
mod settle;
mod split;
mod store;
mod types;
mod wanted;
mod write;

pub use cell::Cell;
pub use driver::Sqlite;
pub use encode::{Bound, encode};
pub use fault::error;
pub use library::first_bytes;
pub use plan::{Facts, Plan, plan};
pub use replica::{Database, replica};
pub use rows::Collector;
