//! A value that cannot be handed on, before its column and its place in the whole result are known.

use longshore_core::{Error, OnOdd, Place};

/// What is wrong with the value at a row of the array at hand.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) row: usize,
    pub(crate) what: What,
}

/// What is wrong with a value, and what to do.
#[derive(Debug)]
pub(crate) enum What {
    /// The value has no exact form.
    Data { message: &'static str, hint: &'static str },
    /// The engine broke its own rules, or this library did.
    Internal(String),
}

const INFINITE: What = What::Data {
    message: "infinity, for which the engine takes the last date and timestamp that Arrow counts, too, has no Arrow value",
    hint: "read it as NULL with options={\"infinity\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
};

const TIME_24: What = What::Data {
    message: "24:00 has no Arrow value; consumers would read it as 00:00",
    hint: "read it as NULL with options={\"time_24\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
};

/// The engine takes the texts of Arrow data as they are.
pub(crate) const NO_TEXT: What = What::Data {
    message: "a text is not UTF-8",
    hint: "decode the bytes before the query, or read them with encode(\"<column>\")",
};

impl What {
    pub(crate) fn internal(message: &(impl ToString + ?Sized)) -> Self {
        Self::Internal(message.to_string())
    }

    pub(crate) fn at_row(self, row: usize) -> Fault {
        Fault { row, what: self }
    }

    fn into_error(self) -> Error {
        match self {
            Self::Data { message, hint } => Error::data(message).with_hint(hint),
            Self::Internal(message) => Error::internal(message),
        }
    }
}

impl Fault {
    /// The error that the caller sees.
    pub(crate) fn into_error(self, place: Place) -> Error {
        self.what.into_error().at(place)
    }
}

/// An odd value's fate: `None` makes it NULL.
pub(crate) type Fate = Option<What>;

pub(crate) fn infinite(policy: OnOdd) -> Fate {
    (policy == OnOdd::Error).then_some(INFINITE)
}

pub(crate) fn time_24(policy: OnOdd) -> Fate {
    (policy == OnOdd::Error).then_some(TIME_24)
}
