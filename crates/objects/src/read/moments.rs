//! Dates, times, spans of time, and UUIDs.

use longshore_cells::calendar::{DAY, SECOND};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTzInfo;

use super::{Misread, numpy, packed};
use crate::class::Class;

/// 1970-01-01 as Python's `date.toordinal` counts.
const EPOCH: i64 = 719_163;

/// What a datetime says, in microseconds since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Naive(i64),
    /// In UTC.
    Instant(i64),
    /// A day without a time, in days since 1970-01-01.
    Day(i32),
    /// NumPy's NaT.
    Null,
}

const NANOSECONDS: Misread = Misread::Odd(
    "it has nanoseconds, which objects do not keep",
    "make a column of nanoseconds with pandas.to_datetime or pandas.to_timedelta, or round it to microseconds",
);

const BEYOND: Misread =
    Misread::Odd("it is beyond what Arrow's 64 bits of microseconds hold", "convert the column to text");

/// A date or a datetime.
pub(crate) fn moment(item: &Bound<'_, PyAny>, class: Class) -> Result<Moment, Misread> {
    match class {
        Class::Date => Ok(Moment::Day(days(item)?)),
        Class::NumpyMoment => numpy::moment(item),
        Class::Moment { exact } => {
            if !exact {
                refuse_nanoseconds(item, "nanosecond")?;
            }
            datetime(item)
        }
        _ => Err(Misread::Changed),
    }
}

fn datetime(item: &Bound<'_, PyAny>) -> Result<Moment, Misread> {
    match packed::datetime(item) {
        Some((local, false)) => Ok(Moment::Naive(local)),
        // The commonest zone, which need not be asked.
        Some((local, true)) if is_in_utc(item)? => Ok(Moment::Instant(local)),
        Some((local, true)) => zoned(item, local),
        None => {
            let local =
                within(i128::from(asked_days(item)?) * i128::from(DAY) + i128::from(asked_clock(item)?))?;
            if has_zone(item)? { zoned(item, local) } else { Ok(Moment::Naive(local)) }
        }
    }
}

/// What a datetime with a zone says, by whose clock it is so many microseconds since 1970-01-01.
fn zoned(item: &Bound<'_, PyAny>, local: i64) -> Result<Moment, Misread> {
    let offset = item.call_method0(intern!(item.py(), "utcoffset"))?;
    // Python takes a zone that tells no offset for none.
    if offset.is_none() {
        return Ok(Moment::Naive(local));
    }
    within(i128::from(local) - i128::from(span(&offset)?)).map(Moment::Instant)
}

/// A day, in days since 1970-01-01; `None` for NumPy's NaT.
pub(crate) fn date(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i32>, Misread> {
    match moment(item, class)? {
        Moment::Day(days) => Ok(Some(days)),
        Moment::Null => Ok(None),
        _ => Err(Misread::Changed),
    }
}

/// A time of day, in microseconds.
pub(crate) fn time(item: &Bound<'_, PyAny>, class: Class) -> Result<i64, Misread> {
    if class != Class::Time {
        return Err(Misread::Changed);
    }
    let (clock, has_zone) = match packed::time(item) {
        Some(both) => both,
        None => (asked_clock(item)?, has_zone(item)?),
    };
    if has_zone {
        return Err(Misread::Odd(
            "the time has a time zone, which Arrow's times have not",
            "convert it to UTC and take the zone away, or convert it to text",
        ));
    }
    Ok(clock)
}

/// A span of time in microseconds; `None` for NumPy's NaT.
pub(crate) fn delta(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i64>, Misread> {
    match class {
        Class::NumpyDelta => numpy::delta(item),
        Class::Delta { exact } => {
            if !exact {
                refuse_nanoseconds(item, "nanoseconds")?;
            }
            span(item).map(Some)
        }
        _ => Err(Misread::Changed),
    }
}

/// Months, days and nanoseconds.
pub(crate) fn interval(item: &Bound<'_, PyAny>, class: Class) -> Result<(i32, i32, i64), Misread> {
    if class != Class::Interval {
        return Err(Misread::Changed);
    }
    interval_parts(item).map_err(|_| {
        Misread::Odd(
            "the interval's months, days or nanoseconds are not integers of 32, 32 and 64 bits",
            "convert the column to text",
        )
    })
}

fn interval_parts(item: &Bound<'_, PyAny>) -> PyResult<(i32, i32, i64)> {
    let py = item.py();
    Ok((
        item.getattr(intern!(py, "months"))?.extract()?,
        item.getattr(intern!(py, "days"))?.extract()?,
        item.getattr(intern!(py, "nanoseconds"))?.extract()?,
    ))
}

pub(crate) fn uuid(item: &Bound<'_, PyAny>, class: Class) -> Result<[u8; 16], Misread> {
    if class != Class::Uuid {
        return Err(Misread::Changed);
    }
    Ok(item.getattr(intern!(item.py(), "bytes"))?.extract()?)
}

/// `value` with a sign, where 64 bits hold it.
pub(super) fn within(value: i128) -> Result<i64, Misread> {
    i64::try_from(value).map_err(|_| BEYOND)
}

pub(super) fn nanoseconds() -> Misread {
    NANOSECONDS
}

/// pandas' moments and spans have nanoseconds beside what Python's have.
fn refuse_nanoseconds(item: &Bound<'_, PyAny>, attribute: &str) -> Result<(), Misread> {
    match item.getattr_opt(attribute)?.map(|value| value.extract::<i64>()) {
        Some(Ok(0)) | None => Ok(()),
        Some(_) => Err(NANOSECONDS),
    }
}

/// The day of a date, in days since 1970-01-01.
fn days(item: &Bound<'_, PyAny>) -> Result<i32, Misread> {
    let days = packed::date(item).map_or_else(|| asked_days(item), Ok)?;
    i32::try_from(days).map_err(|_| BEYOND)
}

fn is_in_utc(item: &Bound<'_, PyAny>) -> Result<bool, Misread> {
    Ok(item.getattr(intern!(item.py(), "tzinfo"))?.is(PyTzInfo::utc(item.py())?))
}

fn has_zone(item: &Bound<'_, PyAny>) -> Result<bool, Misread> {
    Ok(!item.getattr(intern!(item.py(), "tzinfo"))?.is_none())
}

fn asked_days(item: &Bound<'_, PyAny>) -> Result<i64, Misread> {
    let days: i32 = item.call_method0(intern!(item.py(), "toordinal"))?.extract()?;
    Ok(i64::from(days) - EPOCH)
}

fn asked_clock(item: &Bound<'_, PyAny>) -> Result<i64, Misread> {
    let py = item.py();
    let hour: i32 = item.getattr(intern!(py, "hour"))?.extract()?;
    let minute: i32 = item.getattr(intern!(py, "minute"))?.extract()?;
    let second: i32 = item.getattr(intern!(py, "second"))?.extract()?;
    let microsecond: i32 = item.getattr(intern!(py, "microsecond"))?.extract()?;
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    Ok((minutes * 60 + i64::from(second)) * SECOND + i64::from(microsecond))
}

fn span(item: &Bound<'_, PyAny>) -> Result<i64, Misread> {
    let py = item.py();
    let days: i64 = item.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i64 = item.getattr(intern!(py, "seconds"))?.extract()?;
    let microseconds: i64 = item.getattr(intern!(py, "microseconds"))?.extract()?;
    within(i128::from(days) * i128::from(DAY) + i128::from(seconds) * 1_000_000 + i128::from(microseconds))
}
