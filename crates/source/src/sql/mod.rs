//! A statement's text: its tokens, its parameters, and the one table that it reads.

mod dialect;
mod insert;
mod lexer;
mod parameters;
mod select;
mod statements;

pub use dialect::{CLICKHOUSE, Comments, DUCKDB, Dialect, Markers, Names, POSTGRESQL, SQLITE, STANDARD};
pub use insert::PlainInsert;
pub use lexer::{Kind, Token};
pub use parameters::{Numbered, positional, positional_sets, unlike};
pub use select::{OneTable, is_plain, tables};
pub use statements::{first_words, places, statements};
