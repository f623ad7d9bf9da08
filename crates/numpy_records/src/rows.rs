//! Rows -> the memory of one array of records, or of one block for the columns of each dtype.

use std::mem::take;

use longshore_core::Error;
use longshore_core::memory::{Budget, MemoryLimit, NoRoom, make_room, zeros};
use longshore_postgres::{HEADER, RowSink};

use crate::step::Step;
use crate::{Failure, Fault};

/// The length word of NULL.
const NULL: u32 = u32::MAX;

/// What is asked of the system at most for rows that may not come.
const MOST_EXPECTED: usize = 256 << 20;

/// What the values go into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Records of so many bytes.
    Records(usize),
    /// Blocks of these columns each. Every column is in one, and the fields of a block have one size.
    Blocks(Vec<Vec<usize>>),
}

impl Shape {
    /// Whether every one of `steps` has its place in it.
    #[must_use]
    pub fn holds(&self, steps: &[Step]) -> bool {
        match self {
            Self::Records(size) => steps.iter().all(|step| step.offset + step.size <= *size),
            Self::Blocks(groups) => {
                let mut indexes: Vec<usize> = groups.iter().flatten().copied().collect();
                indexes.sort_unstable();
                indexes.into_iter().eq(0..steps.len())
                    && groups
                        .iter()
                        .all(|group| group.windows(2).all(|pair| steps[pair[0]].size == steps[pair[1]].size))
            }
        }
    }
}

/// Where a column's fields are: in a column of a block, from so many bytes of a row's on.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    block: usize,
    column: usize,
    offset: usize,
}

/// The empty blocks of `shape`, and the place of each of `steps`. Records are a block of one column.
fn layout(steps: &[Step], shape: &Shape) -> (Vec<Block>, Vec<Place>) {
    let groups = match shape {
        Shape::Records(size) => {
            let places = steps.iter().map(|step| Place { offset: step.offset, ..Place::default() });
            return (vec![Block::new(1, *size)], places.collect());
        }
        Shape::Blocks(groups) => groups,
    };
    let mut places = vec![Place::default(); steps.len()];
    for (block, group) in groups.iter().enumerate() {
        for (column, index) in group.iter().enumerate() {
            places[*index] = Place { block, column, offset: 0 };
        }
    }
    let size = |group: &[usize]| group.first().map_or(0, |index| steps[*index].size);
    (groups.iter().map(|group| Block::new(group.len(), size(group))).collect(), places)
}

/// A result on its way into NumPy's memory.
#[derive(Debug)]
pub struct Rows {
    steps: Vec<Step>,
    blocks: Vec<Block>,
    places: Vec<Place>,
    count: u64,
    nulls: Vec<u64>,
    failure: Option<Failure>,
    /// Rows of the columns that asyncpg decodes, for it.
    objects: Option<Vec<u8>>,
    budget: Budget,
    /// Why no more are taken, where memory is why.
    no_room: Option<Error>,
}

impl Rows {
    /// No rows yet.
    ///
    /// # Panics
    /// Where `shape` does not hold `steps`.
    #[must_use]
    pub fn new(steps: Vec<Step>, shape: &Shape) -> Self {
        let (blocks, places) = layout(&steps, shape);
        let objects = steps.iter().any(Step::is_object).then(Vec::new);
        let (nulls, budget) = (Vec::new(), Budget::new(MemoryLimit::Auto));
        Self { steps, blocks, places, count: 0, nulls, failure: None, objects, budget, no_room: None }
    }

    /// Makes room for so many rows, of which none may come: memory is held once it is written. Without it, what grows is
    /// copied now and then.
    pub fn expect(&mut self, rows: u64) {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let width: usize = self.blocks.iter().map(Block::width).sum();
        for block in &mut self.blocks {
            // Without room, growing will tell.
            let _ = block.grow(rows.min(MOST_EXPECTED / width.max(1)));
        }
    }

    /// The rows so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What was wrong with the first row at fault; none that came later is kept.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The error of what had no memory.
    pub fn no_room(&mut self) -> Error {
        self.no_room.take().unwrap_or_else(|| NoRoom.into())
    }

