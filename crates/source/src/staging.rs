//! A write as a state machine: its transaction or savepoint, the statements that undo what it has done, and the steps that bring
//! its rows from a staging or replacement table to the target. A source feeds it with statements; the order is its own.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    Error, Failed, IfExists, Kind, Load, Result, Session, Sink, Stage, TableName, Transaction, Written,
};

/// A session that writes tables.
pub trait Writer: Session + 'static {
    /// Runs a statement of the write.
    fn perform(&mut self, statement: &str) -> Result<()>;

    /// Moves the rows of a staging table by `statement`, and refuses the loss of one: of `rows`, all have arrived in it.
    fn move_rows(&mut self, statement: &str, expected: &Expected, rows: u64) -> Result<()>;

    /// Stops what runs, rolls `scope` back and runs the statements of `undo`; tells whether the session can be used on. Where
    /// the caller `is_hurried`, its own deadline is over.
    fn undo(&mut self, scope: Option<Scope>, undo: &[Undo], is_hurried: bool) -> bool;

    /// The error of a step, with what else it has done to `scope`.
    fn explain(&self, error: Error, _scope: Option<Scope>) -> Error {
        error
    }
}

/// The rows of a write on their way to the server. They are dropped before anything is undone or committed.
pub trait Rows<S>: Send {
    /// Sends those of `batch`.
    fn push(&mut self, session: &mut S, batch: &RecordBatch) -> Result<()>;

    /// Has all of them in the table.
    fn flush(&mut self, session: &mut S) -> Result<()>;

    /// How many were sent.
    fn count(&self) -> u64;
}

/// The scope that is rolled back where a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A transaction of its own.
    Transaction,
    /// Its part of the caller's transaction.
    Savepoint,
}

impl Scope {
    fn commit(self) -> &'static str {
        match self {
            Self::Transaction => "COMMIT",
            Self::Savepoint => "RELEASE SAVEPOINT longshore_write",
        }
    }

    /// The statements that roll it back.
    #[must_use]
    pub fn rollback(self) -> &'static [&'static str] {
        match self {
            Self::Transaction => &["ROLLBACK"],
            Self::Savepoint => {
                &["ROLLBACK TO SAVEPOINT longshore_write", "RELEASE SAVEPOINT longshore_write"]
            }
        }
    }
}

/// A statement that undoes a part of a write.
#[derive(Debug)]
pub struct Undo {
    /// The statement.
    pub statement: String,
    /// Whether it also ends a write that succeeds.
    pub is_always: bool,
}

/// The notes of what a write has begun, and how that is undone: the transaction first, then the last of the rest first.
#[derive(Debug, Default)]
pub struct UndoLog {
    scope: Option<Scope>,
    undo: Vec<Undo>,
    /// Whether the caller does not wait any longer.
    is_hurried: bool,
}

impl UndoLog {
    /// Begins a transaction by the statement `own`, or a savepoint where the caller has one open.
    pub fn begin<S: Writer>(&mut self, session: &mut S, own: &str) -> Result<()> {
        let (scope, statement) = match session.transaction() {
            Transaction::None => (Scope::Transaction, own),
            _ => (Scope::Savepoint, "SAVEPOINT longshore_write"),
        };
        session.perform(statement)?;
        self.scope = Some(scope);
        Ok(())
    }

    /// Has `statement` undo what the write is about to do, if it fails.
    pub fn on_failure(&mut self, statement: impl Into<String>) {
        self.undo.push(Undo { statement: statement.into(), is_always: false });
    }

    /// Has `statement` undo what the write is about to do, at its end in any case.
    pub fn at_end(&mut self, statement: impl Into<String>) {
        self.undo.push(Undo { statement: statement.into(), is_always: true });
    }

