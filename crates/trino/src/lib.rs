//! Trino's answers: a page of rows in JSON as Arrow columns, each of the type that the page's columns tell.
//!
//! A page is read twice: serde finds where each value is, and the value's column decodes it. Numbers keep their text until
//! then, so that a float is the one that the server meant.

mod column;
mod decode;
mod envelope;
mod kind;
mod temporal;

/// The functions that the fuzz targets call.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::{Pages, envelope};

    /// Columns of each way to decode.
    const COLUMNS: &str = r#"[
        {"name":"i","type":"integer","typeSignature":{"rawType":"integer","arguments":[]}},
        {"name":"d","type":"decimal","typeSignature":{"rawType":"decimal","arguments":[{"kind":"LONG","value":38},{"kind":"LONG","value":9}]}},
        {"name":"r","type":"double","typeSignature":{"rawType":"double","arguments":[]}},
        {"name":"s","type":"timestamp","typeSignature":{"rawType":"timestamp with time zone","arguments":[{"kind":"LONG","value":9}]}},
        {"name":"b","type":"varbinary","typeSignature":{"rawType":"varbinary","arguments":[]}},
        {"name":"m","type":"map","typeSignature":{"rawType":"map","arguments":[
            {"kind":"TYPE","value":{"rawType":"varchar","arguments":[]}},
            {"kind":"TYPE","value":{"rawType":"array","arguments":[{"kind":"TYPE","value":{"rawType":"interval day to second","arguments":[]}}]}}]}}
    ]"#;

    /// Reads an answer, and its rows.
    pub fn pages(bytes: &[u8]) {
        if let Ok(mut pages) = Pages::new(COLUMNS) {
            let _ = pages.decode(bytes);
        }
        if let Ok(found) = envelope(bytes)
            && let Ok(mut pages) = Pages::new(&found.head)
            && let Some(data) = found.data
        {
            let _ = pages.decode(&bytes[data]);
        }
    }
}

pub use decode::Pages;
pub use envelope::{Envelope, envelope};
