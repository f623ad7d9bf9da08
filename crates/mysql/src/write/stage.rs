//! Rows that several sessions load into a table beside the target, and how they get home.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{Error, Failed, IfExists, Kind, Load, Result, Session, Stage, TableName, Transaction};

use super::beside::Beside;
use super::encode::Encoder;
use super::server::Server;
use super::target::{self, Column, Name};
use super::{Begun, Undo, check_cascades, matching, newcomer, upsert, warnings};
use crate::connection::Connection;
use crate::dialect::quoted_name;
use crate::session::MySqlSession;

/// A write of several sessions on its way.
struct LoadStage {
    /// Gone at its end.
    session: Option<MySqlSession>,
    /// What each of the others writes.
    load: Load,
    beside: Beside,
    /// What brings the rows home, where the table beside does not become the target.
    moves: Option<Moves>,
    undo: Undo,
}

/// The statements that bring rows home, in one transaction.
struct Moves {
    before: Option<String>,
    insert: String,
    /// Whether each row is added, and counted.
    is_counted: bool,
}

/// Makes the table beside the target.
pub(crate) fn begin(mut session: MySqlSession, load: &Load) -> Result<Box<dyn Stage>, Failed> {
    let mut undo = Undo::default();
    match start(&mut session.connection, load, &mut undo) {
        Ok((load, beside, moves)) => {
            Ok(Box::new(LoadStage { session: Some(session), load, beside, moves, undo }))
        }
        Err(error) => {
            undo.note(&error);
            let is_good = undo.all(&mut session.connection);
            Err(Failed { error, session: is_good.then(|| Box::new(session) as Box<dyn Session>) })
        }
    }
}

fn start(connection: &mut Connection, load: &Load, undo: &mut Undo) -> Result<(Load, Beside, Option<Moves>)> {
    if connection.transaction() != Transaction::None {
        return Err(Error::internal("a write of several sessions begins in a transaction"));
    }
    let server = Server::begin(connection)?;
    undo.server = Some(server.clone());
    let name = Name::resolve(connection, &load.table)?;
    Beside::clear(connection, &name)?;
    let beside = Beside::claim(connection, &name)?;
    undo.beside = Some(beside.clone());
    if load.makes_table() {
        newcomer(connection, load, &name, &server, undo)?;
        return Ok((others(load, &[], &beside), beside, None));
    }
    let existing = target::existing(connection, &name)?;
    target::check(&name, existing.as_ref())?;
    if load.if_exists == IfExists::Truncate {
        check_cascades(connection, &name)?;
    }
    let columns = target::columns(connection, &name)?;
    let encoders = matching::encoders(load, &name, &columns, connection.zone().offset())?;
    if load.if_exists == IfExists::Upsert {
        upsert::check_key(connection, load, &name, &encoders, &columns)?;
    }
    let (moves, numbers) = moves(load, &name, &beside, &encoders);
    make(connection, &beside, &encoders, numbers.as_ref())?;
    Ok((others(load, numbers.as_slice(), &beside), beside, Some(moves)))
}

/// What brings the rows home, and the column that has their numbers, where their order counts.
fn moves(load: &Load, target: &Name, beside: &Beside, encoders: &[Encoder]) -> (Moves, Option<Field>) {
    if load.if_exists == IfExists::Upsert {
        let numbers = Field::new(numbers(encoders), DataType::Int64, false);
        let insert = upsert::merge(target, &beside.name, encoders, &quoted_name(numbers.name()));
        return (Moves { before: None, insert, is_counted: false }, Some(numbers));
    }
    let names: Vec<String> = encoders.iter().map(|it| quoted_name(&it.column.name)).collect();
    let (target, names) = (target.quoted(), names.join(", "));
    // TRUNCATE would commit.
    let before = (load.if_exists == IfExists::Truncate).then(|| format!("DELETE FROM {target}"));
    let insert = format!("INSERT INTO {target} ({names}) SELECT {names} FROM {}", beside.name.quoted());
    (Moves { before, insert, is_counted: true }, None)
}

