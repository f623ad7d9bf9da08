//! Blocks of rows as a C interface such as ODBC's fills them: each value in a room of its own, its length apart.

use std::sync::Arc;

use arrow_array::types::{ArrowTimestampType, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Date32Array, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::TimeUnit;
use longshore_core::memory::try_reserve;

use crate::calendar::{civil_from_days, days_from_civil};
use crate::{Fault, per_second};

const CAST: &str = "cast the column to text in the query";
/// The bytes of a character in UTF-8 for one unit of UTF-16, at most.
const WIDEST: usize = 3;
/// A second's.
const NANOSECONDS: i64 = 1_000_000_000;

/// A unit of a value: a byte, or one of UTF-16.
pub trait Unit: Copy {
    /// The units of the bytes of a row's value, which are in the machine's order.
    ///
    /// # Errors
    ///
    /// Bytes that end within a unit.
    fn of(bytes: &[u8], row: usize) -> Result<Vec<Self>, Fault>;
}

impl Unit for u8 {
    fn of(bytes: &[u8], _row: usize) -> Result<Vec<Self>, Fault> {
        Ok(bytes.to_vec())
    }
}

impl Unit for u16 {
    fn of(bytes: &[u8], row: usize) -> Result<Vec<Self>, Fault> {
        let (units, rest) = bytes.as_chunks::<2>();
        let units = units.iter().map(|unit| Self::from_ne_bytes(*unit)).collect();
        if rest.is_empty() { Ok(units) } else { Err(half_character(row)) }
    }
}

/// Values one after another, out of their rooms.
pub struct Joined<U> {
    units: Vec<U>,
    offsets: Vec<i32>,
}

impl<U: Unit> Joined<U> {
    /// No value, and room for so many.
    ///
    /// # Errors
    ///
    /// No memory for them.
    pub fn new(rows: usize) -> Result<Self, Fault> {
        let mut offsets = Vec::new();
        try_reserve(&mut offsets, rows + 1)?;
        offsets.push(0);
        Ok(Self { units: Vec::new(), offsets })
    }

    /// Adds the value of the next row, which for NULL is empty.
    ///
    /// # Errors
    ///
    /// Values of more than two gigabytes together, or no memory for them.
    #[inline]
    pub fn push(&mut self, units: impl ExactSizeIterator<Item = U>) -> Result<(), Fault> {
        try_reserve(&mut self.units, units.len())?;
        self.units.extend(units);
        self.end()
    }

    #[inline]
    fn end(&mut self) -> Result<(), Fault> {
        let end = i32::try_from(self.units.len()).map_err(|_| {
            let message = "the values of one batch have more than two gigabytes";
            Fault::data(self.offsets.len() - 1, message).with_hint("give a smaller batch_size=")
        })?;
        self.offsets.push(end);
        Ok(())
    }

    fn values(&self) -> impl ExactSizeIterator<Item = &[U]> {
        self.offsets.windows(2).map(|ends| &self.units[ends[0].as_usize()..ends[1].as_usize()])
    }
}

impl Joined<u16> {
    /// Texts in UTF-16.
    ///
    /// # Errors
    ///
    /// A text with half a character.
    pub fn texts(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
        let mut texts = Joined::<u8>::new(self.offsets.len())?;
        if is_ascii(&self.units) {
            texts.push(ascii(&self.units))?;
            return Joined { offsets: self.offsets, ..texts }.texts(nulls);
        }
        for (row, units) in self.values().enumerate() {
            if is_ascii(units) {
                texts.push(ascii(units))?;
                continue;
            }
            try_reserve(&mut texts.units, WIDEST * units.len())?;
            for character in char::decode_utf16(units.iter().copied()) {
                let character = character.map_err(|_| half_character(row))?;
                texts.units.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            texts.end()?;
        }
        texts.texts(nulls)
    }
}

fn is_ascii(units: &[u16]) -> bool {
    units.iter().fold(0, |all, unit| all | unit) < 0x80
}

/// The characters of units of which each is ASCII.
fn ascii(units: &[u16]) -> impl ExactSizeIterator<Item = u8> {
    units.iter().map(|unit| unit.to_le_bytes()[0])
}

fn half_character(row: usize) -> Fault {
    Fault::data(row, "the driver's UTF-16 has half a character, which UTF-8 has not").with_hint(CAST)
}

impl Joined<u8> {
    /// Bytes.
    #[must_use]
    pub fn bytes(self, nulls: Option<NullBuffer>) -> BinaryArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        BinaryArray::new(offsets, Buffer::from_vec(self.units), nulls)
    }

    /// Texts in UTF-8.
    ///
    /// # Errors
    ///
    /// A text that is not UTF-8.
    pub fn texts(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
        let bytes = self.bytes(nulls);
        if let Ok(texts) = StringArray::try_from_binary(bytes.clone()) {
            return Ok(Arc::new(texts));
        }
        let is_text = |row: usize| std::str::from_utf8(bytes.value(row)).is_ok();
        let row = (0..bytes.len()).find(|row| !is_text(*row)).unwrap_or_default();
        Err(Fault::data(row, "a text that is not UTF-8").with_hint(CAST))
    }
}

/// Dates of a year, which has a sign, a month and a day.
///
/// # Errors
///
/// A date that is none.
pub fn dates(rows: &[[u16; 3]], nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    let values = parse_rows(rows, nulls.as_ref(), |row, parts| days(row, *parts))?;
    Ok(Arc::new(Date32Array::new(values, nulls)))
}

/// Timestamps of a date, hours, minutes and seconds, and the halves of a number of nanoseconds, as the machine has them.
///
/// # Errors
///
/// A timestamp that is none, or that has digits, or a year, which the unit does not.
pub fn timestamps(rows: &[[u16; 8]], unit: TimeUnit, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    match unit {
        TimeUnit::Nanosecond => points::<TimestampNanosecondType>(rows, nulls),
        _ => points::<TimestampMicrosecondType>(rows, nulls),
    }
}

fn points<T: ArrowTimestampType>(rows: &[[u16; 8]], nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    let values = parse_rows(rows, nulls.as_ref(), |row, parts| {
        days_and_time::<T>(row, *parts)?.map_err(|message| Fault::data(row, message).with_hint(CAST))
    })?;
    Ok(Arc::new(PrimitiveArray::<T>::new(values, nulls)))
}

/// The values of the rows that are not NULL, next to zeros.
#[inline]
fn parse_rows<P, T: ArrowNativeType>(
    rows: &[P],
    nulls: Option<&NullBuffer>,
    parse: impl Fn(usize, &P) -> Result<T, Fault>,
) -> Result<ScalarBuffer<T>, Fault> {
    let mut values = Vec::new();
    try_reserve(&mut values, rows.len())?;
    for (row, parts) in rows.iter().enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        values.push(if is_null { T::default() } else { parse(row, parts)? });
    }
    Ok(values.into())
}

