//! Rows on their way into a table, each bound and stepped.

mod affinity;
mod create;
mod encode;
mod replace;
mod target;
mod texts;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_cells::{Item, Items};
use longshore_core::{
    Error, Failed, IfExists, Kind, Load, Place, Result, Session, Sink, Transaction, Written,
};

use self::encode::Encoder;
use self::target::{Column, Table, chosen};
use crate::cell::Cell;
use crate::library::{Connection, Insert};
use crate::session::SqliteSession;
use crate::split::text::quoted_name;

/// The name of our part of a transaction that is the owner's.
const PART: &str = "longshore_write";

/// After so many rows the caller's watch is looked at: SQLite counts its own steps, however long the values are.
const BETWEEN_LOOKS: u64 = 64;

/// A write that has begun. Dropped, it closes its connection, which undoes all of it.
struct Writing {
    session: Box<SqliteSession>,
    /// Whether the transaction is the owner's.
    is_part: bool,
    insert: Insert,
    encoders: Vec<Encoder>,
    schema: SchemaRef,
    /// Whether a row may be there already, and then stays as it is.
    may_skip: bool,
    /// The rows that have come.
    rows: u64,
    /// The texts of the values of one row.
    texts: Vec<String>,
}

/// What is ready for the first row.
struct Prepared {
    insert: Insert,
    encoders: Vec<Encoder>,
    may_skip: bool,
}

pub(crate) fn write(mut session: Box<SqliteSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    let is_part = session.transaction() != Transaction::None;
    // A transaction that only reads at first cannot always become one that writes.
    let begun = session.tell(&if is_part { format!("SAVEPOINT {PART}") } else { "BEGIN IMMEDIATE".into() });
    if let Err(error) = begun {
        return Err(Failed { error, session: Some(session) });
    }
    match prepare(&mut session, load) {
        Ok(Prepared { insert, encoders, may_skip }) => {
            session.connection.hold(is_part);
            let texts = vec![String::new(); encoders.len()];
            let schema = load.schema.clone();
            Ok(Box::new(Writing { session, is_part, insert, encoders, schema, may_skip, rows: 0, texts }))
        }
        Err(error) => Err(undone(session, is_part, error)),
    }
}

fn prepare(session: &mut SqliteSession, load: &Load) -> Result<Prepared> {
    for field in load.schema.fields() {
        create::native(field)?;
    }
    let table = match load.if_exists {
        IfExists::Fail | IfExists::Replace => made(session, load)?,
        IfExists::Truncate => replace::emptied(session, &load.table)?,
        IfExists::Append | IfExists::Upsert => Table::expect(session, &load.table)?,
    };
    let all = table.columns(session)?;
    let is_upsert = load.if_exists == IfExists::Upsert;
    let keys = table.keys(session, &all)?;
    let columns = chosen(all, &table, load)?;
    let is_key = |name: &str| is_upsert && load.key.iter().any(|key| key == name);
    let names = load.schema.fields().iter().map(|field| field.name().as_str());
    let is_keys: Vec<bool> = names.clone().map(is_key).collect();
    if is_upsert {
        expect_key(&table, &keys, &columns, &is_keys)?;
    }
    let encoders = columns.iter().zip(names).zip(&is_keys);
    let encoders = encoders.map(|((column, name), is_key)| Encoder::new(column, name, *is_key)).collect();
    let (statement, _) = session.connection.prepare(&statement(&table, &columns, &is_keys))?;
    let statement = statement.ok_or_else(|| Error::internal("an INSERT is no statement"))?;
    let may_skip = is_upsert && is_keys.iter().all(|is_key| *is_key);
    Ok(Prepared { insert: Insert::new(statement), encoders, may_skip })
}

/// A new table, in the place of the one that is there or where there is none.
fn made(session: &mut SqliteSession, load: &Load) -> Result<Table> {
    let quoted = match Table::find(session, &load.table)? {
        Some(_) if load.if_exists == IfExists::Fail => {
            return Err(Error::programming(format!("table {} is there already", load.table))
                .with_hint("use if_exists=\"append\", \"replace\", \"truncate\" or \"upsert\""));
        }
        Some(table) => {
            replace::dropped(session, &table)?;
            table.quoted()
        }
        None => {
            let schema = load.table.schema.as_deref().unwrap_or("main");
            format!("{}.{}", quoted_name(schema), quoted_name(&load.table.table))
        }
    };
    session.tell(&create::statement(load, &quoted)?)?;
    Table::expect(session, &load.table)
}

