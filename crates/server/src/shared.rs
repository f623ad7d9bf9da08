//! The state that calls share: the engines, and what clients hold by a handle.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::sql::{Command, TicketStatementQuery};
use arrow_flight::{FlightInfo, Ticket};
use arrow_schema::{Schema, SchemaRef};
use longshore_core::{Connection, Deadline, Direct, Kind, Params, Query, Result, Value};
use longshore_source::sql::{Kind as TokenKind, SQLITE};
use tokio::sync::watch;
use tonic::Status;

use crate::Limits;
use crate::actions::Options;
use crate::auth::{Role, Users};
use crate::context::Context;
use crate::cursor::{CursorStatement, declared_already};
use crate::engine::{Engine, Where};
use crate::expiring::{Expiring, Maker};
use crate::handle::{command, handle_text, read_already, split_handle, ticket};
use crate::log::Log;
use crate::parts::{self, Part, Pending, Quota};
use crate::results::{Guard, Running};
use crate::room::Room;
use crate::status::{status, unknown};
use crate::transport::wait_for_stop;
use crate::uploads::{Bound, Incoming, Upload};

/// How often what has expired is dropped.
const SWEEP: Duration = Duration::from_secs(1);
/// How long a result whose client has gone waits for those whom it has given the tickets.
const HANDED_OVER: Duration = Duration::from_secs(3);
/// How long a statement waits for the one before it in its transaction, whose client has just left it.
pub(crate) const BEFORE: Duration = Duration::from_secs(10);

/// The first words of statements that may change rows.
const CHANGES: [&str; 8] = ["insert", "update", "delete", "merge", "replace", "with", "copy", "call"];

/// The state that all calls share.
pub(crate) struct Shared {
    writers: Arc<Engine>,
    readers: Arc<Engine>,
    pub(crate) users: Option<Users>,
    pub(crate) limits: Limits,
    /// The memory of results in parts, and that of parameters.
    room: Arc<Room>,
    parameters: Arc<Room>,
    pub(crate) log: Log,
    pub(crate) running: Arc<Running>,
    pub(crate) results: Expiring<Pending>,
    pub(crate) prepared: Expiring<Prepared>,
    pub(crate) transactions: Expiring<OpenTransaction>,
    /// They last as long as the sockets that they are used by, and the idle time on.
    pub(crate) sessions: Expiring<Options>,
}

/// A prepared statement.
pub(crate) struct Prepared {
    pub(crate) text: String,
    pub(crate) transaction: Option<String>,
    pub(crate) bound: Option<Arc<Bound>>,
}

/// A transaction that a client has begun.
pub(crate) struct OpenTransaction {
    pub(crate) connection: Arc<Connection>,
    /// Whose socket it came by.
    pub(crate) peer: Option<SocketAddr>,
    /// The session that it was begun in.
    pub(crate) session: Option<String>,
}

/// A part that is about to be read.
pub(crate) struct PartToRead {
    pub(crate) schema: SchemaRef,
    pub(crate) part: Part,
    pub(crate) reading: Arc<()>,
}

/// Ends what was held.
fn end(results: Vec<Pending>, transactions: Vec<OpenTransaction>) {
    for pending in results {
        pending.cancel.cancel();
    }
    for transaction in transactions {
        // Its client is gone.
        let _ = transaction.connection.close();
    }
}

impl Shared {
    pub(crate) fn new(
        writers: Arc<Direct>,
        readers: Arc<Direct>,
        users: Option<Users>,
        limits: Limits,
        logs: bool,
    ) -> Self {
        let (sessions, time, idle) = (limits.sessions, limits.statement_time, limits.idle);
        let (connections, handles) = (limits.connections, limits.handles);
        Self {
            writers: Engine::new(writers, sessions, time),
            readers: Engine::new(readers, sessions, time),
            users,
            room: Room::new(limits.part_memory),
            parameters: Room::new(limits.message),
            limits,
            log: Log { is_on: logs },
            running: Arc::default(),
            results: Expiring::new(idle, "results", handles),
            prepared: Expiring::new(idle, "prepared statements", handles),
            transactions: Expiring::new(idle, "transactions", connections),
            sessions: Expiring::new(Duration::MAX, "sessions", handles),
        }
    }

    pub(crate) fn count_held(&self) -> usize {
        let results = self.results.count(|pending| !pending.is_over());
        let kept = self.prepared.len() + self.transactions.len() + self.sessions.len();
        self.running.len() + results + kept
    }

    pub(crate) fn cancel_all(&self) {
        self.running.cancel_all();
    }

    /// Ends what clients hold.
    pub(crate) fn close(&self) {
        end(self.results.drain(), self.transactions.drain());
        self.writers.close();
        self.readers.close();
    }

