//! The served source, for one role: its sessions, and the statements on them.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{
    Batches, CancelHandle, CatalogueQueries, Connection, Current, Deadline, Decimals, Direct, IfExists, Load,
    Never, OwnOptions, Params, Pool, Query, ReadOptions, Request, Result, Source, Spread, TableName,
    open_read,
};

/// The sessions of a role.
pub(crate) struct Engine {
    direct: Arc<Direct>,
    pool: Arc<Pool>,
    time: Option<Duration>,
}

/// The sessions of a statement: any of the role, or the one of a transaction.
#[derive(Clone)]
pub(crate) enum Where {
    Any(Arc<Engine>),
    One(Arc<Connection>),
}

/// Where rows go, and how.
pub(crate) struct Ingestion {
    pub(crate) table: TableName,
    pub(crate) if_exists: IfExists,
    pub(crate) key: Vec<String>,
    pub(crate) types: Vec<(String, String)>,
}

/// The rows of a statement.
pub(crate) struct Rows {
    pub(crate) batches: Box<dyn Batches>,
    /// That of the statement.
    pub(crate) deadline: Deadline,
}

impl Engine {
    pub(crate) fn new(direct: Arc<Direct>, sessions: usize, time: Option<Duration>) -> Arc<Self> {
        let pool = Arc::new(Pool::new(direct.clone(), sessions));
        Arc::new(Self { direct, pool, time })
    }

    /// The deadline of a statement, which ends with its time or with `cancel`.
    pub(crate) fn deadline(&self, cancel: &CancelHandle) -> Deadline {
        Deadline::new(Arc::new(Never), self.time).with_cancel_handle(cancel.clone())
    }

    /// A session of its own, where names without a schema are of this one.
    pub(crate) fn connection(&self, schema: Option<&str>, deadline: &Deadline) -> Result<Arc<Connection>> {
        let connection = Connection::open(self.direct.clone(), true, deadline)?;
        if let Some(schema) = schema {
            longshore_core::use_schema(&connection, schema, deadline)?;
        }
        Ok(connection)
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// The rows of a batch, several of which wait for each client: how wide they are is not known before they come.
const BATCH: usize = 16_384;

/// The policy of what is served: any statement, whose types do not depend on its rows.
pub(crate) fn options() -> ReadOptions {
    ReadOptions {
        decimals: Decimals::Streamed,
        any_statement: true,
        batch_rows: BATCH,
        ..ReadOptions::default()
    }
}

impl Where {
    fn source(&self) -> &dyn Source {
        match self {
            Self::Any(engine) => &engine.pool,
            Self::One(connection) => connection,
        }
    }

    /// Runs a statement, with each set of parameters in its turn.
    pub(crate) fn run(&self, text: &str, mut sets: Vec<Params>, deadline: &Deadline) -> Result<Rows> {
        if sets.is_empty() {
            sets.push(Params::None);
        }
        let query = |params| Query { text: text.to_owned(), params };
        let request = Request::unsplit(sets.into_iter().map(query).collect(), options());
        let opened = open_read(self.source(), &request, deadline)?;
        Ok(Rows { batches: opened.batches, deadline: deadline.clone() })
    }

    /// Runs a statement for what it changes: how many rows, where that is told.
    pub(crate) fn update(&self, text: &str, deadline: &Deadline) -> Result<Option<u64>> {
        let mut rows = self.run(text, Vec::new(), deadline)?;
        if let Some(done) = rows.batches.effect() {
            return Ok(done.rows);
        }
        rows.batches.try_fold(0, |rows, batch| Ok(rows + batch?.num_rows() as u64)).map(Some)
    }

    /// Runs a statement with each of `sets`: all of them, or none.
    pub(crate) fn update_many(
        &self,
        text: &str,
        sets: impl Iterator<Item = Result<Vec<Params>>>,
        deadline: &Deadline,
    ) -> Result<Option<u64>> {
        longshore_core::execute_many(self.source(), text, sets, deadline)
    }

    /// The columns of what a statement returns, which is not run.
    pub(crate) fn describe(&self, query: Query, deadline: &Deadline) -> Result<SchemaRef> {
        longshore_core::describe(self.source(), &[query], &options(), deadline)
    }

    pub(crate) fn parameters(&self, text: &str, deadline: &Deadline) -> Result<SchemaRef> {
        longshore_core::parameters(self.source(), text, &options(), deadline)
    }

    /// Writes rows into a table.
    pub(crate) fn write(
        &self,
        Ingestion { table, if_exists, key, types }: Ingestion,
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        deadline: &Deadline,
    ) -> Result<u64> {
        let load =
            Load { table, schema, if_exists, key, types, own: OwnOptions::default(), meter: Arc::default() };
        let spread = Spread { sessions: std::num::NonZeroUsize::MIN, most_rows: None, warn: &|_| Ok(()) };
        longshore_core::write(self.source(), &load, batches, &spread, deadline)
    }

    pub(crate) fn has_table(&self, table: &TableName, deadline: &Deadline) -> Result<bool> {
        longshore_core::has_table(self.source(), table, deadline)
    }

    pub(crate) fn temporary_schema(&self, deadline: &Deadline) -> Result<String> {
        longshore_core::temporary_schema(self.source(), deadline)
    }

    pub(crate) fn current(&self, deadline: &Deadline) -> Result<Current> {
        longshore_core::current(self.source(), deadline)
    }

    pub(crate) fn table_types(&self, deadline: &Deadline) -> Result<Vec<String>> {
        longshore_core::table_types(self.source(), deadline)
    }

    pub(crate) fn catalogue_queries(&self, deadline: &Deadline) -> Result<CatalogueQueries> {
        longshore_core::catalogue_queries(self.source(), deadline)
    }

    pub(crate) fn objects(
        &self,
        filter: &longshore_core::ObjectFilter,
        deadline: &Deadline,
    ) -> Result<RecordBatch> {
        longshore_core::objects(self.source(), filter, deadline)
    }

    pub(crate) fn table_schema(&self, table: &TableName, deadline: &Deadline) -> Result<SchemaRef> {
        longshore_core::table_schema(self.source(), table, &options(), deadline)
    }
}
