//! A `sqlite3.Connection` of the caller's, read through Python's own module: its transaction, its temporary tables, its
//! functions.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{
    Batches, Column, Deadline, Error, Failed, Finaliser, Kind, Load, Loading, OneSession, Params, Query,
    ReadOptions, Result, Session, Sink, Source, Splitting, Transaction,
};
use longshore_interpreter::{raise, with_lock, wrap};
use longshore_source::staging::{self, Expected, Rows, Scope, Step, Undo, Writer};
use longshore_sqlite::{
    Cell, Collector, Database, Facts, ForeignRows, OwnedCell, Row, Statements, begin_foreign,
    describe_in_copy, encode, plan,
};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Rows that are fetched at a time.
const ROWS: usize = 1024;

/// Steps of SQLite's machine between two looks at the deadline.
const STEPS: u32 = 100_000;

/// A `sqlite3.Connection`.
#[pyclass(frozen, module = "longshore._core")]
pub struct SqliteConnection(Arc<Py<PyAny>>);

#[pymethods]
impl SqliteConnection {
    #[new]
    fn new(connection: Py<PyAny>) -> Self {
        Self(Arc::new(connection))
    }
}

impl SqliteConnection {
    /// The source that the core reads from.
    #[must_use]
    pub fn source(&self) -> Box<dyn Source> {
        let connection = self.0.clone();
        Box::new(OneSession(move |deadline: &Deadline| {
            let session = SqliteSession { connection: connection.clone(), deadline: deadline.clone() };
            Ok(Box::new(session) as Box<dyn Session>)
        }))
    }
}

/// A session over a connection of Python's module.
struct SqliteSession {
    connection: Arc<Py<PyAny>>,
    deadline: Deadline,
}

impl SqliteSession {
    /// Does `work` under the interpreter's lock, while SQLite looks at the deadline.
    fn with<T>(&self, work: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let stopped: Arc<Mutex<Option<Error>>> = Arc::default();
        let attached = with_lock(|py| {
            let connection = self.connection.bind(py);
            let (deadline, stop) = (self.deadline.clone(), stopped.clone());
            let handler = PyCFunction::new_closure(
                py,
                None,
                None,
                move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| match deadline.check() {
                    Ok(()) => 0,
                    Err(error) => {
                        stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        1
                    }
                },
            )?;
            connection.call_method1("set_progress_handler", (handler, STEPS))?;
            let done = work(py, connection);
            connection.call_method1("set_progress_handler", (py.None(), 0))?;
            done
        });
        let done = attached.ok_or_else(|| Error::operational("the Python interpreter is shutting down"))?;
        match stopped.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(stopped) => Err(stopped),
            None => done.map_err(error_of),
        }
    }

    fn tell(&self, statement: &str) -> Result<()> {
        self.with(|_, connection| {
            let cursor = cursor(connection)?;
            cursor.call_method1("execute", (statement,))?;
            cursor.call_method0("fetchall")?;
            cursor.call_method0("close").map(drop)
        })
    }

    /// The facts of the columns; `None` where only their values tell.
    fn facts(&self, query: &Query) -> Option<Vec<Facts>> {
        let databases = self.with(|_, connection| databases(connection)).ok()?;
        describe_in_copy(&databases, &query.text).ok()
    }

    fn start(&self, query: &Query, options: &ReadOptions) -> Result<(Py<PyAny>, Collector)> {
        self.deadline.check()?;
        let facts = self.facts(query);
        let (cursor, names) = self.with(|py, connection| {
            let cursor = cursor(connection)?;
            cursor.call_method1("execute", (query.text.as_str(), bound(py, &query.params)?))?;
            let description = cursor.getattr("description")?;
            if description.is_none() {
                return Ok((cursor.unbind(), None));
            }
            let names = description.try_iter()?.map(|column| column?.get_item(0)?.extract::<String>());
            Ok((cursor.unbind(), Some(names.collect::<PyResult<Vec<_>>>()?)))
        })?;
        let names = names.ok_or_else(|| {
            Error::programming("the statement returns no rows, and was run").with_hint(
                "read_sql takes statements with a result: SELECT, VALUES, PRAGMA, or INSERT ... RETURNING",
            )
        })?;
        let agrees = |facts: &Vec<Facts>| facts.iter().map(|column| &column.name).eq(&names);
        // What another copy of the tables says of NULLs is a promise of the same tables.
        let facts =
            facts.filter(agrees).unwrap_or_else(|| names.iter().map(|name| untyped_facts(name)).collect());
        Ok((cursor, Collector::new(plan(facts, options)?, options)?))
    }
}

fn untyped_facts(name: &str) -> Facts {
    Facts { name: name.to_owned(), declared: None, nullable: true, is_enforced: false }
}

