//! Arrow arrays of objects whose type is known.

mod json;
mod nested;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, FixedSizeBinaryBuilder, GenericBinaryBuilder, GenericStringBuilder,
    LargeStringBuilder, NullBuilder, PrimitiveBuilder,
};
use arrow_array::types::{ArrowPrimitiveType, DecimalType as ArrowDecimal};
use arrow_array::{ArrayRef, OffsetSizeTrait, types};
use longshore_core::Unrepresentable;
use longshore_values::Fault;
use longshore_values::decimal::{DecimalType, Mantissa};
use pyo3::prelude::*;

use self::json::Documents;
use self::nested::{Lists, Structs};
use crate::class::Class;
use crate::kind::{Kind, NARROW};
use crate::read::{
    ReadError, Reader, Temporal, date, decimal_text, float, integer, interval, is_exact, temporal, time,
    timedelta, truth, uuid, with_bytes,
};

/// Makes the array of one place. Chosen once per column; no two kinds of values meet in one.
pub(crate) trait Builder {
    /// Appends a value that is not NULL by its class.
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault>;

    /// Appends NULLs.
    fn push_nulls(&mut self, count: usize);

    /// The array of all values.
    fn finish(&mut self) -> ArrayRef;
}

/// Appends `item`, which may be NULL.
#[inline]
fn append<'py>(
    builder: &mut dyn Builder,
    reader: &mut Reader<'py>,
    item: &Bound<'py, PyAny>,
) -> Result<(), Fault> {
    match reader.class(item)? {
        Class::Null => {
            builder.push_nulls(1);
            Ok(())
        }
        Class::Enum => {
            let value = reader.value(item)?;
            append(builder, reader, &value)
        }
        class => builder.push(reader, item, class),
    }
}

/// Appends values to one of Arrow's builders.
struct Appender<B, F> {
    array: B,
    append_nulls: fn(&mut B, usize),
    append: F,
}

