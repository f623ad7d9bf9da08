//! Integers, floats and booleans.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::Misread;
use crate::class::Class;

/// An integer; `None` where 128 bits are too few.
#[inline]
pub(crate) fn integer(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i128>, Misread> {
    if !matches!(class, Class::Int | Class::NumpyInt) {
        return Err(Misread::Changed);
    }
    match item.extract::<i64>() {
        Ok(value) => Ok(Some(value.into())),
        Err(_) => Ok(integer_text(item, class)?.and_then(|text| text.parse().ok())),
    }
}

/// An integer's digits; `None` for more of them than Python writes.
pub(crate) fn integer_text(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<String>, Misread> {
    let index;
    let integer = match class {
        Class::Int => item,
        Class::NumpyInt => {
            index = item.call_method0("__index__")?;
            &index
        }
        _ => return Err(Misread::Changed),
    };
    // The class's own: what inherits from it may show itself otherwise.
    match item.py().get_type::<PyInt>().call_method1(intern!(item.py(), "__repr__"), (integer,)) {
        Ok(text) => Ok(Some(text.extract()?)),
        Err(error) if error.is_instance_of::<PyValueError>(item.py()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[inline]
pub(crate) fn float(item: &Bound<'_, PyAny>, class: Class) -> Result<f64, Misread> {
    match class {
        Class::Float => Ok(item.cast::<PyFloat>().map_err(|_| Misread::Changed)?.value()),
        Class::NumpyFloat => Ok(item.extract()?),
        _ => Err(Misread::Changed),
    }
}

#[inline]
pub(crate) fn truth(item: &Bound<'_, PyAny>, class: Class) -> Result<bool, Misread> {
    match class {
        Class::Bool => Ok(item.cast::<PyBool>().map_err(|_| Misread::Changed)?.is_true()),
        Class::NumpyBool => Ok(item.is_truthy()?),
        _ => Err(Misread::Changed),
    }
}

/// Whether a double holds `value`.
#[inline]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // what is lost shows
pub(crate) fn is_exact(value: i128) -> bool {
    const WHOLE: i128 = 1 << 53;
    (-WHOLE..=WHOLE).contains(&value) || (value as f64 as i128 == value && value != i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_hold_integers_of_53_bits_and_their_multiples() {
        for exact in [0, -1, 1 << 53, -(1 << 53), (1 << 53) + 2, 3 << 60, i64::MIN.into(), i128::MIN] {
            assert!(is_exact(exact), "{exact}");
        }
        for inexact in [(1 << 53) + 1, -(1 << 53) - 1, i64::MAX.into(), u64::MAX.into(), i128::MAX] {
            assert!(!is_exact(inexact), "{inexact}");
        }
    }
}
