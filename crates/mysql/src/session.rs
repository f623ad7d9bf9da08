//! A session: describes and runs statements.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Done, Error, Failed, Load, Loading, NoRows, ParameterSets,
    Params, Preparing, Protocol, Query, ReadOptions, Result, SEVERAL, Scripting, Session, Sink, Split,
    SplitPlan, Splitting, Stage, TableName, Target, Transaction, TransactionStatements, Value, not_committed,
};
use longshore_source::rows::Rows;
use longshore_source::sql::{Numbered, Token, positional};
use longshore_values::{Assembly, ReadColumn};

use crate::columns::{self, ColumnPlan};
use crate::connection::{Connection, Prepared};
use crate::decode::{Context, Format};
use crate::dialect::{binds_table_of_values, dialect, is_setting, tokens};
use crate::literals::inline;
use crate::message::{self, Definition, capability};
use crate::metadata::CATALOGUE;
use crate::rows::{Layout, ResultWire};
use crate::settings::Settings;
use crate::{encode, many, split, write};

/// The error of a statement that cannot be prepared.
const NOT_PREPARABLE: u16 = 1295;

/// The error of a text that is not a statement.
const NOT_PARSED: u16 = 1064;

/// The first words of statements that tell of the server or of its tables.
const TELLING: &str = "show analyze check checksum repair optimize explain describe desc help cache";

/// The first words of statements that never have rows, but for MariaDB's RETURNING.
const SILENT: &str = "insert update delete replace create drop alter truncate rename set use begin start commit rollback \
                      savepoint release lock unlock grant revoke load";

/// Why a read over a client's connection is not split.
const ONE_CONNECTION: &str = "a client's connection is one connection: give the URL";

/// How many prepared queries a session keeps, and how long their texts are.
const KEPT: usize = 8;
const KEPT_TEXT: usize = 4096;

/// One connection to MySQL or MariaDB.
pub(crate) struct MySqlSession {
    pub(crate) connection: Connection,
    /// The snapshot of the read that this session has split.
    pub(crate) shared_snapshot: Option<Arc<split::SharedSnapshot>>,
    /// Whether a script has its statements in one transaction after another: its end sets that back.
    is_scripted: bool,
    /// Queries that are prepared, the last one last, and the connection's count of changes since.
    prepared: Vec<(String, Prepared)>,
    prepared_at: u64,
}

impl MySqlSession {
    pub(crate) fn open(target: &Target, deadline: &Deadline) -> Result<Self> {
        let settings = Arc::new(Settings::resolve(target)?);
        Connection::open(&settings, deadline).map(Self::over)
    }

    pub(crate) fn over(connection: Connection) -> Self {
        Self { connection, shared_snapshot: None, is_scripted: false, prepared: Vec::new(), prepared_at: 0 }
    }

