//! Wire -> Arrow: which decoder reads a column.

mod binary;
mod moment;
mod render;
mod text;

use arrow_schema::DataType;
use longshore_cells::Decoder;
use longshore_core::{ReadOptions, Result};

use crate::types::Type;
use crate::wanted::unreadable;
use crate::zone::Zone;

/// The form in which cells arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// What decoders need to know beside the types.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) options: ReadOptions,
    /// Microseconds that the session's clock is before UTC's.
    pub(crate) offset: i64,
}

impl Context {
    pub(crate) fn new(options: &ReadOptions, zone: Zone) -> Self {
        Self { options: options.clone(), offset: zone.offset().unwrap_or_default() }
    }
}

/// The decoder of the column `name`, whose cells arrive in `format`, into `arrow`; `default` is the type that it has by
/// the type policy.
pub(crate) fn decoder(
    name: &str,
    native: &Type,
    format: Format,
    arrow: &DataType,
    default: Option<&DataType>,
    context: &Context,
) -> Result<Box<dyn Decoder>> {
    let is_default = default == Some(arrow);
    let found = match format {
        Format::Binary if is_default => binary::decoder(name, native, arrow, context),
        Format::Text => text::decoder(name, native, arrow, context),
        Format::Binary => None,
    };
    // Anything else is read from the text that the server would have sent.
    let found = found.or_else(|| {
        let inner = text::decoder(name, native, arrow, context)?;
        Some(if format == Format::Binary { render::rendered(native, inner) } else { inner })
    });
    found.ok_or_else(|| unreadable(native, arrow).at(native.place(name)))
}
