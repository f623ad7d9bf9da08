//! The settings that a URL or keywords say of a store: where it is, and what is seen of it.

use std::path::PathBuf;
use std::time::Duration;

use longshore_core::{Error, Result, Target, percent_decode};
use longshore_source::settings::{Key, Keys, Url, Values};
use longshore_store::{Access, Snapshot};
use longshore_values::calendar::{Temporal, parse};

static KEYS: Keys = Keys {
    all: &[
        Key::new("database"),
        Key::new("read_only").or("longshore.store.read-only"),
        Key::new("create").or("longshore.store.create"),
        Key::new("timeout").or("longshore.store.timeout"),
        Key::new("version").or("longshore.store.version"),
        Key::new("at").or("longshore.store.at"),
        Key::new("verify").or("longshore.store.verify"),
        Key::new("libduckdb").or("longshore.store.libduckdb"),
    ],
    hint: "the settings are database, read_only, create, timeout, version, at, verify and libduckdb",
};

/// A store and how it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    /// How long a writer waits for another.
    pub(crate) timeout: Option<Duration>,
    /// The version that each transaction sees.
    pub(crate) snapshot: Snapshot,
    pub(crate) verify: bool,
    /// The library of the SQL engine.
    pub(crate) libduckdb: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn of(target: &Target) -> Result<Self> {
        if target.password.is_some() {
            return Err(Error::interface("a store has no password"));
        }
        let (path, query) = target.rest().split_once('?').unwrap_or((target.rest(), ""));
        let path = match path.strip_prefix('/') {
            Some(path) => percent_decode(path, "path")?,
            None if path.is_empty() => String::new(),
            None => {
                return Err(Error::interface("a store's URL has no host")
                    .with_hint("write store:///relative/path or store:////absolute/path"));
            }
        };
        let mut values = Values::new(&KEYS);
        // Keywords win over the URL.
        let pairs = target.keywords.clone().into_iter().chain([("database".to_owned(), path)]);
        for (name, value) in pairs.chain(Url::pairs(query)?) {
            values.set(&name, &value)?;
        }
        Self::read(&values, target.creates)
    }

    fn read(values: &Values, creates: bool) -> Result<Self> {
        let path = values.path("database").ok_or_else(|| {
            Error::interface("a store has a path").with_hint("write store:///relative/path")
        })?;
        let snapshot = snapshot(values)?;
        let access = if values.flag("read_only")?.unwrap_or(false) || snapshot != Snapshot::Newest {
            Access::Read
        } else if creates || values.flag("create")?.unwrap_or(false) {
            Access::Create
        } else {
            Access::Write
        };
        let (timeout, verify) = (values.seconds("timeout")?, values.flag("verify")?.unwrap_or(false));
        let libduckdb = values.path("libduckdb");
        Ok(Self { path, access, timeout, snapshot, verify, libduckdb })
    }
}

fn snapshot(values: &Values) -> Result<Snapshot> {
    match (values.number("version")?, values.text("at")) {
        (Some(_), Some(_)) => {
            Err(Error::interface("a version has a number or a time, not both").with_hint("leave one out"))
        }
        (Some(version), None) => Ok(Snapshot::Version(version)),
        // In a URL, + is a blank.
        (None, Some(at)) => {
            match parse(at.replacen(' ', "+", 1).as_bytes()) {
                Some(Temporal::TimestampTz(at)) => Ok(Snapshot::Time(at)),
                _ => Err(Error::interface("at is a time with a time zone")
                    .with_hint("write at=2026-01-31T12:00:00Z")),
            }
        }
        (None, None) => Ok(Snapshot::Newest),
    }
}
