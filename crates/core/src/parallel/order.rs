//! In which order the batches of several parts leave.

use std::collections::VecDeque;

use arrow_array::RecordBatch;

use super::Delivery;
use crate::{Error, Result};

/// Batches that have come and not yet left.
pub(super) enum Order {
    /// The parts in turn: what each has waiting, and how many rows those that have left had.
    ByPart { waiting: VecDeque<PartQueue>, rows: u64 },
    /// Whatever came first.
    Arrival(VecDeque<RecordBatch>),
}

/// One part's batches.
#[derive(Default)]
pub(super) struct PartQueue {
    part: usize,
    batches: VecDeque<RecordBatch>,
    /// The rows that have left.
    rows: u64,
    end: Option<Result<()>>,
}

impl Order {
    pub(super) fn new(delivery: Delivery, parts: usize) -> Self {
        match delivery {
            Delivery::Ordered => {
                let waiting = (0..parts).map(|part| PartQueue { part, ..PartQueue::default() }).collect();
                Self::ByPart { waiting, rows: 0 }
            }
            Delivery::Interleaved => Self::Arrival(VecDeque::new()),
        }
    }

    pub(super) fn add(&mut self, part: usize, batch: RecordBatch) {
        match self {
            Self::ByPart { .. } => {
                if let Some(queue) = self.queue(part) {
                    queue.batches.push_back(batch);
                }
            }
            Self::Arrival(batches) => batches.push_back(batch),
        }
    }

    pub(super) fn end(&mut self, part: usize) {
        if let Some(queue) = self.queue(part) {
            queue.end = Some(Ok(()));
        }
    }

    /// Keeps the `error` of a row until the part's turn: rows before it may have errors of their own, and only then is it
    /// known which row of the whole it is.
    pub(super) fn fail(&mut self, part: usize, error: Error) -> Result<()> {
        match self.queue(part).filter(|_| error.place().row.is_some()) {
            Some(queue) => queue.end = Some(Err(error)),
            None => return Err(error),
        }
        Ok(())
    }

    fn queue(&mut self, part: usize) -> Option<&mut PartQueue> {
        match self {
            Self::ByPart { waiting, .. } => waiting.iter_mut().find(|queue| queue.part == part),
            Self::Arrival(_) => None,
        }
    }

    /// The batch that may leave now.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Arrival(batches) => Ok(batches.pop_front()),
            Self::ByPart { waiting, rows } => loop {
                let Some(queue) = waiting.front_mut() else { return Ok(None) };
                if let Some(batch) = queue.batches.pop_front() {
                    queue.rows += batch.num_rows() as u64;
                    return Ok(Some(batch));
                }
                match queue.end.take() {
                    None => return Ok(None),
                    Some(end) => end.map_err(|error| error.after(*rows))?,
                }
                *rows += queue.rows;
                waiting.pop_front();
            },
        }
    }
}
