//! Rows into a table, all of them or none, by COPY (PostgreSQL documentation, COPY, "File Formats").

mod binary;
mod exact;
mod foreign;
mod replace;
mod staging;
mod table;
mod text;
mod upsert;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, SchemaRef};
use longshore_core::{Error, Failed, IfExists, Load, Place, Result, Sink};
use longshore_source::fit;
use longshore_source::staging::{self as kit, Expected, Rows, Scope, Step, Undo, UndoLog, Writer};
use longshore_values::{Item, Items, Misfit};

use binary::{ColumnEncoder, Encode, encode};
use table::{NAMING, TargetColumns};

use crate::connection::{Connection, pipeline};
use crate::geometry;
use crate::session::PostgresSession;
use crate::types::Type;

pub use foreign::{CopyData, copy_columns};
pub(crate) use staging::open as open_stage;

/// The longest name, in bytes (`NAMEDATALEN` less its end).
const LONGEST: usize = 63;

pub(crate) fn open(session: Box<PostgresSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    kit::open(session, |session, log| begin(session, load, log))
}

/// Refuses names that the server would truncate: another table could have what remains.
fn names_fit(load: &Load) -> Result<()> {
    let table = load.table.schema.iter().chain([&load.table.table]);
    let columns = load.schema.fields().iter().map(|field| field.name());
    let Some(name) = table.chain(columns).find(|name| name.len() > LONGEST) else { return Ok(()) };
    Err(Error::interface(format!(
        "the name {name:?} has {} bytes, PostgreSQL's have {LONGEST} at most",
        name.len()
    ))
    .with_hint("shorten it: the server would truncate it"))
}

fn begin(session: &mut PostgresSession, load: &Load, log: &mut UndoLog) -> Result<(CopyRows, Vec<Step>)> {
    names_fit(load)?;
    session.used = true;
    log.begin(session, "BEGIN")?;
    table::must_be_postgresql(session)?;
    let name = NAMING.table(&load.table);
    let (into, mut steps) = match load.if_exists {
        IfExists::Fail => (name.clone(), table::create(session, load, &name)?),
        IfExists::Append => (name, Vec::new()),
        IfExists::Truncate => {
            table::must_exist(session, load, &name)?;
            session.connection.simple(&format!("TRUNCATE {name}"))?;
            (name, Vec::new())
        }
        IfExists::Replace => replace::begin(session, load, &name)?,
        IfExists::Upsert => upsert::begin(session, load, &name)?,
    };
    let target = TargetColumns::describe(session, load, &into)?;
    let columns = load.schema.fields().iter().zip(&target.columns);
    let natives = columns.map(|(field, column)| {
        let place = Place { column: Some(field.name().clone()), ..Place::default() };
        geometry::with_srid(column.native.clone(), field).map_err(|error| error.at(place))
    });
    let rows = CopyRows::new(&load.schema, natives.collect::<Result<Vec<_>>>()?.into_iter(), &load.key);
    session.connection.begin_copy(&rows.statement(&into, &target))?;
    steps.push(Step::Commit);
    Ok((rows, steps))
}

impl Writer for PostgresSession {
    fn perform(&mut self, statement: &str) -> Result<()> {
        self.connection.simple(statement)
    }

    fn move_rows(&mut self, statement: &str, expected: &Expected, rows: u64) -> Result<()> {
        let count = self.connection.count(statement)?;
        match expected {
            Expected::Any => Ok(()),
            Expected::All => refuse_fewer(&rows.to_string(), count),
            Expected::Count(query) => {
                refuse_fewer(self.connection.ask(pipeline::Step::run(query.as_str()))?.cell(0, 0), count)
            }
        }
    }

    fn undo(&mut self, scope: Option<Scope>, undo: &[Undo], _: bool) -> bool {
        self.catalogue.forget_all();
        let rollback = scope.map_or(&[][..], Scope::rollback).iter().copied();
        let mut statements = rollback.chain(undo.iter().map(|undo| undo.statement.as_str()));
        self.connection.stop() && statements.all(|statement| self.connection.undo(statement).is_ok())
    }
}

