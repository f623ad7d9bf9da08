//! The columns of one dtype, which become the rows of one array.

use longshore_core::memory::{NoRoom, zeros};

/// Rows that there is room for at first, at most, and their bytes.
const FIRST_ROWS: usize = 64;
const FIRST_BYTES: usize = 16 << 10;

/// A block that has so many bytes grows by an eighth, and a smaller one to its double.
const LARGE: usize = 1 << 20;

/// What is moved at once when a block grows: so much is held twice.
const PIECE: usize = 256 << 10;

/// Fields of one size, column by column, each column with room for as many rows.
#[derive(Debug)]
pub(crate) struct Block {
    /// Zeros of the system's own where nothing is written: memory that is held only once it is.
    memory: Vec<u8>,
    columns: usize,
    /// The bytes of a field.
    size: usize,
    room: usize,
}

impl Block {
    pub(crate) fn new(columns: usize, size: usize) -> Self {
        Self { memory: Vec::new(), columns, size, room: 0 }
    }

    /// Makes room for row `row`.
    #[inline]
    pub(crate) fn reach(&mut self, row: usize) -> Result<(), NoRoom> {
        if row < self.room {
            return Ok(());
        }
        self.grow(more_room(self.room, self.columns * self.size))
    }

    /// Makes room for `room` rows.
    pub(crate) fn grow(&mut self, room: usize) -> Result<(), NoRoom> {
        let mut memory = zeros(self.columns * room * self.size)?;
        let (before, after) = (self.room * self.size, room * self.size);
        for column in (0..self.columns).rev() {
            let (start, moved) = (column * before, column * after);
            while self.memory.len() > start {
                let from = self.memory.len().saturating_sub(PIECE).max(start);
                let piece = &self.memory[from..];
                memory[moved + from - start..][..piece.len()].copy_from_slice(piece);
                self.memory.truncate(from);
                self.memory.shrink_to_fit();
            }
        }
        (self.memory, self.room) = (memory, room);
        Ok(())
    }

    /// A field of a row that there is room for.
    #[inline]
    pub(crate) fn field(&mut self, column: usize, row: usize) -> &mut [u8] {
        let start = (column * self.room + row) * self.size;
        &mut self.memory[start..start + self.size]
    }

    /// The columns of `rows` rows, one right after the other.
    pub(crate) fn finish(mut self, rows: usize) -> Vec<u8> {
        let (room, used) = (self.room * self.size, rows * self.size);
        if used < room {
            for column in 1..self.columns {
                self.memory.copy_within(column * room..column * room + used, column * used);
            }
        }
        self.memory.truncate(self.columns * used);
        self.memory
    }
}

/// A number of rows beyond `room`; one takes `width` bytes.
fn more_room(room: usize, width: usize) -> usize {
    let least = (FIRST_BYTES / width.max(1)).clamp(1, FIRST_ROWS);
    let more = if room * width < LARGE { room } else { room / 8 };
    room + more.max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fields of three bytes hold: their column, and their row.
    fn bytes(column: usize, row: usize) -> [u8; 3] {
        let [a, b, ..] = row.to_le_bytes();
        [u8::try_from(column).unwrap(), a, b]
    }

    fn filled(columns: usize, rows: usize, expected: usize) -> Vec<u8> {
        let mut block = Block::new(columns, 3);
        block.grow(expected).unwrap();
        for row in 0..rows {
            block.reach(row).unwrap();
            for column in 0..columns {
                let field = block.field(column, row);
                assert_eq!(field, [0; 3]);
                field.copy_from_slice(&bytes(column, row));
            }
        }
        block.finish(rows)
    }

    #[test]
    fn columns_follow_one_another_however_many_rows_were_expected() {
        for (columns, rows) in
            [(0, 5), (1, 0), (1, 1), (1, 64), (1, 65), (3, 1), (3, 63), (3, 200), (2, 9000)]
        {
            let right: Vec<u8> =
                (0..columns).flat_map(|column| (0..rows).flat_map(move |row| bytes(column, row))).collect();
            for expected in [0, 1, rows, rows + 1, 10 * rows] {
                assert_eq!(filled(columns, rows, expected), right, "{columns} x {rows}, {expected} expected");
            }
        }
    }

    #[test]
    fn room_grows_by_what_it_is_worth() {
        assert_eq!([0, 64, 128].map(|room| more_room(room, 8)), [64, 128, 256]);
        assert_eq!([0, 1, 2].map(|room| more_room(room, LARGE)), [1, 2, 3]);
        assert_eq!(more_room(8 << 20, LARGE >> 20), 9 << 20);
        assert_eq!(more_room(0, 0), FIRST_ROWS);
    }

    #[test]
    fn long_columns_move_in_pieces() {
        let rows = PIECE + 7;
        let block = filled(2, rows, 0);
        assert_eq!(block.len(), 6 * rows);
        for (column, row) in [(0, 0), (0, rows - 1), (1, 0), (1, PIECE / 3), (1, rows - 1)] {
            assert_eq!(block[(column * rows + row) * 3..][..3], bytes(column, row));
        }
    }
}
