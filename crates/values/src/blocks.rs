//! Blocks of rows as a C interface such as ODBC's fills them: each value in a room of its own, its length apart.

use std::sync::Arc;

use arrow_array::types::{ArrowTimestampType, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Date32Array, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::TimeUnit;
use longshore_core::memory::try_reserve;

use crate::calendar::{civil_from_days, days_from_civil};
use crate::primitive::Validity;
use crate::{Fault, per_second};

const CAST: &str = "cast the column to text in the query";
/// The bytes of a character in UTF-8 for one unit of UTF-16, at most.
const WIDEST: usize = 3;
/// A second's.
const NANOSECONDS: i64 = 1_000_000_000;

/// A value of a row.
pub enum Value<'a, U> {
    /// NULL.
    Null,
    /// The units in its room.
    Here(&'a [U]),
    /// The bytes of a value that its room is too small for.
    Apart(&'a [u8]),
}

/// Texts in UTF-16, whose bytes are in the machine's order.
///
/// # Errors
///
/// A text with half a character.
pub fn wide_texts<'a>(
    rows: impl ExactSizeIterator<Item = Result<Value<'a, u16>, Fault>>,
) -> Result<ArrayRef, Fault> {
    let mut texts = Joined::new(rows.len())?;
    for (row, value) in rows.enumerate() {
        let is_whole = match value? {
            Value::Null => None,
            Value::Here(units) => Some(texts.push_wide(units.iter().copied())?),
            Value::Apart(bytes) => {
                let (units, rest) = bytes.as_chunks::<2>();
                Some(texts.push_wide(units.iter().map(|unit| u16::from_ne_bytes(*unit)))? && rest.is_empty())
            }
        };
        if is_whole == Some(false) {
            let message = "the driver's UTF-16 has half a character, which UTF-8 has not";
            return Err(Fault::data(row, message).with_hint(CAST));
        }
        texts.end(row, is_whole.is_some())?;
    }
    texts.texts()
}

/// Texts in UTF-8.
///
/// # Errors
///
/// A text that is not UTF-8.
pub fn texts<'a>(
    rows: impl ExactSizeIterator<Item = Result<Value<'a, u8>, Fault>>,
) -> Result<ArrayRef, Fault> {
    joined(rows)?.texts()
}

/// Bytes.
///
/// # Errors
///
/// Values of more than two gigabytes together.
pub fn bytes<'a>(
    rows: impl ExactSizeIterator<Item = Result<Value<'a, u8>, Fault>>,
) -> Result<ArrayRef, Fault> {
    Ok(Arc::new(joined(rows)?.binary()))
}

fn joined<'a>(rows: impl ExactSizeIterator<Item = Result<Value<'a, u8>, Fault>>) -> Result<Joined, Fault> {
    let mut all = Joined::new(rows.len())?;
    for (row, value) in rows.enumerate() {
        let bytes = match value? {
            Value::Null => None,
            Value::Here(bytes) | Value::Apart(bytes) => Some(bytes),
        };
        try_reserve(&mut all.bytes, bytes.map_or(0, <[u8]>::len))?;
        all.bytes.extend_from_slice(bytes.unwrap_or_default());
        all.end(row, bytes.is_some())?;
    }
    Ok(all)
}

/// Values one after another.
struct Joined {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    validity: Validity,
}

impl Joined {
    fn new(rows: usize) -> Result<Self, Fault> {
        let mut offsets = Vec::new();
        try_reserve(&mut offsets, rows + 1)?;
        offsets.push(0);
        Ok(Self { bytes: Vec::new(), offsets, validity: Validity::default() })
    }

