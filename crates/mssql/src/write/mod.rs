//! Rows into a table, in one transaction, which is all that has to be undone: tables are part of it.
//!
//! See `docs/design/mssql.md`.

mod bulk;
mod encode;
mod table;

use longshore_core::{Error, Failed, IfExists, Load, Result, Sink, Transaction};
use longshore_source::staging::{self as kit, Expected, Scope, Step, Undo, UndoLog, Writer};

use crate::session::MsSqlSession;
use bulk::Loader;
use encode::Encoder;
use table::{Column, NAMING, Table};

/// The table that an upsert's rows go into first: one of the session's own.
const STAGING: &str = "#longshore_rows";

pub(crate) fn begin(session: Box<MsSqlSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    kit::open(session, |session, log| start(session, load, log))
}

fn start(session: &mut MsSqlSession, load: &Load, log: &mut UndoLog) -> Result<(Loader, Vec<Step>)> {
    log.begin(session, "BEGIN TRANSACTION")?;
    let table = match load.if_exists {
        IfExists::Fail | IfExists::Replace => table::create(&mut session.connection, load)?,
        IfExists::Truncate => table::empty(&mut session.connection, &load.table)?,
        IfExists::Append | IfExists::Upsert => Table::expect(&mut session.connection, &load.table)?,
    };
    let all = table.columns(&mut session.connection)?;
    let columns: Vec<Column> = NAMING.mapping(load, &load.table, &all)?.into_iter().cloned().collect();
    let is_upsert = load.if_exists == IfExists::Upsert;
    let encoders = load.schema.fields().iter().zip(&columns).map(|(field, column)| {
        Encoder::new(field, column, is_upsert && load.key.contains(field.name()), load)
    });
    let encoders = encoders.collect::<Result<Vec<_>>>()?;
    let numbered = columns.iter().any(|column| column.described.is_identity);
    if !is_upsert {
        return Ok((Loader::new(table.quoted, &columns, encoders, load, numbered), vec![Step::Commit]));
    }
    NAMING.check_key(load, &load.table, &table.keys(&mut session.connection)?)?;
    let names = NAMING.list(columns.iter().map(|column| &column.described.name));
    // A union's columns number nothing.
    let empty = format!("SELECT TOP (0) {names} FROM {}", table.quoted);
    session.perform(&format!("DROP TABLE IF EXISTS {STAGING}"))?;
    session
        .perform(&format!("SELECT * INTO {STAGING} FROM ({empty} UNION ALL {empty}) AS longshore_empty"))?;
    let merge = merge(&table.quoted, &columns, load);
    let expected = if columns.len() > load.key.len() { Expected::All } else { Expected::Any };
    let mut steps = Vec::new();
    if numbered {
        steps.push(Step::Run(format!("SET IDENTITY_INSERT {} ON", table.quoted)));
    }
    steps.push(Step::Move(merge, expected));
    if numbered {
        steps.push(Step::Run(format!("SET IDENTITY_INSERT {} OFF", table.quoted)));
    }
    steps.extend([Step::Run(format!("DROP TABLE {STAGING}")), Step::Commit]);
    Ok((Loader::new(STAGING.to_owned(), &columns, encoders, load, false), steps))
}

/// The statement that brings the staged rows home. Without its hint, two at once could both find no row of a key.
fn merge(table: &str, columns: &[Column], load: &Load) -> String {
    let pairs = load.schema.fields().iter().zip(columns);
    let names = |wanted: bool| {
        let found = pairs.clone().filter(move |(field, _)| load.key.contains(field.name()) == wanted);
        found.map(|(_, column)| NAMING.dialect.quoted_name(&column.described.name)).collect::<Vec<_>>()
    };
    let (keys, others) = (names(true), names(false));
    let all = NAMING.list(columns.iter().map(|column| &column.described.name));
    let values: Vec<String> = columns
        .iter()
        .map(|column| format!("source.{}", NAMING.dialect.quoted_name(&column.described.name)))
        .collect();
    let on: Vec<String> = keys.iter().map(|key| format!("target.{key} = source.{key}")).collect();
    let sets: Vec<String> = others.iter().map(|name| format!("{name} = source.{name}")).collect();
    let update = if sets.is_empty() {
        String::new()
    } else {
        format!(" WHEN MATCHED THEN UPDATE SET {}", sets.join(", "))
    };
    format!(
        "MERGE {table} WITH (HOLDLOCK) AS target USING {STAGING} AS source ON {}{update} WHEN NOT MATCHED THEN \
         INSERT ({all}) VALUES ({});",
        on.join(" AND "),
        values.join(", ")
    )
}

impl Writer for MsSqlSession {
    fn perform(&mut self, statement: &str) -> Result<()> {
        // The standard's words for savepoints, which the server has others for.
        self.connection.run(match statement {
            "SAVEPOINT longshore_write" => "SAVE TRANSACTION longshore_write",
            "ROLLBACK TO SAVEPOINT longshore_write" => "ROLLBACK TRANSACTION longshore_write",
            "RELEASE SAVEPOINT longshore_write" => return Ok(()),
            "COMMIT" => "COMMIT TRANSACTION",
            "ROLLBACK" => "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION",
            other => other,
        })
    }

    fn move_rows(&mut self, statement: &str, expected: &Expected, rows: u64) -> Result<()> {
        let moved = self.connection.execute(statement, Vec::new())?;
        match (expected, moved) {
            (Expected::All, Some(moved)) if moved != rows => {
                Err(Error::operational(format!("{moved} of {rows} rows have arrived in the table"))
                    .with_hint("a trigger of the table may keep some out"))
            }
            _ => Ok(()),
        }
    }

    fn undo(&mut self, scope: Option<Scope>, undo: &[Undo], is_hurried: bool) -> bool {
        let waiting = is_hurried.then(|| self.connection.hurry());
        let is_good = self.connection.stop() && self.roll_back(scope).is_ok() && {
            let failures = undo.iter().filter(|undo| self.perform(&undo.statement).is_err()).count();
            failures == 0
        };
        if let Some(deadline) = waiting {
            self.connection.set_deadline(&deadline);
        }
        is_good && self.connection.is_usable()
    }
}

impl MsSqlSession {
    fn roll_back(&mut self, scope: Option<Scope>) -> Result<()> {
        match scope {
            None => Ok(()),
            // The caller is told of the loss.
            Some(Scope::Savepoint) if self.connection.transaction() != Transaction::Open => Ok(()),
            Some(scope) => {
                if scope == Scope::Transaction {
                    self.connection.forget_loss();
                }
                scope.rollback().iter().try_for_each(|statement| self.perform(statement))
            }
        }
    }
}
