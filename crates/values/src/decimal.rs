//! Decimals, exact or to the nearest double, from their text; and what every form of a decimal shares.

use arrow_buffer::i256;
use longshore_core::Unrepresentable;

use crate::{Losses, Misfit};

/// NaN or infinity where a decimal is wanted.
#[cold]
#[must_use]
pub fn special(value: f64, policy: Unrepresentable) -> Misfit {
    match policy {
        Unrepresentable::Null => Misfit::Null,
        Unrepresentable::Error => Misfit::with_hint(
            format!("{value} has no exact decimal"),
            "read it as NULL with options={\"numeric_nan\": \"null\"}, or as text with schema={\"<column>\": \"string\"}",
        ),
    }
}

/// Why a value is not a decimal of the wanted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMisfit {
    /// It has too many decimals.
    Decimals,
    /// It has too many digits.
    Digits,
    /// It is none at all.
    Damaged,
}

/// The longest value that a fault shows in full.
const SHOWN: usize = 60;

impl DecimalMisfit {
    /// The fault of `value`, which is not a `to`.
    #[cold]
    #[must_use]
    pub fn of(self, value: &str, to: DecimalType) -> Misfit {
        let shown = value.get(..SHOWN).map_or_else(|| value.to_owned(), |start| format!("{start}..."));
        let DecimalType { precision, scale, .. } = to;
        match self {
            Self::Damaged => Misfit::fault("the server sent a damaged decimal"),
            Self::Decimals => Misfit::with_hint(
                format!("{shown} has more than {scale} decimals"),
                "give the column a type that holds it, such as schema={\"<column>\": \"decimal256(76, 30)\"} or \"string\"",
            ),
            Self::Digits => Misfit::with_hint(
                format!("{shown} has more digits than decimal({precision}, {scale}) holds"),
                "give the column a wider type, such as schema={\"<column>\": \"decimal256(76, 10)\"}; where the frame has none, \"string\"",
            ),
        }
    }
}

/// A value that no double can hold.
#[cold]
#[must_use]
pub fn beyond_double() -> Misfit {
    Misfit::with_hint(
        "the value is beyond the largest double",
        "ask for text: schema={\"<column>\": \"string\"}",
    )
}

/// Integers that decimals are made of.
pub trait Mantissa: Copy + Send + 'static {
    /// Zero.
    const ZERO: Self;
    /// The integer `value`.
    fn small(value: i64) -> Self;
    /// `self * factor + addend`, where that fits.
    fn times_plus(self, factor: i32, addend: i32) -> Option<Self>;
    /// `self / 10^count`, where nothing is left over.
    fn shorten(self, count: u32) -> Option<Self>;
    /// `-self`.
    #[must_use]
    fn negate(self) -> Self;
    /// Whether it has at most `precision` decimal digits.
    fn fits(self, precision: u8) -> bool;
}

impl Mantissa for i128 {
    const ZERO: Self = 0;

    #[inline]
    fn small(value: i64) -> Self {
        value.into()
    }

    #[inline]
    fn times_plus(self, factor: i32, addend: i32) -> Option<Self> {
        self.checked_mul(i128::from(factor))?.checked_add(i128::from(addend))
    }

    fn shorten(self, count: u32) -> Option<Self> {
        let power = 10_i128.checked_pow(count)?;
        (self % power == 0).then(|| self / power)
    }

    fn negate(self) -> Self {
        -self
    }

    #[inline]
    fn fits(self, precision: u8) -> bool {
        10_i128.checked_pow(u32::from(precision)).is_none_or(|bound| -bound < self && self < bound)
    }
}

impl Mantissa for i256 {
    const ZERO: Self = i256::ZERO;

    fn small(value: i64) -> Self {
        value.into()
    }

    fn times_plus(self, factor: i32, addend: i32) -> Option<Self> {
        self.checked_mul(i256::from(factor))?.checked_add(i256::from(addend))
    }

    fn shorten(self, count: u32) -> Option<Self> {
        let power = i256::from(10).checked_pow(count)?;
        (self.checked_rem(power)? == i256::ZERO).then(|| self.wrapping_div(power))
    }

    fn negate(self) -> Self {
        self.wrapping_neg()
    }

    fn fits(self, precision: u8) -> bool {
        let Some(bound) = i256::from(10).checked_pow(u32::from(precision)) else { return true };
        bound.wrapping_neg() < self && self < bound
    }
}

/// A decimal type and what to do with what it cannot hold.
#[derive(Clone, Copy, Debug)]
pub struct DecimalType {
    /// All its digits.
    pub precision: u8,
    /// Those after the point.
    pub scale: i8,
    /// NaN and infinity, which it cannot hold.
    pub numeric_nan: Unrepresentable,
}

