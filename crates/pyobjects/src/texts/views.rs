//! Arrow's views of texts.

use std::sync::Arc;

use arrow_array::types::StringViewType;
use arrow_array::{ArrayRef, GenericByteViewArray};
use arrow_buffer::{Buffer, NullBufferBuilder};

use super::layout::Characters;

/// The longest text that is in its view.
pub(super) const INLINE: usize = 12;

/// Bytes of the buffers that hold longer ones: memory of this size is used again without asking the system for it.
const BUFFER: usize = 1 << 20;

/// Makes an array of texts.
pub(super) struct Views {
    words: Vec<u128>,
    nulls: NullBufferBuilder,
    full: Vec<Buffer>,
    /// The buffer that is being filled, never beyond its capacity.
    buffer: Vec<u8>,
    utf8: Vec<u8>,
}

/// What a text is not: it has a form in UTF-8, and is not longer than Arrow's views tell.
#[derive(Debug)]
pub(super) struct Unfit;

impl Views {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            words: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
            full: Vec::new(),
            buffer: Vec::new(),
            utf8: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.words.push(0);
        self.nulls.append_null();
    }

    /// Appends a view that [`Views::outside`] has given, or that has all of its text.
    #[inline]
    pub(super) fn push_view(&mut self, view: u128) {
        self.words.push(view);
    }

    /// Notes that so many views that were pushed are not NULL.
    #[inline]
    pub(super) fn push_valid(&mut self, count: usize) {
        self.nulls.append_n_non_nulls(count);
    }

    #[inline]
    pub(super) fn push(&mut self, characters: Characters<'_>) -> Result<(), Unfit> {
        match characters {
            Characters::Ascii(text) => self.push_utf8(text),
            Characters::One(text) => self.push_each(text),
            Characters::Two(text) => self.push_each(text),
            Characters::Four(text) => self.push_each(text),
        }
    }

    fn push_each<T: Copy + Into<u32>>(&mut self, mut text: &[T]) -> Result<(), Unfit> {
        let mut utf8 = std::mem::take(&mut self.utf8);
        // A character has four bytes at most.
        if utf8.len() < text.len() * 4 {
            utf8.resize(text.len() * 4, 0);
        }
        let mut end = 0;
        while let Some((first, rest)) = text.split_first() {
            if let Some((four, rest)) = text.split_first_chunk::<4>()
                && let Some(bytes) = ascii(four.map(Into::into))
            {
                utf8[end..end + 4].copy_from_slice(&bytes);
                end += 4;
                text = rest;
                continue;
            }
            let character = char::from_u32((*first).into()).ok_or(Unfit)?;
            end += character.encode_utf8(&mut utf8[end..]).len();
            text = rest;
        }
        let pushed = self.push_utf8(&utf8[..end]);
        self.utf8 = utf8;
        pushed
    }

    #[inline]
    fn push_utf8(&mut self, text: &[u8]) -> Result<(), Unfit> {
        let view = if text.len() <= INLINE { inline(text) } else { self.outside(text)? };
        self.words.push(view);
        self.nulls.append_non_null();
        Ok(())
    }

    /// Copies a longer text, and gives its view: length, first four bytes, number of the buffer, and place in it.
    #[inline]
    pub(super) fn outside(&mut self, text: &[u8]) -> Result<u128, Unfit> {
        if self.buffer.capacity() - self.buffer.len() < text.len() {
            self.turn(text.len());
        }
        let length = i32::try_from(text.len()).map_err(|_| Unfit)?;
        let number = i32::try_from(self.full.len()).map_err(|_| Unfit)?;
        let place = i32::try_from(self.buffer.len()).map_err(|_| Unfit)?;
        self.buffer.extend_from_slice(text);
        let first = u32::from_le_bytes([text[0], text[1], text[2], text[3]]);
        let word = |value: i32| u128::from(value.cast_unsigned());
        Ok(word(length) | u128::from(first) << 32 | word(number) << 64 | word(place) << 96)
    }

    #[cold]
    fn turn(&mut self, least: usize) {
        let filled = std::mem::replace(&mut self.buffer, Vec::with_capacity(least.max(BUFFER)));
        if !filled.is_empty() {
            self.full.push(filled.into());
        }
    }

    /// Whether there is anything but NULLs.
    pub(super) fn has_text(&self) -> bool {
        self.nulls.as_slice().is_none_or(|valid| valid.iter().any(|byte| *byte != 0))
            && !self.words.is_empty()
    }

    /// Bytes of the texts that are not in their views.
    pub(super) fn size(&self) -> usize {
        self.full.iter().map(Buffer::len).sum::<usize>() + self.buffer.len()
    }

    #[allow(unsafe_code)]
    pub(super) fn finish(mut self) -> ArrayRef {
        self.turn(0);
        // SAFETY: every view was built above, of a text in UTF-8 which its buffer has at the view's place, or which the view has itself
        // with zeros after it; there is a bit for each.
        Arc::new(unsafe {
            GenericByteViewArray::<StringViewType>::new_unchecked(
                self.words.into(),
                self.full.into(),
                self.nulls.finish(),
            )
        })
    }
}

