//! A session: describes and runs statements.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Done, Error, Failed, Load, Loading, NoRows, ParameterSets,
    Preparing, Query, ReadOptions, Result, SEVERAL, Scripting, Session, Sink, Split, SplitPlan, Splitting,
    Target, Transaction,
};

use crate::connection::{Connection, Origin, Statement};
use crate::decode::{Collector, Rows};
use crate::dialect::{first_word, is_one_table, is_setting, literal, quoted_name, rest_is_empty};
use crate::metadata::CATALOGUE;
use crate::settings::Settings;
use crate::types::{Facts, Plan, plan};
use crate::{encode, split};

/// One connection to a database.
pub(crate) struct SqliteSession {
    pub(crate) connection: Connection,
    pub(crate) settings: Settings,
    /// Whether the caller has set something that further sessions would not have.
    pub(crate) has_own_settings: bool,
}

impl SqliteSession {
    pub(crate) fn open(settings: Settings, deadline: &Deadline) -> Result<Self> {
        deadline.check()?;
        settings.check()?;
        let connection =
            Connection::open(&settings.open, deadline).map_err(|error| with_file_name(error, &settings))?;
        let mut session = Self { connection, settings, has_own_settings: false };
        let begun = session.begin_using();
        begun.map_err(|error| with_file_name(error, &session.settings))?;
        Ok(session)
    }

