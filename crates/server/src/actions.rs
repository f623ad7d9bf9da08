//! The actions of Flight and Flight SQL: prepared statements, transactions, cancellation, sessions.

use std::collections::HashMap;

use arrow_flight::sql::{
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionEndTransactionRequest, Any, EndTransaction, ProstMessageExt,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, FlightInfo, SchemaAsIpc,
};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::Schema;
use bytes::Bytes;
use futures_util::stream;
use longshore_core::{Current, Deadline, Error, Result, Transaction};
use longshore_flight_protocol::{
    OptionError, OptionValue, SessionOptionValue, SessionOptions, SetSessionOptionsResult,
};
use prost::Message;
use tonic::{Response, Status};

use crate::context::{COOKIE, Context};
use crate::cursor::CursorStatement;
use crate::engine::Where;
use crate::handle::handle_text;
use crate::service::{Replies, Service};
use crate::shared::{BEFORE, OpenTransaction, Prepared, Shared};
use crate::status::{not_flight_sql, status, unknown};

/// The most parts of a result.
const MOST_PARTS: i64 = 64;

/// The choices of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) schema: Option<String>,
    /// How many endpoints a result has.
    pub(crate) parts: Option<usize>,
}

/// The message of `Flight.proto`.
#[derive(Clone, PartialEq, Message)]
struct CloseSessionResult {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// `SetSessionOptionsResult.ErrorValue`.
const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;
/// `CloseSessionResult.Status.CLOSED`, `CancelStatus.CANCELLED` and `CancelResult.CANCELLED`.
const CLOSED: i32 = 1;
const CANCELLED: i32 = 1;

/// The actions.
pub(crate) fn action_types() -> Vec<ActionType> {
    let action = |(name, description): (&str, &str)| ActionType {
        r#type: name.into(),
        description: description.into(),
    };
    [
        ("CreatePreparedStatement", "Prepares a statement."),
        ("ClosePreparedStatement", "Forgets a prepared statement."),
        ("BeginTransaction", "Begins a transaction."),
        ("EndTransaction", "Commits a transaction or rolls it back."),
        ("CancelQuery", "Stops a statement whose result is not read yet."),
        ("CancelFlightInfo", "Stops a statement whose result is not read yet."),
        ("SetSessionOptions", "Sets schema and longshore.parts of a session."),
        ("GetSessionOptions", "Tells the options of a session."),
        ("CloseSession", "Ends a session."),
    ]
    .into_iter()
    .map(action)
    .collect()
}

fn unpack<T: ProstMessageExt + Default>(body: &Bytes) -> Result<T, Status> {
    let any = Any::decode(body.as_ref()).map_err(not_flight_sql)?;
    any.unpack().map_err(not_flight_sql)?.ok_or_else(|| not_flight_sql("the action has another message"))
}

fn plain<T: Message + Default>(body: &Bytes) -> Result<T, Status> {
    T::decode(body.as_ref()).map_err(not_flight_sql)
}

fn ipc(schema: &Schema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let message: arrow_flight::IpcMessage = SchemaAsIpc::new(schema, &options)
        .try_into()
        .map_err(|error: arrow_schema::ArrowError| Error::internal(error.to_string()))?;
    Ok(message.0)
}

type Reply = Result<Response<Replies<arrow_flight::Result>>, Status>;

fn reply(bodies: Vec<Vec<u8>>) -> Response<Replies<arrow_flight::Result>> {
    let results = bodies.into_iter().map(|body| Ok(arrow_flight::Result { body: body.into() }));
    Response::new(Box::pin(stream::iter(results.collect::<Vec<_>>())))
}

impl Service {
    /// Does an action.
    pub(crate) async fn act(&self, context: Context, action: Action) -> Reply {
        let body = action.body;
        let bodies = match action.r#type.as_str() {
            "CreatePreparedStatement" => self.prepare(&context, unpack(&body)?).await?,
            "ClosePreparedStatement" => {
                let asked: ActionClosePreparedStatementRequest = unpack(&body)?;
                let handle = handle_text(&asked.prepared_statement_handle)?;
                drop(self.0.prepared.take(&context.caller.user, &handle));
                Vec::new()
            }
            "BeginTransaction" => {
                let begun = self.0.blocking("begin", &context, begin).await?;
                vec![ActionBeginTransactionResult { transaction_id: begun.into() }.as_any().encode_to_vec()]
            }
            "EndTransaction" => {
                let asked: ActionEndTransactionRequest = unpack(&body)?;
                let ended = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    end(shared, context, &asked, deadline)
                };
                self.0.blocking("end", &context, ended).await?;
                Vec::new()
            }
            "CancelQuery" => {
                let asked: ActionCancelQueryRequest = unpack(&body)?;
                let info = FlightInfo::decode(asked.info.as_ref()).map_err(not_flight_sql)?;
                self.cancel(&context, &info)?;
                vec![ActionCancelQueryResult { result: CANCELLED }.as_any().encode_to_vec()]
            }
            "CancelFlightInfo" => {
                let asked: CancelFlightInfoRequest = plain(&body)?;
                self.cancel(&context, &asked.info.unwrap_or_default())?;
                vec![CancelFlightInfoResult { status: CANCELLED }.encode_to_vec()]
            }
            "SetSessionOptions" => return self.set_options(context, plain(&body)?).await,
            "GetSessionOptions" => {
                let ask = |shared: &Shared, context: &Context, deadline: &Deadline| {
                    let current = shared.place(context, None, deadline)?.current(deadline).map_err(status)?;
                    Ok(session_options(&context.options, current))
                };
                vec![self.0.blocking("session", &context, ask).await?.encode_to_vec()]
            }
            "CloseSession" => {
                let id = context.session.as_deref().ok_or_else(|| unknown("session"))?;
                drop(self.0.sessions.take(&context.caller.user, id));
                let mut closed = reply(vec![CloseSessionResult { status: CLOSED }.encode_to_vec()]);
                set_cookie(&mut closed, "; Max-Age=0")?;
                return Ok(closed);
            }
            other => return Err(status(Error::not_supported(format!("the server has no action {other:?}")))),
        };
        Ok(reply(bodies))
    }

    fn cancel(&self, context: &Context, info: &FlightInfo) -> Result<(), Status> {
        if self.0.cancel(context, info)? { Ok(()) } else { Err(unknown("result")) }
    }

    async fn prepare(
        &self,
        context: &Context,
        asked: ActionCreatePreparedStatementRequest,
    ) -> Result<Vec<Vec<u8>>, Status> {
        let transaction = asked.transaction_id.as_deref().map(handle_text).transpose()?;
        let prepare = move |shared: &Shared, context: &Context, deadline: &Deadline| {
            let place = shared.place(context, transaction.as_deref(), deadline)?;
            let described = || {
                let columns = shared.describe(context, &place, &asked.query, deadline)?;
                let dataset_schema = ipc(&columns)?;
                let parameter_schema = parameters(&place, &asked.query, deadline)?;
                let prepared =
                    Prepared { text: asked.query.clone(), transaction: transaction.clone(), bound: None };
                let handle = shared.prepared.keep(&context.caller.user, prepared, context.maker(deadline))?;
                Ok(ActionCreatePreparedStatementResult {
                    prepared_statement_handle: handle.into(),
                    dataset_schema,
                    parameter_schema,
                })
            };
            described().map_err(status)
        };
        let prepared = self.0.blocking("prepare", context, prepare).await?;
        Ok(vec![prepared.as_any().encode_to_vec()])
    }

    async fn set_options(&self, context: Context, asked: SessionOptions) -> Reply {
        let set = move |shared: &Shared, context: &Context, deadline: &Deadline| {
            // One that is over begins again.
            let context = &Context { is_over: false, ..context.clone() };
            let (mut options, mut errors) = (context.options.clone(), HashMap::new());
            for (name, value) in asked.options {
                if let Err(value) = options.set(shared, context, &name, value.value, deadline)? {
                    errors.insert(name, OptionError { value });
                }
            }
            let user = &context.caller.user;
            if context.session.is_none() && options == Options::default() && !errors.is_empty() {
                // There is nothing to keep.
                return Ok((None, SetSessionOptionsResult { errors }));
            }
            let kept = context
                .session
                .as_ref()
                .and_then(|id| shared.sessions.with(user, id, |kept| *kept = options.clone()));
            let id = match (kept, &context.session) {
                (Some(()), Some(id)) => id.clone(),
                _ => shared.sessions.keep(user, options, context.maker(deadline)).map_err(status)?,
            };
            Ok((Some(id), SetSessionOptionsResult { errors }))
        };
        let (id, result) = self.0.blocking("session", &context, set).await?;
        let mut response = reply(vec![result.encode_to_vec()]);
        if let Some(id) = id {
            set_cookie(&mut response, &id)?;
        }
        Ok(response)
    }
}

