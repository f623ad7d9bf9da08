//! A driver's session as one of the core's.

use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Done, Failed, Load, Loading, NATIVE_TYPE, NOT_PREPARED,
    NOT_SPLIT, NoRows, OneSession, ParameterSets, Params, Preparing, Query, ReadOptions, Result, Scripting,
    Session, Sink, Source, Splitting, TableName, Transaction,
};
use longshore_interpreter::{python_params, without_lock};
use longshore_source::sql::{Dialect, positional, unlike};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::batches::{ArrowBatches, DriverResult};
use crate::call::Handle;
use crate::postgresql;
use crate::sink::ArrowSink;

/// One connection of a driver. Dropped, it is closed.
pub(crate) struct ArrowSession {
    pub(crate) handle: Handle,
    pub(crate) deadline: Deadline,
}

impl ArrowSession {
    pub(crate) fn new(handle: Handle, deadline: &Deadline) -> Self {
        Self { handle, deadline: deadline.clone() }
    }

    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.handle.call(&self.deadline, work)
    }

    pub(crate) fn tell(&self, method: &'static str) -> Result<()> {
        self.call(move |session| session.call_method0(method).map(drop))
    }

    /// The session, where it can be used on.
    pub(crate) fn left(self: Box<Self>) -> Option<Box<dyn Session>> {
        if self.handle.is_usable() { Some(self) } else { None }
    }

    /// Whether the driver has a method that not every one has.
    fn has(&self, method: &str) -> bool {
        self.handle.attribute(method, |_| Ok(())).is_some()
    }

    /// Whether it is a client of PostgreSQL's that hands on what the server has sent, instead of Arrow streams.
    fn sends_wire_rows(&self) -> bool {
        self.has("fetch")
    }

    /// Why the driver cannot do what others can, as it says itself.
    fn reason(&self, name: &str, otherwise: &str) -> String {
        self.handle.attribute(name, |reason| reason.extract()).unwrap_or_else(|| otherwise.into())
    }

    /// The query with its parameters by place, where the driver has no others and the session says which its database's are.
    fn by_place(&self, query: &Query) -> Result<Query> {
        let places = match &query.params {
            Params::Named(_) => self.handle.attribute("places", |places| places.extract::<Option<String>>()),
            Params::None | Params::Positional(_) => None,
        };
        let Some(place) = places.flatten() else { return Ok(query.clone()) };
        let database =
            self.handle.attribute("dialect", |dialect| dialect.getattr("name")?.extract::<String>());
        let dialect = Dialect::with_places(&place, database.as_deref());
        let numbered = positional(dialect, &query.text, &query.params)?;
        let values = numbered.values.into_iter().cloned().collect();
        Ok(Query { text: numbered.text, params: Params::Positional(values) })
    }

    /// The columns of what a method tells of a statement without running it.
    fn columns(&self, method: &'static str, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let begun = self.start(method, query, None)?;
        let fields = begun.schema(options)?.fields().clone();
        let column = |field: &std::sync::Arc<arrow_schema::Field>| {
            let native_type = field.metadata().get(NATIVE_TYPE).cloned().unwrap_or_default();
            Column { field: field.as_ref().clone(), native_type }
        };
        Ok(fields.iter().map(column).collect())
    }

    /// The result of a method that takes a query, its parameters, and for a read the most rows of a batch.
    fn start(&self, method: &'static str, query: &Query, rows: Option<usize>) -> Result<DriverResult> {
        let query = self.by_place(query)?;
        self.call(move |session| {
            let params = python_params(session.py(), &query.params)?;
            let result = match rows {
                Some(rows) => session.call_method1(method, (query.text, params, rows)),
                None => session.call_method1(method, (query.text, params)),
            };
            DriverResult::new(&result?)
        })?
    }
}

impl ArrowSession {
    /// Tells the driver the choices that are sources' own, where it has some.
    fn choose(&self, options: &ReadOptions) -> Result<()> {
        if !self.has("choose") {
            return Ok(());
        }
        let own = options.own.0.clone();
        self.call(move |session| session.call_method1("choose", (own,)).map(drop))
    }
}

/// A statement that has run.
enum Started {
    /// It has rows.
    Rows(DriverResult),
    /// It has none.
    Done(Done),
}

impl ArrowSession {
    /// Runs a statement with or without rows.
    fn run_any(&self, query: &Query, rows: usize) -> Result<Started> {
        let query = self.by_place(query)?;
        self.call(move |session| {
            let params = python_params(session.py(), &query.params)?;
            let result = session.call_method1("run", (query.text, params, rows))?;
            match result.extract::<Option<u64>>() {
                Ok(rows) => Ok(Ok(Started::Done(Done { rows, last_row: None }))),
                Err(_) => DriverResult::new(&result).map(|begun| begun.map(Started::Rows)),
            }
        })?
    }
}

impl Drop for ArrowSession {
    fn drop(&mut self) {
        // The driver's thread needs the lock that Python has while it drops a connection.
        without_lock(|| self.handle.close());
    }
}

