//! numeric, exact or to the nearest double, from its binary form and from text.
//!
//! The binary form is `numeric_send`'s: the number of base-10,000 digits, the weight of the first, a sign word,
//! the display scale, then the digits, all 16 bits.

use std::fmt::Write;

use arrow_buffer::i256;
use longshore_core::OnOdd;
use longshore_wire::Odd;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// A numeric taken apart: `digits` in base 10,000, two bytes each, the last of which counts
/// `10_000^-places`; trailing zero digits never come from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numeric<'a> {
    negative: bool,
    /// Base-10,000 places after the point; negative where zeros follow the digits.
    places: i32,
    digits: &'a [u8],
}

/// What stands in a numeric cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parsed<'a> {
    Finite(Numeric<'a>),
    Special(f64),
}

fn damaged() -> Odd {
    Odd::fault("the server sent a damaged numeric")
}

/// Takes a binary cell apart.
#[inline]
pub(crate) fn parse(cell: &[u8]) -> Result<Parsed<'_>, Odd> {
    let Some((header, digits)) = cell.split_first_chunk::<8>() else { return Err(damaged()) };
    let ([count, weight, sign, _scale], _) = header.as_chunks::<2>() else { return Err(damaged()) };
    let count = usize::from(u16::from_be_bytes(*count));
    let weight = i16::from_be_bytes(*weight);
    let sign = u16::from_be_bytes(*sign);
    if digits.len() != count * 2 {
        return Err(damaged());
    }
    let places = i32::try_from(count).unwrap_or(i32::MAX) - 1 - i32::from(weight);
    match sign {
        0 | NEGATIVE => Ok(Parsed::Finite(Numeric { negative: sign == NEGATIVE, places, digits })),
        NAN => Ok(Parsed::Special(f64::NAN)),
        INFINITY => Ok(Parsed::Special(f64::INFINITY)),
        NEGATIVE_INFINITY => Ok(Parsed::Special(f64::NEG_INFINITY)),
        _ => Err(damaged()),
    }
}

/// NaN or infinity where a decimal is wanted.
#[cold]
fn special(value: f64, policy: OnOdd) -> Odd {
    match policy {
        OnOdd::Null => Odd::Null,
        OnOdd::Error => Odd::with_hint(
            format!("{value} has no exact decimal"),
            "read it as NULL with options={\"numeric_nan\": \"null\"}, or as text with schema={\"<column>\": \"string\"}",
        ),
    }
}

/// Why a value is no decimal of the wanted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Decimals,
    Digits,
    Damaged,
}

/// The longest value that a fault shows in full.
const SHOWN: usize = 60;

impl Misfit {
    #[cold]
    fn of(self, value: &str, to: DecimalType) -> Odd {
        let shown = value.get(..SHOWN).map_or_else(|| value.to_owned(), |start| format!("{start}..."));
        let DecimalType { precision, scale, .. } = to;
        match self {
            Self::Damaged => damaged(),
            Self::Decimals => Odd::with_hint(
                format!("{shown} has more than {scale} decimals"),
                "give the column a type that holds it, such as schema={\"<column>\": \"decimal256(76, 30)\"} or \"string\"",
            ),
            Self::Digits => Odd::with_hint(
                format!("{shown} has more digits than decimal({precision}, {scale}) holds"),
                "give the column a wider type, such as schema={\"<column>\": \"decimal256(76, 10)\"} or \"string\"",
            ),
        }
    }
}

#[cold]
pub(crate) fn beyond_double() -> Odd {
    Odd::with_hint(
        "the value is beyond the largest double",
        "ask for text: schema={\"<column>\": \"string\"}",
    )
}

/// Integers that decimals are made of.
pub(crate) trait Mantissa: Copy + Send + 'static {
    const ZERO: Self;
    fn times_plus(self, factor: i32, addend: i32) -> Option<Self>;
    /// `self / 10^count`, where nothing is left over.
    fn shorten(self, count: u32) -> Option<Self>;
    fn negated(self) -> Self;
    /// Whether it has at most `precision` decimal digits.
    fn fits(self, precision: u8) -> bool;
}

impl Mantissa for i128 {
    const ZERO: Self = 0;

    #[inline]
    fn times_plus(self, factor: i32, addend: i32) -> Option<Self> {
        self.checked_mul(i128::from(factor))?.checked_add(i128::from(addend))
    }

