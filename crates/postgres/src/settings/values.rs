//! Settings by name, before they have been given a meaning.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_core::{Error, Result};

use super::environment::Environment;
use super::keys;

/// The texts of all settings that something has been said about. No `Debug`: one of them is the password.
#[derive(Default)]
pub(crate) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Sets `name`, which must be known. An empty text leaves it open.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = keys::find(name)?.name;
        if value.contains('\0') {
            return Err(Error::interface(format!("the connection setting {name} holds a zero byte"))
                .with_hint("take it out: PostgreSQL ends every text there"));
        }
        match (name, value) {
            // JDBC's spelling, which libpq knows too.
            ("ssl", "true" | "1") => drop(self.0.insert("sslmode", "require".into())),
            ("ssl", "false" | "0") => drop(self.0.insert("sslmode", "disable".into())),
            ("ssl", _) => {
                return Err(Error::interface("the connection setting ssl is neither true nor false")
                    .with_hint("write sslmode=require, or another of libpq's modes"));
            }
            (_, "") => {}
            _ => drop(self.0.insert(name, value.to_owned())),
        }
        Ok(())
    }

    /// Sets `name` unless it is set.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) -> Result<()> {
        let meant = if name == "ssl" { "sslmode" } else { name };
        if self.0.contains_key(meant) { keys::find(name).map(drop) } else { self.set(name, value) }
    }

    /// Sets what is still open from the environment's variables.
    pub(crate) fn set_defaults_from(&mut self, environment: &Environment) -> Result<()> {
        for key in &keys::KEYS {
            let Some(variable) = key.variable else { continue };
            if let Some(value) = environment.get(variable) {
                self.set_default(key.name, value)
                    .map_err(|error| error.within(format!("the environment variable {variable}")))?;
            }
        }
        Ok(())
    }

    /// The text of a setting.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A whole number, negative ones included.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number: i32 = text.trim().parse().map_err(|_| {
            Error::interface(format!("the connection setting {name} is not a whole number"))
                .with_hint(format!("write {name}=10, for example"))
        })?;
        Ok(Some(number.into()))
    }

    /// A time in seconds; none is what zero and negative numbers mean.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_secs))
    }

    /// A time in milliseconds; none is what zero and negative numbers mean.
    pub(crate) fn milliseconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_millis))
    }

    fn positive(&self, name: &str) -> Result<Option<u64>> {
        let number = self.number(name)?.and_then(|number| u64::try_from(number).ok());
        Ok(number.filter(|number| *number > 0))
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Error::interface(format!("the connection setting {name} has an unknown value"))
                .with_hint(format!("write one of {}", words.join(", ")))
        })
    }
}
