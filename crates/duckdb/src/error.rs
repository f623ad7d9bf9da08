//! The engine's messages as errors: it says first what family a failure is of. And values that have no exact form in Arrow.

use arrow_schema::ArrowError;
use longshore_core::{Error, Kind};
use longshore_values::CellFault;

/// How a message of the engine begins, and what that means.
const FAMILIES: &[(&str, Kind)] = &[
    ("Binder Error", Kind::Programming),
    ("Catalog Error", Kind::Programming),
    ("Parser Error", Kind::Programming),
    ("Syntax Error", Kind::Programming),
    ("Invalid Input Error: Map keys must be unique", Kind::Data),
    ("Invalid Input Error: Arrow map contains duplicate key", Kind::Data),
    ("Invalid Input Error", Kind::Programming),
    ("Invalid Type Error", Kind::Programming),
    ("Mismatch Type Error", Kind::Programming),
    ("Parameter Not Allowed Error", Kind::Programming),
    ("Parameter Not Resolved Error", Kind::Programming),
    ("Conversion Error", Kind::Data),
    ("Decimal Error", Kind::Data),
    ("Divide by Zero Error", Kind::Data),
    ("Out of Range Error", Kind::Data),
    ("Constraint Error", Kind::Integrity),
    ("Not implemented Error", Kind::NotSupported),
    ("Missing Extension Error", Kind::NotSupported),
    ("Out of Memory Error", Kind::Memory),
    ("INTERRUPT Error", Kind::Cancelled),
    ("INTERNAL Error", Kind::Internal),
    ("FATAL Error", Kind::Internal),
];

/// The error that the engine's `message` tells of.
#[must_use]
pub fn error_of(message: &str) -> Error {
    let message = message.trim_end();
    let family = FAMILIES.iter().find(|(beginning, _)| message.starts_with(beginning));
    let kind = family.map_or(Kind::Operational, |(_, kind)| *kind);
    let error = Error::new(kind, message);
    match kind {
        Kind::Memory => error.with_hint(
            "raise options={\"memory_limit\": ...}, select fewer columns or rows, or use \
             return_type=\"arrow_stream\"; what the engine cannot spill to disk has to fit",
        ),
        _ => error,
    }
}

/// The text that pyarrow puts in front of a message, where batches come by way of it.
const PYARROW_PREFIX: &str = "IOError: ";

/// The engine's error behind its stream's: Arrow's C interface hands on no more than a text.
#[must_use]
pub fn stream_error(error: &ArrowError) -> Error {
    match error {
        ArrowError::CDataInterface(text) => error_of(text.strip_prefix(PYARROW_PREFIX).unwrap_or(text)),
        other => error_of(&other.to_string()),
    }
}

/// The text of what is wrong with a value, and what to do.
pub(crate) type Reason = (&'static str, &'static str);

/// A value without an exact form in the row of the array at hand.
pub(crate) fn unrepresentable((message, hint): Reason, row: usize) -> CellFault {
    CellFault { row, what: message.into(), hint: Some(hint.into()), kind: Kind::Data }
}

/// The engine broke its own rules, or this library did.
pub(crate) fn internal(message: &(impl ToString + ?Sized)) -> CellFault {
    CellFault { row: 0, what: message.to_string().into(), hint: None, kind: Kind::Internal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_tells_its_family() {
        for (message, kind) in [
            ("Conversion Error: Could not convert string 'a' to INT32\n\nLINE 1: ...\n", Kind::Data),
            ("Invalid Input Error: Map keys must be unique.", Kind::Data),
            ("Invalid Input Error: something else", Kind::Programming),
            ("IO Error: Cannot open file", Kind::Operational),
            ("Out of Memory Error: failed to allocate", Kind::Memory),
            ("something else", Kind::Operational),
        ] {
            let error = error_of(message);
            assert_eq!((error.kind(), error.message()), (kind, message.trim_end()));
        }
    }
}
