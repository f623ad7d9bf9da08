//! Numbers and booleans.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::class::Class;
use crate::read::ReadError;

/// An integer; `None` where 128 bits are too few.
#[inline]
pub(crate) fn integer(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i128>, ReadError> {
    if !matches!(class, Class::Int | Class::NumpyInt) {
        return Err(ReadError::Changed);
    }
    match item.extract::<i64>() {
        Ok(value) => Ok(Some(value.into())),
        Err(_) => Ok(integer_text(item, class)?.and_then(|text| text.parse().ok())),
    }
}

/// An integer's digits; `None` for more of them than Python writes.
pub(crate) fn integer_text(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<String>, ReadError> {
    let index;
    let integer = match class {
        Class::Int => item,
        Class::NumpyInt => {
            index = item.call_method0("__index__")?;
            &index
        }
        _ => return Err(ReadError::Changed),
    };
    // The class's own: what inherits from it may show itself otherwise.
    match item.py().get_type::<PyInt>().call_method1(intern!(item.py(), "__repr__"), (integer,)) {
        Ok(text) => Ok(Some(text.extract()?)),
        Err(error) if error.is_instance_of::<PyValueError>(item.py()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[inline]
pub(crate) fn float(item: &Bound<'_, PyAny>, class: Class) -> Result<f64, ReadError> {
    match class {
        Class::Float => Ok(item.cast::<PyFloat>().map_err(|_| ReadError::Changed)?.value()),
        Class::NumpyFloat => Ok(item.extract()?),
        _ => Err(ReadError::Changed),
    }
}

#[inline]
pub(crate) fn truth(item: &Bound<'_, PyAny>, class: Class) -> Result<bool, ReadError> {
    match class {
        Class::Bool => Ok(item.cast::<PyBool>().map_err(|_| ReadError::Changed)?.is_true()),
        Class::NumpyBool => Ok(item.is_truthy()?),
        _ => Err(ReadError::Changed),
    }
}

/// Whether a double holds `value`.
#[inline]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // what is lost shows
pub(crate) fn is_exact(value: i128) -> bool {
    const WHOLE: i128 = 1 << 53;
    (-WHOLE..=WHOLE).contains(&value) || (value as f64 as i128 == value && value != i128::MAX)
}

/// The address of `decimal.Decimal`, and what shows one.
static DECIMAL: PyOnceLock<(usize, Py<PyAny>)> = PyOnceLock::new();

/// A decimal or an integer in digits; `NaN` and `Infinity` in their words.
pub(crate) fn decimal_text(item: &Bound<'_, PyAny>, class: Class) -> Result<String, ReadError> {
    if class != Class::Decimal {
        return integer_text(item, class)?.ok_or(ReadError::Changed);
    }
    let py = item.py();
    let (decimal, show) = DECIMAL.get_or_try_init(py, || -> PyResult<_> {
        let decimal = py.import("decimal")?.getattr("Decimal")?;
        Ok((decimal.as_ptr().addr(), decimal.getattr("__str__")?.unbind()))
    })?;
    if item.get_type_ptr().addr() == *decimal {
        return Ok(item.str()?.to_str()?.to_owned());
    }
    // What inherits from it may show itself otherwise.
    Ok(show.call1(py, (item,))?.extract(py)?)
}

/// The digits that a decimal has before its point and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) whole: u32,
    pub(crate) scale: u32,
}

impl Extent {
    pub(crate) fn merge(&mut self, other: Self) {
        self.whole = self.whole.max(other.whole);
        self.scale = self.scale.max(other.scale);
    }
}

/// The extent of a decimal's text; `None` for what is not a finite number. Zeros at the end count, as they do in Python.
pub(crate) fn extent(text: &str) -> Option<Extent> {
    let (number, exponent) = text.split_once('E').unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let number = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let count = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let scale = count(fraction) - exponent;
    let leading = whole.bytes().chain(fraction.bytes()).take_while(|digit| *digit == b'0').count();
    let digits = whole.len() + fraction.len() - leading;
    let before = if digits == 0 { 0 } else { i64::try_from(digits).unwrap_or(i64::MAX) - scale };
    let clamped = |value: i64| u32::try_from(value.max(0)).unwrap_or(u32::MAX);
    Some(Extent { whole: clamped(before), scale: clamped(scale) })
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

    #[test]
    fn digits_are_counted_on_both_sides_of_the_point() {
        let cases = [
            ("1.50", 1, 2),
            ("-0012.3", 2, 1),
            ("0", 0, 0),
            ("0.00", 0, 2),
            ("0.005", 0, 3),
            ("1E+3", 4, 0),
            ("1.5E+1", 2, 0),
            ("1.25E+1", 2, 1),
            ("5E-7", 0, 7),
            ("0E+5", 0, 0),
            ("0E-5", 0, 5),
            ("100", 3, 0),
        ];
        for (text, whole, scale) in cases {
            assert_eq!(extent(text), Some(Extent { whole, scale }), "{text}");
        }
        for text in ["NaN", "sNaN123", "-Infinity", "", "-"] {
            assert_eq!(extent(text), None, "{text}");
        }
    }
}