    pub(crate) fn statement<'a>(&self, query: &'a Query) -> Result<Numbered<'a>> {
        let mut statement = positional(&dialect(self.connection.escapes()), &query.text, &query.params)?;
        if statement.values.is_empty() {
            return Ok(statement);
        }
        self.check_parameters(&statement.text)?;
        if self.connection.has_texts_alone() {
            let (zone, escapes) = (self.connection.zone(), self.connection.escapes());
            statement.text = inline(&statement.text, &statement.values, zone, escapes)?;
            statement.values.clear();
        }
        Ok(statement)
    }

    /// Refuses parameters that the server would cut without a word.
    pub(crate) fn check_parameters(&self, text: &str) -> Result<()> {
        if self.connection.is_mariadb() && binds_table_of_values(text, self.connection.escapes()) {
            let message = "MariaDB cuts parameters in VALUES (...) where that is a table: its columns have types before they are bound";
            return Err(Error::not_supported(message)
                .with_hint("write SELECT ? UNION ALL SELECT ? in place of VALUES (?), (?)"));
        }
        Ok(())
    }

    /// Sends `query`; its rows are next on the connection, where it has some.
    fn start(&mut self, query: &Query, options: &ReadOptions) -> Result<Started> {
        if options.any_statement {
            self.check_statement(&query.text)?;
        }
        let statement = self.statement(query)?;
        let has_no_values = statement.values.is_empty();
        // What has no rows needs no binary form of them.
        let has_no_rows = || options.any_statement && self.returns_nothing(&statement.text);
        let is_text = options.protocol == Protocol::Text || self.connection.has_texts_alone();
        if has_no_values && (is_text || has_no_rows()) {
            let started = self.start_text(&statement.text, options);
            return started.map_err(|error| self.several(error, &query.text));
        }
        let may_be_kept = has_no_values && is_keepable(&statement.text, self.connection.escapes());
        if may_be_kept && let Some(prepared) = self.take_kept(&statement.text) {
            let changes = self.connection.changes;
            let head = self.start_prepared(&prepared, &statement, options);
            let was_sent = self.connection.changes != changes;
            self.keep(statement.text.clone(), prepared, changes, head.is_ok());
            // What it was prepared as may be out of date.
            if head.is_ok() || was_sent {
                return head;
            }
        }
        match self.connection.prepare(&statement.text) {
            Ok(prepared) => {
                // Such a statement tells its columns when it runs, and no earlier.
                let is_telling = prepared.columns.is_empty()
                    && starts_with(&statement.text, self.connection.escapes(), TELLING);
                if is_telling && has_no_values {
                    self.connection.close(prepared.id);
                    return self.start_text(&statement.text, options);
                }
                let changes = self.connection.changes;
                let head = self.start_prepared(&prepared, &statement, options);
                let is_kept = may_be_kept && !prepared.columns.is_empty() && head.is_ok();
                self.keep(statement.text, prepared, changes, is_kept);
                head
            }
            Err(error) if message::code(&error) == Some(NOT_PREPARABLE) && has_no_values => {
                self.start_text(&statement.text, options)
            }
            Err(error) => Err(self.several(error, &query.text)),
        }
    }

    /// The kept query of this text, if nothing may have changed its meaning since it was prepared. A table that is altered is
    /// the server's to see.
    fn take_kept(&mut self, text: &str) -> Option<Prepared> {
        if self.connection.changes != self.prepared_at {
            for (_, prepared) in self.prepared.drain(..) {
                self.connection.close(prepared.id);
            }
        }
        let at = self.prepared.iter().position(|(own, _)| own == text)?;
        Some(self.prepared.remove(at).1)
    }

    /// Keeps a query that has been sent where there were so many `changes`, or has the server forget it.
    fn keep(&mut self, text: String, prepared: Prepared, changes: u64, is_kept: bool) {
        if !is_kept {
            return self.connection.close(prepared.id);
        }
        // A query changes nothing.
        (self.connection.changes, self.prepared_at) = (changes, changes);
        self.prepared.push((text, prepared));
        if self.prepared.len() > KEPT {
            let (_, oldest) = self.prepared.remove(0);
            self.connection.close(oldest.id);
        }
    }

    /// Begins or ends a transaction, which changes nothing for the text of a statement.
    fn run_transaction(&mut self, statement: &str) -> Result<()> {
        let changes = self.connection.changes;
        self.run_or_stop(statement)?;
        self.connection.changes = changes;
        Ok(())
    }

    fn start_text(&mut self, text: &str, options: &ReadOptions) -> Result<Started> {
        self.connection.query(text)?;
        self.result_head(text, Format::Text, options)
    }

    fn start_prepared(
        &mut self,
        prepared: &Prepared,
        statement: &Numbered<'_>,
        options: &ReadOptions,
    ) -> Result<Started> {
        let bound = self.bound(prepared, &statement.values)?;
        let may_be_without = options.any_statement || self.tells_columns_late(&statement.text);
        if prepared.columns.is_empty() && !may_be_without {
            return Err(no_result("was not run"));
        }
        // What cannot be read is found before it is run.
        columns::plan(&prepared.columns, &statement.text, self.connection.zone(), Format::Binary, options)?;
        self.connection.execute(prepared.id, &bound)?;
        self.result_head(&statement.text, Format::Binary, options)
    }

    /// Whether a statement that was prepared without columns may have some when it runs: a procedure's, or those of
    /// MariaDB's RETURNING.
    fn tells_columns_late(&self, text: &str) -> bool {
        let escapes = self.connection.escapes();
        starts_with(text, escapes, "call execute") || self.is_returning(text)
    }

    /// Whether a statement is of a kind that never has rows.
    fn returns_nothing(&self, text: &str) -> bool {
        starts_with(text, self.connection.escapes(), SILENT) && !self.is_returning(text)
    }

    /// Whether `text` writes rows of MariaDB and returns some, of which preparing it tells nothing.
    fn is_returning(&self, text: &str) -> bool {
        let escapes = self.connection.escapes();
        // The word is reserved there: without quotes it names nothing else.
        self.connection.is_mariadb()
            && starts_with(text, escapes, "insert replace delete update with")
            && tokens(text, escapes).iter().any(|token| token.is_word("returning"))
    }

    pub(crate) fn bound(&self, prepared: &Prepared, values: &[&Value]) -> Result<Vec<u8>> {
        encode::check_count(prepared.parameters, values.len())?;
        encode::parameters(values, self.connection.zone())
    }

    fn result_head(&mut self, text: &str, format: Format, options: &ReadOptions) -> Result<Started> {
        let columns = match self.connection.columns_or_end()? {
            Ok(columns) => columns,
            Err(end) if options.any_statement => return Ok(Started::Done(effect(&end))),
            Err(_) => return Err(no_result("was run")),
        };
        let plans = columns::plan(&columns, text, self.connection.zone(), format, options)?;
        let context = Context::new(options, self.connection.zone());
        let read = plans.iter().map(|plan| plan.read(format, &context)).collect::<Result<_>>()?;
        let widths = plans.iter().map(|plan| plan.native.class.width()).collect();
        let schema = Schema::new(plans.into_iter().map(|plan| plan.field).collect::<Vec<_>>());
        let (schema, layout) = (Arc::new(schema), Layout::new(format, widths));
        Ok(Started::Rows(ResultHead { schema, columns: read, layout }))
    }

    /// After a failure, has the server wait for the next statement, if that can still be had.
    fn or_stop<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.connection.stop();
        }
        outcome
    }

    fn run_or_stop(&mut self, statement: &str) -> Result<()> {
        let ran = self.connection.run(statement);
        self.or_stop(ran)
    }

    /// Has each statement be a transaction of its own again, where a script has ended that. Nothing is open.
    fn end_script(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_scripted) {
            return Ok(());
        }
        self.run_or_stop("SET autocommit = 1")
    }

    /// Refuses values that the caller's own statement may change without a word.
    fn check_statement(&self, text: &str) -> Result<()> {
        let tracks = self.connection.capabilities() & capability::SESSION_TRACK != 0;
        if !tracks && text.to_ascii_lowercase().contains("time_zone") {
            return Err(Error::not_supported("this server does not tell when its time_zone changes")
                .with_hint("give the time zone in the URL: time-zone=+02:00"));
        }
        if self.connection.is_clients() && sets_charset(text, self.connection.escapes()) {
            return Err(Error::not_supported("the client's session would have another character set")
                .with_hint("leave it at utf8mb4: texts would arrive changed"));
        }
        Ok(())
    }

    fn run_bound(&mut self, query: &Query) -> Result<Option<u64>> {
        self.check_statement(&query.text)?;
        let statement = self.statement(query)?;
        if statement.values.is_empty() {
            self.connection.query(&statement.text)?;
            return self.connection.finish().map(Some).map_err(|error| self.several(error, &query.text));
        }
        let prepared =
            self.connection.prepare(&statement.text).map_err(|error| self.several(error, &query.text))?;
        let sent = self
            .bound(&prepared, &statement.values)
            .and_then(|bound| self.connection.execute(prepared.id, &bound));
        self.connection.close(prepared.id);
        sent?;
        self.connection.finish().map(Some)
    }

    /// The server's syntax error with what to do, where it may be that of a text of several statements.
    pub(crate) fn several(&self, error: Error, text: &str) -> Error {
        let tokens = tokens(text, self.connection.escapes());
        let ends = tokens.iter().position(|token| token.is_mark(";"));
        let goes_on = ends.is_some_and(|end| end + 1 < tokens.len());
        if goes_on && message::code(&error) == Some(NOT_PARSED) { error.with_hint(SEVERAL) } else { error }
    }

    /// The columns of `query`, which is not run.
    pub(crate) fn definitions(&mut self, query: &Query) -> Result<Vec<Definition>> {
        let statement = self.statement(query)?;
        if self.connection.has_texts_alone() {
            return self.definitions_without_rows(&statement.text);
        }
        let prepared = self.connection.prepare(&statement.text)?;
        self.connection.close(prepared.id);
        if !prepared.columns.is_empty() {
            return Ok(prepared.columns);
        }
        if self.is_returning(&statement.text) {
            return Err(Error::not_supported(
                "MariaDB tells what RETURNING returns only when the statement runs, and it was not run",
            )
            .with_hint("read_sql without parts runs it"));
        }
        Err(no_result("was not run"))
    }

    /// The columns of a query where nothing can be prepared: those of the same query without a row.
    fn definitions_without_rows(&mut self, text: &str) -> Result<Vec<Definition>> {
        let escapes = self.connection.escapes();
        let tokens = tokens(text, escapes);
        let end = tokens.iter().rev().find(|token| !token.is_mark(";")).map_or(0, Token::end);
        if !starts_with(text, escapes, "select with values table") {
            let message =
                "this client tells the columns of such a statement only when it runs, and it was not run";
            return Err(Error::not_supported(message).with_hint("read_sql runs it; or give the URL"));
        }
        self.connection.query(&format!("({}\n) LIMIT 0", &text[..end]))?;
        let columns = self.connection.columns()?.unwrap_or_default();
        self.connection.finish()?;
        Ok(columns)
    }
}

