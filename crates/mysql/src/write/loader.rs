//! Rows into one table: as files that the server loads, or as statements where it takes no files.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_cells::Items;
use longshore_core::{Error, Kind, Place, Result};

use super::encode::Encoder;
use super::page::{Form, Page};
use super::server::Server;
use super::warnings;
use crate::connection::{Connection, FILE};
use crate::dialect::quoted_name;
use crate::message::{self, Done};

/// Bytes of rows that are sent at once.
const BUFFER: usize = 512 << 10;

/// What a server says that takes no files after all.
const NO_FILES: &[u16] = &[1148, 1290, 3948, 4166];

/// Where rows go, and how.
pub(super) struct Loader {
    encoders: Vec<Encoder>,
    schema: SchemaRef,
    /// The table, quoted.
    table: String,
    page: Page,
    /// Packets, and a cell's text.
    packets: Vec<u8>,
    room: String,
    /// The most bytes of a packet, and of a statement.
    longest: usize,
    is_open: bool,
    /// Rows of this write that came before those of the statement at hand, and all that came.
    before: u64,
    rows: u64,
}

impl Loader {
    pub(super) fn new(encoders: Vec<Encoder>, schema: SchemaRef, table: String, server: &Server) -> Self {
        let form = if server.takes_files { Form::File } else { Form::Literals };
        Self {
            encoders,
            schema,
            table,
            page: Page::new(form),
            packets: Vec::new(),
            room: String::new(),
            longest: server.longest,
            is_open: false,
            before: 0,
            rows: 0,
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Has the rows of `batch` on their way.
    pub(super) fn push(&mut self, connection: &mut Connection, batch: &RecordBatch) -> Result<()> {
        let fields = self.schema.clone();
        let items = batch
            .columns()
            .iter()
            .zip(fields.fields())
            .map(|(array, field)| Items::new(array, field))
            .collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let start = self.page.bytes.len();
            self.put_row(&items, row)?;
            if self.page.form() == Form::Literals {
                self.make_room(connection, start)?;
            }
            self.rows += 1;
            if self.page.bytes.len() >= BUFFER && self.page.form() == Form::File {
                self.send(connection)?;
            }
        }
        if self.is_open { self.flush(connection) } else { Ok(()) }
    }

    fn put_row(&mut self, items: &[Items<'_>], row: usize) -> Result<()> {
        self.page.begin_row();
        for (index, (encoder, items)) in self.encoders.iter().zip(items).enumerate() {
            if index > 0 {
                self.page.between();
            }
            encoder.put(&items.get(row), self.rows, &mut self.page, &mut self.room)?;
        }
        self.page.end_row();
        Ok(())
    }

    /// Opens a file, if none is open, and sends what there is of it.
    fn send(&mut self, connection: &mut Connection) -> Result<()> {
        if !self.is_open {
            connection.begin_file(&self.file_statement())?;
            self.is_open = true;
        }
        connection.send_file(&self.page.bytes, self.longest, &mut self.packets)?;
        self.page.bytes.clear();
        Ok(())
    }

    /// Has all rows in the table that came.
    pub(super) fn flush(&mut self, connection: &mut Connection) -> Result<()> {
        if self.rows == self.before {
            return Ok(());
        }
        match self.page.form() {
            Form::File => {
                self.send(connection)?;
                self.is_open = false;
                let done = connection.end_file()?;
                self.ended(connection, &done)
            }
            Form::Literals => {
                let end = self.page.bytes.len();
                self.insert(connection, end, self.rows)
            }
        }
    }

    /// Asks the server to ask for an empty file: it may not take any, whatever its settings say.
    pub(super) fn try_file(&mut self, connection: &mut Connection) -> Result<()> {
        if self.page.form() == Form::Literals {
            return Ok(());
        }
        match connection.begin_file(&self.file_statement()) {
            Ok(()) => connection.end_file().map(drop),
            Err(error) if message::code(&error).is_some_and(|code| NO_FILES.contains(&code)) => {
                self.page = Page::new(Form::Literals);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a file that nobody wants any more. Whatever the server says of it, its rows will be taken back.
    pub(super) fn abandon(&mut self, connection: &mut Connection) {
        if std::mem::take(&mut self.is_open) {
            let _ = connection.end_file();
        }
    }

    fn file_statement(&self) -> String {
        let (mut names, mut sets) = (Vec::new(), Vec::new());
        for (index, encoder) in self.encoders.iter().enumerate() {
            let (name, variable) = (quoted_name(&encoder.column.name), format!("@longshore_{index}"));
            match encoder.conversion(&variable, Form::File) {
                Some(conversion) => {
                    names.push(variable);
                    sets.push(format!("{name} = {conversion}"));
                }
                None => names.push(name),
            }
        }
        let set = if sets.is_empty() { String::new() } else { format!(" SET {}", sets.join(", ")) };
        format!(
            "LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE {} CHARACTER SET binary FIELDS TERMINATED BY '\\t' \
             ENCLOSED BY '' ESCAPED BY '\\\\' LINES STARTING BY '' TERMINATED BY '\\n' ({}){set}",
            self.table,
            names.join(", ")
        )
    }

    /// Sends the rows before the one at `start`, where that one would make the statement too long.
    fn make_room(&mut self, connection: &mut Connection, start: usize) -> Result<()> {
        let most = self.longest.min(BUFFER) / 2;
        if self.page.bytes.len() < most {
            return Ok(());
        }
        if start > 0 {
            self.insert(connection, start, self.rows)?;
        }
        // The statement's own words need some room, too.
        if self.page.bytes.len() + 65_536 > self.longest && self.page.bytes.len() > most {
            return Err(Error::data("the row is longer than the server's max_allowed_packet")
                .with_hint("raise max_allowed_packet on the server")
                .at(Place { row: Some(self.rows), ..Place::default() }));
        }
        Ok(())
    }

    /// Inserts the rows in the first `end` bytes, which are those before `row`.
    fn insert(&mut self, connection: &mut Connection, end: usize, row: u64) -> Result<()> {
        let names: Vec<String> = self.encoders.iter().map(|it| quoted_name(&it.column.name)).collect();
        let mut statement = format!("INSERT INTO {} ({}) VALUES ", self.table, names.join(", ")).into_bytes();
        // Without the last comma.
        statement.extend_from_slice(&self.page.bytes[..end - 1]);
        self.page.bytes.drain(..end);
        let done = connection.insert(&statement).map_err(|error| self.placed(error))?;
        let arrived = row - self.before;
        self.check(connection, &done, arrived)?;
        self.before = row;
        Ok(())
    }

    /// The file's end: every row of it has to be in the table as it came.
    fn ended(&mut self, connection: &mut Connection, done: &Done) -> Result<()> {
        self.check(connection, done, self.rows - self.before)?;
        self.before = self.rows;
        Ok(())
    }

    fn check(&self, connection: &mut Connection, done: &Done, rows: u64) -> Result<()> {
        if done.warnings == 0 && done.affected == rows && warnings::counts_are(&done.info, rows) {
            return Ok(());
        }
        match warnings::first(connection)? {
            Some(error) => Err(self.placed(error)),
            None => Err(Error::new(
                Kind::Integrity,
                format!("{} of {rows} rows arrived in {} ({})", done.affected, self.table, done.info),
            )
            .with_hint("a unique index, a check or a trigger has kept the others out")),
        }
    }

    /// The error with the column and row that the server's words name.
    fn placed(&self, error: Error) -> Error {
        let (column, row) = warnings::place(error.message());
        let encoder = column.and_then(|name| self.encoders.iter().find(|it| it.column.name == name));
        if encoder.is_none() && row.is_none() {
            return error;
        }
        let place = Place {
            column: encoder.map(|encoder| encoder.field.name().clone()),
            row: row.map(|row| self.before + row),
            native_type: encoder.map(|encoder| encoder.column.words.clone()),
        };
        error.at(place)
    }
}