/// Refuses a key by which a row could not be found, or more than one.
fn expect_key(table: &Table, keys: &[Vec<String>], columns: &[Column], is_keys: &[bool]) -> Result<()> {
    let key: Vec<&str> = columns
        .iter()
        .zip(is_keys)
        .filter(|(_, is_key)| **is_key)
        .map(|(column, _)| column.name.as_str())
        .collect();
    let is_key = |names: &Vec<String>| {
        names.len() == key.len() && names.iter().all(|name| key.contains(&name.as_str()))
    };
    if keys.iter().any(is_key) {
        return Ok(());
    }
    let known: Vec<String> = keys.iter().map(|names| names.join(", ")).collect();
    let hint = if known.is_empty() {
        "give the table a UNIQUE index over the key".to_owned()
    } else {
        format!(
            "give the table a UNIQUE index over the key; it has one over {}",
            known.join(" and one over ")
        )
    };
    Err(Error::programming(format!(
        "no primary key and no unique index of table {} is over {} alone",
        table.name,
        key.join(", ")
    ))
    .with_hint(hint))
}

/// The statement of each row. OR ABORT, as a table may say that rows against its constraints go unsaid.
fn statement(table: &Table, columns: &[Column], is_keys: &[bool]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted_name(&column.name)).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let insert = format!("INSERT OR ABORT INTO {} ({}) VALUES ({marks})", table.quoted(), names.join(", "));
    if !is_keys.contains(&true) {
        return insert;
    }
    let of = |wanted: bool| {
        names.iter().zip(is_keys).filter(move |(_, is_key)| **is_key == wanted).map(|(name, _)| name)
    };
    let key: Vec<&str> = of(true).map(String::as_str).collect();
    let sets: Vec<String> = of(false).map(|name| format!("{name} = excluded.{name}")).collect();
    let action = if sets.is_empty() { "NOTHING".into() } else { format!("UPDATE SET {}", sets.join(", ")) };
    format!("{insert} ON CONFLICT ({}) DO {action}", key.join(", "))
}

/// One column of a batch.
struct Lent<'a> {
    items: Items<'a>,
    encoder: &'a Encoder,
    text: &'a mut String,
}

impl Lent<'_> {
    #[inline]
    fn cell(&mut self, row: usize, number: u64) -> Result<Cell<'_>> {
        let item: Item<'_> = self.items.get(row);
        self.encoder.cell(&item, self.text).map_err(|refusal| self.encoder.error(&item, &refusal, number))
    }
}

impl Sink for Writing {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { session, is_part, insert, encoders, texts, schema, .. } = self;
        let mut columns = Vec::with_capacity(encoders.len());
        let sources = batch.columns().iter().zip(schema.fields());
        for (((array, field), encoder), text) in sources.zip(encoders).zip(texts) {
            columns.push(Lent { items: Items::new(array, field)?, encoder, text });
        }
        for row in 0..batch.num_rows() {
            let number = self.rows;
            insert
                .run(columns.iter_mut().map(|column| column.cell(row, number)))
                .map_err(|error| with_loss(in_row(error, number), session, *is_part))?;
            expect_stored(&session.connection, self.may_skip, number)?;
            self.rows += 1;
            if self.rows.is_multiple_of(BETWEEN_LOOKS) {
                session.connection.look()?;
            }
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<Written, Failed> {
        let Self { mut session, is_part, insert, rows, .. } = *self;
        drop(insert);
        session.connection.hold(false);
        let ended = session.tell(&if is_part { format!("RELEASE {PART}") } else { "COMMIT".into() });
        match ended {
            Ok(()) => Ok(Written { rows, session }),
            Err(error) => Err(undone(session, is_part, error)),
        }
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { session, is_part, insert, .. } = *self;
        drop(insert);
        back(session, is_part)
    }
}

/// Every row that comes is stored, or an error says why not.
#[inline]
fn expect_stored(connection: &Connection, may_skip: bool, row: u64) -> Result<()> {
    if connection.changes() > 0 || may_skip {
        return Ok(());
    }
    let error = Error::new(Kind::Integrity, "a trigger of the table left the row out: RAISE(IGNORE)")
        .with_hint("drop the trigger, or leave such rows out of the data");
    Err(in_row(error, row))
}

/// The database's own refusal of a row, with its number.
#[cold]
fn in_row(error: Error, row: u64) -> Error {
    if *error.place() != Place::default() || !matches!(error.kind(), Kind::Integrity | Kind::Data) {
        return error;
    }
    error.at(Place { row: Some(row), ..Place::default() })
}

fn undone(session: Box<SqliteSession>, is_part: bool, error: Error) -> Failed {
    let error = with_loss(error, &session, is_part);
    Failed { error, session: back(session, is_part) }
}

/// A change that is stopped, or that finds no room, takes the owner's whole transaction with it.
#[cold]
fn with_loss(error: Error, session: &SqliteSession, is_part: bool) -> Error {
    if is_part && session.connection.is_idle() {
        return error.with_detail("SQLite has undone the whole transaction");
    }
    error
}

/// The session, with the table as it was.
fn back(mut session: Box<SqliteSession>, is_part: bool) -> Option<Box<dyn Session>> {
    session.connection.hold(false);
    let ended = match is_part {
        _ if session.connection.is_idle() => Ok(()),
        true => session.tell(&format!("ROLLBACK TO {PART}; RELEASE {PART}")),
        false => session.tell("ROLLBACK"),
    };
    ended.is_ok().then_some(session as Box<dyn Session>)
}
