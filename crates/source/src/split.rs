//! The base of every source's splitting: why a read is not split, how many sessions it is worth, the column that parts it,
//! and bounds of equal width.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use longshore_core::{Error, Parts, Query, Result, Split, SplitPlan, Value};

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

    /// The plan that the caller is told of.
    pub fn into_plan(self) -> Result<SplitPlan> {
        match self {
            Self::Small => Ok(SplitPlan::Whole),
            Self::Reason(reason) => Ok(SplitPlan::Serial(reason)),
            Self::Failed(error) => Err(error),
        }
    }
}

/// The plan of an attempt to split. After a failure, `stop` has the server wait for the next statement, and tells whether it does.
pub fn plan(divided: Result<Parts, NotSplit>, stop: impl FnOnce() -> bool) -> Result<SplitPlan> {
    let reason = match divided {
        Ok(parts) => return Ok(SplitPlan::Parts(parts)),
        Err(reason) => reason,
    };
    let is_good = stop();
    let plan = reason.into_plan()?;
    if is_good { Ok(plan) } else { Err(Error::operational("the connection was lost")) }
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

/// Below this many bytes one session reads the whole, unless the caller says how many.
pub const SMALL: u64 = 32 << 20;

/// Bytes that are worth a session.
const PER_SESSION: u64 = 16 << 20;

/// How many sessions a result of about so many bytes is worth.
#[must_use]
pub fn sessions_for(bytes: u64, most: usize) -> usize {
    if bytes < SMALL { 1 } else { usize::try_from(bytes / PER_SESSION).unwrap_or(most).min(most) }
}

/// The most sessions that `split` wants for `queries`.
pub fn most_sessions(queries: &[Query], split: &Split) -> Result<usize, NotSplit> {
    let most = split.number.or(split.most).map_or(1, NonZeroUsize::get);
    if most < 2 || queries.is_empty() { Err(NotSplit::Small) } else { Ok(most) }
}

/// The place of the only column called `on`, which is to part a result of these columns.
pub fn key_column<'a>(columns: impl IntoIterator<Item = &'a str>, on: &str) -> Result<usize> {
    let known: Vec<&str> = columns.into_iter().collect();
    let mut found = known.iter().enumerate().filter(|(_, name)| **name == on);
    let Some((at, _)) = found.next() else { return Err(Error::unknown_column("partition_on", on, &known)) };
    if found.next().is_none() {
        return Ok(at);
    }
    Err(Error::interface(format!("partition_on names {on:?}, and the query returns several of that name"))
        .with_hint("give each column a name of its own with AS"))
}

/// The error of a key whose values cannot be compared.
#[must_use]
pub fn without_order(on: &str, native: &str) -> Error {
    Error::interface(format!("partition_on names {on:?}, whose type {native} has no order"))
        .with_hint("give a column of numbers, dates, times, text or another type that can be compared with <")
}

/// The error of a `partition_range` whose values are not of the key's type.
#[must_use]
pub fn unfit_range(native: &str) -> Error {
    Error::interface(format!("partition_range does not fit the type {native} of partition_on"))
        .with_hint("give two numbers, two dates or two datetimes, as the column has them; or leave it out")
}

/// Conditions on `column` that divide its values at `bounds`, which ascend; NULL fulfils none of them.
#[must_use]
pub fn ranges(column: &str, bounds: &[String]) -> Vec<String> {
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else {
        return vec![format!("{column} IS NOT NULL")];
    };
    let between = |pair: &[String]| format!("{column} >= {} AND {column} < {}", pair[0], pair[1]);
    let first = std::iter::once(format!("{column} < {first}"));
    first.chain(bounds.windows(2).map(between)).chain([format!("{column} >= {last}")]).collect()
}

/// The same where the values' order may be another than the bounds': each condition but the first rules out all parts before it.
/// `always` is a condition that every row fulfils, and `is_null` the one of NULL, which the last part has.
#[must_use]
pub fn ranges_with_null(column: &str, bounds: &[String], always: &str, is_null: &str) -> Vec<String> {
    let mut before: Vec<String> = Vec::with_capacity(bounds.len());
    let mut conditions = Vec::with_capacity(bounds.len() + 1);
    for bound in bounds {
        let here = format!("{column} < {bound}");
        conditions.push(before.iter().chain([&here]).cloned().collect::<Vec<_>>().join(" AND "));
        before.push(format!("{column} >= {bound}"));
    }
    let last = if before.is_empty() { always.to_owned() } else { before.join(" AND ") };
    conditions.push(format!("({last} OR {column} {is_null})"));
    conditions
}

/// A value on the scale of a key.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Scalar {
    /// Integers, days, microseconds.
    Steps(i128),
    /// Any other number.
    Real(f64),
}

impl Scalar {
    /// The point after `part` of `number` parts of the way to `high`.
    #[allow(clippy::cast_precision_loss)] // numbers of parts are small
    fn towards(self, high: Self, part: usize, number: usize) -> Self {
        match (self, high) {
            // A whole number takes a step: the last one belongs to the span.
            (Self::Steps(low), Self::Steps(high)) => {
                Self::Steps(low + (high - low + 1) * part as i128 / number as i128)
            }
            (Self::Real(low), Self::Real(high)) => {
                let share = part as f64 / number as f64;
                // What rounding adds must not lead out of the span.
                Self::Real((low * (1.0 - share) + high * share).clamp(low, high))
            }
            _ => self,
        }
    }
}

