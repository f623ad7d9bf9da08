//! Decimals -> numeric's binary form (`numeric_recv`): groups of four decimal digits, and where the point is.

use longshore_cells::Odd;
use longshore_cells::decimal::short_mantissa;

use super::fit;
use crate::types::Type;

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Digits that a group has.
const GROUP: usize = 4;
const BASE: u64 = 10_000;

/// Appends length and value of `value` divided by ten to the power of `scale`.
#[inline]
pub(super) fn put(native: &Type, value: i128, scale: i8, out: &mut Vec<u8>) -> Result<(), Odd> {
    let places = usize::try_from(scale).unwrap_or_default();
    // The last group is filled up with zeros.
    let padding = (GROUP - places % GROUP) % GROUP;
    let power = 10_u64.pow(u32::try_from(padding).unwrap_or_default());
    let magnitude =
        u64::try_from(value.unsigned_abs()).ok().and_then(|magnitude| magnitude.checked_mul(power));
    let Some(mut rest) = magnitude.filter(|_| scale >= 0 && fit::is_surely_held(native, value, places))
    else {
        return put_digits(native, &value.to_string(), scale, out);
    };
    let mut groups = [0_u16; 5];
    let mut count = 0;
    while rest > 0 {
        // Below 10,000.
        groups[count] = u16::try_from(rest % BASE).unwrap_or_default();
        rest /= BASE;
        count += 1;
    }
    let weight = i32::try_from(count).unwrap_or_default()
        - i32::try_from(places.div_ceil(GROUP)).unwrap_or_default()
        - 1;
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let header = Header { is_negative: value < 0, weight, scale: places };
    header.put(groups[zeros..count].iter().rev().copied(), count - zeros, out)
}

/// The same for an integer of any length, in text.
pub(super) fn put_digits(native: &Type, digits: &str, scale: i8, out: &mut Vec<u8>) -> Result<(), Odd> {
    let mut plain = String::with_capacity(digits.len() + 2);
    longshore_cells::push_decimal(&mut plain, digits, scale);
    put_plain(native, &plain, out)
}

/// Appends length and value of a double, by the digits that tell it from all others.
#[inline]
pub(super) fn put_double(native: &Type, value: f64, out: &mut Vec<u8>) -> Result<(), Odd> {
    // Where the column has a scale, the server gives every value the column's own.
    let scale = fit::scale(native).and_then(|scale| u8::try_from(scale).ok());
    match scale.and_then(|scale| short_mantissa(value, scale).zip(i8::try_from(scale).ok())) {
        Some((mantissa, scale)) => put(native, mantissa.into(), scale, out),
        None => put_float(native, value, &value.to_string(), out),
    }
}

/// Appends length and value of a float, by the digits that tell it from all others.
pub(super) fn put_float(native: &Type, value: f64, plain: &str, out: &mut Vec<u8>) -> Result<(), Odd> {
    let special = match value {
        _ if value.is_nan() => NAN,
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => NEGATIVE_INFINITY,
        _ => return put_plain(native, plain, out),
    };
    // The server refuses infinity where the column has a precision, and before version 14.
    out.extend_from_slice(&8_i32.to_be_bytes());
    for word in [0, 0, special, 0] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    Ok(())
}

/// Appends length and value of `[-]digits[.digits]`.
pub(super) fn put_plain(native: &Type, plain: &str, out: &mut Vec<u8>) -> Result<(), Odd> {
    fit::decimal(native, plain)?;
    let (is_negative, plain) = plain.strip_prefix('-').map_or((false, plain), |rest| (true, rest));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let padded = format!(
        "{:0>whole_width$}{:0<fraction_width$}",
        whole,
        fraction,
        whole_width = whole.len().next_multiple_of(GROUP),
        fraction_width = fraction.len().next_multiple_of(GROUP),
    );
    let (groups, _) = padded.as_bytes().as_chunks::<GROUP>();
    let leading = groups.iter().take_while(|group| **group == *b"0000").count();
    let trailing = groups[leading..].iter().rev().take_while(|group| **group == *b"0000").count();
    let kept = &groups[leading..groups.len() - trailing];
    let before_point = whole.len().div_ceil(GROUP);
    let weight =
        i32::try_from(before_point).unwrap_or(i32::MAX) - 1 - i32::try_from(leading).unwrap_or(i32::MAX);
    let value =
        |group: &[u8; GROUP]| group.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    let header =
        Header { is_negative, weight: if kept.is_empty() { 0 } else { weight }, scale: fraction.len() };
    header.put(kept.iter().map(value), kept.len(), out)
}

struct Header {
    is_negative: bool,
    /// The power of 10,000 that the first group counts.
    weight: i32,
    /// Digits after the point.
    scale: usize,
}

impl Header {
    fn put(self, groups: impl Iterator<Item = u16>, count: usize, out: &mut Vec<u8>) -> Result<(), Odd> {
        let number = i16::try_from(count).map_err(|_| beyond())?;
        let weight = if count == 0 { 0 } else { i16::try_from(self.weight).map_err(|_| beyond())? };
        let scale = u16::try_from(self.scale).ok().filter(|scale| *scale < 1 << 14).ok_or_else(beyond)?;
        let sign = if self.is_negative && count > 0 { NEGATIVE } else { POSITIVE };
        let length = i32::from(number) * 2 + 8;
        let [l1, l2, l3, l4] = length.to_be_bytes();
        let ([n1, n2], [w1, w2]) = (number.to_be_bytes(), weight.to_be_bytes());
        let ([s1, s2], [d1, d2]) = (sign.to_be_bytes(), scale.to_be_bytes());
        out.extend_from_slice(&[l1, l2, l3, l4, n1, n2, w1, w2, s1, s2, d1, d2]);
        groups.for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
        Ok(())
    }
}

#[cold]
fn beyond() -> Odd {
    Odd::fault("numeric has 131,072 digits before the point and 16,383 after it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(put: impl Fn(&Type, &mut Vec<u8>)) -> Vec<i16> {
        let mut out = Vec::new();
        put(&Type::builtin(1700).unwrap(), &mut out);
        let (length, words) = out.split_at(4);
        assert_eq!(length, i32::try_from(words.len()).unwrap().to_be_bytes());
        words.as_chunks::<2>().0.iter().map(|word| i16::from_be_bytes(*word)).collect()
    }

    #[test]
    fn both_ways_give_the_same_groups() {
        let cases: [(i128, i8); 10] = [
            (0, 0),
            (0, 2),
            (1, 2),
            (-1_250, 2),
            (123_456_789, 4),
            (10_000, 0),
            (100_000_000, 2),
            (5, 7),
            (i128::from(u64::MAX), 3),
            (i128::MIN, 38),
        ];
        for (value, scale) in cases {
            let short = words(|native, out| put(native, value, scale, out).unwrap());
            let long = words(|native, out| put_digits(native, &value.to_string(), scale, out).unwrap());
            assert_eq!(short, long, "{value} at {scale}");
        }
    }

    #[test]
    fn groups_are_those_of_the_server() {
        // SELECT numeric_send(-12.5): 2 groups, weight 0, negative, scale 1, 12 and 5000.
        assert_eq!(words(|native, out| put(native, -125, 1, out).unwrap()), [2, 0, 0x4000, 1, 12, 5000]);
        assert_eq!(words(|native, out| put_plain(native, "0.00001", out).unwrap()), [1, -2, 0, 5, 1000]);
        assert_eq!(words(|native, out| put(native, 3, -5, out).unwrap()), [1, 1, 0, 0, 30]);
    }
}
