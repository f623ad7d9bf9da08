//! A session: describes and runs statements.

use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Done, Error, Failed, Leasing, Load, Loading, NoRows,
    ParameterSets, Placeholders, Preparing, Protocol, Query, ReadOptions, Result, SEVERAL, Scripting,
    Session, Sink, Split, SplitPlan, Splitting, Stage, Target, Transaction, Value, not_committed,
};
use longshore_source::sql::positional;

use crate::catalogue::Catalogue;
use crate::columns::{ResultColumn, result_columns};
use crate::connection::{Connection, Described, Prepared};
use crate::dialect::{DIALECT, settings};
use crate::encode;
use crate::many;
use crate::metadata::CATALOGUE;
use crate::rows::{ResultWire, RowReader};
use crate::split::{self, Coordinator};
use crate::types::Type;
use crate::write;

const NO_SNAPSHOT: &str = "Redshift has no snapshot that other sessions can join";

/// One connection to PostgreSQL, or to a server that speaks its wire.
pub(crate) struct PostgresSession {
    pub(crate) connection: Connection,
    pub(crate) catalogue: Catalogue,
    /// Whether a statement of the caller's has run here, and may have left something behind.
    pub(crate) used: bool,
    /// The settings of statements before the read that is under way, by name, where some have run. Every session of
    /// that read runs them; whoever comes after it finds what they left.
    pub(crate) setup: Option<Vec<String>>,
    /// The duties to the parts in the snapshot that this session has exported.
    pub(crate) coordinator: Option<Coordinator>,
}

impl PostgresSession {
    pub(crate) fn open(target: &Target, deadline: &Deadline) -> Result<Self> {
        let connection = Connection::open(target, deadline)?;
        let mut catalogue = Catalogue::default();
        if connection.is_redshift() {
            // It has neither the tables nor the functions that a lookup asks.
            catalogue.give_up();
        }
        Ok(Self { connection, catalogue, used: false, setup: None, coordinator: None })
    }

    /// Parses `statement` on the server and learns what its result's types need.
    pub(crate) fn prepare(&mut self, statement: &str) -> Result<Prepared> {
        let prepared = self.connection.prepare(statement)?;
        let Some(columns) = &prepared.columns else { return Ok(prepared) };
        match self.catalogue.load(&mut self.connection, columns, &prepared.parameters) {
            Ok(()) => Ok(prepared),
            // The failed lookup ended the exchange, and with it the unnamed statement's plan: parse once more.
            Err(error) if error.sqlstate().is_some() && self.connection.is_usable() => {
                self.catalogue.give_up();
                self.connection.prepare(statement)
            }
            Err(error) => Err(error),
        }
    }

    /// The statement and the columns of its result; none where it has no result, and the options ask for any statement.
    fn plan(
        &mut self,
        statement: &str,
        options: &ReadOptions,
    ) -> Result<(Prepared, Option<Vec<ResultColumn>>)> {
        let mut options = options.clone();
        if !self.connection.has_binary_forms() {
            options.protocol = Protocol::Text;
        }
        let prepared = self.prepare(statement).map_err(several)?;
        let planned = match &prepared.columns {
            Some(columns) => result_columns(&self.catalogue, columns, statement, &options).map(Some),
            None if options.any_statement => Ok(None),
            None => Err(no_result()),
        };
        match planned {
            Ok(planned) => Ok((prepared, planned)),
            Err(error) => {
                // The statement is not run: leave the connection ready for the next.
                let _ = self.connection.sync();
                Err(error)
            }
        }
    }

    /// Sends `query`; its rows are next on the connection, where it has some.
    fn start(&mut self, query: &Query, options: &ReadOptions) -> Result<Started> {
        let statement = positional(&DIALECT, &query.text, &query.params)?;
        let planned = self.plan(&statement.text, options);
        let (prepared, planned) = planned.map_err(|error| statement.restore_position(error))?;
        let types = self.types_of(&prepared.parameters);
        let bound = encode::parameters(&statement.values, &types)?;
        let Some(planned) = planned else {
            let rows = self.run_prepared(&bound).map_err(|error| statement.restore_position(error))?;
            return Ok(Started::Done(Done { rows, last_row: None }));
        };
        let prints_floats = planned.iter().any(ResultColumn::prints_floats);
        let codes: Vec<i16> = planned.iter().map(|column| column.format as i16).collect();
        let reader = RowReader::new(planned, options)?;
        self.used = true;
        let can_print = self.catalogue.is_present() || self.connection.is_redshift();
        self.connection.execute(&bound, &codes, prints_floats && can_print)?;
        Ok(Started::Rows(Box::new(reader)))
    }

