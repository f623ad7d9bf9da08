//! Parameters of a statement as Python's values.

use longshore_core::{Params, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

const DAY: i64 = 86_400_000_000;

/// 1970-01-01 as Python's `date.toordinal` counts.
const EPOCH_ORDINAL: i64 = 719_163;

/// The parameters as Python's own objects: `None`, a list or a dict.
pub fn python_params<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyAny>> {
    Ok(match params {
        Params::None => py.None().into_bound(py),
        Params::Positional(values) => list(py, values)?.into_any(),
        Params::Named(params) => {
            let named = PyDict::new(py);
            for param in params {
                named.set_item(&param.name, object(py, &param.value)?)?;
            }
            named.into_any()
        }
    })
}

fn list<'py>(py: Python<'py>, values: &[Value]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, values.iter().map(|value| object(py, value)).collect::<PyResult<Vec<_>>>()?)
}

fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let datetime = py.import("datetime")?;
    let since_epoch = |micros: i64, zone: &Bound<'py, PyAny>| {
        let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
        let days = micros.div_euclid(DAY);
        epoch.call_method1(
            "__add__",
            (datetime.getattr("timedelta")?.call1((days, 0, micros.rem_euclid(DAY)))?,),
        )
    };
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Decimal(text) => py.import("decimal")?.getattr("Decimal")?.call1((text,))?,
        Value::Text(text) | Value::Json(text) => text.into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Date(days) => {
            let ordinal = i64::from(*days) + EPOCH_ORDINAL;
            datetime.getattr("date")?.call_method1("fromordinal", (ordinal,))?
        }
        Value::Time(micros, offset) => {
            let zone = match offset {
                Some(seconds) => {
                    let delta = datetime.getattr("timedelta")?.call1((0, *seconds))?;
                    datetime.getattr("timezone")?.call1((delta,))?
                }
                None => py.None().into_bound(py),
            };
            let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
            let parts = (seconds / 3600, seconds / 60 % 60, seconds % 60, micros, zone);
            datetime.getattr("time")?.call1(parts)?
        }
        Value::Timestamp(micros) => since_epoch(*micros, &py.None().into_bound(py))?,
        Value::TimestampTz(micros) => since_epoch(*micros, &datetime.getattr("timezone")?.getattr("utc")?)?,
        Value::Interval(0, days, micros) => datetime.getattr("timedelta")?.call1((*days, 0, *micros))?,
        Value::Interval(months, days, micros) => {
            let nanoseconds = i128::from(*micros) * 1000;
            py.import("longshore")?.getattr("Interval")?.call1((*months, *days, nanoseconds))?
        }
        Value::Uuid(bytes) => {
            let keywords = PyDict::new(py);
            keywords.set_item("bytes", PyBytes::new(py, bytes))?;
            py.import("uuid")?.getattr("UUID")?.call((), Some(&keywords))?
        }
        Value::List(values) => list(py, values)?.into_any(),
        Value::Row(values) => PyTuple::new(py, list(py, values)?)?.into_any(),
    })
}