    pub(crate) fn engine(&self, role: Role) -> &Arc<Engine> {
        match role {
            Role::Writer => &self.writers,
            Role::Reader => &self.readers,
        }
    }

    /// Drops what no client has asked for in a long time.
    pub(crate) fn sweep(&self) {
        let is_busy = |transaction: &OpenTransaction| transaction.connection.transaction().is_none();
        end(self.results.take_expired(Pending::is_being_read), self.transactions.take_expired(is_busy));
        drop((self.prepared.take_expired(|_| false), self.sessions.take_expired(|_| false)));
    }

    /// Ends the transactions of a connection that is gone, for whose locks others may wait, and soon the results that no one reads.
    pub(crate) fn disconnect(&self, peer: SocketAddr) {
        self.results.hurry(peer, HANDED_OVER);
        self.sessions.hurry(peer, self.limits.idle);
        end(Vec::new(), self.transactions.take_of(peer));
    }

    /// Where a statement of the caller's runs.
    pub(crate) fn place(
        &self,
        context: &Context,
        transaction: Option<&str>,
        deadline: &Deadline,
    ) -> Result<Where, Status> {
        let engine = self.engine(context.caller.role);
        let Some(id) = transaction else {
            return match context.schema().map_err(status)? {
                None => Ok(Where::Any(engine.clone())),
                schema => engine.connection(schema, deadline).map(Where::One).map_err(status),
            };
        };
        let owner = &context.caller.user;
        let connection = self.transactions.with(owner, id, |transaction| transaction.connection.clone());
        let connection = connection.ok_or_else(|| unknown("transaction"))?;
        self.free(owner, id, &connection, deadline).map_err(status)?;
        Ok(Where::One(connection))
    }

    /// A session of the caller's own.
    pub(crate) fn connection(&self, context: &Context, deadline: &Deadline) -> Result<Arc<Connection>> {
        self.engine(context.caller.role).connection(context.schema()?, deadline)
    }

    /// Has names without a schema be of this one in the transactions that a session has open by this socket.
    pub(crate) fn use_schema(
        &self,
        context: &Context,
        schema: &str,
        deadline: &Deadline,
    ) -> Result<(), Status> {
        let is_of = |transaction: &OpenTransaction| {
            transaction.peer == context.peer && transaction.session == context.session
        };
        for id in self.transactions.find_all(&context.caller.user, is_of) {
            if let Where::One(connection) = self.place(context, Some(&id), deadline)? {
                longshore_core::use_schema(&connection, schema, deadline).map_err(status)?;
            }
        }
        Ok(())
    }

