//! NumPy's arrays and times.

use longshore_values::calendar::{DAY, days_from_civil};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::ReadError;
use super::datetime::{BEYOND, NANOSECONDS, Temporal, within};

/// The values of an array, each of which may be an array of one dimension less.
pub(super) fn items<'py>(array: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, ReadError> {
    let py = array.py();
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    let kind: String = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    if dimensions == 0 || kind == "V" {
        return Err(ReadError::Unrepresentable(
            "the NumPy array has no dimension, or is a structured one",
            "convert it to a list or a dict",
        ));
    }
    // `tolist` would make numbers of nanoseconds; each element keeps its unit.
    let list = match kind.as_str() {
        "m" | "M" => py.get_type::<PyList>().call1((array,))?,
        _ => array.call_method0(intern!(py, "tolist"))?,
    };
    list.cast_into().map_err(|_| ReadError::Changed)
}

/// A `datetime64`: a day if that is its unit.
pub(super) fn temporal(item: &Bound<'_, PyAny>) -> Result<Temporal, ReadError> {
    let Some((count, unit)) = count_of(item)? else { return Ok(Temporal::Null) };
    let midnight = |days: i64| i128::from(days) * i128::from(DAY);
    Ok(match unit.as_str() {
        "D" => Temporal::Date(i32::try_from(within(count)?).map_err(|_| {
            ReadError::Unrepresentable(
                "the day is beyond what Arrow's 32 bits hold",
                "convert the column to text",
            )
        })?),
        "Y" => Temporal::Timestamp(within(midnight(days_from_civil(year(1970, count)?, 1, 1)))?),
        "M" => {
            let month = i64::try_from(count.rem_euclid(12)).unwrap_or_default();
            let year = year(1970, count.div_euclid(12))?;
            Temporal::Timestamp(within(midnight(days_from_civil(year, month + 1, 1)))?)
        }
        unit => Temporal::Timestamp(microseconds(count, unit)?),
    })
}

/// Years that microseconds hold are far within 32 bits.
fn year(epoch: i64, years: i128) -> Result<i64, ReadError> {
    let years = within(years)?;
    i32::try_from(years).map(|years| epoch + i64::from(years)).map_err(|_| BEYOND)
}

/// A `timedelta64` in microseconds; `None` for NaT.
pub(super) fn timedelta(item: &Bound<'_, PyAny>) -> Result<Option<i64>, ReadError> {
    let Some((count, unit)) = count_of(item)? else { return Ok(None) };
    match unit.as_str() {
        "D" => times(count, DAY).map(Some),
        unit => microseconds(count, unit).map(Some),
    }
}

/// Whether a `datetime64` or a `timedelta64` is NaT.
pub(super) fn is_nat(item: &Bound<'_, PyAny>) -> Result<bool, ReadError> {
    let py = item.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    Ok(numpy.call_method1(intern!(py, "isnat"), (item,))?.is_truthy()?)
}

/// How many of which unit since 1970, or long; `None` for NaT.
fn count_of(item: &Bound<'_, PyAny>) -> Result<Option<(i128, String)>, ReadError> {
    if is_nat(item)? {
        return Ok(None);
    }
    let py = item.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let value: i64 = item.call_method1(intern!(py, "astype"), ("int64",))?.extract()?;
    let dtype = item.getattr(intern!(py, "dtype"))?;
    let (unit, multiple): (String, i64) =
        numpy.call_method1(intern!(py, "datetime_data"), (dtype,))?.extract()?;
    Ok(Some((i128::from(value) * i128::from(multiple), unit)))
}

fn microseconds(count: i128, unit: &str) -> Result<i64, ReadError> {
    let of = |factor| times(count, factor);
    match unit {
        "W" => of(7 * DAY),
        "h" => of(3_600_000_000),
        "m" => of(60_000_000),
        "s" => of(1_000_000),
        "ms" => of(1_000),
        "us" => of(1),
        "ns" => parts(count, 1_000),
        "ps" => parts(count, 1_000_000),
        "fs" => parts(count, 1_000_000_000),
        "as" => parts(count, 1_000_000_000_000),
        _ => Err(ReadError::Unrepresentable(
            "NumPy's span of years, of months or without a unit is not a number of microseconds",
            "convert the column to days or seconds first",
        )),
    }
}

fn times(count: i128, factor: i64) -> Result<i64, ReadError> {
    // What is beyond 128 bits is beyond 64.
    within(count.saturating_mul(i128::from(factor)))
}

fn parts(count: i128, per_microsecond: i128) -> Result<i64, ReadError> {
    if count % per_microsecond != 0 {
        return Err(NANOSECONDS);
    }
    within(count / per_microsecond)
}
