//! Cells as the texts that the server would cast them to.

use std::fmt::Debug;
use std::io::Write;
use std::ops::Range;

use longshore_values::decimal::POWERS_OF_TEN;
use longshore_values::{Misfit, uuid};

use crate::temporal::{self, DAY, TICKS};
use crate::text::utf16;
use crate::types::Class;
use crate::variant;

/// Appends the text of a cell of `class`.
pub(crate) fn render(class: Class, cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    // A Vec takes all that is written.
    match class {
        Class::Bit | Class::UInt8 => drop(write!(into, "{}", u8::from_le_bytes(array(cell)?))),
        Class::Int16 => drop(write!(into, "{}", i16::from_le_bytes(array(cell)?))),
        Class::Int32 => drop(write!(into, "{}", i32::from_le_bytes(array(cell)?))),
        Class::Int64 => drop(write!(into, "{}", i64::from_le_bytes(array(cell)?))),
        Class::Float => shortest(f32::from_le_bytes(array(cell)?), into),
        Class::Double => shortest(f64::from_le_bytes(array(cell)?), into),
        Class::Decimal(precision, scale) => write_decimal(decimal(cell, precision)?, scale, into),
        Class::Date => temporal::write_date(date(cell)?.into(), into),
        Class::Time(scale) => temporal::write_time(time(cell)?, scale, into),
        Class::DateTime(scale) => temporal::write_datetime(ticks(cell)?, scale, into),
        Class::DateTimeOffset(scale) => {
            let (ticks, offset) = datetime_offset(cell)?;
            temporal::write_datetimeoffset(ticks, offset, scale, into);
        }
        Class::Text(encoding) => encoding.append(cell, into)?,
        Class::Xml => utf16(cell.strip_prefix(BYTE_ORDER).unwrap_or(cell), into)?,
        Class::Uuid => into.extend(uuid(&array(cell)?).into_bytes()),
        Class::Variant => variant::append(cell, into)?,
        Class::Json | Class::Bytes => into.extend_from_slice(cell),
        Class::Vector(_) => write_vector(cell, into)?,
    }
    Ok(())
}

/// The mark of UTF-16's byte order that some documents begin with.
const BYTE_ORDER: &[u8] = &[0xff, 0xfe];

/// A cell of `N` bytes.
#[inline]
pub(crate) fn array<const N: usize>(cell: &[u8]) -> Result<[u8; N], Misfit> {
    cell.try_into()
        .map_err(|_| Misfit::fault(format!("the server sent {} bytes for a value of {N}", cell.len())))
}

/// The digits of a decimal, of which a column of `precision` has no more.
#[inline]
pub(crate) fn decimal(cell: &[u8], precision: u8) -> Result<i128, Misfit> {
    let value = i128::from_le_bytes(array(cell)?);
    if value.unsigned_abs() < POWERS_OF_TEN[usize::from(precision.min(38))] {
        return Ok(value);
    }
    Err(Misfit::fault(format!("the server sent a decimal of more than {precision} digits")))
}

/// Days since 1970.
#[inline]
pub(crate) fn date(cell: &[u8]) -> Result<i32, Misfit> {
    let days = i32::from_le_bytes(array(cell)?);
    if days == i32::MIN {
        Err(Misfit::fault("the server sent a date beyond the year 9999"))
    } else {
        Ok(days)
    }
}

/// Ticks of 100 ns since 1970.
#[inline]
pub(crate) fn ticks(cell: &[u8]) -> Result<i64, Misfit> {
    within(cell, TICKS)
}

/// Ticks of 100 ns since midnight.
#[inline]
pub(crate) fn time(cell: &[u8]) -> Result<i64, Misfit> {
    within(cell, 0..DAY)
}

#[inline]
fn within(cell: &[u8], known: Range<i64>) -> Result<i64, Misfit> {
    let ticks = i64::from_le_bytes(array(cell)?);
    if known.contains(&ticks) {
        Ok(ticks)
    } else {
        Err(Misfit::fault("the server sent a time that there is not"))
    }
}

/// Ticks in UTC, and the minutes of the offset.
pub(crate) fn datetime_offset(cell: &[u8]) -> Result<(i64, i16), Misfit> {
    let (at, offset) =
        cell.split_at_checked(8).ok_or_else(|| Misfit::fault("the server sent a damaged time"))?;
    Ok((ticks(at)?, i16::from_le_bytes(array(offset)?)))
}

fn write_decimal(value: i128, scale: u8, into: &mut Vec<u8>) {
    let sign = if value < 0 { "-" } else { "" };
    let (digits, scale) = (value.unsigned_abs(), usize::from(scale));
    let text = format!("{digits:0>width$}", width = scale + 1);
    let (whole, decimals) = text.split_at(text.len() - scale);
    let point = if scale > 0 { "." } else { "" };
    let _ = write!(into, "{sign}{whole}{point}{decimals}");
}

/// The shortest text that gives the same number back.
fn shortest(value: impl Debug, into: &mut Vec<u8>) {
    let _ = write!(into, "{value:?}");
    if into.ends_with(b".0") {
        into.truncate(into.len() - 2);
    }
}

fn write_vector(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let (numbers, rest) = cell.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Misfit::fault("the server sent a damaged vector"));
    }
    into.push(b'[');
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            into.push(b',');
        }
        shortest(f32::from_le_bytes(*number), into);
    }
    into.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(class: Class, cell: &[u8]) -> Result<String, Misfit> {
        let mut into = Vec::new();
        render(class, cell, &mut into)?;
        Ok(String::from_utf8(into).unwrap())
    }

    #[test]
    fn values_read_as_the_server_casts_them() {
        assert_eq!(text(Class::Decimal(38, 38), &1_i128.to_le_bytes()).unwrap(), format!("0.{:038}", 1));
        assert_eq!(text(Class::Decimal(19, 4), &(-12_345_i128).to_le_bytes()).unwrap(), "-1.2345");
        assert_eq!(text(Class::Decimal(5, 0), &(-12_i128).to_le_bytes()).unwrap(), "-12");
        assert_eq!(text(Class::Double, &1e300_f64.to_le_bytes()).unwrap(), "1e300");
        assert_eq!(text(Class::Float, &3_f32.to_le_bytes()).unwrap(), "3");
        assert_eq!(text(Class::Xml, b"\xff\xfe<\0a\0/\0>\0").unwrap(), "<a/>");
        assert_eq!(
            text(Class::Vector(2), &[1.5_f32.to_le_bytes(), (-0_f32).to_le_bytes()].concat()).unwrap(),
            "[1.5,-0]"
        );
        assert!(text(Class::Decimal(2, 0), &100_i128.to_le_bytes()).is_err());
        assert!(text(Class::Decimal(38, 0), &i128::MIN.to_le_bytes()).is_err());
        assert!(text(Class::DateTime(3), &temporal::DAMAGED.to_le_bytes()).is_err());
    }
}
