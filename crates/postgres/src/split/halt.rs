//! Why a read is not split.

use longshore_core::{Division, Error, Result};

/// Classes of SQLSTATE that say nothing of the query: the connection, resources, locks, the operator's doing. Any other
/// error the query itself meets as well, and tells it better.
const NOT_THE_QUERYS: &[&str] = &["08", "40", "53", "55", "57", "58"];

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
        let class = error.sqlstate().and_then(|state| state.get(..2));
        match class {
            Some(class) if !NOT_THE_QUERYS.contains(&class) => {
                Self::Serial(format!("the server cannot prepare parts: {}", error.message()))
            }
            _ => Self::Failed(error),
        }
    }
}