    fn step<S: Writer>(&mut self, session: &mut S, step: Step, rows: u64) -> Result<()> {
        match step {
            Step::Begin(statement) => self.begin(session, statement),
            Step::Run(statement) => session.perform(&statement),
            Step::Undoable(statement, undo) => {
                let performed = session.perform(&statement);
                // A session that was lost may have done it all the same; one that was interrupted has been told to stop.
                let is_lost = |error| !is_interruption(error) && !session.is_usable();
                if performed.as_ref().map_or_else(is_lost, |()| true) {
                    self.on_failure(undo);
                }
                performed
            }
            Step::Move(statement, expected) => session.move_rows(&statement, &expected, rows),
            Step::Commit => {
                session.perform(self.scope.map_or("COMMIT", Scope::commit))?;
                self.scope = None;
                Ok(())
            }
        }
    }

    fn end<S: Writer>(&mut self, session: &mut S) -> bool {
        self.undo.reverse();
        session.undo(self.scope.take(), &std::mem::take(&mut self.undo), self.is_hurried)
    }
}

/// A step between the last row and the end of a write.
#[derive(Debug)]
pub enum Step {
    /// The transaction begins by this statement.
    Begin(&'static str),
    /// A statement runs.
    Run(String),
    /// A statement runs, which the second one undoes if a later step fails.
    Undoable(String, String),
    /// A statement moves the rows.
    Move(String, Expected),
    /// The transaction or savepoint ends.
    Commit,
}

/// The rows that a statement is to change.
#[derive(Debug)]
pub enum Expected {
    /// Any number.
    Any,
    /// Each row of the data.
    All,
    /// As many as this query counts.
    Count(String),
}

/// The session of a write, in which all is undone that has not been committed.
struct Attempt<S: Writer> {
    /// Gone at its end.
    session: Option<Box<S>>,
    log: UndoLog,
}

impl<S: Writer> Attempt<S> {
    fn begin<T>(
        session: Box<S>,
        start: impl FnOnce(&mut S, &mut UndoLog) -> Result<T>,
    ) -> Result<(Self, T), Failed> {
        let mut attempt = Self { session: Some(session), log: UndoLog::default() };
        match attempt.run(start) {
            Ok(started) => Ok((attempt, started)),
            Err(error) => Err(attempt.fail(error)),
        }
    }

    fn run<T>(&mut self, step: impl FnOnce(&mut S, &mut UndoLog) -> Result<T>) -> Result<T> {
        let Some(session) = &mut self.session else {
            return Err(Error::internal("a write without its session"));
        };
        step(session, &mut self.log).map_err(|error| {
            // A Ctrl-C is told once.
            self.log.is_hurried |= is_interruption(&error);
            session.explain(error, self.log.scope)
        })
    }

    fn finish(mut self, steps: Vec<Step>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        let ended =
            self.run(|session, log| steps.into_iter().try_for_each(|step| log.step(session, step, rows)));
        if let Err(error) = ended {
            return Err(self.fail(error));
        }
        self.log.undo.retain(|undo| undo.is_always);
        let Some(mut session) = self.session.take() else {
            return Err(Error::internal("a write without its session").into());
        };
        self.log.end(session.as_mut());
        Ok(session)
    }

    fn fail(&mut self, error: Error) -> Failed {
        Failed { error, session: self.end() }
    }

    fn end(&mut self) -> Option<Box<dyn Session>> {
        let mut session = self.session.take()?;
        self.log.end(session.as_mut()).then_some(session as Box<dyn Session>)
    }
}

impl<S: Writer> Drop for Attempt<S> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// Whether `error` says that the caller does not wait any longer.
#[must_use]
pub fn is_interruption(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Cancelled | Kind::Timeout)
}

struct TableSink<S: Writer, R: Rows<S>> {
    rows: R,
    attempt: Attempt<S>,
    steps: Vec<Step>,
}

/// Begins a write by one session, by `start`; the steps that it gives follow the last row.
pub fn open<S: Writer, R: Rows<S> + 'static>(
    session: Box<S>,
    start: impl FnOnce(&mut S, &mut UndoLog) -> Result<(R, Vec<Step>)>,
) -> Result<Box<dyn Sink>, Failed> {
    let (attempt, (rows, steps)) = Attempt::begin(session, start)?;
    Ok(Box::new(TableSink { rows, attempt, steps }))
}

