//! Numbers, decimals and booleans.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_buffer::{ArrowNativeType, ToByteSlice};
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyType};

use super::{Maker, python_fault};
use crate::numbers::{no_array_of, primitive};

/// The maker that a function is, whose objects take about so many bytes each.
pub(super) struct Each<F> {
    size: usize,
    make: F,
}

impl<F> Each<F>
where
    F: FnMut(Python<'_>, &dyn Array, &mut Vec<Py<PyAny>>) -> Result<(), Fault> + Send + 'static,
{
    pub(super) fn boxed(size: usize, make: F) -> Box<dyn Maker> {
        Box::new(Self { size, make })
    }
}

impl<F> Maker for Each<F>
where
    F: FnMut(Python<'_>, &dyn Array, &mut Vec<Py<PyAny>>) -> Result<(), Fault> + Send,
{
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        (self.make)(py, array, objects)
    }

    fn bytes(&self, rows: usize) -> usize {
        self.size * rows
    }
}

/// Appends what `object` makes of every row of `array` that is not a NULL.
pub(super) fn each_row(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
    mut object: impl FnMut(usize) -> Result<Py<PyAny>, Fault>,
) -> Result<(), Fault> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for row in 0..array.len() {
        let null = nulls.is_some_and(|nulls| nulls.is_null(row));
        objects.push(if null { py.None() } else { object(row)? });
    }
    Ok(())
}

/// An Arrow type whose values are Python's `int` or `float`.
pub(super) trait Scalar: ArrowPrimitiveType {
    /// The object of `value`.
    fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny>;
}

macro_rules! integers {
    ($($arrow:ty),*) => { $(
        impl Scalar for $arrow {
            fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny> {
                PyInt::new(py, value).into_any().unbind()
            }
        }
    )* };
}

macro_rules! floats {
    ($($arrow:ty),*) => { $(
        impl Scalar for $arrow {
            fn object(py: Python<'_>, value: Self::Native) -> Py<PyAny> {
                PyFloat::new(py, f64::from(value)).into_any().unbind()
            }
        }
    )* };
}

integers!(Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);
floats!(Float16Type, Float32Type, Float64Type);

pub(super) fn scalars<T: Scalar>(
    py: Python<'_>,
    array: &dyn Array,
    objects: &mut Vec<Py<PyAny>>,
) -> Result<(), Fault> {
    let array = primitive::<T>(array)?;
    each_row(py, array, objects, |row| Ok(T::object(py, array.value(row))))
}

pub(super) fn booleans(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let Some(array) = array.as_boolean_opt() else { return Err(no_array_of("booleans")) };
    each_row(py, array, objects, |row| Ok(PyBool::new(py, array.value(row)).to_owned().into_any().unbind()))
}

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `decimal.Decimal` objects, exact to the last digit.
pub(super) fn decimals<T: DecimalType>() -> Box<dyn Maker> {
    let mut known = Known::<T::Native>::default();
    Each::boxed(104, move |py, array, objects| {
        let failed = |error| python_fault(0, "decimal.Decimal cannot be made", error);
        let class = DECIMAL.import(py, "decimal", "Decimal").map_err(failed)?;
        let array = primitive::<T>(array)?;
        known.restart();
        // Built from text: the constructor takes every digit, whatever the caller's decimal context is.
        each_row(py, array, objects, |row| {
            known.object(py, array.value(row), || {
                class.call1((array.value_as_string(row),)).map(Bound::unbind).map_err(failed)
            })
        })
    })
}

/// Remembers objects that take long to make, so that the rows of a column of few values share them. Direct-mapped, as
/// that of texts; in a batch whose values do not repeat it stops after a trial.
pub(super) struct Known<K> {
    slots: Vec<Option<(K, Py<PyAny>)>>,
    looked: u32,
    found: u32,
}

const SLOTS: usize = 4096;

/// How many values of a batch are looked up before it is judged.
const TRIAL: u32 = 512;

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self { slots: Vec::new(), looked: 0, found: 0 }
    }
}

impl<K: ArrowNativeType> Known<K> {
    /// Begins a new batch, and with it a new trial.
    pub(super) fn restart(&mut self) {
        (self.looked, self.found) = (0, 0);
    }

    /// The object of `value`, which `make` makes where it is not known.
    pub(super) fn object(
        &mut self,
        py: Python<'_>,
        value: K,
        make: impl FnOnce() -> Result<Py<PyAny>, Fault>,
    ) -> Result<Py<PyAny>, Fault> {
        if self.looked >= TRIAL && self.found < self.looked / 8 {
            return make();
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.looked = self.looked.wrapping_add(1);
        let slot = slot(value.to_byte_slice());
        if let Some((known, object)) = &self.slots[slot]
            && *known == value
        {
            self.found += 1;
            return Ok(object.clone_ref(py));
        }
        let object = make()?;
        self.slots[slot] = Some((value, object.clone_ref(py)));
        Ok(object)
    }
}

/// The slot of a number by its lowest bytes.
fn slot(bytes: &[u8]) -> usize {
    let low = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
        (Some(low), _) => u64::from_le_bytes(*low),
        (None, Some(low)) => u32::from_le_bytes(*low).into(),
        _ => 0,
    };
    // Fibonacci hashing: the product's upper bits depend on every bit below them.
    usize::try_from(low.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48).unwrap_or(0) % SLOTS
}