    fn append(&mut self, message: &[u8]) {
        let body = message.get(HEADER..).unwrap_or_default();
        // More rows than memory has addresses do not come.
        let row = usize::try_from(self.count).unwrap_or(usize::MAX);
        let room = make_room(&mut self.nulls, self.steps.len());
        if room.and_then(|()| self.blocks.iter_mut().try_for_each(|block| block.reach(row))).is_err() {
            return self.fail(None, Fault::NoRoom);
        }
        let written = self.write(body, row);
        if let Err((column, fault)) = written {
            return self.fail(column, fault);
        }
        self.count += 1;
        if let Some(objects) = &mut self.objects {
            rewrite(&self.steps, body, objects);
        }
    }

    /// Keeps why no more rows are taken.
    #[cold]
    fn fail(&mut self, column: Option<usize>, fault: Fault) {
        self.failure = Some(Failure { column, row: self.count, fault });
        // What is there is of no use.
        self.nulls = Vec::new();
        self.blocks.clear();
    }

    /// Writes one row; says which column is at fault, if one is.
    #[inline]
    fn write(&mut self, body: &[u8], row: usize) -> Result<(), (Option<usize>, Fault)> {
        const BROKEN: (Option<usize>, Fault) = (None, Fault::Row);
        let columns = self.steps.len();
        let (count, mut rest) = body.split_first_chunk::<2>().ok_or(BROKEN)?;
        if usize::from(u16::from_be_bytes(*count)) != columns {
            return Err(BROKEN);
        }
        for (index, (step, place)) in self.steps.iter_mut().zip(&self.places).enumerate() {
            let (length, after) = rest.split_first_chunk::<4>().ok_or(BROKEN)?;
            let length = u32::from_be_bytes(*length);
            let field = self.blocks[place.block].field(place.column, row);
            let field = &mut field[place.offset..place.offset + step.size];
            if length == NULL {
                self.nulls.push(self.count * columns as u64 + index as u64);
                field.copy_from_slice(&step.null);
                rest = after;
                continue;
            }
            let (cell, after) = after.split_at_checked(length as usize).ok_or(BROKEN)?;
            step.write(cell, field).map_err(|fault| (Some(index), fault))?;
            rest = after;
        }
        if rest.is_empty() { Ok(()) } else { Err(BROKEN) }
    }

    /// The memory of the records or of each block, and the indexes of the NULLs: row times columns plus column. There are no rows
    /// afterwards.
    #[must_use]
    pub fn finish(&mut self) -> (Vec<Vec<u8>>, Vec<u64>) {
        self.steps.clear();
        let rows = usize::try_from(take(&mut self.count)).unwrap_or(usize::MAX);
        let memories = take(&mut self.blocks).into_iter().map(|block| block.finish(rows)).collect();
        (memories, take(&mut self.nulls))
    }
}

impl RowSink for Rows {
    #[inline]
    fn push(&mut self, message: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.budget.grow(message.len()) {
            self.no_room = Some(error);
            return self.fail(None, Fault::NoRoom);
        }
        self.append(message);
    }

    fn take_objects(&mut self) -> Option<Vec<u8>> {
        self.objects.as_mut().map(take).filter(|messages| !messages.is_empty())
    }
}

/// Appends the message of a row that [`Rows::write`] has walked over, NULL in every column but the objects.
fn rewrite(steps: &[Step], body: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend_from_slice(b"D\0\0\0\0");
    into.extend_from_slice(&body[..2]);
    let mut rest = &body[2..];
    for step in steps {
        let Some((word, after)) = rest.split_first_chunk::<4>() else { break };
        let length = u32::from_be_bytes(*word);
        let bytes = if length == NULL { 0 } else { length as usize };
        if step.is_object() {
            into.extend_from_slice(&rest[..4 + bytes]);
        } else {
            into.extend_from_slice(&NULL.to_be_bytes());
        }
        rest = &after[bytes..];
    }
    // No longer than the message that it was made of.
    let length = u32::try_from(into.len() - start - 1).unwrap_or(u32::MAX);
    into[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

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
        self.grow(more_room(self.room, self.width()))
    }

    /// The bytes of a row.
    fn width(&self) -> usize {
        self.columns * self.size
    }

    /// Makes room for `room` rows.
    pub(crate) fn grow(&mut self, room: usize) -> Result<(), NoRoom> {
        if self.columns == 1 && !self.memory.is_empty() {
            // The system moves the pages of one column, and copies nothing.
            let bytes = room * self.size;
            self.memory.try_reserve_exact(bytes - self.memory.len()).map_err(|_| NoRoom)?;
            self.memory.resize(bytes, 0);
            self.room = room;
            return Ok(());
        }
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
