//! A statement and the values bound to it.

use std::fmt;

/// A value that a caller binds to a parameter, free of any database's and any language's types.
///
/// Temporal values are civil fields or counts since 1970-01-01, proleptic Gregorian calendar.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer that fits 128 bits.
    Int(i128),
    /// A double.
    Float(f64),
    /// An exact decimal, NaN or infinity, in text such as `-12.50` or `1E+3`.
    Decimal(String),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight, and the seconds east of UTC where the value has an offset.
    Time(i64, Option<i32>),
    /// Microseconds since 1970-01-01 00:00 without a time zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampTz(i64),
    /// A span of months, days and microseconds.
    Interval(i32, i32, i64),
    /// A UUID's sixteen bytes.
    Uuid([u8; 16]),
    /// A JSON document.
    Json(String),
    /// A list, nested for several dimensions.
    List(Vec<Value>),
    /// The fields of a composite, in order.
    Row(Vec<Value>),
}

/// One bound value; `name` is empty for a positional parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name after the colon, without it.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// How the parameters of a statement were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Params {
    /// None.
    #[default]
    None,
    /// By position.
    Positional(Vec<Value>),
    /// By name.
    Named(Vec<Param>),
}

/// One statement with its parameters.
#[derive(Clone, PartialEq)]
pub struct Query {
    /// The text, as the caller wrote it.
    pub text: String,
    /// The bound values.
    pub params: Params,
}

impl Query {
    /// A statement without parameters.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), params: Params::None }
    }
}

/// Shows the text only: a parameter may be a secret.
impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.text).finish()
    }
}
