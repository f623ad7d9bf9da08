//! A database in memory, and sessions of it that fail on demand.
#![allow(dead_code)] // each test file uses its own part

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{
    Batches, Column, Deadline, Direct, Driver, Error, Failed, Interrupt, Kind, Leasing, Loading, Parts,
    Place, Query, ReadOptions, Result, Session, Split, SplitPlan, Splitting, Target, Transaction,
};

/// The state of one database, which all its sessions share.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) open: AtomicUsize,
    pub(crate) most: AtomicUsize,
    pub(crate) connects: AtomicUsize,
    /// Sessions that are refused from here on.
    pub(crate) refuses: AtomicBool,
    /// The events that happened, in order.
    pub(crate) log: Mutex<Vec<String>>,
    /// The snapshot's owner fails to commit.
    pub(crate) loses_coordinator: AtomicBool,
    pub(crate) divides: AtomicBool,
    /// Parts for which no one asked are welcome.
    pub(crate) splits_automatically: AtomicBool,
    pub(crate) snapshot: AtomicBool,
    /// No one can join the snapshot.
    pub(crate) loses_snapshot: AtomicBool,
    /// As many sessions find somebody in the way of the snapshot.
    pub(crate) busy: AtomicUsize,
    /// Connecting takes as long, but for the first.
    pub(crate) slow_connect: Mutex<Duration>,
    /// A part's commit takes as long.
    pub(crate) slow_commit: Mutex<Duration>,
}

impl Server {
    pub(crate) fn log(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| *line == text).count()
    }
}

/// A new database, which lives as long as the process, and the driver of it.
pub(crate) fn database() -> (&'static Server, Arc<Direct>) {
    let server: &'static Server = Box::leak(Box::default());
    server.divides.store(true, Ordering::SeqCst);
    server.snapshot.store(true, Ordering::SeqCst);
    (server, Direct::new(Arc::new(FakeDriver(server)), Target::from_url("fake://").unwrap()))
}

struct FakeDriver(&'static Server);

impl Driver for FakeDriver {
    fn schemes(&self) -> Vec<&str> {
        vec!["fake"]
    }

    fn splits_automatically(&self) -> bool {
        self.0.splits_automatically.load(Ordering::SeqCst)
    }

    fn connect(&self, _target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        let server = self.0;
        if server.refuses.load(Ordering::SeqCst) {
            return Err(Error::operational("refused"));
        }
        let open = server.open.fetch_add(1, Ordering::SeqCst) + 1;
        server.most.fetch_max(open, Ordering::SeqCst);
        let session = FakeSession {
            server,
            deadline: deadline.clone(),
            transaction: Transaction::None,
            usable: true,
            is_coordinator: false,
        };
        if server.connects.fetch_add(1, Ordering::SeqCst) > 0 {
            session.sleep(*server.slow_connect.lock().unwrap())?;
        }
        Ok(Box::new(session))
    }
}

pub(crate) struct FakeSession {
    server: &'static Server,
    deadline: Deadline,
    transaction: Transaction,
    usable: bool,
    is_coordinator: bool,
}

impl FakeSession {
    fn sleep(&self, duration: Duration) -> Result<()> {
        let until = std::time::Instant::now() + duration;
        while std::time::Instant::now() < until {
            self.deadline.check()?;
            thread::sleep(Duration::from_millis(2));
        }
        self.deadline.check()
    }
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.server.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
}

impl Session for FakeSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        self.server.log(format!("run {statement}"));
        Ok(())
    }

    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        if query.text == "die" {
            self.usable = false;
            return Err(Error::operational("lost"));
        }
        assert!(query.text != "panic", "a defect");
        Ok(None)
    }

    fn describe(&mut self, _query: &Query, _options: &ReadOptions) -> Result<Vec<Column>> {
        Ok(vec![Column { field: schema().field(0).clone(), native_type: "int".into() }])
    }

    fn read(self: Box<Self>, query: &Query, _options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        if query.text == "unreadable" {
            return Err(Failed { error: Error::data("unreadable"), session: Some(self) });
        }
        self.server.log(format!("read {}", query.text));
        Ok(Box::new(FakeBatches { session: Some(self), steps: steps(&query.text), rows: 0 }))
    }

    fn begin(&mut self) -> Result<()> {
        self.server.log("begin");
        self.transaction = Transaction::Open;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if self.is_coordinator && self.server.loses_coordinator.load(Ordering::SeqCst) {
            self.usable = false;
            return Err(Error::operational("coordinator lost"));
        }
        if !self.is_coordinator {
            let duration = *self.server.slow_commit.lock().unwrap();
            self.sleep(duration)?;
        }
        self.server.log(if self.is_coordinator { "commit coordinator" } else { "commit part" });
        self.transaction = Transaction::None;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        self.deadline.check()?;
        if self.transaction != Transaction::None {
            self.server.log("rollback");
        }
        self.transaction = Transaction::None;
        Ok(())
    }

    fn is_usable(&self) -> bool {
        self.usable
    }

    fn transaction(&self) -> Transaction {
        self.transaction
    }

    fn reset(&mut self) -> Result<()> {
        self.deadline.check()?;
        self.server.log("reset");
        if self.server.refuses.load(Ordering::SeqCst) {
            self.usable = false;
            return Err(Error::operational("dead"));
        }
        Ok(())
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        Ok(self)
    }

    fn leasing(&mut self) -> Result<&mut dyn Leasing, String> {
        Ok(self)
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Err(self)
    }
}

