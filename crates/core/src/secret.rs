//! Texts that must never be shown.

use std::fmt;

use crate::Result;

/// A password or key whose `Debug` and `Display` show nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Something that gives the password at each connect: short-lived tokens, a vault.
pub trait PasswordSource: Send + Sync {
    /// The password as of now.
    fn password(&self) -> Result<Secret>;
}

impl PasswordSource for Secret {
    fn password(&self) -> Result<Secret> {
        Ok(self.clone())
    }
}

impl fmt::Debug for dyn PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
