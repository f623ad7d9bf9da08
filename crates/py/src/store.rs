//! The embedded store, handed over.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::Schema as ArrowSchema;
use longshore_core::{Batches as _, Error, Frame, Progress, Result, Warnings, lock};
use longshore_interpreter::capsule::{Schema, external, frame, schema_of, stream_capsule};
use longshore_interpreter::raise;
use longshore_store::{
    Access, Constant, Definition, Form, Operation, Operator, Predicate, Scan, Snapshot, Table, Wanted,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::interrupt::{CancelHandle, deadline, reading_deadline};
use crate::limit::Limit;
use crate::policy::Policy;
use crate::read::Reading;
use crate::result::for_frame;

/// A change to the store: its number, microseconds since 1970, the table, the operation, how many rows.
type Change = (i64, i64, String, String, u64);

/// An open store.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Store {
    open: Mutex<Option<longshore_store::Store>>,
    path: PathBuf,
    timeout: Option<f64>,
}

impl Store {
    fn open_store(&self) -> PyResult<longshore_store::Store> {
        let store = lock(&self.open).clone();
        store.ok_or_else(|| raise(Error::interface(format!("the store {} is closed", self.path.display()))))
    }
}

#[pymethods]
impl Store {
    /// Opens the store in a directory; makes it where there is none, unless it is only read.
    #[staticmethod]
    #[pyo3(signature = (path, *, read_only = false, makes = true, timeout = None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        makes: bool,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        let access = match (read_only, makes) {
            (true, _) => Access::Read,
            (false, true) => Access::Create,
            (false, false) => Access::Write,
        };
        let store = py.detach(|| longshore_store::Store::open(&path, access)).map_err(raise)?;
        Ok(Self { open: Mutex::new(Some(store)), path, timeout })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    #[getter]
    fn read_only(&self) -> PyResult<bool> {
        Ok(self.open_store()?.is_read_only())
    }

    /// Begins a transaction, which sees the newest version, or an older one by its number or time.
    #[pyo3(signature = (*, version = None, at = None))]
    fn begin(&self, py: Python<'_>, version: Option<i64>, at: Option<i64>) -> PyResult<StoreTransaction> {
        let snapshot = match (version, at) {
            (Some(version), _) => Snapshot::Version(version),
            (None, Some(at)) => Snapshot::Time(at),
            (None, None) => Snapshot::Newest,
        };
        let store = self.open_store()?;
        let transaction = py.detach(|| store.begin(snapshot)).map_err(raise)?;
        Ok(StoreTransaction {
            transaction: Mutex::new(Some(transaction)),
            timeout: self.timeout,
            cancel: CancelHandle::default(),
        })
    }

    /// The changes of a table, or of all, the oldest first.
    #[pyo3(signature = (table = None))]
    fn versions(&self, py: Python<'_>, table: Option<&str>) -> PyResult<Vec<Change>> {
        let store = self.open_store()?;
        let changes = py.detach(|| store.versions(table)).map_err(raise)?;
        Ok(changes
            .into_iter()
            .map(|each| (each.version, each.at, each.table, each.operation, each.rows))
            .collect())
    }

    /// Removes what was replaced more than so many microseconds ago: how many files and bytes.
    fn vacuum(&self, py: Python<'_>, older_than: u64) -> PyResult<(u64, u64)> {
        let store = self.open_store()?;
        py.detach(|| store.vacuum(older_than)).map_err(raise)
    }

    /// The texts of what is damaged.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let store = self.open_store()?;
        py.detach(|| store.check()).map_err(raise)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.open).take()));
    }
}

/// A transaction of a store.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct StoreTransaction {
    transaction: Mutex<Option<longshore_store::Transaction>>,
    timeout: Option<f64>,
    cancel: CancelHandle,
}

/// A column of another table, by its old name, or a new one.
type NewField = (String, Option<String>);

impl StoreTransaction {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&mut longshore_store::Transaction) -> Result<T>,
    ) -> PyResult<T> {
        let deadline = deadline(py, self.timeout, Some(self.cancel.clone()))?;
        py.detach(|| {
            let mut guard: MutexGuard<'_, Option<longshore_store::Transaction>> = lock(&self.transaction);
            let transaction = guard.as_mut().ok_or_else(ended_transaction)?;
            transaction.set_deadline(&deadline);
            work(transaction)
        })
        .map_err(raise)
    }

    fn take(&self, py: Python<'_>) -> PyResult<longshore_store::Transaction> {
        // Whoever has it may wait for the interpreter's lock.
        py.detach(|| lock(&self.transaction).take()).ok_or_else(|| raise(ended_transaction()))
    }
}

fn ended_transaction() -> Error {
    Error::interface("the transaction has ended")
}