    /// Looks at the file for the first time, and sets what the URL says.
    fn begin_using(&mut self) -> Result<()> {
        for pragma in self.settings.pragmas.clone() {
            self.exec(&pragma)?;
        }
        self.exec("SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    /// Runs the statements of `text`, and throws their rows away.
    pub(crate) fn exec(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        loop {
            let (statement, after) = self.connection.prepare(rest)?;
            let Some(mut statement) = statement else { break };
            while statement.step()? {}
            rest = after;
        }
        if rest_is_empty(rest) { Ok(()) } else { Err(zero_byte()) }
    }

    /// The one statement of `query`, its parameters bound.
    pub(crate) fn prepare(&self, query: &Query) -> Result<Statement> {
        let (statement, rest) = self.connection.prepare(&query.text)?;
        let mut statement = statement.ok_or_else(|| {
            Error::programming("there is no statement in the text").with_hint("give one, such as SELECT 1")
        })?;
        if !rest_is_empty(rest) {
            return Err(if rest.starts_with('\0') {
                zero_byte()
            } else {
                Error::programming("there is more than one statement").with_hint(SEVERAL)
            });
        }
        encode::bind(&mut statement, &query.params)?;
        Ok(statement)
    }

    /// The results of `read` for each row of a query.
    pub(crate) fn query<T>(&self, text: &str, read: impl Fn(&Statement) -> T) -> Result<Vec<T>> {
        self.query_with(&Query::new(text), read)
    }

    /// The same for a query with parameters.
    pub(crate) fn query_with<T>(&self, query: &Query, read: impl Fn(&Statement) -> T) -> Result<Vec<T>> {
        let mut statement = self.prepare(query)?;
        let mut found = Vec::new();
        while statement.step()? {
            found.push(read(&statement));
        }
        Ok(found)
    }

    pub(crate) fn plans(
        &self,
        statement: &Statement,
        text: &str,
        options: &ReadOptions,
    ) -> Result<Vec<Plan>> {
        plan(self.facts(statement, text)?, options)
    }

    /// The facts of the columns of `statement`, whose text is `text`.
    pub(crate) fn facts(&self, statement: &Statement, text: &str) -> Result<Vec<Facts>> {
        if statement.columns() == 0 {
            return Err(Error::programming("the statement returns no rows, and was not run").with_hint(
                "read_sql takes statements with a result: SELECT, VALUES, PRAGMA, or INSERT ... RETURNING",
            ));
        }
        let is_plain = is_one_table(text);
        let mut tables = HashMap::new();
        let facts = (0..statement.columns()).map(|column| {
            let declared = statement.declared_type(column);
            let origin = statement.origin(column);
            let (not_null, is_enforced) = origin
                .and_then(|origin| self.guarantees(origin, declared.as_deref(), &mut tables))
                .unwrap_or_default();
            let nullable = !(is_plain && not_null);
            Facts { name: statement.name(column), nullable, is_enforced, declared }
        });
        Ok(facts.collect())
    }

    /// Whether a table's column is declared NOT NULL, and whether SQLite enforces its type, which is `declared`.
    fn guarantees(
        &self,
        Origin { schema, table, column }: Origin,
        declared: Option<&str>,
        tables: &mut HashMap<(CString, CString), TableFacts>,
    ) -> Option<(bool, bool)> {
        let (not_null, is_key) = self.connection.promises(&schema, &table, &column)?;
        let TableFacts { is_strict, rowid_keys } = *tables
            .entry((schema, table))
            .or_insert_with_key(|(schema, table)| self.table_facts(schema, table).unwrap_or_default());
        let is = |name: &str| declared.is_some_and(|declared| declared.eq_ignore_ascii_case(name));
        // The one INTEGER PRIMARY KEY of a table is its rowid, and nothing else fits there.
        Some((not_null, is_strict && !is("ANY") || is_key && rowid_keys == 1 && is("INTEGER")))
    }

    fn table_facts(&self, schema: &CStr, table: &CStr) -> Option<TableFacts> {
        let text = format!(
            "SELECT strict, wr, (SELECT count(*) FROM pragma_table_xinfo({1}, {0}) WHERE pk) \
             FROM pragma_table_list WHERE schema = {0} COLLATE NOCASE AND name = {1} COLLATE NOCASE AND type = 'table'",
            literal(schema.to_str().ok()?),
            literal(table.to_str().ok()?)
        );
        let facts = self.query(&text, |row| TableFacts {
            is_strict: row.is_true(0),
            // Without a rowid, an INTEGER PRIMARY KEY holds anything.
            rowid_keys: if row.is_true(1) { 0 } else { row.integer(2).unwrap_or_default() },
        });
        facts.ok()?.pop()
    }

    fn start(&mut self, query: &Query, options: &ReadOptions) -> Result<Started> {
        let mut statement = self.prepare(query)?;
        if options.any_statement {
            self.has_own_settings |= first_word(&query.text) == "PRAGMA";
            if statement.columns() == 0 {
                run(&mut statement)?;
                return Ok(Started::Done(self.effect(&statement, &query.text)));
            }
        }
        let plans = self.plans(&statement, &query.text, options)?;
        Ok(Started::Rows(statement, Collector::new(plans, options)?))
    }

    /// The effect of a statement without rows.
    fn effect(&self, statement: &Statement, text: &str) -> Done {
        let word = first_word(text);
        let is_new = matches!(word.as_str(), "INSERT" | "REPLACE");
        let is_change = is_new || matches!(word.as_str(), "UPDATE" | "DELETE" | "WITH");
        let counts = is_change && !statement.is_read_only();
        Done {
            rows: counts.then(|| self.connection.changes()),
            last_row: is_new.then(|| self.connection.last_row().into()),
        }
    }
}

/// A statement that is prepared.
enum Started {
    /// Its rows come step by step.
    Rows(Statement, Collector),
    /// It has none, and has run.
    Done(Done),
}

/// Runs a statement to its end, and counts its rows.
fn run(statement: &mut Statement) -> Result<u64> {
    let mut rows = 0;
    while statement.step()? {
        rows += 1;
    }
    Ok(rows)
}

/// The facts of a table.
#[derive(Clone, Copy, Default)]
struct TableFacts {
    is_strict: bool,
    /// Columns of the primary key, where that may be the rowid.
    rowid_keys: i64,
}

/// The error of a database that cannot be opened, with its name.
fn with_file_name(error: Error, settings: &Settings) -> Error {
    match &settings.file {
        Some(file) => {
            let is_unopened = error.message().contains("[SQLITE_CANTOPEN");
            let error = match is_unopened.then(|| settings.remedy()).flatten() {
                Some(remedy) => error.with_hint(remedy),
                None => error,
            };
            error.within(format!("{file:?}"))
        }
        None => error,
    }
}

fn zero_byte() -> Error {
    Error::programming("the statement has a zero byte in it, where SQLite would end it")
        .with_hint("bind the value as a parameter")
}

impl Session for SqliteSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        self.exec(statement)
    }

    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        let mut statement = self.prepare(query)?;
        self.has_own_settings |= first_word(&query.text) == "PRAGMA";
        let rows = run(&mut statement)?;
        Ok(match statement.columns() {
            0 => self.effect(&statement, &query.text).rows,
            _ => Some(rows),
        })
    }

    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        let (mut statement, mut rows): (Option<Statement>, _) = (None, Some(0));
        for sets in sets {
            for params in sets? {
                let mut ready = match statement.take() {
                    None => self.prepare(&Query { text: text.to_owned(), params })?,
                    Some(mut known) => {
                        known.reset();
                        encode::bind(&mut known, &params)?;
                        known
                    }
                };
                run(&mut ready)?;
                let changed = self.effect(&ready, text).rows;
                rows = rows.zip(changed).map(|(rows, changed)| rows + changed);
                statement = Some(ready);
            }
        }
        Ok(rows)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let statement = self.prepare(query)?;
        Ok(self.plans(&statement, &query.text, options)?.iter().map(Plan::column).collect())
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        match self.start(query, options) {
            Ok(Started::Done(done)) => Ok(Box::new(NoRows { done, session: self })),
            Ok(Started::Rows(statement, collector)) => match Rows::start(*self, statement, collector) {
                Ok(rows) => Ok(Box::new(rows)),
                Err((session, error)) => Err(Failed { error, session: Some(Box::new(session)) }),
            },
            Err(error) => Err(Failed { error, session: Some(self) }),
        }
    }

    fn begins_for(&self, statement: &str) -> bool {
        // Within a transaction, `PRAGMA foreign_keys = ON` does nothing and says nothing, and VACUUM fails.
        !matches!(first_word(statement).as_str(), "ATTACH" | "BEGIN" | "DETACH" | "PRAGMA" | "VACUUM")
    }

    fn is_usable(&self) -> bool {
        self.connection.check_process().is_ok()
    }

    fn transaction(&self) -> Transaction {
        if self.connection.is_idle() { Transaction::None } else { Transaction::Open }
    }

    fn reset(&mut self) -> Result<()> {
        self.rollback()?;
        if self.settings.file.is_none() {
            return Ok(());
        }
        // SQLite has no statement that forgets all settings and temporary tables: a new connection has none.
        let deadline = Deadline::never().at_most(self.settings.open.busy_timeout);
        *self = Self::open(self.settings.clone(), &deadline)?;
        Ok(())
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.connection.set_deadline(deadline);
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        Ok(self)
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        Err("a parameter of SQLite takes a value of any type".into())
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

impl Splitting for SqliteSession {
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        split::split(self, queries, split, options)
    }

    fn join_snapshot(&mut self, snapshot: &str, _sessions: usize) -> Result<()> {
        split::join(self, snapshot)
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.exec("BEGIN")?;
        // The snapshot is that of the first read.
        self.exec("SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    fn begin_reading(&mut self, query: &Query) -> Result<()> {
        if self.settings.file.is_none() {
            return Err(Error::not_supported(
                "a database in memory has no connections to read partitions over",
            ));
        }
        self.exec("PRAGMA query_only = ON")?;
        self.begin_snapshot(std::slice::from_ref(query))
    }

    fn is_setting(&self, statement: &str) -> bool {
        is_setting(statement)
    }
}

impl Scripting for SqliteSession {
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()> {
        let (mut rest, mut number) = (script, 1);
        while !rest.is_empty() {
            let in_place = |error: Error| error.within(format!("statement {number}"));
            let (statement, after) = self.connection.prepare(rest).map_err(in_place)?;
            if let Some(mut statement) = statement {
                let text = &rest[..rest.len() - after.len()];
                self.has_own_settings |= first_word(text) == "PRAGMA";
                if begins && self.connection.is_idle() && self.begins_for(text) {
                    self.begin()?;
                }
                while statement.step().map_err(in_place)? {}
                number += 1;
            } else if after.starts_with('\0') {
                return Err(zero_byte());
            } else if after.len() == rest.len() {
                break;
            }
            rest = after;
        }
        Ok(())
    }
}

impl Loading for SqliteSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        crate::write::write(self, load)
    }

    fn writes_alone(&self) -> Option<String> {
        Some("SQLite lets one connection write at a time".into())
    }
}

