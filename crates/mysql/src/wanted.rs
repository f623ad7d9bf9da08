//! The types of `schema=`, refused where the frame or the column has none such.

use arrow_schema::DataType;
use longshore_core::{Error, Kind, ReadOptions, Result};

use crate::types::{Class, Type, rounded_float};
use longshore_core::Protocol;

/// Refuses what the column `name` cannot be read as before anything is run; what no text reads as, the decoders refuse.
pub(crate) fn check(name: &str, native: &Type, wanted: &DataType, options: &ReadOptions) -> Result<()> {
    let refused = match wanted {
        DataType::Decimal256(..) if options.decimal_digits < 76 => Some(too_wide(options.decimal_digits)),
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..)
            if native.class == Class::Float && options.protocol == Protocol::Text =>
        {
            Some(rounded_float())
        }
        _ => None,
    };
    refused.map_or(Ok(()), |error| Err(error.at(native.place(name))))
}

/// The column cannot be read as `wanted`.
pub(crate) fn unreadable(native: &Type, wanted: &DataType) -> Error {
    let error = Error::new(Kind::NotSupported, format!("cannot be read as {wanted}"));
    error.with_hint(match (native.class, wanted) {
        (Class::Instant, DataType::Timestamp(_, None)) => {
            "it has a time zone: ask for \"timestamp[us, tz=UTC]\", or convert it in the query"
        }
        (Class::DateTime, DataType::Timestamp(..)) => {
            "it has no time zone: ask for \"timestamp[us]\", or convert it in the query"
        }
        _ => "leave it out of schema=, or ask for \"string\"",
    })
}

fn too_wide(digits: u8) -> Error {
    Error::new(Kind::NotSupported, format!("this frame's decimals have {digits} digits at most"))
        .with_hint("ask for schema={\"<column>\": \"decimal128(38, <scale>)\"} or \"string\"")
}