impl Session for ArrowSession {
    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        let query = self.by_place(query)?;
        self.call(move |session| {
            let params = python_params(session.py(), &query.params)?;
            session.call_method1("execute", (query.text, params))?.extract()
        })
    }

    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        let mut rows = Some(0);
        for sets in sets {
            let sets = sets?;
            let queries =
                sets.into_iter().map(|params| self.by_place(&Query { text: text.to_owned(), params }));
            let queries = queries.collect::<Result<Vec<Query>>>()?;
            if queries.iter().any(|query| query.text != queries[0].text) {
                return Err(unlike());
            }
            let changed = self.call(move |session| {
                let text = queries.first().map(|query| query.text.clone()).unwrap_or_default();
                let params = queries.iter().map(|query| python_params(session.py(), &query.params));
                let params = params.collect::<PyResult<Vec<_>>>()?;
                session.call_method1("execute_many", (text, params))?.extract::<Option<u64>>()
            })?;
            rows = rows.zip(changed).map(|(rows, changed)| rows + changed);
        }
        Ok(rows)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        if self.sends_wire_rows() {
            return postgresql::describe(self, query, options);
        }
        self.columns("describe", query, options)
    }

    fn read(self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        if self.sends_wire_rows() {
            return postgresql::read(self, query, options);
        }
        if let Err(error) = self.choose(options) {
            return Err(Failed { error, session: self.left() });
        }
        let begun = if options.any_statement {
            self.run_any(query, options.batch_rows)
        } else {
            self.start("read", query, Some(options.batch_rows)).map(Started::Rows)
        };
        match begun {
            Ok(Started::Done(done)) => Ok(Box::new(NoRows { done, session: self })),
            Ok(Started::Rows(begun)) => {
                ArrowBatches::start(self, begun, options).map(|batches| Box::new(batches) as _)
            }
            Err(error) => Err(Failed { error, session: self.left() }),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.tell("begin")
    }

    fn begin_unsplit(&mut self) -> Result<()> {
        self.tell("begin_snapshot")
    }

    fn commit(&mut self) -> Result<()> {
        if self.transaction() == Transaction::None { Ok(()) } else { self.tell("commit") }
    }

    fn rollback(&mut self) -> Result<()> {
        if self.transaction() == Transaction::None { Ok(()) } else { self.tell("rollback") }
    }

    fn is_usable(&self) -> bool {
        self.handle.is_usable()
    }

    fn transaction(&self) -> Transaction {
        let word = self.handle.attribute("transaction", |word| word.extract::<String>());
        match word.as_deref() {
            Some("none") => Transaction::None,
            Some("open") => Transaction::Open,
            _ => Transaction::Failed,
        }
    }

    fn reset(&mut self) -> Result<()> {
        self.tell("reset")
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        let queries = self.handle.attribute("catalogue", |queries| queries.extract::<Option<_>>());
        queries.flatten().map(CatalogueQueries::of)
    }

    fn qualified_name(&self, table: &TableName) -> String {
        let path: Vec<&String> = table.schema.iter().chain([&table.table]).collect();
        let quote = |part: &&String| format!("\"{}\"", part.replace('"', "\"\""));
        let own = self.handle.attribute("quoted_name", |quoted_name| {
            quoted_name.call1(PyTuple::new(quoted_name.py(), &path)?)?.extract::<String>()
        });
        own.unwrap_or_else(|| path.iter().map(quote).collect::<Vec<_>>().join("."))
    }

    fn scripting(&mut self) -> Option<&mut dyn Scripting> {
        if self.has("execute_script") { Some(self) } else { None }
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        if self.has("split") { Ok(self) } else { Err(self.reason("not_split", NOT_SPLIT)) }
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        if self.has("parameters") { Ok(self) } else { Err(self.reason("not_prepared", NOT_PREPARED)) }
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        if self.has("load") { Ok(self) } else { Err(self) }
    }
}

impl Preparing for ArrowSession {
    fn parameters(&mut self, statement: &str, options: &ReadOptions) -> Result<Vec<Column>> {
        self.columns("parameters", &Query::new(statement), options)
    }
}

impl Scripting for ArrowSession {
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()> {
        if begins && self.transaction() == Transaction::None {
            self.begin()?;
        }
        let script = script.to_owned();
        self.call(move |session| session.call_method1("execute_script", (script,)).map(drop))
    }
}

impl Loading for ArrowSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        match ArrowSink::begin(&self, load) {
            Ok(loader) => Ok(Box::new(ArrowSink::new(self, loader))),
            Err(error) => Err(Failed { error, session: self.left() }),
        }
    }

    fn begin_write(&mut self, load: &Load) -> Result<()> {
        let commits = self.handle.attribute("new_table_commits", |commits| commits.extract::<bool>());
        if load.makes_table() && commits == Some(true) { Ok(()) } else { self.begin() }
    }
}

/// A driver's connection of the caller's: its transaction, its temporary tables.
#[pyclass(frozen, module = "longshore._core")]
pub struct ArrowConnection(Py<PyAny>);

#[pymethods]
impl ArrowConnection {
    /// Over a session of `longshore.sources`.
    #[new]
    fn new(session: Py<PyAny>) -> Self {
        Self(session)
    }
}

impl ArrowConnection {
    /// The source that the core reads from.
    #[must_use]
    pub fn source(&self, py: Python<'_>) -> Box<dyn Source> {
        let handle = Handle::new(self.0.clone_ref(py));
        Box::new(OneSession(move |deadline: &Deadline| {
            Ok(Box::new(ArrowSession::new(handle.clone(), deadline)) as Box<dyn Session>)
        }))
    }
}
