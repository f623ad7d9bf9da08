//! A session: its transaction, and the statements that it runs.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arrow_flight::sql::{
    ActionBeginTransactionRequest, ActionBeginTransactionResult, ActionEndTransactionRequest,
    CommandStatementQuery, EndTransaction, ProstMessageExt,
};
use arrow_flight::{Action, FlightEndpoint, FlightInfo};
use bytes::Bytes;
use longshore_core::{
    Batches, CatalogueQueries, Collected, Column, Deadline, Done, Error, Failed, Kind as ErrorKind, Leasing,
    Load, Loading, NATIVE_TYPE, NoRows, ParameterSets, Params, Placeholders, Preparing, Query, ReadOptions,
    Result, Session, Sink, Splitting, Transaction as State, type_name,
};
use prost::Message;

use crate::catalogue;
use crate::client::{Client, Shared};
use crate::credentials::Credentials;
use crate::messages::declared_schema;
use crate::results::{FlightBatches, Rows, Servers, cancel, choices};
use crate::settings::{Places, Settings};
use crate::sink::FlightSink;
use crate::statement::{Kind, Prepared, answer, number, returns, update};

/// The hint for a server without transactions.
const WITHOUT_TRANSACTIONS: &str = "connect with autocommit=True, or write by the URL";

/// How long it may take to end a transaction that its owner no longer waits for.
pub(crate) const ENDING: Duration = Duration::from_secs(4);

/// Sets of parameters that go to the server at once.
const SETS: usize = 4096;

/// One connection to a server.
pub(crate) struct FlightSession {
    pub(crate) servers: Arc<Servers>,
    transaction: Transaction,
    pub(crate) deadline: Deadline,
    /// Whether the end of a transaction is not known.
    is_lost: bool,
    /// How many parts the next result is wanted in.
    pub(crate) parts: Option<NonZeroUsize>,
    /// The result whose endpoints others read for as long as this session is open.
    pub(crate) leased: Option<FlightInfo>,
    /// Whether another schema than that of the URL was chosen.
    has_schema: bool,
    /// The one endpoint of another session's result that this one reads.
    pub(crate) joined: Option<FlightEndpoint>,
}

/// The transaction that its owner has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open(Bytes),
    /// The server has none: what only reads needs none.
    Unknown,
}

impl FlightSession {
    pub(crate) fn open(
        (settings, credentials): (Settings, Credentials),
        deadline: &Deadline,
    ) -> Result<Self> {
        let address = settings.address.clone();
        let shared = Arc::new(Shared { settings, credentials, cancels: AtomicBool::new(true) });
        let home = Client::open(shared, address, deadline)?;
        home.log_in(deadline)?;
        let session = Self {
            servers: Arc::new(Servers::new(home)),
            transaction: Transaction::None,
            deadline: deadline.clone(),
            is_lost: false,
            parts: None,
            leased: None,
            has_schema: false,
            joined: None,
        };
        session.choose_names()?;
        Ok(session)
    }

    fn client(&self) -> &Client {
        &self.servers.home
    }

    fn settings(&self) -> &Settings {
        &self.client().shared.settings
    }

    pub(crate) fn transaction_id(&self) -> Option<&Bytes> {
        match &self.transaction {
            Transaction::Open(id) => Some(id),
            Transaction::None | Transaction::Unknown => None,
        }
    }

    /// Whether a transaction is open on the server.
    pub(crate) fn has_transaction(&self) -> bool {
        self.transaction_id().is_some()
    }

    /// Tells the server which catalogue and schema names without one are of.
    fn choose_names(&self) -> Result<()> {
        let options = [("catalog", &self.settings().catalog), ("schema", &self.settings().schema)];
        let chosen = options.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let request = crate::options::request(chosen);
        match request {
            Some(request) => crate::options::set(self.client(), &request, &self.deadline),
            None => Ok(()),
        }
    }

    /// Tells the server which schema names without one are of from now on.
    fn use_schema(&mut self, schema: &str) -> Result<()> {
        let request = crate::options::request([("schema", schema)].into_iter());
        self.has_schema = true;
        request.map_or(Ok(()), |request| crate::options::set(self.client(), &request, &self.deadline))
    }

    /// The session, where it can be used on.
    pub(crate) fn left(self: Box<Self>) -> Option<Box<dyn Session>> {
        if self.is_usable() { Some(self) } else { None }
    }