/// A name for the rows' numbers that no column of the data has.
fn numbers(encoders: &[Encoder]) -> String {
    let mut name = upsert::ORDER.to_owned();
    while encoders.iter().any(|it| it.column.name.eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    name
}

/// Makes a table of the target's columns that the data has, and of the rows' numbers.
fn make(
    connection: &mut Connection,
    beside: &Beside,
    encoders: &[Encoder],
    numbers: Option<&Field>,
) -> Result<()> {
    let columns = encoders.iter().map(|encoder| definition(&encoder.column));
    let numbers = numbers.map(|it| format!("{} BIGINT NOT NULL PRIMARY KEY", quoted_name(it.name())));
    let lines: Vec<String> = columns.chain(numbers).collect();
    connection.run(&format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB{}",
        beside.name.quoted(),
        lines.join(", "),
        beside.comment()
    ))
}

/// As the target has it, with NULL where that may be: what is refused is refused with its row.
fn definition(column: &Column) -> String {
    if column.nullable {
        return upsert::definition(column);
    }
    let collation = column.collation.as_ref().map_or(String::new(), |it| format!(" COLLATE {it}"));
    // Without a default of its own, it would have the moment of each change, where the server is old.
    let default = if column.words.starts_with("timestamp") { " DEFAULT '2000-01-01 00:00:00'" } else { "" };
    format!("{} {}{collation} NOT NULL{default}", quoted_name(&column.name), column.words)
}

/// What each of the other sessions writes.
fn others(load: &Load, further: &[Field], beside: &Beside) -> Load {
    let Name { database, table } = beside.name.clone();
    let fields = load.schema.fields().iter().cloned().chain(further.iter().cloned().map(Arc::new));
    Load {
        table: TableName { schema: Some(database), table },
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        if_exists: IfExists::Append,
        ..load.clone()
    }
}

impl Moves {
    fn run(&self, connection: &mut Connection, rows: u64) -> Result<()> {
        if let Some(before) = &self.before {
            connection.run(before)?;
        }
        let done = connection.insert(self.insert.as_bytes())?;
        if done.warnings > 0
            && let Some(error) = warnings::first(connection)?
        {
            return Err(error);
        }
        if self.is_counted && done.affected != rows {
            let text = format!("{} of {rows} rows arrived ({})", done.affected, done.info);
            return Err(Error::new(Kind::Integrity, text)
                .with_hint("a unique index, a check or a trigger has kept the others out"));
        }
        Ok(())
    }
}

impl LoadStage {
    fn finish(&mut self, connection: &mut Connection, rows: u64) -> Result<()> {
        if let Some(moves) = &self.moves {
            connection.run("START TRANSACTION")?;
            self.undo.transaction = Begun::Transaction;
            moves.run(connection, rows)?;
            connection.run("COMMIT")?;
            self.undo.transaction = Begun::Nothing;
        }
        if let Some(newcomer) = &self.undo.newcomer {
            self.beside.unmark(connection)?;
            newcomer.swap(connection)?;
            newcomer.end(connection);
            self.undo.newcomer = None;
        }
        Ok(())
    }

    fn end(&mut self) -> Option<MySqlSession> {
        let mut session = self.session.take()?;
        self.undo.all(&mut session.connection).then_some(session)
    }
}

impl Stage for LoadStage {
    fn load(&self) -> &Load {
        &self.load
    }

    fn keep(&mut self) -> Result<()> {
        self.session.as_mut().map_or(Ok(()), |session| session.connection.run("DO 0"))
    }

    fn commit(mut self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        let Some(mut session) = self.session.take() else {
            return Err(Error::internal("a write without its session").into());
        };
        let finished = self.finish(&mut session.connection, rows);
        if let Err(error) = &finished {
            self.undo.note(error);
        }
        // After the rows only the table beside is left, and the settings.
        let is_good = self.undo.all(&mut session.connection);
        let session: Box<dyn Session> = Box::new(session);
        match finished {
            Ok(()) => Ok(session),
            Err(error) => Err(Failed { error, session: is_good.then_some(session) }),
        }
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end().map(|session| Box::new(session) as Box<dyn Session>)
    }

    fn undo(&self) -> String {
        self.beside.undo()
    }
}

impl Drop for LoadStage {
    fn drop(&mut self) {
        drop(self.end());
    }
}
