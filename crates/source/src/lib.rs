//! The kit that a source is made of.

pub mod sql;
