//! In which order the batches of several parts leave.

use std::collections::VecDeque;

use arrow_array::RecordBatch;

use super::Delivery;

/// Batches that have come and not yet left.
pub(super) enum Order {
    /// The parts in turn: what each has waiting, and whether it has ended.
    Turns { waiting: VecDeque<Turn> },
    /// Whatever came first.
    Arrival(VecDeque<RecordBatch>),
}

/// One part's batches.
#[derive(Default)]
pub(super) struct Turn {
    part: usize,
    batches: VecDeque<RecordBatch>,
    ended: bool,
}

impl Order {
    pub(super) fn new(delivery: Delivery, parts: usize) -> Self {
        match delivery {
            Delivery::Ordered => {
                Self::Turns { waiting: (0..parts).map(|part| Turn { part, ..Turn::default() }).collect() }
            }
            Delivery::Interleaved => Self::Arrival(VecDeque::new()),
        }
    }

    pub(super) fn add(&mut self, part: usize, batch: RecordBatch) {
        match self {
            Self::Turns { waiting } => {
                if let Some(turn) = waiting.iter_mut().find(|turn| turn.part == part) {
                    turn.batches.push_back(batch);
                }
            }
            Self::Arrival(batches) => batches.push_back(batch),
        }
    }

    pub(super) fn end(&mut self, part: usize) {
        if let Self::Turns { waiting } = self
            && let Some(turn) = waiting.iter_mut().find(|turn| turn.part == part)
        {
            turn.ended = true;
        }
    }

    /// The batch that may leave now.
    pub(super) fn next(&mut self) -> Option<RecordBatch> {
        match self {
            Self::Arrival(batches) => batches.pop_front(),
            Self::Turns { waiting } => loop {
                let turn = waiting.front_mut()?;
                if let Some(batch) = turn.batches.pop_front() {
                    return Some(batch);
                }
                if !turn.ended {
                    return None;
                }
                waiting.pop_front();
            },
        }
    }
}
