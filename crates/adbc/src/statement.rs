//! A statement: a query with its parameters, or the rows that go into a table.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use adbc_core::PartitionedResult;
use adbc_core::error::{Result, Status};
use adbc_core::options::{IngestMode, OptionStatement, OptionValue};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{Schema, SchemaRef};
use longshore_core::{
    Deadline, Decimals, Frame, Frames, IfExists, Load, OwnOptions, Params, Partitions, Query, ReadOptions,
    Split, Spread, TableName, execute_partitions,
};

use crate::Reader;
use crate::bind::{Outside, Sets, data_error, first_set, is_refused, nothing, reader_of};
use crate::connection::Shared;
use crate::error::{adbc_error, catch_panic, not_supported, refusal};
use crate::options::{self, count, double, flag, optionable, text, unknown, untold, wrong};
use crate::rows::{Cancel, Reading, Rows};

const BY_NAME: &str = "adbc.statement.bind_by_name";
const BATCH_SIZE: &str = "longshore.batch_size";
const TIMEOUT: &str = "longshore.timeout";
const PARTITION_NUM: &str = "longshore.partition_num";
const PARTITION_ON: &str = "longshore.partition_on";
const SNAPSHOT: &str = "longshore.snapshot";
const LEASE: &str = "longshore.lease";
/// As in the DB-API.
const LONGEST_LEASE: f64 = 86_400.0;

/// The most partitions of a statement whose caller names no number.
const MOST: usize = 16;

/// The table that rows go into.
#[derive(Default)]
struct Ingest {
    table: Option<String>,
    catalog: Option<String>,
    schema: Option<String>,
    mode: Option<IngestMode>,
    temporary: bool,
}

/// The choices of a read.
struct Choices {
    by_name: bool,
    batch_size: Option<usize>,
    timeout: Option<f64>,
    partition_num: Option<usize>,
    partition_on: Option<String>,
    snapshot: bool,
    lease: f64,
}

/// One statement.
pub(crate) struct Statement {
    shared: Arc<Shared>,
    cancel: Cancel,
    query: Option<String>,
    bound: Option<Reader>,
    ingest: Ingest,
    choices: Choices,
}

