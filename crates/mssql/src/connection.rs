//! A connection: the client, its runtime, and waits that look at the deadline.

use std::borrow::Cow;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use longshore_core::{Deadline, Error, Kind, Result, Transaction};
use longshore_source::rows::VIOLATION;
use longshore_values::Spans;
use mssql_tds::connection::tds_client::{
    BufferedRowPoll, CursorPoll, ExecuteOptions, ResultSet, StatementResult, TdsClient,
};
use mssql_tds::connection_provider::tds_connection_provider::TdsConnectionProvider;
use mssql_tds::core::{CancelHandle, TdsResult};
use mssql_tds::datatypes::row_writer::RowWriter;
use mssql_tds::message::parameters::rpc_parameters::RpcParameter;
use mssql_tds::query::metadata::ColumnMetadata;
use tokio::runtime::{Builder, Runtime};

use crate::error;
use crate::render::render;
use crate::settings::Settings;
use crate::sink::Sink;
use crate::types::{Described, Type};

/// How long a statement that is given up may take to end on the server.
const ENDING: Duration = Duration::from_secs(2);

/// The settings that every session begins with, and again for another caller: by default a server cuts long texts for some
/// clients.
const BEGINNING: &str = "SET TEXTSIZE 2147483647; SET TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// A connection that has logged in.
pub(crate) struct Connection {
    runtime: Runtime,
    client: TdsClient,
    deadline: Deadline,
    /// Ends the statement that runs.
    cancel: CancelHandle,
    /// Room for a value that comes in parts, as long as the client has bytes at hand.
    value: Box<[u8]>,
    is_usable: bool,
    /// Whether the server has rolled a transaction back that its owner has not ended.
    is_lost: bool,
}

