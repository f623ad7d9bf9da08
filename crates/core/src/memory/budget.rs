//! The budget of memory of one read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef, RecordBatch};

use super::system::{Free, free, held_bytes};
use super::{OutOfMemory, reserve};
use crate::{Error, Kind, Result};

/// A result that grows by so much looks at what the system has left; by less where that is little.
const STEP: usize = 64 << 20;

/// The growth before the first look, and the least between two.
const FIRST_STEP: usize = 16 << 20;
const LEAST_STEP: usize = 4 << 20;

/// Less than that is not room enough to go on, and to say so.
const FLOOR: u64 = 32 << 20;

/// The most that a whole result may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The memory that the system has left.
    Auto,
    /// So many bytes.
    Bytes(usize),
    /// No limit.
    #[default]
    Unlimited,
}

/// The limit of one read, and how far its result has grown; shared by its sessions.
#[derive(Debug)]
pub struct Budget {
    limit: MemoryLimit,
    grown: AtomicUsize,
    /// The growth at which the next look is due.
    due: AtomicUsize,
    /// Of a stream, whose batches may be gone: what the process held at the first look.
    held_at_first: Option<OnceLock<u64>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MemoryLimit::default())
    }
}

impl Budget {
    /// The budget of a result that has not begun.
    #[must_use]
    pub fn new(limit: MemoryLimit) -> Self {
        let due = if limit == MemoryLimit::Auto { FIRST_STEP } else { usize::MAX };
        Self { limit, grown: AtomicUsize::new(0), due: AtomicUsize::new(due), held_at_first: None }
    }

    /// The budget of a stream: what has gone through it counts only where the process has grown meanwhile.
    #[must_use]
    pub fn of_stream(limit: MemoryLimit) -> Self {
        Self { held_at_first: Some(OnceLock::new()), ..Self::new(limit) }
    }

    /// Fails where the whole result so far, which holds `held` bytes, is over the caller's limit.
    pub fn hold(&self, held: usize) -> Result<()> {
        match self.limit {
            MemoryLimit::Bytes(limit) if held > limit => Err(Error::new(
                Kind::Memory,
                format!("the result holds more than the memory_limit of {limit} bytes"),
            )
            .with_hint(
                "raise memory_limit, select fewer columns or rows, or use return_type=\"arrow_stream\"",
            )),
            _ => Ok(()),
        }
    }

    /// Notes that the result has grown by `bytes`; fails where memory has run out, or is about to.
    #[inline]
    pub fn grow(&self, bytes: usize) -> Result<()> {
        reserve::checkpoint()?;
        let grown = self.grown.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if grown < self.due.load(Ordering::Relaxed) { Ok(()) } else { self.look(grown, free(), held_bytes) }
    }

    /// Fails where `bytes` in one piece are more than the system has left.
    pub fn ask(&self, bytes: usize) -> Result<()> {
        if self.limit != MemoryLimit::Auto || bytes < FIRST_STEP {
            return Ok(());
        }
        match free() {
            Some(free) if free.bytes < FLOOR.saturating_add(bytes as u64) => Err(too_little(free)),
            _ => Ok(()),
        }
    }

    /// Whether what the system lacks may be the result's.
    fn has_grown(&self, held: impl Fn() -> u64) -> bool {
        let Some(first) = &self.held_at_first else { return true };
        let held = held();
        held >= first.get_or_init(|| held).saturating_add(FLOOR)
    }

    #[cold]
    fn look(&self, grown: usize, free: Option<Free>, held: impl Fn() -> u64) -> Result<()> {
        let Some(free) = free else {
            // A system that does not tell now will not tell later.
            self.due.store(usize::MAX, Ordering::Relaxed);
            return Ok(());
        };
        let has_grown = self.has_grown(held);
        if free.bytes < FLOOR && has_grown {
            return Err(too_little(free));
        }
        let quarter = usize::try_from(free.bytes / 4).unwrap_or(STEP);
        self.due.store(grown.saturating_add(quarter.clamp(LEAST_STEP, STEP)), Ordering::Relaxed);
        Ok(())
    }
}

#[cold]
fn too_little(free: Free) -> Error {
    let left = free.bytes >> 20;
    Error::new(Kind::Memory, format!("the result does not fit: {} leaves {left} MiB", free.of)).with_hint(
        format!("{}; a number of bytes, or None, replaces what \"auto\" has found", OutOfMemory::HINT),
    )
}

/// The bytes that the rows of a batch take, of buffers that may hold others', too: those of a message of Arrow's are one.
#[must_use]
pub fn rows_size(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(values_size).sum()
}

/// The bytes that the values of a column take.
#[must_use]
pub fn values_size(column: &ArrayRef) -> usize {
    // A type without a count of its own is taken as it lies in memory.
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(bytes: u64) -> Free {
        Free { bytes, of: "the machine" }
    }

    #[test]
    fn looks_come_sooner_where_little_is_left() {
        let budget = Budget::new(MemoryLimit::Auto);
        budget.look(100, Some(left(1 << 40)), || 0).unwrap();
        assert_eq!(budget.due.load(Ordering::Relaxed), 100 + STEP);
        budget.look(0, Some(left(64 << 20)), || 0).unwrap();
        assert_eq!(budget.due.load(Ordering::Relaxed), 16 << 20);
        let error = budget.look(0, Some(left(FLOOR - 1)), || 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Memory);
        assert_eq!(error.message(), "the result does not fit: the machine leaves 31 MiB");
        assert!(
            error.hint().is_some_and(|hint| hint.contains("memory_limit") && hint.contains("arrow_stream"))
        );
        budget.look(0, None, || 0).unwrap();
        assert_eq!(budget.due.load(Ordering::Relaxed), usize::MAX);
    }

    #[test]
    fn a_stream_is_stopped_only_where_the_process_grows_with_it() {
        let budget = Budget::of_stream(MemoryLimit::Auto);
        budget.look(0, Some(left(0)), || 100).unwrap();
        budget.look(1 << 40, Some(left(0)), || 99 + FLOOR).unwrap();
        assert_eq!(budget.look(1 << 40, Some(left(0)), || 100 + FLOOR).unwrap_err().kind(), Kind::Memory);
    }

    #[test]
    fn a_number_is_the_only_limit() {
        let budget = Budget::new(MemoryLimit::Bytes(10));
        budget.grow(1 << 40).unwrap();
        budget.hold(10).unwrap();
        assert_eq!(budget.hold(11).unwrap_err().kind(), Kind::Memory);
        Budget::default().hold(usize::MAX).unwrap();
    }
}
