//! One cell -> one field.

use std::sync::Arc;

use simdutf8::basic::from_utf8;

use crate::Fault;
use crate::scale::{Rest, Scale};

/// From 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_DAYS: i64 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS * 86_400_000_000;

const DAY: i128 = 86_400_000_000;

/// The days that PostgreSQL itself gives a month where it has to.
const MONTH_DAYS: i128 = 30;

/// How a cell becomes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Bool,
    /// A number of so many bytes, as it is.
    Number2,
    Number4,
    Number8,
    /// A number whose first bit is a sign to one of the two only.
    Half2,
    Half4,
    Half8,
    Timestamp(Scale),
    Date(Scale),
    Time(Scale),
    TimeTz(Scale),
    Interval(Scale),
    /// Bytes that NumPy strips of the zeros at their end.
    Stripped,
    /// Bytes that fill the field.
    Exact,
    /// Text, which has no zeros.
    Text,
    Characters,
    /// Either, after jsonb's version.
    JsonText,
    JsonCharacters,
    Bits,
    /// So many doubles.
    Doubles(usize),
    /// A block's number, and where in the field its row's lies; whether each has a sign there.
    Tid(usize, [bool; 2]),
    /// NULLs alone.
    Untyped,
    /// asyncpg decodes it.
    Object,
}

/// One column on its way into one field.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) action: Action,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// The bytes that the field holds for NULL.
    pub(crate) null: Arc<[u8]>,
    /// A value was shorter than the field.
    shorter: bool,
    /// A value filled the field and ended in a zero byte.
    zero_ended: bool,
    bits: Option<u32>,
}

impl Step {
    pub(crate) fn new(action: Action, offset: usize, size: usize, null: Arc<[u8]>) -> Self {
        Self { action, offset, size, null, shorter: false, zero_ended: false, bits: None }
    }

    /// Whether asyncpg decodes the column.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.action == Action::Object
    }

    /// Writes `cell` into its field, which holds zeros.
    // A call for each cell would cost as much as the cell itself.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn write(&mut self, cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
        match self.action {
            Action::Bool => into[0] = u8::from(fixed_bytes::<1>(cell)? != [0]),
            Action::Number2 => put(into, u16::from_be_bytes(fixed_bytes(cell)?).to_ne_bytes()),
            Action::Number4 => put(into, u32::from_be_bytes(fixed_bytes(cell)?).to_ne_bytes()),
            Action::Number8 => put(into, u64::from_be_bytes(fixed_bytes(cell)?).to_ne_bytes()),
            Action::Half2 => put(into, half(i16::from_be_bytes(fixed_bytes(cell)?))?.to_ne_bytes()),
            Action::Half4 => put(into, half(i32::from_be_bytes(fixed_bytes(cell)?))?.to_ne_bytes()),
            Action::Half8 => put(into, half(i64::from_be_bytes(fixed_bytes(cell)?))?.to_ne_bytes()),
            Action::Timestamp(scale) => put(into, timestamp(fixed_bytes(cell)?, scale)?.to_ne_bytes()),
            Action::Date(scale) => put(into, date(fixed_bytes(cell)?, scale)?.to_ne_bytes()),
            Action::Time(scale) => put(into, time(fixed_bytes(cell)?, scale)?.to_ne_bytes()),
            Action::Text => prefix(cell, into)?,
            Action::Characters => characters(cell, into)?,
            Action::Stripped => self.strip(cell, into)?,
            _ => self.write_rare(cell, into)?,
        }
        Ok(())
    }

    fn write_rare(&mut self, cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
        match self.action {
            Action::TimeTz(scale) => put(into, time_tz(fixed_bytes(cell)?, scale)?.to_ne_bytes()),
            Action::Interval(scale) => put(into, interval(fixed_bytes(cell)?, scale)?.to_ne_bytes()),
            Action::Exact if cell.len() == into.len() => into.copy_from_slice(cell),
            Action::Exact => return Err(Fault::Inexact(cell.len())),
            Action::JsonText => prefix(json(cell)?, into)?,
            Action::JsonCharacters => characters(json(cell)?, into)?,
            Action::Bits => self.bits(cell, into)?,
            Action::Doubles(count) => doubles(cell, count, into)?,
            Action::Tid(second, signed) => tid(fixed_bytes(cell)?, second, signed, into)?,
            Action::Untyped => return Err(Fault::Kind),
            // The caller has left objects out, and `write` has the rest.
            _ => {}
        }
        Ok(())
    }

    /// Bytes in a field whose zeros at the end NumPy does not show: exact where all values have the field's length, or none
    /// of them ends in zero.
    fn strip(&mut self, cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
        prefix(cell, into)?;
        let ends_in_zero = cell.last() == Some(&0);
        if cell.len() < into.len() {
            self.shorter = true;
        } else {
            self.zero_ended |= ends_in_zero;
        }
        if self.shorter && (ends_in_zero || self.zero_ended) {
            return Err(Fault::TrailingZero);
        }
        Ok(())
    }

    fn bits(&mut self, cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
        let Some((count, bits)) = cell.split_first_chunk::<4>() else {
            return Err(Fault::Length(cell.len()));
        };
        let count = u32::from_be_bytes(*count);
        if bits.len() != (count as usize).div_ceil(8) {
            return Err(Fault::Length(cell.len()));
        }
        // The same number of bits in all rows: so the zeros at the end are no secret.
        if *self.bits.get_or_insert(count) != count {
            return Err(Fault::BitCount(count));
        }
        prefix(bits, into)
    }
}

