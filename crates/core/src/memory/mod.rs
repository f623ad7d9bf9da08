//! Memory: what a read may hold, what the system has left, and growth that fails instead of ending the process.

mod budget;
mod pages;
mod reserve;
mod room;
mod shared;
mod system;

pub use budget::{Budget, MemoryLimit, rows_size, values_size};
pub use pages::Trim;
pub use reserve::{Reserving, begin, ease};
pub use room::{NoRoom, make_room, room_for, room_for_thread, spawn, spawn_scoped, zeros};
pub use shared::SharedMemory;
pub use system::{Free, free};
