//! Why a read is not split.

use longshore_core::{Division, Error, Result};

/// Classes of SQLSTATE that say nothing of the query: the connection, resources, locks, the operator's doing. Any other
/// error the query itself meets as well, and tells it better.
const NOT_THE_QUERYS: &[&str] = &["08", "40", "53", "55", "57", "58", "70"];

/// The end of an attempt to split a read.
#[derive(Debug)]
pub enum NotSplit {
    /// One session reads it all, for it is small.
    Small,
    /// One session reads it all, for this reason.
    Reason(String),
    /// The read fails.
    Failed(Error),
}

impl NotSplit {
    /// One session reads it all, for this reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self::Reason(reason.into())
    }

    /// What the caller is told.
    pub fn division(self) -> Result<Division> {
        match self {
            Self::Small => Ok(Division::Whole),
            Self::Reason(reason) => Ok(Division::Serial(reason)),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<Error> for NotSplit {
    fn from(error: Error) -> Self {
        match error.sqlstate().and_then(|state| state.get(..2)) {
            Some(class) if !NOT_THE_QUERYS.contains(&class) => {
                Self::Reason(format!("the parts cannot be prepared: {}", error.message()))
            }
            _ => Self::Failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_query_are_reasons() {
        let end = |state: &str| NotSplit::from(Error::operational("no").with_sqlstate(state)).division();
        assert!(matches!(end("42P01"), Ok(Division::Serial(_))));
        assert!(matches!(end("HY000"), Ok(Division::Serial(_))));
        for state in ["08006", "40001", "57014", "70100"] {
            assert!(end(state).is_err(), "{state}");
        }
        assert!(NotSplit::from(Error::operational("no")).division().is_err());
    }
}
