//! The calls of Flight: what they ask for, and what they get.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    Command, CommandPreparedStatementQuery, CommandStatementQuery, DoPutPreparedStatementResult,
    DoPutUpdateResult, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{Schema, SchemaRef};
use futures_util::{Stream, StreamExt, stream};
use longshore_core::{Deadline, Result};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use crate::auth::Role;
use crate::context::Context;
use crate::handle::{command, handle_text};
use crate::metadata::Question;
use crate::parts::Part;
use crate::results::{Messages, of_batch, of_rows};
use crate::shared::{PartToRead, Shared};
use crate::status::{not_flight_sql, status};
use crate::uploads;

fn question(command: Command) -> Result<Question, Status> {
    Ok(match command {
        Command::CommandGetCatalogs(asked) => Question::Catalogs(asked),
        Command::CommandGetDbSchemas(asked) => Question::Schemas(asked),
        Command::CommandGetTables(asked) => Question::Tables(asked),
        Command::CommandGetTableTypes(asked) => Question::TableTypes(asked),
        Command::CommandGetPrimaryKeys(asked) => Question::PrimaryKeys(asked),
        Command::CommandGetImportedKeys(asked) => Question::ImportedKeys(asked),
        Command::CommandGetExportedKeys(asked) => Question::ExportedKeys(asked),
        Command::CommandGetCrossReference(asked) => Question::CrossReference(asked),
        Command::CommandGetXdbcTypeInfo(asked) => Question::Types(asked),
        Command::CommandGetSqlInfo(asked) => Question::Info(asked),
        Command::CommandStatementSubstraitPlan(_) => {
            return Err(Status::unimplemented("the server runs SQL, and no Substrait plans"));
        }
        other => return Err(not_flight_sql(format!("{} is not asked here", other.type_url()))),
    })
}

fn info(schema: &Schema, tickets: Vec<Ticket>, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
    let is_ordered = tickets.len() == 1;
    let mut info =
        FlightInfo::new().try_with_schema(schema).map_err(not_flight_sql)?.with_descriptor(descriptor);
    for ticket in tickets {
        info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket));
    }
    Ok(info.with_total_records(-1).with_total_bytes(-1).with_ordered(is_ordered))
}

fn put(message: &impl Message) -> Response<Replies<PutResult>> {
    let result = PutResult { app_metadata: message.encode_to_vec().into() };
    Response::new(Box::pin(stream::iter([Ok(result)])))
}

pub(crate) type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<Shared>);

impl Service {
    /// The caller, who is known before a message is read.
    pub(crate) fn context<T>(request: &Request<T>) -> Result<Context, Status> {
        request.extensions().get().cloned().ok_or_else(|| Status::internal("a call without a caller"))
    }

