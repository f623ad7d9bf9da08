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

/// The start of the file `path`; `None` where it cannot be read or is shorter. Another library's locks on the file, which any
/// other way to close a descriptor of it would drop, stay.
#[must_use]
pub fn first_bytes<const COUNT: usize>(path: &std::path::Path) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    let is_read = locks::read_start(path, &mut bytes);
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    let is_read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes))
        .is_ok();
    is_read.then_some(bytes)
}