/// Characters as bytes, if all are of ASCII.
#[inline]
fn ascii(characters: [u32; 4]) -> Option<[u8; 4]> {
    let all = characters.iter().fold(0, |all, each| all | each);
    (all < 0x80).then(|| characters.map(|each| each.to_le_bytes()[0]))
}

/// The view of a short text: its length, its bytes, and zeros.
#[inline]
fn inline(text: &[u8]) -> u128 {
    // Two words cover what is longer than one. Where both have a byte, they agree.
    let bytes = if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk()) {
        u128::from(u64::from_le_bytes(*first))
            | u128::from(u64::from_le_bytes(*last)) << (8 * (text.len() - 8))
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk()) {
        u128::from(u32::from_le_bytes(*first))
            | u128::from(u32::from_le_bytes(*last)) << (8 * (text.len() - 4))
    } else {
        text.iter().rev().fold(0, |bytes, byte| bytes << 8 | u128::from(*byte))
    };
    bytes << 32 | text.len() as u128
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Array, StringViewArray};

    use super::*;

    #[test]
    fn arrow_reads_what_was_pushed() {
        let texts: Vec<String> =
            (0..40).map(|length| "0123456789".chars().cycle().take(length).collect()).collect();
        let long = "é".repeat(BUFFER);
        let mut views = Views::new(texts.len());
        for text in &texts {
            views.push_utf8(text.as_bytes()).expect("it fits");
        }
        views.push_utf8(long.as_bytes()).expect("it fits");
        views.push_null();
        let array = views.finish();
        array.to_data().validate_full().expect("Arrow's form");
        let array: &StringViewArray = array.as_string_view();
        let wanted = texts.iter().map(String::as_str).chain([long.as_str()]).map(Some).chain([None]);
        assert!(array.iter().eq(wanted));
    }

    #[test]
    fn characters_of_each_size_are_utf8() {
        let mut views = Views::new(4);
        views.push(Characters::Ascii(b"abc")).expect("it has UTF-8");
        views.push(Characters::One(&[97, 0xe9, 0xff])).expect("it has UTF-8");
        views.push(Characters::Two(&[97, 0xd7ff, 0xe000])).expect("it has UTF-8");
        views.push(Characters::Four(&[97, 0x1_f600, 0x10_ffff])).expect("it has UTF-8");
        views.push(Characters::Two(&[0xd800])).expect_err("a surrogate has no UTF-8");
        views.push(Characters::Four(&[0xdfff])).expect_err("a surrogate has no UTF-8");
        let array = views.finish();
        let array: &StringViewArray = array.as_string_view();
        let found: Vec<_> = array.iter().flatten().collect();
        assert_eq!(found, ["abc", "aéÿ", "a\u{d7ff}\u{e000}", "a😀\u{10ffff}"]);
    }
}
