//! The types of `schema=`: any storage class as the type that the caller asks for, exactly or with a fault.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use longshore_core::ReadOptions;
use longshore_core::memory::check_available;
use longshore_values::text::uuid;
use longshore_values::{Cast, CellFault, Losses, Misfit};

use super::buffer::try_for_each;
use super::convert::{midnight, temporal, time, timestamp};
use crate::cell::Cell;
use crate::types::Class;

/// Writes a value in the form that the decoder reads.
type Render = fn(Cell<'_>, &mut Vec<u8>) -> Result<(), Misfit>;

/// Reads a column of tagged values as the type that is wanted.
pub(crate) struct Reader {
    render: Render,
    cast: Cast,
}

impl Reader {
    /// The values of `array`, which a buffer of tagged values gave.
    pub(crate) fn read(&mut self, array: &ArrayRef) -> Result<ArrayRef, CellFault> {
        check_available(2 * array.get_array_memory_size())?;
        try_for_each(array, Class::Any, |_, cell| {
            if cell == Cell::Null {
                self.cast.push_null();
                return Ok(());
            }
            self.cast.push(|to| (self.render)(cell, to))
        })?;
        self.cast.finish().map_err(|fault| CellFault { hint: fault.hint.or(Some(WIDER.into())), ..fault })
    }
}

/// The reader of a column of `class` as `wanted`; `None` where there is none.
pub(crate) fn reader(wanted: &DataType, class: Class, options: &ReadOptions) -> Option<Reader> {
    let render: Render = match wanted {
        DataType::Boolean => flag,
        _ if wanted.is_integer() => whole,
        DataType::Float32 => spell,
        DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..) => number,
        DataType::Utf8 | DataType::LargeUtf8 => any,
        DataType::Binary | DataType::LargeBinary => bytes,
        DataType::FixedSizeBinary(16) => sixteen,
        DataType::Date32 => render_date,
        DataType::Timestamp(_, Some(_)) => render_timestamp_tz,
        DataType::Timestamp(_, None) => render_timestamp,
        DataType::Time64(_) => render_time,
        _ => return None,
    };
    let cast = Cast::to(wanted, class.decimal().is_some(), options, &Losses::default())?;
    Some(Reader { render, cast })
}

#[allow(clippy::unnecessary_wraps)] // one of several functions of one type
fn copy(cell: &[u8], to: &mut Vec<u8>) -> Result<(), Misfit> {
    to.extend_from_slice(cell);
    Ok(())
}

const WIDER: &str = "ask for a type that holds it, such as schema={\"<column>\": \"string\"}";

#[cold]
fn no(cell: Cell<'_>, what: &str) -> Misfit {
    Misfit::with_hint(format!("{} is not {what}", cell.show()), WIDER)
}

#[allow(clippy::unnecessary_wraps)] // likewise
fn any(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    to.extend_from_slice(&cell.text());
    Ok(())
}

fn bytes(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match cell {
        Cell::Text(bytes) | Cell::Blob(bytes) => copy(bytes, to),
        _ => Err(no(cell, "bytes")),
    }
}

/// A number's own text. Infinity has the name that the decoders know.
fn number(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match cell {
        Cell::Blob(_) => Err(no(cell, "a number")),
        Cell::Text(text) if !is_number(text) => Err(no(cell, "a number")),
        Cell::Real(value) if value.is_infinite() => {
            copy(if value > 0.0 { b"Infinity" } else { b"-Infinity" }, to)
        }
        _ => any(cell, to),
    }
}

fn is_number(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// A whole number's digits.
fn whole(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match cell {
        Cell::Text(text) if !is_number(text) => Err(no(cell, "a number")),
        // Beyond 64 bits its digits would only make the error longer.
        Cell::Real(value) if value.fract() == 0.0 && value.abs() < 1e20 => {
            copy(format!("{value:.0}").as_bytes(), to)
        }
        Cell::Real(_) | Cell::Blob(_) => Err(no(cell, "a whole number")),
        _ => any(cell, to),
    }
}

/// All the decimals of a real, so that it is compared as the number that it is.
fn spell(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match cell {
        Cell::Real(value) if value.is_finite() => {
            #[allow(clippy::cast_possible_truncation)] // what is lost is seen in the same line
            let is_narrow = f64::from(value as f32).to_bits() == value.to_bits();
            if is_narrow { copy(format!("{value:.149}").as_bytes(), to) } else { Err(no(cell, "a float32")) }
        }
        _ => number(cell, to),
    }
}

fn flag(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let is_one_of =
        |text: &[u8], words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    match cell {
        Cell::Integer(0) => copy(b"0", to),
        Cell::Integer(1) => copy(b"1", to),
        Cell::Text(text) if is_one_of(text, ["true", "t", "1"]) => copy(b"1", to),
        Cell::Text(text) if is_one_of(text, ["false", "f", "0"]) => copy(b"0", to),
        _ => Err(no(cell, "a boolean")),
    }
}

fn sixteen(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match cell {
        Cell::Blob(bytes) if bytes.len() == 16 => copy(bytes, to),
        Cell::Text(text) => copy(&uuid(text).map_err(|_| no(cell, "a UUID"))?, to),
        _ => Err(no(cell, "16 bytes")),
    }
}

fn render_date(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let days = temporal(cell).and_then(midnight).ok_or_else(|| no(cell, "a date"))?;
    copy(&days.to_le_bytes(), to)
}

fn render_timestamp(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let at = timestamp(cell, false).ok_or_else(|| no(cell, "a timestamp in microseconds without a zone"))?;
    copy(&at.to_le_bytes(), to)
}

fn render_timestamp_tz(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let at = timestamp(cell, true).ok_or_else(|| no(cell, "a timestamp in microseconds"))?;
    copy(&at.to_le_bytes(), to)
}

fn render_time(cell: Cell<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    let at = time(cell).ok_or_else(|| no(cell, "a time of day"))?;
    copy(&at.to_le_bytes(), to)
}