impl<S: Writer, R: Rows<S>> Sink for TableSink<S, R> {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.attempt.run(|session, _| self.rows.push(session, batch))
    }

    fn commit(self: Box<Self>) -> Result<Written, Failed> {
        let Self { mut rows, mut attempt, steps } = *self;
        let flushed = attempt.run(|session, _| rows.flush(session));
        let count = rows.count();
        drop(rows);
        flushed.map_err(|error| attempt.fail(error))?;
        Ok(Written { rows: count, session: attempt.finish(steps, count)? })
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { rows, mut attempt, .. } = *self;
        drop(rows);
        attempt.end()
    }
}

/// A staging table that other sessions fill.
pub struct Staged {
    /// The load of each of them.
    pub load: Load,
    /// The statement by which any session removes the table.
    pub undo: String,
    /// The steps that bring the rows home.
    pub steps: Vec<Step>,
}

struct TableStage<S: Writer> {
    attempt: Attempt<S>,
    staged: Staged,
}

/// Begins a write by several sessions, by `start`.
pub fn open_stage<S: Writer>(
    session: Box<S>,
    start: impl FnOnce(&mut S, &mut UndoLog) -> Result<Staged>,
) -> Result<Box<dyn Stage>, Failed> {
    let (attempt, staged) = Attempt::begin(session, start)?;
    Ok(Box::new(TableStage { attempt, staged }))
}

impl<S: Writer> Stage for TableStage<S> {
    fn load(&self) -> &Load {
        &self.staged.load
    }

    fn keep(&mut self) -> Result<()> {
        self.attempt.run(|session, _| session.perform("SELECT 1"))
    }

    fn commit(self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        let Self { attempt, staged } = *self;
        attempt.finish(staged.steps, rows)
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.attempt.end()
    }

    fn undo(&self) -> String {
        self.staged.undo.clone()
    }
}

/// The column of a staging table that has the numbers of the data's rows, by a name that no column of the data has.
#[must_use]
pub fn number_column(load: &Load) -> String {
    let mut name = "longshore_row".to_owned();
    while load.schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    name
}

/// The load that the other sessions write into the staging table `table`, with their rows' numbers in the column `number`.
#[must_use]
pub fn staged_load(load: &Load, table: TableName, number: Option<&str>) -> Load {
    let number = number.map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
    let fields: Vec<_> = load.schema.fields().iter().cloned().chain(number).collect();
    Load { table, schema: Arc::new(Schema::new(fields)), if_exists: IfExists::Append, ..load.clone() }
}

