//! A session: its transaction, and the statements that it runs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    Batches, CatalogueQueries, Collected, Column, Deadline, Done, Error, Failed, Load, Loading, NoRows,
    Query, ReadOptions, Result, Session, Sink, Transaction as State,
};
use longshore_store::{Store, Table, Transaction, VERIFY, Wanted};

use crate::catalogue::{self, type_name};
use crate::engine::{Engine, EngineRows};
use crate::rows::{QueryRows, ScanRows};
use crate::settings::Settings;
use crate::sink::StoreSink;
use crate::statement::{Statement, refusal};

/// One session over a store.
pub(crate) struct StoreSession {
    store: Store,
    settings: Settings,
    /// The transaction that its owner has begun.
    pub(crate) open: Option<Transaction>,
    engine: Option<Arc<Engine>>,
    pub(crate) deadline: Deadline,
}

/// The result that a statement gives.
enum Answer {
    Scan(longshore_store::Scan),
    Batch(RecordBatch),
    Done(Done),
}

impl StoreSession {
    pub(crate) fn open(settings: Settings, deadline: &Deadline) -> Result<Self> {
        deadline.check()?;
        let store = Store::open(&settings.path, settings.access)?;
        Ok(Self { store, settings, open: None, engine: None, deadline: deadline.clone() })
    }

    /// Begins a transaction, every wait of which looks at the deadline.
    pub(crate) fn new_transaction(&self) -> Result<Transaction> {
        let mut transaction = self.store.begin(self.settings.snapshot)?;
        self.tell_deadline(&mut transaction);
        Ok(transaction)
    }

    fn tell_deadline(&self, transaction: &mut Transaction) {
        let deadline = match self.settings.timeout {
            Some(timeout) => self.deadline.at_most(timeout),
            None => self.deadline.clone(),
        };
        transaction.set_deadline(&deadline);
    }

