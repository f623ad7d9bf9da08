//! The embedded store: tables of immutable Arrow files, whose versions a catalogue in SQLite keeps.
//!
//! A table is a schema and a list of chunks; a chunk is one Arrow IPC file with one record batch, and the positions of its
//! rows that are deleted. A transaction makes chunks and marks rows, and its commit is one transaction of the catalogue, after
//! all files have reached the disk. Nothing that a version names is ever changed: readers map its files and need no lock but
//! one that keeps a vacuum from removing them.

mod cache;
mod catalogue;
mod chunk;
mod copied;
mod encoding;
mod key;
mod loader;
mod lock;
mod maintenance;
mod map;
mod predicate;
mod rows;
mod statistics;
mod store;
mod table;
mod transaction;

use longshore_core::SourceOption;

pub use catalogue::Change;
pub use predicate::{Constant, Operator, Predicate};
pub use store::{Access, Store};
pub use table::{Form, POSITION, Scan, Scanner, Table, Wanted};
pub use transaction::{Definition, Operation, Snapshot, Transaction};

/// The key of `options=` by which a read looks at what it maps.
pub const VERIFY: &str = "verify";

/// The keys of `options=` that are a store's own.
#[must_use]
pub fn options() -> Vec<SourceOption> {
    let sentence = "Whether a store's files are compared with their checksums, and their values looked at, before they are read.";
    vec![SourceOption::new(VERIFY, &["false", "true"], sentence)]
}
