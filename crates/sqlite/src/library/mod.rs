//! SQLite's C interface (sqlite.org/c3ref), made safe: the only place of this crate with `unsafe`.
#![allow(unsafe_code)]

mod connection;
mod insert;
mod lent;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod locks;
mod snapshot;
mod statement;
mod watching;

pub(crate) use connection::{Connection, Open};
pub(crate) use insert::Insert;
pub(crate) use lent::{BETWEEN_LOOKS, Lent, Rows, Taker};
pub(crate) use snapshot::Snapshot;
pub(crate) use statement::{Origin, Signature, Statement};
