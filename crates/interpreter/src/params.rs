//! Python's values as parameters of a statement, and back.

use std::cell::Cell;

use longshore_core::{Error, Param, Params, Value};
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList,
    PyMemoryView, PyString, PyTime, PyTuple, PyType,
};

use crate::exception::raise;

const DAY: i64 = 86_400_000_000;

/// 1970-01-01 as Python's `date.toordinal` counts.
const EPOCH_ORDINAL: i32 = 719_163;

/// The parameters in `None`, a sequence, or a dict by name.
pub fn params(given: Option<&Bound<'_, PyAny>>) -> PyResult<Params> {
    let Some(given) = given else { return Ok(Params::None) };
    if let Ok(named) = given.cast::<PyDict>() {
        let param = |(name, item): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            let value = value(&item).map_err(|error| within(given.py(), &format!(":{name}"), &error))?;
            Ok(Param { name, value })
        };
        return named.iter().map(param).collect::<PyResult<_>>().map(Params::Named);
    }
    let values = given.try_iter()?.enumerate().map(|(index, item)| {
        value(&item?).map_err(|error| within(given.py(), &format!("${}", index + 1), &error))
    });
    values.collect::<PyResult<_>>().map(Params::Positional)
}

fn within(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        let message = format!("parameter {name}: the text holds a lone surrogate, which UTF-8 cannot encode");
        return raise(
            Error::data(message).with_hint("replace it: text.encode(\"utf-8\", \"replace\").decode()"),
        );
    }
    let message = format!("parameter {name}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else {
        PyValueError::new_err(message)
    }
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// One level of a nested value: what contains itself would go on for ever.
struct Level;

impl Level {
    const LIMIT: usize = 64;

    fn enter() -> PyResult<Self> {
        if DEPTH.get() >= Self::LIMIT {
            return Err(PyValueError::new_err("it is nested more than 64 levels deep, or contains itself"));
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Self)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The value of a parameter.
pub fn value(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    let _level = Level::enter()?;
    if item.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = item.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if item.is_instance_of::<PyInt>() {
        return integer(item);
    }
    if let Ok(number) = item.cast::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Value::Text(text.extract()?));
    }
    if item.is_instance_of::<PyBytes>() || item.is_instance_of::<PyByteArray>() {
        return Ok(Value::Bytes(item.extract()?));
    }
    if item.is_instance_of::<PyMemoryView>() {
        return value(&item.call_method0("tobytes")?);
    }
    if let Ok(items) = item.cast::<PyList>() {
        return items.iter().map(|item| value(&item)).collect::<PyResult<_>>().map(Value::List);
    }
    if item.is_instance_of::<PyDict>() {
        let strict = [("allow_nan", false)].into_py_dict(item.py())?;
        let text = item.py().import("json")?.call_method("dumps", (item,), Some(&strict))?;
        return Ok(Value::Json(text.extract()?));
    }
    match temporal(item)? {
        Some(value) => Ok(value),
        None => by_class(item),
    }
}

/// An integer, in text where 128 bits are too few.
fn integer(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    match item.extract::<i128>() {
        Ok(number) => Ok(Value::Int(number)),
        // `int.__str__`: a subclass may show itself otherwise.
        Err(_) => {
            Ok(Value::Decimal(item.py().get_type::<PyInt>().call_method1("__str__", (item,))?.extract()?))
        }
    }
}

fn temporal(item: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if item.is_instance_of::<PyDateTime>() {
        return datetime(item).map(Some);
    }
    if item.is_instance_of::<PyDate>() {
        return Ok(Some(Value::Date(days(item)?)));
    }
    if item.is_instance_of::<PyTime>() {
        let offset = item.call_method0("utcoffset")?;
        let offset = if offset.is_none() { None } else { Some(seconds(&offset)?) };
        return Ok(Some(Value::Time(time_of_day(item)?, offset)));
    }
    if item.is_instance_of::<PyDelta>() {
        refuse_nanoseconds(item, "nanoseconds")?;
        let (days, microseconds) = delta(item)?;
        return Ok(Some(Value::Interval(0, days, microseconds)));
    }
    Ok(None)
}

fn datetime(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    // NaT says that it is a datetime, and has no parts.
    if item.getattr("year")?.extract::<i32>().is_err() {
        return Ok(Value::Null);
    }
    refuse_nanoseconds(item, "nanosecond")?;
    let local = i64::from(days(item)?) * DAY + time_of_day(item)?;
    let offset = item.call_method0("utcoffset")?;
    if offset.is_none() {
        return Ok(Value::Timestamp(local));
    }
    let (days, microseconds) = delta(&offset)?;
    Ok(Value::Instant(local - i64::from(days) * DAY - microseconds))
}

/// pandas' timestamps and timedeltas have nanoseconds, which would be lost.
fn refuse_nanoseconds(item: &Bound<'_, PyAny>, attribute: &str) -> PyResult<()> {
    match item.getattr_opt(attribute)?.map(|value| value.extract::<i64>()) {
        Some(Ok(nanoseconds)) if nanoseconds != 0 => {
            Err(PyValueError::new_err("its nanoseconds do not fit; round it to microseconds first"))
        }
        _ => Ok(()),
    }
}

fn days(item: &Bound<'_, PyAny>) -> PyResult<i32> {
    Ok(item.call_method0("toordinal")?.extract::<i32>()? - EPOCH_ORDINAL)
}

