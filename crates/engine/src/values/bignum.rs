//! Integers of any length.

use crate::fault::What;

/// Bytes before the magnitude: the sign's bit, and the magnitude's length.
const HEADER: usize = 3;

/// Digits that one step yields, and ten to their number.
const DIGITS: usize = 18;
const STEP: u64 = 1_000_000_000_000_000_000;

/// `bytes` in decimal digits. The first bit is one where the value is not negative; all bits of a negative one are
/// inverted.
pub(crate) fn text(bytes: &[u8]) -> Result<String, What> {
    let Some((header, magnitude)) = bytes.split_at_checked(HEADER).filter(|(_, rest)| !rest.is_empty())
    else {
        return Err(What::internal("an integer without its digits"));
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
            assert_eq!(text(bytes).unwrap(), expected);
        }
        assert!(text(&[0x80, 0, 0]).is_err());
    }
}
