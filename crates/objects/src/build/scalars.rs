//! Values of a fixed width.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::types::{ArrowPrimitiveType, DecimalType as ArrowDecimal, TimestampMicrosecondType};
use arrow_array::{ArrayRef, NullArray};
use longshore_cells::decimal::{DecimalType, Mantissa};
use longshore_core::OnOdd;
use pyo3::prelude::*;

use super::{Builder, truth};
use crate::class::Class;
use crate::fault::Fault;
use crate::read::{Misread, Moment, Reader, decimal_text, moment};

/// Values that `read` reads; what it finds to be NULL is.
pub(super) struct Scalars<T: ArrowPrimitiveType, R> {
    array: PrimitiveBuilder<T>,
    read: R,
}

impl<T: ArrowPrimitiveType, R> Scalars<T, R>
where
    R: Fn(&Bound<'_, PyAny>, Class) -> Result<Option<T::Native>, Misread> + 'static,
{
    pub(super) fn boxed(rows: usize, read: R) -> Box<dyn Builder> {
        Box::new(Self { array: PrimitiveBuilder::with_capacity(rows), read })
    }
}

impl<T: ArrowPrimitiveType, R> Builder for Scalars<T, R>
where
    R: Fn(&Bound<'_, PyAny>, Class) -> Result<Option<T::Native>, Misread>,
{
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        match (self.read)(item, class) {
            Ok(value) => {
                self.array.append_option(value);
                Ok(())
            }
            Err(misread) => Err(reader.fault(misread)),
        }
    }

    fn push_nulls(&mut self, count: usize) {
        self.array.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.array.finish())
    }
}

pub(super) fn naive(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<i64>, Misread> {
    match moment(item, class)? {
        Moment::Naive(value) => Ok(Some(value)),
        Moment::Null => Ok(None),
        _ => Err(Misread::Changed),
    }
}

/// Moments in UTC.
pub(super) fn instants(rows: usize) -> Box<dyn Builder> {
    let array = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(rows).with_timezone("UTC");
    let read = |item: &Bound<'_, PyAny>, class: Class| match moment(item, class)? {
        Moment::Instant(value) => Ok(Some(value)),
        Moment::Null => Ok(None),
        _ => Err(Misread::Changed),
    };
    Box::new(Scalars { array, read })
}

/// Decimals and integers of `scale` digits after the point.
pub(super) fn decimals<T: ArrowDecimal<Native: Mantissa>>(
    rows: usize,
    precision: u8,
    scale: i8,
) -> Box<dyn Builder> {
    let array =
        PrimitiveBuilder::<T>::with_capacity(rows).with_data_type(T::TYPE_CONSTRUCTOR(precision, scale));
    let decimal = DecimalType { precision, scale, numeric_nan: OnOdd::Error };
    let read = move |item: &Bound<'_, PyAny>, class: Class| {
        let text = decimal_text(item, class)?;
        decimal.text::<T::Native>(text.as_bytes()).map(Some).map_err(|_| Misread::Changed)
    };
    Box::new(Scalars { array, read })
}

pub(super) struct Booleans(BooleanBuilder);

impl Booleans {
    pub(super) fn new(rows: usize) -> Self {
        Self(BooleanBuilder::with_capacity(rows))
    }
}

impl Builder for Booleans {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        self.0.append_value(truth(item, class).map_err(|misread| reader.fault(misread))?);
        Ok(())
    }

    fn push_nulls(&mut self, count: usize) {
        self.0.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// Places without a value.
#[derive(Default)]
pub(super) struct Nothing(usize);

impl Builder for Nothing {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        _item: &Bound<'py, PyAny>,
        _class: Class,
    ) -> Result<(), Fault> {
        Err(Fault::changed(reader.row))
    }

    fn push_nulls(&mut self, count: usize) {
        self.0 += count;
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(NullArray::new(std::mem::take(&mut self.0)))
    }
}
