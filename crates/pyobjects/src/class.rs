//! The class of a Python object, by its type alone.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMemoryView,
    PyString, PyTime, PyTuple, PyType,
};

/// How the objects of a Python type are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Null,
    Bool,
    NumpyBool,
    Int,
    NumpyInt,
    Float,
    NumpyFloat,
    Text,
    Bytes,
    ByteArray,
    MemoryView,
    Decimal,
    Date,
    /// `datetime.datetime`, or if not `exact` what inherits from it, such as pandas' with its nanoseconds.
    Datetime {
        exact: bool,
    },
    NumpyDatetime,
    Time,
    /// `datetime.timedelta`, or if not `exact` what inherits from it.
    Timedelta {
        exact: bool,
    },
    NumpyTimedelta,
    Uuid,
    Interval,
    List,
    Tuple,
    Array,
    Dict,
    /// A member of an `enum.Enum`, which stands for its value.
    Enum,
    Other,
}

/// The classes of the Python types that were met so far. It keeps the types, so that none takes another's address.
#[derive(Default)]
pub(crate) struct Classes {
    last: Option<(usize, Class)>,
    known: Vec<(usize, Class, Py<PyType>)>,
}

impl Classes {
    /// The class of `item`.
    #[inline]
    pub(crate) fn of(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Class> {
        let address = item.get_type_ptr().addr();
        match self.last {
            Some((last, class)) if last == address => Ok(class),
            _ => self.find(item, address),
        }
    }

    fn find(&mut self, item: &Bound<'_, PyAny>, address: usize) -> PyResult<Class> {
        let known = self.known.iter().find(|(known, ..)| *known == address).map(|(_, class, _)| *class);
        let class = if let Some(class) = known {
            class
        } else {
            let class = classify(item)?;
            self.known.push((address, class, item.get_type().unbind()));
            class
        };
        self.last = Some((address, class));
        Ok(class)
    }
}

/// The class of `item`, by its type.
pub(crate) fn classify(item: &Bound<'_, PyAny>) -> PyResult<Class> {
    if let Some(class) = plain(item) {
        return Ok(class);
    }
    for class in item.get_type().mro() {
        if let Some(class) = from_name(&class.cast_into()?)? {
            return Ok(class);
        }
    }
    Ok(other(item))
}

/// The interpreter's own types, and what inherits from them. A bool is an int, too.
fn plain(item: &Bound<'_, PyAny>) -> Option<Class> {
    Some(match item {
        _ if item.is_none() => Class::Null,
        _ if item.is_instance_of::<PyBool>() => Class::Bool,
        _ if item.is_instance_of::<PyInt>() => Class::Int,
        _ if item.is_instance_of::<PyFloat>() => Class::Float,
        _ if item.is_instance_of::<PyString>() => Class::Text,
        _ if item.is_instance_of::<PyBytes>() => Class::Bytes,
        _ if item.is_instance_of::<PyByteArray>() => Class::ByteArray,
        _ if item.is_instance_of::<PyMemoryView>() => Class::MemoryView,
        _ => return None,
    })
}

/// Types that are known by name, so that their modules need not be imported.
fn from_name(class: &Bound<'_, PyType>) -> PyResult<Option<Class>> {
    let module: String = class.module()?.extract()?;
    let name: String = class.name()?.extract()?;
    let module = module.split('.').next().unwrap_or_default();
    Ok(Some(match (module, name.as_str()) {
        ("pandas", "NAType" | "NaTType") => Class::Null,
        ("decimal" | "_decimal" | "_pydecimal", "Decimal") => Class::Decimal,
        ("uuid", "UUID") => Class::Uuid,
        ("longshore", "Interval") => Class::Interval,
        // A timedelta64 is an integer, too: it comes before its bases.
        ("numpy", "timedelta64") => Class::NumpyTimedelta,
        ("numpy", "datetime64") => Class::NumpyDatetime,
        ("numpy", "integer") => Class::NumpyInt,
        ("numpy", "float16" | "float32") => Class::NumpyFloat,
        ("numpy", "bool" | "bool_") => Class::NumpyBool,
        ("numpy", "ndarray") => Class::Array,
        ("enum", "Enum") => Class::Enum,
        _ => return Ok(None),
    }))
}

/// Types that may be among the bases of a named one. A datetime is a date, too.
fn other(item: &Bound<'_, PyAny>) -> Class {
    match item {
        _ if item.is_instance_of::<PyDateTime>() => {
            Class::Datetime { exact: item.is_exact_instance_of::<PyDateTime>() }
        }
        _ if item.is_instance_of::<PyDate>() => Class::Date,
        _ if item.is_instance_of::<PyTime>() => Class::Time,
        _ if item.is_instance_of::<PyDelta>() => {
            Class::Timedelta { exact: item.is_exact_instance_of::<PyDelta>() }
        }
        _ if item.is_instance_of::<PyList>() => Class::List,
        _ if item.is_instance_of::<PyTuple>() => Class::Tuple,
        _ if item.is_instance_of::<PyDict>() => Class::Dict,
        _ => Class::Other,
    }
}
