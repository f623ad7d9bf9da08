//! Wire -> Arrow columns: which decoder reads a column's cells.

mod binary;
pub(crate) mod civil;
mod deferred;
mod dictionary;
mod interval;
mod literal;
mod nested;
mod numeric;
mod text;

use arrow_schema::DataType;
use longshore_cells::odds::Odds;
use longshore_cells::{Decoder, Losses};
use longshore_core::{Error, Kind, Place, ReadOptions, Result};

pub(crate) use deferred::settle;

use crate::types::{Format, Type};

/// The decoder of a column named `name`, whose cells arrive in `format`, into Arrow's `data_type`.
pub(crate) fn decoder(
    name: &str,
    native: &Type,
    format: Format,
    data_type: &DataType,
    options: &ReadOptions,
) -> Result<Box<dyn Decoder>> {
    let (odds, losses) = (Odds::from(options), Losses::of(name, options));
    match format {
        Format::Binary => Ok(binary::decoder(native, data_type, odds, &losses)),
        Format::Text => text::decoder(native, data_type, odds, &losses).ok_or_else(|| {
            let place = Place { column: Some(name.to_owned()), row: None, native_type: Some(native.label()) };
            Error::new(Kind::NotSupported, format!("cannot be read as {data_type}"))
                .with_hint("leave it out of schema=, or ask for \"string\"")
                .at(place)
        }),
    }
}
