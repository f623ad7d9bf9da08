//! Cells: where each value of a chunk of rows lies in the receive buffer.

use crate::{CellFault, Misfit, fault};

/// Where one cell's bytes lie; or that the cell is NULL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

impl Span {
    /// SQL's NULL.
    pub const NULL: Self = Self { start: 0, length: u32::MAX };

    /// The `length` bytes from `start`; both below 4 GiB, as every wire's messages are.
    #[must_use]
    #[inline]
    pub fn new(start: u32, length: u32) -> Self {
        Self { start, length }
    }

    /// Whether the cell is NULL.
    #[must_use]
    #[inline]
    pub fn is_null(self) -> bool {
        self.length == u32::MAX
    }
}

/// The cells of one column over one chunk of rows.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
    any_null: bool,
}

impl<'a> Cells<'a> {
    /// The `spans` into `bytes`. `any_null` may be true without a NULL, never false with one.
    #[must_use]
    pub fn new(bytes: &'a [u8], spans: &'a [Span], any_null: bool) -> Self {
        Self { bytes, spans, any_null }
    }

    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether a cell may be NULL.
    #[must_use]
    pub fn any_null(&self) -> bool {
        self.any_null
    }

    /// The sum of the lengths of the cells that are not NULL.
    #[must_use]
    pub fn total_length(&self) -> usize {
        self.spans.iter().filter(|span| !span.is_null()).map(|span| span.length as usize).sum()
    }

    /// Each cell's bytes, `None` for NULL.
    #[must_use]
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| (!span.is_null()).then(|| slice(bytes, *span)))
    }

    /// Has `push` take the cell of each row, up to the first fault.
    #[inline]
    pub fn try_for_each(
        self,
        mut push: impl FnMut(usize, Option<&[u8]>) -> Result<(), Misfit>,
    ) -> Result<(), CellFault> {
        for (row, cell) in self.iter().enumerate() {
            if let Some(fault) = push(row, cell).err().and_then(|misfit| fault(row, misfit)) {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Each cell's bytes, where [`Cells::any_null`] is false.
    #[must_use]
    #[inline]
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| slice(bytes, *span))
    }
}

#[inline]
fn slice(bytes: &[u8], span: Span) -> &[u8] {
    &bytes[span.start as usize..][..span.length as usize]
}

/// Cells that are written one after another.
#[derive(Default)]
pub struct CellBuffer {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    any_null: bool,
}

impl CellBuffer {
    /// Adds a cell, `None` for NULL.
    #[inline]
    pub fn push(&mut self, cell: Option<&[u8]>) -> Result<(), Misfit> {
        let Some(cell) = cell else {
            self.push_null();
            return Ok(());
        };
        self.write(|to| {
            to.extend_from_slice(cell);
            Ok(())
        })
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.any_null = true;
        self.spans.push(Span::NULL);
    }

    /// Adds a cell of what `render` appends; NULL where the caller's options make it that.
    #[inline]
    pub fn render(
        &mut self,
        render: impl FnOnce(&mut Vec<u8>) -> Result<(), Misfit>,
    ) -> Result<(), CellFault> {
        let Err(misfit) = self.write(render) else { return Ok(()) };
        if let Some(fault) = fault(self.spans.len(), misfit) {
            return Err(fault);
        }
        self.push_null();
        Ok(())
    }

    #[inline]
    fn write(&mut self, render: impl FnOnce(&mut Vec<u8>) -> Result<(), Misfit>) -> Result<(), Misfit> {
        let start = self.bytes.len();
        render(&mut self.bytes)?;
        let too_large = |_| Misfit::fault("the values of one chunk of rows hold over 4 GiB");
        let length = u32::try_from(self.bytes.len() - start).map_err(too_large)?;
        self.spans.push(Span::new(u32::try_from(start).map_err(too_large)?, length));
        Ok(())
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> Cells<'_> {
        Cells::new(&self.bytes, &self.spans, self.any_null)
    }

    /// Forgets the cells.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.any_null = false;
    }
}

/// Rows that a chunk holds at most.
const ROWS: usize = 1024;

/// The distance between two columns' spans: not a power of two, or all columns would share one cache set.
const STRIDE: usize = ROWS + 8;

/// The spans of a chunk of rows, column by column: a first pass fills them, a second hands each column's
/// cells to its decoder.
#[derive(Debug)]
pub struct Spans {
    by_column: Vec<Span>,
    any_null: Vec<bool>,
    rows: usize,
}

impl Spans {
    /// Room for one chunk of `columns` columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { by_column: vec![Span::NULL; columns * STRIDE], any_null: vec![false; columns], rows: 0 }
    }

    /// The rows in the chunk.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows that the chunk can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        ROWS
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.any_null.len()
    }

    /// Sets the cell of `column` in the row that [`Spans::end_row`] will end.
    #[inline]
    pub fn set(&mut self, column: usize, span: Span) {
        self.by_column[column * STRIDE + self.rows] = span;
        self.any_null[column] |= span.is_null();
    }

    /// Ends the row whose cells have all been set.
    #[inline]
    pub fn end_row(&mut self) {
        debug_assert!(self.rows < ROWS);
        self.rows += 1;
    }

    /// The cells of `column` in `bytes`.
    #[must_use]
    pub fn column<'a>(&'a self, column: usize, bytes: &'a [u8]) -> Cells<'a> {
        let from = column * STRIDE;
        Cells::new(bytes, &self.by_column[from..from + self.rows], self.any_null[column])
    }

    /// Where the cell of `column` in the first row lies.
    #[must_use]
    #[inline]
    pub fn first(&self, column: usize) -> Span {
        self.by_column[column * STRIDE]
    }

    /// Empties the chunk.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.any_null.fill(false);
    }
}
