//! Rows on their way into a table of a store.

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use longshore_core::{Error, Failed, Frame, IfExists, Load, Result, Session, Sink, Written};
use longshore_store::{Definition, Table, Transaction};

use crate::catalogue::SCHEMA;
use crate::conform::Conformed;
use crate::session::StoreSession;
use crate::statement::refusal;

/// Rows are gathered up to so many bytes, as each write makes a file.
const GATHERED: usize = 64 << 20;

/// A write that has begun.
pub(crate) struct StoreSink {
    session: Box<StoreSession>,
    transaction: Transaction,
    /// The owner's transaction goes on from here after a failure; `None` where the transaction is the write's own.
    mark: Option<usize>,
    table: String,
    conformed: Conformed,
    /// Of an upsert.
    key: Option<Vec<String>>,
    waiting: Vec<RecordBatch>,
    bytes: usize,
    rows: u64,
}

impl StoreSink {
    pub(crate) fn begin(mut session: Box<StoreSession>, load: &Load) -> Result<Self, Failed> {
        let owned = session.open.take();
        let is_own = owned.is_none();
        let mut transaction = match owned.map_or_else(|| session.new_transaction(), Ok) {
            Ok(transaction) => transaction,
            Err(error) => return Err(Failed { error, session: Some(session) }),
        };
        let mark = (!is_own).then(|| transaction.mark());
        let prepared = prepare(&mut transaction, load);
        let mut sink = Self {
            session,
            transaction,
            mark,
            table: load.table.table.clone(),
            conformed: Conformed::own(&load.schema),
            key: (load.if_exists == IfExists::Upsert).then(|| load.key.clone()),
            waiting: Vec::new(),
            bytes: 0,
            rows: 0,
        };
        match prepared {
            Ok(conformed) => {
                sink.conformed = conformed;
                Ok(sink)
            }
            Err(error) => Err(Failed { error, session: Box::new(sink).abort() }),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let batches = Box::new(std::mem::take(&mut self.waiting).into_iter().map(Ok));
        let rows = Frame { schema: self.conformed.schema.clone(), batches };
        self.rows += match &self.key {
            Some(key) => self.transaction.upsert(&self.table, key, rows)?,
            None => self.transaction.append(&self.table, rows, "append")?,
        };
        Ok(())
    }
}

/// Makes or finds the table, which no one else writes from then on, and tells in which types it takes the rows.
fn prepare(transaction: &mut Transaction, load: &Load) -> Result<Conformed> {
    let name = &load.table.table;
    if load.table.schema.as_ref().is_some_and(|schema| !schema.eq_ignore_ascii_case(SCHEMA)) {
        return Err(Error::programming(format!("a store has the one schema {SCHEMA:?}"))
            .with_sqlstate("3F000")
            .with_hint("leave the schema out"));
    }
    if !load.types.is_empty() {
        return Err(refusal("types of columns that are named in SQL need a SQL engine"));
    }
    // Who writes first is waited for.
    transaction.lock(name)?;
    let known = transaction.table(name)?;
    if load.makes_table() {
        let definition = Definition { schema: load.schema.clone(), key: load.key.clone(), text: None };
        let replaces = load.if_exists == IfExists::Replace && known.is_some();
        transaction.create(name, &definition, replaces)?;
        return Ok(Conformed::own(&load.schema));
    }
    let conformed = match known {
        Some(table) => {
            refuse_unseen_rules(&table, load)?;
            Conformed::of(&load.schema, &table)
        }
        // It says that there is none.
        None => Conformed::own(&load.schema),
    };
    if load.if_exists == IfExists::Truncate {
        transaction.truncate(name)?;
    }
    Ok(conformed)
}

/// Refuses a table with rules that only the SQL engine keeps.
fn refuse_unseen_rules(table: &Table, load: &Load) -> Result<()> {
    let Some(definition) = table.definition.as_deref().map(str::to_ascii_uppercase) else { return Ok(()) };
    let schema = table.schema();
    let has_lesser = schema.fields().iter().any(|field| has_lesser_type(field.data_type()));
    let fills = load.schema.fields().len() < schema.fields().len() && definition.contains("DEFAULT");
    if ["CHECK", "GENERATED"].iter().any(|word| definition.contains(word)) || has_lesser || fills {
        return Err(refusal(
            "the table has conditions, defaults or types that a SQL engine looks after, so rows are not ingested into it",
        ));
    }
    Ok(())
}

/// Whether the engine's own type has fewer values than an Arrow type, or one within it: labels, hours, keys.
fn has_lesser_type(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(..) | DataType::Time32(_) | DataType::Time64(_) | DataType::Map(..) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => has_lesser_type(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_lesser_type(field.data_type())),
        _ => false,
    }
}

impl Sink for StoreSink {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.session.deadline.check()?;
        let batch = self.conformed.batch(batch)?;
        self.bytes += batch.get_array_memory_size();
        self.waiting.push(batch);
        if self.bytes >= GATHERED { self.flush() } else { Ok(()) }
    }

    fn commit(mut self: Box<Self>) -> Result<Written, Failed> {
        if let Err(error) = self.flush() {
            return Err(Failed { error, session: self.abort() });
        }
        let Self { mut session, transaction, mark, rows, .. } = *self;
        if mark.is_some() {
            session.open = Some(transaction);
        } else if let Err(error) = transaction.commit() {
            return Err(Failed { error, session: Some(session) });
        }
        Ok(Written { rows, session })
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { mut session, mut transaction, mark, .. } = *self;
        if let Some(mark) = mark {
            transaction.undo_to(mark).ok()?;
            session.open = Some(transaction);
        }
        Some(session)
    }
}
