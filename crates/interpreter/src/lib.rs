//! The Python interpreter as every crate next to it sees it: its lock, exceptions and errors both ways, Arrow data under the
//! `PyCapsule` interface, and the parameters of a statement.

mod aligned;
pub mod capsule;
mod exception;
mod lock;
mod params;
mod stream;

pub use exception::{error_of, raise, wrap};
pub use lock::{drop_without_lock, with_lock, without_lock};
pub use params::python_params;
pub use stream::ColumnStream;