impl DecimalType {
    /// The text cell as this decimal's integer: `-12.50`, `1e+3`, `NaN`.
    pub fn text<M: Mantissa>(self, cell: &[u8]) -> Result<M, Misfit> {
        if let Some(short) = self.short(cell) {
            return Ok(M::small(short));
        }
        let text = std::str::from_utf8(cell).unwrap_or_default();
        let decimal = Text::parse(text).ok_or_else(|| not_a_number(text, self.numeric_nan))?;
        let mut mantissa = M::ZERO;
        for digit in decimal.digits() {
            mantissa = mantissa
                .times_plus(10, i32::from(digit))
                .ok_or_else(|| DecimalMisfit::Digits.of(text, self))?;
        }
        let mantissa = rescale(mantissa, decimal.decimals, self).map_err(|misfit| misfit.of(text, self))?;
        Ok(if decimal.negative { mantissa.negate() } else { mantissa })
    }
}

/// The longest text whose digits always fit 64 bits.
const SHORT: usize = 18;

/// Sign, digits, and how many of them stand behind the point, of a short `-12.50`; `None` for any other form.
#[inline]
fn plain(cell: &[u8]) -> Option<(bool, u64, u32)> {
    let (negative, digits) = match cell {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, cell),
    };
    if digits.len() > SHORT {
        return None;
    }
    let (mut value, mut decimals, mut after_point) = (0_u64, 0, 0);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            value = value * 10 + u64::from(digit);
            decimals += after_point;
        } else if *byte == b'.' && after_point == 0 {
            after_point = 1;
        } else {
            return None;
        }
    }
    // A point alone is not a number.
    (digits.len() > after_point as usize).then_some((negative, value, decimals))
}

impl DecimalType {
    /// The common case: few digits, with just the type's decimals.
    #[inline]
    fn short(self, cell: &[u8]) -> Option<i64> {
        let (negative, value, decimals) = plain(cell)?;
        let fits = i32::from(self.scale) == decimals.cast_signed()
            && POWERS_OF_TEN.get(usize::from(self.precision)).is_none_or(|bound| u128::from(value) < *bound);
        // Eighteen digits fit with their sign.
        let value = value.cast_signed();
        fits.then_some(if negative { -value } else { value })
    }
}

/// Powers of ten as integers: by a precision, the least number with more digits.
pub const POWERS_OF_TEN: [u128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Brings an integer with `decimals` decimal places to the type's scale.
#[inline]
pub fn rescale<M: Mantissa>(mantissa: M, decimals: i32, to: DecimalType) -> Result<M, DecimalMisfit> {
    let shift = i32::from(to.scale) - decimals;
    let scaled = if shift < 0 {
        mantissa.shorten(shift.unsigned_abs()).ok_or(DecimalMisfit::Decimals)?
    } else {
        let mut scaled = mantissa;
        // More steps than digits exist would only multiply a zero.
        for _ in 0..shift.min(80) {
            scaled = scaled.times_plus(10, 0).ok_or(DecimalMisfit::Digits)?;
        }
        scaled
    };
    if scaled.fits(to.precision) { Ok(scaled) } else { Err(DecimalMisfit::Digits) }
}

/// `mantissa / 10^decimals` where both are doubles without rounding, so that the division rounds once.
#[inline]
#[must_use]
pub fn exact_quotient(mantissa: i64, decimals: i32) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // below 2^53 there is none
    let exact = (mantissa < (1 << 53)).then_some(mantissa as f64)?;
    match decimals {
        0..=22 => Some(exact / EXACT_POWERS[usize::try_from(decimals).ok()?]),
        -4..=-1 => {
            Some(exact * EXACT_POWERS[usize::try_from(-decimals).ok()?]).filter(|_| mantissa < (1 << 39))
        }
        _ => None,
    }
}

/// Powers of ten that are exact as doubles.
pub const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Decimals below it, however many of their digits stand behind the point, come back from their doubles.
pub const ALWAYS_BACK: u64 = 10_u64.pow(f64::DIGITS);

