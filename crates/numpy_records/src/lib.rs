//! PostgreSQL's rows -> the memory of NumPy's structured arrays, while another client speaks to the server.
//!
//! A [`longshore_postgres::Port`] finds the rows among the messages that the client receives, [`plan`] pairs the fields of a dtype with the
//! columns of a statement, and [`Rows`] writes each row into records.

mod fault;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod plan;
mod rows;
mod scale;
mod step;

pub use fault::{Failure, Fault};
pub use plan::{Column, Field, Form, Leaf, Mismatch, Unit, plan};
pub use rows::Rows;
pub use step::Step;