/// As much of `name` as `most` bytes hold.
fn shorten(name: &str, most: usize) -> &str {
    let mut end = name.len().min(most);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// A message of rows is sent when it has about so many bytes.
const FLUSH: usize = 256 << 10;

/// The signature of the binary format, its flags, and the length of an extension that there is not.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The mark in place of a row's number of columns at the end.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// The tag and the length of a `CopyData` message, which is known once the message is full.
const HEADER: usize = 5;

/// A function that takes a whole `CopyData` message.
type SendMessage<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// One column, and what it goes into.
struct CopyColumn {
    field: FieldRef,
    native: Type,
    is_key: bool,
}

/// The rows of a COPY, batch by batch.
struct CopyRows {
    columns: Vec<CopyColumn>,
    /// The encoders of the columns in the binary format; `None` where one has no binary form: then all are texts, which the
    /// server parses.
    binary: Option<Vec<Encode>>,
    message: Vec<u8>,
    cell: String,
    count: u64,
}

impl CopyRows {
    /// The rows of `schema` for columns of these types.
    fn new(schema: &SchemaRef, natives: impl Iterator<Item = Type>, key: &[String]) -> Self {
        let column = |(field, native): (&FieldRef, Type)| CopyColumn {
            field: field.clone(),
            native,
            is_key: key.contains(field.name()),
        };
        let columns: Vec<CopyColumn> = schema.fields().iter().zip(natives).map(column).collect();
        let binary: Option<Vec<Encode>> =
            columns.iter().map(|column| encode(&column.field, &column.native)).collect();
        let mut message = Vec::with_capacity(FLUSH + FLUSH / 4);
        message.extend_from_slice(b"d\0\0\0\0");
        if binary.is_some() {
            message.extend_from_slice(SIGNATURE);
        }
        Self { columns, binary, message, cell: String::new(), count: 0 }
    }

    fn format(&self) -> &'static str {
        if self.binary.is_some() { "binary" } else { "text" }
    }

    /// The statement that begins the COPY into `table`, a quoted name.
    fn statement(&self, table: &str, target: &TargetColumns) -> String {
        format!("COPY {table} ({}) FROM STDIN (FORMAT {})", target.names(), self.format())
    }

    fn append(&mut self, batch: &RecordBatch, send: &mut SendMessage<'_>) -> Result<()> {
        let columns = self.columns.iter().zip(batch.columns());
        let items =
            columns.map(|(column, array)| Items::new(array, &column.field)).collect::<Result<Vec<_>>>()?;
        let encoders = self.binary.as_ref().map(|encodes| {
            let columns = self.columns.iter().zip(&items).zip(encodes);
            columns
                .map(|((column, items), encode)| ColumnEncoder::new(items, &column.native, *encode))
                .collect::<Vec<_>>()
        });
        for row in 0..batch.num_rows() {
            match &encoders {
                Some(encoders) => self.binary_row(encoders, &items, row)?,
                None => self.text_row(&items, row)?,
            }
            if self.message.len() >= FLUSH {
                self.send(send)?;
            }
        }
        self.count += batch.num_rows() as u64;
        Ok(())
    }

    fn binary_row(
        &mut self,
        encoders: &[ColumnEncoder<'_, '_>],
        items: &[Items<'_>],
        row: usize,
    ) -> Result<()> {
        let Self { columns, message, count, .. } = self;
        let number = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        message.extend_from_slice(&number.to_be_bytes());
        for ((column, encoder), items) in columns.iter().zip(encoders).zip(items) {
            let allowed = if column.is_key { column.refuse_null(&items.get(row)) } else { Ok(()) };
            allowed
                .and_then(|()| encoder.put(row, &column.native, message))
                .map_err(|misfit| fit::misfit(&items.get(row), misfit, column.place(*count + row as u64)))?;
        }
        Ok(())
    }

    fn text_row(&mut self, items: &[Items<'_>], row: usize) -> Result<()> {
        let Self { columns, message, count, cell, .. } = self;
        for (index, (column, items)) in columns.iter().zip(items).enumerate() {
            if index > 0 {
                message.push(b'\t');
            }
            let item = items.get(row);
            cell.clear();
            let put = column
                .refuse_null(&item)
                .and_then(|()| exact::check(&item, &column.native))
                .and_then(|()| text::put(&item, &column.field, &column.native, cell));
            match put {
                Ok(true) => escape(cell, message),
                Ok(false) => message.extend_from_slice(b"\\N"),
                Err(misfit) => return Err(fit::misfit(&item, misfit, column.place(*count + row as u64))),
            }
        }
        message.push(b'\n');
        Ok(())
    }

    fn send(&mut self, send: &mut SendMessage<'_>) -> Result<()> {
        let length = u32::try_from(self.message.len() - 1)
            .map_err(|_| Error::data("a row is longer than PostgreSQL's messages may be"))?;
        self.message[1..HEADER].copy_from_slice(&length.to_be_bytes());
        send(&self.message).map_err(|error| self.locate(error))?;
        self.message.truncate(HEADER);
        Ok(())
    }

    /// The server's error, with the column that it names.
    fn locate(&self, error: Error) -> Error {
        locate_in_copy(error, &self.columns)
    }

    /// Sends what is left.
    fn send_rest(&mut self, send: &mut SendMessage<'_>) -> Result<()> {
        if self.binary.is_some() {
            self.message.extend_from_slice(&TRAILER);
        }
        if self.message.len() > HEADER { self.send(send) } else { Ok(()) }
    }

    /// Sends what is left, and waits until the server has taken all.
    fn end(&mut self, connection: &mut Connection) -> Result<()> {
        self.send_rest(&mut |message| connection.copy_data(message))?;
        let taken = connection.end_copy().map_err(|error| self.locate(error))?;
        refuse_fewer(&self.count.to_string(), taken)
    }
}

impl Rows<PostgresSession> for CopyRows {
    fn push(&mut self, session: &mut PostgresSession, batch: &RecordBatch) -> Result<()> {
        self.append(batch, &mut |message| session.connection.copy_data(message))
    }

    fn flush(&mut self, session: &mut PostgresSession) -> Result<()> {
        self.end(&mut session.connection)
    }

    fn count(&self) -> u64 {
        self.count
    }
}

/// A trigger or a rule of the table may have left rows out.
fn refuse_fewer(wanted: &str, taken: u64) -> Result<()> {
    if taken.to_string() == wanted {
        return Ok(());
    }
    Err(Error::data(format!("of {wanted} rows the table took {taken}"))
        .with_hint("a trigger or a rule of the table leaves rows out; nothing was written"))
}

impl CopyColumn {
    fn refuse_null(&self, item: &Item<'_>) -> Result<(), Misfit> {
        if self.is_key && matches!(item, Item::Null) { Err(fit::null_key()) } else { Ok(()) }
    }

    #[cold]
    fn place(&self, row: u64) -> Place {
        Place {
            column: Some(self.field.name().clone()),
            row: Some(row),
            native_type: Some(self.native.label()),
        }
    }
}

/// `error` with the row and the column that the context of a COPY names: `COPY boats, line 3, column berth`.
fn locate_in_copy(error: Error, columns: &[CopyColumn]) -> Error {
    // It is found when the server stores many rows at once, and counts the last of them.
    if error.message().starts_with("row is too big") {
        return error;
    }
    let Some((row, rest)) = error.detail().and_then(line) else { return error };
    let named = |column: &&CopyColumn| {
        let end =
            rest.strip_prefix(", column ").and_then(|rest| rest.strip_prefix(column.field.name().as_str()));
        end.is_some_and(|end| end.is_empty() || end.starts_with([':', '\n']))
    };
    // A constraint names its column apart from the context.
    let violated = |column: &&CopyColumn| error.place().column.as_ref() == Some(column.field.name());
    let column = columns.iter().find(named).or_else(|| columns.iter().find(violated));
    let place =
        column.map_or_else(|| Place { row: Some(row), ..Place::default() }, |column| column.place(row));
    error.at(place)
}

/// The row, from 0, and what follows its number. Translated contexts are left alone.
fn line(detail: &str) -> Option<(u64, &str)> {
    let context =
        detail.lines().position(|line| line.starts_with("COPY ")).and_then(|at| detail.lines().nth(at))?;
    let (_, rest) = context.split_once(", line ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let line: u64 = rest[..end].parse().ok()?;
    Some((line.checked_sub(1)?, &rest[end..]))
}

/// Appends `cell` with backslashes before what would end or change it.
fn escape(cell: &str, out: &mut Vec<u8>) {
    for byte in cell.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_of_a_copy_has_a_line() {
        assert_eq!(line("Key (a)=(1) exists.\nCOPY t, line 3"), Some((2, "")));
        assert_eq!(line("COPY t, line 12, column b: \"x\""), Some((11, ", column b: \"x\"")));
        assert_eq!(line("COPY t"), None);
    }
}
