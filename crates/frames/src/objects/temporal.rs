//! Dates, times, timestamps, durations and intervals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use longshore_values::calendar::{DAY, SECOND, civil_from_days};
use longshore_values::{Fault, microseconds};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyTime, PyType, PyTzInfo};

use super::scalars::{Each, Known, each_row};
use super::{Maker, python_fault};
use crate::numbers::{no_array_of, primitive};

/// The hint next to every value that Python's own classes cannot hold.
const ELSEWHERE: &str = "use return_type=\"arrow\" or dtype_backend=\"pyarrow\", or make text of it: with a CAST in the query, or \
                         with schema={\"<column>\": \"string\"} of read_sql";

/// Year, month and day of a count of days since 1970-01-01, for the years 1 to 9999 that Python has.
fn civil(days: i64) -> Option<(i32, u8, u8)> {
    let (year, month, day) = civil_from_days(days);
    let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    Some((year, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
}

/// Hour, minute, second and microsecond of a count of microseconds within a day.
fn time_of_day(micros: i64) -> Option<(u8, u8, u8, u32)> {
    if !(0..DAY).contains(&micros) {
        return None;
    }
    let seconds = micros / SECOND;
    let part = |value: i64| u8::try_from(value).ok();
    let fraction = u32::try_from(micros % SECOND).ok()?;
    Some((part(seconds / 3_600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, fraction))
}

fn refusal(row: usize, value: i64, what: &str, class: &str) -> Fault {
    Fault::data(row, format!("{value} {what} is outside what datetime.{class} holds exactly"))
        .with_hint(ELSEWHERE)
}

fn failure(row: usize, error: PyErr) -> Fault {
    python_fault(row, "Python cannot make this value", error).with_hint(ELSEWHERE)
}

/// `datetime.date` objects.
pub(super) fn dates<T: ArrowPrimitiveType<Native: Into<i64>>>() -> Box<dyn Maker> {
    let mut known = Known::<T::Native>::default();
    Each::boxed(32, move |py, array, objects| {
        let array = primitive::<T>(array)?;
        known.restart();
        each_row(py, array, objects, |row| known.object(py, array.value(row), || date::<T>(py, array, row)))
    })
}

fn date<T: ArrowPrimitiveType<Native: Into<i64>>>(
    py: Python<'_>,
    array: &PrimitiveArray<T>,
    row: usize,
) -> Result<Py<PyAny>, Fault> {
    let per_day = if T::DATA_TYPE == DataType::Date64 { DAY / 1_000 } else { 1 };
    let value: i64 = array.value(row).into();
    let exact = value % per_day == 0;
    let Some((year, month, day)) = civil(value.div_euclid(per_day)).filter(|_| exact) else {
        return Err(refusal(row, value, "(counted from 1970-01-01)", "date"));
    };
    PyDate::new(py, year, month, day).map(|date| date.into_any().unbind()).map_err(|e| failure(row, e))
}

/// `datetime.time` objects.
pub(super) fn times(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let (counts, unit) = counts(array)?;
    each_row(py, array, objects, |row| {
        let value = counts[row];
        let Some((hour, minute, second, fraction)) = microseconds(value, unit).and_then(time_of_day) else {
            return Err(refusal(row, value, &format!("{unit} since midnight"), "time"));
        };
        let time = PyTime::new(py, hour, minute, second, fraction, None);
        time.map(|time| time.into_any().unbind()).map_err(|error| failure(row, error))
    })
}

enum Zone {
    Naive,
    Utc,
    Other(Py<PyAny>),
}

impl Zone {
    fn of(py: Python<'_>, zone: Option<&str>) -> PyResult<Self> {
        match zone {
            None => Ok(Self::Naive),
            Some("UTC" | "utc" | "Etc/UTC" | "Z" | "+00:00") => Ok(Self::Utc),
            Some(offset) if offset.starts_with(['+', '-']) => {
                // `%z` reads every form of an offset that Arrow allows.
                let class = py.import("datetime")?.getattr("datetime")?;
                let parsed = class.call_method1("strptime", (offset, "%z"))?;
                Ok(Self::Other(parsed.getattr("tzinfo")?.unbind()))
            }
            Some(name) => {
                Ok(Self::Other(py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,))?.unbind()))
            }
        }
    }
}

/// `datetime.datetime` objects, with a time zone where the column has one.
pub(super) fn timestamps(zone: Option<Arc<str>>) -> Box<dyn Maker> {
    let mut known = None;
    Each::boxed(64, move |py, array, objects| {
        if known.is_none() {
            let zone = Zone::of(py, zone.as_deref());
            known = Some(zone.map_err(|error| python_fault(0, "unknown time zone", error))?);
        }
        let zone = known.as_ref().unwrap_or(&Zone::Naive);
        let (counts, unit) = counts(array)?;
        each_row(py, array, objects, |row| {
            let value = counts[row];
            let made = microseconds(value, unit).map_or(Ok(None), |micros| datetime(py, micros, zone));
            let object = made.map_err(|error| failure(row, error))?;
            object.ok_or_else(|| refusal(row, value, &format!("{unit} since 1970-01-01"), "datetime"))
        })
    })
}

/// The object of an instant; `None` outside the years that Python has.
fn datetime(py: Python<'_>, micros: i64, zone: &Zone) -> PyResult<Option<Py<PyAny>>> {
    let date = civil(micros.div_euclid(DAY));
    let time = time_of_day(micros.rem_euclid(DAY));
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
pub(super) fn durations(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
) -> Result<(), Fault> {
    let (counts, unit) = counts(array)?;
    each_row(py, array, objects, |row| {
        let value = counts[row];
        let Some(micros) = microseconds(value, unit) else {
            return Err(refusal(row, value, &unit.to_string(), "timedelta"));
        };
        let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
        let part = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        let delta = PyDelta::new(py, part(days), part(rest / SECOND), part(rest % SECOND), false);
        delta.map(|delta| delta.into_any().unbind()).map_err(|error| failure(row, error))
    })
}

static INTERVAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `longshore.Interval` objects: months, days and nanoseconds, none of which converts into another.
pub(super) fn intervals(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
) -> Result<(), Fault> {
    let class = INTERVAL
        .import(py, "longshore.interval", "Interval")
        .map_err(|error| python_fault(0, "longshore.Interval is missing", error))?;
    let parts = interval_parts(array)?;
    each_row(py, array, objects, |row| {
        class.call1(parts(row)).map(Bound::unbind).map_err(|error| failure(row, error))
    })
}

type IntervalParts<'a> = Box<dyn Fn(usize) -> (i32, i32, i64) + 'a>;

/// A function that gives months, days and nanoseconds of a row.
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

/// The counts of a temporal array, and their unit.
fn counts(array: &dyn Array) -> Result<(ScalarBuffer<i64>, TimeUnit), Fault> {
    longshore_values::counts(array).ok_or_else(|| no_array_of("times"))
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
        assert_eq!(time_of_day(86_399_999_999), Some((23, 59, 59, 999_999)));
        assert_eq!((time_of_day(-1), time_of_day(DAY)), (None, None));
    }
}
