//! One endpoint of a result: where its rows are, and the stream that they come in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_flight::FlightEndpoint;
use arrow_schema::{Field, Schema, SchemaRef};
use longshore_core::{Deadline, Error, Kind, Place, Result, lock};
use longshore_flight_protocol::ipc::{Decoded, Decoder};
use longshore_flight_protocol::wait;
use longshore_source::settings::Url;
use tonic::Code;

use crate::client::Client;
use crate::error::{protocol_error, unreadable};
use crate::link::Address;
use crate::messages::Messages;

/// The location of the server that has told of the endpoint.
const REUSED: &str = "arrow-flight-reuse-connection:";

/// The servers of a session: the one that it is connected to, and those that this one sends it to.
pub(crate) struct Servers {
    pub(crate) home: Client,
    others: Mutex<HashMap<String, Client>>,
}

impl Servers {
    pub(crate) fn new(home: Client) -> Self {
        Self { home, others: Mutex::default() }
    }

    /// The server at a location.
    fn at(&self, location: &str, deadline: &Deadline) -> Result<Client> {
        if location.is_empty() || location.starts_with(REUSED) {
            return Ok(self.home.clone());
        }
        let address = self.address(location)?;
        if (&address.host, address.port) == (&self.home.address.host, self.home.address.port)
            && address.tls.is_some() == self.home.address.tls.is_some()
        {
            return Ok(self.home.clone());
        }
        let place = address.show();
        let known = lock(&self.others).get(&place).filter(|client| client.link.is_open()).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let client = Client::open(self.home.shared.clone(), address, deadline)?;
        lock(&self.others).insert(place, client.clone());
        Ok(client)
    }

    /// The address that a location's URI names. What a session encrypts, none of its servers gets in the clear.
    fn address(&self, location: &str) -> Result<Address> {
        let unknown = || {
            Error::new(Kind::NotSupported, format!("rows at the location {location:?} cannot be read"))
                .with_hint("have the server name locations of grpc:// or grpc+tls://")
        };
        let (scheme, rest) = location.split_once("://").ok_or_else(unknown)?;
        let own = &self.home.address;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "grpc" | "grpc+tcp" if own.tls.is_none() => None,
            "grpc" | "grpc+tcp" => {
                let message = format!("the location {location:?} is not encrypted, and the session is");
                return Err(Error::operational(message)
                    .with_hint("have the server name locations of grpc+tls://, or connect with grpc://"));
            }
            "grpc+tls" => Some(own.tls.clone().unwrap_or_else(|| self.home.shared.settings.encryption())),
            _ => return Err(unknown()),
        };
        let hosts = Url::parse(rest)?.hosts;
        let [(host, port)] = hosts.as_slice() else { return Err(unknown()) };
        let port = port.parse().map_err(|_| unknown())?;
        Ok(Address { host: host.clone(), port, tls, tls_host: None })
    }
}

/// A stream of rows under a schema.
pub(crate) struct Endpoint {
    stream: Messages,
    decoder: Decoder,
    client: Client,
    schema: SchemaRef,
}

impl Endpoint {
    /// Asks each location in turn for the rows of `endpoint`, number `at`, up to their schema. Another location is asked only
    /// where one was not reached: nothing has been read of it.
    pub(crate) fn open(
        servers: &Servers,
        endpoint: &FlightEndpoint,
        at: usize,
        deadline: &Deadline,
    ) -> Result<Self> {
        let ticket = endpoint.ticket.as_ref();
        let ticket = ticket.ok_or_else(|| protocol_error(format_args!("endpoint {at} has no ticket")))?;
        let own = [String::new()];
        let named: Vec<String> = endpoint.location.iter().map(|location| location.uri.clone()).collect();
        let locations = if named.is_empty() { own.as_slice() } else { named.as_slice() };
        let mut unreached: Vec<Error> = Vec::new();
        for location in locations {
            let client = match servers.at(location, deadline) {
                Ok(client) => client,
                Err(error) => {
                    // The caller's end is not the location's.
                    deadline.check()?;
                    unreached.push(error);
                    continue;
                }
            };
            match client.get(ticket, deadline)? {
                Ok(stream) => return Self::begin(client, stream, at, deadline),
                Err(status) if status.code() == Code::Unavailable || !client.link.is_open() => {
                    unreached.push(client.failure(&status));
                }
                Err(status) => return Err(client.failure(&status)),
            }
        }
        Err(nowhere(at, unreached))
    }

