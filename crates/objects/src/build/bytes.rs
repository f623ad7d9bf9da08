//! Bytes and UUIDs.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, GenericBinaryBuilder};
use arrow_array::{ArrayRef, OffsetSizeTrait};
use pyo3::prelude::*;

use super::Builder;
use super::texts::fits;
use crate::class::Class;
use crate::fault::Fault;
use crate::read::{Reader, uuid, with_bytes};

pub(super) struct Blobs<O: OffsetSizeTrait>(GenericBinaryBuilder<O>);

impl<O: OffsetSizeTrait> Blobs<O> {
    pub(super) fn new(rows: usize) -> Self {
        Self(GenericBinaryBuilder::with_capacity(rows, 0))
    }
}

impl<O: OffsetSizeTrait> Builder for Blobs<O> {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        let pushed = with_bytes(item, class, |bytes| {
            let fits = fits::<O>(self.0.values_slice().len(), bytes.len());
            if fits {
                self.0.append_value(bytes);
            }
            fits
        });
        match pushed {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fault::changed(reader.row)),
            Err(misread) => Err(reader.fault(misread)),
        }
    }

    fn push_nulls(&mut self, count: usize) {
        self.0.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(super) struct Uuids(FixedSizeBinaryBuilder);

impl Uuids {
    pub(super) fn new(rows: usize) -> Self {
        Self(FixedSizeBinaryBuilder::with_capacity(rows, 16))
    }
}

impl Builder for Uuids {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        let bytes = uuid(item, class).map_err(|misread| reader.fault(misread))?;
        self.0.append_value(bytes).map_err(|_| Fault::changed(reader.row))
    }

    fn push_nulls(&mut self, count: usize) {
        self.0.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}
