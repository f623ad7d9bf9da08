//! PostgreSQL's rows -> the memory of NumPy's structured arrays, while another client speaks to the server.
//!
//! [`Splitter`] finds the rows among the messages that the client receives, [`plan`] pairs the fields of a dtype with the
//! columns of a statement, and [`Rows`] writes each row into records, or each column into an array of its own. The columns of
//! one dtype become the rows of one [`block`].

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

pub use block::block;
pub use fault::{Failure, Fault};
pub use field::{Field, Form, Leaf, Unit};
pub use memory::Memory;
pub use native::Column;
pub use plan::{Mismatch, plan};
pub use rows::{Layout, Rows};
pub use splitter::{Broken, Piece, Splitter, Wanted};
pub use step::Step;