fn time_of_day(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |name: &str| item.getattr(name)?.extract::<i64>();
    Ok(((part("hour")? * 60 + part("minute")?) * 60 + part("second")?) * 1_000_000 + part("microsecond")?)
}

/// The days of a timedelta, and the microseconds next to them.
fn delta(item: &Bound<'_, PyAny>) -> PyResult<(i32, i64)> {
    let seconds: i64 = item.getattr("seconds")?.extract()?;
    let microseconds: i64 = item.getattr("microseconds")?.extract()?;
    Ok((item.getattr("days")?.extract()?, seconds * 1_000_000 + microseconds))
}

fn seconds(offset: &Bound<'_, PyAny>) -> PyResult<i32> {
    let (days, microseconds) = delta(offset)?;
    let total = i64::from(days) * DAY + microseconds;
    if total % 1_000_000 != 0 {
        return Err(PyValueError::new_err("its UTC offset has a fraction of a second"));
    }
    Ok(i32::try_from(total / 1_000_000)?)
}

/// Classes that are known by name, so that their modules need not be imported, and what inherits from them.
fn by_class(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    for class in item.get_type().mro() {
        if let Some(value) = of_class(item, &class.cast_into()?)? {
            return Ok(value);
        }
    }
    if item.is_instance_of::<PyTuple>() {
        return item.try_iter()?.map(|item| value(&item?)).collect::<PyResult<_>>().map(Value::Row);
    }
    if item.hasattr("__index__")? {
        return integer(&item.call_method0("__index__")?);
    }
    Err(cannot_bind(item))
}

fn cannot_bind(item: &Bound<'_, PyAny>) -> PyErr {
    let class = item.get_type();
    let named = |part: PyResult<Bound<'_, PyString>>| part.map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "a value of type {}.{} cannot be bound; give an int, float, str, bytes, Decimal, date, time, UUID, list, tuple \
         or dict",
        named(class.module()),
        named(class.name())
    ))
}

/// The value of an `item` of `class`, if the class is known.
fn of_class(item: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Option<Value>> {
    let module: String = class.module()?.extract()?;
    let name: String = class.name()?.extract()?;
    let module = module.split('.').next().unwrap_or_default();
    Ok(Some(match (module, name.as_str()) {
        // The class's own `__str__`: what inherits from it may show itself otherwise.
        ("decimal" | "_decimal" | "_pydecimal", "Decimal") => {
            Value::Decimal(class.call_method1("__str__", (item,))?.extract()?)
        }
        ("uuid", "UUID") => Value::Uuid(item.getattr("bytes")?.extract()?),
        ("enum", "Enum") => value(&item.getattr("value")?)?,
        ("longshore", "Interval") => interval(item)?,
        ("pandas", "NAType" | "NaTType") => Value::Null,
        ("numpy", "datetime64") => numpy_datetime(item)?,
        ("numpy", "timedelta64") => numpy_timedelta(item)?,
        // `tolist` would lose the unit of times; each element keeps it.
        ("numpy", "ndarray") | ("pandas", _) if item.hasattr("__len__")? => sequence(item)?,
        // NumPy's own long double has no other form.
        ("numpy", "generic") => match item.call_method0("item")? {
            plain if plain.get_type().is(item.get_type()) => return Err(cannot_bind(item)),
            plain => value(&plain)?,
        },
        ("ipaddress", _) => Value::Text(item.str()?.extract()?),
        _ => return Ok(None),
    }))
}

fn sequence(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    item.try_iter()?.map(|item| value(&item?)).collect::<PyResult<_>>().map(Value::List)
}

fn interval(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    let (months, days): (i32, i32) = (item.getattr("months")?.extract()?, item.getattr("days")?.extract()?);
    let nanoseconds: i64 = item.getattr("nanoseconds")?.extract()?;
    if nanoseconds % 1000 != 0 {
        return Err(PyValueError::new_err("its nanoseconds do not fit; round it to microseconds first"));
    }
    Ok(Value::Interval(months, days, nanoseconds / 1000))
}

/// NumPy's times in microseconds, exactly; `None` for NaT.
fn numpy_microseconds(item: &Bound<'_, PyAny>, class: &str) -> PyResult<Option<i64>> {
    let numpy = item.py().import("numpy")?;
    if numpy.call_method1("isnat", (item,))?.extract()? {
        return Ok(None);
    }
    let converted = item.call_method1("astype", (format!("{class}[us]"),))?;
    if !converted.call_method1("__eq__", (item,))?.is_truthy()? {
        return Err(PyValueError::new_err("it does not fit microseconds exactly"));
    }
    converted.call_method1("astype", ("int64",))?.call_method0("item")?.extract().map(Some)
}

fn numpy_datetime(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    let dtype: String = item.getattr("dtype")?.str()?.extract()?;
    let Some(microseconds) = numpy_microseconds(item, "datetime64")? else { return Ok(Value::Null) };
    if dtype != "datetime64[D]" {
        return Ok(Value::Timestamp(microseconds));
    }
    Ok(Value::Date(i32::try_from(microseconds / DAY)?))
}

fn numpy_timedelta(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    let microseconds = numpy_microseconds(item, "timedelta64")?;
    Ok(microseconds.map_or(Value::Null, |microseconds| Value::Interval(0, 0, microseconds)))
}

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
            let ordinal = i64::from(*days) + i64::from(EPOCH_ORDINAL);
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
        Value::Instant(micros) => since_epoch(*micros, &datetime.getattr("timezone")?.getattr("utc")?)?,
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