#[inline]
fn fixed_bytes<const N: usize>(cell: &[u8]) -> Result<[u8; N], Fault> {
    cell.try_into().map_err(|_| Fault::Length(cell.len()))
}

#[inline]
fn put<const N: usize>(into: &mut [u8], value: [u8; N]) {
    into[..N].copy_from_slice(&value);
}

/// The beginning of a field that is zero after it.
#[inline]
fn prefix(cell: &[u8], into: &mut [u8]) -> Result<(), Fault> {
    match into.get_mut(..cell.len()) {
        Some(slot) => {
            slot.copy_from_slice(cell);
            Ok(())
        }
        None => Err(Fault::Short(cell.len())),
    }
}

/// A number that has the same bits with a sign and without one.
#[inline]
fn half<T: PartialOrd + Default>(number: T) -> Result<T, Fault> {
    if number < T::default() { Err(Fault::Sign) } else { Ok(number) }
}

#[inline]
fn timestamp(cell: [u8; 8], scale: Scale) -> Result<i64, Fault> {
    match i64::from_be_bytes(cell) {
        i64::MAX | i64::MIN => Err(Fault::Infinite),
        microseconds => match microseconds.checked_add(EPOCH_MICROSECONDS) {
            Some(microseconds) => scale.apply(microseconds, Rest::Floor),
            None => scale.apply_wide(i128::from(microseconds) + i128::from(EPOCH_MICROSECONDS), Rest::Floor),
        }
        .ok_or(Fault::OutOfRange),
    }
}

#[inline]
fn date(cell: [u8; 4], scale: Scale) -> Result<i64, Fault> {
    match i32::from_be_bytes(cell) {
        i32::MAX | i32::MIN => Err(Fault::Infinite),
        days => scale.apply_days(i64::from(days) + EPOCH_DAYS).ok_or(Fault::OutOfRange),
    }
}

#[inline]
fn time(cell: [u8; 8], scale: Scale) -> Result<i64, Fault> {
    scale.apply(i64::from_be_bytes(cell), Rest::Truncate).ok_or(Fault::OutOfRange)
}

/// The time of day in UTC: the zone counts in seconds to the west.
fn time_tz(cell: [u8; 12], scale: Scale) -> Result<i64, Fault> {
    let (time, zone) = cell.split_at(8);
    let west = i64::from(i32::from_be_bytes(fixed_bytes(zone)?)) * 1_000_000;
    let microseconds = i64::from_be_bytes(fixed_bytes(time)?);
    let utc = microseconds.checked_add(west).ok_or(Fault::OutOfRange)?;
    scale.apply(utc, Rest::Truncate).ok_or(Fault::OutOfRange)
}

fn interval(cell: [u8; 16], scale: Scale) -> Result<i64, Fault> {
    let value = u128::from_be_bytes(cell);
    // The halves and quarters of the value, cut out as they are.
    #[allow(clippy::cast_possible_truncation)]
    let (microseconds, days, months) = (
        ((value >> 64) as u64).cast_signed(),
        ((value >> 32) as u32).cast_signed(),
        (value as u32).cast_signed(),
    );
    if matches!((microseconds, days, months), (i64::MAX, i32::MAX, i32::MAX) | (i64::MIN, i32::MIN, i32::MIN))
    {
        return Err(Fault::Infinite);
    }
    let days = i128::from(months) * MONTH_DAYS + i128::from(days);
    scale.apply_wide(days * DAY + i128::from(microseconds), Rest::Truncate).ok_or(Fault::OutOfRange)
}

fn json(cell: &[u8]) -> Result<&[u8], Fault> {
    match cell.split_first() {
        Some((1, text)) => Ok(text),
        _ => Err(Fault::Version),
    }
}

fn doubles(cell: &[u8], count: usize, into: &mut [u8]) -> Result<(), Fault> {
    if cell.len() != count * 8 {
        return Err(Fault::Length(cell.len()));
    }
    for (slot, double) in into.chunks_exact_mut(8).zip(cell.chunks_exact(8)) {
        put(slot, u64::from_be_bytes(fixed_bytes(double)?).to_ne_bytes());
    }
    Ok(())
}

fn tid(cell: [u8; 6], second: usize, signed: [bool; 2], into: &mut [u8]) -> Result<(), Fault> {
    let [a, b, c, d, row @ ..] = cell;
    let (block, row) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes(row));
    if (signed[0] && block.cast_signed() < 0) || (signed[1] && row.cast_signed() < 0) {
        return Err(Fault::Sign);
    }
    put(into, block.to_ne_bytes());
    put(&mut into[second..], row.to_ne_bytes());
    Ok(())
}

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
