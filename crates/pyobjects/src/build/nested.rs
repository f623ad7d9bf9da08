//! Lists and structs.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{FieldRef, Fields};
use longshore_values::Fault;
use pyo3::prelude::*;

use super::{Builder, append, builder};
use crate::class::Class;
use crate::fault::changed_object;
use crate::kind::{Kind, struct_fields};
use crate::profile::Names;
use crate::read::{Reader, text};

pub(super) struct Lists {
    field: FieldRef,
    values: Box<dyn Builder>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Lists {
    pub(super) fn new(item: &Kind, rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let values = builder(item, 0);
        Self { field: Arc::new(item.field("item")), values, offsets, nulls: NullBufferBuilder::new(rows) }
    }

    fn end(&self) -> i32 {
        self.offsets.last().copied().unwrap_or(0)
    }
}

impl Builder for Lists {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        let values = &mut self.values;
        let count = reader.items(item, class, |reader, item| append(values.as_mut(), reader, item))?;
        let end = i32::try_from(count).ok().and_then(|count| self.end().checked_add(count));
        let end = end.ok_or_else(|| too_many(reader.row))?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_nulls(&mut self, count: usize) {
        self.offsets.extend(std::iter::repeat_n(self.end(), count));
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Arc::new(ListArray::new(self.field.clone(), offsets, self.values.finish(), self.nulls.finish()))
    }
}

#[cold]
fn too_many(row: usize) -> Fault {
    Fault::data(row, "the lists have more than 2,147,483,647 values in all")
        .with_hint("write fewer rows at a time")
}

pub(super) struct Structs {
    fields: Fields,
    names: Names,
    members: Vec<Box<dyn Builder>>,
    /// The rows that each member has: those that it lacks are NULL.
    filled: Vec<usize>,
    rows: usize,
    nulls: NullBufferBuilder,
}

impl Structs {
    pub(super) fn new(fields: &[(String, Kind)], rows: usize) -> Self {
        let mut names = Names::default();
        for (name, _) in fields {
            names.add(name);
        }
        Self {
            fields: struct_fields(fields),
            names,
            members: fields.iter().map(|(_, kind)| builder(kind, rows)).collect(),
            filled: vec![0; fields.len()],
            rows: 0,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    /// The number of the field that `key` names; the one that comes at this place in most dicts is `likely`.
    #[inline]
    fn member(&mut self, row: usize, likely: usize, key: &Bound<'_, PyAny>) -> Result<usize, Fault> {
        if self.names.is_object(likely, key) {
            return Ok(likely);
        }
        let found = match (key.cast(), text(key)) {
            (Ok(key), Ok(text)) => self.names.index(likely, key, text),
            _ => None,
        };
        found.ok_or_else(|| changed_object(row))
    }

    /// Makes the member's next row the one at hand.
    #[inline]
    fn fill(&mut self, at: usize) {
        let missing = self.rows - self.filled[at];
        if missing > 0 {
            self.members[at].push_nulls(missing);
        }
        self.filled[at] = self.rows + 1;
    }
}

impl Builder for Structs {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        if class != Class::Dict {
            return Err(changed_object(reader.row));
        }
        let mut next = 0;
        reader.entries(item, |reader, _, key, value| {
            let at = self.member(reader.row, next, key)?;
            next = at + 1;
            if self.filled[at] > self.rows {
                return Err(twice(reader.row, &self.names.texts()[at]));
            }
            self.fill(at);
            append(self.members[at].as_mut(), reader, value)
                .map_err(|fault| fault.under(&self.names.texts()[at]))
        })?;
        self.rows += 1;
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_nulls(&mut self, count: usize) {
        self.rows += count;
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        for (member, filled) in self.members.iter_mut().zip(&mut self.filled) {
            member.push_nulls(self.rows - *filled);
            *filled = 0;
        }
        let members = self.members.iter_mut().map(|member| member.finish()).collect();
        self.rows = 0;
        Arc::new(StructArray::new(self.fields.clone(), members, self.nulls.finish()))
    }
}

/// Objects that are equal in text alone may both be keys.
#[cold]
fn twice(row: usize, key: &str) -> Fault {
    Fault::data(row, format!("the dict has the key {key:?} twice")).with_hint("make plain texts of its keys")
}
