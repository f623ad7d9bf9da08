//! Binary cells as the text that the server would have sent, for columns that the caller wants as another type.

use std::io::Write;

use arrow_array::ArrayRef;
use longshore_cells::calendar::SECOND;
use longshore_cells::{CellFault, Cells, Decoder, Odd, Span, fault};
use longshore_core::Kind;

use super::moment::binary_span;
use crate::types::{Class, Type};

/// Appends a cell's text.
type Render = fn(&[u8], &mut Vec<u8>) -> Result<(), Odd>;

/// `inner`, which reads text, over cells of `native`'s binary form.
pub(super) fn rendered(native: &Type, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
    let render: Render = match native.class {
        Class::Tiny1 | Class::Int8 => |cell, into| number(i8::from_le_bytes, cell, into),
        Class::Int16 => |cell, into| number(i16::from_le_bytes, cell, into),
        Class::Int32 => |cell, into| number(i32::from_le_bytes, cell, into),
        Class::Int64 => |cell, into| number(i64::from_le_bytes, cell, into),
        Class::UInt8 => |cell, into| number(u8::from_le_bytes, cell, into),
        Class::UInt16 => |cell, into| number(u16::from_le_bytes, cell, into),
        Class::UInt32 => |cell, into| number(u32::from_le_bytes, cell, into),
        Class::UInt64 => |cell, into| number(u64::from_le_bytes, cell, into),
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

fn number<T: std::fmt::Display, const N: usize>(
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