/// One database of a connection: `main`, `temp`, or one that is attached.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// The CREATE statements of its tables and views, in their order.
    pub statements: Vec<String>,
}

/// The facts of the columns of `query`, by preparing it where the same tables are, without their rows. Fails where
/// something is not there, such as a function of the connection's own.
pub fn describe_in_copy(databases: &[Database], query: &str) -> Result<Vec<Facts>> {
    let target = Target::from_url("sqlite://")?;
    let mut session = SqliteSession::open(Settings::of(&target)?, &Deadline::never())?;
    // Attached ones first: a view of another database may name them.
    for Database { name, .. } in databases {
        if matches!(name.as_str(), "main" | "temp") {
            continue;
        }
        session.exec(&format!("ATTACH ':memory:' AS {}", quoted_name(name)))?;
    }
    for Database { name, statements } in databases {
        for statement in statements {
            // A virtual table of a module that is not here leaves a hole, which only a query that needs it falls into.
            if let Some(statement) = within(statement, name) {
                let _ = session.exec(&statement);
            }
        }
    }
    let (statement, _) = session.connection.prepare(&Query::new(query).text)?;
    match statement {
        Some(statement) => session.facts(&statement, query),
        None => Ok(Vec::new()),
    }
}

/// The CREATE statement in the database `name`: `sqlite_schema` keeps it as `CREATE TABLE name ...`, whatever database it is
/// in.
fn within(statement: &str, name: &str) -> Option<String> {
    let kinds = ["CREATE TABLE ", "CREATE VIEW ", "CREATE VIRTUAL TABLE "];
    let kind = kinds.into_iter().find(|kind| statement.starts_with(kind))?;
    Some(format!("{kind}{}.{}", quoted_name(name), &statement[kind.len()..]))
}
