//! What SQLite calls while it works or waits, so that every wait looks at the caller's watch.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;
use longshore_core::{Error, Watch};

/// Steps of SQLite's machine between two calls: about a tenth of a millisecond.
const STEPS: c_int = 20_000;

/// The caller's signals are looked at no more often than this.
const EVERY: Duration = Duration::from_millis(50);

/// The longest sleep before a lock is tried again.
const LONGEST_SLEEP: Duration = Duration::from_millis(25);

/// What the callbacks of one connection share with it.
pub(super) struct Watching(Mutex<State>);

struct State {
    watch: Watch,
    last: Instant,
    /// How long to wait for a lock.
    patience: Duration,
    waiting_since: Option<Instant>,
    /// Why a statement was stopped.
    stopped: Option<Error>,
    /// Whether a statement goes on where it would be stopped.
    is_held: bool,
}

impl Watching {
    pub(super) fn new(watch: Watch, patience: Duration) -> Self {
        let state = State {
            watch,
            last: Instant::now(),
            patience,
            waiting_since: None,
            stopped: None,
            is_held: false,
        };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn attend(&self, watch: &Watch) {
        let mut state = self.state();
        state.watch = watch.clone();
        state.stopped = None;
        state.is_held = false;
    }

    /// How long to wait for a lock from here on; gives how long it was.
    pub(super) fn be_patient(&self, patience: Duration) -> Duration {
        std::mem::replace(&mut self.state().patience, patience)
    }

    /// Has statements go on where they would be stopped.
    pub(super) fn hold(&self, is_held: bool) {
        self.state().is_held = is_held;
    }

    /// Why a statement was stopped, which is now forgotten.
    pub(super) fn take_stopped(&self) -> Option<Error> {
        self.state().stopped.take()
    }

    /// Looks between two statements whether to go on, as often as within one.
    pub(super) fn look(&self) -> Option<Error> {
        self.may_work();
        self.take_stopped()
    }

    /// Has SQLite call back on `connection`.
    ///
    /// # Safety
    ///
    /// `connection` is open, and is closed before `self` goes.
    pub(super) unsafe fn install(&self, connection: *mut ffi::sqlite3) {
        let context = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: the caller's promise; both callbacks use the context as what it is.
        unsafe {
            ffi::sqlite3_progress_handler(connection, STEPS, Some(progress), context);
            ffi::sqlite3_busy_handler(connection, Some(busy), context);
        }
    }

    /// Whether to go on working.
    fn may_work(&self) -> bool {
        let mut state = self.state();
        if state.last.elapsed() < EVERY {
            return state.stopped.is_none() || state.is_held;
        }
        state.last = Instant::now();
        state.may_go_on() || state.is_held
    }

    /// Whether to try once more for a lock, after a sleep.
    fn may_wait(&self, tries: c_int) -> bool {
        let mut state = self.state();
        let since = if tries == 0 { None } else { state.waiting_since };
        let since = *state.waiting_since.insert(since.unwrap_or_else(Instant::now));
        let left = state.patience.saturating_sub(since.elapsed());
        if left.is_zero() || !state.may_go_on() {
            return false;
        }
        let sleep = Duration::from_millis(1 << tries.clamp(0, 5)).min(LONGEST_SLEEP);
        let sleep = sleep.min(left).min(state.watch.slice());
        drop(state);
        std::thread::sleep(sleep);
        true
    }
}

impl State {
    fn may_go_on(&mut self) -> bool {
        match self.watch.check() {
            Ok(()) => true,
            Err(error) => {
                self.stopped.get_or_insert(error);
                false
            }
        }
    }
}

extern "C" fn progress(context: *mut c_void) -> c_int {
    // SAFETY: `install` gave this context, which outlives the connection.
    let watching = unsafe { &*context.cast::<Watching>() };
    c_int::from(!watching.may_work())
}

extern "C" fn busy(context: *mut c_void, tries: c_int) -> c_int {
    // SAFETY: as above.
    let watching = unsafe { &*context.cast::<Watching>() };
    c_int::from(watching.may_wait(tries))
}
