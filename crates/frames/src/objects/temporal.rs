//! Dates, times, timestamps, durations and intervals.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyTime, PyType, PyTzInfo};

use super::Maker;
use super::scalars::{each_row, primitive};
use crate::fault::Fault;
use crate::numbers::no_array_of;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// The hint next to every value that Python's own classes cannot hold.
const ELSEWHERE: &str = "use return_type=\"arrow\" or dtype_backend=\"pyarrow\", or make text of it: with a CAST in the query, or \
                         with schema={\"<column>\": \"string\"} of read_sql";

/// `value` counts of `unit` in microseconds, if that is exact and fits.
fn micros(value: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => value.checked_mul(MICROS_PER_SECOND),
        TimeUnit::Millisecond => value.checked_mul(1_000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => (value % 1_000 == 0).then_some(value / 1_000),
    }
}

/// Year, month and day of a count of days since 1970-01-01, for the years 1 to 9999 that Python has.
fn civil(days: i64) -> Option<(i32, u8, u8)> {
    // 0001-01-01 and 9999-12-31.
    if !(-719_162..=2_932_896).contains(&days) {
        return None;
    }
    // Years that begin on 1 March end on the leap day, so a year's length matters to nothing after it.
    // 719,468 days lie between 0000-03-01 and 1970-01-01; 400 years have 146,097 days.
    let since_march = days + 719_468;
    let (era, day_of_era) = (since_march / 146_097, since_march % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 153 days in every five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Some((i32::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
}

/// Hour, minute, second and microsecond of a count of microseconds within a day.
fn clock(micros: i64) -> Option<(u8, u8, u8, u32)> {
    if !(0..MICROS_PER_DAY).contains(&micros) {
        return None;
    }
    let seconds = micros / MICROS_PER_SECOND;
    let part = |value: i64| u8::try_from(value).ok();
    let fraction = u32::try_from(micros % MICROS_PER_SECOND).ok()?;
    Some((part(seconds / 3_600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, fraction))
}

fn refused(row: usize, value: i64, what: &str, class: &str) -> Fault {
    Fault::data(row, format!("{value} {what} is outside what datetime.{class} holds exactly"))
        .with_hint(ELSEWHERE)
}

fn failed(row: usize, error: PyErr) -> Fault {
    Fault::python(row, "Python cannot make this value", error).with_hint(ELSEWHERE)
}

/// `datetime.date` objects.
pub(super) struct Dates<T> {
    per_day: i64,
    arrow: PhantomData<fn(T)>,
}

impl<T: ArrowPrimitiveType<Native: Into<i64>>> Dates<T> {
    /// Dates that count `per_day` a day.
    pub(super) fn boxed(per_day: i64) -> Box<dyn Maker> {
        Box::new(Self { per_day, arrow: PhantomData })
    }
}

impl<T: ArrowPrimitiveType<Native: Into<i64>>> Maker for Dates<T> {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let array = primitive::<T>(array)?;
        each_row(py, array, objects, |row| {
            let value: i64 = array.value(row).into();
            let exact = value % self.per_day == 0;
            let Some((year, month, day)) = civil(value.div_euclid(self.per_day)).filter(|_| exact) else {
                return Err(refused(row, value, "(counted from 1970-01-01)", "date"));
            };
            PyDate::new(py, year, month, day).map(|date| date.into_any().unbind()).map_err(|e| failed(row, e))
        })
    }
}

/// `datetime.time` objects.
pub(super) struct Times;

impl Maker for Times {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let (unit, count) = counts(array)?;
        each_row(py, array, objects, |row| {
            let value = count(row);
            let Some((hour, minute, second, fraction)) = micros(value, unit).and_then(clock) else {
                return Err(refused(row, value, &format!("{unit} since midnight"), "time"));
            };
            let time = PyTime::new(py, hour, minute, second, fraction, None);
            time.map(|time| time.into_any().unbind()).map_err(|error| failed(row, error))
        })
    }

    fn bytes(&self, rows: usize) -> usize {
        64 * rows
    }
}

/// `datetime.datetime` objects, with a time zone where the column has one.
pub(super) struct Timestamps {
    unit: TimeUnit,
    zone: Option<Arc<str>>,
    resolved: Option<Zone>,
}

enum Zone {
    Naive,
    Utc,
    Other(Py<PyAny>),
}

impl Timestamps {
    pub(super) fn new(unit: TimeUnit, zone: Option<Arc<str>>) -> Self {
        Self { unit, zone, resolved: None }
    }

    fn resolve(&self, py: Python<'_>) -> PyResult<Zone> {
        match self.zone.as_deref() {
            None => Ok(Zone::Naive),
            Some("UTC" | "utc" | "Etc/UTC" | "Z" | "+00:00") => Ok(Zone::Utc),
            Some(offset) if offset.starts_with(['+', '-']) => {
                // `%z` reads every form of an offset that Arrow allows.
                let class = py.import("datetime")?.getattr("datetime")?;
                let parsed = class.call_method1("strptime", (offset, "%z"))?;
                Ok(Zone::Other(parsed.getattr("tzinfo")?.unbind()))
            }
            Some(name) => {
                Ok(Zone::Other(py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,))?.unbind()))
            }
        }
    }
}

