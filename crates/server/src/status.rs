//! Errors as gRPC has them.

use longshore_core::{Error, Kind};
use longshore_flight_protocol::set_error;
use tonic::{Code, Status};

/// The most bytes of a text on its way: it travels as a header, and clients take 8 KiB of those.
const LONGEST: usize = 2_000;

/// The status of an error: its class by the code, its SQLSTATE in the text and in the trailer `sqlstate`.
#[allow(clippy::needless_pass_by_value)] // `map_err` gives it
pub(crate) fn status(error: Error) -> Status {
    let mut status = Status::new(code(&error), shorten(error.to_string()));
    set_error(&mut status, &error);
    status
}

/// A text that a header has room for, where most of what is not a letter takes three bytes for each of its own.
fn shorten(mut text: String) -> String {
    let mut width = 0;
    let end = text.char_indices().find(|(_, one)| {
        width += if one.is_ascii_alphanumeric() { 1 } else { 3 * one.len_utf8() };
        width > LONGEST
    });
    if let Some((at, _)) = end {
        text.truncate(at);
        text.push_str(" ...");
    }
    text
}

/// The code of an error.
pub(crate) fn code(error: &Error) -> Code {
    let sqlstate = error.sqlstate().unwrap_or_default();
    match error.kind() {
        Kind::Timeout => Code::DeadlineExceeded,
        Kind::Interrupted | Kind::Cancelled => Code::Cancelled,
        Kind::NotSupported => Code::Unimplemented,
        Kind::Memory => Code::ResourceExhausted,
        Kind::Internal => Code::Internal,
        _ if matches!(sqlstate, "25006" | "42501") => Code::PermissionDenied,
        Kind::Integrity if sqlstate == "23505" => Code::AlreadyExists,
        Kind::Integrity => Code::FailedPrecondition,
        Kind::Interface | Kind::Programming | Kind::Data => Code::InvalidArgument,
        Kind::Operational => match sqlstate.get(..2) {
            Some("08") => Code::Unavailable,
            Some("40") => Code::Aborted,
            Some("53" | "54") => Code::ResourceExhausted,
            Some("57") => Code::Cancelled,
            _ => Code::Unknown,
        },
    }
}

/// The status of what a client has sent and what is not a message of Flight SQL.
pub(crate) fn not_flight_sql(what: impl std::fmt::Display) -> Status {
    Status::invalid_argument(shorten(format!("the request is not one of Flight SQL: {what}")))
}

/// The status of a handle that names nothing, or what is another user's.
pub(crate) fn unknown(what: &str) -> Status {
    Status::not_found(format!(
        "there is no such {what}: it was closed, has waited too long, or is another user's"
    ))
}
