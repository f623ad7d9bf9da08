//! The messages of `Flight.proto` for the options of a session.

use std::collections::HashMap;

use prost::{Message, Oneof};

/// `SetSessionOptionsRequest`, and `GetSessionOptionsResult`, which is the same.
#[derive(Clone, PartialEq, Message)]
pub struct SessionOptions {
    /// The options, by their names.
    #[prost(map = "string, message", tag = "1")]
    pub options: HashMap<String, SessionOptionValue>,
}

/// The value of an option; without one, the option is unset.
#[derive(Clone, PartialEq, Message)]
pub struct SessionOptionValue {
    /// The value.
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4, 5")]
    pub value: Option<OptionValue>,
}

impl SessionOptionValue {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { value: Some(OptionValue::Text(text.into())) }
    }
}

/// The kinds of values.
#[derive(Clone, PartialEq, Oneof)]
pub enum OptionValue {
    /// A text.
    #[prost(string, tag = "1")]
    Text(String),
    /// True or false.
    #[prost(bool, tag = "2")]
    Flag(bool),
    /// An integer.
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    /// A float.
    #[prost(double, tag = "4")]
    Double(f64),
    /// Texts.
    #[prost(message, tag = "5")]
    Texts(TextList),
}

/// A list of texts.
#[derive(Clone, PartialEq, Message)]
pub struct TextList {
    /// The texts.
    #[prost(string, repeated, tag = "1")]
    pub values: Vec<String>,
}

/// The options that were not set.
#[derive(Clone, PartialEq, Message)]
pub struct SetSessionOptionsResult {
    /// The reasons, by the options' names.
    #[prost(map = "string, message", tag = "1")]
    pub errors: HashMap<String, OptionError>,
}

/// The reason why an option is not set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct OptionError {
    /// The number of an `ErrorValue`.
    #[prost(int32, tag = "1")]
    pub value: i32,
}