    fn begin(client: Client, stream: Messages, at: usize, deadline: &Deadline) -> Result<Self> {
        let schema = Arc::new(Schema::empty());
        let mut endpoint = Self { stream, decoder: Decoder::default(), client, schema };
        loop {
            match endpoint.message(deadline)? {
                Some(Decoded::Schema(schema)) => {
                    endpoint.schema = schema;
                    return Ok(endpoint);
                }
                Some(Decoded::Nothing) => {}
                Some(Decoded::Batch(_)) | None => {
                    return Err(protocol_error(format_args!("endpoint {at} has ended before its schema")));
                }
            }
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The same rows under a schema that agrees with their own.
    pub(crate) fn under(mut self, schema: &SchemaRef) -> Self {
        self.schema = schema.clone();
        self
    }

    /// The next message; `None` after the status that ends the stream well.
    fn message(&mut self, deadline: &Deadline) -> Result<Option<Decoded>> {
        let limit = self.client.shared.settings.call_timeout;
        let limited = limit.map(|limit| deadline.at_most(limit));
        match wait(limited.as_ref().unwrap_or(deadline), self.stream.next())? {
            Ok(Some(data)) => Ok(Some(self.decoder.decode(&data).map_err(unreadable)?)),
            Ok(None) => Ok(None),
            Err(status) => Err(self.client.failure(&status)),
        }
    }

    /// The next batch; `None` at the end.
    pub(crate) fn next(&mut self, deadline: &Deadline) -> Result<Option<RecordBatch>> {
        loop {
            match self.message(deadline)? {
                Some(Decoded::Batch(batch)) => return self.under_schema(&batch).map(Some),
                Some(Decoded::Nothing) => {}
                Some(Decoded::Schema(_)) => return Err(protocol_error("a stream has a second schema")),
                None => return Ok(None),
            }
        }
    }

    fn under_schema(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &count)
            .map_err(|error| protocol_error(format_args!("a batch does not fit its schema: {error}")))
    }
}

/// The error of an endpoint that is at none of its locations.
fn nowhere(at: usize, mut errors: Vec<Error>) -> Error {
    let Some(last) = errors.pop() else {
        return protocol_error(format_args!("endpoint {at} has no location"));
    };
    if errors.is_empty() {
        return last;
    }
    let others: Vec<String> = errors.iter().map(|error| error.message().to_owned()).collect();
    last.within(format_args!("none of the locations of endpoint {at} was reached: {}", others.join("; ")))
}

/// The schema of rows for which `declared` was told, and which come, in endpoint `at`, under `own`: names and types have to be
/// the same, and what was said of NULLs is what counts.
pub(crate) fn agree(declared: &Schema, own: &Schema, at: usize) -> Result<SchemaRef> {
    let lie = |what: String| {
        protocol_error(format_args!("the schema of endpoint {at} is not the one declared: {what}"))
    };
    if declared.fields().len() != own.fields().len() {
        return Err(lie(format!("{} columns, and not {}", own.fields().len(), declared.fields().len())));
    }
    let mut fields = Vec::with_capacity(own.fields().len());
    for (declared, own) in declared.fields().iter().zip(own.fields()) {
        if declared.name() != own.name() {
            return Err(lie(format!("a column {:?}, and not {:?}", own.name(), declared.name())));
        }
        if !declared.data_type().equals_datatype(own.data_type()) {
            let place = Place { column: Some(own.name().clone()), ..Place::default() };
            let what = format!("its type is {}, and not {}", own.data_type(), declared.data_type());
            return Err(lie(what).at(place));
        }
        let metadata = if own.metadata().is_empty() { declared.metadata() } else { own.metadata() };
        let field = Field::new(own.name(), own.data_type().clone(), declared.is_nullable());
        fields.push(field.with_metadata(metadata.clone()));
    }
    Ok(Arc::new(Schema::new(fields)))
}
