//! Rows on their way into a table: a batch is lent to one statement, or each row is bound and stepped.

mod encode;
mod table;
mod texts;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_cells::{Items, Uniform};
use longshore_core::{
    Error, Failed, IfExists, Kind, Load, Place, Result, Session, Sink, TableName, Transaction, Written,
};

use self::encode::Encoder;
use self::table::{Column, Table, column_mapping};
use crate::cell::Cell;
use crate::connection::{BatchInsert, Connection, ROWS_PER_CHECK, ResultSetter, RowInsert, Rows};
use crate::dialect::quoted_name;
use crate::session::SqliteSession;

/// The name of our part of a transaction that is the owner's.
const PART: &str = "longshore_write";

/// The name that the rows go by in the statement.
const LENT: &str = "longshore_lent";

/// What SQLite's machine does in a statement whose rows go in one by one, or none could be named: run a trigger, which may
/// leave a row out; put rows aside first; look for foreign keys once all rows are there; call a virtual table.
const ONE_BY_ONE: [&[u8]; 4] = [b"Program", b"OpenEphemeral", b"FkCounter", b"VUpdate"];

/// The statement.
enum Way {
    Batches(BatchInsert),
    Rows(RowInsert),
}

/// A write that has begun. Dropped, it closes its connection, which undoes all of it.
struct Writing {
    session: Box<SqliteSession>,
    /// Whether the transaction is the owner's.
    is_part: bool,
    way: Way,
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
    way: Way,
    encoders: Vec<Encoder>,
    may_skip: bool,
}

pub(crate) fn write(mut session: Box<SqliteSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    let is_part = session.transaction() != Transaction::None;
    // A transaction that only reads at first cannot always become one that writes.
    let begun = session.exec(&if is_part { format!("SAVEPOINT {PART}") } else { "BEGIN IMMEDIATE".into() });
    if let Err(error) = begun {
        return Err(Failed { error, session: Some(session) });
    }
    match prepare(&mut session, load) {
        Ok(Prepared { way, encoders, may_skip }) => {
            session.connection.defer_interrupts(is_part);
            let texts = vec![String::new(); encoders.len()];
            let schema = load.schema.clone();
            Ok(Box::new(Writing { session, is_part, way, encoders, schema, may_skip, rows: 0, texts }))
        }
        Err(error) => Err(undone(session, is_part, error)),
    }
}

fn prepare(session: &mut SqliteSession, load: &Load) -> Result<Prepared> {
    for field in load.schema.fields() {
        table::native(field, load.nested)?;
    }
    let table = match load.if_exists {
        IfExists::Fail | IfExists::Replace => made(session, load)?,
        IfExists::Truncate => table::truncate(session, &load.table)?,
        IfExists::Append | IfExists::Upsert => Table::expect(session, &load.table)?,
    };
    let all = table.columns(session)?;
    let is_upsert = load.if_exists == IfExists::Upsert;
    let keys = table.keys(session, &all)?;
    let columns = column_mapping(all, &table, load)?;
    let is_key = |name: &str| is_upsert && load.key.iter().any(|key| key == name);
    let names = load.schema.fields().iter().map(|field| field.name().as_str());
    let is_keys: Vec<bool> = names.map(is_key).collect();
    if is_upsert {
        expect_key(&table, &keys, &columns, &is_keys)?;
    }
    let encoders = columns.iter().zip(load.schema.fields()).zip(&is_keys);
    let encoders =
        encoders.map(|((column, field), is_key)| Encoder::new(column, field, load.nested, *is_key)).collect();
    let may_skip = is_upsert && is_keys.iter().all(|is_key| *is_key);
    let way = way(session, &table, &columns, &is_keys)?;
    Ok(Prepared { way, encoders, may_skip })
}

/// By batches, which takes less time for a row, unless the table has a reason against it.
fn way(session: &SqliteSession, table: &Table, columns: &[Column], is_keys: &[bool]) -> Result<Way> {
    let lent = free_name(session)?;
    let text = statement(table, columns, is_keys, Some(&lent));
    let by_batches = BatchInsert::new(&session.connection, &lent, columns.len(), &text)?;
    let is_such = session.query(&format!("EXPLAIN {text}"), |step| match step.cell(1) {
        Cell::Text(name) => ONE_BY_ONE.contains(&name),
        _ => false,
    })?;
    if !is_such.contains(&true) {
        return Ok(Way::Batches(by_batches));
    }
    let (statement, _) = session.connection.prepare(&statement(table, columns, is_keys, None))?;
    let statement = statement.ok_or_else(|| Error::internal("an INSERT is not a statement"))?;
    Ok(Way::Rows(RowInsert::new(statement)))
}

/// A name that no table has, for that would be read in the place of what is lent.
fn free_name(session: &SqliteSession) -> Result<String> {
    let mut name = TableName { schema: None, table: LENT.to_owned() };
    while Table::find(session, &name)?.is_some() {
        name.table.push('_');
    }
    Ok(name.table)
}

