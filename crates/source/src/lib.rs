//! The kit that a source is made of.

pub mod settings;
pub mod sql;
