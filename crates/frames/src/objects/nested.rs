//! Lists, structs, maps, unions and dictionaries: objects made of the objects of their parts.

use std::collections::HashMap;
use std::sync::Arc;
use std::vec::IntoIter;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::scalars::each_row;
use super::{Maker, python_fault};
use crate::columns::distinct_names;
use crate::numbers::no_array_of;

/// The objects of all of `array`, to be handed out in order.
fn parts(py: Python<'_>, maker: &mut dyn Maker, array: &dyn Array) -> Result<IntoIter<Py<PyAny>>, Fault> {
    let mut objects = Vec::with_capacity(array.len());
    maker.make(py, array, &mut objects)?;
    Ok(objects.into_iter())
}

/// The object of a row; `None` where that is NULL.
fn unless_null(array: &dyn Array, row: usize, object: Bound<'_, PyAny>) -> Py<PyAny> {
    if array.is_null(row) { object.py().None() } else { object.unbind() }
}

/// The offsets of a list's rows in its values, from 0, and the values from the first to the last row.
struct Spans {
    offsets: Vec<usize>,
    values: ArrayRef,
}

impl Spans {
    fn of(array: &dyn Array) -> Result<Self, Fault> {
        let (offsets, values) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (indexes(list.offsets().iter().map(|offset| i64::from(*offset))), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                (indexes(list.offsets().iter().copied()), list.values())
            }
            DataType::FixedSizeList(_, size) => {
                let list = array.as_fixed_size_list();
                let size = usize::try_from(*size).unwrap_or(0);
                // A sliced array of fixed sizes has its values sliced already.
                ((0..=list.len()).map(|row| row * size).collect(), list.values())
            }
            DataType::Map(..) => {
                let map = array.as_map();
                // Keys and values have the same offsets; the caller slices both.
                (indexes(map.offsets().iter().map(|offset| i64::from(*offset))), map.keys())
            }
            _ => return Err(no_array_of("lists")),
        };
        Ok(Self::from_zero(offsets, values))
    }

    /// A sliced array begins in the middle of its values.
    fn from_zero(offsets: Vec<usize>, values: &ArrayRef) -> Self {
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
            return Self { offsets: vec![0], values: values.slice(0, 0) };
        };
        let offsets = offsets.into_iter().map(|offset| offset - first).collect();
        Self { offsets, values: values.slice(first, last - first) }
    }

    fn length(&self, row: usize) -> usize {
        self.offsets[row + 1] - self.offsets[row]
    }

    /// The row that holds the value at `index`.
    fn row_of(&self, index: usize) -> usize {
        self.offsets.partition_point(|offset| *offset <= index).saturating_sub(1)
    }
}

fn indexes(offsets: impl Iterator<Item = i64>) -> Vec<usize> {
    // Arrow's offsets are never negative.
    offsets.map(|offset| usize::try_from(offset).unwrap_or(0)).collect()
}

/// `list` objects.
pub(super) struct Lists {
    item: Box<dyn Maker>,
    items: usize,
}

impl Lists {
    pub(super) fn new(item: Box<dyn Maker>) -> Self {
        Self { item, items: 0 }
    }
}

impl Maker for Lists {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let spans = Spans::of(array)?;
        self.items += spans.values.len();
        let mut items = parts(py, self.item.as_mut(), &spans.values).map_err(|fault| {
            let row = spans.row_of(fault.row());
            fault.at_row(row)
        })?;
        for row in 0..array.len() {
            // A NULL may still have values in Arrow's memory.
            let list = PyList::new(py, items.by_ref().take(spans.length(row)));
            let list = list.map_err(|error| python_fault(row, "a list cannot be made", error))?;
            objects.push(unless_null(array, row, list.into_any()));
        }
        Ok(())
    }

    fn bytes(&self, rows: usize) -> usize {
        72 * rows + self.item.bytes(self.items) + size_of::<usize>() * self.items
    }
}

/// `dict` objects of a struct's fields by name; names that repeat get a suffix, so that no field is lost.
pub(super) struct Structs {
    names: Vec<String>,
    keys: Vec<Py<PyString>>,
    fields: Vec<Box<dyn Maker>>,
}

impl Structs {
    pub(super) fn new(names: &[&str], fields: Vec<Box<dyn Maker>>) -> Self {
        Self { names: distinct_names(names), keys: Vec::new(), fields }
    }
}

impl Maker for Structs {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let Some(array) = array.as_struct_opt() else { return Err(no_array_of("structs")) };
        if self.keys.is_empty() {
            self.keys = self.names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
        }
        let makers = self.fields.iter_mut().zip(array.columns());
        let fields = makers.map(|(maker, column)| parts(py, maker.as_mut(), column));
        let mut fields = fields.collect::<Result<Vec<_>, _>>()?;
        for row in 0..array.len() {
            let dict = PyDict::new(py);
            for (key, value) in self.keys.iter().zip(fields.iter_mut().map(Iterator::next)) {
                dict.set_item(key, value)
                    .map_err(|error| python_fault(row, "a dict cannot be made", error))?;
            }
            objects.push(unless_null(array, row, dict.into_any()));
        }
        Ok(())
    }

    fn bytes(&self, rows: usize) -> usize {
        232 * rows + self.fields.iter().map(|field| field.bytes(rows)).sum::<usize>()
    }
}