impl<B, F> Appender<B, F>
where
    B: ArrayBuilder,
    F: Fn(&mut B, &Bound<'_, PyAny>, Class) -> Result<(), ReadError> + 'static,
{
    fn boxed(array: B, append_nulls: fn(&mut B, usize), append: F) -> Box<dyn Builder> {
        Box::new(Self { array, append_nulls, append })
    }
}

impl<B, F> Builder for Appender<B, F>
where
    B: ArrayBuilder,
    F: Fn(&mut B, &Bound<'_, PyAny>, Class) -> Result<(), ReadError>,
{
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        (self.append)(&mut self.array, item, class).map_err(|error| reader.fault(error))
    }

    fn push_nulls(&mut self, count: usize) {
        (self.append_nulls)(&mut self.array, count);
    }

    fn finish(&mut self) -> ArrayRef {
        self.array.finish()
    }
}

/// The builder of `kind`, for about so many `rows`.
pub(crate) fn builder(kind: &Kind, rows: usize) -> Box<dyn Builder> {
    match kind {
        Kind::Null => {
            Appender::boxed(NullBuilder::new(), NullBuilder::append_nulls, |_, _, _| Err(ReadError::Changed))
        }
        Kind::Bool => {
            let array = BooleanBuilder::with_capacity(rows);
            Appender::boxed(array, BooleanBuilder::append_nulls, |array, item, class| {
                array.append_value(truth(item, class)?);
                Ok(())
            })
        }
        Kind::Int64 => primitive::<types::Int64Type>(kind, rows, whole),
        Kind::UInt64 => primitive::<types::UInt64Type>(kind, rows, whole),
        Kind::Float64 => primitive::<types::Float64Type>(kind, rows, double),
        Kind::Decimal(precision, scale) if *precision <= NARROW => {
            decimals::<types::Decimal128Type>(kind, rows, *precision, *scale)
        }
        Kind::Decimal(precision, scale) => decimals::<types::Decimal256Type>(kind, rows, *precision, *scale),
        Kind::Text { large: false } => strings::<i32>(rows),
        Kind::Text { large: true } => strings::<i64>(rows),
        Kind::Bytes { large: false } => binaries::<i32>(rows),
        Kind::Bytes { large: true } => binaries::<i64>(rows),
        Kind::Date => primitive::<types::Date32Type>(kind, rows, date),
        Kind::Timestamp { utc: false } => {
            primitive::<types::TimestampMicrosecondType>(kind, rows, |item, class| {
                match temporal(item, class)? {
                    Temporal::Timestamp(value) => Ok(Some(value)),
                    Temporal::Null => Ok(None),
                    _ => Err(ReadError::Changed),
                }
            })
        }
        Kind::Timestamp { utc: true } => {
            primitive::<types::TimestampMicrosecondType>(kind, rows, |item, class| {
                match temporal(item, class)? {
                    Temporal::TimestampTz(value) => Ok(Some(value)),
                    Temporal::Null => Ok(None),
                    _ => Err(ReadError::Changed),
                }
            })
        }
        Kind::Time => {
            primitive::<types::Time64MicrosecondType>(kind, rows, |item, class| time(item, class).map(Some))
        }
        Kind::Duration => primitive::<types::DurationMicrosecondType>(kind, rows, timedelta),
        Kind::Uuid => {
            let array = FixedSizeBinaryBuilder::with_capacity(rows, 16);
            Appender::boxed(array, FixedSizeBinaryBuilder::append_nulls, |array, item, class| {
                array.append_value(uuid(item, class)?).map_err(|_| ReadError::Changed)
            })
        }
        Kind::Interval => primitive::<types::IntervalMonthDayNanoType>(kind, rows, |item, class| {
            let (months, days, nanoseconds) = interval(item, class)?;
            Ok(Some(types::IntervalMonthDayNano { months, days, nanoseconds }))
        }),
        Kind::List(item) => Box::new(Lists::new(item, rows)),
        Kind::Struct(fields) => Box::new(Structs::new(fields, rows)),
        Kind::Json => Box::new(Documents::new(rows)),
        Kind::Str => {
            let array = LargeStringBuilder::with_capacity(rows, 0);
            Appender::boxed(array, LargeStringBuilder::append_nulls, |array, item, _| {
                array.append_value(crate::read::text(item.str()?.as_any())?);
                Ok(())
            })
        }
    }
}

/// Values of a fixed width that `read` reads; what it finds to be NULL is.
fn primitive<T: ArrowPrimitiveType>(
    kind: &Kind,
    rows: usize,
    read: impl Fn(&Bound<'_, PyAny>, Class) -> Result<Option<T::Native>, ReadError> + 'static,
) -> Box<dyn Builder> {
    let array = PrimitiveBuilder::<T>::with_capacity(rows).with_data_type(kind.data_type());
    Appender::boxed(array, PrimitiveBuilder::append_nulls, move |array, item, class| {
        array.append_option(read(item, class)?);
        Ok(())
    })
}

/// Decimals and integers of `scale` digits after the point.
fn decimals<T: ArrowDecimal<Native: Mantissa>>(
    kind: &Kind,
    rows: usize,
    precision: u8,
    scale: i8,
) -> Box<dyn Builder> {
    let decimal = DecimalType { precision, scale, numeric_nan: Unrepresentable::Error };
    primitive::<T>(kind, rows, move |item, class| {
        let text = decimal_text(item, class)?;
        decimal.text::<T::Native>(text.as_bytes()).map(Some).map_err(|_| ReadError::Changed)
    })
}

fn strings<O: OffsetSizeTrait>(rows: usize) -> Box<dyn Builder> {
    let array = GenericStringBuilder::<O>::with_capacity(rows, 0);
    Appender::boxed(array, GenericStringBuilder::append_nulls, |array, item, _| {
        let text = crate::read::text(item)?;
        if !fits::<O>(array.values_slice().len(), text.len()) {
            return Err(ReadError::Changed);
        }
        array.append_value(text);
        Ok(())
    })
}

fn binaries<O: OffsetSizeTrait>(rows: usize) -> Box<dyn Builder> {
    let array = GenericBinaryBuilder::<O>::with_capacity(rows, 0);
    Appender::boxed(array, GenericBinaryBuilder::append_nulls, |array, item, class| {
        with_bytes(item, class, |bytes| {
            if !fits::<O>(array.values_slice().len(), bytes.len()) {
                return Err(ReadError::Changed);
            }
            array.append_value(bytes);
            Ok(())
        })?
    })
}

/// Whether so many bytes more are within an array whose offsets are `O`.
fn fits<O: OffsetSizeTrait>(bytes: usize, more: usize) -> bool {
    bytes.checked_add(more).and_then(O::from_usize).is_some()
}

/// An integer of a narrower type.
#[inline]
fn whole<T: TryFrom<i128>>(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<T>, ReadError> {
    let value = integer(item, class)?.and_then(|value| T::try_from(value).ok());
    value.map(Some).ok_or(ReadError::Changed)
}

/// A float, or an integer that is as large as one.
#[inline]
#[allow(clippy::cast_precision_loss)] // none, where it is exact
fn double(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<f64>, ReadError> {
    if !matches!(class, Class::Int | Class::NumpyInt) {
        return float(item, class).map(Some);
    }
    let value = integer(item, class)?.filter(|value| is_exact(*value));
    value.map(|value| Some(value as f64)).ok_or(ReadError::Changed)
}