/// The count of the unit since 1970, or why there is none.
fn days_and_time<T: ArrowTimestampType>(
    row: usize,
    [year, month, day, hour, minute, second, low, high]: [u16; 8],
) -> Result<Result<i64, String>, Fault> {
    let days = days(row, [year, month, day])?;
    let [[l1, l2], [h1, h2]] = [low.to_ne_bytes(), high.to_ne_bytes()];
    let nanoseconds = i64::from(u32::from_ne_bytes([l1, l2, h1, h2]));
    if hour > 23 || minute > 59 || second > 59 || nanoseconds >= NANOSECONDS {
        let text = format!("{hour:02}:{minute:02}:{second:02} and {nanoseconds} nanoseconds");
        return Ok(Err(format!("{text} is not a time that the driver can mean")));
    }
    let per_second = per_second(T::UNIT);
    let step = NANOSECONDS / per_second;
    if nanoseconds % step != 0 {
        return Ok(Err("a timestamp finer than the microseconds that the driver told".into()));
    }
    let hours = i64::from(days) * 24 + i64::from(hour);
    let seconds = (hours * 60 + i64::from(minute)) * 60 + i64::from(second);
    let point = seconds.checked_mul(per_second).and_then(|whole| whole.checked_add(nanoseconds / step));
    Ok(point.ok_or_else(|| format!("the year {} does not fit 64 bits of nanoseconds", year.cast_signed())))
}