    /// Whether the units are characters.
    fn push_wide(&mut self, units: impl ExactSizeIterator<Item = u16> + Clone) -> Result<bool, Fault> {
        if units.clone().fold(0, |all, unit| all | unit) < 0x80 {
            try_reserve(&mut self.bytes, units.len())?;
            // Nothing is cut: each is ASCII.
            self.bytes.extend(units.map(|unit| unit.to_le_bytes()[0]));
            return Ok(true);
        }
        try_reserve(&mut self.bytes, WIDEST * units.len())?;
        for character in char::decode_utf16(units) {
            let Ok(character) = character else { return Ok(false) };
            self.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(true)
    }

    fn end(&mut self, row: usize, is_valid: bool) -> Result<(), Fault> {
        self.validity.push(is_valid);
        let Ok(end) = i32::try_from(self.bytes.len()) else {
            let message = "the values of one batch have more than two gigabytes";
            return Err(Fault::data(row, message).with_hint("give a smaller batch_size="));
        };
        self.offsets.push(end);
        Ok(())
    }

    fn binary(mut self) -> BinaryArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        BinaryArray::new(offsets, Buffer::from_vec(self.bytes), self.validity.finish())
    }

    fn texts(self) -> Result<ArrayRef, Fault> {
        let bytes = self.binary();
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
pub fn dates(rows: impl ExactSizeIterator<Item = Option<[u16; 3]>>) -> Result<ArrayRef, Fault> {
    let day = |(row, parts): (usize, Option<_>)| parts.map(|parts| days(row, parts)).transpose();
    Ok(Arc::new(rows.enumerate().map(day).collect::<Result<Date32Array, _>>()?))
}

/// Timestamps of a date, hours, minutes and seconds, and the halves of a number of nanoseconds, as the machine has them.
///
/// # Errors
///
/// A timestamp that is none, or that has digits, or a year, which the unit does not.
pub fn timestamps(
    rows: impl ExactSizeIterator<Item = Option<[u16; 8]>>,
    unit: TimeUnit,
) -> Result<ArrayRef, Fault> {
    match unit {
        TimeUnit::Nanosecond => points::<TimestampNanosecondType>(rows),
        _ => points::<TimestampMicrosecondType>(rows),
    }
}

fn points<T: ArrowTimestampType>(
    rows: impl ExactSizeIterator<Item = Option<[u16; 8]>>,
) -> Result<ArrayRef, Fault> {
    let point = |(row, parts): (usize, Option<_>)| {
        let refused = |message| Fault::data(row, message).with_hint(CAST);
        parts.map(|parts| days_and_time::<T>(row, parts)?.map_err(refused)).transpose()
    };
    Ok(Arc::new(rows.enumerate().map(point).collect::<Result<PrimitiveArray<T>, _>>()?))
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
        let bytes: Vec<u8> = wide.iter().flat_map(|unit| unit.to_ne_bytes()).collect();
        let read = |values: Vec<Value<'_, u16>>| wide_texts(values.into_iter().map(Ok));
        let found = read(vec![
            Value::Here(&wide),
            Value::Null,
            Value::Here(&[]),
            Value::Apart(&bytes),
            Value::Here(&wide[..1]),
        ]);
        assert_eq!(texts_of(&found.unwrap()), [Some("a€𝄞"), None, Some(""), Some("a€𝄞"), Some("a")]);
        // Two halves of a character in two texts are not one; nor is an odd number of bytes a text.
        assert_eq!(read(vec![Value::Here(&wide[..3]), Value::Here(&wide[3..])]).unwrap_err().row(), 0);
        assert_eq!(read(vec![Value::Null, Value::Apart(b"a\0b")]).unwrap_err().row(), 1);

        let read = |values: Vec<Value<'_, u8>>| texts(values.into_iter().map(Ok));
        let found = read(vec![Value::Here("ä".as_bytes()), Value::Apart(b"b"), Value::Null]);
        assert_eq!(texts_of(&found.unwrap()), [Some("ä"), Some("b"), None]);
        let halves = ["a".as_bytes(), &"ä".as_bytes()[..1], &"ä".as_bytes()[1..]];
        assert_eq!(read(halves.map(Value::Here).into()).unwrap_err().row(), 1);
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
        let read = |parts: [u16; 8], unit| timestamps([None, Some(parts)].into_iter(), unit);
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
