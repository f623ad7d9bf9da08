//! UTF-8 -> NumPy's characters, four bytes each.

use simdutf8::basic::from_utf8;

use crate::Fault;

const WIDTH: usize = size_of::<char>();

/// Writes the characters of `cell` into `into`, the rest of which is zero.
#[inline]
pub(crate) fn characters(cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
    if !cell.is_ascii() {
        return beyond_ascii(cell, into);
    }
    if cell.len() > into.len() / WIDTH {
        return Err(Fault::Short(cell.len()));
    }
    for (slot, byte) in into.chunks_exact_mut(WIDTH).zip(cell) {
        slot.copy_from_slice(&u32::from(*byte).to_ne_bytes());
    }
    Ok(())
}

fn beyond_ascii(cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
    let text = from_utf8(cell).map_err(|_| Fault::NotText)?;
    let mut slots = into.chunks_exact_mut(WIDTH);
    for character in text.chars() {
        let Some(slot) = slots.next() else { return Err(Fault::Short(text.chars().count())) };
        slot.copy_from_slice(&u32::from(character).to_ne_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, width: usize) -> Result<Vec<u32>, Fault> {
        let mut memory = vec![0; width * WIDTH];
        characters(text.as_bytes(), &mut memory)?;
        let slots = memory.chunks_exact(WIDTH);
        Ok(slots.map(|slot| u32::from_ne_bytes(slot.try_into().unwrap())).collect())
    }

    #[test]
    fn characters_count_and_not_their_bytes() {
        assert_eq!(read("", 2), Ok(vec![0, 0]));
        assert_eq!(read("ab", 2), Ok(vec![97, 98]));
        assert_eq!(read("a€", 2), Ok(vec![97, 0x20ac]));
        assert_eq!(read("\u{10ffff}", 2), Ok(vec![0x0010_ffff, 0]));
        assert_eq!(read("abc", 2), Err(Fault::Short(3)));
        assert_eq!(read("äöü", 2), Err(Fault::Short(3)));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [b"\xff".as_slice(), b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"] {
            assert_eq!(characters(bytes, &mut [0; 16]), Err(Fault::NotText));
        }
    }
}
