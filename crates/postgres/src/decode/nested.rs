//! Lists and structs: a nested cell is divided into its children's cells, from its binary form or its literal
//! (PostgreSQL documentation, "Array Input and Output Syntax" and "Composite Type Input and Output Syntax").

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{FieldRef, Fields};
use longshore_values::{CellFault, Cells, Decoder, Losses, Misfit, Span, Validity, fault};

mod binary;
mod text;

pub(crate) use binary::{BinaryArray, BinaryRecord};
pub(super) use text::{TextArray, TextRecord};

/// Receives the parts of one nested value, in order.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    any_null: bool,
}

impl Parts {
    /// Adds a part, `None` for NULL.
    pub(crate) fn push(&mut self, part: Option<&[u8]>) -> Result<(), Misfit> {
        let Some(part) = part else {
            self.any_null = true;
            self.spans.push(Span::NULL);
            return Ok(());
        };
        let too_large = |_| Misfit::fault("the nested values of one chunk of rows hold over 4 GiB");
        let start = u32::try_from(self.bytes.len()).map_err(too_large)?;
        let length = u32::try_from(part.len()).map_err(too_large)?;
        self.bytes.extend_from_slice(part);
        self.spans.push(Span::new(start, length));
        Ok(())
    }

    pub(crate) fn cells(&self) -> Cells<'_> {
        Cells::new(&self.bytes, &self.spans, self.any_null)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.any_null = false;
    }
}

/// Takes an array's cell apart.
pub(crate) trait SplitArray: Send {
    /// Pushes the elements in row-major order and returns the length of each dimension; none for `{}`.
    fn split(&self, cell: &[u8], into: &mut Parts) -> Result<Dimensions, Misfit>;
}

/// The lengths of an array's dimensions, at most six.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dimensions {
    lengths: [usize; 6],
    count: usize,
    /// Whether one of them begins elsewhere than at 1.
    pub(crate) has_bounds: bool,
}

impl Dimensions {
    pub(crate) fn push(&mut self, length: usize) -> Result<(), Misfit> {
        let Some(slot) = self.lengths.get_mut(self.count) else {
            return Err(Misfit::fault("the server sent an array of more than six dimensions"));
        };
        *slot = length;
        self.count += 1;
        Ok(())
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.lengths[..self.count]
    }

    /// The number of elements that the lengths promise.
    pub(crate) fn elements(&self) -> Option<usize> {
        match self.lengths() {
            [] => Some(0),
            lengths => lengths.iter().try_fold(1_usize, |all, length| all.checked_mul(*length)),
        }
    }
}

/// A column of arrays. Every dimension below the first is a level of lists.
pub(crate) struct Lists {
    levels: Vec<Level>,
    values: Box<dyn Decoder>,
    split: Box<dyn SplitArray>,
    parts: Parts,
    /// The row of the chunk that each part belongs to, for a fault's place.
    owners: Vec<usize>,
    /// The warning of an array that does not begin at 1, until there was one.
    losses: Option<Losses>,
}

struct Level {
    item: FieldRef,
    offsets: Vec<i32>,
    validity: Validity,
}

impl Level {
    fn push(&mut self, length: usize) -> Result<(), Misfit> {
        let last = self.offsets.last().copied().unwrap_or_default();
        let end = i32::try_from(length).ok().and_then(|length| last.checked_add(length));
        self.offsets.push(end.ok_or_else(|| Misfit::fault("a batch of arrays holds over 2^31 elements"))?);
        Ok(())
    }
}

impl Lists {
    /// A column of lists whose items are `item`, `dimensions` deep.
    pub(crate) fn new(
        item: FieldRef,
        dimensions: usize,
        values: Box<dyn Decoder>,
        split: Box<dyn SplitArray>,
        losses: Option<Losses>,
    ) -> Self {
        let mut levels = Vec::new();
        let mut item = item;
        for depth in 0..dimensions {
            levels.push(Level { item: item.clone(), offsets: vec![0], validity: Validity::default() });
            if let (arrow_schema::DataType::List(inner), true) = (item.data_type(), depth + 1 < dimensions) {
                item = inner.clone();
            }
        }
        Self { levels, values, split, parts: Parts::default(), owners: Vec::new(), losses }
    }

    fn append(&mut self, row: usize, cell: Option<&[u8]>) -> Result<(), Misfit> {
        let Some(cell) = cell else {
            return self.append_empty(false);
        };
        let before = self.parts.spans.len();
        let dimensions = self.split.split(cell, &mut self.parts)?;
        // An element more or less would move every list after it, such as that of `{{{}},{1}}`.
        if dimensions.elements() != Some(self.parts.spans.len() - before) {
            return Err(damaged("array"));
        }
        if dimensions.has_bounds
            && let Some(losses) = self.losses.take()
        {
            losses.bounds();
        }
        self.owners.resize(self.parts.spans.len(), row);
        let lengths = dimensions.lengths();
        if lengths.is_empty() {
            return self.append_empty(true);
        }
        if lengths.len() != self.levels.len() {
            return Err(wrong_dimensions(lengths.len(), self.levels.len()));
        }
        let mut lists = 1;
        for (level, length) in self.levels.iter_mut().zip(lengths) {
            for _ in 0..lists {
                level.push(*length)?;
                level.validity.push(true);
            }
            lists *= *length;
        }
        Ok(())
    }