impl Connection {
    /// Connects and logs in.
    pub(crate) fn open(settings: &Settings, deadline: &Deadline) -> Result<Self> {
        deadline.check()?;
        let context = settings.context()?;
        let source = settings.data_source();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::operational(format!("no runtime could be made: {error}")))?;
        let cancel = CancelHandle::new();
        let provider = TdsConnectionProvider::new();
        let opened =
            wait(&runtime, deadline, &cancel, provider.create_client(context, &source, Some(&cancel)));
        let client = opened.map_err(|failure| {
            let error = failure.into_error();
            let is_servers = error.vendor_code().is_some() || error.kind() != Kind::Operational;
            if is_servers { error } else { error.within(settings.peer()) }
        })?;
        let mut connection = Self {
            runtime,
            client,
            deadline: deadline.clone(),
            cancel,
            value: vec![0; 2 * usize::from(u16::MAX)].into(),
            is_usable: true,
            is_lost: false,
        };
        connection.run(BEGINNING)?;
        Ok(connection)
    }

    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    pub(crate) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Looks at the deadline and at the caller's signals.
    pub(crate) fn check(&self) -> Result<()> {
        self.deadline.check()
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable && !self.client.is_connection_dead()
    }

    pub(crate) fn transaction(&self) -> Transaction {
        match (self.is_lost, self.client.has_active_transaction()) {
            (true, _) => Transaction::Failed,
            (false, true) => Transaction::Open,
            (false, false) => Transaction::None,
        }
    }

    /// The owner knows that its transaction is gone.
    pub(crate) fn forget_loss(&mut self) {
        self.is_lost = false;
    }

    /// Waits for what `start` makes of the client.
    fn call<T>(
        &mut self,
        start: impl AsyncFnOnce(&mut TdsClient, &CancelHandle) -> TdsResult<T>,
    ) -> Result<T> {
        if !self.is_usable() {
            return Err(error::lost_connection("it was closed"));
        }
        let had_transaction = self.client.has_active_transaction();
        let Self { runtime, client, deadline, cancel, .. } = self;
        let outcome = wait(runtime, deadline, cancel, start(client, cancel));
        outcome.map_err(|failure| {
            self.is_lost |= had_transaction && !self.client.has_active_transaction();
            let is_violation =
                matches!(&failure, Failure::Client(error) if error.sqlstate() == Some(VIOLATION));
            self.is_usable &= !failure.is_final() && !is_violation;
            failure.into_error()
        })
    }

    /// Waits for what `start` makes of the client, which waits for no other statement.
    pub(crate) fn with_client<T>(
        &mut self,
        start: impl AsyncFnOnce(&mut TdsClient) -> TdsResult<T>,
    ) -> Result<T> {
        self.stop_rest()?;
        self.cancel = cancel_handle();
        self.call(async |client, _| start(client).await)
    }

    /// From here on, waits are short: the caller waits no longer. Gives the deadline until now.
    pub(crate) fn hurry(&mut self) -> Deadline {
        std::mem::replace(&mut self.deadline, Deadline::never().at_most(ENDING))
    }

    /// Sends a statement, and waits for the first of what it brings.
    pub(crate) fn send(&mut self, text: &str, parameters: Vec<RpcParameter>) -> Result<StatementResult> {
        self.stop_rest()?;
        self.cancel = cancel_handle();
        let text = text.to_owned();
        self.call(async move |client, cancel| {
            let options = ExecuteOptions::new().cancel(cancel);
            if parameters.is_empty() {
                client.execute(text, options).await
            } else {
                client.execute_sp_executesql(text, parameters, options).await
            }
        })
    }

    /// Waits for what follows.
    pub(crate) fn advance(&mut self) -> Result<StatementResult> {
        self.call(async |client, _| client.advance().await)
    }

    /// The columns of the rows that come next.
    pub(crate) fn columns(&self) -> Vec<Described> {
        self.client.get_metadata().iter().map(Described::of).collect()
    }

    /// Which columns of the rows that come next have values that come in parts; empty where none has.
    pub(crate) fn in_parts(&self) -> Vec<bool> {
        let in_parts: Vec<bool> = self.client.get_metadata().iter().map(ColumnMetadata::is_plp).collect();
        if in_parts.contains(&true) { in_parts } else { Vec::new() }
    }

    /// Takes rows whose bytes are there, until `sink` is full.
    pub(crate) fn try_rows(&mut self, sink: &mut Sink<'_>) -> Result<Taken> {
        loop {
            let Self { client, value, .. } = self;
            let poll = guard(|| {
                loop {
                    let poll = poll_row(client, sink, value)?;
                    if poll != BufferedRowPoll::Complete || sink.is_full() {
                        return Ok(poll);
                    }
                }
            });
            match poll.unwrap_or_else(Err) {
                Ok(BufferedRowPoll::Complete) => return Ok(Taken::Full),
                Ok(BufferedRowPoll::Exhausted) => return Ok(Taken::Last),
                Ok(BufferedRowPoll::Pending) => return Ok(Taken::Waiting),
                Ok(BufferedRowPoll::Partial) => {
                    self.call(async |client, _| client.finish_row_into(sink).await)?;
                    if sink.is_full() {
                        return Ok(Taken::Full);
                    }
                }
                Err(error) => {
                    self.is_usable = false;
                    return Err(error::of(error));
                }
            }
        }
    }

    /// Waits for a row; whether there is one.
    pub(crate) fn wait_row(&mut self, sink: &mut Sink<'_>) -> Result<bool> {
        self.call(async |client, _| client.next_row_into(sink).await)
    }

    /// Runs a statement without parameters, and throws its rows away.
    pub(crate) fn run(&mut self, text: &str) -> Result<()> {
        self.execute(text, Vec::new()).map(drop)
    }

    /// Runs a statement, and tells how many rows it has changed, or returned, where the server tells that.
    pub(crate) fn execute(&mut self, text: &str, parameters: Vec<RpcParameter>) -> Result<Option<u64>> {
        let mut rows = None;
        let mut found = self.send(text, parameters)?;
        loop {
            let count = match found {
                StatementResult::End => break,
                StatementResult::NoRows { rows_affected } => rows_affected,
                StatementResult::Rows => Some(self.rows(|_, _, _| Ok(()))?),
            };
            rows = count.map(|count| rows.unwrap_or_default() + count).or(rows);
            found = self.advance()?;
        }
        Ok(rows)
    }

    /// Each cell's text of a query of the catalogue's.
    pub(crate) fn table(
        &mut self,
        text: &str,
        parameters: Vec<RpcParameter>,
    ) -> Result<Vec<Vec<Option<String>>>> {
        let mut table: Vec<Vec<Option<String>>> = Vec::new();
        let mut found = self.send(text, parameters)?;
        while found != StatementResult::End {
            if found == StatementResult::Rows {
                self.rows(|row, column, text| {
                    if column == 0 {
                        table.push(Vec::new());
                    }
                    debug_assert_eq!(row + 1, table.len());
                    if let Some(row) = table.last_mut() {
                        row.push(text.map(str::to_owned));
                    }
                    Ok(())
                })?;
            }
            found = self.advance()?;
        }
        Ok(table)
    }

    /// Reads the rows that come next; `take` is told the text of each cell, its row and its column.
    fn rows(&mut self, mut take: impl FnMut(usize, usize, Option<&str>) -> Result<()>) -> Result<u64> {
        let natives = self.columns().iter().map(Type::of).collect::<Result<Vec<_>>>();
        let columns = self.client.get_metadata().len();
        let (mut bytes, mut spans, mut is_beyond) = (Vec::new(), Spans::new(columns), false);
        // The rows of a type that is not known are thrown away as well as others.
        let variants: Vec<bool> = match &natives {
            Ok(natives) => natives.iter().map(Type::is_variant).collect(),
            Err(_) => vec![false; columns],
        };
        let mut row = 0;
        loop {
            bytes.clear();
            spans.clear();
            let mut sink = Sink {
                bytes: &mut bytes,
                spans: &mut spans,
                variants: &variants,
                in_parts: &[],
                is_beyond: &mut is_beyond,
                most: 1,
                next: 0,
            };
            if !self.wait_row(&mut sink)? {
                return Ok(row as u64);
            }
            for (column, native) in natives.iter().flatten().enumerate() {
                let cell = spans.column(column, &bytes).iter().next().flatten();
                let mut text = Vec::new();
                let rendered = cell.map(|cell| render(native.class, cell, &mut text));
                if rendered.is_some_and(|rendered| rendered.is_err()) {
                    return Err(Error::internal("the server's catalogue has a text that cannot be read"));
                }
                let text = cell.map(|_| String::from_utf8_lossy(&text));
                take(row, column, text.as_deref())?;
            }
            row += 1;
        }
    }

    /// Ends what still runs; whether the server waits for the next statement.
    pub(crate) fn stop(&mut self) -> bool {
        if self.is_usable() && self.client.has_open_batch() {
            let waiting = std::mem::replace(&mut self.deadline, Deadline::never().at_most(ENDING + ENDING));
            let seconds = u32::try_from(ENDING.as_secs()).unwrap_or(u32::MAX);
            let stopped = self.call(async |client, _| client.cancel_query(seconds).await);
            self.deadline = waiting;
            self.is_usable &= stopped.is_ok() && !self.client.has_open_batch();
        }
        self.is_usable()
    }

    fn stop_rest(&mut self) -> Result<()> {
        if self.stop() { Ok(()) } else { Err(error::lost_connection("it was closed")) }
    }

    /// Makes the session like a new one: the next statement carries that with it.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.stop_rest()?;
        self.is_lost = false;
        self.client.prepare_reset_connection(false);
        self.run(BEGINNING)
    }
}

