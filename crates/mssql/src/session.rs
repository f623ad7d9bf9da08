//! A session: describes and runs statements.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Done, Error, Failed, Load, Loading, NoRows, Query,
    ReadOptions, Result, Scripting, Session, Sink, Splitting, Target, Transaction, TransactionStatements,
    native_field, not_committed,
};
use longshore_source::rows::Rows;
use longshore_values::{Assembly, ReadColumn};
use mssql_tds::connection::tds_client::StatementResult;

use crate::connection::Connection;
use crate::decode::decoder;
use crate::describe::describe;
use crate::dialect::{DIALECT, bind, is_plain};
use crate::encode::parameters;
use crate::metadata::CATALOGUE;
use crate::rows::ResultWire;
use crate::settings::Settings;
use crate::split::SharedSnapshot;
use crate::types::{Described, Type};
use crate::write;

/// One connection to SQL Server.
pub(crate) struct MsSqlSession {
    pub(crate) connection: Connection,
    pub(crate) settings: Arc<Settings>,
    /// The snapshot of the read that this session has split.
    pub(crate) shared_snapshot: Option<Arc<SharedSnapshot>>,
    /// Whether transactions see snapshots, until this one ends.
    pub(crate) is_isolated: bool,
}

impl MsSqlSession {
    pub(crate) fn open(target: &Target, deadline: &Deadline) -> Result<Self> {
        let settings = Arc::new(Settings::resolve(target)?);
        let connection = Connection::open(&settings, deadline)?;
        Ok(Self { connection, settings, shared_snapshot: None, is_isolated: false })
    }

    /// Sends `query`; its first rows are next on the connection, where it has some.
    fn start(&mut self, query: &Query, options: &ReadOptions) -> Result<Started> {
        let bound = bind(&query.text, &query.params)?;
        let parameters = parameters(&bound)?;
        let mut found = self.connection.send(&bound.text, parameters)?;
        let mut rows = None;
        loop {
            match found {
                StatementResult::Rows => break,
                StatementResult::NoRows { rows_affected } => {
                    rows = rows_affected.map(|count| rows.unwrap_or_default() + count).or(rows);
                }
                StatementResult::End if options.any_statement => {
                    return Ok(Started::Done(Done { rows, last_row: None }));
                }
                StatementResult::End => return Err(no_result("was run")),
            }
            found = self.connection.advance()?;
        }
        let columns = self.connection.columns();
        let plans = plan(&columns, &query.text, options)?;
        let read = plans.iter().map(|plan| plan.read(options)).collect::<Result<_>>()?;
        let variants = plans.iter().map(|plan| plan.native.is_variant()).collect();
        let schema = Arc::new(Schema::new(plans.into_iter().map(|plan| plan.field).collect::<Vec<_>>()));
        Ok(Started::Rows { assembly: Box::new(Assembly::new(schema, read, options)), variants })
    }

    /// Has transactions be as they were before one that saw a snapshot.
    fn end_isolation(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_isolated) {
            return Ok(());
        }
        self.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    }

    /// After a failure, has the server wait for the next statement, if that can still be had.
    pub(crate) fn or_stop<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.connection.stop();
        }
        outcome
    }
}

/// A statement that has been sent.
enum Started {
    /// Its rows are next on the connection.
    Rows { assembly: Box<Assembly>, variants: Vec<bool> },
    /// It has none, and has run.
    Done(Done),
}

/// A column of a result, as it will be read.
struct ColumnPlan {
    native: Type,
    field: Field,
}

impl ColumnPlan {
    fn of(column: &Described, is_plain: bool, options: &ReadOptions) -> Result<Self> {
        let native = Type::of(column)?;
        let default = native.field(&column.name, column.nullable || !is_plain, options);
        let field = match options.wanted_type(&column.name) {
            Some(wanted) if wanted != default.data_type() => {
                native_field(&column.name, wanted.clone(), default.is_nullable(), &native.label, None)
            }
            _ => default,
        };
        Ok(Self { native, field })
    }

    fn read(&self, options: &ReadOptions) -> Result<ReadColumn> {
        let decoder = decoder(self.field.name(), &self.native, self.field.data_type(), options)?;
        Ok(ReadColumn {
            native_type: self.native.label.clone(),
            nullable: self.field.is_nullable() || may_turn_null(self.field.data_type(), options),
            decoder,
        })
    }
}

/// Whether the caller's options turn some values of a type into NULL.
fn may_turn_null(arrow: &DataType, options: &ReadOptions) -> bool {
    matches!(arrow, DataType::Timestamp(..)) && options.infinity == longshore_core::Unrepresentable::Null
}