fn set_cookie(response: &mut Response<Replies<arrow_flight::Result>>, value: &str) -> Result<(), Status> {
    let cookie = format!("{COOKIE}={value}")
        .parse()
        .map_err(|_| not_flight_sql("the session's name is not a header"))?;
    response.metadata_mut().insert("set-cookie", cookie);
    Ok(())
}

impl Options {
    /// Sets an option of a session; the error value of one that is not known, or has no such value.
    fn set(
        &mut self,
        shared: &Shared,
        context: &Context,
        name: &str,
        value: Option<OptionValue>,
        deadline: &Deadline,
    ) -> Result<Result<(), i32>, Status> {
        match (name, value) {
            ("schema", None) => {
                let before = shared.engine(context.caller.role).clone();
                let current = Where::Any(before).current(deadline).map_err(status)?;
                shared.use_schema(context, &current.schema.unwrap_or_default(), deadline)?;
                self.schema = None;
            }
            ("schema", Some(OptionValue::Text(schema))) => {
                let wanted = Context {
                    options: Self { schema: Some(schema.clone()), ..Self::default() },
                    ..context.clone()
                };
                if shared.place(&wanted, None, deadline).is_err() {
                    return Ok(Err(INVALID_VALUE));
                }
                shared.use_schema(context, &schema, deadline)?;
                self.schema = Some(schema);
            }
            // There is one, which is set already.
            ("catalog", Some(OptionValue::Text(catalog))) => {
                let current = shared.place(context, None, deadline)?.current(deadline).map_err(status)?;
                if current.catalog.as_deref().unwrap_or_default() != catalog {
                    return Ok(Err(INVALID_VALUE));
                }
            }
            ("longshore.parts", None) => self.parts = None,
            ("longshore.parts", Some(value)) => {
                let Some(parts) = count(&value) else { return Ok(Err(INVALID_VALUE)) };
                self.parts = Some(parts);
            }
            ("schema" | "catalog", _) => return Ok(Err(INVALID_VALUE)),
            _ => return Ok(Err(INVALID_NAME)),
        }
        Ok(Ok(()))
    }
}

