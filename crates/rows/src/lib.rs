//! PostgreSQL's rows -> the memory of NumPy's structured arrays, while another client speaks to the server.
//!
//! [`Splitter`] finds the rows among the messages that the client receives, [`plan`] pairs the fields of a dtype with the
//! columns of a statement, and [`Rows`] writes each row into records, or into blocks of the columns of one dtype.

mod block;
mod fault;
mod field;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod memory;
mod native;
mod plan;
mod rows;
mod scale;
mod splitter;
mod step;
mod text;

pub use fault::{Failure, Fault};
pub use field::{Field, Form, Leaf, Unit};
pub use memory::Memory;
pub use native::Column;
pub use plan::{Mismatch, plan};
pub use rows::{Rows, Shape};
pub use splitter::{Broken, Piece, Splitter, Wanted};
pub use step::Step;
