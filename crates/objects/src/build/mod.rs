//! Arrow arrays of objects whose type is known.

mod bytes;
mod json;
mod nested;
mod scalars;
mod texts;

use arrow_array::{ArrayRef, types};
use pyo3::prelude::*;

use crate::class::Class;
use crate::fault::Fault;
use crate::kind::{Kind, NARROW};
use crate::read::{Misread, Reader, float, integer, interval, time, truth};
use bytes::{Blobs, Uuids};
use json::{Documents, Shown};
use nested::{Lists, Structs};
use scalars::{Booleans, Nothing, Scalars, decimals};
use texts::Texts;

pub(crate) use texts::texts;

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

/// The builder of `kind`, for about so many `rows`.
pub(crate) fn builder(kind: &Kind, rows: usize) -> Box<dyn Builder> {
    match kind {
        Kind::Null => Box::<Nothing>::default(),
        Kind::Bool => Box::new(Booleans::new(rows)),
        Kind::Int64 => Scalars::<types::Int64Type, _>::boxed(rows, whole),
        Kind::UInt64 => Scalars::<types::UInt64Type, _>::boxed(rows, whole),
        Kind::Float64 => Scalars::<types::Float64Type, _>::boxed(rows, double),
        Kind::Decimal(precision, scale) if *precision <= NARROW => {
            decimals::<types::Decimal128Type>(rows, *precision, *scale)
        }
        Kind::Decimal(precision, scale) => decimals::<types::Decimal256Type>(rows, *precision, *scale),
        Kind::Text { large: false } => Box::new(Texts::<i32>::new(rows)),
        Kind::Text { large: true } => Box::new(Texts::<i64>::new(rows)),
        Kind::Bytes { large: false } => Box::new(Blobs::<i32>::new(rows)),
        Kind::Bytes { large: true } => Box::new(Blobs::<i64>::new(rows)),
        Kind::Date => Scalars::<types::Date32Type, _>::boxed(rows, crate::read::date),
        Kind::Timestamp { utc: false } => {
            Scalars::<types::TimestampMicrosecondType, _>::boxed(rows, scalars::naive)
        }
        Kind::Timestamp { utc: true } => scalars::instants(rows),
        Kind::Time => {
            Scalars::<types::Time64MicrosecondType, _>::boxed(rows, |item, class| time(item, class).map(Some))
        }
        Kind::Duration => Scalars::<types::DurationMicrosecondType, _>::boxed(rows, crate::read::delta),
        Kind::Uuid => Box::new(Uuids::new(rows)),
        Kind::Interval => Scalars::<types::IntervalMonthDayNanoType, _>::boxed(rows, |item, class| {
            let (months, days, nanoseconds) = interval(item, class)?;
            Ok(Some(types::IntervalMonthDayNano { months, days, nanoseconds }))
        }),
        Kind::List(item) => Box::new(Lists::new(item, rows)),
        Kind::Struct(fields) => Box::new(Structs::new(fields, rows)),
        Kind::Json => Box::new(Documents::new(rows)),
        Kind::Shown => Box::new(Shown::new(rows)),
    }
}

/// An integer of a narrower type.
#[inline]
fn whole<T: TryFrom<i128>>(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<T>, Misread> {
    let value = integer(item, class)?.and_then(|value| T::try_from(value).ok());
    value.map(Some).ok_or(Misread::Changed)
}

/// A float, or an integer that is as large as one.
#[inline]
#[allow(clippy::cast_precision_loss)] // none, where it is exact
fn double(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<f64>, Misread> {
    if !matches!(class, Class::Int | Class::NumpyInt) {
        return float(item, class).map(Some);
    }
    let value = integer(item, class)?.filter(|value| crate::read::is_exact(*value));
    value.map(|value| Some(value as f64)).ok_or(Misread::Changed)
}
