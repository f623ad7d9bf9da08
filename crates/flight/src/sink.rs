//! Rows on their way into a table: by bulk ingestion where the server has it, or by an INSERT that it has prepared.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::sql::{
    CommandStatementIngest, ProstMessageExt, SqlInfo, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{FlightData, FlightDescriptor, PutResult};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use futures::future::{Either, select};
use longshore_core::{
    Deadline, Error, Failed, IfExists, Load, Query, Result, Session, Sink, Transaction, Written,
};
use longshore_flight_protocol::{INGESTION, KEY, MODE, TYPE, wait};
use longshore_source::sql::POSTGRESQL;
use prost::Message;
use tokio::sync::{mpsc, oneshot};

use crate::encode::Encoder;
use crate::session::{ENDING, FlightSession};
use crate::statement::{Prepared, changed_rows};

/// The messages that wait until the server takes them.
const WAITING: usize = 4;

/// A write that has begun.
pub(crate) struct FlightSink {
    session: Box<FlightSession>,
    /// Whether the transaction is the write's own.
    is_own: bool,
    prepared: Option<Prepared>,
    schema: SchemaRef,
    descriptor: FlightDescriptor,
    put: Option<Put>,
    rows: u64,
}

/// A call that sends rows.
struct Put {
    encoder: Encoder,
    /// The way of the messages, and of `None` after the last row; without it, all rows are sent.
    messages: Option<mpsc::Sender<Option<FlightData>>>,
    /// The answers, without whose receiver the call ends.
    taken: oneshot::Receiver<Result<Vec<PutResult>>>,
}

impl Put {
    fn start(session: &FlightSession, schema: &Schema, descriptor: FlightDescriptor) -> Self {
        let (encoder, first) = Encoder::begin(schema, descriptor);
        let (messages, sent) = mpsc::channel(WAITING);
        let put = session.servers.home.put(futures::stream::iter([first]).chain(stream(sent)));
        let (mut sender, taken) = oneshot::channel();
        session.servers.home.link.spawn(async move {
            let done = match select(pin!(sender.closed()), pin!(put)).await {
                Either::Left(_) => return,
                Either::Right((done, _)) => done,
            };
            // Who waited for it may have given up.
            let _ = sender.send(done);
        });
        Self { encoder, messages: Some(messages), taken }
    }
}

impl FlightSink {
    pub(crate) fn begin(mut session: Box<FlightSession>, load: &Load) -> Result<Self, Failed> {
        let is_free = session.transaction() == Transaction::None;
        let begun = session.refuse_change().and_then(|()| {
            let is_own = is_free && session.begins_write()?;
            let (descriptor, prepared) = session.prepare_load(load, is_own || !is_free)?;
            Ok((is_own, descriptor, prepared))
        });
        let (is_own, descriptor, prepared) = match begun {
            Ok(begun) => begun,
            Err(error) => return Err(undo(session, is_free, error)),
        };
        Ok(Self { session, is_own, prepared, schema: load.schema.clone(), descriptor, put: None, rows: 0 })
    }

    fn put(&mut self) -> &mut Put {
        let (session, schema, descriptor) = (&self.session, &self.schema, &self.descriptor);
        self.put.get_or_insert_with(|| Put::start(session, schema, descriptor.clone()))
    }

    /// Waits until the server has taken all rows.
    fn finish(&mut self) -> Result<()> {
        // An INSERT without rows would have no parameters.
        if self.rows == 0 && self.prepared.is_some() {
            return Ok(());
        }
        let deadline = self.session.deadline.clone();
        let put = self.put();
        if let Some(messages) = put.messages.take() {
            // A server that takes no more has said why.
            let _ = wait(&deadline, messages.send(None))?;
        }
        let results = wait(&deadline, &mut put.taken)?;
        let results = results.map_err(|_| Error::internal("the connection's thread ended"))??;
        match changed_rows(&results)? {
            Some(rows) if rows != self.rows => {
                Err(Error::operational(format!("the server has taken {rows} rows of {}", self.rows))
                    .with_hint("nothing was kept where a transaction was open; look at the table"))
            }
            _ => Ok(()),
        }
    }
}

