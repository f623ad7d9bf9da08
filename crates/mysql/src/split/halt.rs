//! Why a read is not split.

use longshore_core::{Division, Error, Result};

/// Classes of SQLSTATE that say something of the query, which then tells it better itself.
const THE_QUERYS: &[&str] = &["0A", "21", "22", "42", "HY"];

/// The end of the attempt.
#[derive(Debug)]
pub(super) enum Halt {
    /// One session reads it all, for it is small.
    Whole,
    /// One session reads it all, for this reason.
    Serial(String),
    /// The read fails.
    Failed(Error),
}

impl Halt {
    pub(super) fn serial(reason: impl Into<String>) -> Self {
        Self::Serial(reason.into())
    }

    /// What the caller is told.
    pub(super) fn division(self) -> Result<Division> {
        match self {
            Self::Whole => Ok(Division::Whole),
            Self::Serial(reason) => Ok(Division::Serial(reason)),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error.sqlstate().and_then(|state| state.get(..2)) {
            Some(class) if THE_QUERYS.contains(&class) => {
                Self::Serial(format!("the server cannot prepare parts: {}", error.message()))
            }
            _ => Self::Failed(error),
        }
    }
}