    /// Does work in the open transaction, or in one of its own.
    fn within<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        if let Some(mut transaction) = self.open.take() {
            self.tell_deadline(&mut transaction);
            let done = work(&mut transaction);
            self.open = Some(transaction);
            return done;
        }
        let mut transaction = self.new_transaction()?;
        let done = work(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The SQL engine, for a statement that needs it; `None` for another, and where its library is not named.
    fn engine_for(&mut self, query: &Query) -> Result<Option<Arc<Engine>>> {
        let Some(library) = self.settings.libduckdb.clone() else { return Ok(None) };
        if catalogue::is_ours(query)
            || Statement::of(query).is_ok_and(|statement| !self.is_computed(&statement))
        {
            return Ok(None);
        }
        if self.engine.is_none() {
            self.engine = Some(Engine::start(&library, self.settings.verify)?);
        }
        Ok(self.engine.clone())
    }

    /// Whether it reads columns that the engine computes.
    fn is_computed(&mut self, statement: &Statement) -> bool {
        let Statement::Scan { table, .. } = statement else { return false };
        let found = self.within(|transaction| transaction.table(table));
        found.is_ok_and(|table| refuse_computed(table.as_deref()).is_err())
    }

    /// Runs a query by the engine, over the tables that the transaction sees: the open one, or one that is the query's own.
    fn query(
        &mut self,
        engine: &Arc<Engine>,
        query: &Query,
        rows: usize,
    ) -> Result<(EngineRows, Option<Transaction>)> {
        let mut own = if self.open.is_none() { Some(self.new_transaction()?) } else { None };
        if let Some(transaction) = own.as_mut().or(self.open.as_mut()) {
            engine.show(transaction)?;
        }
        Ok((engine.query(query, &self.deadline, rows)?, own))
    }

    fn answer(&mut self, query: &Query, options: &ReadOptions) -> Result<Answer> {
        let verify = self.settings.verify || options.own.has(VERIFY, "true");
        self.within(|transaction| {
            if let Some(batch) = catalogue::answer(query, transaction)? {
                return Ok(Answer::Batch(batch));
            }
            match Statement::of(query)? {
                Statement::Scan { table, columns } => {
                    refuse_computed(transaction.table(&table)?.as_deref())?;
                    let wanted = Wanted { columns, verified: verify, validated: verify, ..Wanted::default() };
                    transaction.scan(&table, &wanted).map(Answer::Scan)
                }
                Statement::Count { table, name } => {
                    let rows = match transaction.table(&table)? {
                        Some(table) => table.rows(),
                        // It says that there is none.
                        None => transaction.scan(&table, &Wanted::default())?.rows,
                    };
                    count(&name, rows).map(Answer::Batch)
                }
                Statement::Drop { table, if_exists } => {
                    transaction.lock(&table)?;
                    if !if_exists || transaction.table(&table)?.is_some() {
                        transaction.drop_table(&table)?;
                    }
                    Ok(Answer::Done(Done::default()))
                }
            }
        })
    }
}

/// Refuses the columns that the SQL engine computes as they are read.
fn refuse_computed(table: Option<&Table>) -> Result<()> {
    let definition = table.and_then(|table| table.definition.as_deref()).unwrap_or_default();
    if definition.to_ascii_uppercase().contains("GENERATED ALWAYS") {
        return Err(refusal("the table has computed columns, which need a SQL engine"));
    }
    Ok(())
}

fn count(name: &str, rows: u64) -> Result<RecordBatch> {
    let rows = i64::try_from(rows).map_err(|_| Error::internal("too many rows to be counted"))?;
    let schema = Schema::new(vec![Field::new(name, DataType::Int64, true)]);
    let column: ArrayRef = Arc::new(Int64Array::from(vec![rows]));
    RecordBatch::try_new(Arc::new(schema), vec![column]).map_err(|error| Error::internal(error.to_string()))
}

fn columns_of(schema: &Schema) -> Vec<Column> {
    let column = |field: &Arc<Field>| {
        let native_type = type_name(field);
        Column { field: field.as_ref().clone(), native_type }
    };
    schema.fields().iter().map(column).collect()
}

impl Session for StoreSession {
    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        if let Some(engine) = self.engine_for(query)? {
            let (mut rows, _own) = self.query(&engine, query, ReadOptions::default().batch_rows)?;
            return rows.try_fold(0, |count, batch| Ok(count + batch?.num_rows() as u64)).map(Some);
        }
        Ok(match self.answer(query, &ReadOptions::default())? {
            Answer::Scan(scan) => Some(scan.rows),
            Answer::Batch(batch) => Some(batch.num_rows() as u64),
            Answer::Done(done) => done.rows,
        })
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        if matches!(Statement::of(query), Ok(Statement::Drop { .. })) {
            return Err(Error::programming("the statement returns no rows, and was not run"));
        }
        if let Some(engine) = self.engine_for(query)? {
            let schema = self.within(|transaction| {
                engine.show(transaction)?;
                engine.describe(query)
            })?;
            return Ok(columns_of(&schema));
        }
        let schema = match self.answer(query, options)? {
            Answer::Scan(scan) => scan.schema(),
            Answer::Batch(batch) => batch.schema(),
            Answer::Done(_) => Arc::new(Schema::empty()),
        };
        Ok(columns_of(&schema))
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        match self.engine_for(query) {
            Ok(None) => {}
            Ok(Some(engine)) => {
                return match self.query(&engine, query, options.batch_rows) {
                    Ok((rows, own)) => Ok(Box::new(QueryRows { rows, own, session: self })),
                    Err(error) => Err(Failed { error, session: Some(self) }),
                };
            }
            Err(error) => return Err(Failed { error, session: Some(self) }),
        }
        match self.answer(query, options) {
            Ok(Answer::Scan(scan)) => Ok(Box::new(ScanRows::new(scan, options.batch_rows, self))),
            Ok(Answer::Batch(batch)) => Ok(Box::new(Collected::one(batch, self))),
            Ok(Answer::Done(done)) if options.any_statement => Ok(Box::new(NoRows { done, session: self })),
            Ok(Answer::Done(_)) => {
                let error = Error::programming("the statement returns no rows, and was run");
                Err(Failed { error, session: Some(self) })
            }
            Err(error) => Err(Failed { error, session: Some(self) }),
        }
    }

    fn transaction(&self) -> State {
        if self.open.is_some() { State::Open } else { State::None }
    }

    fn begin(&mut self) -> Result<()> {
        self.open = Some(self.new_transaction()?);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |transaction| transaction.commit().map(drop))
    }

    fn rollback(&mut self) -> Result<()> {
        // Dropped, it is undone.
        self.open = None;
        Ok(())
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn reset(&mut self) -> Result<()> {
        self.rollback()
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        Some(catalogue::queries())
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Ok(self)
    }
}

impl Loading for StoreSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        StoreSink::begin(self, load).map(|sink| Box::new(sink) as Box<dyn Sink>)
    }
}
