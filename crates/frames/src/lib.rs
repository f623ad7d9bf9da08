//! The frames' edge: Arrow record batches become NumPy memory and Python objects, column by column, while
//! they arrive.
//!
//! [`Columns`] takes batches one by one, without the interpreter's lock except where Python objects are
//! made, and at the end hands each column over as one [`Column`]. Which form a column takes follows from its
//! Arrow field and the caller's [`Choices`] alone ([`Shape::of`] is the table), never from its values.

mod chunks;
mod column;
mod columns;
mod dictionary;
mod memory;
mod numbers;
mod objects;
mod pages;
mod pending;
mod polars;
mod shape;
mod streamed;
mod whole;

pub use column::Column;
pub use columns::{Columns, distinct_names};
pub use memory::Memory;
pub use objects::RowMaker;
pub use pending::{Form, Pending, Remainder, failed_result};
pub use polars::{polars_batch, polars_copy, polars_schema};
pub use shape::{Backend, Choices, DateUnit, Nulls, Shape};
pub use whole::{whole_columns, whole_table};
