//! Batches under other types: those of `schema=`, doubles and integers for decimals, texts for UUIDs.
//!
//! [`Policy`] is the caller's choices over a source whose results are Arrow already.

mod batch;
mod cast;
mod decimals;
mod numeric;
mod policy;
mod refusal;
mod threads;
mod views;

pub use batch::{retyped_batch, with_inner_fields};
pub use cast::{can as can_cast, cast};
pub use decimals::{WHOLE, double_batch, double_schema, integer_schema};
pub use policy::Policy;
pub use refusal::polars_refusal;
pub use threads::by_column;
