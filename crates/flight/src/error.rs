//! The errors of gRPC's calls.

use longshore_core::{Error, Kind};
use longshore_flight_protocol::SQLSTATE;
use longshore_flight_protocol::ipc::Fault;
use tonic::{Code, Status};

/// A failed call's error: the server's words, the family of its code, and its SQLSTATE where it tells one.
pub(crate) fn error_of(status: &Status) -> Error {
    if status.code() == Code::OutOfRange && status.message().contains("message length too large") {
        return Error::operational(status.message())
            .with_hint("raise max_message_size, or have the server send smaller batches");
    }
    let told = status.metadata().get(SQLSTATE).and_then(|state| state.to_str().ok());
    if let Some(error) = longshore_flight_protocol::error_of(status) {
        return told.into_iter().fold(error, Error::with_sqlstate);
    }
    let sqlstate = told.or_else(|| usual_sqlstate(status.code()));
    let (message, detail, hint) = parts(status.message(), told);
    let message = if message.is_empty() { status.code().description() } else { message };
    let mut error = Error::new(kind(status.code(), told), message);
    if let Some(sqlstate) = sqlstate {
        error = error.with_sqlstate(sqlstate);
    }
    if let Some(detail) = detail {
        error = error.with_detail(detail);
    }
    let hint = hint.or_else(|| usual_hint(status.code()));
    hint.into_iter().fold(error, Error::with_hint)
}

/// The error of a call that the connection to `server` did not outlive.
pub(crate) fn lost_connection(status: &Status, server: &str) -> Error {
    let mut deepest = std::error::Error::source(status);
    while let Some(deeper) = deepest.and_then(std::error::Error::source) {
        deepest = Some(deeper);
    }
    let why = deepest.map_or_else(|| status.message().to_owned(), ToString::to_string);
    Error::operational(format!("the connection to {server} was lost: {why}"))
        .with_sqlstate("08006")
        .with_hint("connect again; look whether the server runs, and what is between here and there")
}

/// The error of what a server has sent against the protocol.
pub(crate) fn protocol_error(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("the server has broken the protocol: {what}"))
        .with_sqlstate("08P01")
        .with_hint("what came before is not the whole result; report it to whoever keeps the server")
}

/// The error of a message that is not read.
pub(crate) fn unreadable(fault: Fault) -> Error {
    match fault {
        Fault::Broken(what) => protocol_error(what),
        Fault::OutOfMemory(error) => error,
    }
}

/// Message, detail and hint of a text in Longshore's form; of another's text, all of it is the message.
fn parts<'a>(text: &'a str, sqlstate: Option<&str>) -> (&'a str, Option<&'a str>, Option<&'a str>) {
    let (text, hint) = text.split_once("\nHint: ").map_or((text, None), |(text, hint)| (text, Some(hint)));
    let (text, detail) =
        text.split_once("\nDetail: ").map_or((text, None), |(text, detail)| (text, Some(detail)));
    let tail = sqlstate.map(|state| format!(" [SQLSTATE {state}]")).unwrap_or_default();
    (text.strip_suffix(tail.as_str()).unwrap_or(text), detail, hint)
}

fn kind(code: Code, sqlstate: Option<&str>) -> Kind {
    let class = sqlstate.and_then(|state| state.get(..2)).unwrap_or_default();
    match code {
        Code::Cancelled => Kind::Cancelled,
        Code::DeadlineExceeded => Kind::Timeout,
        Code::Unimplemented => Kind::NotSupported,
        Code::DataLoss => Kind::Internal,
        _ if class == "XX" => Kind::Internal,
        _ if class == "23" => Kind::Integrity,
        _ if class == "22" => Kind::Data,
        _ if class == "0A" => Kind::NotSupported,
        Code::AlreadyExists if class.is_empty() => Kind::Programming,
        Code::InvalidArgument | Code::NotFound | Code::OutOfRange => Kind::Programming,
        _ if matches!(class, "42" | "3F" | "3D" | "26") => Kind::Programming,
        _ => Kind::Operational,
    }
}

fn usual_sqlstate(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::Cancelled => "57014",
        Code::Unauthenticated => "28000",
        Code::PermissionDenied => "42501",
        Code::Unimplemented => "0A000",
        Code::Unavailable => "08006",
        _ => return None,
    })
}

fn usual_hint(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::Unauthenticated => "give user and password, or token=, that the server knows",
        Code::PermissionDenied => "ask for the right on the server, or connect as another user",
        Code::Unavailable => "look whether the server runs, and what is between here and there",
        Code::DeadlineExceeded => {
            "give a longer timeout, or look on the server for what the statement waits for"
        }
        Code::ResourceExhausted => "raise max_message_size, or ask for fewer rows, or later",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_our_own_server_come_apart_again() {
        let text = "no table \"a\" [SQLSTATE 42P01]\nDetail: none\nHint: make it";
        let mut status = Status::invalid_argument(text);
        status.metadata_mut().insert(SQLSTATE, "42P01".parse().unwrap());
        let error = error_of(&status);
        assert_eq!((error.kind(), error.message()), (Kind::Programming, "no table \"a\""));
        assert_eq!((error.sqlstate(), error.detail()), (Some("42P01"), Some("none")));
        assert_eq!(error.hint(), Some("make it"));
    }

    #[test]
    fn codes_have_families() {
        for (code, kind, sqlstate) in [
            (Code::Unauthenticated, Kind::Operational, Some("28000")),
            (Code::Unimplemented, Kind::NotSupported, Some("0A000")),
            (Code::Unknown, Kind::Operational, None),
            // What some servers say of every wrong statement.
            (Code::Internal, Kind::Operational, None),
            (Code::DataLoss, Kind::Internal, None),
        ] {
            let error = error_of(&Status::new(code, "no"));
            assert_eq!((error.kind(), error.sqlstate()), (kind, sqlstate), "{code:?}");
        }
    }
}