impl Statement {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let choices = Choices {
            by_name: false,
            batch_size: None,
            timeout: None,
            partition_num: None,
            partition_on: None,
            snapshot: true,
            lease: 600.0,
        };
        Self {
            shared,
            cancel: Cancel::default(),
            query: None,
            bound: None,
            ingest: Ingest::default(),
            choices,
        }
    }

    fn set(&mut self, key: &str, value: &OptionValue) -> Result<()> {
        match OptionStatement::from(key) {
            OptionStatement::TargetTable => {
                self.ingest.table = Some(text(key, value)?);
                self.query = None;
            }
            OptionStatement::TargetCatalog => self.ingest.catalog = optional(text(key, value)?),
            OptionStatement::TargetDbSchema => {
                self.ingest.schema = optional(text(key, value)?);
                self.ingest.temporary &= self.ingest.schema.is_none();
            }
            OptionStatement::IngestMode => self.ingest.mode = Some(IngestMode::try_from(value)?),
            OptionStatement::Temporary => {
                self.ingest.temporary = flag(key, value)?;
                if self.ingest.temporary {
                    // It has one of its own. That of an earlier table would still be there.
                    self.ingest.schema = None;
                }
            }
            OptionStatement::Incremental if flag(key, value)? => {
                return Err(not_supported("all partitions are known at once"));
            }
            OptionStatement::Incremental => {}
            _ => return self.set_own(key, value),
        }
        Ok(())
    }

    fn set_own(&mut self, key: &str, value: &OptionValue) -> Result<()> {
        let choices = &mut self.choices;
        match key {
            BY_NAME => choices.by_name = flag(key, value)?,
            BATCH_SIZE => choices.batch_size = Some(count(key, value)?),
            TIMEOUT => choices.timeout = Some(seconds(key, value)?),
            LEASE => choices.lease = lease(key, value)?,
            PARTITION_NUM => choices.partition_num = Some(count(key, value)?),
            PARTITION_ON => choices.partition_on = optional(text(key, value)?),
            SNAPSHOT => choices.snapshot = flag(key, value)?,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn option(&self, key: &str) -> Result<OptionValue> {
        let Choices { by_name, batch_size, timeout, partition_num, partition_on, snapshot, lease } =
            &self.choices;
        let number = |number: Option<usize>| {
            number.and_then(|number| i64::try_from(number).ok()).map(OptionValue::Int)
        };
        let texts = |text: &Option<String>| text.clone().map(OptionValue::String);
        let value = match OptionStatement::from(key) {
            OptionStatement::TargetTable => texts(&self.ingest.table),
            OptionStatement::TargetCatalog => texts(&self.ingest.catalog),
            OptionStatement::TargetDbSchema => texts(&self.ingest.schema),
            OptionStatement::IngestMode => self.ingest.mode.map(OptionValue::from),
            OptionStatement::Temporary => Some(self.ingest.temporary.to_string().into()),
            OptionStatement::Incremental => Some("false".into()),
            _ => match key {
                BY_NAME => Some(by_name.to_string().into()),
                BATCH_SIZE => number(*batch_size),
                TIMEOUT => timeout.map(OptionValue::Double),
                PARTITION_NUM => number(*partition_num),
                PARTITION_ON => texts(partition_on),
                SNAPSHOT => Some(snapshot.to_string().into()),
                LEASE => Some(OptionValue::Double(*lease)),
                _ => return Err(unknown(key)),
            },
        };
        value.ok_or_else(|| untold(key))
    }

    /// Makes a call once the connection is free.
    fn call<T>(&mut self, work: impl FnOnce(&mut Self, &Deadline) -> Result<T>) -> Result<T> {
        catch_panic(|| {
            let timeout = self.choices.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let (shared, deadline) = (self.shared.clone(), self.cancel.deadline(timeout));
            let guard = shared.call_lock.take(&deadline);
            let done = guard.and_then(|_guard| work(self, &deadline));
            // What a refused call has not taken is not the next one's.
            self.bound = None;
            done
        })
    }

    fn text(&self) -> Result<String> {
        self.query.clone().ok_or_else(|| refusal(Status::InvalidState, "the statement has no query"))
    }

    fn sets(&mut self) -> Option<Sets> {
        let by_name = self.choices.by_name;
        self.bound.take().map(|reader| Sets::new(reader, by_name))
    }

    fn options(&self, any_statement: bool) -> ReadOptions {
        let mut options = ReadOptions {
            decimals: Decimals::Streamed,
            snapshot: self.choices.snapshot,
            any_statement,
            ..ReadOptions::default()
        };
        options.batch_rows = self.choices.batch_size.unwrap_or(options.batch_rows);
        options
    }

    fn split(&self) -> Option<Split> {
        let number = NonZeroUsize::new(self.choices.partition_num?);
        Some(Split { number, on: self.choices.partition_on.clone(), ..Split::default() })
    }

    /// Runs the query, with each set of parameters in its turn.
    fn rows(&mut self, deadline: &Deadline) -> Result<Reader> {
        if self.ingest.table.is_some() {
            self.write(deadline)?;
            return Ok(nothing());
        }
        let text = self.text()?;
        let mut reading = Reading {
            connection: self.shared.core.clone(),
            deadline: deadline.clone(),
            options: self.options(true),
            split: self.split(),
        };
        let rows = match self.sets() {
            None => Rows::open(&reading, Query::new(text)),
            Some(sets) => {
                let untold = Query { text: text.clone(), params: sets.nulls() };
                let sets = sets.all()?.into_iter();
                let mut queries: Vec<_> = sets.map(|params| Query { text: text.clone(), params }).collect();
                match queries.len() {
                    0 => self.describe(untold, deadline).map(Rows::none),
                    1 => Rows::open(&reading, queries.remove(0)),
                    _ => {
                        reading.split = None;
                        Rows::open_all(&reading, queries)
                    }
                }
            }
        };
        rows.map(|rows| Box::new(rows) as Reader)
    }

    /// The columns of what `query` would return; none of a statement without rows.
    fn describe(&self, query: Query, deadline: &Deadline) -> Result<SchemaRef> {
        match longshore_core::describe(&self.shared.core, &[query], &self.options(true), deadline) {
            Err(error) if error.message().starts_with("the statement returns no rows") => {
                Ok(Arc::new(Schema::empty()))
            }
            described => described.map_err(adbc_error),
        }
    }

    /// Runs the query or writes the rows, and tells how many rows that changed.
    fn update(&mut self, deadline: &Deadline) -> Result<Option<u64>> {
        if self.ingest.table.is_some() {
            return self.write(deadline).map(Some);
        }
        let (text, core) = (self.text()?, self.shared.core.clone());
        match self.sets() {
            Some(sets) => longshore_core::execute_many(&core, &text, sets, deadline),
            None => core.execute(&Query::new(text), deadline),
        }
        .map_err(adbc_error)
    }

    fn write(&mut self, deadline: &Deadline) -> Result<u64> {
        let reader = self
            .bound
            .take()
            .ok_or_else(|| refusal(Status::InvalidState, "no rows are bound to be ingested"))?;
        self.shared.check_catalog(self.ingest.catalog.as_deref(), deadline)?;
        let schema = if self.ingest.temporary {
            Some(self.temporary_schema(deadline)?)
        } else {
            self.ingest.schema.clone()
        };
        let table = TableName { schema, table: self.ingest.table.clone().unwrap_or_default() };
        let if_exists = match self.ingest.mode.unwrap_or(IngestMode::Create) {
            IngestMode::Create => IfExists::Fail,
            IngestMode::Append => IfExists::Append,
            IngestMode::Replace => IfExists::Replace,
            IngestMode::CreateAppend => self.create_or_append(&table, deadline)?,
        };
        let schema = reader.schema();
        let batches = reader.map(|batch| batch.map_err(data_error));
        let frame = Frame { schema: schema.clone(), batches: Box::new(batches) };
        let frames = Frames::new(std::iter::once(Ok(frame))).map_err(adbc_error)?;
        let load = Load {
            table,
            schema,
            if_exists,
            key: Vec::new(),
            types: Vec::new(),
            own: OwnOptions::default(),
            meter: Arc::default(),
        };
        let spread = Spread { sessions: NonZeroUsize::MIN, most_rows: None, warn: &|_| Ok(()) };
        longshore_core::write(&self.shared.core, &load, frames, &spread, deadline).map_err(adbc_error)
    }

    fn temporary_schema(&self, deadline: &Deadline) -> Result<String> {
        self.shared.catalogue(deadline, |core, deadline| longshore_core::temporary_schema(core, deadline))
    }

    fn create_or_append(&self, table: &TableName, deadline: &Deadline) -> Result<IfExists> {
        let is_there = self
            .shared
            .catalogue(deadline, |core, deadline| longshore_core::has_table(core, table, deadline))?;
        Ok(if is_there { IfExists::Append } else { IfExists::Fail })
    }

    /// The parts of the query, each of which any connection can read.
    fn partitions(&mut self, deadline: &Deadline) -> Result<PartitionedResult> {
        if self.bound.is_some() {
            return Err(not_supported("partitions have no parameters: write the values into the query"));
        }
        let query = Query::new(self.text()?);
        let split = self.split().unwrap_or_else(|| Split {
            most: NonZeroUsize::new(MOST),
            on: self.choices.partition_on.clone(),
            ..Split::default()
        });
        let lease = Duration::from_secs_f64(self.choices.lease);
        let made =
            execute_partitions(&self.shared.core, query, &split, &self.options(false), lease, deadline);
        let Partitions { schema, parts } = made.map_err(adbc_error)?;
        Ok(PartitionedResult { partitions: parts, schema: schema.as_ref().clone(), rows_affected: -1 })
    }
}

/// Seconds that a duration can have.
fn seconds(key: &str, value: &OptionValue) -> Result<f64> {
    let seconds = double(key, value)?;
    Duration::try_from_secs_f64(seconds).map(|_| seconds).map_err(|_| wrong(key, "a number of seconds"))
}

/// A snapshot that is kept has the server keep every row that is deleted meanwhile.
fn lease(key: &str, value: &OptionValue) -> Result<f64> {
    let seconds = double(key, value)?;
    let is_lease = seconds > 0.0 && seconds <= LONGEST_LEASE;
    if is_lease { Ok(seconds) } else { Err(wrong(key, "a number of seconds above zero, a day at most")) }
}

/// An empty name is none.
fn optional(name: String) -> Option<String> {
    Some(name).filter(|name| !name.is_empty())
}

optionable!(Statement, OptionStatement);

impl adbc_core::Statement for Statement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        self.bound = Some(reader_of(batch));
        Ok(())
    }

    fn bind_stream(&mut self, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        let is_given = !is_refused(reader.as_ref());
        self.bound = is_given.then(|| Box::new(Outside::new(reader, self.shared.clone())) as Reader);
        Ok(())
    }

    fn execute(&mut self) -> Result<Reader> {
        self.call(Self::rows)
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        let rows = self.call(Self::update)?;
        Ok(rows.and_then(|rows| i64::try_from(rows).ok()))
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        let mut unused = None;
        let schema = self.call(|statement, deadline| {
            // One set of parameters tells the types of all.
            let (params, bound) = match statement.bound.take() {
                Some(reader) => {
                    first_set(reader, statement.choices.by_name).map(|(params, all)| (params, Some(all)))?
                }
                None => (Params::None, None),
            };
            unused = bound;
            let query = Query { text: statement.text()?, params };
            let options = statement.options(false);
            let schema = longshore_core::describe(&statement.shared.core, &[query], &options, deadline);
            schema.map(|schema| schema.as_ref().clone()).map_err(adbc_error)
        })?;
        // The call has run nothing: they are still those of the next one.
        self.bound = unused;
        Ok(schema)
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        self.call(Self::partitions)
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        catch_panic(|| {
            let deadline = self.cancel.deadline(None);
            let _guard = self.shared.call_lock.take(&deadline)?;
            let schema =
                longshore_core::parameters(&self.shared.core, &self.text()?, &self.options(false), &deadline);
            schema.map(|schema| schema.as_ref().clone()).map_err(adbc_error)
        })
    }

    fn prepare(&mut self) -> Result<()> {
        // The server prepares it with the types of its parameters, when they are known.
        self.text().map(drop)
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        self.query = Some(query.as_ref().to_owned());
        self.ingest = Ingest::default();
        Ok(())
    }

    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        Err(not_supported("the sources take SQL, and no Substrait"))
    }

    fn get_cancel_handle(&self) -> Box<dyn adbc_core::CancelHandle> {
        Box::new(self.cancel.clone())
    }
}
