//! Errors as gRPC has them.

use longshore_core::{Error, Kind};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The most characters of a text: it travels as a header, which has its limits.
const LONGEST: usize = 2_000;

/// The trailer in which Longshore's client finds an error's parts.
const PARTS: &str = "longshore-error-bin";
/// The most bytes of that trailer.
const WIDEST: usize = 4 << 10;

/// The parts of an error; `crates/flight` reads them.
#[derive(Clone, PartialEq, Message)]
struct ErrorParts {
    /// The place in `Kind::ALL`.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(string, optional, tag = "3")]
    detail: Option<String>,
    #[prost(string, optional, tag = "4")]
    hint: Option<String>,
    #[prost(string, optional, tag = "5")]
    column: Option<String>,
    #[prost(uint64, optional, tag = "6")]
    row: Option<u64>,
    #[prost(string, optional, tag = "7")]
    native_type: Option<String>,
    #[prost(uint32, optional, tag = "8")]
    position: Option<u32>,
    #[prost(int32, optional, tag = "9")]
    vendor_code: Option<i32>,
}

impl ErrorParts {
    fn of(error: &Error) -> Self {
        let kind = Kind::ALL.iter().position(|kind| *kind == error.kind());
        let place = error.place();
        Self {
            kind: kind.and_then(|kind| u32::try_from(kind).ok()).unwrap_or_default(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
            column: place.column.clone(),
            row: place.row,
            native_type: place.native_type.clone(),
            position: error.position(),
            vendor_code: error.vendor_code(),
        }
    }
}

/// The status of an error: its class by the code, its SQLSTATE in the text and in the trailer `sqlstate`.
#[allow(clippy::needless_pass_by_value)] // `map_err` gives it
pub(crate) fn status(error: Error) -> Status {
    let mut text = error.to_string();
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push_str(" ...");
    }
    let mut status = Status::new(code(&error), text);
    if let Some(Ok(sqlstate)) = error.sqlstate().map(str::parse) {
        status.metadata_mut().insert("sqlstate", sqlstate);
    }
    let parts = ErrorParts::of(&error).encode_to_vec();
    if parts.len() <= WIDEST {
        status.metadata_mut().insert_bin(PARTS, MetadataValue::from_bytes(&parts));
    }
    status
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
pub(crate) fn malformed(what: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!("the request is not one of Flight SQL: {what}"))
}

/// The status of a handle that names nothing, or what is another user's.
pub(crate) fn unknown(what: &str) -> Status {
    Status::not_found(format!(
        "there is no such {what}: it was closed, has waited too long, or is another user's"
    ))
}
