//! A result that its reader takes batch by batch, from any thread, while it comes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::deadline::Idle;
use crate::{Batches, Deadline, Error, Progress, Result, Warnings, lock};

/// How long the end of a result is waited for that no one wants.
const LEFT: Duration = Duration::from_millis(50);

/// The same where the transaction fails if it is not waited for.
const KEPT: Duration = Duration::from_secs(10);

/// Ends a result that comes under `deadline`. What is left of it is thrown away; where that is much, the statement is stopped
/// on the server, later where a transaction fails by it that is not `undone` anyway.
pub fn give_up(mut batches: Box<dyn Batches>, deadline: &Deadline, undone: bool) {
    let keeps_transaction = !undone && batches.fails_transaction();
    deadline.end_within(if keeps_transaction { KEPT } else { LEFT });
    while matches!(batches.next(), Some(Ok(_))) {}
}

/// A result on its way, batch by batch. A batch without rows is left out, but for the one of an empty result.
pub struct LiveResult {
    schema: SchemaRef,
    source: Arc<Mutex<State>>,
    /// Rows handed on.
    rows: u64,
    /// Whether a batch has been handed on.
    yielded: bool,
    deadline: Deadline,
    progress: Arc<Progress>,
    warnings: Arc<Warnings>,
    /// Tells the reader what was found in the values, after the last batch.
    warn: fn(&Warnings) -> Result<()>,
}

enum State {
    Running(Box<dyn Batches>),
    /// A thread waits for a batch.
    Awaited,
    /// It was cancelled while no thread waited, which the next one hears.
    Cancelled,
    Ended,
    Failed,
}

impl Idle for Mutex<State> {
    fn end(&self) {
        let mut state = lock(self);
        if !matches!(*state, State::Running(_)) {
            return;
        }
        let ended = std::mem::replace(&mut *state, State::Cancelled);
        // To stop a query takes a round trip.
        drop(state);
        drop(ended);
    }
}

impl LiveResult {
    /// Hands `batches` on, each wait under `deadline`.
    pub fn new(
        batches: Box<dyn Batches>,
        deadline: Deadline,
        progress: Arc<Progress>,
        warnings: Arc<Warnings>,
        warn: fn(&Warnings) -> Result<()>,
    ) -> Self {
        let (schema, source) = (batches.schema(), Arc::new(Mutex::new(State::Running(batches))));
        let idle = Arc::downgrade(&source);
        deadline.cancel_handle().ends(idle);
        Self { schema, source, rows: 0, yielded: false, deadline, progress, warnings, warn }
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch; `None` after the last. What has failed never looks like a proper end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.deadline.restart();
        let state = std::mem::replace(&mut *lock(&self.source), State::Awaited);
        let next = match state {
            State::Running(batches) => self.await_next(batches),
            State::Cancelled => {
                self.put(State::Failed);
                self.deadline.cancel_handle().check().map(|()| None)
            }
            State::Ended => {
                self.put(State::Ended);
                Ok(None)
            }
            State::Failed | State::Awaited => {
                self.put(State::Failed);
                Err(ended_stream("has failed"))
            }
        };
        match &next {
            Ok(Some(batch)) => {
                self.rows += batch.num_rows() as u64;
                self.yielded = true;
            }
            Ok(None) => {}
            Err(_) => self.progress.end(),
        }
        next
    }

    fn await_next(&self, mut batches: Box<dyn Batches>) -> Result<Option<RecordBatch>> {
        // A panic must not cross the C interface, where it would end the process.
        let next = catch_unwind(AssertUnwindSafe(|| next_of(batches.as_mut(), self.yielded)));
        let next =
            next.unwrap_or_else(|_| Err(Error::internal("a defect of Longshore: please report the query")));
        let next = next.and_then(|batch| self.report(batch));
        match &next {
            Ok(Some(_)) => self.put(State::Running(batches)),
            // The connection goes back at once.
            Ok(None) => {
                drop(batches);
                self.put(State::Ended);
            }
            Err(_) => {
                drop(batches);
                self.put(State::Failed);
            }
        }
        // Whoever cancelled meanwhile has left it to this thread.
        if self.deadline.cancel_handle().check().is_err() {
            self.source.end();
        }
        next
    }