/// A cursor that makes tuples, whatever the connection makes.
fn cursor<'py>(connection: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let cursor = connection.call_method0("cursor")?;
    cursor.setattr("row_factory", connection.py().None())?;
    Ok(cursor)
}

/// The databases of the connection and what is in them.
fn databases(connection: &Bound<'_, PyAny>) -> PyResult<Vec<Database>> {
    let listed: Vec<(i64, String, Option<String>)> = texts(connection, |cursor| {
        cursor.call_method1("execute", ("PRAGMA database_list",))?.call_method0("fetchall")?.extract()
    })?;
    let mut found = Vec::new();
    for (_, name, _) in listed {
        let master = if name == "temp" {
            "sqlite_temp_master".to_owned()
        } else {
            format!("\"{}\".sqlite_master", name.replace('"', "\"\""))
        };
        let query = format!(
            "SELECT sql FROM {master} WHERE sql IS NOT NULL AND type IN ('table', 'view') ORDER BY rowid"
        );
        let rows: Vec<(String,)> = texts(connection, |cursor| {
            cursor.call_method1("execute", (query.as_str(),))?.call_method0("fetchall")?.extract()
        })?;
        found.push(Database { name, statements: rows.into_iter().map(|(sql,)| sql).collect() });
    }
    Ok(found)
}

/// Does `fetch` on a cursor of the connection while texts come as `str`, whatever the caller has them come as.
fn texts<'py, T>(
    connection: &Bound<'py, PyAny>,
    fetch: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<T> {
    let cursor = cursor(connection)?;
    as_str(connection, || fetch(&cursor))
}

fn as_str<T>(connection: &Bound<'_, PyAny>, fetch: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let own = connection.getattr("text_factory")?;
    connection.setattr("text_factory", connection.py().get_type::<PyString>())?;
    let fetched = fetch();
    connection.setattr("text_factory", own)?;
    fetched
}

/// The parameters as Python's module takes them.
fn bound<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyAny>> {
    let value = |value: &longshore_core::Value, name: &str| -> PyResult<Bound<'py, PyAny>> {
        Ok(match encode(value, name).map_err(raise)? {
            OwnedCell::Null => py.None().into_bound(py),
            OwnedCell::Integer(value) => value.into_pyobject(py)?.into_any(),
            OwnedCell::Real(value) => value.into_pyobject(py)?.into_any(),
            OwnedCell::Text(text) => text.into_pyobject(py)?.into_any(),
            OwnedCell::Blob(blob) => PyBytes::new(py, &blob).into_any(),
        })
    };
    Ok(match params {
        Params::None => PyTuple::empty(py).into_any(),
        Params::Positional(values) => {
            let values = values.iter().enumerate().map(|(index, it)| value(it, &format!("?{}", index + 1)));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Params::Named(params) => {
            let named = PyDict::new(py);
            for param in params {
                named.set_item(&param.name, value(&param.value, &format!(":{}", param.name))?)?;
            }
            named.into_any()
        }
    })
}

const OTHER_THREAD: &str =
    "make it with sqlite3.connect(..., check_same_thread=False), or give the file's URL";

/// Python's module can give text as bytes, but then no one tells it from a BLOB.
const NOT_UTF8: &str = "read its bytes: CAST(\"<column>\" AS BLOB) in the query, or the file's URL instead of the \
                        sqlite3.Connection and schema={\"<column>\": \"binary\"}";

/// The core's error of what Python's module raised.
#[allow(clippy::needless_pass_by_value)] // what `map_err` gives
fn error_of(error: PyErr) -> Error {
    Python::attach(|py| {
        let raised = error.value(py);
        let message = raised.str().map(|text| text.to_string()).unwrap_or_default();
        let code = raised.getattr("sqlite_errorcode").and_then(|code| code.extract::<i32>());
        if let Ok(code) = code {
            return longshore_sqlite::error_of(code, &message);
        }
        let module = raised.get_type().module().map(|module| module.to_string()).unwrap_or_default();
        if module == "sqlite3" && message.starts_with("Could not decode to UTF-8") {
            return Error::data(format!("{message} [sqlite3 of Python]")).with_hint(NOT_UTF8);
        }
        if module == "sqlite3" {
            let error = Error::programming(format!("{message} [sqlite3 of Python]"));
            return if message.contains("same thread") { error.with_hint(OTHER_THREAD) } else { error };
        }
        // Ours, and what is not a failure of the statement, goes through as it is.
        let kind =
            if error.is_instance_of::<PyException>(py) { Kind::Operational } else { Kind::Interrupted };
        wrap(kind, error.clone_ref(py))
    })
}