    /// Runs a statement of Longshore's own.
    fn run_own(&mut self, statement: &str) -> Result<()> {
        let outcome = self.connection.simple(statement);
        self.or_stop(outcome)
    }

    /// Runs a statement after which the catalogue may be another.
    fn change(&mut self, statement: &str) -> Result<()> {
        self.catalogue.forget_all();
        self.run_own(statement)
    }

    /// After a failure, has the server wait for the next statement, if that can still be had.
    fn or_stop<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome {
            self.connection.stop_after(error);
        }
        outcome
    }

    pub(crate) fn types_of(&self, oids: &[u32]) -> Vec<Type> {
        oids.iter().map(|oid| self.catalogue.type_of(*oid, -1)).collect()
    }

    /// Learns what the types of `columns` and `parameters` need, outside of any exchange.
    pub(crate) fn load_types(&mut self, columns: &[Described], parameters: &[u32]) -> Result<()> {
        self.catalogue.load(&mut self.connection, columns, parameters)?;
        if self.connection.is_usable() { Ok(()) } else { self.connection.sync() }
    }

    /// Runs one statement, and throws its rows away.
    fn run_bound(&mut self, statement: &str, values: &[&Value]) -> Result<Option<u64>> {
        let prepared = self.prepare(statement).map_err(several)?;
        let bound = encode::parameters(values, &self.types_of(&prepared.parameters))?;
        self.run_prepared(&bound)
    }

    fn run_prepared(&mut self, bound: &[Option<Vec<u8>>]) -> Result<Option<u64>> {
        self.used = true;
        self.catalogue.forget_all();
        self.connection.execute(bound, &[], false)?;
        self.connection.discard_rows()
    }
}

/// A statement that has been sent.
enum Started {
    /// Its rows are next on the connection.
    Rows(Box<RowReader>),
    /// It has none, and has run.
    Done(Done),
}

/// The server's refusal of several statements, with what to do. Only its words distinguish it from another syntax error.
pub(crate) fn several(error: Error) -> Error {
    if error.message().contains("multiple commands") { error.with_hint(SEVERAL) } else { error }
}

pub(crate) fn no_result() -> Error {
    Error::programming("the statement returns no rows, and was not run")
        .with_hint("read_sql takes statements with a result: SELECT, VALUES, SHOW, or INSERT ... RETURNING")
}

impl Session for PostgresSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        self.setup.get_or_insert_default().extend(settings(statement).into_iter().flatten());
        self.change(statement)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let statement = positional(&DIALECT, &query.text, &query.params)?;
        let planned = self.plan(&statement.text, options).and_then(|(_, planned)| {
            self.connection.sync()?;
            Ok(planned)
        });
        let planned = self.or_stop(planned).map_err(|error| statement.restore_position(error))?;
        let column =
            |planned: ResultColumn| Column { native_type: planned.native.label(), field: planned.field };
        Ok(planned.into_iter().flatten().map(column).collect())
    }

    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        let statement = positional(&DIALECT, &query.text, &query.params)?;
        let affected = self.run_bound(&statement.text, &statement.values);
        self.or_stop(affected).map_err(|error| statement.restore_position(error))
    }

    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        let affected = many::execute_many(self, text, sets);
        self.or_stop(affected)
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        match self.start(query, options) {
            Ok(Started::Rows(reader)) => Ok(Box::new(ResultWire::rows(*self, *reader))),
            Ok(Started::Done(done)) => Ok(Box::new(NoRows { done, session: self })),
            Err(error) => {
                let is_good = self.connection.stop_after(&error);
                Err(Failed { error, session: is_good.then_some(self as Box<dyn Session>) })
            }
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.run_own("BEGIN")
    }

    fn commit(&mut self) -> Result<()> {
        match self.transaction() {
            Transaction::None => Ok(()),
            Transaction::Open => match self.coordinator.take() {
                Some(coordinator) => {
                    let ended = coordinator.end(self);
                    self.or_stop(ended)
                }
                None => self.run_own("COMMIT"),
            },
            // The server would answer COMMIT without a word of what it undoes.
            Transaction::Failed => self.rollback().and(Err(not_committed("25P02"))),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        self.coordinator = None;
        if self.transaction() == Transaction::None { Ok(()) } else { self.change("ROLLBACK") }
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::Numbered
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable()
    }

    fn transaction(&self) -> Transaction {
        self.connection.transaction()
    }

    fn reset(&mut self) -> Result<()> {
        self.rollback()?;
        self.change("DISCARD ALL")?;
        self.used = false;
        self.setup = None;
        Ok(())
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.used |= self.setup.take().is_some();
        self.connection.set_deadline(deadline);
        self.catalogue.forget();
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        if self.connection.is_redshift() { Err(NO_SNAPSHOT.into()) } else { Ok(self) }
    }

    fn leasing(&mut self) -> Result<&mut dyn Leasing, String> {
        if self.connection.is_redshift() { Err(NO_SNAPSHOT.into()) } else { Ok(self) }
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        Ok(self)
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        Some(CATALOGUE.clone())
    }

    fn scripting(&mut self) -> Option<&mut dyn Scripting> {
        Some(self)
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Ok(self)
    }
}

