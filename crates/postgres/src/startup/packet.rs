//! The start-up packet, and what is checked of the server's answer to it.

use std::collections::BTreeMap;

use longshore_core::{Error, Result};

use crate::settings::Settings;

/// Says goodbye.
pub(super) const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];

/// Version 3.0 of the protocol.
const VERSION: [u8; 4] = [0, 3, 0, 0];

/// The longest packet that servers accept (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST: usize = 10_000;

/// The start-up packet: nothing beyond what every server and pooler knows, unless the caller asks for it.
pub(super) fn startup(settings: &Settings) -> Result<Vec<u8>> {
    let wishes = [
        ("user", Some(settings.user.as_str())),
        ("database", Some(&settings.database)),
        ("application_name", Some(&settings.application_name)),
        ("client_encoding", Some("UTF8")),
        ("DateStyle", Some("ISO")),
        ("TimeZone", settings.time_zone.as_deref()),
        ("options", settings.options.as_deref()),
    ];
    let mut packet = vec![0; 4];
    packet.extend(VERSION);
    for (name, value) in wishes {
        let Some(value) = value else { continue };
        for text in [name, value] {
            packet.extend(text.as_bytes());
            packet.push(0);
        }
    }
    packet.push(0);
    let length = u32::try_from(packet.len()).ok().filter(|_| packet.len() <= LONGEST).ok_or_else(|| {
        Error::interface(format!(
            "user, database, application_name and options together exceed {LONGEST} bytes"
        ))
        .with_hint("shorten them; settings can also be made by pre_execution_query")
    })?;
    if let Some(start) = packet.first_chunk_mut() {
        *start = length.to_be_bytes();
    }
    Ok(packet)
}

/// Every text is read as UTF-8: a server that sends another encoding must not get that far.
pub(super) fn check_encoding(parameters: &BTreeMap<String, String>) -> Result<()> {
    let Some(encoding) = parameters.get("client_encoding") else { return Ok(()) };
    let letters =
        encoding.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    if matches!(letters.as_str(), "UTF8" | "UNICODE") {
        return Ok(());
    }
    Err(Error::operational(format!(
        "the server sends its texts in {encoding} although it was asked for UTF8"
    ))
    .with_hint(
        "take client_encoding out of options, of the pooler's settings and of ALTER ROLE or ALTER DATABASE",
    ))
}