/// `dict` objects of a map's entries.
pub(super) struct Maps {
    key: Box<dyn Maker>,
    value: Box<dyn Maker>,
    entries: usize,
}

impl Maps {
    pub(super) fn new(key: Box<dyn Maker>, value: Box<dyn Maker>) -> Self {
        Self { key, value, entries: 0 }
    }
}

impl Maker for Maps {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let keys = Spans::of(array)?;
        self.entries += keys.values.len();
        let offsets = array.as_map().offsets();
        let first = usize::try_from(offsets.first()).unwrap_or(0);
        let values = array.as_map().values().slice(first, keys.values.len());
        let outward = |fault: Fault| {
            let row = keys.row_of(fault.row());
            fault.at_row(row)
        };
        let key_objects = parts(py, self.key.as_mut(), &keys.values).map_err(outward)?;
        let mut entries = key_objects.zip(parts(py, self.value.as_mut(), &values).map_err(outward)?);
        for row in 0..array.len() {
            let length = keys.length(row);
            let row_entries = entries.by_ref().take(length);
            if array.is_null(row) {
                row_entries.for_each(drop);
                objects.push(py.None());
                continue;
            }
            let dict = PyDict::new(py);
            for (key, value) in row_entries {
                dict.set_item(key, value).map_err(|error| no_key(row, &error))?;
            }
            if dict.len() != length {
                return Err(Fault::data(row, "the map has a key twice, which a dict cannot hold")
                    .with_hint("use return_type=\"arrow\" or dtype_backend=\"pyarrow\""));
            }
            objects.push(dict.into_any().unbind());
        }
        Ok(())
    }

    fn bytes(&self, rows: usize) -> usize {
        232 * rows + self.key.bytes(self.entries) + self.value.bytes(self.entries)
    }
}

/// Python's own exception would tell neither column nor row.
fn no_key(row: usize, error: &PyErr) -> Fault {
    Fault::data(row, format!("a map's key cannot be a key of a dict: {error}"))
        .with_hint("use return_type=\"arrow\" or dtype_backend=\"pyarrow\"")
}

/// The objects of whichever type each row of a union has.
pub(super) struct Unions {
    /// The types by their number in the union.
    types: Vec<(i8, Box<dyn Maker>)>,
}

impl Unions {
    pub(super) fn new(types: Vec<(i8, Box<dyn Maker>)>) -> Self {
        Self { types }
    }
}

impl Maker for Unions {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let Some(union) = array.as_union_opt() else { return Err(no_array_of("unions")) };
        let mut made = HashMap::new();
        for (number, maker) in &mut self.types {
            let rows: Vec<usize> = (0..union.len()).filter(|row| union.type_id(*row) == *number).collect();
            let child = union.child(*number);
            let mut values = Vec::with_capacity(rows.len());
            for row in rows {
                // Row by row: what the other types' rows hold here is not a value of this type.
                maker
                    .make(py, &child.slice(union.value_offset(row), 1), &mut values)
                    .map_err(|fault| fault.at_row(row))?;
            }
            made.insert(*number, values.into_iter());
        }
        for row in 0..union.len() {
            let object = made.get_mut(&union.type_id(row)).and_then(Iterator::next);
            objects.push(object.ok_or_else(|| Fault::internal("a union without the type of its row"))?);
        }
        Ok(())
    }

    fn bytes(&self, rows: usize) -> usize {
        self.types.iter().map(|(_, maker)| maker.bytes(rows / self.types.len().max(1))).sum()
    }
}

/// The objects of a dictionary's values, each made once and shared by all its rows.
pub(super) struct Dictionaries {
    value: Box<dyn Maker>,
    last: Option<(ArrayRef, Vec<Py<PyAny>>)>,
}

impl Dictionaries {
    pub(super) fn new(value: Box<dyn Maker>) -> Self {
        Self { value, last: None }
    }

    fn learn(&mut self, py: Python<'_>, values: &ArrayRef) -> Result<(), Fault> {
        if !self.last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, values)) {
            let made = parts(py, self.value.as_mut(), values)?.collect();
            self.last = Some((values.clone(), made));
        }
        Ok(())
    }
}

impl Maker for Dictionaries {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return Err(no_array_of("dictionary")) };
        self.learn(py, dictionary.values())?;
        let Some((_, values)) = &self.last else { return Ok(()) };
        if values.is_empty() {
            objects.extend((0..array.len()).map(|_| py.None()));
            return Ok(());
        }
        let keys = dictionary.normalized_keys();
        each_row(py, dictionary.keys(), objects, |row| Ok(values[keys[row]].clone_ref(py)))
    }

    fn bytes(&self, _rows: usize) -> usize {
        // The labels only, which are few.
        0
    }
}