/// The days since 1970 of a date.
fn days(row: usize, [year, month, day]: [u16; 3]) -> Result<i32, Fault> {
    let parts = (i64::from(year.cast_signed()), i64::from(month), i64::from(day));
    let days = days_from_civil(parts.0, parts.1, parts.2);
    // Each month has 28 days.
    let is_date = parts.0 > 0
        && matches!(month, 1..=12)
        && (matches!(day, 1..=28) || day > 28 && civil_from_days(days) == parts);
    if !is_date {
        let text = format!("{:04}-{month:02}-{day:02}", parts.0);
        return Err(
            Fault::data(row, format!("{text} is not a date that the driver can mean")).with_hint(CAST)
        );
    }
    i32::try_from(days).map_err(|_| Fault::internal("a year of 16 bits has too many days"))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;

    use super::*;

    #[test]
    fn texts_of_both_widths_and_what_is_not_a_text() {
        let wide: Vec<u16> = "a€𝄞".encode_utf16().collect();
        let read = |values: &[&[u16]], nulls| join(values).texts(nulls);
        let nulls = NullBuffer::from(vec![true, false, true, true]);
        let found = read(&[&wide, &[], &[], &wide[..1]], Some(nulls));
        assert_eq!(texts_of(&found.unwrap()), [Some("a€𝄞"), None, Some(""), Some("a")]);
        assert_eq!(texts_of(&read(&[&wide[..1], &[]], None).unwrap()), [Some("a"), Some("")]);
        // Two halves of a character in two texts are not one; nor is an odd number of bytes a text.
        assert_eq!(read(&[&wide[..3], &wide[3..]], None).unwrap_err().row(), 0);
        assert_eq!(u16::of(b"a\0b", 1).unwrap_err().row(), 1);
        assert_eq!(u16::of(&u16::to_ne_bytes(7), 1).unwrap(), [7]);

        let read = |values: &[&[u8]]| join(values).texts(None);
        assert_eq!(texts_of(&read(&["ä".as_bytes(), b"b"]).unwrap()), [Some("ä"), Some("b")]);
        let halves = ["a".as_bytes(), &"ä".as_bytes()[..1], &"ä".as_bytes()[1..]];
        assert_eq!(read(&halves).unwrap_err().row(), 1);
    }

    fn join<U: Unit>(values: &[&[U]]) -> Joined<U> {
        let mut all = Joined::new(values.len()).unwrap();
        for units in values {
            all.push(units.iter().copied()).unwrap();
        }
        all
    }

    fn texts_of(array: &ArrayRef) -> Vec<Option<&str>> {
        array.as_string::<i32>().iter().collect()
    }

    #[test]
    fn timestamps_at_their_ends() {
        let parts = |year: u16, nanoseconds: u32| {
            let bytes = nanoseconds.to_ne_bytes();
            let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
            [year, 2, 28, 23, 59, 59, half(0), half(2)]
        };
        let read = |parts: [u16; 8], unit| {
            // What is in the room of a NULL is not looked at.
            timestamps(&[[0; 8], parts], unit, Some(NullBuffer::from(vec![false, true])))
        };
        let micros = read(parts(1970, 999_999_000), TimeUnit::Microsecond).unwrap();
        assert_eq!(micros.as_primitive::<TimestampMicrosecondType>().value(1), 59 * 86_400_000_000 - 1);
        let nanos = read(parts(1970, 999_999_999), TimeUnit::Nanosecond).unwrap();
        assert_eq!(nanos.as_primitive::<TimestampNanosecondType>().value(1), 59 * 86_400_000_000_000 - 1);
        let mut late = parts(2024, 0);
        late[3] = 24;
        for (wrong, unit) in [
            (parts(2024, 1), TimeUnit::Microsecond),
            (parts(2024, 1_000_000_000), TimeUnit::Nanosecond),
            (parts(2263, 0), TimeUnit::Nanosecond),
            (late, TimeUnit::Microsecond),
        ] {
            assert_eq!(read(wrong, unit).unwrap_err().row(), 1);
        }
    }
}
