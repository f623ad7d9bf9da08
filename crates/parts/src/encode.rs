//! Columns in forms that take less, and that an engine computes with.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal128Type};
use arrow_array::{Array, ArrayRef, Decimal64Array, DictionaryArray, UInt8Array};
use arrow_select::interleave::interleave;

use crate::{length, nulls};

/// Decimals of 128 bits as those of 64; `None` where one is too large.
pub fn decimals(parts: &[ArrayRef], digits: u8, scale: i8) -> Option<ArrayRef> {
    let mut numbers: Vec<i64> = Vec::with_capacity(length(parts));
    for part in parts {
        let part = part.as_primitive::<Decimal128Type>();
        let mut lost = 0;
        #[expect(clippy::cast_possible_truncation, reason = "what is lost is looked at")]
        numbers.extend(part.values().iter().map(|value| {
            lost |= i128::from(*value as i64) ^ value;
            *value as i64
        }));
        // Below a NULL there is anything.
        let fits = |value: Option<i128>| value.is_none_or(|value| i64::try_from(value).is_ok());
        if lost != 0 && !part.iter().all(fits) {
            return None;
        }
    }
    let made = Decimal64Array::new(numbers.into(), nulls(parts)).with_precision_and_scale(digits, scale);
    made.ok().map(|made| Arc::new(made) as ArrayRef)
}

/// Texts as a dictionary with keys of a byte; `None` where they are too many.
pub fn dictionary<T: ByteArrayType>(parts: &[ArrayRef]) -> Option<ArrayRef> {
    let mut numbers = Numbers { slots: [0; SLOTS], texts: Vec::new() };
    let mut firsts = Vec::new();
    let mut keys = Vec::with_capacity(length(parts));
    for (at, part) in parts.iter().enumerate() {
        for (row, text) in part.as_bytes::<T>().iter().enumerate() {
            let Some(text) = text else {
                keys.push(0);
                continue;
            };
            let number = numbers.of(Text::of(text.as_ref()))?;
            if usize::from(number) == firsts.len() {
                firsts.push((at, row));
            }
            keys.push(number);
        }
    }
    let parts_of: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = interleave(&parts_of, &firsts).ok()?;
    let keys = UInt8Array::new(keys.into(), nulls(parts));
    DictionaryArray::try_new(keys, values).ok().map(|made| Arc::new(made) as ArrayRef)
}

/// Four for each of the texts.
const SLOTS: usize = 1 << 10;

/// The numbers of texts, in the order in which they came.
struct Numbers<'a> {
    /// One more than a text's number, in the first free slot from where its hash says on.
    slots: [u16; SLOTS],
    texts: Vec<Text<'a>>,
}

impl<'a> Numbers<'a> {
    /// The number of a text; `None` of the 257th.
    #[inline]
    fn of(&mut self, text: Text<'a>) -> Option<u8> {
        let mut slot = text.slot();
        loop {
            let number = self.slots[slot % SLOTS].wrapping_sub(1);
            match self.texts.get(usize::from(number)) {
                None => {
                    let next = u8::try_from(self.texts.len()).ok()?;
                    self.slots[slot % SLOTS] = u16::from(next) + 1;
                    self.texts.push(text);
                    return Some(next);
                }
                Some(known) if known.is(&text) => return u8::try_from(number).ok(),
                Some(_) => slot += 1,
            }
        }
    }
}

/// A text with its ends as numbers, which with its length are all of one of up to 16 bytes: few take a second look.
struct Text<'a> {
    ends: [u64; 2],
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    #[inline]
    fn of(bytes: &'a [u8]) -> Self {
        let byte = |at: usize| u64::from(bytes[at]);
        let (eight, four) =
            (bytes.first_chunk().zip(bytes.last_chunk()), bytes.first_chunk().zip(bytes.last_chunk()));
        let ends = match (eight, four) {
            (Some((first, last)), _) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
            (_, Some((first, last))) => [u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()],
            _ if bytes.is_empty() => [0, 0],
            _ => [byte(0), byte(bytes.len() / 2) << 8 | byte(bytes.len() - 1)],
        };
        Self { ends, bytes }
    }

    #[inline]
    fn is(&self, other: &Self) -> bool {
        let is_short = self.bytes.len() <= 16;
        self.ends == other.ends
            && self.bytes.len() == other.bytes.len()
            && (is_short || self.bytes == other.bytes)
    }

    #[inline]
    fn slot(&self) -> usize {
        let mixed = self.ends[0] ^ self.ends[1].rotate_left(32) ^ self.bytes.len() as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
    }
}
