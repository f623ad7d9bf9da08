//! Cells -> Arrow columns: the decoder of each column, chosen once.

use std::io::Write;

use arrow_array::ArrayRef;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::DataType;
use longshore_cells::calendar::SECOND;
use longshore_cells::{Booleans, CellFault, Cells, Decoder, Odd, Primitive, Span, fault};
use longshore_core::{Kind, ReadOptions, Result};

use crate::temporal::{Civil, Zone, binary_span, counted};
use crate::types::{Class, Type, unreadable};

mod text;

/// The form in which cells arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// What decoders need to know beside the types.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) options: ReadOptions,
    /// Microseconds that the session's clock is before UTC's.
    pub(crate) offset: i64,
}

impl Context {
    pub(crate) fn new(options: &ReadOptions, zone: Zone) -> Self {
        Self { options: options.clone(), offset: zone.offset().unwrap_or_default() }
    }
}

/// The decoder of the column `name`, whose cells arrive in `format`, into `arrow`; `default` is the type that it has by
/// the type policy.
pub(crate) fn decoder(
    name: &str,
    native: &Type,
    format: Format,
    arrow: &DataType,
    default: Option<&DataType>,
    context: &Context,
) -> Result<Box<dyn Decoder>> {
    let is_default = default == Some(arrow);
    let found = match format {
        Format::Binary if is_default => binary(name, native, arrow, context),
        Format::Text => text::decoder(name, native, arrow, context),
        Format::Binary => None,
    };
    // Anything else is read from the text that the server would have sent.
    let found = found.or_else(|| {
        let inner = text::decoder(name, native, arrow, context)?;
        Some(if format == Format::Binary { rendered(native, inner) } else { inner })
    });
    found.ok_or_else(|| unreadable(native, arrow).at(native.place(name)))
}

/// The decoder of `native`'s binary form into `arrow`, its own type; `None` where that form is the text.
fn binary(name: &str, native: &Type, arrow: &DataType, context: &Context) -> Option<Box<dyn Decoder>> {
    let (zero_date, offset) = (context.options.zero_date, context.offset);
    let as_is = arrow.clone();
    Some(match native.class {
        Class::Tiny1 if *arrow == DataType::Boolean => Booleans::boxed(boolean),
        Class::Tiny1 | Class::Int8 => number::<Int8Type, 1>(i8::from_le_bytes),
        Class::Int16 | Class::Year => number::<Int16Type, 2>(i16::from_le_bytes),
        Class::Int32 => number::<Int32Type, 4>(i32::from_le_bytes),
        Class::Int64 => number::<Int64Type, 8>(i64::from_le_bytes),
        Class::UInt8 => number::<UInt8Type, 1>(u8::from_le_bytes),
        Class::UInt16 => number::<UInt16Type, 2>(u16::from_le_bytes),
        Class::UInt32 => number::<UInt32Type, 4>(u32::from_le_bytes),
        Class::UInt64 => number::<UInt64Type, 8>(u64::from_le_bytes),
        Class::Float => number::<Float32Type, 4>(f32::from_le_bytes),
        Class::Double => number::<Float64Type, 8>(f64::from_le_bytes),
        Class::Date => {
            let read = move |cell: &[u8]| Civil::binary(cell)?.date(zero_date);
            counted(name, context, Primitive::<Date32Type, _>::boxed(as_is, read))
        }
        Class::DateTime | Class::Instant => {
            let offset = if native.class == Class::Instant { offset } else { 0 };
            let read = move |cell: &[u8]| Civil::binary(cell)?.microseconds(zero_date, offset);
            counted(name, context, Primitive::<TimestampMicrosecondType, _>::boxed(as_is, read))
        }
        Class::Time => Primitive::<DurationMicrosecondType, _>::boxed(as_is, binary_span),
        Class::Decimal(..) | Class::Bit | Class::Text | Class::Json | Class::Uuid | Class::Bytes => {
            return text::decoder(name, native, arrow, context);
        }
    })
}

fn number<T: ArrowPrimitiveType, const N: usize>(read: fn([u8; N]) -> T::Native) -> Box<dyn Decoder> {
    Primitive::<T, _>::boxed(T::DATA_TYPE, move |cell| {
        cell.try_into().map(read).map_err(|_| Odd::fault("the server sent a damaged number"))
    })
}

fn boolean(cell: &[u8]) -> Result<bool, Odd> {
    match cell {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(text::no_boolean(&other.cast_signed().to_string())),
        _ => Err(Odd::fault("the server sent a damaged number")),
    }
}

/// Appends a cell's text.
type Render = fn(&[u8], &mut Vec<u8>) -> Result<(), Odd>;

