//! Decimals.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{Misread, integer_text};
use crate::class::Class;

/// The address of `decimal.Decimal`, and what shows one.
static DECIMAL: PyOnceLock<(usize, Py<PyAny>)> = PyOnceLock::new();

/// A decimal or an integer in digits; `NaN` and `Infinity` in their words.
pub(crate) fn decimal_text(item: &Bound<'_, PyAny>, class: Class) -> Result<String, Misread> {
    if class != Class::Decimal {
        return integer_text(item, class)?.ok_or(Misread::Changed);
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

/// The extent of a decimal's text; `None` for what is no finite number. Zeros at the end count, as they do in Python.
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