    fn put(&self, state: State) {
        *lock(&self.source) = state;
    }

    /// Ends it as [`give_up`] does.
    pub fn give_up(self) {
        let state = std::mem::replace(&mut *lock(&self.source), State::Ended);
        if let State::Running(batches) = state {
            give_up(batches, &self.deadline, false);
        }
    }

    fn report(&self, batch: Option<RecordBatch>) -> Result<Option<RecordBatch>> {
        if batch.is_some() {
            self.progress.tick()?;
        } else {
            self.progress.finish()?;
            (self.warn)(&self.warnings)?;
        }
        Ok(batch)
    }
}

impl Drop for LiveResult {
    fn drop(&mut self) {
        self.progress.end();
    }
}

/// The next batch with rows: parts and queries without any send empty ones. An empty result is one empty batch.
fn next_of(batches: &mut dyn Batches, yielded: bool) -> Result<Option<RecordBatch>> {
    let mut empty = None;
    for batch in batches {
        let batch = batch?;
        if batch.num_rows() > 0 {
            return Ok(Some(batch));
        }
        empty = Some(batch);
    }
    Ok(empty.filter(|_| !yielded))
}

/// A result that several threads may ask for batches, or that is handed over as a whole.
pub struct Stream {
    schema: SchemaRef,
    deadline: Deadline,
    warnings: Arc<Warnings>,
    slot: Mutex<Slot>,
    /// Told whenever the slot is not busy any more.
    turn: Condvar,
}

enum Slot {
    Live(LiveResult),
    /// A thread waits for a batch.
    Busy(ThreadId),
    /// Why nothing more can be taken.
    Gone(&'static str),
}

impl Stream {
    /// The stream of `result`.
    #[must_use]
    pub fn new(result: LiveResult) -> Self {
        let (schema, deadline, warnings) =
            (result.schema(), result.deadline.clone(), result.warnings.clone());
        Self { schema, deadline, warnings, slot: Mutex::new(Slot::Live(result)), turn: Condvar::new() }
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The findings in values on their way.
    #[must_use]
    pub fn warnings(&self) -> &Arc<Warnings> {
        &self.warnings
    }

    /// Takes the live result, when it is this thread's turn. What waits for a batch, and calls its listener meanwhile, holds
    /// no lock.
    fn take(&self) -> Result<LiveResult> {
        let own = thread::current().id();
        let mut slot = lock(&self.slot);
        loop {
            match &*slot {
                Slot::Live(_) => {}
                Slot::Busy(thread) if *thread == own => return Err(reentry()),
                Slot::Busy(_) => {
                    let waited = self.turn.wait_timeout(slot, self.deadline.slice());
                    slot = waited.unwrap_or_else(PoisonError::into_inner).0;
                    self.deadline.check()?;
                    continue;
                }
                Slot::Gone(why) => return Err(ended_stream(why)),
            }
            if let Slot::Live(live) = std::mem::replace(&mut *slot, Slot::Busy(own)) {
                return Ok(live);
            }
        }
    }

    /// Puts the result back, unless the stream was closed meanwhile.
    fn put_back(&self, live: LiveResult) {
        let mut slot = lock(&self.slot);
        let is_open = matches!(*slot, Slot::Busy(_));
        let left = if is_open { std::mem::replace(&mut *slot, Slot::Live(live)) } else { Slot::Live(live) };
        drop(slot);
        self.turn.notify_all();
        // To stop a query takes a round trip: no one should wait for the slot meanwhile.
        drop(left);
    }

    /// The next batch, and how many rows went before it; `None` after the last.
    pub fn next_batch(&self) -> Result<Option<(u64, RecordBatch)>> {
        let mut live = self.take()?;
        let before = live.rows;
        let next = live.next_batch();
        self.put_back(live);
        Ok(next?.map(|batch| (before, batch)))
    }

    /// The value that `convert` makes of the next batch; where it fails, what follows would look like the rest, and the
    /// stream ends.
    pub fn next_as<T>(&self, convert: impl FnOnce(u64, RecordBatch) -> Result<T>) -> Result<Option<T>> {
        let Some((before, batch)) = self.next_batch()? else { return Ok(None) };
        convert(before, batch).map(Some).inspect_err(|_| self.end("has failed"))
    }

    /// The result itself, which the stream then has no more.
    pub fn hand_over(&self) -> Result<LiveResult> {
        let live = self.take()?;
        *lock(&self.slot) = Slot::Gone("has been handed over");
        self.turn.notify_all();
        Ok(live)
    }

    /// The stream's state, such as "is open".
    #[must_use]
    pub fn state(&self) -> &'static str {
        match &*lock(&self.slot) {
            Slot::Live(live) => match *lock(&live.source) {
                State::Running(_) => "is open",
                State::Awaited => "is being read",
                State::Cancelled => "was cancelled",
                State::Ended => "has ended",
                State::Failed => "has failed",
            },
            Slot::Busy(_) => "is being read",
            Slot::Gone(why) => why,
        }
    }

