//! Calls that no example server answers: results that are polled for, and messages compressed by gzip and zstd.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Int64Array, RecordBatch};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_schema::{DataType, Field, Schema};
use futures::StreamExt;
use futures::stream::BoxStream;
use longshore_core::{Deadline, Driver, Query, ReadOptions, Target};
use longshore_flight::Flight;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// How often a result is polled for before it is there.
const POLLS: usize = 3;

type Answers<T> = BoxStream<'static, Result<T, Status>>;

/// Has one result, of many rows that are alike.
#[derive(Default)]
struct Scripted {
    polls: Arc<AtomicUsize>,
}

fn numbers() -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![7; 100_000]))]).unwrap()
}

fn info() -> FlightInfo {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new("all"));
    FlightInfo::new().try_with_schema(numbers().schema_ref()).unwrap().with_endpoint(endpoint)
}

#[tonic::async_trait]
impl FlightService for Scripted {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        Ok(Response::new(info()))
    }

    async fn poll_flight_info(&self, asked: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        let polls = 1 + self.polls.fetch_add(1, Ordering::Relaxed);
        let next = (polls < POLLS).then(|| asked.into_inner());
        let info = (polls == POLLS).then(info);
        Ok(Response::new(PollInfo { info, flight_descriptor: next, ..PollInfo::default() }))
    }

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let rows = futures::stream::iter([Ok(numbers())]);
        let messages = FlightDataEncoderBuilder::new().build(rows);
        Ok(Response::new(messages.map(|message| message.map_err(Status::from)).boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("handshake"))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("list_flights"))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented("get_schema"))
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        Err(Status::unimplemented("do_put"))
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        Err(Status::unimplemented("do_action"))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented("list_actions"))
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("do_exchange"))
    }
}

/// Reads the result from a server that compresses by `encoding`, and gives how often it was polled for.
fn polls(settings: &str, encoding: Option<CompressionEncoding>) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let scripted = Scripted::default();
    let polls = scripted.polls.clone();
    let mut service = FlightServiceServer::new(scripted);
    if let Some(encoding) = encoding {
        service = service.send_compressed(encoding).accept_compressed(encoding);
    }
    let incoming = {
        let _inside = runtime.enter();
        TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap()
    };
    let port = incoming.local_addr().unwrap().port();
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    let target = Target::from_url(&format!("grpc://127.0.0.1:{port}?{settings}")).unwrap();
    let session = Flight.connect(&target, &Deadline::never()).unwrap();
    let Ok(batches) = session.read(&Query::new("SELECT n"), &ReadOptions::default()) else {
        panic!("the result cannot be read")
    };
    let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 100_000);
    runtime.shutdown_background();
    polls.load(Ordering::Relaxed)
}

#[test]
fn a_result_is_polled_for_until_it_is_there() {
    assert_eq!(polls("poll=true", None), POLLS);
    assert_eq!(polls("poll=false", None), 0);
}

#[test]
fn messages_are_compressed_both_ways() {
    assert_eq!(polls("compression=gzip", Some(CompressionEncoding::Gzip)), 0);
    assert_eq!(polls("compression=zstd", Some(CompressionEncoding::Zstd)), 0);
}