/// The digits of a double's shortest text, as an integer divided by `10^decimals`; `None` where a closer look is needed.
///
/// Of two decimals with fifteen digits at most, no two are nearest to one double: the one that is found is the shortest.
#[inline]
#[must_use]
pub fn short_mantissa(value: f64, decimals: u8) -> Option<i64> {
    let power = *EXACT_POWERS.get(usize::from(decimals))?;
    let scaled = value * power;
    #[allow(clippy::cast_possible_truncation)] // a guess, which the division proves
    let mantissa = (scaled + 0.5_f64.copysign(scaled)) as i64;
    if mantissa.unsigned_abs() >= ALWAYS_BACK {
        return None;
    }
    #[allow(clippy::cast_precision_loss, clippy::float_cmp)] // below 2^53; equality is the question
    (mantissa as f64 / power == value).then_some(mantissa)
}

/// Whether `value`, the double nearest to the decimal `text`, is that decimal, or the shortest text that reads as
/// `value` is.
#[must_use]
pub fn comes_back(text: &str, value: f64) -> bool {
    let Some(decimal) = Text::parse(text).map(|text| text.significant()) else { return true };
    let reads_so = |text: &str| Text::parse(text).is_some_and(|text| text.significant() == decimal);
    let is_short = decimal.1.len() <= f64::DIGITS as usize && value.is_normal();
    is_short || reads_so(&format!("{value:e}")) || reads_so(&format!("{value:.0}"))
}

/// The double nearest to a numeric's text.
pub fn text_double(cell: &[u8], policy: Unrepresentable, losses: &mut Losses) -> Result<f64, Misfit> {
    if let Some((value, comes_back)) = short_double(cell)
        && (comes_back || !losses.looks())
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(cell).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => {
            losses.look(text, value);
            Ok(value)
        }
        Ok(_) if Text::parse(text).is_some() => Err(beyond_double()),
        _ => Err(not_a_number(text, policy)),
    }
}

/// The double nearest to a short text, and whether it surely comes back.
#[inline]
fn short_double(cell: &[u8]) -> Option<(f64, bool)> {
    let (negative, value, decimals) = plain(cell)?;
    let magnitude = exact_quotient(value.cast_signed(), decimals.cast_signed())?;
    Some((if negative { -magnitude } else { magnitude }, value < ALWAYS_BACK))
}

/// Faults a numeric's text that is not a decimal; NaN and infinity as the caller wants them.
pub fn text_decimal(cell: &[u8], policy: Unrepresentable) -> Result<(), Misfit> {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    Text::parse(text).map(|_| ()).ok_or_else(|| not_a_number(text, policy))
}

/// Whether two decimals' texts spell one number, however they write it.
#[must_use]
pub fn is_same_number(a: &str, b: &str) -> bool {
    match (Text::parse(a), Text::parse(b)) {
        (Some(a), Some(b)) => a.significant() == b.significant(),
        _ => false,
    }
}

#[cold]
fn not_a_number(text: &str, policy: Unrepresentable) -> Misfit {
    match text {
        "NaN" => special(f64::NAN, policy),
        "Infinity" => special(f64::INFINITY, policy),
        "-Infinity" => special(f64::NEG_INFINITY, policy),
        _ => Misfit::fault(format!("{text:?} is not a number")),
    }
}

/// A decimal's text taken apart.
#[derive(Debug)]
pub struct Text<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    /// Decimal places of the integer that `whole` and `fraction` spell together.
    decimals: i32,
}

impl<'a> Text<'a> {
    /// `[+-]digits[.digits][E[+-]digits]`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
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

    /// Decimal places of its last digit, and digits before the point, without zeros at either end: either may be below zero. `None`
    /// for zero.
    #[must_use]
    pub fn ends(&self) -> Option<(i64, i64)> {
        let (_, digits, decimals) = self.significant();
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        (length > 0).then_some((decimals, length - decimals))
    }

    /// Decimal places after the point, and digits before it, without zeros at either end.
    #[must_use]
    pub fn extent(&self) -> (i32, i32) {
        let count = |number: i64| i32::try_from(number.max(0)).unwrap_or(i32::MAX);
        self.ends().map_or((0, 0), |(decimals, whole)| (count(decimals), count(whole)))
    }

