//! Binary cells, read as the Arrow type of their own type (MySQL Internals, "Binary Protocol Value").

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::DataType;
use longshore_cells::{Booleans, Decoder, Odd, Primitive};

use super::moment::{Civil, binary_span, counted};
use super::{Context, text};
use crate::types::{Class, Type};

/// The decoder of `native`'s binary form into `arrow`, its own type; `None` where that form is the text.
pub(super) fn decoder(
    name: &str,
    native: &Type,
    arrow: &DataType,
    context: &Context,
) -> Option<Box<dyn Decoder>> {
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