/// A statement that has been sent.
enum Started {
    /// Its rows are next on the connection.
    Rows(ResultHead),
    /// It has none, and has run.
    Done(Done),
}

fn effect(end: &message::Done) -> Done {
    let last_row = (end.inserted > 0).then_some(end.inserted.into());
    Done { rows: Some(end.affected), last_row }
}

/// The rows that come next.
struct ResultHead {
    schema: SchemaRef,
    columns: Vec<ReadColumn>,
    layout: Layout,
}

fn no_result(what: &str) -> Error {
    Error::programming(format!("the statement returns no rows, and {what}")).with_hint(
        "read_sql takes statements with a result: SELECT, VALUES, SHOW, CALL, or INSERT ... RETURNING",
    )
}

/// Whether a query may run again as it was prepared: a variable may have another type then.
fn is_keepable(text: &str, escapes: bool) -> bool {
    text.len() <= KEPT_TEXT && !text.contains('@') && starts_with(text, escapes, "select with values table")
}

/// Whether a statement changes the session's character set, of which a client's connection is not told.
fn sets_charset(text: &str, escapes: bool) -> bool {
    let lower = text.to_ascii_lowercase();
    starts_with(text, escapes, "set")
        && ["names", "charset", "character"].iter().any(|word| lower.contains(word))
}

