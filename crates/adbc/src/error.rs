//! The core's errors as ADBC's.

use std::os::raw::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use adbc_core::error::{Error as AdbcError, Result, Status};
use longshore_core::{Error, Kind};

/// An error of the caller's, or of what is not there.
pub(crate) fn refusal(status: Status, message: impl Into<String>) -> AdbcError {
    AdbcError::with_message_and_status(message, status)
}

/// The error of what cannot be done at all.
pub(crate) fn not_supported(message: impl Into<String>) -> AdbcError {
    refusal(Status::NotImplemented, message)
}

/// Does `work`; a panic is an error that names no more than itself.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(refusal(Status::Internal, "a defect of Longshore: please report what was called"))
    })
}

/// The core's error with its status, SQLSTATE and details.
#[allow(clippy::needless_pass_by_value)] // `map_err` gives it
pub(crate) fn adbc_error(error: Error) -> AdbcError {
    let mut sqlstate = [0; 5];
    if let Some(state) = error.sqlstate().filter(|state| state.len() == 5) {
        for (place, byte) in sqlstate.iter_mut().zip(state.bytes()) {
            *place = c_char::from_ne_bytes([byte]);
        }
    }
    AdbcError {
        message: error.to_string().replace('\0', "\u{fffd}"),
        status: status(&error),
        vendor_code: error.vendor_code().unwrap_or_default(),
        sqlstate,
        details: Some(details(&error)),
    }
}

fn status(error: &Error) -> Status {
    match (error.kind(), error.sqlstate().unwrap_or_default()) {
        (_, "42P01" | "42S02" | "3D000" | "3F000" | "42704") => Status::NotFound,
        (_, "42P07" | "42S01" | "42P06") => Status::AlreadyExists,
        (_, "42501") => Status::Unauthorized,
        (Kind::Operational | Kind::Programming, state) if state.starts_with("28") => Status::Unauthenticated,
        (Kind::Timeout, _) => Status::Timeout,
        (Kind::Cancelled | Kind::Interrupted, _) => Status::Cancelled,
        (Kind::Interface | Kind::Programming, _) => Status::InvalidArguments,
        (Kind::Data, _) => Status::InvalidData,
        (Kind::Integrity, _) => Status::Integrity,
        (Kind::NotSupported, _) => Status::NotImplemented,
        (Kind::Operational, _) => Status::IO,
        (Kind::Internal | Kind::Memory, _) => Status::Internal,
    }
}

/// The parts that the text of the error says, each by its key.
fn details(error: &Error) -> Vec<(String, Vec<u8>)> {
    let place = error.place();
    let texts = [
        ("vendor_code", error.vendor_code().map(|code| code.to_string())),
        ("hint", error.hint().map(str::to_owned)),
        ("detail", error.detail().map(str::to_owned)),
        ("position", error.position().map(|position| position.to_string())),
        ("column", place.column.clone()),
        ("row", place.row.map(|row| row.to_string())),
        ("native_type", place.native_type.clone()),
    ];
    let known = texts.into_iter().filter_map(|(key, text)| Some((key, text?)));
    known.map(|(key, text)| (format!("longshore.{key}"), text.into_bytes())).collect()
}
