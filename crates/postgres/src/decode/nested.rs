//! Lists and structs: a nested cell is divided into its children's cells, from its binary form or its literal
//! (PostgreSQL documentation, "Array Input and Output Syntax" and "Composite Type Input and Output Syntax").

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{FieldRef, Fields};
use longshore_values::{CellBuffer, CellFault, Cells, Decoder, Losses, Misfit, Validity};

pub(crate) mod binary;
pub(crate) mod text;

/// Takes an array's cell apart: pushes the elements in row-major order and returns the length of each dimension; none for
/// `{}`.
type SplitArray = Box<dyn Fn(&[u8], &mut CellBuffer) -> Result<Dimensions, Misfit> + Send>;

/// Takes a composite's cell apart: pushes the fields' cells, one into each of the buffers.
type SplitRecord = Box<dyn Fn(&[u8], &mut [CellBuffer]) -> Result<(), Misfit> + Send>;

/// Where each list of a batch ends.
pub(crate) struct Ends(Vec<i32>);

impl Default for Ends {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Ends {
    pub(crate) fn push(&mut self, length: usize) -> Result<(), Misfit> {
        let last = self.0.last().copied().unwrap_or_default();
        let end = i32::try_from(length).ok().and_then(|length| last.checked_add(length));
        self.0.push(end.ok_or_else(|| Misfit::fault("a batch's lists hold over 2^31 values"))?);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(std::mem::take(self).0.into())
    }

    pub(crate) fn size(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// The fault of a part, in the row of the chunk that the part belongs to.
pub(crate) fn at_owner(owners: &[usize]) -> impl Fn(CellFault) -> CellFault {
    |fault| CellFault { row: owners.get(fault.row).copied().unwrap_or_default(), ..fault }
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
    split: SplitArray,
    parts: CellBuffer,
    /// The row of the chunk that each part belongs to, for a fault's place.
    owners: Vec<usize>,
    /// The warning of an array that does not begin at 1, until there was one.
    losses: Option<Losses>,
}

struct Level {
    item: FieldRef,
    ends: Ends,
    validity: Validity,
}

impl Lists {
    /// A column of lists whose items are `item`, `dimensions` deep.
    pub(crate) fn new(
        item: FieldRef,
        dimensions: usize,
        values: Box<dyn Decoder>,
        split: SplitArray,
        losses: Option<Losses>,
    ) -> Self {
        let mut levels = Vec::new();
        let mut item = item;
        for depth in 0..dimensions {
            levels.push(Level { item: item.clone(), ends: Ends::default(), validity: Validity::default() });
            if let (arrow_schema::DataType::List(inner), true) = (item.data_type(), depth + 1 < dimensions) {
                item = inner.clone();
            }
        }
        Self { levels, values, split, parts: CellBuffer::default(), owners: Vec::new(), losses }
    }

    fn append(&mut self, row: usize, cell: Option<&[u8]>) -> Result<(), Misfit> {
        let Some(cell) = cell else {
            return self.append_empty(false);
        };
        let before = self.parts.cells().len();
        let dimensions = (self.split)(cell, &mut self.parts)?;
        // An element more or less would move every list after it, such as that of `{{{}},{1}}`.
        if dimensions.elements() != Some(self.parts.cells().len() - before) {
            return Err(damage("array"));
        }
        if dimensions.has_bounds
            && let Some(losses) = self.losses.take()
        {
            losses.bounds();
        }
        self.owners.resize(self.parts.cells().len(), row);
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
                level.ends.push(*length)?;
                level.validity.push(true);
            }
            lists *= *length;
        }
        Ok(())
    }

    /// An empty list, or NULL: no level below gets anything.
    fn append_empty(&mut self, valid: bool) -> Result<(), Misfit> {
        let Some(top) = self.levels.first_mut() else { return Ok(()) };
        top.ends.push(0)?;
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
        cells.try_for_each(|row, cell| self.append(row, cell))?;
        self.values.decode(self.parts.cells()).map_err(at_owner(&self.owners))
    }

    fn finish(&mut self) -> ArrayRef {
        let mut values = self.values.finish();
        for level in self.levels.iter_mut().rev() {
            let offsets = level.ends.finish();
            // `new` panics on what cannot be here: a NULL among items that are not nullable (`wanted` and
            // `Type::field` make all of them nullable), values of another type (the decoder was chosen by the
            // item's), and offsets that fall or pass the values (`append` counts the elements).
            values = Arc::new(ListArray::new(level.item.clone(), offsets, values, level.validity.finish()));
        }
        values
    }

    fn size(&self) -> usize {
        let offsets: usize = self.levels.iter().map(|level| level.ends.size()).sum();
        self.values.size() + offsets
    }
}

pub(crate) struct Records {
    fields: Fields,
    children: Vec<Box<dyn Decoder>>,
    parts: Vec<CellBuffer>,
    split: SplitRecord,
    validity: Validity,
    rows: usize,
}

impl Records {
    pub(crate) fn new(fields: Fields, children: Vec<Box<dyn Decoder>>, split: SplitRecord) -> Self {
        let parts = children.iter().map(|_| CellBuffer::default()).collect();
        Self { fields, children, parts, split, validity: Validity::default(), rows: 0 }
    }
}

impl Decoder for Records {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.parts.iter_mut().for_each(CellBuffer::clear);
        cells.try_for_each(|_, cell| {
            match cell {
                Some(cell) => (self.split)(cell, &mut self.parts)?,
                None => self.parts.iter_mut().for_each(CellBuffer::push_null),
            }
            self.validity.push(cell.is_some());
            self.rows += 1;
            Ok(())
        })?;
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
pub(crate) fn damage(what: &'static str) -> Misfit {
    Misfit::fault(format!("the server sent a damaged {what}"))
}
