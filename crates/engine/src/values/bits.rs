//! Strings of bits.

use crate::fault::What;

/// `bytes` as zeros and ones: the first byte counts the bits of the second that are no part of the value.
pub(crate) fn text(bytes: &[u8]) -> Result<String, What> {
    let Some((&padding, bytes)) = bytes.split_first().filter(|(padding, _)| **padding < 8) else {
        return Err(What::internal("a string of bits without its length"));
    };
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    Ok(bits.skip(usize::from(padding)).map(|bit| if bit == 1 { '1' } else { '0' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_padding_is_no_part_of_the_value() {
        assert_eq!(text(&[5, 0b1111_1101]).unwrap(), "101");
        assert_eq!(text(&[0, 0b1000_0000]).unwrap(), "10000000");
        assert_eq!(text(&[7, 0b1111_1111, 1]).unwrap(), "100000001");
        assert!(text(&[]).is_err());
        assert!(text(&[8, 0]).is_err());
    }
}
