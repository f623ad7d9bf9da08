//! Texts with offsets of 64 bits, over the same bytes.
#![allow(unsafe_code)]

use arrow_array::{Array, LargeStringArray, StringArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

/// `texts` with offsets of 64 bits. They are not looked at again: it would take longer than all else, and bring a file that is
/// mapped into memory.
pub(crate) fn widened(texts: &StringArray) -> LargeStringArray {
    let offsets: ScalarBuffer<i64> = texts.offsets().iter().map(|offset| i64::from(*offset)).collect();
    // SAFETY: they are those of a valid array, which ascend, lie within its bytes, and part them into texts; its NULLs
    // have its length.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(offsets);
        LargeStringArray::new_unchecked(offsets, texts.values().clone(), texts.nulls().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_stay_where_they_are() {
        let texts = StringArray::from(vec![Some("a"), None, Some("bcd"), Some("")]);
        for (start, length) in [(0, 4), (1, 2), (2, 0)] {
            let texts = texts.slice(start, length);
            let wide = widened(&texts);
            assert_eq!(wide.iter().collect::<Vec<_>>(), texts.iter().collect::<Vec<_>>());
            assert_eq!(wide.values().as_ptr(), texts.values().as_ptr());
            wide.to_data().validate_full().unwrap();
        }
    }
}
