//! Times of a day with an offset.

use std::fmt::Write;

use crate::fault::What;

/// The low bits hold the offset, counted down from its largest.
const OFFSET_BITS: u32 = 24;
const LARGEST_OFFSET: i64 = 16 * 3600 - 1;

/// Microseconds and offset packed into eight bytes, as `12:00:00.5+02:30`.
pub(crate) fn with_zone(bytes: &[u8]) -> Result<String, What> {
    let packed = bytes.try_into().map(u64::from_le_bytes);
    let packed = packed.map_err(|_| What::internal("a time with its zone is not eight bytes"))?;
    let micros = packed >> OFFSET_BITS;
    let counted_down = i64::try_from(packed & ((1 << OFFSET_BITS) - 1)).unwrap_or(0);
    let mut text = clock(micros);
    push_offset(&mut text, LARGEST_OFFSET - counted_down);
    Ok(text)
}

fn clock(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return text;
    }
    let digits = format!("{fraction:06}");
    format!("{text}.{}", digits.trim_end_matches('0'))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_fractions() {
        for (bytes, expected) in [
            ([0xdf, 0xc4, 0, 0, 0x68, 0xc4, 0x61, 0x08], "10:00:00+02"),
            ([0xff, 0xe0, 0, 0, 0x60, 0xd7, 0x1d, 0x14], "24:00:00+00"),
            ([0xfe, 0xc1, 0x01, 0, 0, 0xca, 0x1d, 0x14], "23:59:59.123456-15:59:59"),
        ] {
            assert_eq!(with_zone(&bytes).unwrap(), expected);
        }
        assert!(with_zone(&[0]).is_err());
    }
}
