//! How one read becomes several.

use std::num::NonZeroUsize;

use crate::{Error, Query, ReadOptions, Result, Session, Value};

/// How a caller wants a read to be split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// The number of parts; `None` leaves it to the source.
    pub number: Option<NonZeroUsize>,
    /// The most parts that the source may choose by itself.
    pub most: Option<NonZeroUsize>,
    /// Whether no one asked for parts: whatever is in their way, one session reads the whole.
    pub automatic: bool,
    /// The column of the result whose values part it; without one, the source splits by what it has itself.
    pub on: Option<String>,
    /// The column's lowest and highest value where the caller knows them. They only place the bounds: values beyond
    /// them belong to the first and the last part.
    pub range: Option<(Value, Value)>,
}

impl Split {
    /// The error of a range whose ends are the wrong way round.
    #[must_use]
    pub fn falling_range() -> Error {
        Error::interface("partition_range ends before it begins")
            .with_hint("give the lowest value first: partition_range=(low, high)")
    }
}

/// The outcome that a source makes of a read that it was asked to split.
#[derive(Debug)]
pub enum SplitPlan {
    /// One session reads it all: it is too small to be worth more.
    Whole,
    /// One session must read it all, for this reason.
    Serial(String),
    /// Several sessions read a part each.
    Parts(Parts),
}

/// The parts of one read.
#[derive(Debug)]
pub struct Parts {
    /// Disjoint, together exhaustive, in the order of the frame.
    pub queries: Vec<Query>,
    /// How many sessions read them.
    pub sessions: usize,
    /// The snapshot that every session joins before it reads; `None` where the caller asked for no snapshot.
    pub snapshot: Option<String>,
}

/// The parts of `queries`, or why there are none.
pub(crate) fn divide(
    session: &mut dyn Session,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<SplitPlan> {
    let reason = match session.splitting() {
        Ok(splitting) => return splitting.split(queries, split, options),
        Err(reason) => reason,
    };
    match &split.range {
        Some((Value::Int(low), Value::Int(high))) if low > high => Err(Split::falling_range()),
        // The caller's own parts are read one after another, in one snapshot.
        _ if queries.len() > 1 && split.number.is_none() => Ok(SplitPlan::Whole),
        _ => Ok(SplitPlan::Serial(reason)),
    }
}