    fn shorten(self, count: u32) -> Option<Self> {
        let power = 10_i128.checked_pow(count)?;
        (self % power == 0).then(|| self / power)
    }

    fn negated(self) -> Self {
        -self
    }

    #[inline]
    fn fits(self, precision: u8) -> bool {
        10_i128.checked_pow(u32::from(precision)).is_none_or(|bound| -bound < self && self < bound)
    }
}

impl Mantissa for i256 {
    const ZERO: Self = i256::ZERO;

    fn times_plus(self, factor: i32, addend: i32) -> Option<Self> {
        self.checked_mul(i256::from(factor))?.checked_add(i256::from(addend))
    }

    fn shorten(self, count: u32) -> Option<Self> {
        let power = i256::from(10).checked_pow(count)?;
        (self.checked_rem(power)? == i256::ZERO).then(|| self.wrapping_div(power))
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }

    fn fits(self, precision: u8) -> bool {
        let Some(bound) = i256::from(10).checked_pow(u32::from(precision)) else { return true };
        bound.wrapping_neg() < self && self < bound
    }
}

/// A decimal type and what to do with what it cannot hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecimalType {
    pub(crate) precision: u8,
    pub(crate) scale: i8,
    pub(crate) numeric_nan: OnOdd,
}

impl DecimalType {
    /// The binary cell as this decimal's integer.
    #[inline]
    pub(crate) fn binary<M: Mantissa>(self, cell: &[u8]) -> Result<M, Odd> {
        let numeric = match parse(cell)? {
            Parsed::Finite(numeric) => numeric,
            Parsed::Special(value) => return Err(special(value, self.numeric_nan)),
        };
        let mantissa = numeric.at_scale::<M>(self).map_err(|misfit| misfit.of(&numeric.plain(), self))?;
        Ok(if numeric.negative { mantissa.negated() } else { mantissa })
    }

    /// The text cell as this decimal's integer: `-12.50`, `1e+3`, `NaN`.
    pub(crate) fn text<M: Mantissa>(self, cell: &[u8]) -> Result<M, Odd> {
        let text = std::str::from_utf8(cell).unwrap_or_default();
        let decimal = Text::parse(text).ok_or_else(|| not_a_number(text, self.numeric_nan))?;
        let mut mantissa = M::ZERO;
        for digit in decimal.digits() {
            mantissa =
                mantissa.times_plus(10, i32::from(digit)).ok_or_else(|| Misfit::Digits.of(text, self))?;
        }
        let mantissa = rescale(mantissa, decimal.decimals, self).map_err(|misfit| misfit.of(text, self))?;
        Ok(if decimal.negative { mantissa.negated() } else { mantissa })
    }
}

/// Brings an integer with `decimals` decimal places to the type's scale.
#[inline]
fn rescale<M: Mantissa>(mantissa: M, decimals: i32, to: DecimalType) -> Result<M, Misfit> {
    let shift = i32::from(to.scale) - decimals;
    let scaled = if shift < 0 {
        mantissa.shorten(shift.unsigned_abs()).ok_or(Misfit::Decimals)?
    } else {
        let mut scaled = mantissa;
        // More steps than digits exist would only multiply a zero.
        for _ in 0..shift.min(80) {
            scaled = scaled.times_plus(10, 0).ok_or(Misfit::Digits)?;
        }
        scaled
    };
    if scaled.fits(to.precision) { Ok(scaled) } else { Err(Misfit::Digits) }
}

