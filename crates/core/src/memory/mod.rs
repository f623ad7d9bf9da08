//! Memory: what a read may hold, what the system has left, and growth that fails instead of ending the process.

mod budget;
mod fallible;
mod pages;
mod reserve;
mod shared;
mod system;

pub use budget::{Budget, MemoryLimit, rows_size, values_size};
pub use fallible::{
    OutOfMemory, check_available, check_available_for_thread, spawn, spawn_scoped, try_reserve, zeros,
};
pub use pages::Trim;
pub use reserve::{Reserving, begin, release_reserve};
pub use shared::SharedMemory;
pub use system::{Free, free};