    /// A failure, and the session where it can be used on.
    pub(crate) fn fail(self: Box<Self>, error: Error) -> Failed {
        Failed { error, session: self.left() }
    }

    pub(crate) fn close_prepared(&self, prepared: Option<Prepared>) {
        if let Some(prepared) = prepared.filter(|_| self.client().link.is_open()) {
            prepared.close(self.client());
        }
    }

    /// Closes a statement that has done its work, before the next begins.
    pub(crate) fn close_done(&self, prepared: Option<Prepared>) {
        if let Some(prepared) = prepared.filter(|_| self.client().link.is_open()) {
            prepared.close_answered(self.client(), &self.deadline.at_most(ENDING));
        }
    }

    /// Closes a statement whose work has ended so.
    pub(crate) fn close_after<T>(&self, prepared: Option<Prepared>, ended: &Result<T>) {
        if ended.is_ok() { self.close_done(prepared) } else { self.close_prepared(prepared) }
    }

    pub(crate) fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(self.client(), text, self.transaction_id(), &self.deadline)
    }

    /// How the rows of a statement without parameters are read.
    pub(crate) fn info(&self, text: &str) -> Result<FlightInfo> {
        let command =
            CommandStatementQuery { query: text.to_owned(), transaction_id: self.transaction_id().cloned() };
        self.info_of(&command)
    }

    /// How the rows of a command are read.
    fn info_of(&self, command: &impl ProstMessageExt) -> Result<FlightInfo> {
        let parts: Vec<_> =
            self.parts.iter().map(|parts| (longshore_flight_protocol::PARTS, parts.to_string())).collect();
        self.client().flight_info(command, &parts, &self.deadline)
    }

    /// How the rows of a query are read, and what has prepared it.
    fn plan(&self, query: &Query, prepared: Option<Prepared>) -> Result<(FlightInfo, Option<Prepared>)> {
        let numbered = number(self.settings().places, &query.text, &query.params)?;
        if prepared.is_none() && numbered.values.is_empty() {
            return Ok((self.info(&numbered.text)?, None));
        }
        let mut prepared = match prepared {
            Some(prepared) => prepared,
            None => self.prepare(&numbered.text)?,
        };
        let bound = prepared.bind(self.client(), &numbered.values, &self.deadline);
        let info = bound.and_then(|()| self.info_of(&prepared.query()));
        match info {
            Ok(info) => Ok((info, Some(prepared))),
            Err(error) => {
                self.close_prepared(Some(prepared));
                Err(error)
            }
        }
    }

    /// How many rows a result has.
    fn count(&self, info: &FlightInfo) -> Result<u64> {
        let mut rows = Rows::open(&self.servers, info, &self.deadline)?;
        let mut count = 0;
        while let Some(batch) = rows.next(&self.deadline)? {
            count += batch.num_rows() as u64;
        }
        Ok(count)
    }

    /// Runs a statement that changes something.
    fn update(&self, query: &Query, prepared: Option<Prepared>) -> Result<Option<u64>> {
        self.refuse_change()?;
        let numbered = number(self.settings().places, &query.text, &query.params)?;
        if prepared.is_none() && numbered.values.is_empty() {
            return update(self.client(), &numbered.text, self.transaction_id(), &self.deadline);
        }
        let prepared = match prepared {
            Some(prepared) => prepared,
            None => self.prepare(&numbered.text)?,
        };
        let changed = prepared.update(self.client(), &[numbered.values], &self.deadline);
        self.close_after(Some(prepared), &changed);
        changed
    }

    pub(crate) fn refuse_change(&self) -> Result<()> {
        if self.transaction != Transaction::Unknown {
            return Ok(());
        }
        Err(Error::not_supported("the server has no transactions: what is written cannot be rolled back")
            .with_sqlstate("0A000")
            .with_hint(WITHOUT_TRANSACTIONS))
    }

    /// Finds out whether a statement has rows, where its text does not tell.
    fn look_at(&self, query: &Query) -> Result<(bool, Option<Prepared>)> {
        match Kind::of(&query.text)? {
            Kind::Rows => Ok((true, None)),
            Kind::NoRows => Ok((false, None)),
            Kind::Unknown => {
                let numbered = number(self.settings().places, &query.text, &query.params)?;
                match self.prepare(&numbered.text) {
                    // Of what changes rows and returns some, a server may know the columns only once it has run.
                    Ok(prepared) => Ok((prepared.rows.is_some() || returns(&query.text), Some(prepared))),
                    Err(error) if error.kind() == ErrorKind::NotSupported => Ok((true, None)),
                    Err(error) => Err(error),
                }
            }
        }
    }

    fn end(&mut self, how: EndTransaction) -> Result<()> {
        // One that the server has none of ends here, too.
        let Transaction::Open(id) = std::mem::replace(&mut self.transaction, Transaction::None) else {
            return Ok(());
        };
        let action = |how: EndTransaction| {
            let request = ActionEndTransactionRequest { transaction_id: id.clone(), action: how.into() };
            Action::new("EndTransaction", request.as_any().encode_to_vec())
        };
        let ended = self.client().act(&action(how), &self.deadline);
        if ended.is_err() {
            // It may have ended either way, or not at all; a server that answers to this has ended it, or did so before.
            let is_over = how == EndTransaction::Commit
                && self.client().try_act(&action(EndTransaction::Rollback), &self.deadline).is_ok()
                && self.client().link.is_open();
            self.is_lost = !is_over;
        }
        ended.map(drop)
    }
}

