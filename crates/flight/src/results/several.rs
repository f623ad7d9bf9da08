//! Several endpoints at once, each read by a thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use arrow_array::RecordBatch;
use arrow_flight::FlightEndpoint;
use arrow_schema::SchemaRef;
use longshore_core::memory::{release_reserve, spawn};
use longshore_core::{CancelHandle, Deadline, Process, Result, lock};

use super::endpoint::{Endpoint, Servers, agree};
use super::panic_error;

/// The most endpoints that are read at once.
const MOST: usize = 8;

/// The batches that wait for their user.
const WAITING: usize = 2;

type Sender = SyncSender<Result<RecordBatch>>;

/// The batches of several endpoints: as they come, or endpoint after endpoint where their order has a meaning.
pub(crate) struct Several {
    /// One for all, or one for each endpoint that has not ended.
    receivers: VecDeque<Receiver<Result<RecordBatch>>>,
    /// Endpoints that have not ended.
    left: Arc<AtomicUsize>,
    stop: CancelHandle,
    threads: Vec<JoinHandle<()>>,
    process: Process,
}

/// An endpoint to be read, by its number.
struct Job {
    at: usize,
    endpoint: Waiting,
    sender: Sender,
}

enum Waiting {
    Begun(Box<Endpoint>),
    Told(FlightEndpoint),
}

struct Worker {
    servers: Arc<Servers>,
    jobs: Arc<Mutex<VecDeque<Job>>>,
    schema: SchemaRef,
    /// Who waits for the batches looks at the time; a thread that reads ahead only stops with them.
    deadline: Deadline,
    left: Arc<AtomicUsize>,
}

impl Several {
    /// Reads `first` and the `others` under `schema`.
    pub(crate) fn start(
        servers: &Arc<Servers>,
        first: Endpoint,
        others: &[FlightEndpoint],
        schema: &SchemaRef,
        is_ordered: bool,
    ) -> Result<Self> {
        let count = 1 + others.len();
        let begun = Waiting::Begun(Box::new(first.under(schema)));
        let endpoints = std::iter::once(begun).chain(others.iter().cloned().map(Waiting::Told));
        let (mut receivers, mut senders) = (VecDeque::new(), Vec::with_capacity(count));
        for _ in 0..if is_ordered { count } else { 1 } {
            let (sender, receiver) = sync_channel(WAITING);
            receivers.push_back(receiver);
            senders.push(sender);
        }
        let sender = |at: usize| senders[at.min(senders.len() - 1)].clone();
        let jobs = endpoints.enumerate().map(|(at, endpoint)| Job { at, endpoint, sender: sender(at) });
        let jobs = Arc::new(Mutex::new(jobs.collect::<VecDeque<_>>()));
        drop(senders);
        let (stop, left) = (CancelHandle::default(), Arc::new(AtomicUsize::new(count)));
        let mut several =
            Self { receivers, left: left.clone(), stop, threads: Vec::new(), process: Process::current() };
        for _ in 0..count.min(MOST) {
            let worker = Worker {
                servers: servers.clone(),
                jobs: jobs.clone(),
                schema: schema.clone(),
                deadline: Deadline::never().with_cancel_handle(several.stop.clone()),
                left: left.clone(),
            };
            let named = Builder::new().name("longshore-endpoint".into());
            several.threads.push(spawn(named, move || worker.work())?);
        }
        Ok(several)
    }

    /// The next batch; `None` once all endpoints have ended.
    pub(crate) fn next(&mut self, deadline: &Deadline) -> Result<Option<RecordBatch>> {
        while let Some(receiver) = self.receivers.front() {
            match receiver.recv_timeout(deadline.slice()) {
                Ok(batch) => return batch.map(Some),
                Err(RecvTimeoutError::Timeout) => deadline.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.receivers.pop_front();
                }
            }
        }
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| panic_error())?;
        }
        if self.left.load(Ordering::Acquire) == 0 { Ok(None) } else { Err(panic_error()) }
    }
}

impl Worker {
    fn work(&self) {
        release_reserve();
        loop {
            let Some(job) = lock(&self.jobs).pop_front() else { return };
            if let Err(error) = self.read(job.endpoint, job.at, &job.sender) {
                // Who has gone has no use for it.
                let _ = job.sender.send(Err(error));
                return;
            }
        }
    }

    /// Reads an endpoint to its end, or until no one wants its rows.
    fn read(&self, endpoint: Waiting, at: usize, sender: &Sender) -> Result<()> {
        let mut endpoint = match endpoint {
            Waiting::Begun(endpoint) => *endpoint,
            Waiting::Told(endpoint) => {
                let endpoint = Endpoint::open(&self.servers, &endpoint, at, &self.deadline)?;
                let schema = agree(&self.schema, &endpoint.schema(), at)?;
                endpoint.under(&self.schema_of(&schema, at)?)
            }
        };
        while let Some(batch) = endpoint.next(&self.deadline)? {
            if sender.send(Ok(batch)).is_err() {
                return Ok(());
            }
        }
        self.left.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    /// The schema of all, which the types of an endpoint have to be to the letter.
    fn schema_of(&self, own: &SchemaRef, at: usize) -> Result<SchemaRef> {
        let is_same = own
            .fields()
            .iter()
            .zip(self.schema.fields())
            .all(|(own, all)| own.data_type() == all.data_type());
        if is_same {
            return Ok(self.schema.clone());
        }
        Err(crate::error::protocol_error(format_args!(
            "the fields inside the types of endpoint {at} are not those of the others"
        )))
    }
}

impl Drop for Several {
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget((std::mem::take(&mut self.receivers), std::mem::take(&mut self.threads)));
            return;
        }
        self.stop.cancel();
        self.receivers.clear();
        for thread in self.threads.drain(..) {
            // A panic has been told of, or no one asks any more.
            let _ = thread.join();
        }
    }
}