/// Whether the statement's first word is one of these, which are parted by spaces.
fn starts_with(text: &str, escapes: bool, words: &str) -> bool {
    tokens(text, escapes).first().is_some_and(|first| words.split(' ').any(|word| first.is_word(word)))
}

impl Session for MySqlSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        self.check_statement(statement)?;
        self.run_or_stop(statement)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let definitions = self.definitions(query);
        let columns = self.or_stop(definitions)?;
        let text = self.connection.has_texts_alone()
            || (options.protocol == Protocol::Text && query.params == Params::None);
        let format = if text { Format::Text } else { Format::Binary };
        let plans = columns::plan(&columns, &query.text, self.connection.zone(), format, options)?;
        let column = |plan: ColumnPlan| Column { native_type: plan.native.label, field: plan.field };
        Ok(plans.into_iter().map(column).collect())
    }

    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        let affected = self.run_bound(query);
        self.or_stop(affected)
    }

    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        let affected = self.check_statement(text).and_then(|()| many::execute_many(self, text, sets));
        self.or_stop(affected).map(Some)
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        match self.start(query, options) {
            Ok(Started::Done(done)) => Ok(Box::new(NoRows { done, session: self })),
            Ok(Started::Rows(ResultHead { schema, columns, layout })) => {
                let wire = ResultWire { session: *self, layout, warnings: options.warnings.clone() };
                Ok(Box::new(Rows::new(wire, Assembly::new(schema, columns, options), options)))
            }
            Err(error) => {
                let is_good = self.connection.stop();
                Err(Failed { error, session: is_good.then_some(self as Box<dyn Session>) })
            }
        }
    }

    fn statements(&self) -> TransactionStatements {
        TransactionStatements { begin: "START TRANSACTION".into(), ..TransactionStatements::default() }
    }

    fn begin(&mut self) -> Result<()> {
        self.run_transaction(&self.statements().begin)
    }

    fn commit(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        match self.transaction() {
            Transaction::None => self.end_script(),
            Transaction::Open => self.run_transaction("COMMIT").and_then(|()| self.end_script()),
            // The server would commit nothing without a word.
            Transaction::Failed => self.rollback().and(Err(not_committed("40000"))),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        if self.transaction() != Transaction::None {
            self.connection.forget_loss();
            self.run_transaction("ROLLBACK")?;
        }
        self.end_script()
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable()
    }

    fn transaction(&self) -> Transaction {
        self.connection.transaction()
    }

    fn reset(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        self.is_scripted = false;
        self.prepared.clear();
        let reset = self.connection.reset();
        self.or_stop(reset)
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.connection.set_deadline(deadline.clone());
    }

    fn begin_unsplit(&mut self) -> Result<()> {
        self.connection.begin_snapshot()
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        if self.connection.is_clients() { Err(ONE_CONNECTION.into()) } else { Ok(self) }
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        Err("the server tells how many there are, and not their types".into())
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        Some(CATALOGUE.clone())
    }

    fn qualified_name(&self, table: &TableName) -> String {
        dialect(self.connection.escapes()).qualified_name(table)
    }

    fn scripting(&mut self) -> Option<&mut dyn Scripting> {
        Some(self)
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Ok(self)
    }
}