    /// Whether it is less than zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative && self.digits().any(|digit| digit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(precision: u8, scale: i8) -> DecimalType {
        DecimalType { precision, scale, numeric_nan: Unrepresentable::Error }
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
    fn short_mantissas_are_the_digits_of_the_shortest_text() {
        for (value, decimals, mantissa) in [
            (0.07, 2, Some(7)),
            (-1234.5, 2, Some(-123_450)),
            (-0.0, 2, Some(0)),
            (0.29, 2, Some(29)),
            (1.005, 2, None),
            (0.1 + 0.2, 15, None),
            (0.1 + 0.2, 2, None),
            (9_999_999_999_999.99, 2, Some(999_999_999_999_999)),
            (10_000_000_000_000.0, 2, None),
            (1e300, 0, None),
            (f64::NAN, 2, None),
            (f64::INFINITY, 2, None),
            (f64::NEG_INFINITY, 0, None),
            (f64::MIN_POSITIVE, 22, None),
            (1.0, 23, None),
        ] {
            assert_eq!(short_mantissa(value, decimals), mantissa, "{value} {decimals}");
        }
        // Neighbours of every cent: none is taken for it, and each cent for itself.
        for cents in (0..1_000_000_i64).chain(99_999_999_990_000..99_999_999_999_999) {
            let value: f64 = format!("{}.{:02}", cents / 100, cents % 100).parse().unwrap();
            assert_eq!(short_mantissa(value, 2), Some(cents));
            assert_eq!(short_mantissa(value.next_up(), 2), None);
        }
    }

    #[test]
    fn texts_are_exact_or_a_fault() {
        assert_eq!(decimal(10, 2).text::<i128>(b"-12.5"), Ok(-1250));
        assert_eq!(decimal(10, 2).text::<i128>(b"1e+3"), Ok(100_000));
        assert_eq!(decimal(10, 2).text::<i128>(b"1.5000"), Ok(150));
        for bad in ["", "-", ".", "1.005", "abc", "1e99999999999", "NaN"] {
            assert!(matches!(decimal(10, 2).text::<i128>(bad.as_bytes()), Err(Misfit::Fault(_))), "{bad}");
        }
    }

    #[test]
    fn short_texts_are_as_exact_as_long_ones() {
        let mut state = 3_u64;
        for _ in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 33) % 20;
            let value = (state >> 7) % 10_u64.pow(u32::try_from(digits).unwrap().min(18));
            let scale = usize::try_from((state >> 50) % 7).unwrap();
            let sign = if state & 1 == 0 { "-" } else { "" };
            let padded = format!("{value:0>width$}", width = scale + 1);
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            let text =
                if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") };
            let long = format!("{sign}{}{}", "0".repeat(30), &text[sign.len()..]);
            let of = decimal(12, i8::try_from(scale).unwrap());
            assert_eq!(
                of.text::<i128>(text.as_bytes()).ok(),
                of.text::<i128>(long.as_bytes()).ok(),
                "{text}"
            );
            let double =
                text_double(text.as_bytes(), Unrepresentable::Error, &mut Losses::default()).unwrap();
            assert_eq!(double.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(decimal(18, 0).text::<i128>(b"999999999999999999"), Ok(999_999_999_999_999_999));
        assert_eq!(decimal(3, 1).text::<i128>(b".5"), Ok(5));
        for bad in ["", "-", ".", "-.", "1.2.3", "--1", "1-", "100.0"] {
            assert!(decimal(3, 1).text::<i128>(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn extents_leave_zeros_out() {
        assert_eq!(Text::parse("-0012.3400").unwrap().extent(), (2, 2));
        assert_eq!(Text::parse("1e+3").unwrap().extent(), (0, 4));
        assert_eq!(Text::parse("0.00").unwrap().extent(), (0, 0));
    }

    #[test]
    fn doubles_are_the_nearest_or_a_fault() {
        let mut losses = Losses::default();
        assert_eq!(text_double(b"0.1", Unrepresentable::Error, &mut losses), Ok(0.1));
        assert!(matches!(text_double(b"1e400", Unrepresentable::Null, &mut losses), Err(Misfit::Fault(_))));
        assert_eq!(text_double(b"NaN", Unrepresentable::Null, &mut losses), Err(Misfit::Null));
    }

    #[test]
    fn doubles_come_back_or_are_told_of() {
        let warnings = std::sync::Arc::<longshore_core::Warnings>::default();
        let tells = |text: &str| {
            let mut losses = Losses::of_doubles(text, &warnings);
            text_double(text.as_bytes(), Unrepresentable::Error, &mut losses).unwrap();
            !warnings.take().is_empty()
        };
        for text in [
            "0",
            "0.000",
            "0.1",
            "-0.10000000000000000000",
            "123456789012345",
            "0.00000000000000123456789012345",
            "123456789012345000000000000",
            "9007199254740991",
            "0.30000000000000004",
            "18446744073709551616",
            "1.7976931348623157e308",
        ] {
            assert!(!tells(text), "{text}");
        }
        for text in [
            "18446744073709551615",
            "-9007199254740993.00",
            "0.900719925474099301",
            "0.12345678901234567890",
            "3.33333333333333333333",
            "1e-400",
            "1.2345e-321",
        ] {
            assert!(tells(text), "{text}");
        }
    }
}