/// Describes columns of `schema` under the caller's options.
fn columns(schema: &arrow_schema::Schema, options: &ReadOptions) -> Result<Vec<Column>> {
    let (_, policy) = choices(schema, options)?;
    let schema = policy.schema();
    let column = |field: &Arc<arrow_schema::Field>| {
        let native_type =
            field.metadata().get(NATIVE_TYPE).cloned().unwrap_or_else(|| type_name(field.data_type()));
        Column { field: field.as_ref().clone(), native_type }
    };
    Ok(schema.fields().iter().map(column).collect())
}

impl Session for FlightSession {
    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        if let Some(schema) = Self::chosen_schema(query) {
            return self.use_schema(&schema).map(|()| Some(0));
        }
        let (has_rows, prepared) = self.look_at(query)?;
        if !has_rows {
            return self.update(query, prepared);
        }
        let (info, prepared) = self.plan(query, prepared)?;
        let counted = self.count(&info);
        if counted.is_err() {
            cancel(self, &info);
        }
        self.close_after(prepared, &counted);
        counted.map(Some)
    }

    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        self.refuse_change()?;
        let mut prepared: Option<(String, Prepared)> = None;
        let mut rows = Some(0);
        let mut run = |sets: Result<Vec<Params>>| {
            let sets = sets?;
            for sets in sets.chunks(SETS) {
                let (first, values) =
                    longshore_source::sql::positional_sets(&self.settings().places.dialect(), text, sets)?;
                if prepared.as_ref().is_none_or(|(known, _)| *known != first.text) {
                    self.close_done(prepared.take().map(|(_, prepared)| prepared));
                    prepared = Some((first.text.clone(), self.prepare(&first.text)?));
                }
                let Some((_, prepared)) = &prepared else { continue };
                // A column of a batch has one type.
                for alike in crate::binding::alike(&values) {
                    let changed = prepared.update(self.client(), alike, &self.deadline)?;
                    rows = rows.zip(changed).map(|(rows, changed)| rows + changed);
                }
            }
            Ok(())
        };
        let mut ran = Ok(());
        for sets in sets {
            ran = run(sets);
            if ran.is_err() {
                break;
            }
        }
        self.close_after(prepared.map(|(_, prepared)| prepared), &ran);
        ran.map(|()| rows)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let kind = Kind::of(&query.text)?;
        if kind == Kind::NoRows {
            return Err(Error::programming("the statement returns no rows, and was not run"));
        }
        let numbered = number(self.settings().places, &query.text, &query.params)?;
        if kind == Kind::Rows && numbered.values.is_empty() {
            let command = CommandStatementQuery {
                query: numbered.text.clone(),
                transaction_id: self.transaction_id().cloned(),
            };
            let told = self.client().schema(&command, &self.deadline)?;
            if let Some(schema) = told.map(|told| declared_schema(&told)).transpose()?.flatten() {
                return columns(&schema, options);
            }
        }
        let prepared = self.prepare(&numbered.text)?;
        let told = match &prepared.rows {
            Some(rows) => Ok(Some(rows.clone())),
            None => self
                .client()
                .schema(&prepared.query(), &self.deadline)
                .and_then(|told| Ok(told.map(|told| declared_schema(&told)).transpose()?.flatten())),
        };
        self.close_prepared(Some(prepared));
        match told? {
            Some(schema) => columns(&schema, options),
            None if kind == Kind::Unknown => {
                Err(Error::programming("the statement returns no rows, and was not run"))
            }
            None => Err(Error::not_supported("the server does not tell what a query returns before it runs")
                .with_hint("read it, with LIMIT 0 for its types alone")),
        }
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        if let Some(endpoint) = self.joined.clone() {
            let info = FlightInfo { endpoint: vec![endpoint], ..FlightInfo::default() };
            return FlightBatches::open(self, info, None, options).map(|batches| Box::new(batches) as _);
        }
        match self.catalogue(query) {
            Ok(Some(batch)) => {
                return Ok(Box::new(Collected::one(batch, self)));
            }
            Ok(None) => {}
            Err(error) => return Err(self.fail(error)),
        }
        let (has_rows, prepared) = match self.look_at(query) {
            Ok(looked) => looked,
            Err(error) => return Err(self.fail(error)),
        };
        if has_rows || (prepared.is_some() && !options.any_statement) {
            let planned = self.plan(query, prepared);
            let parts = self.parts.take();
            let (info, prepared) = match planned {
                Ok(planned) => planned,
                Err(error) => return Err(self.fail(error)),
            };
            let is_parted = parts.is_none_or(|parts| parts.get() == 1 || info.endpoint.len() > 1);
            return FlightBatches::open(self, info, prepared, options)
                .map(|batches| Box::new(batches.with_parting(is_parted)) as _);
        }
        if !options.any_statement {
            return Err(self.fail(Error::programming("the statement returns no rows, and was not run")));
        }
        match self.update(query, prepared) {
            Ok(rows) => {
                let done = Done { rows, last_row: None };
                Ok(Box::new(NoRows { done, session: self }))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn transaction(&self) -> State {
        if self.transaction == Transaction::None { State::None } else { State::Open }
    }

    fn begin(&mut self) -> Result<()> {
        let action =
            Action::new("BeginTransaction", ActionBeginTransactionRequest {}.as_any().encode_to_vec());
        let begun = match self.client().act(&action, &self.deadline) {
            Ok(answers) => answer::<ActionBeginTransactionResult>(&answers),
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                self.transaction = Transaction::Unknown;
                return Ok(());
            }
            Err(error) => Err(error),
        };
        self.transaction = Transaction::Open(begun?.transaction_id);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.end(EndTransaction::Commit)
    }

    fn rollback(&mut self) -> Result<()> {
        self.end(EndTransaction::Rollback)
    }

    fn is_usable(&self) -> bool {
        !self.is_lost && self.client().link.is_open()
    }

    fn reset(&mut self) -> Result<()> {
        self.rollback()
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn placeholders(&self) -> Placeholders {
        match self.settings().places {
            Places::Questions => Placeholders::QuestionMarks,
            Places::Numbers => Placeholders::Numbered,
        }
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        Some(catalogue::queries(self))
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        Ok(self)
    }

    fn leasing(&mut self) -> Result<&mut dyn Leasing, String> {
        Ok(self)
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        Ok(self)
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Ok(self)
    }
}

impl Preparing for FlightSession {
    fn parameters(&mut self, statement: &str, options: &ReadOptions) -> Result<Vec<Column>> {
        let prepared = self.prepare(statement)?;
        let parameters = prepared.parameters.clone();
        self.close_prepared(Some(prepared));
        match parameters {
            Some(schema) if schema.fields().iter().any(|field| field.data_type().is_null()) => {
                Err(Error::not_supported("the server knows the parameters, but does not tell their types")
                    .with_sqlstate("0A000"))
            }
            Some(schema) => columns(&schema, options),
            None => Err(Error::not_supported(longshore_core::NOT_PREPARED)),
        }
    }
}

impl Loading for FlightSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        FlightSink::begin(self, load).map(|sink| Box::new(sink) as Box<dyn Sink>)
    }
}

impl Drop for FlightSession {
    fn drop(&mut self) {
        if let Some(info) = self.leased.take().filter(|_| self.client().link.is_open()) {
            cancel(self, &info);
        }
        if self.transaction_id().is_some() && self.client().link.is_open() {
            self.deadline = Deadline::never().at_most(ENDING);
            // The server sees the connection end, too.
            let _ = self.rollback();
        }
        let has_options =
            self.has_schema || self.settings().catalog.is_some() || self.settings().schema.is_some();
        if has_options && self.client().link.is_open() {
            crate::options::close(self.client(), &Deadline::never().at_most(ENDING));
        }
    }
}