    /// An empty list, or NULL: no level below gets anything.
    fn append_empty(&mut self, valid: bool) -> Result<(), Misfit> {
        let Some(top) = self.levels.first_mut() else { return Ok(()) };
        top.push(0)?;
        top.validity.push(valid);
        Ok(())
    }
}

#[cold]
fn wrong_dimensions(got: usize, expected: usize) -> Misfit {
    let lists = format!("{}element{}", "list<".repeat(got), ">".repeat(got));
    Misfit::with_hint(
        format!("an array of {got} dimensions where the column's type has {expected}"),
        format!(
            "name the column's depth, such as schema={{\"<column>\": \"{lists}\"}} with the element's type"
        ),
    )
}

impl Decoder for Lists {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.clear();
        self.owners.clear();
        for (row, cell) in cells.iter().enumerate() {
            if let Some(fault) = self.append(row, cell).err().and_then(|misfit| fault(row, misfit)) {
                return Err(fault);
            }
        }
        let owners = &self.owners;
        let at_owner =
            |fault: CellFault| CellFault { row: owners.get(fault.row).copied().unwrap_or_default(), ..fault };
        self.values.decode(self.parts.cells()).map_err(at_owner)
    }

    fn finish(&mut self) -> ArrayRef {
        let mut values = self.values.finish();
        for level in self.levels.iter_mut().rev() {
            let offsets = std::mem::replace(&mut level.offsets, vec![0]);
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            // `new` panics on what cannot be here: a NULL among items that are not nullable (`wanted` and
            // `Type::field` make all of them nullable), values of another type (the decoder was chosen by the
            // item's), and offsets that fall or pass the values (`append` counts the elements).
            values = Arc::new(ListArray::new(level.item.clone(), offsets, values, level.validity.finish()));
        }
        values
    }

    fn size(&self) -> usize {
        let offsets: usize = self.levels.iter().map(|level| level.offsets.len() * 4).sum();
        self.values.size() + offsets
    }
}

/// Takes a composite's cell apart.
pub(crate) trait SplitRecord: Send {
    /// Pushes the fields' cells, one into each of `into`.
    fn split(&self, cell: &[u8], into: &mut [Parts]) -> Result<(), Misfit>;
}

pub(crate) struct Records {
    fields: Fields,
    children: Vec<Box<dyn Decoder>>,
    parts: Vec<Parts>,
    split: Box<dyn SplitRecord>,
    validity: Validity,
    rows: usize,
}

impl Records {
    pub(crate) fn new(fields: Fields, children: Vec<Box<dyn Decoder>>, split: Box<dyn SplitRecord>) -> Self {
        let parts = children.iter().map(|_| Parts::default()).collect();
        Self { fields, children, parts, split, validity: Validity::default(), rows: 0 }
    }
}

impl Decoder for Records {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.iter_mut().for_each(Parts::clear);
        for (row, cell) in cells.iter().enumerate() {
            let done = match cell {
                Some(cell) => self.split.split(cell, &mut self.parts),
                None => self.parts.iter_mut().try_for_each(|part| part.push(None)),
            };
            if let Some(fault) = done.err().and_then(|misfit| fault(row, misfit)) {
                return Err(fault);
            }
            self.validity.push(cell.is_some());
            self.rows += 1;
        }
        for ((child, part), field) in self.children.iter_mut().zip(&self.parts).zip(&self.fields) {
            child.decode(part.cells()).map_err(|fault| CellFault {
                what: format!("field {:?}: {}", field.name(), fault.what).into(),
                ..fault
            })?;
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let columns = self.children.iter_mut().map(|child| child.finish()).collect();
        let rows = std::mem::take(&mut self.rows);
        let validity = self.validity.finish();
        if self.fields.is_empty() {
            return Arc::new(StructArray::new_empty_fields(rows, validity));
        }
        // `new` panics on what cannot be here: NULLs in fields that are not nullable (`wanted` and `Type::field`
        // make all of them nullable), and columns of another type or length (each child's decoder was chosen by
        // its field, and gets a cell of every row).
        Arc::new(StructArray::new(self.fields.clone(), columns, validity))
    }

    fn size(&self) -> usize {
        self.children.iter().map(|child| child.size()).sum()
    }
}

#[cold]
fn damaged(what: &'static str) -> Misfit {
    Misfit::fault(format!("the server sent a damaged {what}"))
}
