//! The types of `schema=`: for each one form of cells, which a source renders its values in, and the decoder of that form.

use arrow_array::ArrayRef;
use arrow_array::types::Date32Type;
use arrow_schema::DataType;
use longshore_core::ReadOptions;

use crate::text::{Number, numbers, times, timestamps};
use crate::{
    Booleans, CellFault, Cells, Decoder, Fixed, Losses, Misfit, Primitive, Span, bytes, fault, large_bytes,
    strings,
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
    bytes: Vec<u8>,
    spans: Vec<Span>,
    any_null: bool,
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
        Some(Self { decoder, bytes: Vec::new(), spans: Vec::new(), any_null: false })
    }

    /// Adds the value that `render` appends, or NULL.
    #[inline]
    pub fn push(&mut self, render: impl FnOnce(&mut Vec<u8>) -> Result<(), Misfit>) -> Result<(), CellFault> {
        let start = self.bytes.len();
        match render(&mut self.bytes) {
            Ok(()) => self.spans.push(span(start, self.bytes.len())),
            Err(misfit) => {
                if let Some(fault) = fault(self.spans.len(), misfit) {
                    return Err(fault);
                }
                self.push_null();
            }
        }
        Ok(())
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.any_null = true;
        self.spans.push(Span::NULL);
    }

    /// The values since the last time.
    pub fn finish(&mut self) -> Result<ArrayRef, CellFault> {
        self.decoder.decode(Cells::new(&self.bytes, &self.spans, self.any_null))?;
        (self.bytes, self.spans, self.any_null) = (Vec::new(), Vec::new(), false);
        Ok(self.decoder.finish())
    }
}

/// A batch's bytes are far below four gigabytes.
fn span(start: usize, end: usize) -> Span {
    let narrow = |length: usize| u32::try_from(length).unwrap_or(u32::MAX - 1);
    Span::new(narrow(start), narrow(end - start))
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
