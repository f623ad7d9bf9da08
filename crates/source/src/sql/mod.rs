//! A statement's text: its tokens, its parameters, and the one table that it reads.

mod insert;
mod lexer;
mod parameters;
mod select;

pub use insert::PlainInsert;
pub use lexer::{Comments, Dialect, Kind, Markers, Names, POSTGRESQL, SQLITE, Token};
pub use parameters::{Numbered, positional, positional_sets, unlike};
pub use select::{OneTable, is_plain, tables};
