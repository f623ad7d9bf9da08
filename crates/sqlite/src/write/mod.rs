//! Rows on their way into a table: one statement reads a batch, or each row is bound and stepped.

mod encode;
mod foreign;
mod table;
mod texts;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{
    Error, Failed, IfExists, Kind, Load, Place, Result, Session, Sink, TableName, Transaction,
};
use longshore_source::Nested;
use longshore_source::staging::{self as kit, Expected, Rows, Scope, Step, Undo, Writer};
use longshore_values::{Items, Uniform};

pub use self::foreign::{ForeignRows, begin as begin_foreign};

use self::encode::Encoder;
use self::table::{Column, NAMING, Table};
use crate::cell::Cell;
use crate::connection::{BatchInsert, Connection, ROWS_PER_CHECK, ResultSetter, Statement};
use crate::dialect::quoted_name;
use crate::session::SqliteSession;

/// A runner of statements on a database: a session, or another library's connection.
pub trait Statements {
    /// The rows of a query.
    fn rows(&self, query: &str) -> Result<Vec<Row>>;

    /// Runs a statement, and throws its rows away.
    fn exec(&mut self, statement: &str) -> Result<()>;

    /// The results of `read` for each row of a query.
    fn ask<T>(&self, query: &str, read: impl Fn(&Row) -> T) -> Result<Vec<T>> {
        Ok(self.rows(query)?.iter().map(read).collect())
    }
}

/// A row of a query about the database: texts, and NULLs.
#[derive(Debug)]
pub struct Row(pub Vec<Option<String>>);

impl Row {
    fn text(&self, column: usize) -> String {
        self.0.get(column).cloned().flatten().unwrap_or_default()
    }

    /// Whether it is an integer and not zero.
    fn is_true(&self, column: usize) -> bool {
        self.text(column).parse::<i64>().is_ok_and(|value| value != 0)
    }
}

impl Statements for SqliteSession {
    fn rows(&self, query: &str) -> Result<Vec<Row>> {
        self.query(query, |row| {
            let cells =
                (0..row.columns()).map(|column| (row.cell(column) != Cell::Null).then(|| row.text(column)));
            Row(cells.collect())
        })
    }

    fn exec(&mut self, statement: &str) -> Result<()> {
        Self::exec(self, statement)
    }
}

/// The name of the virtual table of a batch in the statement.
const BATCH: &str = "longshore_batch";

/// Instructions of a statement whose rows go in one by one, or an error would name none: it runs a trigger, which may leave a
/// row out; puts rows aside first; looks for foreign keys once all rows are there; calls a virtual table.
const ONE_BY_ONE: [&[u8]; 4] = [b"Program", b"OpenEphemeral", b"FkCounter", b"VUpdate"];

/// The statement that stores rows.
enum Insert {
    Batches(BatchInsert),
    Rows(Statement),
}

/// The rows of a write, and the statement that takes them.
struct Writing {
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

pub(crate) fn write(session: Box<SqliteSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    kit::open(session, |session, log| {
        let in_transaction = session.transaction() != Transaction::None;
        // A transaction that only reads at first cannot always become one that writes.
        log.begin(session, "BEGIN IMMEDIATE")?;
        let writing = Writing::prepare(session, load)?;
        session.connection.defer_interrupts(in_transaction);
        Ok((writing, vec![Step::Commit]))
    })
}

impl Writing {
    fn prepare(session: &mut SqliteSession, load: &Load) -> Result<Self> {
        let target = Target::prepare(session, load)?;
        let columns: Vec<&Column> = target.columns.iter().collect();
        Ok(Self {
            insert: insert(session, &target.table, &columns, &target.is_keys)?,
            texts: vec![String::new(); columns.len()],
            encoders: target.encoders(load),
            schema: load.schema.clone(),
            may_skip: target.may_skip(load),
            rows: 0,
        })
    }
}

/// The table that rows go into, and its columns in their order.
struct Target {
    table: Table,
    columns: Vec<Column>,
    /// Whether each tells the rows of an upsert apart.
    is_keys: Vec<bool>,
}

impl Target {
    fn prepare(session: &mut impl Statements, load: &Load) -> Result<Self> {
        let fields = load.schema.fields();
        for field in fields {
            table::native(field, Nested::of(load))?;
        }
        let table = match load.if_exists {
            IfExists::Fail | IfExists::Replace => table::create(session, load)?,
            IfExists::Truncate => table::truncate(session, &load.table)?,
            IfExists::Append | IfExists::Upsert => Table::expect(session, &load.table)?,
        };
        let all = table.columns(session)?;
        let is_upsert = load.if_exists == IfExists::Upsert;
        let columns = NAMING.mapping(load, &table.name, &all)?.into_iter().cloned().collect();
        if is_upsert {
            NAMING.check_key(load, &table.name, &table.keys(session, &all)?)?;
        }
        let is_keys = fields.iter().map(|field| is_upsert && load.key.contains(field.name())).collect();
        Ok(Self { table, columns, is_keys })
    }

    fn encoders(&self, load: &Load) -> Vec<Encoder> {
        let columns = self.columns.iter().zip(load.schema.fields()).zip(&self.is_keys);
        columns
            .map(|((column, field), is_key)| Encoder::new(column, field, Nested::of(load), *is_key))
            .collect()
    }

    /// Whether a row may be there already, and then stays as it is.
    fn may_skip(&self, load: &Load) -> bool {
        load.if_exists == IfExists::Upsert && self.is_keys.iter().all(|is_key| *is_key)
    }
}

impl Writer for SqliteSession {
    fn perform(&mut self, statement: &str) -> Result<()> {
        self.exec(statement)
    }

