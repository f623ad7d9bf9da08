//! What an asyncio transport receives into while asyncpg speaks to the server: rows that are asked for are kept, and every
//! other byte goes on to asyncpg's own protocol.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_core::Error;
use longshore_numpy_records::{Piece, Splitter, Wanted};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};
use pyo3::{PyTraverseError, PyVisit, ffi};

use crate::block::Block;
use crate::taker::{Kept, PyDescription, SharedTaker};
use longshore_interpreter::raise;

/// Large enough for what a socket has at once, small enough to stay in the processor's second cache.
const CAPACITY: usize = 256 << 10;

/// With less room than this at the end, what is left is moved to the beginning.
const ROOM: usize = 64 << 10;

/// A result that has brought this much is long.
const LONG: usize = 1 << 20;

/// The same where it is expected to be, as the one before it was: the first piece has come.
const EXPECTED_LONG: usize = 8 << 10;

/// From here on, an expected result is worth it.
const WORTH: usize = 96 << 10;

/// The low-water mark at most.
const MOST: usize = 128 << 10;

/// The same at least: a server sends half of it at a time.
const LEAST: usize = 16 << 10;

/// The buffer between a transport and asyncpg's protocol.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Port {
    state: Mutex<State>,
}

struct State {
    block: Py<Block>,
    /// All of the block.
    view: Py<PyAny>,
    capacity: usize,
    /// What has been received and is neither a whole row nor asyncpg's.
    held: Range<usize>,
    splitter: Splitter,
    rows: Option<SharedTaker>,
    /// Takes the next statement's description.
    description: Option<Py<PyDescription>>,
    /// asyncpg's `data_received`; `None` once the connection is lost.
    receive: Option<Py<PyAny>>,
    /// Told how much to wait for at once where much is still to come, and 0 when no more is.
    low_water: Option<Py<PyAny>>,
    /// What it has been told.
    mark: usize,
    /// Bytes of this exchange.
    received: usize,
    /// Bytes that it may have in all; 0 where no one knows.
    expected: usize,
    /// What is to be received before waiting is worth it.
    threshold: usize,
}

impl Port {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Port {
    #[new]
    fn new(py: Python<'_>, receive: Py<PyAny>, low_water: Py<PyAny>) -> PyResult<Self> {
        let (block, view) = new_block(py, CAPACITY)?;
        let splitter = Splitter::default();
        let state = State {
            block,
            view,
            capacity: CAPACITY,
            held: 0..0,
            splitter,
            rows: None,
            description: None,
            receive: Some(receive),
            low_water: Some(low_water),
            mark: 0,
            received: 0,
            expected: 0,
            threshold: 0,
        };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Where the transport puts what it receives next (`asyncio.BufferedProtocol`).
    fn get_buffer<'py>(&self, py: Python<'py>, sizehint: isize) -> PyResult<Bound<'py, PyAny>> {
        // The whole of what is free: the rest of a row comes sooner.
        let _ = sizehint;
        let mut state = self.state();
        state.make_room(py)?;
        let view = state.view.bind(py);
        if state.held.end == 0 {
            return Ok(view.clone());
        }
        let (from, until) = (state.held.end.cast_signed(), state.capacity.cast_signed());
        view.get_item(PySlice::new(py, from, until, 1))
    }

    /// Takes the bytes that have been put there.
    fn buffer_updated(&self, py: Python<'_>, nbytes: usize) -> PyResult<()> {
        let mut state = self.state();
        let others = state.take(py, nbytes)?;
        let receive = state.receive.as_ref().map(|receive| receive.clone_ref(py));
        let low_water = state.low_water(py);
        // Both may call back.
        drop(state);
        if let Some((low_water, mark)) = low_water {
            low_water.call1(py, (mark,))?;
        }
        match (others, receive) {
            (Some(others), Some(receive)) => receive.call1(py, (others,)).map(drop),
            _ => Ok(()),
        }
    }

    /// Keeps the rows of the next exchange; false where those of one under way are kept.
    ///
    /// `expected` is how many bytes may come; 0 where no one knows.
    // The interpreter gives a value.
    #[allow(clippy::needless_pass_by_value)]
    fn keep(&self, rows: Kept<'_>, expected: usize) -> bool {
        let mut state = self.state();
        if state.rows.is_some() {
            return false;
        }
        state.rows = Some(rows.shared());
        state.received = 0;
        state.expected = expected;
        state.threshold = if expected > WORTH { EXPECTED_LONG } else { LONG };
        true
    }

    /// Bytes that have come since rows were kept.
    #[getter]
    fn received(&self) -> usize {
        self.state().received
    }

    /// Waiting has brought too little: it is over until as much has come again as makes a result long.
    fn hurry(&self) {
        let mut state = self.state();
        state.mark = 0;
        state.expected = 0;
        state.threshold = state.received + LONG;
    }

    /// Has `description` change the description of the next exchange's statement on its way to asyncpg.
    fn describe(&self, description: Py<PyDescription>) {
        self.state().description = Some(description);
    }

    /// Keeps no more rows, and changes no description: asyncpg gets what still comes.
    fn keep_none(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state();
        (state.rows, state.description) = (None, None);
        let low_water = state.low_water(py);
        drop(state);
        low_water.map_or(Ok(()), |(low_water, mark)| low_water.call1(py, (mark,)).map(drop))
    }

