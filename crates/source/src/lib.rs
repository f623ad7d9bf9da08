//! The kit that a source is made of.

pub mod settings;
mod split;
pub mod sql;

pub use split::NotSplit;