impl Splitting for PostgresSession {
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        let plan = split::split(self, queries, split, options);
        self.or_stop(plan)
    }

    fn join_snapshot(&mut self, snapshot: &str, _sessions: usize) -> Result<()> {
        // The split has written down all that is to be done.
        self.run_own(snapshot)
    }

    fn begin_snapshot(&mut self, queries: &[Query]) -> Result<()> {
        let begun = split::begin_together(self, queries);
        if begun.is_err() {
            self.connection.abandon();
        }
        begun
    }

    fn is_setting(&self, statement: &str) -> bool {
        settings(statement).is_some()
    }

    fn let_waiters_pass(&mut self) -> Result<()> {
        let Some(coordinator) = self.coordinator.take() else { return Ok(()) };
        let yielded = coordinator.let_waiters_pass(self);
        self.coordinator = Some(coordinator);
        self.or_stop(yielded)
    }

    fn estimate(&mut self, query: &Query) -> Result<Option<u64>> {
        let estimate = split::estimate(self, query);
        self.or_stop(estimate)
    }
}

impl Leasing for PostgresSession {
    fn private_state(&mut self) -> Result<Option<String>> {
        let unshared = split::private_state(self);
        Ok(self.or_stop(unshared)?.map(str::to_owned))
    }

    fn lease(&mut self, query: &Query, split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        let plan = split::lease(self, query, split, options);
        self.or_stop(plan)
    }

    fn join_lease(&mut self, snapshot: &str, query: &Query) -> Result<()> {
        let joined = split::join_lease(self, snapshot, query);
        self.or_stop(joined)
    }
}

impl Preparing for PostgresSession {
    fn parameters(&mut self, statement: &str, options: &ReadOptions) -> Result<Vec<Column>> {
        let prepared = self.connection.prepare(statement).map_err(several);
        let types = prepared.and_then(|Prepared { parameters, .. }| {
            self.load_types(&[], &parameters)?;
            Ok(self.types_of(&parameters))
        });
        let column = |(number, native): (usize, Type)| {
            let field = native.field(&format!("${number}"), true, options)?;
            Ok(Column { native_type: native.label(), field })
        };
        (1..).zip(self.or_stop(types)?).map(column).collect()
    }
}

impl Scripting for PostgresSession {
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()> {
        if begins && self.transaction() == Transaction::None {
            self.begin()?;
        }
        self.used = true;
        self.catalogue.forget_all();
        let ran = self.connection.script(script);
        self.or_stop(ran)
    }
}

impl Loading for PostgresSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        write::open(self, load)
    }

    fn writes_alone(&self) -> Option<String> {
        None
    }

    fn stage(self: Box<Self>, load: &Load, helper: &mut dyn Session) -> Result<Box<dyn Stage>, Failed> {
        write::open_stage(self, load, helper)
    }
}