/// A drop cancels: what still runs on the server would run on there for a while.
impl Drop for Connection {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Takes a row whose bytes are there; `value` has room for one that comes in parts.
fn poll_row(client: &mut TdsClient, sink: &mut Sink<'_>, value: &mut [u8]) -> TdsResult<BufferedRowPoll> {
    if sink.in_parts.is_empty() {
        return client.try_next_buffered_row_into(sink);
    }
    // Of itself the client would wait for each row with such values, which takes thrice as long.
    match client.try_next_row_cursor()? {
        CursorPoll::Ready(true) => {}
        CursorPoll::Ready(false) => return Ok(BufferedRowPoll::Exhausted),
        CursorPoll::Pending => return Ok(BufferedRowPoll::Pending),
    }
    while !client.try_finish_row_into(sink)? {
        let column = sink.next;
        if sink.in_parts.get(column) != Some(&true) {
            return Ok(BufferedRowPoll::Partial);
        }
        match client.try_read_row_plp_complete(column, value)? {
            CursorPoll::Ready(Some(part)) => sink.write_bytes(column, Cow::Borrowed(&value[..part.read])),
            CursorPoll::Ready(None) => sink.write_null(column),
            CursorPoll::Pending => return Ok(BufferedRowPoll::Partial),
        }
        if sink.next == sink.in_parts.len() {
            sink.end_row();
            break;
        }
    }
    Ok(BufferedRowPoll::Complete)
}

/// Why no more rows are taken for now.
pub(crate) enum Taken {
    Full,
    /// The next row has to be waited for.
    Waiting,
    /// There are no more.
    Last,
}

fn cancel_handle() -> CancelHandle {
    let mut cancel = CancelHandle::new();
    cancel.set_cancel_timeout_secs(u32::try_from(ENDING.as_secs()).unwrap_or(u32::MAX));
    cancel
}

/// Why a wait has ended without its outcome.
enum Failure {
    /// The client has failed.
    Client(Error),
    /// The caller does not wait; whether the client has ended what it did.
    Stopped(Error, bool),
    /// The client has panicked.
    Panic,
}

impl Failure {
    /// Whether the connection is of no more use.
    fn is_final(&self) -> bool {
        matches!(self, Self::Stopped(_, false) | Self::Panic)
    }

    fn into_error(self) -> Error {
        match self {
            Self::Client(error) | Self::Stopped(error, _) => error,
            Self::Panic => {
                Error::internal("the client failed on what the server sent").with_sqlstate(VIOLATION)
            }
        }
    }
}

/// The value that the client makes of `call`; it panics on some of what no server should send.
fn guard<T>(call: impl FnOnce() -> TdsResult<T>) -> Result<TdsResult<T>, mssql_tds::error::Error> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| {
        mssql_tds::error::Error::ProtocolError("the client failed on what the server sent".into())
    })
}

/// Waits for `future` in slices, between which it looks at the deadline. Where that has passed, `cancel` ends what runs, and
/// the server is given a while to say so.
fn wait<T>(
    runtime: &Runtime,
    deadline: &Deadline,
    cancel: &CancelHandle,
    future: impl Future<Output = TdsResult<T>>,
) -> Result<T, Failure> {
    let waiting = async {
        let mut future = pin!(future);
        loop {
            if let Ok(outcome) = tokio::time::timeout(deadline.slice(), future.as_mut()).await {
                return outcome.map_err(|error| Failure::Client(error::of(error)));
            }
            if let Err(error) = deadline.check() {
                cancel.cancel();
                let has_ended = tokio::time::timeout(ENDING, future.as_mut()).await.is_ok();
                return Err(Failure::Stopped(error, has_ended));
            }
        }
    };
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(waiting))).unwrap_or(Err(Failure::Panic))
}