fn plan(columns: &[Described], text: &str, options: &ReadOptions) -> Result<Vec<ColumnPlan>> {
    options.check_names(columns.iter().map(|column| column.name.as_str()))?;
    // A column of a table whose rows are handed on: another's promise may be wrong.
    let is_plain = columns.iter().any(|column| !column.nullable) && is_plain(text);
    columns.iter().map(|column| ColumnPlan::of(column, is_plain, options)).collect()
}

#[cold]
pub(crate) fn no_result(what: &str) -> Error {
    Error::programming(format!("the statement returns no rows, and {what}"))
        .with_hint("read_sql takes statements with a result: SELECT, EXEC, or INSERT ... OUTPUT")
}

impl Session for MsSqlSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        let ran = self.connection.run(statement);
        self.or_stop(ran)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let columns = describe(&mut self.connection, query);
        let plans = plan(&self.or_stop(columns)?, &query.text, options)?;
        plans.iter().try_for_each(|plan| plan.read(options).map(drop))?;
        Ok(plans
            .into_iter()
            .map(|plan| Column { native_type: plan.native.label, field: plan.field })
            .collect())
    }

    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        let bound = bind(&query.text, &query.params)?;
        let parameters = parameters(&bound)?;
        let changed = self.connection.execute(&bound.text, parameters);
        self.or_stop(changed)
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        match self.start(query, options) {
            Ok(Started::Done(done)) => Ok(Box::new(NoRows { done, session: self })),
            Ok(Started::Rows { assembly, variants }) => {
                Ok(Box::new(Rows::new(ResultWire::new(*self, variants), *assembly, options)))
            }
            Err(error) => {
                let is_good = self.connection.stop();
                Err(Failed { error, session: is_good.then_some(self as Box<dyn Session>) })
            }
        }
    }

    fn statements(&self) -> TransactionStatements {
        TransactionStatements {
            begin: "BEGIN TRANSACTION".into(),
            commit: "COMMIT TRANSACTION".into(),
            rollback: "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION".into(),
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        match self.transaction() {
            Transaction::None => self.end_isolation(),
            Transaction::Open => self.run("COMMIT TRANSACTION").and_then(|()| self.end_isolation()),
            // The server would commit nothing without a word.
            Transaction::Failed => self.rollback().and(Err(not_committed("40000"))),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        if self.transaction() != Transaction::None {
            self.connection.forget_loss();
            self.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")?;
        }
        self.end_isolation()
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable()
    }

    fn transaction(&self) -> Transaction {
        self.connection.transaction()
    }

    fn reset(&mut self) -> Result<()> {
        self.shared_snapshot = None;
        self.is_isolated = false;
        self.connection.reset()
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.connection.set_deadline(deadline);
    }

    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
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

impl Loading for MsSqlSession {
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
        write::begin(self, load)
    }
}

impl Scripting for MsSqlSession {
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()> {
        if begins && self.transaction() == Transaction::None {
            self.begin()?;
        }
        let mut ran = Ok(());
        for (index, batch) in batches(script).into_iter().enumerate() {
            ran =
                self.run(&batch).map_err(|error| error.within(format!("batch {} of the script", index + 1)));
            if ran.is_err() {
                break;
            }
        }
        ran
    }
}

/// The batches of a script, which lines with GO alone part, as Microsoft's own shells have it.
fn batches(script: &str) -> Vec<String> {
    let is_end = |line: &&str| line.trim().eq_ignore_ascii_case("go");
    // A line with GO in a text or a comment is none.
    let inner: Vec<(usize, usize)> = DIALECT
        .scan(script)
        .iter()
        .filter(|token| token.text.contains('\n') && token.text.trim() != "")
        .map(|token| (token.start, token.end()))
        .collect();
    let (mut found, mut batch, mut at) = (Vec::new(), String::new(), 0);
    for line in script.split_inclusive('\n') {
        let is_within = inner.iter().any(|(start, end)| (*start..*end).contains(&at) && at > *start);
        if !is_within && is_end(&line) {
            found.push(std::mem::take(&mut batch));
        } else {
            batch.push_str(line);
        }
        at += line.len();
    }
    found.push(batch);
    found.retain(|batch| !DIALECT.tokens(batch).is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_go_part_a_script() {
        let script =
            "CREATE TABLE t (a int)\nGO\nINSERT t VALUES ('\nGO\n')\n go \n-- end\n/*\nGO\n*/ SELECT 1";
        let expected =
            ["CREATE TABLE t (a int)\n", "INSERT t VALUES ('\nGO\n')\n", "-- end\n/*\nGO\n*/ SELECT 1"];
        assert_eq!(batches(script), expected);
        assert!(batches("GO\n\nGO").is_empty());
    }
}
