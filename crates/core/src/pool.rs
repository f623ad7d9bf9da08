//! Sessions that outlive their reads, and a bound on their number.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::source::{Direct, Lease, Reservation, SessionFactory, Source};
use crate::{Deadline, Error, Kind, Process, Result, Session, lock};

/// A session that does not answer for so long is replaced.
const CLEANING: Duration = Duration::from_secs(2);

/// At most `size` sessions, for any number of reads.
///
/// Reads reserve before they open, and a session is opened only where none is idle. So the sessions of reads and those
/// that are idle are never more than `size` together.
pub struct Pool {
    size: usize,
    opener: Arc<Direct>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Sessions that no read has.
    idle: Vec<Box<dyn Session>>,
    /// How many sessions reads have, or may open.
    reserved: usize,
    /// Reads that wait, in their order: one that wants many must not be overtaken for ever.
    waiting: VecDeque<u64>,
    /// The number of the next read that waits.
    next: u64,
    closed: bool,
    /// A forked child has none of the sessions.
    process: Process,
}

impl State {
    fn new(closed: bool) -> Self {
        let process = Process::current();
        Self { idle: Vec::new(), reserved: 0, waiting: VecDeque::new(), next: 0, closed, process }
    }
}

impl Pool {
    /// A pool of at most `size` sessions of `opener`, none of them open yet.
    #[must_use]
    pub fn new(opener: Arc<Direct>, size: usize) -> Self {
        Self { size, opener, state: Mutex::new(State::new(false)), changed: Condvar::new() }
    }

    /// The state of this process: what a forked child has inherited is its parent's, and the child only forgets it.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        if !state.process.is_current() {
            *state = State::new(state.closed);
        }
        state
    }

    /// How many sessions reads have, or may open.
    pub fn in_use(&self) -> usize {
        self.state().reserved
    }

    /// How many sessions are open that no read has.
    pub fn idle(&self) -> usize {
        self.state().idle.len()
    }

    /// Closes the idle sessions; those in use are closed when their reads end.
    pub fn close(&self) {
        let idle = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.idle)
        };
        self.changed.notify_all();
        drop(idle);
    }

    /// Waits until `count` sessions are free, and takes them all at once.
    fn acquire(self: &Arc<Self>, count: usize, deadline: &Deadline) -> Result<PoolLease> {
        let place = Place::last(self);
        loop {
            if let Some(lease) = self.try_acquire(count, place.number)? {
                return Ok(lease);
            }
            // Not under the lock: a signal's handler may use the pool.
            deadline.check().map_err(full)?;
            let waits = |state: &mut State| !state.closed && !self.has_room(state, count, place.number);
            drop(self.changed.wait_timeout_while(self.state(), deadline.slice(), waits));
        }
    }

    fn has_room(&self, state: &State, count: usize, number: u64) -> bool {
        state.waiting.front() == Some(&number) && state.reserved + count <= self.size
    }

    fn try_acquire(self: &Arc<Self>, count: usize, number: u64) -> Result<Option<PoolLease>> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::interface("the pool is closed").with_hint("make a new one"));
        }
        if !self.has_room(&state, count, number) {
            return Ok(None);
        }
        state.reserved += count;
        Ok(Some(PoolLease { pool: self.clone(), count: AtomicUsize::new(count), process: state.process }))
    }

    fn pop(&self) -> Option<Box<dyn Session>> {
        self.state().idle.pop()
    }

    /// An idle session that answers, cleaned of what earlier reads left in it; otherwise a new one.
    fn session(&self, deadline: &Deadline) -> Result<Box<dyn Session>> {
        while let Some(mut session) = self.pop() {
            session.set_deadline(&deadline.at_most(CLEANING));
            match session.reset() {
                Ok(()) => {
                    session.set_deadline(deadline);
                    return Ok(session);
                }
                // Python tells of a Ctrl-C only once.
                Err(error) if matches!(error.kind(), Kind::Interrupted | Kind::Cancelled) => {
                    return Err(error);
                }
                Err(_) => deadline.check()?,
            }
        }
        self.opener.open(deadline)
    }
}

/// The error of a wait for a session of a pool.
fn full(error: Error) -> Error {
    if error.kind() != Kind::Timeout {
        return error;
    }
    error
        .within("all sessions of the pool are in use")
        .with_hint("close the streams that hold them, make the pool larger, or give a longer timeout")
}

/// One read's place among those that wait.
struct Place<'a> {
    pool: &'a Pool,
    number: u64,
}

impl<'a> Place<'a> {
    fn last(pool: &'a Pool) -> Self {
        let mut state = pool.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(number);
        Self { pool, number }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pool.state().waiting.retain(|number| *number != self.number);
        self.pool.changed.notify_all();
    }
}

/// The sessions that one read may take of a pool.
struct PoolLease {
    pool: Arc<Pool>,
    count: AtomicUsize,
    process: Process,
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        self.keep_only(0);
    }
}

impl Lease for PoolLease {
    fn release(&self, session: Box<dyn Session>) {
        let mut state = self.pool.state();
        if session.is_usable() && !state.closed && state.process == self.process {
            state.idle.push(session);
        }
    }
}

impl SessionFactory for PoolLease {
    fn keep_only(&self, count: usize) {
        let before = self.count.fetch_min(count, Ordering::Relaxed);
        let mut state = self.pool.state();
        if state.process == self.process {
            state.reserved -= before.saturating_sub(count);
        }
        drop(state);
        self.pool.changed.notify_all();
    }

    fn open(&self, deadline: &Deadline) -> Result<Box<dyn Session>> {
        self.pool.session(deadline)
    }
}

thread_local! {
    /// The pools whose sessions this thread's own writes have, and how many, while the data is asked for.
    static HELD: RefCell<Vec<(*const Pool, usize)>> = const { RefCell::new(Vec::new()) };
}

/// The session that one write of this thread has of a pool. The thread cannot wait for it.
pub struct Hold(*const Pool);

impl Hold {
    /// How many sessions of `pool` the writes have that this thread is in.
    fn of(pool: &Pool) -> usize {
        HELD.with_borrow(|held| {
            held.iter().filter(|(of, _)| ptr::eq(*of, pool)).map(|(_, count)| count).sum()
        })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| {
            let last = held.iter().rposition(|(of, _)| ptr::eq(*of, self.0));
            last.map(|last| held.remove(last));
        });
    }
}

impl Source for Arc<Pool> {
    fn hold(&self, sessions: usize) -> Option<Hold> {
        let pool = Arc::as_ptr(self);
        HELD.with_borrow_mut(|held| held.push((pool, sessions)));
        Some(Hold(pool))
    }

    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation> {
        let free = self.size.saturating_sub(Hold::of(self));
        if free == 0 {
            return Err(Error::interface(
                "the write that this data is for has all sessions of the pool, and waits for the data",
            )
            .with_hint("make the pool larger, or read the data from another one"));
        }
        let count = count.min(free);
        let lease = Arc::new(self.acquire(count, deadline)?);
        let first = lease.open(deadline)?;
        Ok(Reservation {
            first,
            lease: lease.clone(),
            factory: lease,
            most: count,
            begins: false,
            is_own: false,
        })
    }
}