impl Splitting for MySqlSession {
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        let plan = split::split(self, queries, split, options);
        self.or_stop(plan)
    }

    fn join_snapshot(&mut self, snapshot: &str, sessions: usize) -> Result<()> {
        let joined = split::join(self, snapshot, sessions);
        self.or_stop(joined)
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        let snapshot = self.connection.begin_snapshot();
        self.or_stop(snapshot)
    }

    fn is_setting(&self, statement: &str) -> bool {
        is_setting(statement)
    }

    fn estimate(&mut self, query: &Query) -> Result<Option<u64>> {
        let estimate = split::estimate(self, query);
        self.or_stop(estimate)
    }
}

impl Scripting for MySqlSession {
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()> {
        self.check_statement(script)?;
        // A statement that commits, such as CREATE TABLE, is followed by a transaction again.
        if begins && self.connection.commits_each() {
            self.run_or_stop("SET autocommit = 0")?;
            self.is_scripted = true;
        }
        // The server refuses an empty statement, such as what follows the last semicolon.
        let tokens = tokens(script, self.connection.escapes());
        let end = tokens.iter().rev().find(|token| !token.is_mark(";")).map(Token::end);
        let ran = end.map_or(Ok(()), |end| self.connection.script(&script[..end]));
        let ran = self.or_stop(ran);
        if self.is_usable() && self.transaction() == Transaction::None {
            self.end_script()?;
        }
        ran
    }
}

impl Loading for MySqlSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        write::begin(self, load)
    }

    fn begin_write(&mut self, load: &Load) -> Result<()> {
        if load.makes_table() { Ok(()) } else { self.begin() }
    }

    fn writes_alone(&self) -> Option<String> {
        None
    }

    fn stage(self: Box<Self>, load: &Load, _helper: &mut dyn Session) -> Result<Box<dyn Stage>, Failed> {
        write::begin_stage(self, load)
    }
}