/// A new table, in the place of the one that is there or where there is none.
fn made(session: &mut SqliteSession, load: &Load) -> Result<Table> {
    let quoted = match Table::find(session, &load.table)? {
        Some(_) if load.if_exists == IfExists::Fail => {
            return Err(Error::programming(format!("table {} is there already", load.table))
                .with_hint("use if_exists=\"append\", \"replace\", \"truncate\" or \"upsert\""));
        }
        Some(table) => {
            table::drop_table(session, &table)?;
            table.quoted()
        }
        None => {
            let schema = load.table.schema.as_deref().unwrap_or("main");
            format!("{}.{}", quoted_name(schema), quoted_name(&load.table.table))
        }
    };
    session.exec(&table::create_statement(load, &quoted)?)?;
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

/// The statement of all rows of the table `lent`, or of each row. It has an OR, as a table may say that rows against its
/// constraints go unsaid. For many rows OR ABORT would keep what undoes one statement, where the whole write is undone.
fn statement(table: &Table, columns: &[Column], is_keys: &[bool], lent: Option<&str>) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted_name(&column.name)).collect();
    let (or, rows) = match lent {
        // Without WHERE the parser would take ON for a join's.
        Some(lent) => ("FAIL", format!("SELECT * FROM {} WHERE true", quoted_name(lent))),
        None => ("ABORT", format!("VALUES ({})", vec!["?"; names.len()].join(", "))),
    };
    let insert = format!("INSERT OR {or} INTO {} ({}) {rows}", table.quoted(), names.join(", "));
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
struct Values<'a> {
    items: Items<'a>,
    /// Values that are stored as they are.
    kept: Option<Uniform<'a>>,
    encoder: &'a Encoder,
    text: &'a mut String,
}

impl Values<'_> {
    /// The value of `row`, whose number in the whole input is `number`.
    #[inline]
    fn cell(&mut self, row: usize, number: u64) -> Result<Cell<'_>> {
        match self.kept {
            Some(Uniform::Int(values)) => return Ok(Cell::Integer(values[row])),
            Some(Uniform::Double(values)) if !values[row].is_nan() => return Ok(Cell::Real(values[row])),
            Some(Uniform::Text(values)) => return Ok(Cell::Text(values.value(row).as_bytes())),
            Some(Uniform::LargeText(values)) => return Ok(Cell::Text(values.value(row).as_bytes())),
            _ => {}
        }
        let item = self.items.get(row);
        self.encoder.cell(&item, self.text).map_err(|refusal| self.encoder.error(&item, &refusal, number))
    }
}

/// A batch, column by column.
struct Batch<'a> {
    columns: Vec<Values<'a>>,
    length: usize,
    /// The rows that came before it.
    before: u64,
}

impl<'a> Batch<'a> {
    /// `batch`, whose columns are those of `schema`, after as many rows as `before`.
    fn new(
        batch: &'a RecordBatch,
        schema: &SchemaRef,
        before: u64,
        encoders: &'a [Encoder],
        texts: &'a mut [String],
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(encoders.len());
        for (((array, field), encoder), text) in
            batch.columns().iter().zip(schema.fields()).zip(encoders).zip(texts)
        {
            let items = Items::new(array, field)?;
            let kept = items.uniform().filter(|values| encoder.keeps(*values));
            columns.push(Values { items, kept, encoder, text });
        }
        Ok(Self { columns, length: batch.num_rows(), before })
    }

    fn number(&self, row: usize) -> u64 {
        self.before + row as u64
    }
}

impl Rows for Batch<'_> {
    fn give(&mut self, row: usize, column: usize, setter: ResultSetter<'_>) -> Result<()> {
        let number = self.number(row);
        setter.take(self.columns[column].cell(row, number)?);
        Ok(())
    }
}

impl Sink for Writing {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut values = Batch::new(batch, &self.schema, self.rows, &self.encoders, &mut self.texts)?;
        let Self { session, way, may_skip, .. } = self;
        let pushed = match way {
            Way::Batches(lent) => by_batch(lent, &mut values, &session.connection, *may_skip),
            Way::Rows(insert) => by_rows(insert, &mut values, &session.connection, *may_skip),
        };
        pushed.map_err(|error| with_loss(error, session, self.is_part))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<Written, Failed> {
        let Self { mut session, is_part, way, rows, .. } = *self;
        drop(way);
        session.connection.defer_interrupts(false);
        let ended = session.exec(&if is_part { format!("RELEASE {PART}") } else { "COMMIT".into() });
        match ended {
            Ok(()) => Ok(Written { rows, session }),
            Err(error) => Err(undone(session, is_part, error)),
        }
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { session, is_part, way, .. } = *self;
        drop(way);
        back(session, is_part)
    }
}

/// Lends all rows to one step, which stores each unless it `may_skip`.
fn by_batch(
    lent: &mut BatchInsert,
    batch: &mut Batch<'_>,
    connection: &Connection,
    may_skip: bool,
) -> Result<()> {
    let length = batch.length;
    lent.run(batch, length).map_err(|(error, row)| in_row(error, batch.number(row)))?;
    if may_skip || length == 0 || connection.changes() == length as u64 {
        return Ok(());
    }
    Err(Error::internal("SQLite has left a row out"))
}

/// Binds and steps each row. It is stored, or an error says why not.
fn by_rows(
    insert: &mut RowInsert,
    batch: &mut Batch<'_>,
    connection: &Connection,
    may_skip: bool,
) -> Result<()> {
    for row in 0..batch.length {
        let number = batch.number(row);
        insert
            .run(batch.columns.iter_mut().map(|column| column.cell(row, number)))
            .map_err(|error| in_row(error, number))?;
        if !may_skip && connection.changes() == 0 {
            let error = Error::new(Kind::Integrity, "a trigger of the table left the row out: RAISE(IGNORE)")
                .with_hint("drop the trigger, or leave such rows out of the data");
            return Err(in_row(error, number));
        }
        if row % ROWS_PER_CHECK == 0 {
            connection.check()?;
        }
    }
    Ok(())
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
    session.connection.defer_interrupts(false);
    let ended = match is_part {
        _ if session.connection.is_idle() => Ok(()),
        true => session.exec(&format!("ROLLBACK TO {PART}; RELEASE {PART}")),
        false => session.exec("ROLLBACK"),
    };
    ended.is_ok().then_some(session as Box<dyn Session>)
}