/// One value as Python's module makes it.
fn cell<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<Option<Cell<'a>>> {
    if item.is_none() {
        return Ok(Some(Cell::Null));
    }
    if let Ok(text) = item.cast_exact::<PyString>() {
        return Ok(Some(Cell::Text(text.to_str()?.as_bytes())));
    }
    if let Ok(number) = item.cast_exact::<PyFloat>() {
        return Ok(Some(Cell::Real(number.value())));
    }
    if item.cast_exact::<PyInt>().is_ok() {
        return item.extract().map(|value| Some(Cell::Integer(value)));
    }
    Ok(item.cast_exact::<PyBytes>().ok().map(|bytes| Cell::Blob(bytes.as_bytes())))
}

impl Session for SqliteSession {
    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        self.tell(&query.text).map(|()| None)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let facts = self.facts(query).ok_or_else(|| {
            Error::not_supported("Python's sqlite3 does not tell this statement's columns before it runs")
                .with_hint("give the URL or the path of the file")
        })?;
        Ok(plan(facts, options)?.iter().map(longshore_sqlite::Plan::column).collect())
    }

    fn read(self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        let (cursor, collector) = match self.start(query, options) {
            Ok(started) => started,
            Err(error) => return Err(Failed { error, session: Some(self) }),
        };
        let mut rows = SqliteRows { session: *self, cursor: Some(cursor), collector, first: None };
        if rows.collector.is_open() {
            match rows.advance() {
                Ok(first) => rows.first = first,
                Err(error) => return Err(Failed { error, session: Box::new(rows).into_session() }),
            }
        }
        Ok(Box::new(rows))
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn transaction(&self) -> Transaction {
        let open = self.with(|_, connection| connection.getattr("in_transaction")?.extract::<bool>());
        if open.unwrap_or(true) { Transaction::Open } else { Transaction::None }
    }

    fn reset(&mut self) -> Result<()> {
        Ok(())
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        Err("a sqlite3.Connection is one connection: give the file's URL".into())
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Ok(self)
    }
}

impl Loading for SqliteSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        staging::open(self, |session, log| {
            // A transaction that only reads at first cannot always become one that writes.
            log.begin(session, "BEGIN IMMEDIATE")?;
            Ok((begin_foreign(session, load)?, vec![Step::Commit]))
        })
    }
}

impl Statements for SqliteSession {
    fn rows(&self, query: &str) -> Result<Vec<Row>> {
        self.with(|_, connection| {
            let cell =
                |cell: Bound<'_, PyAny>| (!cell.is_none()).then(|| Ok(cell.str()?.to_string())).transpose();
            let row = |row: PyResult<Bound<'_, PyAny>>| {
                Ok(Row(row?.try_iter()?.map(|it| cell(it?)).collect::<PyResult<_>>()?))
            };
            texts(connection, |cursor| {
                let rows = cursor.call_method1("execute", (query,))?.call_method0("fetchall")?;
                rows.try_iter()?.map(row).collect()
            })
        })
    }

    fn exec(&mut self, statement: &str) -> Result<()> {
        self.tell(statement)
    }
}

impl Writer for SqliteSession {
    fn perform(&mut self, statement: &str) -> Result<()> {
        self.tell(statement)
    }

    fn move_rows(&mut self, statement: &str, _: &Expected, _: u64) -> Result<()> {
        self.tell(statement)
    }

    fn undo(&mut self, scope: Option<Scope>, _: &[Undo], _: bool) -> bool {
        // The caller's own deadline may be why it ends.
        self.deadline = Deadline::never();
        let rollback = scope.map_or(&[][..], Scope::rollback);
        self.transaction() == Transaction::None
            || rollback.iter().all(|statement| self.tell(statement).is_ok())
    }

    #[cold]
    fn explain(&self, error: Error, scope: Option<Scope>) -> Error {
        if scope == Some(Scope::Savepoint) && self.transaction() == Transaction::None {
            return error.with_detail("SQLite has undone the whole transaction");
        }
        error
    }
}

impl Rows<SqliteSession> for ForeignRows {
    fn push(&mut self, session: &mut SqliteSession, batch: &RecordBatch) -> Result<()> {
        for start in (0..batch.num_rows()).step_by(ROWS) {
            session.deadline.check()?;
            let part = batch.slice(start, ROWS.min(batch.num_rows() - start));
            insert(self, session, &part)?;
            self.count += part.num_rows() as u64;
        }
        Ok(())
    }

    fn flush(&mut self, _: &mut SqliteSession) -> Result<()> {
        Ok(())
    }

    fn count(&self) -> u64 {
        self.count
    }
}

