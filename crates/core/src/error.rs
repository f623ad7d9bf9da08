//! The one error type: what happened, where, and what to do.

use std::error::Error as StdError;
use std::fmt;

use arrow_schema::Field;

use crate::NATIVE_TYPE;

/// The result of anything that can fail in Longshore.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Which family of failure this is; one to one with the exception classes that Python raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The caller used the library wrongly: a bad URL, an unknown option.
    Interface,
    /// The connection, the server or its resources: refused, cut, out of memory.
    Operational,
    /// The deadline passed.
    Timeout,
    /// The caller asked to stop; the source holds the caller's own reason.
    Interrupted,
    /// Another thread asked to stop.
    Cancelled,
    /// The statement is wrong: syntax, missing table, wrong number of parameters.
    Programming,
    /// A value cannot be represented exactly as asked.
    Data,
    /// A constraint of the database was violated.
    Integrity,
    /// The server or this library broke its own rules.
    Internal,
    /// The server cannot do what was asked.
    NotSupported,
    /// The result outgrew the caller's own memory limit.
    Memory,
}

impl Kind {
    /// All of them, in an order that does not change: their places are their numbers on a wire.
    pub const ALL: [Self; 11] = [
        Self::Interface,
        Self::Operational,
        Self::Timeout,
        Self::Interrupted,
        Self::Cancelled,
        Self::Programming,
        Self::Data,
        Self::Integrity,
        Self::Internal,
        Self::NotSupported,
        Self::Memory,
    ];
}

/// Where in a result an error happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The column's name.
    pub column: Option<String>,
    /// The row's number, counted from 0 over the whole result.
    pub row: Option<u64>,
    /// The database's own name of the column's type.
    pub native_type: Option<String>,
}

impl Place {
    /// The column of `field`, and a row of it.
    #[must_use]
    pub fn of(field: &Field, row: Option<u64>) -> Self {
        let native_type = field.metadata().get(NATIVE_TYPE).filter(|native| !native.is_empty()).cloned();
        Self { column: Some(field.name().clone()), row, native_type }
    }
}

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
    hint: Option<String>,
    detail: Option<String>,
    sqlstate: Option<String>,
    vendor_code: Option<i32>,
    position: Option<u32>,
    place: Place,
    is_transient: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// A failure with its place and its remedy. Small: one pointer.
#[derive(Debug)]
pub struct Error(Box<Inner>);

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            detail: None,
            sqlstate: None,
            vendor_code: None,
            position: None,
            place: Place::default(),
            is_transient: false,
            source: None,
        }))
    }

    /// A keyword that names a column which the query does not return.
    #[must_use]
    pub fn unknown_column(keyword: &str, name: &str, known: &[&str]) -> Self {
        Self::interface(format!("{keyword} names {name:?}, which the query does not return"))
            .with_hint(format!("it returns {}", known.join(", ")))
    }

    /// The caller used the library wrongly.
    pub fn interface(message: impl Into<String>) -> Self {
        Self::new(Kind::Interface, message)
    }

    /// The connection or the server failed.
    pub fn operational(message: impl Into<String>) -> Self {
        Self::new(Kind::Operational, message)
    }

    /// The statement or its parameters are wrong.
    pub fn programming(message: impl Into<String>) -> Self {
        Self::new(Kind::Programming, message)
    }

    /// A value cannot be represented exactly.
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(Kind::Data, message)
    }

    /// The source, or this library, cannot do what is asked for.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(Kind::NotSupported, message)
    }

    /// The peer broke the protocol, or this library its own rules.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self.name_column();
        self
    }

    /// Adds the server's longer explanation.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the five characters of the SQL standard's state.
    #[must_use]
    pub fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.0.sqlstate = Some(sqlstate.into());
        self
    }

    /// Adds the database's own number of the error.
    #[must_use]
    pub fn with_vendor_code(mut self, code: i32) -> Self {
        self.0.vendor_code = Some(code);
        self
    }

    /// Adds the position in the statement, in characters from 1.
    #[must_use]
    pub fn with_position(mut self, position: u32) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Adds the column, row and native type. A `<column>` in the hint becomes the column's name.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.0.place = place;
        self.name_column();
        self
    }

    /// The same error `rows` rows further down: it was counted from the start of a piece.
    #[must_use]
    pub fn after(mut self, rows: u64) -> Self {
        self.0.place.row = self.0.place.row.map(|row| row + rows);
        self
    }

    /// The same error of the server's, in which what is ours has the name that the caller knows.
    #[must_use]
    pub fn renaming(mut self, ours: &str, known: &str) -> Self {
        self.0.message = self.0.message.replace(ours, known);
        self.0.detail = self.0.detail.map(|detail| detail.replace(ours, known));
        self
    }

    fn name_column(&mut self) {
        if let (Some(hint), Some(column)) = (&self.0.hint, &self.0.place.column) {
            self.0.hint = Some(hint.replace("\"<column>\"", &format!("{column:?}")));
        }
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says that another attempt may succeed at once: somebody was in the way briefly.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.0.is_transient = true;
        self
    }

    /// Puts `context` and a colon before the message.
    #[must_use]
    pub fn within(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The family of failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The text of what happened, without place, detail or hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The server's longer explanation.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The SQL standard's state, where the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        self.0.sqlstate.as_deref()
    }

    /// The database's own number of the error, where it has one.
    #[must_use]
    pub fn vendor_code(&self) -> Option<i32> {
        self.0.vendor_code
    }

    /// The position in the statement, in characters from 1.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        self.0.position
    }

    /// The column, row and native type, where known.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Whether another attempt may succeed at once.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.is_transient
    }

    /// Takes the error below this one out.
    #[must_use]
    pub fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        self.0.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        match (&inner.place.column, inner.place.row) {
            (Some(column), Some(row)) => write!(f, "column {column:?}, row {row}")?,
            (Some(column), None) => write!(f, "column {column:?}")?,
            (None, Some(row)) => write!(f, "row {row}")?,
            (None, None) => {}
        }
        if let Some(native) = &inner.place.native_type {
            write!(f, " ({native})")?;
        }
        if inner.place != Place::default() {
            f.write_str(": ")?;
        }
        f.write_str(&inner.message)?;
        if let Some(position) = inner.position {
            write!(f, " (at character {position})")?;
        }
        if let Some(sqlstate) = &inner.sqlstate {
            write!(f, " [SQLSTATE {sqlstate}]")?;
        }
        if let Some(detail) = &inner.detail {
            write!(f, "\nDetail: {detail}")?;
        }
        if let Some(hint) = &inner.hint {
            write!(f, "\nHint: {hint}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_and_what_to_do() {
        let place = Place { column: Some("price".into()), row: Some(7), native_type: Some("numeric".into()) };
        let error = Error::data("NaN has no exact decimal").with_hint("use numeric_nan").at(place);
        assert_eq!(
            error.to_string(),
            "column \"price\", row 7 (numeric): NaN has no exact decimal\nHint: use numeric_nan"
        );
    }
}