/// A number of parts.
fn count(value: &OptionValue) -> Option<usize> {
    let number = match value {
        OptionValue::Integer(number) => *number,
        OptionValue::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    (1..=MOST_PARTS).contains(&number).then(|| usize::try_from(number).ok()).flatten()
}

/// The number of parts that a text asks for.
pub(crate) fn parts_of(text: &str) -> Result<usize, Status> {
    count(&OptionValue::Text(text.to_owned()))
        .ok_or_else(|| Status::invalid_argument(format!("a result has 1 to {MOST_PARTS} parts")))
}

/// The options of a session, with the names that it has without having chosen them.
fn session_options(options: &Options, current: Current) -> SessionOptions {
    let number = |number: usize| {
        let number = i64::try_from(number).unwrap_or_default();
        SessionOptionValue { value: Some(OptionValue::Integer(number)) }
    };
    let schema = options.schema.clone().or(current.schema);
    let schema = schema.map(|schema| ("schema".to_owned(), SessionOptionValue::text(schema)));
    let catalog = current.catalog.map(|catalog| ("catalog".to_owned(), SessionOptionValue::text(catalog)));
    let parts = options.parts.map(|parts| ("longshore.parts".to_owned(), number(parts)));
    SessionOptions { options: schema.into_iter().chain(catalog).chain(parts).collect() }
}

/// The schema of a statement's parameters; no bytes where the source does not tell it, or what it is described by has failed already.
fn parameters(place: &Where, text: &str, deadline: &Deadline) -> Result<Bytes> {
    if CursorStatement::of(text).is_some() {
        return ipc(&Schema::empty());
    }
    place.parameters(text, deadline).map_or_else(|_| Ok(Bytes::new()), |schema| ipc(&schema))
}

fn begin(shared: &Shared, context: &Context, deadline: &Deadline) -> Result<String, Status> {
    let begun = || {
        let connection = shared.connection(context, deadline)?;
        connection.begin(deadline)?;
        let transaction =
            OpenTransaction { connection, peer: context.peer, session: context.session.clone() };
        shared.transactions.keep(&context.caller.user, transaction, context.maker(deadline))
    };
    begun().map_err(status)
}

fn end(
    shared: &Shared,
    context: &Context,
    asked: &ActionEndTransactionRequest,
    deadline: &Deadline,
) -> Result<(), Status> {
    let (id, owner) = (handle_text(&asked.transaction_id)?, &context.caller.user);
    let connection = shared.transactions.with(owner, &id, |transaction| transaction.connection.clone());
    let connection = connection.ok_or_else(|| unknown("transaction"))?;
    let commits = asked.action() == EndTransaction::Commit;
    let waiting = deadline.at_most(BEFORE);
    let ended = || loop {
        shared.free(owner, &id, &connection, deadline)?;
        if commits && connection.transaction() == Some(Transaction::None) {
            return Err(
                Error::operational("the transaction is lost, and with it what it did").with_sqlstate("40003")
            );
        }
        let ended = connection
            .end_with(deadline, |session| if commits { session.commit() } else { session.rollback() });
        // A call that its client has left may begin only now: it is waited for, or finds the connection closed.
        if let Some(ended) = ended {
            return ended;
        }
        waiting.check().map_err(|_| longshore_core::in_use())?;
    };
    let ended = ended();
    shared.transactions.take(owner, &id);
    ended.and(connection.close()).map_err(status)
}
