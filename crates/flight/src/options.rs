//! Options of a session that a server keeps: its catalogue, its schema.

use std::collections::HashMap;

use arrow_flight::Action;
use longshore_core::{Deadline, Error, Kind, Result};
use longshore_flight_protocol::{OptionValue, SessionOptionValue, SessionOptions, SetSessionOptionsResult};
use prost::Message;

use crate::client::Client;
use crate::error::protocol_error;

/// The request for options of these names and texts; `None` without any.
pub(crate) fn request<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Option<SessionOptions> {
    let options: HashMap<_, _> =
        options.map(|(name, text)| (name.to_owned(), SessionOptionValue::text(text))).collect();
    (!options.is_empty()).then_some(SessionOptions { options })
}

/// The catalogue and the schema that names without one are of, where a server tells them.
pub(crate) fn current(client: &Client, deadline: &Deadline) -> Result<[Option<String>; 2]> {
    let told = client.try_act(&Action::new("GetSessionOptions", Vec::new()), deadline)?;
    // Few servers know of sessions.
    let Ok(answers) = told else { return Ok([None, None]) };
    let told = answers.first().and_then(|answer| SessionOptions::decode(answer.clone()).ok());
    let mut options = told.unwrap_or_default().options;
    Ok(["catalog", "schema"].map(|name| options.remove(name).and_then(text)))
}

/// The text of a value; the other kinds that Flight has are never sent.
fn text(value: SessionOptionValue) -> Option<String> {
    match value.value? {
        OptionValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Has the server forget the options.
pub(crate) fn close(client: &Client, deadline: &Deadline) {
    // One that does not know how forgets them in its own time.
    let _ = client.act(&Action::new("CloseSession", Vec::new()), deadline);
}

/// Has the server keep options; an error names the one that it does not take.
pub(crate) fn set(client: &Client, request: &SessionOptions, deadline: &Deadline) -> Result<()> {
    let names = || {
        let mut names: Vec<&str> = request.options.keys().map(String::as_str).collect();
        names.sort_unstable();
        names.join(" and ")
    };
    let action = Action::new("SetSessionOptions", request.encode_to_vec());
    let answers = client.act(&action, deadline).map_err(|error| match error.kind() {
        Kind::NotSupported => Error::not_supported(format!("the server keeps no {} for a session", names()))
            .with_sqlstate("0A000")
            .with_hint("leave them out, and write them before the names of tables"),
        _ => error,
    })?;
    for answer in answers {
        let result = SetSessionOptionsResult::decode(answer)
            .map_err(|error| protocol_error(format_args!("the answer to session options: {error}")))?;
        if let Some(name) = result.errors.keys().next() {
            let value = request.options.get(name).cloned().and_then(text).unwrap_or_default();
            return Err(Error::programming(format!("the server does not take {value:?} as the {name}"))
                .with_sqlstate("3F000")
                .with_hint("look at the name; names without one before them would be of another"));
        }
    }
    Ok(())
}
