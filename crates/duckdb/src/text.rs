//! Values that become text: the bytes of types that only the engine can read.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, TimeUnit};
use longshore_values::{CellFault, Item, Items, push_time};

use crate::error::{Reason, internal, unrepresentable};

/// Makes one value's text of its bytes.
pub(crate) type Text = fn(&[u8]) -> Result<String, CellFault>;

const TOO_LONG: Reason = (
    "the texts of one batch are larger than 2 GB together",
    "leave the column out, or select fewer rows at a time",
);

/// The texts of all values of `array`.
pub(crate) fn texts(array: &dyn Array, text: Text) -> Result<ArrayRef, CellFault> {
    let not_bytes = || internal("values that are not bytes");
    let items =
        Items::new(array, &Field::new("", array.data_type().clone(), true)).map_err(|_| not_bytes())?;
    let mut texts = StringBuilder::with_capacity(array.len(), 0);
    for row in 0..array.len() {
        let bytes = match items.get(row) {
            Item::Null => {
                texts.append_null();
                continue;
            }
            Item::Bytes(bytes) => bytes,
            _ => return Err(not_bytes()),
        };
        let text = text(bytes).map_err(|fault| CellFault { row, ..fault })?;
        if i32::try_from(texts.values_slice().len() + text.len()).is_err() {
            return Err(unrepresentable(TOO_LONG, row));
        }
        texts.append_value(text);
    }
    Ok(Arc::new(texts.finish()))
}

/// A UUID, as RFC 9562 writes it.
pub(crate) fn uuid(bytes: &[u8]) -> Result<String, CellFault> {
    let bytes = bytes.try_into().map_err(|_| internal("a UUID that is not sixteen bytes"))?;
    Ok(longshore_values::uuid(bytes))
}

/// `bytes` as zeros and ones: the first byte counts the bits of the second that are not part of the value.
pub(crate) fn bits(bytes: &[u8]) -> Result<String, CellFault> {
    let Some((&padding, bytes)) = bytes.split_first().filter(|(padding, _)| **padding < 8) else {
        return Err(internal("a string of bits without its length"));
    };
    let ones = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    Ok(ones.skip(usize::from(padding)).map(|bit| if bit == 1 { '1' } else { '0' }).collect())
}

/// The low bits hold the offset, counted down from its largest.
const OFFSET_BITS: u32 = 24;
const LARGEST_OFFSET: i64 = 16 * 3600 - 1;

/// Microseconds and offset packed into eight bytes, as `12:00:00.5+02:30`.
pub(crate) fn time_tz(bytes: &[u8]) -> Result<String, CellFault> {
    let packed = bytes.try_into().map(u64::from_le_bytes);
    let packed = packed.map_err(|_| internal("a time with its zone is not eight bytes"))?;
    let microseconds = i64::try_from(packed >> OFFSET_BITS).unwrap_or(0);
    let counted_down = i64::try_from(packed & ((1 << OFFSET_BITS) - 1)).unwrap_or(0);
    let mut text = String::new();
    push_time(&mut text, microseconds, TimeUnit::Microsecond);
    push_offset(&mut text, LARGEST_OFFSET - counted_down);
    Ok(text)
}

fn push_offset(text: &mut String, seconds: i64) {
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // A `String` takes every write.
    let _ = write!(text, "{sign}{hours:02}");
    if (minutes, rest) != (0, 0) {
        let _ = write!(text, ":{minutes:02}");
    }
    if rest != 0 {
        let _ = write!(text, ":{rest:02}");
    }
}

/// Bytes before the magnitude: the sign's bit, and the magnitude's length.
const HEADER: usize = 3;

/// Digits that one step yields, and ten to their number.
const DIGITS: usize = 18;
const STEP: u64 = 1_000_000_000_000_000_000;

/// `bytes` in decimal digits. The first bit is one where the value is not negative; all bits of a negative one are
/// inverted.
pub(crate) fn bignum(bytes: &[u8]) -> Result<String, CellFault> {
    let Some((header, magnitude)) = bytes.split_at_checked(HEADER).filter(|(_, rest)| !rest.is_empty())
    else {
        return Err(internal("an integer without its digits"));
    };
    let is_negative = header[0] & 0x80 == 0;
    let words = words(magnitude, if is_negative { 0xff } else { 0 });
    let digits = digits(words);
    Ok(if is_negative { format!("-{digits}") } else { digits })
}

/// The magnitude in words of 32 bits, the highest first.
fn words(bytes: &[u8], inverted: u8) -> Vec<u32> {
    let (first, rest) = bytes.split_at(bytes.len() % 4);
    let word = |chunk: &[u8]| chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(byte ^ inverted));
    std::iter::once(word(first)).chain(rest.chunks(4).map(word)).skip_while(|word| *word == 0).collect()
}

fn digits(mut words: Vec<u32>) -> String {
    let mut steps = Vec::new();
    while !words.is_empty() {
        steps.push(divide(&mut words));
        let leading = words.iter().take_while(|word| **word == 0).count();
        words.drain(..leading);
    }
    let Some(highest) = steps.pop() else { return "0".to_owned() };
    let lower = steps.iter().rev().map(|step| format!("{step:0DIGITS$}"));
    std::iter::once(highest.to_string()).chain(lower).collect()
}

/// Divides `words` by [`STEP`]; the remainder.
fn divide(words: &mut [u32]) -> u64 {
    let mut remainder = 0_u128;
    for word in words {
        let dividend = remainder << 32 | u128::from(*word);
        // The remainder is below the divisor, so that each quotient fits in its word.
        *word = u32::try_from(dividend / u128::from(STEP)).unwrap_or(u32::MAX);
        remainder = dividend % u128::from(STEP);
    }
    u64::try_from(remainder).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_lengths() {
        for (bytes, expected) in [
            (&[0x80, 0, 1, 0][..], "0"),
            (&[0x80, 0, 1, 12], "12"),
            (&[0x7f, 0xff, 0xfe, 0xfe], "-1"),
            (&[0x7f, 0xff, 0xfd, 0xfe, 0xff], "-256"),
            (&[0x80, 0, 8, 0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0, 0], "1000000000000000000"),
            (&[0x80, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0], "18446744073709551616"),
        ] {
            assert_eq!(bignum(bytes).unwrap(), expected);
        }
        assert!(bignum(&[0x80, 0, 0]).is_err());
    }

    #[test]
    fn the_padding_is_not_part_of_the_value() {
        assert_eq!(bits(&[5, 0b1111_1101]).unwrap(), "101");
        assert_eq!(bits(&[0, 0b1000_0000]).unwrap(), "10000000");
        assert_eq!(bits(&[7, 0b1111_1111, 1]).unwrap(), "100000001");
        assert!(bits(&[]).is_err());
        assert!(bits(&[8, 0]).is_err());
    }

    #[test]
    fn offsets_and_fractions() {
        for (bytes, expected) in [
            ([0xdf, 0xc4, 0, 0, 0x68, 0xc4, 0x61, 0x08], "10:00:00+02"),
            ([0xff, 0xe0, 0, 0, 0x60, 0xd7, 0x1d, 0x14], "24:00:00+00"),
            ([0xfe, 0xc1, 0x01, 0, 0, 0xca, 0x1d, 0x14], "23:59:59.123456-15:59:59"),
        ] {
            assert_eq!(time_tz(&bytes).unwrap(), expected);
        }
        assert!(time_tz(&[0]).is_err());
    }
}
