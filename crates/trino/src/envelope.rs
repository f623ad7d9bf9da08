//! An answer without its rows.

use std::ops::Range;

use longshore_core::{Error, Kind, Result};
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// The envelope of an answer: what it says next to its rows, as JSON, and where its rows are.
#[derive(Debug)]
pub struct Envelope {
    /// The answer's object without `data`.
    pub head: String,
    /// The bytes of `data`; none where there is no such value.
    pub data: Option<Range<usize>>,
}

/// Takes an answer apart.
pub fn envelope(body: &[u8]) -> Result<Envelope> {
    let broken = |what: &dyn std::fmt::Display| {
        Error::new(Kind::Operational, format!("the server's answer is not one of Trino's: {what}"))
            .with_hint("see that the URL is that of a Trino coordinator")
    };
    let text = std::str::from_utf8(body).map_err(|error| broken(&error))?;
    let Entries(entries) = serde_json::from_str(text).map_err(|error| broken(&error))?;
    let (mut head, mut data) = (String::from("{"), None);
    for (name, value) in entries {
        if name == "data" {
            let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
            data = (value.get() != "null").then(|| start..start + value.get().len());
            continue;
        }
        if head.len() > 1 {
            head.push(',');
        }
        head.push_str(&serde_json::to_string(&name).map_err(|error| broken(&error))?);
        head.push(':');
        head.push_str(value.get());
    }
    head.push('}');
    Ok(Envelope { head, data })
}

/// The entries of an object in their order, with those that come twice.
pub(crate) struct Entries<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Entries<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Entries<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_found_and_left_out() {
        let body = br#"{"id": "a\"data\"", "data": [[1, "x"]] , "stats":{"data":1}}"#;
        let found = envelope(body).unwrap();
        assert_eq!(found.head, r#"{"id":"a\"data\"","stats":{"data":1}}"#);
        assert_eq!(&body[found.data.unwrap()], br#"[[1, "x"]]"#);
        assert!(envelope(br#"{"data":null}"#).unwrap().data.is_none());
        for broken in [&b"<html>"[..], b"{\"a\":1", b"[]", b"\xff", b""] {
            assert!(envelope(broken).is_err());
        }
    }
}