impl Numeric<'_> {
    #[inline]
    fn digits(&self) -> impl Iterator<Item = i32> {
        self.digits.as_chunks::<2>().0.iter().map(|pair| i32::from(i16::from_be_bytes(*pair)))
    }

    fn at_scale<M: Mantissa>(&self, to: DecimalType) -> Result<M, Misfit> {
        let mut mantissa = M::ZERO;
        let shift = i32::from(to.scale) - 4 * self.places;
        let (last, whole) = if shift < 0 { (shift.unsigned_abs(), false) } else { (0, true) };
        let count = self.digits.len() / 2;
        for (index, digit) in self.digits().enumerate() {
            if !(0..10_000).contains(&digit) {
                return Err(Misfit::Damaged);
            }
            if !whole && index + 1 == count && last < 4 {
                // Only the last digit reaches beyond the scale: it is cut before it can overflow.
                let power = 10_i32.pow(last);
                if digit % power != 0 {
                    return Err(Misfit::Decimals);
                }
                mantissa = mantissa.times_plus(10_000 / power, digit / power).ok_or(Misfit::Digits)?;
                return if mantissa.fits(to.precision) { Ok(mantissa) } else { Err(Misfit::Digits) };
            }
            mantissa = mantissa.times_plus(10_000, digit).ok_or(Misfit::Digits)?;
        }
        rescale(mantissa, 4 * self.places, to)
    }

    /// The nearest double.
    #[inline]
    fn nearest(&self) -> Result<f64, Odd> {
        if self.digits.len() <= 8 {
            let mantissa = self.digits().fold(0_i64, |acc, digit| acc * 10_000 + i64::from(digit));
            if let Some(value) = exact_quotient(mantissa, 4 * self.places) {
                return Ok(if self.negative { -value } else { value });
            }
        }
        // The standard library rounds a decimal text to the nearest double.
        match self.text().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(beyond_double()),
            Err(_) => Err(damaged()),
        }
    }

    /// `[-]digitsE-places`, for the standard library's parser.
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.digits.len() * 2 + 8);
        text.push_str(if self.negative { "-0" } else { "0" });
        self.push_digits(&mut text);
        // Writing to a String cannot fail.
        let _ = write!(text, "E{}", -4 * self.places);
        text
    }

    fn push_digits(&self, text: &mut String) {
        for digit in self.digits() {
            let _ = write!(text, "{digit:04}");
        }
    }

    /// The number as PostgreSQL writes it, but for zeros at its end.
    #[cold]
    fn plain(&self) -> String {
        let mut digits = String::new();
        self.push_digits(&mut digits);
        let places = usize::try_from(4 * self.places).unwrap_or_default();
        let zeros = usize::try_from(-4 * self.places).unwrap_or_default();
        let digits =
            format!("{}{digits}{}", "0".repeat((places + 1).saturating_sub(digits.len())), "0".repeat(zeros));
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{whole}{point}{fraction}", if self.negative { "-" } else { "" })
    }

    /// Decimal places after the point, and digits before it, without zeros at either end.
    pub(crate) fn extent(&self) -> (i32, i32) {
        let count = i32::try_from(self.digits.len() / 2).unwrap_or(i32::MAX);
        let mut digits = self.digits().enumerate().filter(|(_, digit)| *digit != 0);
        let Some((first, head)) = digits.next() else { return (0, 0) };
        let (last, tail) = digits.last().unwrap_or((first, head));
        let place = |index: usize| i32::try_from(index).unwrap_or(i32::MAX);
        let trailing = (0..4).take_while(|zeros| tail % 10_i32.pow(zeros + 1) == 0).count();
        let leading = i32::try_from(head.unsigned_abs().ilog10()).unwrap_or(0) + 1;
        let decimals = 4 * (self.places - (count - 1 - place(last))) - place(trailing);
        let whole = 4 * (count - 1 - place(first) - self.places) + leading;
        (decimals.max(0), whole.max(0))
    }
}

/// `mantissa / 10^decimals` where both are doubles without rounding, so that the division rounds once.
#[inline]
fn exact_quotient(mantissa: i64, decimals: i32) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // below 2^53 there is none
    let exact = (mantissa < (1 << 53)).then_some(mantissa as f64)?;
    match decimals {
        0..=22 => Some(exact / POWERS[usize::try_from(decimals).ok()?]),
        -4..=-1 => Some(exact * POWERS[usize::try_from(-decimals).ok()?]).filter(|_| mantissa < (1 << 39)),
        _ => None,
    }
}

/// Powers of ten that are exact as doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The double nearest to a binary cell.
#[inline]
pub(crate) fn double(cell: &[u8], policy: OnOdd) -> Result<f64, Odd> {
    match parse(cell)? {
        Parsed::Finite(numeric) => numeric.nearest(),
        Parsed::Special(value) => Err(special(value, policy)),
    }
}

/// The double nearest to a numeric's text.
pub(crate) fn text_double(cell: &[u8], policy: OnOdd) -> Result<f64, Odd> {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) if Text::parse(text).is_some() => Err(beyond_double()),
        _ => Err(not_a_number(text, policy)),
    }
}

