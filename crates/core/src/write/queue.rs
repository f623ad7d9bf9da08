//! Pieces on their way from the one who reads the data to those who write it, and what these have to say.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::pieces::Piece;
use crate::{Error, Interrupt, Kind, Result, lock};

/// A queue of a few pieces.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// No one is to go on.
    is_over: AtomicBool,
    capacity: usize,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    /// No more pieces will come.
    is_complete: bool,
    /// Writers that are ready for pieces, and those that have written all of theirs.
    ready: usize,
    done: usize,
    /// The first failure of a writer.
    failure: Option<Error>,
}

/// The work of the reader while it waits, and for how long it may sleep in between.
pub(super) struct Waiting<'a> {
    pub(super) look: &'a mut dyn FnMut() -> Result<()>,
    pub(super) slice: Duration,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), is_over: AtomicBool::new(false), capacity }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// Puts `piece` in when fewer than that wait; fails with the failure of a writer.
    pub(super) fn put(&self, piece: Piece, waiting: &mut Waiting<'_>) -> Result<()> {
        self.wait(waiting, |state| state.pieces.len() < self.capacity)?;
        self.change(|state| state.pieces.push_back(piece));
        Ok(())
    }

    /// No more pieces will come.
    pub(super) fn complete(&self) {
        self.change(|state| state.is_complete = true);
    }

    /// Waits until so many writers are ready for pieces.
    pub(super) fn await_ready(&self, writers: usize, waiting: &mut Waiting<'_>) -> Result<()> {
        self.wait(waiting, |state| state.ready >= writers)
    }

    /// Waits until so many writers have written all of their pieces.
    pub(super) fn await_done(&self, writers: usize, waiting: &mut Waiting<'_>) -> Result<()> {
        self.wait(waiting, |state| state.done >= writers)
    }

    pub(super) fn ready(&self) -> usize {
        lock(&self.state).ready
    }

    fn wait(&self, waiting: &mut Waiting<'_>, until: impl Fn(&State) -> bool) -> Result<()> {
        loop {
            // Not under the lock: a signal's handler may take its time.
            (waiting.look)()?;
            let waits = |state: &mut State| state.failure.is_none() && !until(state);
            let waited = self.changed.wait_timeout_while(lock(&self.state), waiting.slice, waits);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            if until(&state) {
                return Ok(());
            }
        }
    }

    /// The next piece, once there is one; `None` after the last.
    pub(super) fn take(&self) -> Result<Option<Piece>> {
        let waits = |state: &mut State| state.pieces.is_empty() && !state.is_complete && self.check().is_ok();
        let waited = self.changed.wait_while(lock(&self.state), waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let piece = state.pieces.pop_front();
        drop(state);
        self.changed.notify_all();
        Ok(piece)
    }

    pub(super) fn add_ready(&self) {
        self.change(|state| state.ready += 1);
    }

    pub(super) fn add_done(&self) {
        self.change(|state| state.done += 1);
    }

    /// A writer has failed: the others stop.
    pub(super) fn fail(&self, error: Error) {
        // Those that are stopped by the first failure fail, too.
        if self.check().is_ok() {
            self.change(|state| {
                state.failure.get_or_insert(error);
            });
        }
        self.stop();
    }

    /// All writers stop, whatever they wait for.
    pub(super) fn stop(&self) {
        self.change(|state| {
            self.is_over.store(true, Ordering::Relaxed);
            state.pieces.clear();
        });
    }
}

/// The writers' waits look at the queue's end.
impl Interrupt for Queue {
    fn check(&self) -> Result<()> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Interrupted, "the write was stopped"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(look: &mut dyn FnMut() -> Result<()>) -> Waiting<'_> {
        Waiting { look, slice: Duration::from_millis(1) }
    }

    #[test]
    fn the_first_failure_is_told_and_stops_all() {
        let queue = Queue::new(1);
        queue.fail(Error::data("first"));
        queue.fail(Error::data("second"));
        assert_eq!(queue.take().err().map(|error| error.kind()), Some(Kind::Interrupted));
        let error = queue.await_done(1, &mut waiting(&mut || Ok(()))).unwrap_err();
        assert_eq!(error.message(), "first");
    }

    #[test]
    fn a_wait_ends_when_its_look_fails() {
        let queue = Queue::new(1);
        let error = queue.await_ready(1, &mut waiting(&mut || Err(Error::interface("enough")))).unwrap_err();
        assert_eq!(error.message(), "enough");
    }
}