    async fn flight_info(&self, request: Request<FlightDescriptor>) -> Result<FlightInfo, Status> {
        let context = Self::context(&request)?;
        let descriptor = request.into_inner();
        match command(&descriptor.cmd)? {
            Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                let transaction = transaction_id.as_deref().map(handle_text).transpose()?;
                let run = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    shared.run(context, &query, Vec::new(), transaction, deadline)
                };
                let (schema, tickets) = self.0.blocking("statement", &context, run).await?;
                info(&schema, tickets, descriptor)
            }
            Command::CommandPreparedStatementQuery(asked) => {
                let run = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    let handle = &asked.prepared_statement_handle;
                    let (text, bound, transaction) = shared.find_prepared(context, handle)?;
                    shared.run(context, &text, bound, transaction, deadline)
                };
                let (schema, tickets) = self.0.blocking("prepared statement", &context, run).await?;
                info(&schema, tickets, descriptor)
            }
            other => {
                let schema = question(other)?.schema();
                let ticket = Ticket::new(descriptor.cmd.clone());
                info(&schema, vec![ticket], descriptor)
            }
        }
    }

    async fn schema(&self, request: Request<FlightDescriptor>) -> Result<SchemaRef, Status> {
        let context = Self::context(&request)?;
        let (text, transaction) = match command(&request.get_ref().cmd)? {
            Command::CommandStatementQuery(asked) => (asked.query, asked.transaction_id),
            Command::CommandPreparedStatementQuery(asked) => {
                let (text, _, transaction) =
                    self.0.find_prepared(&context, &asked.prepared_statement_handle)?;
                (text, transaction.map(Into::into))
            }
            other => return Ok(question(other)?.schema()),
        };
        let transaction = transaction.as_deref().map(handle_text).transpose()?;
        let describe = move |shared: &Shared, context: &Context, deadline: &Deadline| {
            let place = shared.place(context, transaction.as_deref(), deadline)?;
            shared.describe(context, &place, &text, deadline).map_err(status)
        };
        self.0.blocking("schema", &context, describe).await
    }

    fn rows(&self, context: &Context, ticket: &TicketStatementQuery) -> Result<Response<Messages>, Status> {
        let PartToRead { schema, part, reading } = self.0.take(context, ticket)?;
        let call = self.0.log.call("rows", &context.caller.user);
        match part {
            Part::Whole(rows) => {
                let guard = self.0.running.adopt(rows.deadline.cancel_handle());
                of_rows(&schema, rows.batches, self.0.limits.rows, rows.deadline, guard, call)
            }
            Part::Queue(reader) => {
                // A reader that leaves ends its own part alone.
                let guard = self.0.running.begin(context);
                let deadline = self.0.deadline(&guard);
                let batches = reader.under(deadline.clone()).inspect(move |_| _ = &reading);
                of_rows(&schema, batches, self.0.limits.rows, deadline, guard, call)
            }
            Part::Nothing => of_batch(&RecordBatch::new_empty(schema)),
        }
    }
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Replies<HandshakeResponse>;
    type ListFlightsStream = Replies<FlightInfo>;
    type DoGetStream = Messages;
    type DoPutStream = Replies<PutResult>;
    type DoActionStream = Replies<arrow_flight::Result>;
    type ListActionsStream = Replies<ActionType>;
    type DoExchangeStream = Messages;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let context = Self::context(&request)?;
        let metadata = request.metadata();
        let payload = HandshakeResponse::default();
        let mut response: Response<Self::HandshakeStream> =
            Response::new(Box::pin(stream::iter([Ok(payload)])));
        if let Some(users) = &self.0.users {
            let token = format!("Bearer {}", users.token(&context.caller, metadata).map_err(status)?);
            let token = token.parse().map_err(|_| Status::internal("a token is not a header"))?;
            response.metadata_mut().insert("authorization", token);
        }
        Ok(response)
    }

    async fn list_flights(
        &self,
        _request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        Ok(Response::new(Box::pin(stream::empty())))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.flight_info(request).await.map(Response::new)
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        let info = self.flight_info(request).await?;
        // Without a descriptor it is complete.
        Ok(Response::new(PollInfo {
            info: Some(info),
            flight_descriptor: None,
            progress: Some(1.0),
            expiration_time: None,
        }))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let schema = self.schema(request).await?;
        let options = IpcWriteOptions::default();
        SchemaAsIpc::new(&schema, &options).try_into().map(Response::new).map_err(not_flight_sql)
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let context = Self::context(&request)?;
        match command(&request.get_ref().ticket)? {
            Command::TicketStatementQuery(ticket) => self.rows(&context, &ticket),
            other => {
                let asked = question(other)?;
                let answer = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    let place = shared.place(context, None, deadline)?;
                    asked.answer(&place, context.caller.role == Role::Reader, deadline).map_err(status)
                };
                let batch = self.0.blocking("metadata", &context, answer).await?;
                of_batch(&batch)
            }
        }
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let context = Self::context(&request)?;
        let limits = &self.0.limits;
        let upload = uploads::open(request.into_inner(), limits.message, limits.idle).await?;
        match command(&upload.descriptor.cmd)? {
            Command::CommandStatementUpdate(asked) => {
                let transaction = asked.transaction_id.as_deref().map(handle_text).transpose()?;
                let update = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    shared.update(context, &asked.query, transaction.as_deref(), None, deadline)
                };
                let record_count = self.0.blocking("update", &context, update).await?;
                Ok(put(&DoPutUpdateResult { record_count }))
            }
            Command::CommandPreparedStatementUpdate(asked) => {
                let update = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    let (text, _, transaction) =
                        shared.find_prepared(context, &asked.prepared_statement_handle)?;
                    shared.update(context, &text, transaction.as_deref(), Some(upload), deadline)
                };
                let record_count = self.0.blocking("prepared update", &context, update).await?;
                Ok(put(&DoPutUpdateResult { record_count }))
            }
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery {
                prepared_statement_handle,
            }) => {
                let handle = handle_text(&prepared_statement_handle)?;
                let bind = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    shared.bind(context, &handle, upload.batches, deadline)
                };
                self.0.blocking("parameters", &context, bind).await?;
                let prepared_statement_handle = Some(prepared_statement_handle);
                Ok(put(&DoPutPreparedStatementResult { prepared_statement_handle }))
            }
            Command::CommandStatementIngest(asked) => {
                let ingest = move |shared: &Shared, context: &Context, deadline: &Deadline| {
                    shared.ingest(context, asked, upload, deadline)
                };
                let rows = self.0.blocking("ingest", &context, ingest).await?;
                Ok(put(&DoPutUpdateResult { record_count: i64::try_from(rows).unwrap_or(-1) }))
            }
            other => Err(not_flight_sql(format!("{} is not put", other.type_url()))),
        }
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let context = Self::context(&request)?;
        self.act(context, request.into_inner()).await
    }

    async fn list_actions(
        &self,
        _request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        Ok(Response::new(stream::iter(crate::actions::action_types()).map(Ok).boxed()))
    }

    async fn do_exchange(
        &self,
        _request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("Flight SQL has no DoExchange"))
    }
}
