//! The process that an object belongs to.

use crate::{Error, Result};

/// The process that opened a socket, locked a file or started a thread. A forked child has the object's memory, but neither
/// its threads nor a socket or lock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that asks.
    #[must_use]
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether this is still the process that asks, and not the one that it was forked from.
    #[must_use]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// Fails in a forked child, where `what` is its parent's.
    pub fn check(self, what: &str) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(Error::interface(format!("the {what} belongs to the process that this one was forked from"))
            .with_hint("connect and read in each process by itself"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn another_process_is_told_whose_an_object_is() {
        assert!(Process::current().check("result").is_ok());
        let other = Process(std::process::id() + 1);
        assert!(!other.is_current());
        let error = other.check("result").unwrap_err();
        assert_eq!(error.kind(), Kind::Interface);
        assert_eq!(error.message(), "the result belongs to the process that this one was forked from");
    }
}