/// The points that divide the span from `low` to `high` into at most `number` parts of one width, in their order and each
/// once: a bound that is not behind the one before it would have rows in two parts. `rounded` is what becomes of a point in
/// a type that has fewer numbers.
pub fn even_points(
    low: Scalar,
    high: Scalar,
    number: usize,
    rounded: impl Fn(Scalar) -> Scalar,
) -> Result<Vec<Scalar>> {
    if low > high {
        return Err(Split::falling_range());
    }
    let mut points: Vec<Scalar> = Vec::new();
    for part in 1..number {
        let point = rounded(low.towards(high, part, number));
        if points.last().is_none_or(|last| *last < point) {
            points.push(point);
        }
    }
    Ok(points)
}

const DAY: i64 = 86_400_000_000;

/// A caller's number; `None` for any other value.
#[must_use]
pub fn real(value: &Value) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // a bound need not be exact
    let real = match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        Value::Decimal(text) => text.parse().ok()?,
        _ => return None,
    };
    real.is_finite().then_some(real)
}

/// The whole part of a caller's number, within 100 bits.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // what is beyond 128 bits is beyond the limits, too
pub fn whole(value: &Value) -> Option<i128> {
    let whole = match value {
        Value::Int(value) => *value,
        other => real(other)?.floor() as i128,
    };
    Some(whole.clamp(-(1 << 100), 1 << 100))
}

/// The days since 1970-01-01 of a caller's date or naive timestamp.
#[must_use]
pub fn days(value: &Value) -> Option<i128> {
    microseconds(value).map(|at| at.div_euclid(DAY.into()))
}

/// The microseconds since 1970-01-01 00:00 of a caller's date or naive timestamp.
#[must_use]
pub fn microseconds(value: &Value) -> Option<i128> {
    match value {
        Value::Date(days) => Some(i128::from(*days) * i128::from(DAY)),
        Value::Timestamp(at) => Some(i128::from(*at)),
        _ => None,
    }
}

/// The snapshots that sessions of this process share, by their number, as long as one of the sessions has them.
#[derive(Debug)]
pub struct SharedSnapshots<T> {
    last: AtomicU64,
    known: Mutex<Vec<(u64, Weak<T>)>>,
}

impl<T> SharedSnapshots<T> {
    /// None yet.
    #[must_use]
    #[allow(clippy::new_without_default)] // a default could not be a static
    pub const fn new() -> Self {
        Self { last: AtomicU64::new(0), known: Mutex::new(Vec::new()) }
    }

    /// Makes `shared` known; gives its name.
    pub fn announce(&self, shared: &Arc<T>) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, shared)| shared.strong_count() > 0);
        known.push((number, Arc::downgrade(shared)));
        number.to_string()
    }

    /// The snapshot called `name`.
    pub fn find(&self, name: &str) -> Result<Arc<T>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(number, _)| number.to_string() == name);
        found
            .and_then(|(_, shared)| shared.upgrade())
            .ok_or_else(|| Error::internal("the snapshot's session is gone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_grow_with_the_size() {
        assert_eq!(sessions_for(SMALL - 1, 8), 1);
        assert_eq!(sessions_for(SMALL, 8), 2);
        assert_eq!(sessions_for(64 << 20, 8), 4);
        assert_eq!(sessions_for(u64::MAX, 8), 8);
    }

    #[test]
    fn ranges_leave_no_value_out() {
        let ranges = |bounds: &[&str]| {
            ranges("r", &bounds.iter().map(|bound| (*bound).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(ranges(&[]), ["r IS NOT NULL"]);
        assert_eq!(ranges(&["5"]), ["r < 5", "r >= 5"]);
        assert_eq!(ranges(&["5", "9"]), ["r < 5", "r >= 5 AND r < 9", "r >= 9"]);
    }

    #[test]
    fn points_are_even_and_each_once() {
        let steps = |low: i128, high: i128, number| {
            even_points(Scalar::Steps(low), Scalar::Steps(high), number, |it| it).unwrap()
        };
        assert_eq!(steps(1, 100, 4), [26, 51, 76].map(Scalar::Steps));
        assert_eq!(steps(0, 2, 4), [0, 1, 2].map(Scalar::Steps));
        assert_eq!(steps(i64::MIN.into(), u64::MAX.into(), 2).len(), 1);
        let halves = even_points(Scalar::Real(0.0), Scalar::Real(1.0), 2, |it| it);
        assert_eq!(halves.unwrap(), [Scalar::Real(0.5)]);
        assert!(even_points(Scalar::Steps(2), Scalar::Steps(1), 2, |it| it).is_err());
        assert_eq!((days(&Value::Timestamp(-1)), whole(&Value::Float(1.5))), (Some(-1), Some(1)));
    }

    #[test]
    fn errors_of_the_query_are_reasons() {
        let end = |state: &str| NotSplit::from(Error::operational("no").with_sqlstate(state)).into_plan();
        assert!(matches!(end("42P01"), Ok(SplitPlan::Serial(_))));
        assert!(matches!(end("HY000"), Ok(SplitPlan::Serial(_))));
        for state in ["08006", "40001", "57014", "70100"] {
            assert!(end(state).is_err(), "{state}");
        }
        assert!(NotSplit::from(Error::operational("no")).into_plan().is_err());
    }
}