/// Stores the rows of a batch. A statement that is stopped would take the caller's whole transaction with it: none is.
fn insert(rows: &mut ForeignRows, session: &SqliteSession, batch: &RecordBatch) -> Result<()> {
    let stored = with_lock(|py| -> PyResult<Result<()>> {
        let mut tuples: Vec<Vec<Bound<'_, PyAny>>> = vec![Vec::new(); batch.num_rows()];
        let encoded = rows.encode(batch, |row, cell| {
            let object = object(py, cell).map_err(error_of)?;
            tuples[row].push(object);
            Ok(())
        });
        if let Err(error) = encoded {
            return Ok(Err(error));
        }
        let tuples = tuples.into_iter().map(|row| PyTuple::new(py, row)).collect::<PyResult<Vec<_>>>()?;
        let (count, iterator) = (tuples.len(), PyList::new(py, tuples)?.try_iter()?);
        let cursor = cursor(session.connection.bind(py))?;
        if let Err(error) = cursor.call_method1("executemany", (rows.statement.as_str(), &iterator)) {
            let left: usize = iterator.call_method0("__length_hint__")?.extract()?;
            return Ok(Err(rows.refuse(error_of(error), (count - left).saturating_sub(1))));
        }
        let stored: i64 = cursor.getattr("rowcount")?.extract()?;
        if rows.may_skip || usize::try_from(stored) == Ok(count) {
            return Ok(Ok(()));
        }
        let error = Error::new(Kind::Integrity, "a trigger of the table left a row out: RAISE(IGNORE)")
            .with_hint("drop the trigger, or leave such rows out of the data");
        Ok(Err(error))
    });
    stored.ok_or_else(crate::no_interpreter)?.map_err(error_of)?
}

/// A value as Python's module takes it.
fn object<'py>(py: Python<'py>, cell: Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell {
        Cell::Null => py.None().into_bound(py),
        Cell::Integer(value) => value.into_pyobject(py)?.into_any(),
        Cell::Real(value) => value.into_pyobject(py)?.into_any(),
        Cell::Text(text) => PyString::from_bytes(py, text)?.into_any(),
        Cell::Blob(blob) => PyBytes::new(py, blob).into_any(),
    })
}

/// A result on its way out of a cursor.
struct SqliteRows {
    session: SqliteSession,
    /// `None` after the end or a failure.
    cursor: Option<Py<PyAny>>,
    collector: Collector,
    /// The batch that told the schema.
    first: Option<RecordBatch>,
}

impl SqliteRows {
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(cursor) = &self.cursor {
            self.session.deadline.check()?;
            let count = self.collector.remaining_rows().min(ROWS);
            let collector = &mut self.collector;
            let odd = self.session.with(|py, connection| {
                let cursor = cursor.bind(py);
                let rows = as_str(connection, || cursor.call_method1("fetchmany", (count,)))?;
                fill(rows.cast::<PyList>()?, collector)
            })?;
            match odd {
                Fetched::Some => {}
                Fetched::None => {
                    self.close();
                    return self.collector.last();
                }
                Fetched::Misfit(column, class) => {
                    return Err(Error::data(format!(
                        "column {column:?} came as {class} from the sqlite3.Connection"
                    ))
                    .with_hint("give a connection that is made without detect_types, or the file's URL"));
                }
            }
            if self.collector.is_full() {
                return self.collector.batch().map(Some);
            }
        }
        Ok(None)
    }

    fn close(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            // What a close has to say no one waits for.
            let _ = with_lock(|py| cursor.call_method0(py, "close").map(drop));
        }
    }
}

/// The outcome of a fetch.
enum Fetched {
    Some,
    None,
    /// A column and the class of a value that a converter made.
    Misfit(String, String),
}

/// Adds `rows` to `collector`.
fn fill(rows: &Bound<'_, PyList>, collector: &mut Collector) -> PyResult<Fetched> {
    if rows.is_empty() {
        return Ok(Fetched::None);
    }
    for row in rows.iter() {
        let items: Vec<Bound<'_, PyAny>> = row.cast::<PyTuple>()?.iter().collect();
        let mut cells = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Some(cell) = cell(item)? else {
                let name = collector.schema().field(index).name().clone();
                return Ok(Fetched::Misfit(name, item.get_type().name()?.to_string()));
            };
            cells.push(cell);
        }
        collector.push(|index| cells[index]).map_err(raise)?;
    }
    Ok(Fetched::Some)
}

impl Drop for SqliteRows {
    fn drop(&mut self) {
        self.close();
    }
}

impl Iterator for SqliteRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let next = self.advance();
        if next.is_err() {
            self.close();
        }
        next.transpose()
    }
}

impl Batches for SqliteRows {
    fn schema(&self) -> SchemaRef {
        self.collector.schema()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.collector.finaliser()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.close();
        let SqliteSession { connection, deadline } = &self.session;
        Some(Box::new(SqliteSession { connection: connection.clone(), deadline: deadline.clone() }))
    }
}
