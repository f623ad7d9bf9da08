//! Rows -> the memory of one array of records.

use std::mem::take;

use longshore_core::Error;
use longshore_core::memory::{Budget, MemoryLimit, OutOfMemory, try_reserve, zeros};
use longshore_postgres::{HEADER, RowSink};

use crate::step::Step;
use crate::{Failure, Fault};

/// The length word of NULL.
const NULL: u32 = u32::MAX;

/// The memory that is asked of the system at most for rows that may not come.
const MOST_EXPECTED: usize = 256 << 20;

/// A result on its way into NumPy's memory.
#[derive(Debug)]
pub struct Rows {
    steps: Vec<Step>,
    /// Zeros of the system's own where nothing is written: memory that is held only once it is.
    memory: Vec<u8>,
    /// The bytes of a record.
    size: usize,
    /// The records that the memory holds.
    capacity: usize,
    count: u64,
    nulls: Vec<u64>,
    failure: Option<Failure>,
    /// Rows of the columns that asyncpg decodes, for it.
    objects: Option<Vec<u8>>,
    budget: Budget,
    /// Why no more are taken, where memory is why.
    memory_error: Option<Error>,
}

impl Rows {
    /// No rows yet, of records of so many bytes; `None` where a step goes beyond them.
    #[must_use]
    pub fn new(steps: Vec<Step>, size: usize) -> Option<Self> {
        let objects = steps.iter().any(Step::is_object).then(Vec::new);
        let (nulls, budget) = (Vec::new(), Budget::new(MemoryLimit::Auto));
        steps.iter().all(|step| step.offset + step.size <= size).then_some(Self {
            steps,
            memory: Vec::new(),
            size,
            capacity: 0,
            count: 0,
            nulls,
            failure: None,
            objects,
            budget,
            memory_error: None,
        })
    }

    /// Reserves memory for so many rows, of which none may come: memory is held once it is written. Without it, what grows is
    /// copied now and then.
    pub fn expect(&mut self, rows: u64) {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        // Without memory, growing will tell.
        let _ = self.grow(rows.min(MOST_EXPECTED / self.size.max(1)));
    }

    /// The rows so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The fault of the first row that had one; none that came later is kept.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The error of what had no memory.
    pub fn memory_error(&mut self) -> Error {
        self.memory_error.take().unwrap_or_else(|| OutOfMemory.into())
    }

    fn append(&mut self, message: &[u8]) {
        let body = message.get(HEADER..).unwrap_or_default();
        // More rows than memory has addresses do not come.
        let row = usize::try_from(self.count).unwrap_or(usize::MAX);
        let reserved = try_reserve(&mut self.nulls, self.steps.len());
        if reserved.and_then(|()| self.reach(row)).is_err() {
            return self.fail(None, Fault::OutOfMemory);
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
        (self.memory, self.capacity) = (Vec::new(), 0);
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
        let start = row * self.size;
        let record = &mut self.memory[start..start + self.size];
        for (index, step) in self.steps.iter_mut().enumerate() {
            let (length, after) = rest.split_first_chunk::<4>().ok_or(BROKEN)?;
            let length = u32::from_be_bytes(*length);
            let field = &mut record[step.offset..step.offset + step.size];
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

    /// Reserves memory for row `row`.
    #[inline]
    fn reach(&mut self, row: usize) -> Result<(), OutOfMemory> {
        if row < self.capacity { Ok(()) } else { self.grow(more_rows(self.capacity, self.size)) }
    }

    /// Reserves memory for `capacity` rows.
    fn grow(&mut self, capacity: usize) -> Result<(), OutOfMemory> {
        if self.memory.is_empty() {
            self.memory = zeros(capacity * self.size)?;
        } else {
            // The system moves the pages, and copies nothing.
            let bytes = capacity * self.size;
            self.memory.try_reserve_exact(bytes - self.memory.len()).map_err(|_| OutOfMemory)?;
            self.memory.resize(bytes, 0);
        }
        self.capacity = capacity;
        Ok(())
    }

    /// The memory of the records, and the indexes of the NULLs: row times columns plus column. There are no rows afterwards.
    #[must_use]
    pub fn finish(&mut self) -> (Vec<u8>, Vec<u64>) {
        self.steps.clear();
        let rows = usize::try_from(take(&mut self.count)).unwrap_or(usize::MAX);
        let mut memory = take(&mut self.memory);
        memory.truncate(rows * self.size);
        self.capacity = 0;
        (memory, take(&mut self.nulls))
    }
}

impl RowSink for Rows {
    #[inline]
    fn push(&mut self, message: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.budget.grow(message.len()) {
            self.memory_error = Some(error);
            return self.fail(None, Fault::OutOfMemory);
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

/// The first rows that memory is reserved for, at most, and their bytes.
const FIRST_ROWS: usize = 64;
const FIRST_BYTES: usize = 16 << 10;

/// The size from which memory grows by an eighth; what is smaller grows to its double.
const LARGE: usize = 1 << 20;

/// A number of rows beyond `capacity`; one takes `width` bytes.
fn more_rows(capacity: usize, width: usize) -> usize {
    let least = (FIRST_BYTES / width.max(1)).clamp(1, FIRST_ROWS);
    let more = if capacity * width < LARGE { capacity } else { capacity / 8 };
    capacity + more.max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_grows_by_what_it_is_worth() {
        assert_eq!([0, 64, 128].map(|capacity| more_rows(capacity, 8)), [64, 128, 256]);
        assert_eq!([0, 1, 2].map(|capacity| more_rows(capacity, LARGE)), [1, 2, 3]);
        assert_eq!(more_rows(8 << 20, LARGE >> 20), 9 << 20);
        assert_eq!(more_rows(0, 0), FIRST_ROWS);
    }
}
