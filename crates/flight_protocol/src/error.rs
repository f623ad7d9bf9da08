//! An error in a call's trailers, of which a status has no more than a code and a text.

use longshore_core::{Error, Kind, Place};
use prost::Message;
use tonic::Status;
use tonic::metadata::MetadataValue;

/// The trailer of an error's SQLSTATE, which other servers have, too.
pub const SQLSTATE: &str = "sqlstate";

/// The trailer of an error's parts.
const PARTS: &str = "longshore-error-bin";

/// The most bytes of that trailer: headers have their limits.
const WIDEST: usize = 4 << 10;
/// The most bytes of each text where all of them are too wide together.
const LONGEST: usize = 700;

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

impl From<&Error> for ErrorParts {
    fn from(error: &Error) -> Self {
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

impl ErrorParts {
    fn shorten(&mut self) {
        let others = [&mut self.detail, &mut self.hint, &mut self.column, &mut self.native_type];
        for text in others.into_iter().flatten().chain([&mut self.message]) {
            if text.len() > LONGEST {
                let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at));
                text.truncate(end.unwrap_or_default());
                text.push_str(" ...");
            }
        }
    }
}

/// Puts an error's SQLSTATE and its parts into the trailers of a status, where long texts are cut.
pub fn set_error(status: &mut Status, error: &Error) {
    if let Some(Ok(sqlstate)) = error.sqlstate().map(str::parse) {
        status.metadata_mut().insert(SQLSTATE, sqlstate);
    }
    let mut parts = ErrorParts::from(error);
    if parts.encoded_len() > WIDEST {
        parts.shorten();
    }
    status.metadata_mut().insert_bin(PARTS, MetadataValue::from_bytes(&parts.encode_to_vec()));
}

/// The error whose parts a status has, but for its SQLSTATE.
#[must_use]
pub fn error_of(status: &Status) -> Option<Error> {
    let bytes = status.metadata().get_bin(PARTS)?.to_bytes().ok()?;
    let parts = ErrorParts::decode(bytes).ok()?;
    let kind = match *Kind::ALL.get(usize::try_from(parts.kind).ok()?)? {
        // Who was interrupted there is not the caller here.
        Kind::Interrupted => Kind::Cancelled,
        kind => kind,
    };
    let place = Place { column: parts.column, row: parts.row, native_type: parts.native_type };
    let error = Error::new(kind, parts.message).at(place);
    let error = parts.detail.into_iter().fold(error, Error::with_detail);
    let error = parts.position.into_iter().fold(error, Error::with_position);
    let error = parts.vendor_code.into_iter().fold(error, Error::with_vendor_code);
    Some(parts.hint.into_iter().fold(error, Error::with_hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_same_after_its_way() {
        let place = Place { column: Some("berth".into()), row: Some(7), native_type: Some("int4".into()) };
        let error = Error::new(Kind::Data, "too wide").at(place).with_detail("2^40").with_hint("cast it");
        let mut status = Status::invalid_argument("too wide");
        set_error(&mut status, &error.with_position(3).with_vendor_code(-5).with_sqlstate("22003"));
        let found = error_of(&status).unwrap();
        assert_eq!((found.kind(), found.message()), (Kind::Data, "too wide"));
        assert_eq!((found.detail(), found.hint()), (Some("2^40"), Some("cast it")));
        assert_eq!((found.position(), found.vendor_code()), (Some(3), Some(-5)));
        assert_eq!(found.place().column.as_deref(), Some("berth"));
        assert_eq!((found.place().row, found.place().native_type.as_deref()), (Some(7), Some("int4")));
        assert_eq!(status.metadata().get(SQLSTATE).unwrap(), "22003");
    }

    #[test]
    fn an_interruption_there_is_a_cancellation_here_and_what_is_too_wide_is_cut() {
        let mut status = Status::cancelled("");
        set_error(&mut status, &Error::new(Kind::Interrupted, "stopped"));
        assert_eq!(error_of(&status).unwrap().kind(), Kind::Cancelled);
        let mut status = Status::unknown("");
        let wide = "é".repeat(WIDEST);
        set_error(&mut status, &Error::new(Kind::Data, wide.clone()).with_detail(wide).with_hint("cast it"));
        let found = error_of(&status).unwrap();
        let cut = format!("{} ...", "é".repeat(LONGEST / 2));
        assert_eq!((found.kind(), found.message()), (Kind::Data, cut.as_str()));
        assert_eq!((found.detail(), found.hint()), (Some(cut.as_str()), Some("cast it")));
    }
}
