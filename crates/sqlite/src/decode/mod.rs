//! Rows -> record batches, and a result's end.

mod buffer;
mod convert;
mod inferred;
pub(crate) mod overrides;

use std::ffi::c_int;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use longshore_core::memory::Budget;
use longshore_core::{Batches, Error, Finaliser, Meter, ReadOptions, Result, Session, batch_of};
use longshore_values::{CellFault, Losses};

use crate::cell::Cell;
use crate::connection::{Signature, Statement};
use crate::session::SqliteSession;
use crate::types::{Class, Plan, ReadAs};
use buffer::ColumnBuffer;
use convert::convert;
use inferred::{InferredTypes, ValueKinds, locate};
use overrides::{Reader, reader};

/// No batch takes further rows from here on, so that 32-bit offsets always suffice: one value has 1 GiB at most
/// (SQLite's `SQLITE_MAX_LENGTH`).
const CLOSE_AT: usize = 512 << 20;

/// Rows between two reports to the meter.
const REPORT: usize = 1024;

/// Rows of a result on their way into record batches.
pub struct Collector {
    columns: Vec<Column>,
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    batch_rows: usize,
    batch_bytes: usize,
    meter: Arc<Meter>,
    budget: Arc<Budget>,
    /// Bytes of texts and blobs that the budget knows of.
    bounded: usize,
    /// Rows of the batches so far.
    before: u64,
    pending: usize,
    /// Bytes of texts and blobs in the pending rows.
    pending_bytes: usize,
    /// Bytes of the pending rows, texts and blobs included, that the meter knows of.
    metered: usize,
    yielded: bool,
}

struct Column {
    field: FieldRef,
    class: Class,
    buffer: ColumnBuffer,
    read_as: ReadAs,
    /// The reader of an override.
    reader: Option<Reader>,
    losses: Losses,
}

impl Collector {
    /// Batches of the columns `plans`.
    pub fn new(plans: Vec<Plan>, options: &ReadOptions) -> Result<Self> {
        let finaliser = InferredTypes::of(&plans, options);
        let columns = plans.into_iter().map(|plan| column(plan, options)).collect::<Result<Vec<_>>>()?;
        let schema = schema_of(&columns);
        Ok(Self {
            columns,
            schema,
            finaliser,
            batch_rows: options.batch_rows,
            batch_bytes: options.batch_bytes.min(CLOSE_AT),
            meter: options.meter.clone(),
            budget: options.budget.clone(),
            bounded: 0,
            before: 0,
            pending: 0,
            pending_bytes: 0,
            metered: 0,
            yielded: false,
        })
    }

    /// Adds a row, whose cells `cell` gives by the number of the column.
    #[inline]
    pub fn push<'a>(&mut self, mut cell: impl FnMut(usize) -> Cell<'a>) -> Result<()> {
        if self.pending.is_multiple_of(REPORT) {
            self.try_reserve()?;
        }
        let mut bytes = 0;
        for (index, column) in self.columns.iter_mut().enumerate() {
            let cell = cell(index);
            if let Cell::Text(value) | Cell::Blob(value) = cell {
                bytes += value.len();
            }
            column.buffer.push(cell)?;
        }
        self.pending_bytes += bytes;
        self.pending += 1;
        if self.pending.is_multiple_of(REPORT) {
            self.report(REPORT);
        }
        Ok(())
    }

    /// Has every column take the rows until the next report.
    fn try_reserve(&mut self) -> Result<()> {
        self.budget.grow(self.pending_bytes - self.bounded + REPORT * 8 * self.columns.len())?;
        self.bounded = self.pending_bytes;
        Ok(self.columns.iter_mut().try_for_each(|column| column.buffer.try_reserve(REPORT))?)
    }

    fn report(&mut self, rows: usize) {
        let bytes = self.pending_bytes - self.metered + rows * 8 * self.columns.len();
        self.meter.add_rows(rows as u64);
        self.meter.add_bytes(bytes as u64);
        self.metered = self.pending_bytes;
    }

    /// How many rows the next batch may still take.
    #[must_use]
    pub fn remaining_rows(&self) -> usize {
        self.batch_rows - self.pending
    }

    /// Whether the next batch has all the rows or bytes that it may have.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pending >= self.batch_rows
            || self.pending_bytes + self.pending * 8 * self.columns.len() >= self.batch_bytes
                && self.pending > 0
    }

    /// The batch of the rows since the last one.
    pub fn batch(&mut self) -> Result<RecordBatch> {
        let rows = self.pending;
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            self.budget.grow(0)?;
            arrays.push(column.finish().map_err(|fault| locate(fault, &column.field, self.before))?);
        }
        // The types of columns that began without one are final now.
        self.schema = schema_of(&self.columns);
        self.report(rows % REPORT);
        self.before += rows as u64;
        (self.pending, self.pending_bytes, self.metered, self.bounded) = (0, 0, 0, 0);
        self.yielded = true;
        let fields = self.schema.fields().iter().zip(&arrays).map(|(field, array)| {
            if field.data_type() == array.data_type() {
                return field.clone();
            }
            Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        batch_of(&schema, arrays, rows)
    }

    /// The rows that are left at the result's end. An empty result is one empty batch.
    pub fn last(&mut self) -> Result<Option<RecordBatch>> {
        if self.pending > 0 || !self.yielded { self.batch().map(Some) } else { Ok(None) }
    }

    /// Whether the schema is final only with the first batch.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.columns.iter().any(|column| column.read_as == ReadAs::InferredFromFirstBatch)
    }

    /// The schema of every batch; deferred columns may have other types in some.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The finaliser of the schema.
    #[must_use]
    pub fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }
}

