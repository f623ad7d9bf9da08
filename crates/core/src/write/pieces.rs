//! The data in pieces: what one session writes at a time.

use arrow_array::RecordBatch;

use crate::memory::rows_size;
use crate::{Deadline, Error, Load, Meter, Result};

/// Rows that follow one another in the data.
pub(super) struct Piece {
    pub(super) batch: RecordBatch,
    /// The number of its first row in the data.
    pub(super) first: u64,
    /// Its share of the memory of the batch that it was cut from.
    bytes: u64,
}

impl Piece {
    /// Counts it as written.
    pub(super) fn count(&self, meter: &Meter) {
        meter.add_rows(self.batch.num_rows() as u64);
        meter.add_bytes(self.bytes);
    }
}

/// Cuts batches where they have more rows than a piece may have; shorter ones are pieces as they are.
pub(super) struct Pieces<'a, I> {
    batches: I,
    load: &'a Load,
    most: Option<usize>,
    deadline: &'a Deadline,
    /// The batch that is being cut, the first row that is left of it, and its bytes.
    rest: Option<(RecordBatch, usize, u64)>,
    /// Rows of all pieces so far.
    rows: u64,
}

impl<'a, I: Iterator<Item = Result<RecordBatch>>> Pieces<'a, I> {
    /// Pieces of `batches` of the load, each of at most so many rows. Looks at `deadline` before and after each batch.
    pub(super) fn new(batches: I, load: &'a Load, most: Option<usize>, deadline: &'a Deadline) -> Self {
        Self { batches, load, most, deadline, rest: None, rows: 0 }
    }

    /// Whether there is a further batch, which is then the one that is cut.
    fn fetch(&mut self) -> Result<bool> {
        self.deadline.check()?;
        let batch = self.batches.next().transpose();
        self.deadline.check_data()?;
        batch?.map_or(Ok(false), |batch| self.begin(batch).map(|()| true))
    }

    fn begin(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_columns() != self.load.schema.fields().len() {
            return Err(Error::internal("a batch has another number of columns than its schema"));
        }
        let bytes = rows_size(&batch) as u64;
        self.rest = Some((batch, 0, bytes));
        Ok(())
    }

    fn cut(&mut self) -> Option<Piece> {
        let (batch, from, bytes) = self.rest.take()?;
        let (all, first) = (batch.num_rows(), self.rows);
        let rows = self.most.unwrap_or(all).min(all - from);
        self.rows += rows as u64;
        if rows == all {
            return Some(Piece { batch, first, bytes });
        }
        // Below the whole's bytes: it fits.
        let share = u128::from(bytes) * rows as u128 / all as u128;
        let piece = Piece { batch: batch.slice(from, rows), first, bytes: share.try_into().unwrap_or(bytes) };
        if from + rows < all {
            self.rest = Some((batch, from + rows, bytes));
        }
        Some(piece)
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for Pieces<'_, I> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_none() {
            match self.fetch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.cut().map(Ok)
    }
}

/// Where the rows that one session has written lie in the data: pieces of it, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct RowNumbers {
    /// Each piece's first row, as the session counts and as the data does.
    starts: Vec<(u64, u64)>,
    rows: u64,
}

impl RowNumbers {
    /// The next `rows` that the session writes are those from `first` on.
    pub(super) fn add(&mut self, first: u64, rows: u64) {
        let follows = self.starts.last().is_some_and(|(own, data)| data + (self.rows - own) == first);
        if !follows {
            self.starts.push((self.rows, first));
        }
        self.rows += rows;
    }

    /// `error` with the row's number in the data instead of the session's own, also where a server's words have it as a
    /// line of what went into `table`.
    pub(super) fn restore(&self, error: Error, table: &str) -> Error {
        let Some(row) = error.place().row else { return error };
        let piece = self.starts.partition_point(|(own, _)| *own <= row);
        let Some((own, data)) = piece.checked_sub(1).and_then(|piece| self.starts.get(piece)) else {
            return error;
        };
        let words = |row: u64| format!("{table}, line {}", row + 1);
        error.after(data - own).renaming(&words(row), &words(row + data - own))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::{IfExists, OwnOptions, Place, TableName};

    fn load() -> Load {
        Load {
            table: TableName { schema: None, table: "t".into() },
            schema: Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)])),
            if_exists: IfExists::Fail,
            key: Vec::new(),
            types: Vec::new(),
            own: OwnOptions::default(),
            meter: Arc::default(),
        }
    }

    fn batch(rows: i64) -> Result<RecordBatch> {
        let column = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_new(load().schema, vec![column]).map_err(|error| Error::internal(error.to_string()))
    }

    #[test]
    fn pieces_have_all_rows_in_their_order() {
        let load = load();
        let cut = |most| {
            let batches = [batch(5), batch(0), batch(2)].into_iter();
            let deadline = Deadline::never();
            let pieces = Pieces::new(batches, &load, most, &deadline);
            pieces
                .map(|piece| piece.map(|piece| (piece.first, piece.batch.num_rows())).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(cut(None), [(0, 5), (5, 0), (5, 2)]);
        assert_eq!(cut(Some(2)), [(0, 2), (2, 2), (4, 1), (5, 0), (5, 2)]);
        assert_eq!(cut(Some(5)), cut(None));
    }

    #[test]
    fn rows_have_the_number_that_they_have_in_the_data() {
        let mut numbers = RowNumbers::default();
        for (first, rows) in [(10, 5), (15, 5), (40, 1), (50, 2)] {
            numbers.add(first, rows);
        }
        assert_eq!(numbers.starts.len(), 3);
        let restored = |row| {
            let error = Error::data("odd").at(Place { row: Some(row), ..Place::default() });
            let error = numbers.restore(error.with_detail(format!("COPY t, line {}: x", row + 1)), "t");
            let row = error.place().row?;
            assert_eq!(error.detail(), Some(format!("COPY t, line {}: x", row + 1).as_str()));
            Some(row)
        };
        assert_eq!([0, 9, 10, 11, 12].map(restored), [10, 19, 40, 50, 51].map(Some));
        assert_eq!(numbers.restore(Error::data("nowhere"), "t").place().row, None);
    }
}
