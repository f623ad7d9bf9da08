//! Options of a session that a server keeps: its catalogue, its schema.

use std::collections::HashMap;

use arrow_flight::Action;
use longshore_core::{Deadline, Error, Kind, Result};
use prost::Message;

use crate::client::Client;
use crate::error::broken;

/// The options that a server is asked to keep.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SetSessionOptions {
    #[prost(map = "string, message", tag = "1")]
    options: HashMap<String, OptionValue>,
}

/// The value of an option; the other kinds that Flight has are never sent.
#[derive(Clone, PartialEq, Message)]
struct OptionValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    errors: HashMap<String, OptionError>,
}

#[derive(Clone, PartialEq, Message)]
struct OptionError {
    #[prost(int32, tag = "1")]
    value: i32,
}

/// The request for options of these names and texts; `None` without any.
pub(crate) fn request<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Option<SetSessionOptions> {
    let value = |text: &str| OptionValue { text: Some(text.to_owned()) };
    let options: HashMap<_, _> = options.map(|(name, text)| (name.to_owned(), value(text))).collect();
    (!options.is_empty()).then_some(SetSessionOptions { options })
}

/// The catalogue and the schema that names without one are of, where a server tells them.
pub(crate) fn current(client: &Client, deadline: &Deadline) -> Result<[Option<String>; 2]> {
    let told = client.try_act(&Action::new("GetSessionOptions", Vec::new()), deadline)?;
    // Few servers know of sessions.
    let Ok(answers) = told else { return Ok([None, None]) };
    let told = answers.first().and_then(|answer| SetSessionOptions::decode(answer.clone()).ok());
    let mut options = told.unwrap_or_default().options;
    Ok(["catalog", "schema"].map(|name| options.remove(name).and_then(|value| value.text)))
}

/// Has the server forget the options.
pub(crate) fn close(client: &Client, deadline: &Deadline) {
    // One that does not know how forgets them in its own time.
    let _ = client.act(&Action::new("CloseSession", Vec::new()), deadline);
}

/// Has the server keep options; an error names the one that it does not take.
pub(crate) fn set(client: &Client, request: &SetSessionOptions, deadline: &Deadline) -> Result<()> {
    let names = || {
        let mut names: Vec<&str> = request.options.keys().map(String::as_str).collect();
        names.sort_unstable();
        names.join(" and ")
    };
    let action = Action::new("SetSessionOptions", request.encode_to_vec());
    let answers = client.act(&action, deadline).map_err(|error| match error.kind() {
        Kind::NotSupported => {
            Error::new(Kind::NotSupported, format!("the server keeps no {} for a session", names()))
                .with_sqlstate("0A000")
                .with_hint("leave them out, and write them before the names of tables")
        }
        _ => error,
    })?;
    for answer in answers {
        let result = SetSessionOptionsResult::decode(answer)
            .map_err(|error| broken(format_args!("the answer to session options: {error}")))?;
        if let Some(name) = result.errors.keys().next() {
            let value = request.options.get(name).and_then(|value| value.text.as_deref()).unwrap_or_default();
            return Err(Error::programming(format!("the server does not take {value:?} as the {name}"))
                .with_sqlstate("3F000")
                .with_hint("look at the name; names without one before them would be of another"));
        }
    }
    Ok(())
}