/// The messages of a channel up to the end that is sent. One that is dropped does not end it: a server would take the rows so far for all.
fn stream(receiver: mpsc::Receiver<Option<FlightData>>) -> impl futures::Stream<Item = FlightData> {
    futures::stream::unfold(receiver, |mut receiver| async {
        match receiver.recv().await {
            Some(message) => message.map(|message| (message, receiver)),
            None => std::future::pending().await,
        }
    })
}

/// The failure of a write, whose own transaction is undone.
fn undo(mut session: Box<FlightSession>, is_own: bool, error: Error) -> Failed {
    if is_own {
        session.set_deadline(&Deadline::never().at_most(ENDING));
        // What the error is about matters more; a session that is lost tells it to the next statement.
        let _ = session.rollback();
    }
    session.fail(error)
}

impl Sink for FlightSink {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.rows += batch.num_rows() as u64;
        let deadline = self.session.deadline.clone();
        let put = self.put();
        let Some(messages) = &put.messages else { return Ok(()) };
        for message in put.encoder.encode(batch)? {
            if wait(&deadline, messages.send(Some(message)))?.is_err() {
                // The server takes no more: it has said why.
                self.finish()?;
                return Err(Error::operational("the server has ended the write before its last row"));
            }
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<Written, Failed> {
        let mut done = self.finish();
        let Self { mut session, is_own, prepared, rows, put, .. } = *self;
        // One that has failed ends before the transaction.
        drop(put);
        session.close_after(prepared, &done);
        if is_own && done.is_ok() {
            done = session.commit();
        }
        match done {
            Ok(()) => Ok(Written { rows, session }),
            Err(error) => Err(undo(session, is_own, error)),
        }
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { session, is_own, prepared, put, .. } = *self;
        // The call ends before the transaction.
        drop(put);
        session.close_prepared(prepared);
        let has_kept = !is_own && session.transaction() == Transaction::None;
        let error = Error::internal("the write was given up");
        let Failed { session, .. } = undo(session, is_own, error);
        session.filter(|_| !has_kept)
    }
}

impl FlightSession {
    /// Begins a transaction of the write's own; false where the server has none.
    fn begins_write(&mut self) -> Result<bool> {
        self.begin()?;
        if self.has_transaction() {
            return Ok(true);
        }
        self.rollback()?;
        Ok(false)
    }

    /// Makes the table ready, and gives where its rows are sent.
    fn prepare_load(&mut self, load: &Load, is_undone: bool) -> Result<(FlightDescriptor, Option<Prepared>)> {
        let is_plain = load.types.is_empty()
            && load.key.is_empty()
            && !matches!(load.if_exists, IfExists::Truncate | IfExists::Upsert);
        if !is_plain && self.numbered_info(INGESTION)?.is_some_and(|info| info.flag()) {
            let command = self.ingestion(load, true);
            return Ok((FlightDescriptor::new_cmd(command.as_any().encode_to_vec()), None));
        }
        if load.if_exists == IfExists::Upsert {
            return Err(refusal(
                "an upsert differs from database to database, and Flight SQL has none",
                "write into a table of its own, and merge by a statement",
            ));
        }
        let ingests = self.sql_info(SqlInfo::FlightSqlServerBulkIngestion)?.is_some_and(|info| info.flag());
        if !is_undone && (!ingests || load.if_exists == IfExists::Truncate) {
            return Err(refusal(
                "the server has no transactions, so that a write that fails could not be undone",
                "write by statements, with autocommit=True",
            ));
        }
        let table = POSTGRESQL.qualified_name(&load.table);
        if load.if_exists == IfExists::Truncate {
            self.execute(&Query::new(format!("DELETE FROM {table}")))?;
        }
        if ingests && load.types.is_empty() && load.key.is_empty() {
            let command = self.ingestion(load, false);
            return Ok((FlightDescriptor::new_cmd(command.as_any().encode_to_vec()), None));
        }
        if load.if_exists == IfExists::Replace {
            self.execute(&Query::new(format!("DROP TABLE IF EXISTS {table}")))?;
        }
        if load.makes_table() {
            self.execute(&Query::new(create_table(&table, load)?))?;
        }
        let prepared = self.prepare(&insert(&table, load))?;
        Ok((FlightDescriptor::new_cmd(prepared.update_command().as_any().encode_to_vec()), Some(prepared)))
    }