impl Maker for Timestamps {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let zone = match self.resolved.take() {
            Some(zone) => zone,
            None => self.resolve(py).map_err(|error| Fault::python(0, "unknown time zone", error))?,
        };
        let (unit, count) = counts(array)?;
        let made = each_row(py, array, objects, |row| {
            let value = count(row);
            let Some(micros) = micros(value, unit) else {
                return Err(refused(row, value, &format!("{unit} since 1970-01-01"), "datetime"));
            };
            match datetime(py, micros, &zone) {
                Ok(Some(object)) => Ok(object),
                Ok(None) => Err(refused(row, value, &format!("{unit} since 1970-01-01"), "datetime")),
                Err(error) => Err(failed(row, error)),
            }
        });
        self.resolved = Some(zone);
        debug_assert_eq!(unit, self.unit);
        made
    }

    fn bytes(&self, rows: usize) -> usize {
        64 * rows
    }
}

/// The object of an instant; `None` outside the years that Python has.
fn datetime(py: Python<'_>, micros: i64, zone: &Zone) -> PyResult<Option<Py<PyAny>>> {
    let date = civil(micros.div_euclid(MICROS_PER_DAY));
    let time = clock(micros.rem_euclid(MICROS_PER_DAY));
    let (Some((year, month, day)), Some((hour, minute, second, fraction))) = (date, time) else {
        return Ok(None);
    };
    let utc = match zone {
        Zone::Naive => None,
        Zone::Utc | Zone::Other(_) => Some(PyTzInfo::utc(py)?),
    };
    let tzinfo = utc.as_deref();
    let object = PyDateTime::new(py, year, month, day, hour, minute, second, fraction, tzinfo)?;
    match zone {
        Zone::Other(zone) => Ok(Some(object.call_method1("astimezone", (zone,))?.unbind())),
        Zone::Naive | Zone::Utc => Ok(Some(object.into_any().unbind())),
    }
}

/// `datetime.timedelta` objects.
pub(super) struct Durations {
    unit: TimeUnit,
}

impl Durations {
    pub(super) fn new(unit: TimeUnit) -> Self {
        Self { unit }
    }
}

impl Maker for Durations {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let (unit, count) = counts(array)?;
        debug_assert_eq!(unit, self.unit);
        each_row(py, array, objects, |row| {
            let value = count(row);
            let Some(micros) = micros(value, unit) else {
                return Err(refused(row, value, &unit.to_string(), "timedelta"));
            };
            let (days, rest) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
            let part = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
            let delta = PyDelta::new(
                py,
                part(days),
                part(rest / MICROS_PER_SECOND),
                part(rest % MICROS_PER_SECOND),
                false,
            );
            delta.map(|delta| delta.into_any().unbind()).map_err(|error| failed(row, error))
        })
    }
}

/// `longshore.Interval` objects: months, days and nanoseconds, none of which converts into another.
pub(super) struct Intervals;

static INTERVAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl Maker for Intervals {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let class = INTERVAL
            .import(py, "longshore.interval", "Interval")
            .map_err(|error| Fault::python(0, "longshore.Interval is missing", error))?;
        let parts = interval_parts(array)?;
        each_row(py, array, objects, |row| {
            class.call1(parts(row)).map(Bound::unbind).map_err(|error| failed(row, error))
        })
    }

    fn bytes(&self, rows: usize) -> usize {
        128 * rows
    }
}

