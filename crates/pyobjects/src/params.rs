//! Python's values as parameters of a statement.

use longshore_core::{Error, Param, Params, Value};
use longshore_interpreter::raise;
use longshore_values::calendar::{DAY, SECOND};
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyType};

use crate::class::{Class, classify};
use crate::read::{
    NANOSECONDS, ReadError, Temporal, decimal_text, delta, float, integer, integer_text, interval, temporal,
    time_and_zone, timedelta, truth, uuid, with_bytes,
};

/// The depth of containers that is refused: one that contains itself would go on for ever.
const DEEPEST: usize = 64;

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
    if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py) {
        return error.clone_ref(py);
    }
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

/// The value of a parameter.
pub fn value(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    at_depth(item, 0)
}

fn at_depth(item: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth == DEEPEST {
        return Err(PyValueError::new_err("it is nested more than 64 levels deep, or contains itself"));
    }
    let items = || item.try_iter()?.map(|item| at_depth(&item?, depth + 1)).collect::<PyResult<Vec<_>>>();
    match classify(item)? {
        Class::Text => item.extract().map(Value::Text),
        Class::List | Class::Array => items().map(Value::List),
        Class::Tuple => items().map(Value::Row),
        Class::Enum => at_depth(&item.getattr("value")?, depth + 1),
        Class::Dict => {
            let strict = [("allow_nan", false)].into_py_dict(item.py())?;
            let text = item.py().import("json")?.call_method("dumps", (item,), Some(&strict))?;
            text.extract().map(Value::Json)
        }
        Class::Other => other(item, depth),
        class => scalar(item, class).map_err(exception),
    }
}

fn exception(error: ReadError) -> PyErr {
    match error {
        ReadError::Python(error) => error,
        ReadError::Unrepresentable(what, _) => {
            PyValueError::new_err(format!("{what}; round it, or give its text"))
        }
        ReadError::Changed => PyValueError::new_err("it was changed while it was read"),
    }
}

fn scalar(item: &Bound<'_, PyAny>, class: Class) -> Result<Value, ReadError> {
    Ok(match class {
        Class::Bool | Class::NumpyBool => Value::Bool(truth(item, class)?),
        Class::Int | Class::NumpyInt => match integer(item, class)? {
            Some(number) => Value::Int(number),
            None => Value::Decimal(integer_text(item, class)?.ok_or(TOO_LONG)?),
        },
        Class::Float | Class::NumpyFloat => Value::Float(float(item, class)?),
        Class::Bytes | Class::ByteArray | Class::MemoryView => {
            Value::Bytes(with_bytes(item, class, <[u8]>::to_vec)?)
        }
        Class::Decimal => Value::Decimal(decimal_text(item, class)?),
        Class::Date | Class::Datetime { .. } | Class::NumpyDatetime => match temporal(item, class)? {
            Temporal::Timestamp(microseconds) => Value::Timestamp(microseconds),
            Temporal::TimestampTz(microseconds) => Value::TimestampTz(microseconds),
            Temporal::Date(days) => Value::Date(days),
            Temporal::Null => Value::Null,
        },
        Class::Time => Value::Time(time_and_zone(item)?.0, offset(item)?),
        Class::Timedelta { .. } => {
            let (days, microseconds) = delta(item, class)?;
            Value::Interval(0, days, microseconds)
        }
        Class::NumpyTimedelta => {
            timedelta(item, class)?.map_or(Value::Null, |microseconds| Value::Interval(0, 0, microseconds))
        }
        Class::Uuid => Value::Uuid(uuid(item, class)?),
        Class::Interval => match interval(item, class)? {
            (months, days, nanoseconds) if nanoseconds % 1_000 == 0 => {
                Value::Interval(months, days, nanoseconds / 1_000)
            }
            _ => return Err(NANOSECONDS),
        },
        _ => Value::Null,
    })
}

const TOO_LONG: ReadError =
    ReadError::Unrepresentable("it has more digits than Python writes", "make a text of it");

/// The UTC offset of a time, in seconds.
fn offset(item: &Bound<'_, PyAny>) -> Result<Option<i32>, ReadError> {
    let offset = item.call_method0("utcoffset")?;
    if offset.is_none() {
        return Ok(None);
    }
    let (days, microseconds) = delta(&offset, Class::Timedelta { exact: true })?;
    if microseconds % SECOND != 0 {
        return Err(ReadError::Unrepresentable("its UTC offset has a fraction of a second", ""));
    }
    let seconds = (i64::from(days) * DAY + microseconds) / SECOND;
    Ok(i32::try_from(seconds).ok())
}

/// Classes that are known by name, so that their modules need not be imported, and what inherits from them.
fn other(item: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    for class in item.get_type().mro() {
        let class = class.cast_into::<PyType>()?;
        let module: String = class.module()?.extract()?;
        match module.split('.').next() {
            Some("pandas") if item.hasattr("__len__")? => {
                let items = item.try_iter()?.map(|item| at_depth(&item?, depth + 1));
                return items.collect::<PyResult<_>>().map(Value::List);
            }
            // NumPy's own long double has no other form.
            Some("numpy") if class.name()? == "generic" => {
                let plain = item.call_method0("item")?;
                let is_plain = !plain.get_type().is(item.get_type());
                return if is_plain { at_depth(&plain, depth + 1) } else { Err(cannot_bind(item)) };
            }
            Some("ipaddress") => return item.str()?.extract().map(Value::Text),
            _ => {}
        }
    }
    if item.hasattr("__index__")? {
        return at_depth(&item.call_method0("__index__")?, depth + 1);
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
