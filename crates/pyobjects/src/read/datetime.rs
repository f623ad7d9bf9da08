//! Dates, times, spans of time, and UUIDs.
//!
//! The stable ABI has attributes for the parts of a `date`, a `datetime` and a `time`, each of which makes an integer. Their objects
//! have had one form since Python 3.6 (Include/datetime.h, `PyDateTime_Date` and those behind it): the parts are bytes, behind a
//! byte that tells whether there is a zone. What inherits from these types, and all of them where a sample is kept in another
//! way, is read by its attributes.

use longshore_values::calendar::{DAY, SECOND, days_from_civil};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDateTime, PyTime, PyTzInfo};
use pyo3::{ffi, intern};

use crate::class::Class;
use crate::read::{ReadError, numpy};

/// 1970-01-01 as Python's `date.toordinal` counts.
const EPOCH: i64 = 719_163;

/// A datetime, in microseconds since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temporal {
    Timestamp(i64),
    /// In UTC.
    TimestampTz(i64),
    /// A day without a time, in days since 1970-01-01.
    Date(i32),
    /// NumPy's NaT.
    Null,
}

pub(crate) const NANOSECONDS: ReadError = ReadError::Unrepresentable(
    "it has nanoseconds, of which only whole microseconds are kept",
    "make a column of nanoseconds with pandas.to_datetime or pandas.to_timedelta, or round it to microseconds",
);

pub(super) const BEYOND: ReadError = ReadError::Unrepresentable(
    "it is beyond what Arrow's 64 bits of microseconds hold",
    "convert the column to text",
);

/// A date or a datetime.
pub(crate) fn temporal(item: &Bound<'_, PyAny>, class: Class) -> Result<Temporal, ReadError> {
    match class {
        Class::Date => Ok(Temporal::Date(days(item)?)),
        Class::NumpyDatetime => numpy::temporal(item),
        Class::Datetime { exact } => {
            if !exact {
                refuse_nanoseconds(item, "nanosecond")?;
            }
            datetime(item)
        }
        _ => Err(ReadError::Changed),
    }
}

fn datetime(item: &Bound<'_, PyAny>) -> Result<Temporal, ReadError> {
    match packed_datetime(item) {
        Some((local, false)) => Ok(Temporal::Timestamp(local)),
        // The commonest zone, which need not be asked.
        Some((local, true)) if is_in_utc(item)? => Ok(Temporal::TimestampTz(local)),
        Some((local, true)) => with_zone(item, local),
        None => {
            let local =
                within(i128::from(asked_days(item)?) * i128::from(DAY) + i128::from(asked_time(item)?))?;
            if has_zone(item)? { with_zone(item, local) } else { Ok(Temporal::Timestamp(local)) }
        }
    }
}

/// A datetime with a zone, in whose local time it is so many microseconds since 1970-01-01.
fn with_zone(item: &Bound<'_, PyAny>, local: i64) -> Result<Temporal, ReadError> {
    let offset = item.call_method0(intern!(item.py(), "utcoffset"))?;
    // Python takes a zone that tells no offset for none.
    if offset.is_none() {
        return Ok(Temporal::Timestamp(local));
    }
    let (days, microseconds) = delta(&offset, Class::Timedelta { exact: true })?;
    within(i128::from(local) - i128::from(i64::from(days) * DAY + microseconds)).map(Temporal::TimestampTz)
}

