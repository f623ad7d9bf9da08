//! Cells -> Arrow columns: what every source shares that brings its values as bytes.
//!
//! A first pass over a chunk of rows finds where each value lies ([`Spans`]), a second has each column's [`Decoder`] append
//! its [`Cells`] to an Arrow array, and [`Assembly`] makes record batches of them.

mod assembly;
pub mod blocks;
mod bytes;
pub mod calendar;
mod cast;
mod cell;
mod counts;
pub mod decimal;
mod decoder;
mod fault;
mod item;
mod items;
mod json;
mod lines;
mod losses;
mod parameters;
pub mod policies;
mod primitive;
pub mod text;

pub use assembly::{Assembly, ReadColumn};
pub use bytes::{Derived, Fixed, Plain, bytes, large_bytes, large_text, strings, text};
pub use calendar::{push_date, push_time, push_timestamp};
pub use cast::{Cast, Form};
pub use cell::{CellBuffer, Cells, Span, Spans};
pub use counts::{counts, stored_values};
pub use decoder::{CellFault, Decoder, Misfit};
pub use fault::Fault;
pub use item::{Item, microseconds, per_second, push_number, push_period, uuid, whole_day};
pub use items::{Items, Uniform};
pub use json::{element, is_nested, json};
pub use lines::{csv_lines, json_lines, texts};
pub use losses::Losses;
pub use parameters::{null_parameters, parameter, parameters};
pub use primitive::{Booleans, Primitive, Validity, fault, parse_cell};