impl Leasing for FakeSession {
    fn private_state(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    fn lease(&mut self, query: &Query, split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        self.split(std::slice::from_ref(query), split, options)
    }

    fn join_lease(&mut self, snapshot: &str, _query: &Query) -> Result<()> {
        self.join_snapshot(snapshot, 1)
    }
}

impl Splitting for FakeSession {
    /// The parts are the words of the query.
    fn split(&mut self, queries: &[Query], split: &Split, _options: &ReadOptions) -> Result<SplitPlan> {
        if !self.server.divides.load(Ordering::SeqCst) {
            return Ok(SplitPlan::Serial("it cannot be divided".into()));
        }
        self.is_coordinator = true;
        self.transaction = Transaction::Open;
        if queries[0].text == "undividable" {
            return Err(Error::data("undividable"));
        }
        let snapshot = self.server.snapshot.load(Ordering::SeqCst).then(|| "snapshot".to_owned());
        if snapshot.is_none() {
            self.transaction = Transaction::None;
        }
        let queries: Vec<Query> = queries[0].text.split(' ').map(Query::new).collect();
        let sessions = split.number.map_or(queries.len(), usize::from);
        Ok(SplitPlan::Parts(Parts { queries, sessions, snapshot }))
    }

    fn join_snapshot(&mut self, snapshot: &str, _sessions: usize) -> Result<()> {
        assert_eq!(snapshot, "snapshot");
        if self.server.loses_snapshot.load(Ordering::SeqCst) {
            return Err(Error::operational("the snapshot is gone"));
        }
        let count = |busy: usize| busy.checked_sub(1);
        if self.server.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok() {
            return Err(Error::operational("somebody is in the way").transient());
        }
        self.transaction = Transaction::Open;
        Ok(())
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.transaction = Transaction::Open;
        Ok(())
    }

    fn is_setting(&self, _statement: &str) -> bool {
        true
    }
}

enum Step {
    Value(i64),
    Fail,
    Misfit,
    Panic,
    Sleep(Duration),
}

/// `1,2` gives two batches; `sleep` waits a little and `hang` for ever; `fail` fails, `misfit` fails in the next row,
/// `panic` panics.
fn steps(text: &str) -> VecDeque<Step> {
    let step = |word: &str| match word {
        "fail" => Step::Fail,
        "misfit" => Step::Misfit,
        "panic" => Step::Panic,
        "sleep" => Step::Sleep(Duration::from_millis(100)),
        "hang" => Step::Sleep(Duration::from_secs(3600)),
        number => Step::Value(number.parse().unwrap()),
    };
    text.split(',').map(step).collect()
}

struct FakeBatches {
    session: Option<Box<FakeSession>>,
    steps: VecDeque<Step>,
    rows: u64,
}

impl Iterator for FakeBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.steps.pop_front()? {
                Step::Value(number) => {
                    self.rows += 1;
                    let array = Arc::new(Int64Array::from(vec![number]));
                    return Some(Ok(RecordBatch::try_new(schema(), vec![array]).unwrap()));
                }
                Step::Fail => return Some(Err(Error::data("a bad value"))),
                Step::Misfit => {
                    let place = Place { row: Some(self.rows), ..Place::default() };
                    return Some(Err(Error::data("a bad value").at(place)));
                }
                Step::Panic => panic!("a defect"),
                Step::Sleep(duration) => {
                    if let Err(error) = self.session.as_ref().unwrap().sleep(duration) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl Batches for FakeBatches {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.session.take().map(|session| session as Box<dyn Session>)
    }
}

/// Another thread wants the read to stop.
#[derive(Default)]
pub(crate) struct Stop(pub(crate) AtomicBool);

impl Interrupt for Stop {
    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(Error::new(Kind::Cancelled, "stopped")) } else { Ok(()) }
    }
}

/// The numbers of all batches, or the first failure.
pub(crate) fn numbers(batches: Box<dyn Batches>) -> Result<Vec<i64>> {
    let mut numbers = Vec::new();
    for batch in batches {
        let batch = batch?;
        let column = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
        numbers.extend(column.values());
    }
    Ok(numbers)
}
