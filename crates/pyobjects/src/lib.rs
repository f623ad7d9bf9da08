//! Python objects: columns of them into Arrow, and single ones as parameters of a statement.
//!
//! [`Objects`] looks at every object of a column once to find the one type of all, and then makes Arrow arrays of it, a
//! slice of rows at a time. Scalars have the type that holds all of them exactly. Dicts are structs over all their keys,
//! lists are lists. What has no one type within them is JSON where JSON can say it; everything else is an error that names
//! the row.

mod build;
mod class;
mod fault;
mod kind;
mod objects;
mod params;
mod profile;
mod read;
mod slots;

pub use objects::{Choices, Objects, texts};
pub use params::{params, value};
