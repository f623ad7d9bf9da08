//! The types of `schema=`: for each one form of cells, which a source renders its values in, and the decoder of that form.

use arrow_array::ArrayRef;
use arrow_array::types::Date32Type;
use arrow_schema::DataType;
use longshore_core::ReadOptions;

use crate::text::{Number, numbers, times, timestamps};
use crate::{
    Booleans, CellBuffer, CellFault, Decoder, Fixed, Losses, Misfit, Primitive, bytes, large_bytes, strings,
};

/// The form of the cells that a type's decoder reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text of any value.
    Text,
    /// A number's text, with all its digits.
    Number,
    /// Bytes as they are.
    Bytes,
    /// Sixteen bytes.
    Uuid,
    /// A count of microseconds, of 64 bits.
    Timestamp {
        /// Whether it is one of UTC.
        zoned: bool,
    },
    /// A count of days, of 32 bits.
    Date,
    /// A count of microseconds since midnight, of 64 bits.
    Time,
}

impl Form {
    /// The form of the type `wanted`; `None` for a type that no value is cast to.
    #[must_use]
    pub fn of(wanted: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match wanted {
            T::Boolean | T::Float32 | T::Float64 | T::Decimal128(..) | T::Decimal256(..) => Self::Number,
            other if other.is_integer() => Self::Number,
            T::Utf8 | T::LargeUtf8 => Self::Text,
            T::Binary | T::LargeBinary => Self::Bytes,
            T::FixedSizeBinary(16) => Self::Uuid,
            T::Date32 => Self::Date,
            T::Timestamp(_, zone) => Self::Timestamp { zoned: zone.is_some() },
            T::Time64(_) => Self::Time,
            _ => return None,
        })
    }
}

/// A column of values as another type: each in the form of that type, and its decoder over them.
pub struct Cast {
    decoder: Box<dyn Decoder>,
    cells: CellBuffer,
}

impl Cast {
    /// A cast to `wanted`, of decimals or of something else; `None` where [`Form::of`] has none.
    #[must_use]
    pub fn to(wanted: &DataType, of_decimals: bool, options: &ReadOptions, losses: &Losses) -> Option<Self> {
        let as_is = wanted.clone();
        let decoder = match *wanted {
            DataType::Boolean => Booleans::boxed(flag),
            DataType::Utf8 | DataType::LargeUtf8 => strings(wanted)?,
            DataType::Binary => bytes(),
            DataType::LargeBinary => large_bytes(),
            DataType::FixedSizeBinary(16) => Fixed::<16, _>::boxed(word),
            DataType::Date32 => {
                Primitive::<Date32Type, _>::boxed(as_is, |cell| word(cell).map(i32::from_le_bytes))
            }
            DataType::Timestamp(unit, _) => {
                timestamps(as_is, unit, options.infinity, |cell| word(cell).map(i64::from_le_bytes))
            }
            DataType::Time64(_) => times(wanted, |cell| word(cell).map(i64::from_le_bytes))?,
            // Who wants doubles of decimals wants the nearest.
            DataType::Float64 if of_decimals => {
                numbers(wanted, Number::Decimal, options.numeric_nan, losses)?
            }
            _ => numbers(wanted, Number::Exact, options.numeric_nan, losses)?,
        };
        Some(Self { decoder, cells: CellBuffer::default() })
    }

    /// Adds the value that `render` appends, or NULL.
    #[inline]
    pub fn push(&mut self, render: impl FnOnce(&mut Vec<u8>) -> Result<(), Misfit>) -> Result<(), CellFault> {
        self.cells.render(render)
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.cells.push_null();
    }

    /// The values since the last time.
    pub fn finish(&mut self) -> Result<ArrayRef, CellFault> {
        self.decoder.decode(self.cells.cells())?;
        self.cells = CellBuffer::default();
        Ok(self.decoder.finish())
    }
}

fn flag(cell: &[u8]) -> Result<bool, Misfit> {
    let is = |words: [&str; 3]| words.iter().any(|word| cell.eq_ignore_ascii_case(word.as_bytes()));
    match (is(["1", "true", "t"]), is(["0", "false", "f"])) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(Misfit::fault(format!("{} is not a boolean", String::from_utf8_lossy(cell)))),
    }
}

fn word<const N: usize>(cell: &[u8]) -> Result<[u8; N], Misfit> {
    cell.try_into().map_err(|_| Misfit::fault("the value has the wrong length"))
}