    /// The command that ingests, and with `ours` what it lacks in options that Longshore's own server knows.
    fn ingestion(&self, load: &Load, ours: bool) -> CommandStatementIngest {
        let (absent, present) = match load.if_exists {
            IfExists::Fail => (TableNotExistOption::Create, TableExistsOption::Fail),
            IfExists::Replace => (TableNotExistOption::Create, TableExistsOption::Replace),
            _ => (TableNotExistOption::Fail, TableExistsOption::Append),
        };
        CommandStatementIngest {
            table_definition_options: Some(TableDefinitionOptions {
                if_not_exist: absent.into(),
                if_exists: present.into(),
            }),
            table: load.table.table.clone(),
            schema: load.table.schema.clone(),
            catalog: None,
            temporary: false,
            transaction_id: self.transaction_id().cloned(),
            options: if ours { options(load) } else { HashMap::default() },
        }
    }
}

/// The options for which Flight SQL's command has no field.
fn options(load: &Load) -> HashMap<String, String> {
    let mode = match load.if_exists {
        IfExists::Truncate => Some("truncate"),
        IfExists::Upsert => Some("upsert"),
        _ => None,
    };
    let mode = mode.map(|mode| (MODE.to_owned(), mode.to_owned()));
    let key = load.key.iter().enumerate();
    let key = key.map(|(at, column)| (format!("{KEY}{at}"), column.clone()));
    let types = load.types.iter();
    let types = types.map(|(column, native)| (format!("{TYPE}{column}"), native.clone()));
    mode.into_iter().chain(key).chain(types).collect()
}

fn refusal(what: &str, hint: &str) -> Error {
    Error::not_supported(what).with_sqlstate("0A000").with_hint(hint)
}

fn insert(table: &str, load: &Load) -> String {
    let names: Vec<String> =
        load.schema.fields().iter().map(|field| POSTGRESQL.quoted_name(field.name())).collect();
    let places = vec!["?"; names.len()];
    format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), places.join(", "))
}

fn create_table(table: &str, load: &Load) -> Result<String> {
    let line = |field: &Arc<Field>| {
        let chosen = load.types.iter().find(|(name, _)| name == field.name());
        let native = chosen.map_or_else(|| native_type(field), |(_, native)| Ok(native.clone()))?;
        let required = if field.is_nullable() { "" } else { " NOT NULL" };
        Ok(format!("{} {native}{required}", POSTGRESQL.quoted_name(field.name())))
    };
    let mut lines = load.schema.fields().iter().map(line).collect::<Result<Vec<String>>>()?;
    if !load.key.is_empty() {
        let key: Vec<String> = load.key.iter().map(|name| POSTGRESQL.quoted_name(name)).collect();
        lines.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    Ok(format!("CREATE TABLE {table} ({})", lines.join(", ")))
}

/// The type's name in standard SQL.
fn native_type(field: &Field) -> Result<String> {
    use DataType as T;
    Ok(match field.data_type() {
        T::Boolean => "BOOLEAN",
        T::Int8 | T::UInt8 | T::Int16 => "SMALLINT",
        T::UInt16 | T::Int32 => "INTEGER",
        T::UInt32 | T::Int64 => "BIGINT",
        T::Float32 => "REAL",
        T::Float64 => "DOUBLE PRECISION",
        T::Decimal128(precision, scale) | T::Decimal256(precision, scale) => {
            return Ok(format!("DECIMAL({precision},{scale})"));
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "VARCHAR",
        T::Binary | T::LargeBinary | T::BinaryView => "BLOB",
        T::Date32 => "DATE",
        T::Time32(_) | T::Time64(_) => "TIME",
        T::Timestamp(_, None) => "TIMESTAMP",
        T::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        other => {
            return Err(refusal(
                &format!("column {:?} is {other}, for which standard SQL has no type", field.name()),
                "choose one with types={...}",
            ));
        }
    }
    .to_owned())
}