    /// Lets asyncpg's protocol go.
    fn close(&self) {
        let mut state = self.state();
        let held =
            (state.receive.take(), state.low_water.take(), state.rows.take(), state.description.take());
        drop(state);
        drop(held);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock() {
            Ok(state) => visit.call(&state.receive).and_then(|()| visit.call(&state.low_water)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl State {
    /// Leaves room at the end of the block.
    fn make_room(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.held.is_empty() {
            self.held = 0..0;
            // A long message is over.
            return if self.capacity > CAPACITY { self.replace(py, CAPACITY) } else { Ok(()) };
        }
        if self.capacity - self.held.end >= ROOM {
            return Ok(());
        }
        if self.held.len() + ROOM <= self.capacity {
            self.block.get().shift(py, self.held.clone(), self.block.get());
            self.held = 0..self.held.len();
            return Ok(());
        }
        // With what really arrives, and not with what a length word claims.
        self.replace(py, self.capacity * 2)
    }

    fn replace(&mut self, py: Python<'_>, capacity: usize) -> PyResult<()> {
        let (block, view) = new_block(py, capacity)?;
        self.block.get().shift(py, self.held.clone(), block.get());
        self.held = 0..self.held.len();
        (self.block, self.view, self.capacity) = (block, view, capacity);
        Ok(())
    }

    /// How much the transport should wait for at once, where that has changed, and who is to be told.
    fn low_water(&mut self, py: Python<'_>) -> Option<(Py<PyAny>, usize)> {
        let mark = self.worth_waiting_for();
        if mark == self.mark {
            return None;
        }
        self.mark = mark;
        if mark == 0 {
            // If more comes than was expected, it is long again.
            self.expected = 0;
            self.threshold = self.received + LONG;
        }
        self.low_water.as_ref().map(|low_water| (low_water.clone_ref(py), mark))
    }

    /// Half of what is expected, so that an end which was foreseen waits for nothing; 0 where that is little.
    fn worth_waiting_for(&self) -> usize {
        if self.rows.is_none() || self.received < self.threshold {
            return 0;
        }
        if self.expected == 0 {
            return MOST;
        }
        let half = self.expected.saturating_sub(self.received) / 2;
        if half < LEAST { 0 } else { half.min(MOST) }
    }

    /// Keeps the rows among what has come; gives the other bytes.
    fn take<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if count > self.capacity - self.held.end {
            return Err(raise(Error::internal("the event loop has received more than there was room for")));
        }
        self.held.end += count;
        self.received += count;
        let block = self.block.clone_ref(py);
        block.get().read(py, |bytes| {
            let mut others = Others::default();
            self.split(&bytes[..self.held.end], &mut others).map_err(raise)?;
            others.into_bytes(py, bytes)
        })
    }

    fn split(&mut self, bytes: &[u8], others: &mut Others) -> Result<(), Error> {
        let shared = self.rows.clone();
        let mut rows = shared.as_ref().map(|rows| rows.lock().unwrap_or_else(PoisonError::into_inner));
        while let Some(piece) = self
            .splitter
            .next(
                bytes,
                self.held.start,
                Wanted { rows: rows.is_some(), descriptions: self.description.is_some() },
            )
            .map_err(|broken| Error::operational(broken.to_string()))?
        {
            match (piece, rows.as_mut()) {
                (Piece::Row(range), Some(rows)) => {
                    self.held.start = range.end;
                    rows.push(&bytes[range]);
                }
                (Piece::Description(range), _) => {
                    self.held.start = range.end;
                    let Some(description) = self.description.take() else { continue };
                    others.append(bytes, &description.get().take(&bytes[range])?);
                }
                (Piece::Row(range) | Piece::Other(range), _) => {
                    self.held.start = range.end;
                    if let Some(objects) = rows.as_mut().and_then(|rows| rows.take_objects()) {
                        others.append(bytes, &objects);
                    }
                    others.extend(bytes, range);
                    if self.splitter.take_ready() {
                        // What comes next belongs to another request.
                        rows = None;
                        (self.rows, self.description) = (None, None);
                    }
                }
            }
        }
        if let Some(objects) = rows.as_mut().and_then(|rows| rows.take_objects()) {
            others.append(bytes, &objects);
        }
        Ok(())
    }
}

/// What goes on to asyncpg: most often one run of the block, which is then copied once.
#[derive(Default)]
struct Others {
    run: Range<usize>,
    spilt: Vec<u8>,
}

impl Others {
    fn extend(&mut self, bytes: &[u8], range: Range<usize>) {
        if self.run.is_empty() && self.spilt.is_empty() {
            self.run = range;
        } else if self.run.end == range.start && self.spilt.is_empty() {
            self.run.end = range.end;
        } else {
            self.append(bytes, &bytes[range]);
        }
    }

    fn append(&mut self, bytes: &[u8], more: &[u8]) {
        let run = std::mem::take(&mut self.run);
        self.spilt.extend_from_slice(&bytes[run]);
        self.spilt.extend_from_slice(more);
    }

    fn into_bytes<'py>(self, py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let others = if self.spilt.is_empty() { &bytes[self.run] } else { &self.spilt };
        (!others.is_empty()).then(|| copied(py, others)).transpose()
    }
}

fn new_block(py: Python<'_>, capacity: usize) -> PyResult<(Py<Block>, Py<PyAny>)> {
    let block = Bound::new(py, Block::new(capacity)?)?;
    let view = PyMemoryView::from(block.as_any())?;
    Ok((block.unbind(), view.into_any().unbind()))
}

/// The same as `PyBytes::new`, which panics without memory.
#[allow(unsafe_code)]
fn copied<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: the bytes are as many, and are copied at once; the call gives a new reference, or null and an exception.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len().cast_signed());
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}
