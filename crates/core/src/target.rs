//! The database to connect to: a URL, or its parts by keyword.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{Error, PasswordSource, Result};

/// A database to connect to, as the caller gave it. Its parts mean what the source says they mean.
///
/// `Debug` shows the scheme only: a URL or a keyword may hold a secret.
#[derive(Clone)]
pub struct Target {
    scheme: String,
    rest: String,
    /// Keywords given next to or instead of a URL; they win over the URL's own.
    pub keywords: BTreeMap<String, String>,
    /// A password given as a callable, asked at each connect.
    pub password: Option<Arc<dyn PasswordSource>>,
    /// Whether one write is to come that makes its table: a database that is one file is made with it, and one that would
    /// be gone with its session is refused.
    pub creates: bool,
}

impl Target {
    /// Takes `url` apart at its scheme.
    pub fn from_url(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Error::interface("the connection is not a URL: it has no \"://\"")
                .with_hint("write it as postgresql://user@host:5432/database"));
        };
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if scheme.is_empty() || !scheme.chars().all(known) {
            return Err(Error::interface("the connection's URL does not start with a scheme")
                .with_hint("write it as postgresql://user@host:5432/database"));
        }
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            rest: rest.to_owned(),
            keywords: BTreeMap::new(),
            password: None,
            creates: false,
        })
    }

    /// A target of `scheme` that is described by keywords alone.
    pub fn from_keywords(scheme: impl Into<String>, keywords: BTreeMap<String, String>) -> Self {
        Self { scheme: scheme.into(), rest: String::new(), keywords, password: None, creates: false }
    }

    /// The URL's scheme in lower case, which names the driver.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The text that follows `scheme://`, not decoded; empty for a target by keywords.
    #[must_use]
    pub fn rest(&self) -> &str {
        &self.rest
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://***", self.scheme)
    }
}

/// Decodes `%XX` (RFC 3986, section 2.1). `what` names the part in the error, never its text.
pub fn percent_decode(text: &str, what: &str) -> Result<String> {
    let bad = || {
        Error::interface(format!("the {what} in the URL has a broken percent-encoding"))
            .with_hint("write a percent sign itself as %25")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit =
            || rest.next().and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(bad()) };
        bytes.push(high << 4 | low);
    }
    match String::from_utf8(bytes) {
        Ok(decoded) if decoded.contains('\0') => {
            Err(Error::interface(format!("the {what} in the URL holds a zero byte"))
                .with_hint("take it out: what reads a file or a variable may leave one at the end"))
        }
        Ok(decoded) => Ok(decoded),
        Err(_) => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_percent_signs_or_says_what_is_broken() {
        assert_eq!(percent_decode("a%40%2F%3a", "password").unwrap(), "a@/:");
        for broken in ["%", "%4", "%zz", "%ff", "%00"] {
            let error = percent_decode(broken, "password").unwrap_err();
            assert!(error.to_string().contains("password"), "{error}");
        }
        for zero in ["a\0", "%00"] {
            assert!(percent_decode(zero, "password").unwrap_err().message().ends_with("holds a zero byte"));
        }
    }

    #[test]
    fn shows_no_secret() {
        let target = Target::from_url("postgresql://me:hidden@host/db").unwrap();
        assert_eq!(format!("{target:?}"), "postgresql://***");
    }
}