/// Faults a numeric's text that is no decimal; NaN and infinity as the caller wants them.
pub(crate) fn text_decimal(cell: &[u8], policy: OnOdd) -> Result<(), Odd> {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    Text::parse(text).map(|_| ()).ok_or_else(|| not_a_number(text, policy))
}

/// Whether two decimals' texts spell one number, however they write it.
pub(crate) fn is_same_number(a: &str, b: &str) -> bool {
    match (Text::parse(a), Text::parse(b)) {
        (Some(a), Some(b)) => a.significant() == b.significant(),
        _ => false,
    }
}

#[cold]
fn not_a_number(text: &str, policy: OnOdd) -> Odd {
    match text {
        "NaN" => special(f64::NAN, policy),
        "Infinity" => special(f64::INFINITY, policy),
        "-Infinity" => special(f64::NEG_INFINITY, policy),
        _ => Odd::fault(format!("{text:?} is no number")),
    }
}

/// A decimal's text taken apart.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    /// Decimal places of the integer that `whole` and `fraction` spell together.
    decimals: i32,
}

impl<'a> Text<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (number, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
            return None;
        }
        let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() < 100_000)?;
        let fraction = fraction.trim_end_matches('0');
        let decimals = i32::try_from(fraction.len()).ok()? - exponent;
        Some(Self { negative, whole: whole.trim_start_matches('0'), fraction, decimals })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes()).map(|byte| byte - b'0')
    }

    /// Sign, digits without zeros at either end, and decimal places of the last; all alike for every zero.
    fn significant(&self) -> (bool, Vec<u8>, i64) {
        let mut digits: Vec<u8> = self.digits().skip_while(|digit| *digit == 0).collect();
        let mut decimals = i64::from(self.decimals);
        while digits.pop_if(|digit| *digit == 0).is_some() {
            decimals -= 1;
        }
        if digits.is_empty() { (false, digits, 0) } else { (self.negative, digits, decimals) }
    }

    /// Decimal places after the point, and digits before it, without zeros at either end.
    pub(crate) fn extent(&self) -> (i32, i32) {
        let digits: Vec<u8> = self.digits().collect();
        let Some(first) = digits.iter().position(|digit| *digit != 0) else { return (0, 0) };
        let trailing = digits.iter().rev().take_while(|digit| **digit == 0).count();
        let length = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let decimals = self.decimals - length(trailing);
        (decimals.max(0), (length(digits.len() - first) - self.decimals).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(weight: i16, sign: u16, digits: &[i16]) -> Vec<u8> {
        let count = u16::try_from(digits.len()).unwrap();
        let mut cell = Vec::new();
        cell.extend(count.to_be_bytes());
        cell.extend(weight.to_be_bytes());
        cell.extend(sign.to_be_bytes());
        cell.extend(0_u16.to_be_bytes());
        cell.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
        cell
    }

    fn decimal(precision: u8, scale: i8) -> DecimalType {
        DecimalType { precision, scale, numeric_nan: OnOdd::Error }
    }

    #[test]
    fn decimals_are_exact_or_a_fault() {
        let price = cell(1, 0, &[1, 2345, 6700]);
        assert_eq!(decimal(15, 2).binary::<i128>(&price), Ok(1_234_567));
        assert_eq!(decimal(38, 20).binary::<i128>(&price), Ok(1_234_567 * 10_i128.pow(18)));
        assert!(matches!(decimal(15, 1).binary::<i128>(&price), Err(Odd::Fault(_))));
        assert!(matches!(decimal(6, 2).binary::<i128>(&price), Err(Odd::Fault(_))));
        let minus_hundred_million = cell(2, NEGATIVE, &[1]);
        assert_eq!(decimal(10, 0).binary::<i128>(&minus_hundred_million), Ok(-100_000_000));
        assert_eq!(
            decimal(76, 2).binary::<i256>(&minus_hundred_million),
            Ok(i256::from_i128(-10_000_000_000))
        );
        let widest = cell(9, 0, &[99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999]);
        assert_eq!(decimal(38, 0).binary::<i128>(&widest), Ok(10_i128.pow(38) - 1));
        assert!(matches!(decimal(38, 1).binary::<i128>(&widest), Err(Odd::Fault(_))));
    }

    #[test]
    fn the_last_digit_is_cut_at_the_scale_before_it_overflows() {
        // 38 digits: 36 before the point, two after, where a whole base-10,000 digit would not fit.
        let value = cell(8, 0, &[9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900]);
        assert_eq!(decimal(38, 2).binary::<i128>(&value), Ok(10_i128.pow(38) - 1));
    }

    #[test]
    fn doubles_are_the_nearest() {
        assert_eq!(double(&cell(0, 0, &[0, 1000]), OnOdd::Error), Ok(0.1));
        assert_eq!(double(&cell(1, NEGATIVE, &[1, 2345, 6700]), OnOdd::Error), Ok(-12_345.67));
        assert_eq!(double(&cell(4, 0, &[1, 2, 3, 4, 5]), OnOdd::Error), Ok(10_002_000_300_040_005.0));
        assert_eq!(double(&cell(0, NAN, &[]), OnOdd::Null), Err(Odd::Null));
        assert_eq!(double(&cell(0, 0, &[]), OnOdd::Error), Ok(0.0));
        assert!(matches!(double(&cell(100, 0, &[1]), OnOdd::Null), Err(Odd::Fault(_))));
        assert!(matches!(text_double(b"1e400", OnOdd::Null), Err(Odd::Fault(_))));
    }

    #[test]
    fn extents_leave_zeros_out() {
        let extent = |cell: &[u8]| match parse(cell).unwrap() {
            Parsed::Finite(numeric) => numeric.extent(),
            Parsed::Special(_) => panic!("special"),
        };
        assert_eq!(extent(&cell(1, 0, &[1, 2345, 6700])), (2, 5));
        assert_eq!(extent(&cell(-1, 0, &[50])), (3, 0));
        assert_eq!(extent(&cell(2, 0, &[1])), (0, 9));
        assert_eq!(extent(&cell(0, 0, &[])), (0, 0));
        assert_eq!(Text::parse("-0012.3400").unwrap().extent(), (2, 2));
        assert_eq!(Text::parse("1e+3").unwrap().extent(), (0, 4));
        assert_eq!(Text::parse("0.00").unwrap().extent(), (0, 0));
    }

    #[test]
    fn one_number_has_many_texts() {
        for (a, b) in [("1", "1.000"), ("-100", "-1e2"), ("0", "-0.00"), ("0.05", "5e-2"), ("+7", "007")] {
            assert!(is_same_number(a, b), "{a} {b}");
        }
        for (a, b) in [("1", "-1"), ("1", "10"), ("1", "1.00000000000000000001"), ("0", "x"), ("NaN", "NaN")]
        {
            assert!(!is_same_number(a, b), "{a} {b}");
        }
    }

    #[test]
    fn texts_are_exact_or_a_fault() {
        assert_eq!(decimal(10, 2).text::<i128>(b"-12.5"), Ok(-1250));
        assert_eq!(decimal(10, 2).text::<i128>(b"1e+3"), Ok(100_000));
        assert_eq!(decimal(10, 2).text::<i128>(b"1.5000"), Ok(150));
        for bad in ["", "-", ".", "1.005", "abc", "1e99999999999", "NaN"] {
            assert!(matches!(decimal(10, 2).text::<i128>(bad.as_bytes()), Err(Odd::Fault(_))), "{bad}");
        }
    }

    #[test]
    fn faults_show_the_value() {
        let shown = |cell: &[u8], to: DecimalType| match to.binary::<i128>(cell) {
            Err(Odd::Fault(fault)) => fault.0.to_string(),
            other => panic!("{other:?}"),
        };
        let price = cell(1, NEGATIVE, &[1, 2345, 6700]);
        assert_eq!(shown(&price, decimal(15, 1)), "-12345.67 has more than 1 decimals");
        assert_eq!(shown(&cell(-2, 0, &[1]), decimal(15, 1)), "0.00000001 has more than 1 decimals");
        assert_eq!(
            shown(&cell(2, 0, &[1]), decimal(5, 1)),
            "100000000 has more digits than decimal(5, 1) holds"
        );
    }

    #[test]
    fn damaged_cells_are_faults() {
        for bad in [&[][..], &[0, 1, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0x12, 0, 0, 0]] {
            assert!(matches!(decimal(10, 2).binary::<i128>(bad), Err(Odd::Fault(_))));
        }
    }
}