fn schema_of(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()))
}

fn column(plan: Plan, options: &ReadOptions) -> Result<Column> {
    let Plan { field, class, read_as } = plan;
    let reader = match &read_as {
        ReadAs::Override(wanted) => Some(
            reader(wanted, class, options)
                .ok_or_else(|| Error::internal(format!("no reader of {wanted} was there after all")))?,
        ),
        _ => None,
    };
    let buffer = if reader.is_some() { ColumnBuffer::new_tagged() } else { ColumnBuffer::new(class) };
    let losses = Losses::of(field.name(), options);
    Ok(Column { field: Arc::new(field), class, buffer, read_as, reader, losses })
}

impl Column {
    fn finish(&mut self) -> Result<ArrayRef, CellFault> {
        let raw = self.buffer.finish()?;
        if !self.field.is_nullable() && raw.null_count() > 0 {
            return Err(broken_promise(raw.as_ref()));
        }
        if let Some(reader) = &mut self.reader {
            return reader.read(&raw);
        }
        if self.read_as == ReadAs::Inferred {
            return Ok(raw);
        }
        if self.read_as == ReadAs::InferredFromFirstBatch {
            let mut kinds = ValueKinds::default();
            kinds.add(&raw, self.class);
            let to = kinds.decide(self.class)?;
            self.field = Arc::new(self.field.as_ref().clone().with_data_type(to.clone()));
            self.read_as = ReadAs::Declared(to);
        }
        convert(&raw, self.class, self.field.data_type(), &mut self.losses)
    }
}

#[cold]
fn broken_promise(array: &dyn Array) -> CellFault {
    let row = array.nulls().map_or(0, |nulls| nulls.iter().take_while(|valid| *valid).count());
    let what = "NULL in a column that is declared NOT NULL";
    CellFault::with_hint(row, what, "the file is damaged: PRAGMA integrity_check tells more")
}

/// A result on its way.
pub(crate) struct Rows {
    session: SqliteSession,
    /// `None` after the end or a failure.
    statement: Option<Statement>,
    collector: Collector,
    /// The batch that decided the schema.
    first: Option<RecordBatch>,
    /// The signatures that the columns were planned for; `None` once the first row is there.
    planned: Option<Vec<Signature>>,
}

impl Rows {
    /// Reads `statement` into `collector`; the first batch where only that decides the schema.
    pub(crate) fn start(
        session: SqliteSession,
        statement: Statement,
        collector: Collector,
    ) -> Result<Self, (SqliteSession, Error)> {
        let planned = Some(statement.signatures());
        let mut rows = Self { session, statement: Some(statement), collector, first: None, planned };
        if rows.collector.is_open() {
            match rows.advance() {
                Ok(first) => rows.first = first,
                Err(error) => {
                    rows.statement = None;
                    return Err((rows.session, error));
                }
            }
        }
        Ok(rows)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(statement) = &mut self.statement else { return Ok(None) };
        self.session.connection.check_process()?;
        let mut has_row = statement.step()?;
        // SQLite parses a statement again where the schema has changed since.
        if self.planned.take().is_some_and(|planned| planned != statement.signatures()) {
            return Err(changed_tables());
        }
        while has_row {
            // Numbers of columns are those of the statement: they fit.
            self.collector.push(|index| statement.cell(c_int::try_from(index).unwrap_or(c_int::MAX)))?;
            if self.collector.is_full() {
                return self.collector.batch().map(Some);
            }
            has_row = statement.step()?;
        }
        self.statement = None;
        self.collector.last()
    }
}

#[cold]
fn changed_tables() -> Error {
    Error::operational("another session changed the tables between the query's start and its first row")
        .with_hint("run the query again")
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let next = self.advance();
        if next.is_err() {
            self.statement = None;
        }
        next.transpose()
    }
}

impl Batches for Rows {
    fn schema(&self) -> SchemaRef {
        self.collector.schema()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.collector.finaliser()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        // The statement ends, and with it what it holds of the file.
        drop(self.statement);
        Some(Box::new(self.session))
    }
}