/// A day, in days since 1970-01-01; `None` for NumPy's NaT.
pub(crate) fn date(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i32>, ReadError> {
    match temporal(item, class)? {
        Temporal::Date(days) => Ok(Some(days)),
        Temporal::Null => Ok(None),
        _ => Err(ReadError::Changed),
    }
}

/// A time of day, in microseconds.
pub(crate) fn time(item: &Bound<'_, PyAny>, class: Class) -> Result<i64, ReadError> {
    if class != Class::Time {
        return Err(ReadError::Changed);
    }
    let (microseconds, has_zone) = time_and_zone(item)?;
    if has_zone {
        return Err(ReadError::Unrepresentable(
            "the time has a time zone, which Arrow's times have not",
            "convert it to UTC and take the zone away, or convert it to text",
        ));
    }
    Ok(microseconds)
}

/// The microseconds of a time since midnight, and whether it has a zone.
pub(crate) fn time_and_zone(item: &Bound<'_, PyAny>) -> Result<(i64, bool), ReadError> {
    packed_time(item).map_or_else(|| Ok((asked_time(item)?, has_zone(item)?)), Ok)
}

/// A span of time in microseconds; `None` for NumPy's NaT.
pub(crate) fn timedelta(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i64>, ReadError> {
    if class == Class::NumpyTimedelta {
        return numpy::timedelta(item);
    }
    let (days, microseconds) = delta(item, class)?;
    within(i128::from(days) * i128::from(DAY) + i128::from(microseconds)).map(Some)
}

/// The days of Python's own span of time, and the microseconds next to them.
pub(crate) fn delta(item: &Bound<'_, PyAny>, class: Class) -> Result<(i32, i64), ReadError> {
    let Class::Timedelta { exact } = class else { return Err(ReadError::Changed) };
    if !exact {
        refuse_nanoseconds(item, "nanoseconds")?;
    }
    let py = item.py();
    let seconds: i64 = item.getattr(intern!(py, "seconds"))?.extract()?;
    let microseconds: i64 = item.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok((item.getattr(intern!(py, "days"))?.extract()?, seconds * SECOND + microseconds))
}

/// Months, days and nanoseconds.
pub(crate) fn interval(item: &Bound<'_, PyAny>, class: Class) -> Result<(i32, i32, i64), ReadError> {
    if class != Class::Interval {
        return Err(ReadError::Changed);
    }
    interval_parts(item).map_err(|_| {
        ReadError::Unrepresentable(
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

pub(crate) fn uuid(item: &Bound<'_, PyAny>, class: Class) -> Result<[u8; 16], ReadError> {
    if class != Class::Uuid {
        return Err(ReadError::Changed);
    }
    Ok(item.getattr(intern!(item.py(), "bytes"))?.extract()?)
}

/// `value` with a sign, where 64 bits hold it.
pub(super) fn within(value: i128) -> Result<i64, ReadError> {
    i64::try_from(value).map_err(|_| BEYOND)
}

/// pandas' datetimes and spans have nanoseconds next to what Python's have.
fn refuse_nanoseconds(item: &Bound<'_, PyAny>, attribute: &str) -> Result<(), ReadError> {
    match item.getattr_opt(attribute)?.map(|value| value.extract::<i64>()) {
        Some(Ok(0)) | None => Ok(()),
        Some(_) => Err(NANOSECONDS),
    }
}

/// The day of a date, in days since 1970-01-01.
fn days(item: &Bound<'_, PyAny>) -> Result<i32, ReadError> {
    let days = packed_date(item).map_or_else(|| asked_days(item), Ok)?;
    i32::try_from(days).map_err(|_| BEYOND)
}

fn is_in_utc(item: &Bound<'_, PyAny>) -> Result<bool, ReadError> {
    Ok(item.getattr(intern!(item.py(), "tzinfo"))?.is(PyTzInfo::utc(item.py())?))
}

fn has_zone(item: &Bound<'_, PyAny>) -> Result<bool, ReadError> {
    Ok(!item.getattr(intern!(item.py(), "tzinfo"))?.is_none())
}

fn asked_days(item: &Bound<'_, PyAny>) -> Result<i64, ReadError> {
    let days: i32 = item.call_method0(intern!(item.py(), "toordinal"))?.extract()?;
    Ok(i64::from(days) - EPOCH)
}

fn asked_time(item: &Bound<'_, PyAny>) -> Result<i64, ReadError> {
    let py = item.py();
    let hour: i32 = item.getattr(intern!(py, "hour"))?.extract()?;
    let minute: i32 = item.getattr(intern!(py, "minute"))?.extract()?;
    let second: i32 = item.getattr(intern!(py, "second"))?.extract()?;
    let microsecond: i32 = item.getattr(intern!(py, "microsecond"))?.extract()?;
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    Ok((minutes * 60 + i64::from(second)) * SECOND + i64::from(microsecond))
}

/// The byte that tells whether there is a zone: behind what every object begins with, and the hash.
const ZONE: usize = size_of::<ffi::PyObject>() + size_of::<isize>();

/// Where the parts begin: the year in two bytes, the month and the day, then hour, minute, second, and the microseconds in
/// three bytes.
const PARTS: usize = ZONE + 1;
const DATE: usize = 4;
const TIME: usize = 6;
const DATETIME: usize = DATE + TIME;

/// The addresses of the types whose objects are kept so.
struct Packed {
    date: usize,
    datetime: usize,
    time: usize,
}

static PACKED: PyOnceLock<Option<Packed>> = PyOnceLock::new();

/// The days of a date since 1970-01-01; `None` where it has to be asked for them.
#[inline]
fn packed_date(item: &Bound<'_, PyAny>) -> Option<i64> {
    let (_, parts) = parts::<DATE>(item, layouts(item.py())?.date)?;
    Some(packed_days(parts))
}

/// The microseconds of a datetime since 1970-01-01 in its own local time, and whether it has a zone; `None` where it has to be asked.
#[inline]
fn packed_datetime(item: &Bound<'_, PyAny>) -> Option<(i64, bool)> {
    let (has_zone, parts) = parts::<DATETIME>(item, layouts(item.py())?.datetime)?;
    let [a, b, c, d, time @ ..] = parts;
    Some((packed_days([a, b, c, d]) * DAY + packed_time_of_day(time), has_zone))
}

/// The microseconds of a time since midnight, and whether it has a zone; `None` where it has to be asked.
#[inline]
fn packed_time(item: &Bound<'_, PyAny>) -> Option<(i64, bool)> {
    let (has_zone, parts) = parts::<TIME>(item, layouts(item.py())?.time)?;
    Some((packed_time_of_day(parts), has_zone))
}

fn packed_days([high, low, month, day]: [u8; DATE]) -> i64 {
    days_from_civil(i64::from(u16::from_be_bytes([high, low])), i64::from(month), i64::from(day))
}

fn packed_time_of_day([hour, minute, second, high, middle, low]: [u8; TIME]) -> i64 {
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    seconds * SECOND + i64::from(u32::from_be_bytes([0, high, middle, low]))
}

#[inline]
fn layouts(py: Python<'_>) -> Option<&'static Packed> {
    PACKED.get_or_init(py, || Packed::of(py)).as_ref()
}

/// Whether an object that is of the type at this address has a zone, and its parts.
#[inline]
#[allow(unsafe_code)]
fn parts<const N: usize>(item: &Bound<'_, PyAny>, class: usize) -> Option<(bool, [u8; N])> {
    if item.get_type_ptr().addr() != class {
        return None;
    }
    let object = item.as_ptr().cast::<u8>();
    // SAFETY: the object is alive, and of a type whose objects have so many bytes behind their zone (`Packed::of`). They never change.
    unsafe { Some((object.byte_add(ZONE).read() != 0, object.byte_add(PARTS).cast::<[u8; N]>().read())) }
}

impl Packed {
    /// The layout of the interpreter that runs; `None` if it keeps anything otherwise.
    fn of(py: Python<'_>) -> Option<Self> {
        let date = py.get_type::<PyDate>();
        let datetime = py.get_type::<PyDateTime>();
        let time = py.get_type::<PyTime>();
        for (class, bytes) in [(&date, DATE), (&datetime, DATETIME), (&time, TIME)] {
            let size: usize = class.getattr(intern!(py, "__basicsize__")).ok()?.extract().ok()?;
            if size < PARTS + bytes {
                return None;
            }
        }
        let address = |class: &Bound<'_, _>| class.as_ptr().addr();
        let packed = Self { date: address(&date), datetime: address(&datetime), time: address(&time) };
        SAMPLES.iter().all(|sample| packed.keeps(py, *sample).is_ok_and(|keeps| keeps)).then_some(packed)
    }

    /// Whether a sample is kept so, with a zone and without.
    fn keeps(&self, py: Python<'_>, (year, month, day, time): Sample) -> PyResult<bool> {
        let (hour, minute, second, microsecond) = time;
        let [.., a, b, c] = microsecond.to_be_bytes();
        let [high, low] = year.to_be_bytes();
        let date = [high, low, month, day];
        let time = [hour, minute, second, a, b, c];
        let mut both = [0; DATETIME];
        both[..DATE].copy_from_slice(&date);
        both[DATE..].copy_from_slice(&time);
        let object = PyDate::new(py, year.into(), month, day)?;
        let mut keeps = parts(&object, self.date).is_some_and(|(_, found)| found == date);
        let utc = PyTzInfo::utc(py)?.to_owned();
        for zone in [None, Some(&utc)] {
            let object =
                PyDateTime::new(py, year.into(), month, day, hour, minute, second, microsecond, zone)?;
            keeps &= parts(&object, self.datetime) == Some((zone.is_some(), both));
            let object = PyTime::new(py, hour, minute, second, microsecond, zone)?;
            keeps &= parts(&object, self.time) == Some((zone.is_some(), time));
        }
        Ok(keeps)
    }
}

type Sample = (u16, u8, u8, (u8, u8, u8, u32));

/// Parts that differ from each other.
const SAMPLES: [Sample; 3] =
    [(1, 2, 3, (4, 5, 6, 0x07_0809)), (9999, 12, 31, (23, 59, 58, 999_999)), (1970, 1, 1, (0, 0, 0, 0))];