    fn move_rows(&mut self, statement: &str, _: &Expected, _: u64) -> Result<()> {
        self.exec(statement)
    }

    fn undo(&mut self, scope: Option<Scope>, _: &[Undo], _: bool) -> bool {
        self.connection.defer_interrupts(false);
        let rollback = scope.map_or(&[][..], Scope::rollback);
        self.connection.is_idle() || rollback.iter().all(|statement| self.exec(statement).is_ok())
    }

    /// A change that is stopped, or that finds no room, takes the caller's whole transaction with it.
    #[cold]
    fn explain(&self, error: Error, scope: Option<Scope>) -> Error {
        if scope == Some(Scope::Savepoint) && self.connection.is_idle() {
            return error.with_detail("SQLite has undone the whole transaction");
        }
        error
    }
}

/// By batches, which takes less time for a row, unless the table has a reason against it.
fn insert(session: &SqliteSession, table: &Table, columns: &[&Column], is_keys: &[bool]) -> Result<Insert> {
    // A name that no table has, for that would be read in the place of the batch.
    let mut batch = TableName { schema: None, table: BATCH.to_owned() };
    while Table::find(session, &batch)?.is_some() {
        batch.table.push('_');
    }
    let text = statement(table, columns, is_keys, Some(&batch.table));
    let by_batches = BatchInsert::new(&session.connection, &batch.table, columns.len(), &text)?;
    let one_by_one = session.query(&format!("EXPLAIN {text}"), |step| {
        step.cell(1).text_bytes().is_some_and(|name| ONE_BY_ONE.contains(&name))
    })?;
    if !one_by_one.contains(&true) {
        return Ok(Insert::Batches(by_batches));
    }
    let (statement, _) = session.connection.prepare(&statement(table, columns, is_keys, None))?;
    statement.map(Insert::Rows).ok_or_else(|| Error::internal("an INSERT is not a statement"))
}

/// The statement of all rows of the virtual table `batch`, or of each row. It has an OR, as a table may say that rows against its
/// constraints go unsaid. For many rows OR ABORT would keep what undoes one statement, where the whole write is undone.
fn statement(table: &Table, columns: &[&Column], is_keys: &[bool], batch: Option<&str>) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted_name(&column.name)).collect();
    let (or, rows) = match batch {
        // Without WHERE the parser would take ON for a join's.
        Some(batch) => ("FAIL", format!("SELECT * FROM {} WHERE true", quoted_name(batch))),
        None => ("ABORT", format!("VALUES ({})", vec!["?"; names.len()].join(", "))),
    };
    let insert = format!("INSERT OR {or} INTO {} ({}) {rows}", table.quoted_name(), names.join(", "));
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
    /// The array's values where they are stored as they are.
    as_is: Option<Uniform<'a>>,
    encoder: &'a Encoder,
    text: &'a mut String,
}

impl Values<'_> {
    /// The value of `row`, whose number in the whole input is `number`.
    #[inline]
    fn cell(&mut self, row: usize, number: u64) -> Result<Cell<'_>> {
        match self.as_is {
            Some(Uniform::Int(values)) => return Ok(Cell::Integer(values[row])),
            Some(Uniform::Double(values)) if !values[row].is_nan() => return Ok(Cell::Real(values[row])),
            Some(Uniform::Text(values)) => return Ok(Cell::Text(values.value(row).as_bytes())),
            Some(Uniform::LargeText(values)) => return Ok(Cell::Text(values.value(row).as_bytes())),
            _ => {}
        }
        let item = self.items.get(row);
        self.encoder.cell(&item, self.text).map_err(|misfit| self.encoder.error(&item, misfit, number))
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
            let as_is = items.uniform().filter(|values| encoder.stores_as_is(*values));
            columns.push(Values { items, as_is, encoder, text });
        }
        Ok(Self { columns, length: batch.num_rows(), before })
    }
}

impl Rows<SqliteSession> for Writing {
    fn push(&mut self, session: &mut SqliteSession, batch: &RecordBatch) -> Result<()> {
        let mut batch = Batch::new(batch, &self.schema, self.rows, &self.encoders, &mut self.texts)?;
        let connection = &session.connection;
        match &mut self.insert {
            Insert::Batches(insert) => by_batch(insert, &mut batch, connection, self.may_skip),
            Insert::Rows(insert) => by_rows(insert, &mut batch, connection, self.may_skip),
        }?;
        self.rows += batch.length as u64;
        Ok(())
    }

    fn flush(&mut self, session: &mut SqliteSession) -> Result<()> {
        session.connection.defer_interrupts(false);
        Ok(())
    }

    fn count(&self) -> u64 {
        self.rows
    }
}

/// Has one step read all rows and store each, unless it `may_skip`.
fn by_batch(
    insert: &mut BatchInsert,
    batch: &mut Batch<'_>,
    connection: &Connection,
    may_skip: bool,
) -> Result<()> {
    let Batch { columns, length, before } = batch;
    let mut values = |row: usize, column: usize, setter: ResultSetter<'_>| {
        setter.set(columns[column].cell(row, *before + row as u64)?);
        Ok(())
    };
    insert.run(&mut values, *length).map_err(|(error, row)| in_row(error, *before + row as u64))?;
    if may_skip || *length == 0 || connection.changes() == *length as u64 {
        return Ok(());
    }
    Err(Error::internal("SQLite has left a row out"))
}

/// Binds and steps each row. It is stored, or an error says why not.
fn by_rows(
    insert: &mut Statement,
    batch: &mut Batch<'_>,
    connection: &Connection,
    may_skip: bool,
) -> Result<()> {
    for row in 0..batch.length {
        let number = batch.before + row as u64;
        insert
            .run_with(batch.columns.iter_mut().map(|column| column.cell(row, number)))
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