#[pymethods]
impl StoreTransaction {
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |transaction| Ok(transaction.version()))
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, longshore_store::Transaction::tables)
    }

    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<StoreTable>> {
        Ok(self.with(py, |transaction| transaction.table(name))?.map(StoreTable))
    }

    /// The rows of a table; predicates leave out those for which they surely do not hold.
    #[pyo3(signature = (name, columns = None, predicates = None, *, positions = false, form = "stored", verified = false))]
    #[allow(clippy::too_many_arguments)] // those of Python
    fn scan(
        &self,
        py: Python<'_>,
        name: &str,
        columns: Option<Vec<String>>,
        predicates: Option<Vec<(String, String, Bound<'_, PyAny>)>>,
        positions: bool,
        form: &str,
        verified: bool,
    ) -> PyResult<StoreScan> {
        let mut known = Vec::new();
        for (column, operator, constant) in predicates.unwrap_or_default() {
            known.extend(predicate(py, column, &operator, &constant)?);
        }
        let form = match form {
            "stored" => Form::Stored,
            "writable" => Form::Writable,
            "encoded" => Form::Encoded,
            other => return Err(raise(Error::internal(format!("{other:?} is not a form of columns")))),
        };
        let wanted = Wanted { columns, predicates: known, positions, form, verified, validated: verified };
        let scan = self.with(py, |transaction| transaction.scan(name, &wanted))?;
        let schema = scan.schema();
        Ok(StoreScan { schema, chunks: scan.chunks, rows: scan.rows, scan: Mutex::new(Some(scan)) })
    }

    /// The paths of the files that hold a table's rows.
    fn files(&self, py: Python<'_>, name: &str) -> PyResult<Vec<PathBuf>> {
        self.with(py, |transaction| transaction.files(name))
    }

    /// Waits until no other writer has the table.
    fn lock(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |transaction| transaction.lock(name))
    }

    #[pyo3(signature = (name, schema, key, definition, replace))]
    fn create(
        &self,
        py: Python<'_>,
        name: &str,
        schema: &Bound<'_, PyAny>,
        key: Vec<String>,
        definition: Option<String>,
        replace: bool,
    ) -> PyResult<()> {
        let definition = definition_of(schema, key, definition)?;
        self.with(py, |transaction| transaction.create(name, &definition, replace))
    }

    fn drop(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |transaction| transaction.drop_table(name))
    }

    fn rename(&self, py: Python<'_>, name: &str, to: &str) -> PyResult<()> {
        self.with(py, |transaction| transaction.rename(name, to))
    }

    #[pyo3(signature = (name, fields, schema, key, definition))]
    fn alter(
        &self,
        py: Python<'_>,
        name: &str,
        fields: Vec<NewField>,
        schema: &Bound<'_, PyAny>,
        key: Vec<String>,
        definition: Option<String>,
    ) -> PyResult<()> {
        let definition = definition_of(schema, key, definition)?;
        let old: Vec<Option<String>> = fields.into_iter().map(|(_, old)| old).collect();
        self.with(py, |transaction| transaction.alter(name, &definition, &old))
    }

    #[pyo3(signature = (name, stream, operation = "append"))]
    fn append(
        &self,
        py: Python<'_>,
        name: &str,
        stream: &Bound<'_, PyAny>,
        operation: &str,
    ) -> PyResult<u64> {
        let operation = operation_of(operation)?;
        let rows = frame(stream)?;
        self.with(py, |transaction| transaction.append(name, rows, operation))
    }

    fn begin_append(&self, py: Python<'_>, name: &str, schema: &Bound<'_, PyAny>) -> PyResult<()> {
        let Definition { schema, .. } = definition_of(schema, Vec::new(), None)?;
        self.with(py, |transaction| transaction.begin_append(name, &schema))
    }

    fn push(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let Frame { mut batches, .. } = frame(stream)?;
        self.with(py, |transaction| batches.try_for_each(|batch| transaction.push(&batch?)))
    }

    fn end_append(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |transaction| transaction.end_append("append"))
    }

    // The interpreter gives values.
    #[allow(clippy::needless_pass_by_value)]
    fn upsert(
        &self,
        py: Python<'_>,
        name: &str,
        key: Vec<String>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let rows = frame(stream)?;
        self.with(py, |transaction| transaction.upsert(name, &key, rows))
    }

    fn delete(&self, py: Python<'_>, name: &str, positions: &Bound<'_, PyAny>) -> PyResult<u64> {
        let Frame { mut batches, .. } = frame(positions)?;
        self.with(py, |transaction| transaction.delete(name, &mut batches))
    }

    fn update(
        &self,
        py: Python<'_>,
        name: &str,
        positions: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let Frame { batches: mut places, .. } = frame(positions)?;
        let rows = frame(stream)?;
        self.with(py, |transaction| transaction.update(name, &mut places, rows))
    }

    fn truncate(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        self.with(py, |transaction| transaction.truncate(name))
    }

    fn compact(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |transaction| transaction.compact(name))
    }

    /// Remembers what has been changed so far.
    fn mark(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |transaction| Ok(transaction.mark()))
    }

    /// Undoes what has been changed since.
    fn undo_to(&self, py: Python<'_>, mark: usize) -> PyResult<()> {
        self.with(py, |transaction| transaction.undo_to(mark))
    }

    /// Stops what waits or writes, from any thread.
    fn cancel(&self) {
        self.cancel.0.cancel();
    }

    fn commit(&self, py: Python<'_>) -> PyResult<i64> {
        let transaction = self.take(py)?;
        py.detach(|| transaction.commit()).map_err(raise)
    }

    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let transaction = self.take(py)?;
        py.detach(|| transaction.rollback());
        Ok(())
    }
}

