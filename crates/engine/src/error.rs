//! The engine's messages as errors: it says first what family a failure is of.

use longshore_core::{Error, Kind};

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