type IntervalParts<'a> = Box<dyn Fn(usize) -> (i32, i32, i64) + 'a>;

/// What gives months, days and nanoseconds of a row.
fn interval_parts(array: &dyn Array) -> Result<IntervalParts<'_>, Fault> {
    Ok(match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let array = array.as_primitive::<IntervalMonthDayNanoType>();
            Box::new(|row| {
                let value = array.value(row);
                (value.months, value.days, value.nanoseconds)
            })
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let array = array.as_primitive::<IntervalDayTimeType>();
            Box::new(|row| {
                let value = array.value(row);
                (0, value.days, i64::from(value.milliseconds) * 1_000_000)
            })
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            let array = array.as_primitive::<IntervalYearMonthType>();
            Box::new(|row| (array.value(row), 0, 0))
        }
        _ => return Err(no_array_of("intervals")),
    })
}

type Counts<'a> = Box<dyn Fn(usize) -> i64 + 'a>;

/// The unit of a temporal array and what gives the count of a row.
fn counts(array: &dyn Array) -> Result<(TimeUnit, Counts<'_>), Fault> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    Ok(match array.data_type() {
        DataType::Time32(Second) => (Second, count::<Time32SecondType>(array)),
        DataType::Time32(Millisecond) => (Millisecond, count::<Time32MillisecondType>(array)),
        DataType::Time64(Microsecond) => (Microsecond, count::<Time64MicrosecondType>(array)),
        DataType::Time64(Nanosecond) => (Nanosecond, count::<Time64NanosecondType>(array)),
        DataType::Timestamp(Second, _) => (Second, count::<TimestampSecondType>(array)),
        DataType::Timestamp(Millisecond, _) => (Millisecond, count::<TimestampMillisecondType>(array)),
        DataType::Timestamp(Microsecond, _) => (Microsecond, count::<TimestampMicrosecondType>(array)),
        DataType::Timestamp(Nanosecond, _) => (Nanosecond, count::<TimestampNanosecondType>(array)),
        DataType::Duration(Second) => (Second, count::<DurationSecondType>(array)),
        DataType::Duration(Millisecond) => (Millisecond, count::<DurationMillisecondType>(array)),
        DataType::Duration(Microsecond) => (Microsecond, count::<DurationMicrosecondType>(array)),
        DataType::Duration(Nanosecond) => (Nanosecond, count::<DurationNanosecondType>(array)),
        _ => return Err(no_array_of("times")),
    })
}

fn count<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Counts<'_> {
    let array = array.as_primitive::<T>();
    Box::new(|row| array.value(row).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_follows_the_day_before() {
        let mut last = (1, 1, 1);
        assert_eq!(civil(-719_162), Some(last));
        for days in -719_161..=2_932_896 {
            let (year, month, day) = civil(days).unwrap();
            let next_day = (year, month, day) == (last.0, last.1, last.2 + 1);
            let next_month = day == 1 && (year, month) == (last.0, last.1 + 1) && last.2 >= 28;
            let next_year = (month, day) == (1, 1) && year == last.0 + 1 && (last.1, last.2) == (12, 31);
            assert!(next_day || next_month || next_year, "{days}: {last:?} {year}-{month}-{day}");
            last = (year, month, day);
        }
        assert_eq!(last, (9999, 12, 31));
        assert_eq!((civil(0), civil(19_782)), (Some((1970, 1, 1)), Some((2024, 2, 29))));
        assert_eq!((civil(-719_163), civil(2_932_897)), (None, None));
    }

    #[test]
    fn a_time_is_within_its_day() {
        assert_eq!(clock(86_399_999_999), Some((23, 59, 59, 999_999)));
        assert_eq!((clock(-1), clock(MICROS_PER_DAY)), (None, None));
    }

    #[test]
    fn no_nanosecond_is_lost() {
        assert_eq!(micros(1_000, TimeUnit::Nanosecond), Some(1));
        assert_eq!(micros(1_001, TimeUnit::Nanosecond), None);
        assert_eq!(micros(i64::MAX, TimeUnit::Second), None);
    }
}