    /// Stops the query on the server; who waits for a batch gets an error.
    pub fn cancel(&self) {
        self.deadline.cancel_handle().cancel();
        self.end("was cancelled");
    }

    /// Stops the query on the server where it still runs.
    pub fn close(&self) {
        self.end("is closed");
    }

    fn end(&self, why: &'static str) {
        let ended = std::mem::replace(&mut *lock(&self.slot), Slot::Gone(why));
        if matches!(ended, Slot::Busy(_)) {
            // Who waits for a batch hears of it.
            self.deadline.cancel_handle().cancel();
        }
        self.turn.notify_all();
    }
}

fn reentry() -> Error {
    Error::interface("the stream is asked for a batch while it waits for one")
        .with_hint("do not read a stream from its own progress callable or from a signal handler")
}

fn ended_stream(why: &str) -> Error {
    Error::interface(format!("the stream {why}")).with_hint("read it again")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{OnceLock, Weak};

    use arrow_array::{Int64Array, RecordBatchOptions};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::{CancelHandle, Kind, Listener, Meter, Session};

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]))
    }

    fn batch(rows: usize) -> RecordBatch {
        let values = Arc::new(Int64Array::from_iter_values(0..i64::try_from(rows).unwrap()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema(), vec![values], &options).unwrap()
    }

    /// The messages that the server sends: so many rows, or else.
    enum Sent {
        Rows(usize),
        Failure,
        Panic,
        /// A row, while another thread cancels.
        Cancelled(CancelHandle),
        /// Nothing, until the deadline ends it.
        Silence(Deadline),
    }

    struct Script {
        sent: std::vec::IntoIter<Sent>,
        /// Counts the scripts that are alive.
        _alive: Option<Arc<()>>,
    }

    impl Iterator for Script {
        type Item = Result<RecordBatch>;

        fn next(&mut self) -> Option<Self::Item> {
            Some(match self.sent.next()? {
                Sent::Rows(rows) => Ok(batch(rows)),
                Sent::Failure => Err(Error::operational("the network is gone")),
                Sent::Panic => panic!("as a test wants it"),
                Sent::Cancelled(cancel_handle) => {
                    cancel_handle.cancel();
                    Ok(batch(1))
                }
                Sent::Silence(deadline) => loop {
                    if let Err(error) = deadline.check() {
                        break Err(error);
                    }
                    thread::sleep(Duration::from_millis(1));
                },
            })
        }
    }

    impl Batches for Script {
        fn schema(&self) -> SchemaRef {
            schema()
        }

        fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
            None
        }
    }

    /// Fails where something was found.
    fn refuse(warnings: &Warnings) -> Result<()> {
        warnings.take().into_iter().try_for_each(|text| Err(Error::data(text)))
    }

    fn live(sent: Vec<Sent>, deadline: Deadline, progress: Arc<Progress>) -> LiveResult {
        let script = Box::new(Script { sent: sent.into_iter(), _alive: None });
        LiveResult::new(script, deadline, progress, Arc::default(), refuse)
    }

    fn stream(sent: Vec<Sent>) -> Stream {
        let result = live(sent, Deadline::never(), Progress::new(None, Arc::default()));
        Stream::new(result)
    }

    /// How many rows went before each batch, and how many are in it.
    fn rest(stream: &Stream) -> Vec<(u64, usize)> {
        let next = || stream.next_batch().unwrap();
        std::iter::from_fn(next).map(|(before, batch)| (before, batch.num_rows())).collect()
    }

    #[test]
    fn batches_without_rows_are_left_out_but_for_an_empty_results_one() {
        let sent = [0, 2, 0, 3, 0].map(Sent::Rows);
        assert_eq!(rest(&stream(sent.into())), [(0, 2), (2, 3)]);
        assert_eq!(rest(&stream([0, 0].map(Sent::Rows).into())), [(0, 0)]);
        assert_eq!(rest(&stream(Vec::new())), []);
    }

    #[test]
    fn an_end_is_an_end_again_and_a_failure_never() {
        let ended = stream(vec![Sent::Rows(1)]);
        assert_eq!((ended.state(), rest(&ended), rest(&ended)), ("is open", vec![(0, 1)], vec![]));
        assert_eq!(ended.state(), "has ended");
        let failed = stream(vec![Sent::Failure, Sent::Rows(1)]);
        assert_eq!(failed.next_batch().unwrap_err().kind(), Kind::Operational);
        assert_eq!(failed.state(), "has failed");
        assert_eq!(failed.next_batch().unwrap_err().kind(), Kind::Interface);
    }

    #[test]
    fn a_panic_is_an_error() {
        let stream = stream(vec![Sent::Panic]);
        assert_eq!(stream.next_batch().unwrap_err().kind(), Kind::Internal);
        assert_eq!(stream.state(), "has failed");
    }

    #[test]
    fn a_batch_that_cannot_be_converted_ends_the_stream() {
        let stream = stream([2, 3].map(Sent::Rows).into());
        let refused = stream.next_as(|_, _| Err::<(), _>(Error::data("it does not fit")));
        assert_eq!(refused.unwrap_err().kind(), Kind::Data);
        assert_eq!(stream.state(), "has failed");
        assert!(stream.next_batch().is_err());
    }

    #[test]
    fn it_is_handed_over_once() {
        let stream = stream([2, 3].map(Sent::Rows).into());
        assert_eq!(stream.next_as(|before, batch| Ok((before, batch.num_rows()))).unwrap(), Some((0, 2)));
        let mut live = stream.hand_over().unwrap();
        assert_eq!(live.next_batch().unwrap().unwrap().num_rows(), 3);
        assert_eq!(stream.state(), "has been handed over");
        assert!(stream.hand_over().is_err());
    }

    #[test]
    fn closing_drops_the_result() {
        let alive = Arc::new(());
        let script = Box::new(Script { sent: Vec::new().into_iter(), _alive: Some(alive.clone()) });
        let progress = Progress::new(None, Arc::default());
        let result = LiveResult::new(script, Deadline::never(), progress, Arc::default(), refuse);
        let stream = Stream::new(result);
        stream.close();
        assert_eq!((Arc::strong_count(&alive), stream.state()), (1, "is closed"));
    }

    #[test]
    fn what_is_found_in_values_can_end_a_stream_in_an_error() {
        let script = Box::new(Script { sent: vec![Sent::Rows(1)].into_iter(), _alive: None });
        let progress = Progress::new(None, Arc::default());
        let warnings = Arc::<Warnings>::default();
        warnings.add("a rounded value", 1);
        let result = LiveResult::new(script, Deadline::never(), progress, warnings, refuse);
        let stream = Stream::new(result);
        stream.next_batch().unwrap();
        assert_eq!(stream.next_batch().unwrap_err().kind(), Kind::Data);
        assert_eq!(stream.state(), "has failed");
    }

    #[test]
    fn a_cancel_handle_ends_what_no_thread_waits_for() {
        let (alive, deadline) = (Arc::new(()), Deadline::never());
        let sent = vec![Sent::Rows(1), Sent::Rows(2)].into_iter();
        let script = Box::new(Script { sent, _alive: Some(alive.clone()) });
        let progress = Progress::new(None, Arc::default());
        let stream = Stream::new(LiveResult::new(script, deadline.clone(), progress, Arc::default(), refuse));
        stream.next_batch().unwrap();
        deadline.cancel_handle().cancel();
        assert_eq!((Arc::strong_count(&alive), stream.state()), (1, "was cancelled"));
        assert_eq!(stream.next_batch().unwrap_err().kind(), Kind::Cancelled);
        assert_eq!(stream.next_batch().unwrap_err().kind(), Kind::Interface);
        assert_eq!(stream.state(), "has failed");
    }

    #[test]
    fn a_batch_that_comes_while_another_thread_cancels_is_the_last() {
        let (alive, deadline) = (Arc::new(()), Deadline::never());
        let sent = vec![Sent::Cancelled(deadline.cancel_handle()), Sent::Rows(2)].into_iter();
        let script = Box::new(Script { sent, _alive: Some(alive.clone()) });
        let progress = Progress::new(None, Arc::default());
        let mut live = LiveResult::new(script, deadline, progress, Arc::default(), refuse);
        assert_eq!(live.next_batch().unwrap().unwrap().num_rows(), 1);
        assert_eq!(Arc::strong_count(&alive), 1);
        assert_eq!(live.next_batch().unwrap_err().kind(), Kind::Cancelled);
    }

    /// A stream whose server is silent.
    fn silent() -> Arc<Stream> {
        let (deadline, progress) = (Deadline::never(), Progress::new(None, Arc::default()));
        Arc::new(Stream::new(live(vec![Sent::Silence(deadline.clone())], deadline, progress)))
    }

    fn waiting(stream: &Arc<Stream>) -> Receiver<Kind> {
        let (sender, receiver) = channel();
        let waits = stream.clone();
        thread::spawn(move || sender.send(waits.next_batch().unwrap_err().kind()));
        while stream.state() != "is being read" {
            thread::sleep(Duration::from_millis(1));
        }
        receiver
    }

    #[test]
    fn who_waits_hears_of_a_close_and_of_a_cancel() {
        for end in [Stream::close, Stream::cancel] {
            let stream = silent();
            let (first, second) = (waiting(&stream), waiting(&stream));
            end(&stream);
            let kinds = [first, second].map(|kind| kind.recv_timeout(Duration::from_secs(10)).unwrap());
            assert!(kinds.iter().all(|kind| matches!(kind, Kind::Cancelled | Kind::Interface)), "{kinds:?}");
            assert!(stream.next_batch().is_err());
        }
    }

    #[test]
    fn a_listener_may_not_read_its_own_stream() {
        static STREAM: OnceLock<Weak<Stream>> = OnceLock::new();
        struct Reader;
        impl Listener for Reader {
            fn report(&self, _: &Meter, _: bool) -> Result<()> {
                STREAM.get().unwrap().upgrade().unwrap().next_batch().map(drop)
            }
        }
        let progress = Progress::new(Some(Arc::new(Reader)), Arc::default());
        let result = live(Vec::new(), Deadline::never(), progress);
        let stream = Arc::new(Stream::new(result));
        STREAM.set(Arc::downgrade(&stream)).unwrap();
        let error = stream.next_batch().unwrap_err();
        assert!(error.to_string().contains("while it waits for one"), "{error}");
    }
}
