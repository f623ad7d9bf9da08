//! The kit that a source is made of.

pub mod fit;
pub mod options;
pub mod rows;
pub mod settings;
pub mod split;
pub mod sql;
pub mod staging;
pub mod table;

pub use options::Nested;
pub use split::NotSplit;