    /// Waits for the statement before in a transaction: one whose rows no one has asked for ends, as does one that was left.
    pub(crate) fn free(
        &self,
        owner: &str,
        id: &str,
        connection: &Arc<Connection>,
        deadline: &Deadline,
    ) -> Result<()> {
        if connection.transaction().is_some() {
            return Ok(());
        }
        let is_of =
            |pending: &Pending| pending.transaction.as_deref() == Some(id) && pending.waits_for_reader();
        drop(self.results.take_where(owner, is_of));
        let waiting = deadline.at_most(BEFORE);
        while connection.transaction().is_none() {
            deadline.check()?;
            waiting.check().map_err(|_| longshore_core::in_use())?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The deadline of a call.
    pub(crate) fn deadline(&self, guard: &Guard) -> Deadline {
        self.writers.deadline(&guard.handle())
    }

    /// Does what blocks on a thread for that; a client that leaves cancels it.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        context: &Context,
        work: impl FnOnce(&Self, &Context, &Deadline) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let (guard, call) = (self.running.begin(context), self.log.call(name, &context.caller.user));
        let (shared, context, deadline) = (self.clone(), context.clone(), self.deadline(&guard));
        let done = move || {
            let done = work(&shared, &context, &deadline);
            if deadline.cancel_handle().is_cancelled() {
                // What it has made belongs to a caller that is gone.
                shared.sweep();
            }
            done
        };
        let done = tokio::task::spawn_blocking(done).await;
        guard.disarm();
        let done = done
            .unwrap_or_else(|_| Err(Status::internal("a defect of Longshore's server: please report it")));
        call.log_end(None, done.as_ref().err().map(Status::code));
        done
    }

    /// Runs a statement to its first rows, and keeps the rest for its reader.
    pub(crate) fn run(
        &self,
        context: &Context,
        text: &str,
        bound: Vec<Params>,
        transaction: Option<String>,
        deadline: &Deadline,
    ) -> Result<(SchemaRef, Vec<Ticket>), Status> {
        if let Some(statement) = CursorStatement::of(text)
            && let Some(done) = self.over_cursor(context, statement, transaction.as_deref(), deadline)?
        {
            return Ok(done);
        }
        let mut pending =
            self.pending(context, text, bound, transaction.as_deref(), context.options.parts, deadline)?;
        pending.transaction = transaction;
        self.keep(context, pending)
    }

    /// Keeps a result for its readers.
    pub(crate) fn keep(
        &self,
        context: &Context,
        pending: Pending,
    ) -> Result<(SchemaRef, Vec<Ticket>), Status> {
        let (schema, count) = (pending.schema.clone(), pending.parts.len());
        let maker = Maker { cancel: pending.cancel.clone(), ..context.maker(&Deadline::never()) };
        let cursor = pending.cursor.clone();
        let against = |other: &Pending| {
            cursor.as_ref().filter(|_| other.cursor == cursor).map(|name| declared_already(name))
        };
        let handle =
            self.results.keep_unless(&context.caller.user, pending, maker, against).map_err(status)?;
        Ok((schema, (1..=count).map(|part| ticket(&handle, part)).collect()))
    }

    /// Runs a statement to its first rows, which come whole or in parts.
    pub(crate) fn pending(
        &self,
        context: &Context,
        text: &str,
        bound: Vec<Params>,
        transaction: Option<&str>,
        parts: Option<usize>,
        deadline: &Deadline,
    ) -> Result<Pending, Status> {
        let place = self.place(context, transaction, deadline)?;
        let rows = place.run(text, bound, deadline).map_err(status)?;
        let (schema, cancel) = (rows.batches.schema(), rows.deadline.cancel_handle());
        let parts = match parts {
            Some(count) if rows.batches.effect().is_none() => {
                let Limits { part_disk, rows: most, .. } = self.limits;
                parts::divide(
                    rows,
                    count,
                    Quota { memory: self.room.clone(), disk: part_disk, rows: most },
                    deadline,
                )
                .map_err(status)?
            }
            _ => vec![Part::Whole(rows)],
        };
        Ok(Pending::new(schema, parts, cancel))
    }

    /// Takes the part of a result that a ticket names.
    pub(crate) fn take(
        &self,
        context: &Context,
        ticket: &TicketStatementQuery,
    ) -> Result<PartToRead, Status> {
        let (handle, part) = split_handle(&ticket.statement_handle)?;
        let owner = &context.caller.user;
        let take = |pending: &mut Pending| -> Result<_, Status> {
            let part = pending.parts.get_mut(part - 1).ok_or_else(|| unknown("part of the result"))?;
            let part = part.take().ok_or_else(read_already)?;
            Ok(PartToRead { schema: pending.schema.clone(), part, reading: pending.reading.clone() })
        };
        let taken = self.results.with(owner, &handle, take).ok_or_else(|| unknown("result"))??;
        // A whole result is gone with its one reader; of parts, a second reader is told.
        if !matches!(taken.part, Part::Queue(_)) {
            self.results.take(owner, &handle);
        }
        Ok(taken)
    }

    /// Stops the statement whose result a ticket is of; whether it was there.
    pub(crate) fn cancel(&self, context: &Context, info: &FlightInfo) -> Result<bool, Status> {
        let owner = &context.caller.user;
        let mut is_known = false;
        if let Some(call) = &context.call {
            let (results, transactions) =
                (self.results.take_made(owner, call), self.transactions.take_made(owner, call));
            drop((self.prepared.take_made(owner, call), self.sessions.take_made(owner, call)));
            // The call may run yet: HTTP/2 has not told that its client has left.
            is_known = self.running.cancel(owner, call) || !(results.is_empty() && transactions.is_empty());
            end(results, transactions);
        }
        for ticket in info.endpoint.iter().filter_map(|endpoint| endpoint.ticket.as_ref()) {
            let Ok(Command::TicketStatementQuery(ticket)) = command(&ticket.ticket) else { continue };
            let (handle, _) = split_handle(&ticket.statement_handle)?;
            if let Some(pending) = self.results.take(owner, &handle) {
                pending.cancel.cancel();
                is_known = true;
            }
        }
        Ok(is_known)
    }

    /// Keeps the parameters of a prepared query, in the place of those before.
    pub(crate) fn bind(
        &self,
        context: &Context,
        handle: &str,
        batches: Incoming,
        deadline: &Deadline,
    ) -> Result<(), Status> {
        let owner = &context.caller.user;
        let take = |prepared: &mut Prepared| (prepared.text.len(), prepared.bound.take());
        let (text, before) =
            self.prepared.with(owner, handle, take).ok_or_else(|| unknown("prepared statement"))?;
        drop(before);
        let bound = batches.under(deadline).bound(&self.parameters, text).map_err(status)?;
        let kept = self.prepared.with(owner, handle, |prepared| prepared.bound.replace(Arc::new(bound)));
        kept.map(drop).ok_or_else(|| unknown("prepared statement"))
    }

    pub(crate) fn find_prepared(
        &self,
        context: &Context,
        handle: &[u8],
    ) -> Result<(String, Vec<Params>, Option<String>), Status> {
        let found = self.prepared.with(&context.caller.user, &handle_text(handle)?, |prepared| {
            (prepared.text.clone(), prepared.bound.clone(), prepared.transaction.clone())
        });
        let (text, bound, transaction) = found.ok_or_else(|| unknown("prepared statement"))?;
        let bound = bound.map_or_else(Vec::new, |bound| bound.sets.clone());
        let is_open = |id: &String| self.transactions.with(&context.caller.user, id, |_| ()).is_some();
        let transaction = match transaction {
            Some(id) if !is_open(&id) => self.following(context)?,
            open => open,
        };
        Ok((text, bound, transaction))
    }

    /// The transaction after the one in which a statement was prepared: clients run it again in the next of the same socket.
    fn following(&self, context: &Context) -> Result<Option<String>, Status> {
        let is_of = |transaction: &OpenTransaction| transaction.peer == context.peer;
        let mut open = self.transactions.find_all(&context.caller.user, is_of);
        if open.len() > 1 {
            // In another, it would neither see the client's changes nor be undone with them.
            return Err(Status::failed_precondition(
                "the transaction that the statement was prepared in is over: prepare it again, by another cursor",
            ));
        }
        Ok(open.pop())
    }

    /// Runs a statement for what it changes, with each set of the upload's parameters where there are some.
    pub(crate) fn update(
        &self,
        context: &Context,
        text: &str,
        transaction: Option<&str>,
        sets: Option<Upload>,
        deadline: &Deadline,
    ) -> Result<i64, Status> {
        if let Some(statement) = CursorStatement::of(text)
            && self.over_cursor(context, statement, transaction, deadline)?.is_some()
        {
            return Ok(0);
        }
        let place = self.place(context, transaction, deadline)?;
        let has_columns =
            |upload: &Upload| upload.schema.as_ref().is_some_and(|schema| !schema.fields().is_empty());
        let changed = match sets.filter(has_columns) {
            Some(upload) => place.update_many(text, upload.batches.under(deadline).sets(), deadline),
            None => place.update(text, deadline),
        };
        Ok(record_count(text, changed.map_err(status)?))
    }

    /// The columns of what a statement returns; none of one without rows, or whose source knows them only once it has run.
    pub(crate) fn describe(
        &self,
        context: &Context,
        place: &Where,
        text: &str,
        deadline: &Deadline,
    ) -> Result<SchemaRef> {
        if let Some(schema) = self.cursor_schema(context, text) {
            return Ok(schema);
        }
        let described = place.describe(Query::new(text), deadline).or_else(|error| {
            // A source may describe no statement without its parameters.
            let count = place
                .parameters(text, deadline)
                .map_or_else(|_| placeholders(text), |parameters| parameters.fields().len());
            if count == 0 {
                return Err(error);
            }
            let params = Params::Positional(vec![Value::Null; count]);
            place.describe(Query { text: text.to_owned(), params }, deadline)
        });
        match described {
            Err(error)
                if error.kind() == Kind::NotSupported
                    || error.message().starts_with("the statement returns no rows") =>
            {
                Ok(Arc::new(Schema::empty()))
            }
            described => described,
        }
    }
}

/// How many rows a statement has changed; -1 where that is not known. A definition has changed none: Apache's JDBC driver runs
/// a statement whose count it does not know once more, for its rows.
pub(crate) fn record_count(text: &str, changed: Option<u64>) -> i64 {
    let Some(rows) = changed else {
        let tokens = SQLITE.tokens(text);
        let is_first = |word: &&str| tokens.first().is_some_and(|token| token.is_word(word));
        return if CHANGES.iter().any(is_first) { -1 } else { 0 };
    };
    i64::try_from(rows).unwrap_or(-1)
}

/// How many question marks are places of parameters.
pub(crate) fn placeholders(text: &str) -> usize {
    SQLITE.tokens(text).iter().filter(|token| token.kind == TokenKind::Parameter).count()
}

/// Drops what has expired, until the server is to stop.
pub(crate) async fn sweep(shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = wait_for_stop(&mut stopping) => return,
            () = tokio::time::sleep(SWEEP) => {
                let shared = shared.clone();
                let _ = tokio::task::spawn_blocking(move || shared.sweep()).await;
            }
        }
    }
}