/// The name of a staging table that no other has, with this prefix.
#[must_use]
pub fn staging_name(schema: Option<String>, prefix: &str) -> TableName {
    let number = RandomState::new().build_hasher().finish() >> 32;
    TableName { schema, table: format!("{prefix}{number:08x}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use longshore_core::{Batches, Column, Deadline, Loading, OwnOptions, Query, ReadOptions};

    use super::*;

    /// A session that notes its statements, and refuses those that hold the word `bad`.
    struct Notes {
        ran: Arc<Mutex<Vec<String>>>,
        transaction: Transaction,
    }

    impl Notes {
        fn note(&self, statement: &str) -> Result<()> {
            self.ran.lock().unwrap().push(statement.to_owned());
            if statement.contains("bad") { Err(Error::programming("no")) } else { Ok(()) }
        }
    }

    impl Session for Notes {
        fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
            self.note(&query.text).map(|()| None)
        }

        fn describe(&mut self, _: &Query, _: &ReadOptions) -> Result<Vec<Column>> {
            Ok(Vec::new())
        }

        fn read(self: Box<Self>, _: &Query, _: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
            Err(Error::internal("not read").into())
        }

        fn transaction(&self) -> Transaction {
            self.transaction
        }

        fn is_usable(&self) -> bool {
            true
        }

        fn reset(&mut self) -> Result<()> {
            Ok(())
        }

        fn set_deadline(&mut self, _: &Deadline) {}

        fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
            Err(self)
        }
    }

    impl Writer for Notes {
        fn perform(&mut self, statement: &str) -> Result<()> {
            self.note(statement)
        }

        fn move_rows(&mut self, statement: &str, expected: &Expected, rows: u64) -> Result<()> {
            self.note(&format!("{statement} {expected:?} {rows}"))
        }

        fn undo(&mut self, scope: Option<Scope>, undo: &[Undo], is_hurried: bool) -> bool {
            assert!(!is_hurried);
            let rollback = scope.map_or(&[][..], Scope::rollback).iter().copied();
            let statements = rollback.chain(undo.iter().map(|undo| undo.statement.as_str()));
            statements.map(|statement| self.note(statement)).all(|noted| noted.is_ok())
        }
    }

    struct NoRows;

    impl Rows<Notes> for NoRows {
        fn push(&mut self, session: &mut Notes, _: &RecordBatch) -> Result<()> {
            session.note("push")
        }

        fn flush(&mut self, session: &mut Notes) -> Result<()> {
            session.note("flush")
        }

        fn count(&self) -> u64 {
            3
        }
    }

    /// The statements of a write whose last steps are `steps`; of one that is aborted where there are none.
    fn statements(transaction: Transaction, steps: Vec<Step>) -> Vec<String> {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let session = Box::new(Notes { ran: ran.clone(), transaction });
        let is_aborted = steps.is_empty();
        let sink = open(session, |session, log| {
            log.at_end("SET before");
            log.on_failure("DROP new");
            log.begin(session, "BEGIN")?;
            Ok((NoRows, steps))
        });
        let Ok(sink) = sink else { unreachable!() };
        if is_aborted {
            assert!(sink.abort().is_some());
        } else {
            let _ = sink.commit();
        }
        ran.lock().unwrap().clone()
    }

    #[test]
    fn a_write_ends_with_its_steps_and_what_is_undone_in_any_case() {
        let steps =
            vec![Step::Move("INSERT".into(), Expected::All), Step::Commit, Step::Run("RENAME".into())];
        assert_eq!(
            statements(Transaction::None, steps),
            ["BEGIN", "flush", "INSERT All 3", "COMMIT", "RENAME", "SET before"]
        );
        assert_eq!(
            statements(Transaction::Open, vec![Step::Commit]),
            ["SAVEPOINT longshore_write", "flush", "RELEASE SAVEPOINT longshore_write", "SET before"]
        );
    }

    #[test]
    fn a_failure_undoes_the_last_first() {
        let steps = vec![
            Step::Commit,
            Step::Undoable("SWAP".into(), "SWAP back".into()),
            Step::Run("DROP bad".into()),
            Step::Run("never".into()),
        ];
        assert_eq!(
            statements(Transaction::None, steps),
            ["BEGIN", "flush", "COMMIT", "SWAP", "DROP bad", "SWAP back", "DROP new", "SET before"]
        );
        assert_eq!(
            statements(Transaction::Open, Vec::new()),
            [
                "SAVEPOINT longshore_write",
                "ROLLBACK TO SAVEPOINT longshore_write",
                "RELEASE SAVEPOINT longshore_write",
                "DROP new",
                "SET before"
            ]
        );
    }

    #[test]
    fn a_dropped_write_is_undone() {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let session = Box::new(Notes { ran: ran.clone(), transaction: Transaction::None });
        drop(open(session, |session, log| log.begin(session, "BEGIN").map(|()| (NoRows, Vec::new()))));
        assert_eq!(*ran.lock().unwrap(), ["BEGIN", "ROLLBACK"]);
    }

    #[test]
    fn the_numbers_of_rows_have_a_name_of_their_own() {
        let fields = [Field::new("Longshore_Row", DataType::Int64, true)];
        let load = Load {
            table: TableName { schema: None, table: "t".into() },
            schema: Arc::new(Schema::new(fields.to_vec())),
            if_exists: IfExists::Upsert,
            key: Vec::new(),
            types: Vec::new(),
            own: OwnOptions::default(),
            meter: Arc::default(),
        };
        let number = number_column(&load);
        assert_eq!(number, "longshore_row_");
        let staged = staged_load(&load, staging_name(None, "longshore_t_"), Some(&number));
        assert_eq!((staged.schema.fields().len(), staged.if_exists), (2, IfExists::Append));
        assert_eq!(staged.table.table.len(), "longshore_t_12345678".len());
    }
}
