//! Cells -> Arrow columns: the decoder of each column, chosen once.

use std::fmt::{Debug, Display};
use std::io::Write;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use longshore_core::{ReadOptions, Result, Warnings};
use longshore_values::text::Rendered;
use longshore_values::{Booleans, CellFault, Cells, Decoder, Misfit, Primitive};

use crate::options::zero_date;
use crate::temporal::{Civil, Zone, binary_time, write_time};
use crate::types::{Class, Type, unreadable};

mod text;

/// The form in which cells arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// A read's options and time zone, for decoders.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) options: ReadOptions,
    /// Microseconds that the session's time zone is east of UTC.
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
        Some(if format == Format::Binary { render_with(native, inner) } else { inner })
    });
    found.ok_or_else(|| unreadable(native, arrow).at(native.place(name)))
}

/// The decoder of `native`'s binary form into `arrow`, its own type; `None` where that form is the text.
fn binary(name: &str, native: &Type, arrow: &DataType, context: &Context) -> Option<Box<dyn Decoder>> {
    let (zero_date, offset) = (zero_date(&context.options), context.offset);
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
            zero_dates(name, context, Primitive::<Date32Type, _>::boxed(as_is, read))
        }
        Class::DateTime | Class::Timestamp => {
            let offset = if native.class == Class::Timestamp { offset } else { 0 };
            let read = move |cell: &[u8]| Civil::binary(cell)?.microseconds(zero_date, offset);
            zero_dates(name, context, Primitive::<TimestampMicrosecondType, _>::boxed(as_is, read))
        }
        Class::Time => Primitive::<DurationMicrosecondType, _>::boxed(as_is, binary_time),
        Class::Decimal(..) | Class::Bit | Class::Text | Class::Json | Class::Uuid | Class::Bytes => {
            return text::decoder(name, native, arrow, context);
        }
    })
}

fn number<T: ArrowPrimitiveType, const N: usize>(read: fn([u8; N]) -> T::Native) -> Box<dyn Decoder> {
    Primitive::<T, _>::boxed(T::DATA_TYPE, move |cell| array(cell).map(read))
}

fn boolean(cell: &[u8]) -> Result<bool, Misfit> {
    match cell {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(text::not_a_boolean(&other.cast_signed().to_string())),
        _ => Err(Misfit::fault("the server sent a damaged number")),
    }
}

/// A column of dates, whose zero dates are counted where they become NULL.
struct ZeroDates {
    inner: Box<dyn Decoder>,
    /// NULLs that came as such since the last batch.
    nulls: usize,
    warnings: Arc<Warnings>,
    warning: String,
}

/// The column `name`, which `inner` reads, with a warning where zero dates become NULL.
fn zero_dates(name: &str, context: &Context, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
    let warning = format!("zero dates of column {name:?} were read as NULL");
    Box::new(ZeroDates { inner, nulls: 0, warnings: context.options.warnings.clone(), warning })
}

impl Decoder for ZeroDates {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        if cells.any_null() {
            self.nulls += cells.iter().filter(Option::is_none).count();
        }
        self.inner.decode(cells)
    }

    fn finish(&mut self) -> ArrayRef {
        let array = self.inner.finish();
        let zeros = array.null_count() - std::mem::take(&mut self.nulls);
        self.warnings.add(&self.warning, zeros as u64);
        array
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// Appends a cell's text.
type Render = fn(&[u8], &mut Vec<u8>) -> Result<(), Misfit>;

/// `inner`, which reads text, over the text that the server would have sent for cells of `native`'s binary form.
fn render_with(native: &Type, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
    let render: Render = match native.class {
        Class::Tiny1 | Class::Int8 => |cell, into| display(i8::from_le_bytes, cell, into),
        Class::Int16 => |cell, into| display(i16::from_le_bytes, cell, into),
        Class::Int32 => |cell, into| display(i32::from_le_bytes, cell, into),
        Class::Int64 => |cell, into| display(i64::from_le_bytes, cell, into),
        Class::UInt8 => |cell, into| display(u8::from_le_bytes, cell, into),
        Class::UInt16 => |cell, into| display(u16::from_le_bytes, cell, into),
        Class::UInt32 => |cell, into| display(u32::from_le_bytes, cell, into),
        Class::UInt64 => |cell, into| display(u64::from_le_bytes, cell, into),
        // Years have four digits: 0000 is one of them.
        Class::Year => |cell, into| display(|year| format!("{:04}", u16::from_le_bytes(year)), cell, into),
        Class::Float => |cell, into| array(cell).map(|it| shortest(f32::from_le_bytes(it), into)),
        Class::Double => |cell, into| array(cell).map(|it| shortest(f64::from_le_bytes(it), into)),
        Class::Date => |cell, into| Civil::binary(cell).map(|date| date.write(false, into)),
        Class::DateTime | Class::Timestamp => |cell, into| Civil::binary(cell).map(|at| at.write(true, into)),
        Class::Time => |cell, into| binary_time(cell).map(|time| write_time(time, into)),
        // These are text, or bytes, in both forms.
        Class::Decimal(..) | Class::Bit | Class::Text | Class::Json | Class::Uuid | Class::Bytes => {
            return inner;
        }
    };
    Rendered::boxed(render, inner)
}

fn array<const N: usize>(cell: &[u8]) -> Result<[u8; N], Misfit> {
    cell.try_into().map_err(|_| Misfit::fault("the server sent a damaged number"))
}

fn display<T: Display, const N: usize>(
    read: fn([u8; N]) -> T,
    cell: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), Misfit> {
    // A Vec takes all that is written.
    let _ = write!(into, "{}", read(array(cell)?));
    Ok(())
}

/// The shortest text that gives the same number back.
fn shortest(value: impl Debug, into: &mut Vec<u8>) {
    let _ = write!(into, "{value:?}");
    if into.ends_with(b".0") {
        into.truncate(into.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use longshore_values::Span;

    use super::*;

    fn text(class: Class, cell: &[u8]) -> String {
        let native = Type { class, label: "made".into(), not_null: false };
        let mut decoder = render_with(&native, longshore_values::text());
        let span = Span::new(0, u32::try_from(cell.len()).unwrap());
        decoder.decode(Cells::new(cell, &[span], false)).unwrap();
        decoder.finish().as_string::<i32>().value(0).to_owned()
    }

    #[test]
    fn values_read_as_the_server_writes_them() {
        assert_eq!(text(Class::Date, &[]), "0000-00-00");
        assert_eq!(text(Class::Date, &[0xe9, 7, 0, 3]), "2025-00-03");
        assert_eq!(
            text(Class::DateTime, &[0xe9, 7, 3, 4, 5, 6, 7, 0x89, 0x38, 1, 0]),
            "2025-03-04 05:06:07.080009"
        );
        assert_eq!(text(Class::DateTime, &[]), "0000-00-00 00:00:00");
        assert_eq!(text(Class::Time, &[1, 34, 0, 0, 0, 22, 59, 59]), "-838:59:59");
        assert_eq!(text(Class::Year, &[0, 0]), "0000");
        assert_eq!(text(Class::Double, &1e300_f64.to_le_bytes()), "1e300");
        assert_eq!(text(Class::Float, &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(text(Class::Float, &3_f32.to_le_bytes()), "3");
    }
}
