//! The rows of a result: those of all its endpoints, several of which are read at once.

mod endpoint;
mod several;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::{CancelFlightInfoRequest, FlightInfo};
use arrow_schema::{Field, Schema, SchemaRef};
use longshore_core::{
    Batches, Deadline, Error, Failed, Finaliser, NATIVE_TYPE, ReadOptions, Result, Session, Uuids,
};
use longshore_duckdb::{Exact, ValueOptions};
use longshore_retype::Policy;

pub(crate) use endpoint::Servers;
use endpoint::{Endpoint, agree};
use several::Several;

use crate::error::protocol_error;
use crate::messages::declared_schema;
use crate::session::FlightSession;
use crate::statement::Prepared;

/// Why a result that was asked for in parts is read over one connection.
const WHOLE: &str = "the server gives the result as one endpoint";

/// Where a server says what type a column has in its database.
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";

/// The rows of all endpoints under the schema of the first.
pub(crate) struct Rows {
    schema: SchemaRef,
    from: From,
    /// Whether each endpoint has ended well.
    is_whole: bool,
}

enum From {
    Nothing,
    One(Box<Endpoint>),
    Several(Several),
}

impl Rows {
    /// Begins to read what `info` tells of.
    pub(crate) fn open(servers: &Arc<Servers>, info: &FlightInfo, deadline: &Deadline) -> Result<Self> {
        let declared = declared_schema(&info.schema)?;
        let Some((first, others)) = info.endpoint.split_first() else {
            let schema =
                declared.ok_or_else(|| protocol_error("a result has neither endpoints nor a schema"))?;
            return Ok(Self { schema, from: From::Nothing, is_whole: true });
        };
        let first = Endpoint::open(servers, first, 0, deadline)?;
        let schema = match declared {
            Some(declared) => agree(&declared, &first.schema(), 0)?,
            None => first.schema(),
        };
        let from = if others.is_empty() {
            From::One(Box::new(first.under(&schema)))
        } else {
            From::Several(Several::start(servers, first, others, &schema, info.ordered)?)
        };
        Ok(Self { schema, from, is_whole: false })
    }

    /// The next batch; `None` once each endpoint has ended well.
    pub(crate) fn next(&mut self, deadline: &Deadline) -> Result<Option<RecordBatch>> {
        let next = match &mut self.from {
            From::Nothing => Ok(None),
            From::One(endpoint) => endpoint.next(deadline),
            From::Several(several) => several.next(deadline),
        };
        self.is_whole |= matches!(next, Ok(None));
        if !matches!(next, Ok(Some(_))) {
            self.from = From::Nothing;
        }
        next
    }
}

/// A result under the caller's choices.
pub(crate) struct FlightBatches {
    rows: Rows,
    exact: Exact,
    policy: Policy,
    /// The most rows of a batch.
    most: usize,
    /// The rest of a batch.
    rest: Option<RecordBatch>,
    info: FlightInfo,
    /// Whether no batch has come: a result without rows is one without.
    is_first: bool,
    /// Whether the server has given as many parts as were asked for, or any.
    is_parted: bool,
    /// The source of the rows, until they have come.
    prepared: Option<Prepared>,
    /// `None` once it is given back.
    session: Option<Box<FlightSession>>,
}

impl FlightBatches {
    /// Begins to read.
    pub(crate) fn open(
        session: Box<FlightSession>,
        info: FlightInfo,
        prepared: Option<Prepared>,
        options: &ReadOptions,
    ) -> Result<Self, Failed> {
        let opened = Rows::open(&session.servers, &info, &session.deadline).and_then(|rows| {
            let (exact, policy) = choices(&rows.schema, options)?;
            Ok((rows, exact, policy))
        });
        match opened {
            Ok((rows, exact, policy)) => Ok(Self {
                rows,
                exact,
                policy,
                most: options.batch_rows.max(1),
                rest: None,
                info,
                is_first: true,
                is_parted: true,
                prepared,
                session: Some(session),
            }),
            Err(error) => {
                cancel(&session, &info);
                session.close_prepared(prepared);
                Err(session.fail(error))
            }
        }
    }

    /// The same, with word of whether the server has parted it as it was asked to.
    pub(crate) fn with_parting(mut self, is_parted: bool) -> Self {
        self.is_parted = is_parted;
        self
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        let Some(session) = &self.session else { return Ok(None) };
        session.servers.home.link.check("result")?;
        let deadline = session.deadline.clone();
        deadline.check()?;
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.rows.next(&deadline)? {
                Some(batch) => batch,
                None if self.is_first => RecordBatch::new_empty(self.rows.schema.clone()),
                None => return Ok(None),
            },
        };
        self.is_first = false;
        // Those before a value that does not fit arrive.
        let rows = batch.num_rows();
        let batch = if rows > self.most {
            self.rest = Some(batch.slice(self.most, rows - self.most));
            batch.slice(0, self.most)
        } else {
            batch
        };
        let batch = self.exact.batch(&batch)?;
        self.policy.batch(&batch).map(Some)
    }

    /// Ends the reading: what is not read to its end is cancelled.
    fn end(&mut self) {
        self.rest = None;
        self.rows.from = From::Nothing;
        let Some(session) = &self.session else { return };
        if std::mem::replace(&mut self.rows.is_whole, true) {
            session.close_done(self.prepared.take());
        } else {
            cancel(session, &self.info);
            session.close_prepared(self.prepared.take());
        }
    }
}

/// Has the server give up a result; one that cannot do so has seen its streams end.
pub(crate) fn cancel(session: &FlightSession, info: &FlightInfo) {
    if session.joined.is_some() {
        // The other parts are for others.
        return;
    }
    let request = CancelFlightInfoRequest::new(info.clone());
    session.servers.home.cancel(&request);
}

/// The plan for batches of `schema` under the caller's `options`.
pub(crate) fn choices(schema: &Schema, options: &ReadOptions) -> Result<(Exact, Policy)> {
    let named = |field: &Arc<Field>| {
        let mut metadata = field.metadata().clone();
        if let Some(name) = metadata.remove(TYPE_NAME)
            && !metadata.contains_key(NATIVE_TYPE)
        {
            metadata.insert(NATIVE_TYPE.to_owned(), name.to_ascii_lowercase());
        }
        metadata.retain(|key, _| !key.starts_with("ARROW:FLIGHT:SQL:"));
        field.as_ref().clone().with_metadata(metadata)
    };
    let schema = Schema::new(schema.fields().iter().map(named).collect::<Vec<Field>>());
    let values = ValueOptions {
        infinity: options.infinity,
        time_24: options.time_24,
        uuid_text: options.uuid == Uuids::Text,
    };
    let exact = Exact::new(&schema, values);
    let policy = Policy::new(&exact.schema(), options)?;
    Ok((exact, policy))
}

impl Iterator for FlightBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_rows().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.end();
        }
        next
    }
}

impl Batches for FlightBatches {
    fn schema(&self) -> SchemaRef {
        self.policy.schema()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.policy.finaliser()
    }

    fn not_split(&self) -> Option<String> {
        (!self.is_parted).then(|| WHOLE.into())
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end();
        self.session.take()?.left()
    }
}

impl Drop for FlightBatches {
    fn drop(&mut self) {
        self.end();
    }
}

/// The error of a thread that has read an endpoint.
fn panic_error() -> Error {
    Error::internal("the thread that reads an endpoint has panicked")
}