/// `inner`, which reads text, over cells of `native`'s binary form.
fn rendered(native: &Type, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
    let render: Render = match native.class {
        Class::Tiny1 | Class::Int8 => |cell, into| display(i8::from_le_bytes, cell, into),
        Class::Int16 => |cell, into| display(i16::from_le_bytes, cell, into),
        Class::Int32 => |cell, into| display(i32::from_le_bytes, cell, into),
        Class::Int64 => |cell, into| display(i64::from_le_bytes, cell, into),
        Class::UInt8 => |cell, into| display(u8::from_le_bytes, cell, into),
        Class::UInt16 => |cell, into| display(u16::from_le_bytes, cell, into),
        Class::UInt32 => |cell, into| display(u32::from_le_bytes, cell, into),
        Class::UInt64 => |cell, into| display(u64::from_le_bytes, cell, into),
        Class::Year => year,
        Class::Float => |cell, into| shortest(f32::from_le_bytes(array(cell)?), into),
        Class::Double => |cell, into| shortest(f64::from_le_bytes(array(cell)?), into),
        Class::Date => date,
        Class::DateTime | Class::Instant => moment,
        Class::Time => span,
        // These are text, or bytes, in both forms.
        Class::Decimal(..) | Class::Bit | Class::Text | Class::Json | Class::Uuid | Class::Bytes => {
            return inner;
        }
    };
    Box::new(Rendered { render, inner, text: Vec::new(), spans: Vec::new() })
}

struct Rendered {
    render: Render,
    inner: Box<dyn Decoder>,
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl Decoder for Rendered {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.text.clear();
        self.spans.clear();
        for (row, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else {
                self.spans.push(Span::NULL);
                continue;
            };
            let start = self.text.len();
            if let Err(odd) = (self.render)(cell, &mut self.text) {
                return Err(fault(row, odd).unwrap_or(CellFault {
                    row,
                    what: "no value".into(),
                    hint: None,
                    kind: Kind::Data,
                }));
            }
            // A chunk has a thousand cells of a few bytes.
            let [start, end] = [start, self.text.len()].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
            self.spans.push(Span::new(start, end - start));
        }
        self.inner.decode(Cells::new(&self.text, &self.spans, cells.any_null()))
    }

    fn finish(&mut self) -> ArrayRef {
        self.inner.finish()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

fn array<const N: usize>(cell: &[u8]) -> Result<[u8; N], Odd> {
    cell.try_into().map_err(|_| damaged())
}

#[cold]
fn damaged() -> Odd {
    Odd::fault("the server sent a damaged value")
}

fn display<T: std::fmt::Display, const N: usize>(
    read: fn([u8; N]) -> T,
    cell: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), Odd> {
    write!(into, "{}", read(array(cell)?)).map_err(|_| damaged())
}

/// Years have four digits: 0000 is one of them.
fn year(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    write!(into, "{:04}", u16::from_le_bytes(array(cell)?)).map_err(|_| damaged())
}

/// The shortest text that gives the same number back.
fn shortest(value: impl std::fmt::Debug, into: &mut Vec<u8>) -> Result<(), Odd> {
    write!(into, "{value:?}").map_err(|_| damaged())?;
    if into.ends_with(b".0") {
        into.truncate(into.len() - 2);
    }
    Ok(())
}

fn date(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    let [a, b, month, day] = if cell.is_empty() { [0; 4] } else { array(cell)? };
    write!(into, "{:04}-{month:02}-{day:02}", u16::from_le_bytes([a, b])).map_err(|_| damaged())
}

fn moment(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    let mut bytes = [0; 11];
    if !matches!(cell.len(), 0 | 4 | 7 | 11) {
        return Err(damaged());
    }
    bytes[..cell.len()].copy_from_slice(cell);
    let [_, _, _, _, hour, minute, second, micros @ ..] = bytes;
    date(&bytes[..4], into)?;
    write!(into, " {hour:02}:{minute:02}:{second:02}").map_err(|_| damaged())?;
    fraction(i64::from(u32::from_le_bytes(micros)), into)
}

fn span(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    let time = binary_span(cell)?;
    if time < 0 {
        into.push(b'-');
    }
    let (seconds, micros) = (time.abs() / SECOND, time.abs() % SECOND);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(into, "{hours:02}:{minutes:02}:{seconds:02}").map_err(|_| damaged())?;
    fraction(micros, into)
}

/// Six digits, where there is a fraction at all.
fn fraction(micros: i64, into: &mut Vec<u8>) -> Result<(), Odd> {
    if micros == 0 { Ok(()) } else { write!(into, ".{micros:06}").map_err(|_| damaged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(render: Render, cell: &[u8]) -> String {
        let mut into = Vec::new();
        render(cell, &mut into).unwrap();
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn values_read_as_the_server_writes_them() {
        assert_eq!(text(date, &[]), "0000-00-00");
        assert_eq!(text(date, &[0xe9, 7, 0, 3]), "2025-00-03");
        assert_eq!(text(moment, &[0xe9, 7, 3, 4, 5, 6, 7, 0x89, 0x38, 1, 0]), "2025-03-04 05:06:07.080009");
        assert_eq!(text(span, &[1, 34, 0, 0, 0, 22, 59, 59]), "-838:59:59");
        assert_eq!(text(year, &[0, 0]), "0000");
        assert_eq!(
            text(|cell, into| shortest(f64::from_le_bytes(array(cell)?), into), &1e300_f64.to_le_bytes()),
            "1e300"
        );
        assert_eq!(
            text(|cell, into| shortest(f32::from_le_bytes(array(cell)?), into), &0.1_f32.to_le_bytes()),
            "0.1"
        );
        assert_eq!(
            text(|cell, into| shortest(f32::from_le_bytes(array(cell)?), into), &3_f32.to_le_bytes()),
            "3"
        );
    }
}