/// A table of a transaction.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct StoreTable(Arc<Table>);

#[pymethods]
impl StoreTable {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
    }

    #[getter]
    fn key(&self) -> Vec<String> {
        self.0.key.clone()
    }

    #[getter]
    fn definition(&self) -> Option<&str> {
        self.0.definition.as_deref()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    #[getter]
    fn chunks(&self) -> usize {
        self.0.chunks()
    }

    /// Whether nothing of it has changed since `other`; where it is not known, false.
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The rows of a table, handed over once.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct StoreScan {
    schema: Arc<ArrowSchema>,
    scan: Mutex<Option<Scan>>,
    chunks: usize,
    rows: u64,
}

#[pymethods]
impl StoreScan {
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    #[getter]
    fn chunks(&self) -> usize {
        self.chunks
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.rows
    }

    /// The rows on their way into a frame, as a reading's.
    #[pyo3(signature = (*, policy, memory_limit = None, cancel_handle))]
    // The interpreter gives values.
    #[allow(clippy::needless_pass_by_value)]
    fn reading(
        &self,
        py: Python<'_>,
        policy: Policy,
        memory_limit: Option<Limit>,
        cancel_handle: CancelHandle,
    ) -> PyResult<Reading> {
        let progress = Progress::new(None, Arc::default());
        let deadline = reading_deadline(py, None, cancel_handle, progress.clone())?;
        let warnings = Arc::<Warnings>::default();
        let batches = for_frame(Box::new(self.take()?), &policy, &warnings, |error| error).map_err(raise)?;
        Ok(Reading::of(
            batches,
            Limit::budget(memory_limit, policy.is_stream()),
            deadline,
            progress,
            warnings,
        ))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.take()?.map(|batch: Result<RecordBatch>| batch.map_err(external));
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }
}

impl StoreScan {
    fn take(&self) -> PyResult<Scan> {
        let scan = lock(&self.scan).take();
        scan.ok_or_else(|| raise(Error::interface("the rows have been handed over")))
    }
}

fn definition_of(schema: &Bound<'_, PyAny>, key: Vec<String>, text: Option<String>) -> PyResult<Definition> {
    let schema = ArrowSchema::try_from(&schema_of(schema)?);
    let schema =
        schema.map_err(|error| raise(Error::interface(format!("the schema cannot be read: {error}"))))?;
    Ok(Definition { schema: Arc::new(schema), key, text })
}

fn operation_of(operation: &str) -> PyResult<Operation> {
    let known = ["append", "insert", "replace", "truncate", "alter"];
    let found = known.into_iter().find(|known| *known == operation);
    found.ok_or_else(|| raise(Error::internal(format!("{operation:?} is not an operation"))))
}

/// A predicate that can leave out rows; `None` for one that cannot.
fn predicate(
    py: Python<'_>,
    column: String,
    operator: &str,
    constant: &Bound<'_, PyAny>,
) -> PyResult<Option<Predicate>> {
    let operator = match operator {
        "=" => Operator::Equal,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "start" => Operator::Start,
        _ => return Ok(None),
    };
    let datetime = py.import("datetime")?;
    let constant = if let Ok(text) = constant.extract::<String>() {
        Constant::Text(text)
    } else if constant.is_instance(&datetime.getattr("datetime")?)? {
        let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1))?;
        let micro = datetime.getattr("timedelta")?.call1((0, 0, 1))?;
        let micros = constant.call_method1("__sub__", (epoch,))?.call_method1("__floordiv__", (micro,))?;
        Constant::Timestamp { micros: micros.extract()? }
    } else {
        let text: String = constant.call_method1("__format__", ("f",))?.extract()?;
        let Some(number) = number(&text) else { return Ok(None) };
        number
    };
    Ok(Some(Predicate { column, operator, constant }))
}

/// A number in text, without an exponent.
fn number(text: &str) -> Option<Constant> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unscaled = format!("{whole}{fraction}").parse().ok()?;
    Some(Constant::Number { unscaled, scale: fraction.len().try_into().ok()? })
}
