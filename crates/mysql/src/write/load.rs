//! The load of rows: by `LOAD DATA LOCAL INFILE`, or by INSERT where the server takes no files.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{Error, Kind, Place, Result};
use longshore_values::{Item, Items, push_number};

use super::encode::Encoder;
use super::table::Server;
use crate::connection::{Connection, FILE};
use crate::dialect::quoted_name;
use crate::message::{self, Done};

/// Bytes of rows that are sent at once.
const BUFFER: usize = 512 << 10;

/// The codes by which a server says that it takes no files after all.
const NO_FILES: &[u16] = &[1148, 1290, 3948, 4166];

/// The load of rows into one table.
pub(super) struct Loader {
    encoders: Vec<Encoder>,
    schema: SchemaRef,
    /// The table, quoted.
    table: String,
    buffer: LoadBuffer,
    packets: Vec<u8>,
    /// The server's `max_allowed_packet`.
    max_packet: usize,
    is_file_open: bool,
    /// Rows that the server has confirmed, and all that came.
    confirmed: u64,
    pub(super) rows: u64,
}

impl Loader {
    pub(super) fn new(encoders: Vec<Encoder>, schema: SchemaRef, table: String, server: &Server) -> Self {
        let form = if server.takes_files { Form::File } else { Form::Literals };
        Self {
            encoders,
            schema,
            table,
            buffer: LoadBuffer::new(form),
            packets: Vec::new(),
            max_packet: server.max_packet,
            is_file_open: false,
            confirmed: 0,
            rows: 0,
        }
    }

    /// Sends the rows of `batch`, or keeps them for the next.
    pub(super) fn append(&mut self, connection: &mut Connection, batch: &RecordBatch) -> Result<()> {
        let fields = self.schema.clone();
        let columns = batch.columns().iter().zip(fields.fields());
        let items = columns.map(|(array, field)| Items::new(array, field)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let start = self.buffer.bytes.len();
            self.put_row(&items, row)?;
            if self.buffer.form == Form::Literals {
                self.limit_statement(connection, start)?;
            }
            self.rows += 1;
            if self.buffer.bytes.len() >= BUFFER && self.buffer.form == Form::File {
                self.send(connection)?;
            }
        }
        if self.is_file_open { self.finish(connection) } else { Ok(()) }
    }

    fn put_row(&mut self, items: &[Items<'_>], row: usize) -> Result<()> {
        self.buffer.begin_row();
        for (index, (encoder, items)) in self.encoders.iter_mut().zip(items).enumerate() {
            if index > 0 {
                self.buffer.separator();
            }
            encoder.put(&items.get(row), self.rows, &mut self.buffer)?;
        }
        self.buffer.end_row();
        Ok(())
    }

    /// Opens a file, if none is open, and sends what there is of it.
    fn send(&mut self, connection: &mut Connection) -> Result<()> {
        if !self.is_file_open {
            connection.begin_file(&self.file_statement())?;
            self.is_file_open = true;
        }
        connection.send_file(&self.buffer.bytes, self.max_packet, &mut self.packets)?;
        self.buffer.bytes.clear();
        Ok(())
    }

    /// Has all rows in the table that came.
    pub(super) fn finish(&mut self, connection: &mut Connection) -> Result<()> {
        if self.rows == self.confirmed {
            return Ok(());
        }
        match self.buffer.form {
            Form::File => {
                self.send(connection)?;
                self.is_file_open = false;
                let done = connection.end_file()?;
                self.confirm(connection, &done, self.rows)
            }
            Form::Literals => self.insert(connection, self.buffer.bytes.len(), self.rows),
        }
    }

    /// Has the server ask for an empty file: it may not take any, whatever its settings say.
    pub(super) fn try_file(&mut self, connection: &mut Connection) -> Result<()> {
        if self.buffer.form == Form::Literals {
            return Ok(());
        }
        match connection.begin_file(&self.file_statement()) {
            Ok(()) => connection.end_file().map(drop),
            Err(error) if message::code(&error).is_some_and(|code| NO_FILES.contains(&code)) => {
                self.buffer = LoadBuffer::new(Form::Literals);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Ends the file of a write that has failed. Whatever the server says of it, its rows will be taken back.
    pub(super) fn abandon(&mut self, connection: &mut Connection) {
        if std::mem::take(&mut self.is_file_open) {
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
    fn limit_statement(&mut self, connection: &mut Connection, start: usize) -> Result<()> {
        let most = self.max_packet.min(BUFFER) / 2;
        if self.buffer.bytes.len() < most {
            return Ok(());
        }
        if start > 0 {
            self.insert(connection, start, self.rows)?;
        }
        // The statement is longer than its rows.
        if self.buffer.bytes.len() + 65_536 > self.max_packet && self.buffer.bytes.len() > most {
            return Err(Error::data("the row is longer than the server's max_allowed_packet")
                .with_hint("raise max_allowed_packet on the server")
                .at(Place { row: Some(self.rows), ..Place::default() }));
        }
        Ok(())
    }

    /// Inserts the rows in the first `end` bytes, which are those before `row`.
    fn insert(&mut self, connection: &mut Connection, end: usize, row: u64) -> Result<()> {
        let names = column_names(&self.encoders);
        let mut statement = format!("INSERT INTO {} ({names}) VALUES ", self.table).into_bytes();
        // Without the last comma.
        statement.extend_from_slice(&self.buffer.bytes[..end - 1]);
        self.buffer.bytes.drain(..end);
        let done = connection.insert(&statement).map_err(|error| self.locate(error))?;
        self.confirm(connection, &done, row)
    }

    /// Every row before `row` has to be in the table as it came.
    fn confirm(&mut self, connection: &mut Connection, done: &Done, row: u64) -> Result<()> {
        let arrived = check_arrived(connection, done, Some(row - self.confirmed), &self.table);
        arrived.map_err(|error| self.locate(error))?;
        self.confirmed = row;
        Ok(())
    }

    /// The server's error with the column and row that its words name.
    fn locate(&self, error: Error) -> Error {
        let (column, row) = location(error.message());
        let row = row.map(|row| self.confirmed + row);
        match column.and_then(|name| self.encoders.iter().find(|it| it.column.name == name)) {
            Some(encoder) => error.at(encoder.place(row)),
            None if row.is_some() => error.at(Place { row, ..Place::default() }),
            None => error,
        }
    }
}

/// The names of the table's columns, for a statement.
pub(super) fn column_names(encoders: &[Encoder]) -> String {
    encoders.iter().map(|it| quoted_name(&it.column.name)).collect::<Vec<_>>().join(", ")
}

/// Refuses the end of a statement that has not written each of `rows` as it came; `None` for a statement that updates.
///
/// A file that is loaded has its bad values changed and its duplicates left out, and warnings say so.
pub(super) fn check_arrived(
    connection: &mut Connection,
    done: &Done,
    rows: Option<u64>,
    table: &str,
) -> Result<()> {
    let warnings = if done.warnings == 0 { Vec::new() } else { connection.show_warnings()? };
    if let Some(warning) = warnings.iter().find(|warning| warning.is_of_values()) {
        return Err(message::warning(warning.code, &warning.text));
    }
    // A session may keep no warnings: their number alone is left then.
    let is_clean = done.warnings == 0 || !warnings.is_empty();
    let Some(rows) = rows else { return Ok(()) };
    if is_clean && done.affected == rows && counts_are(&done.info, rows) {
        return Ok(());
    }
    let text = format!("{} of {rows} rows arrived in {table} ({})", done.affected, done.info);
    Err(Error::new(Kind::Integrity, text)
        .with_hint("a unique index, a check or a trigger has kept the others out"))
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines of a file, whose texts are bytes without a character set.
    File,
    /// Literals of a statement, as `sql_mode` has them that [`Server::begin`] sets.
    Literals,
}

/// Rows on their way to the server.
#[derive(Debug)]
pub(super) struct LoadBuffer {
    pub(super) bytes: Vec<u8>,
    form: Form,
}

impl LoadBuffer {
    pub(super) fn new(form: Form) -> Self {
        Self { bytes: Vec::new(), form }
    }

    pub(super) fn begin_row(&mut self) {
        if self.form == Form::Literals {
            self.bytes.push(b'(');
        }
    }

    pub(super) fn separator(&mut self) {
        self.bytes.push(if self.form == Form::File { b'\t' } else { b',' });
    }

    pub(super) fn end_row(&mut self) {
        self.bytes.extend_from_slice(if self.form == Form::File { b"\n" } else { b")," });
    }

    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(if self.form == Form::File { b"\\N" } else { b"NULL" });
    }

    pub(super) fn integer(&mut self, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.digits(value),
            Err(_) => self.digits(value),
        }
    }

    fn digits(&mut self, value: impl itoa::Integer) {
        self.number(itoa::Buffer::new().format(value));
    }

    /// A decimal of `scale` digits behind the point.
    pub(super) fn decimal(&mut self, value: i128, scale: u8) {
        let beyond = u64::try_from(value.unsigned_abs()).ok().zip(10_u64.checked_pow(scale.into()));
        let Some((digits, power)) = beyond else {
            let mut text = String::new();
            push_number(&mut text, &Item::Decimal(value, i8::try_from(scale).unwrap_or(i8::MAX)));
            self.number(&text);
            return;
        };
        if value < 0 {
            self.bytes.push(b'-');
        }
        self.digits(digits / power);
        if scale > 0 {
            self.bytes.push(b'.');
            let rest = digits % power;
            let missing = usize::from(scale) - rest.checked_ilog10().map_or(1, |log| log as usize + 1);
            self.bytes.extend(std::iter::repeat_n(b'0', missing));
            self.digits(rest);
        }
    }

    /// A double, by the shortest text that is this one and no other.
    pub(super) fn double(&mut self, value: f64) {
        // A Vec takes all that is written.
        let _ = write!(self.bytes, "{value:e}");
    }

    /// A number's own digits.
    pub(super) fn number(&mut self, digits: &str) {
        self.bytes.extend_from_slice(digits.as_bytes());
    }

    /// Text that nothing has to be escaped in.
    pub(super) fn plain(&mut self, text: &str) {
        let quote: &[u8] = if self.form == Form::File { b"" } else { b"'" };
        self.bytes.extend_from_slice(quote);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(quote);
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.form {
            Form::File => self.escape(text.as_bytes(), in_file),
            Form::Literals => {
                self.bytes.push(b'\'');
                self.escape(text.as_bytes(), in_literal);
                self.bytes.push(b'\'');
            }
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        match self.form {
            Form::File => self.escape(bytes, in_file),
            Form::Literals => {
                self.bytes.extend_from_slice(b"x'");
                let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
                self.bytes.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                self.bytes.push(b'\'');
            }
        }
    }

    fn escape(&mut self, bytes: &[u8], escape: fn(u8) -> Option<u8>) {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(letter) = escape(*byte) {
                self.bytes.extend_from_slice(&bytes[from..at]);
                self.bytes.extend_from_slice(&[b'\\', letter]);
                from = at + 1;
            }
        }
        self.bytes.extend_from_slice(&bytes[from..]);
    }
}

/// The byte that follows the backslash, where a byte needs one.
#[inline]
fn in_file(byte: u8) -> Option<u8> {
    match byte {
        b'\\' => Some(b'\\'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0 => Some(b'0'),
        _ => None,
    }
}

#[inline]
fn in_literal(byte: u8) -> Option<u8> {
    match byte {
        b'\\' => Some(b'\\'),
        b'\'' => Some(b'\''),
        0 => Some(b'0'),
        _ => None,
    }
}

/// Whether the counts of a loaded file say that each of `rows` has arrived. Their words are in the server's language; they
/// are of records, deleted ones, skipped ones and warnings.
fn counts_are(info: &str, rows: u64) -> bool {
    let mut counts = info.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok());
    info.is_empty() || (counts.next() == Some(rows) && counts.all(|count: u64| count == 0))
}

/// The column and row, from 0, that an error names: `... for column 'a' at row 3`.
fn location(text: &str) -> (Option<&str>, Option<u64>) {
    let row = text.rsplit_once(" at row ").and_then(|(_, rest)| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<u64>().ok()?.checked_sub(1)
    });
    (column(text), row)
}

/// MySQL has the column's name, MariaDB for some also the table's before it.
fn column(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.rsplit_once("column '") {
        let end = rest.rfind("' at row").or_else(|| rest.find('\''))?;
        return Some(&rest[..end]);
    }
    let (_, rest) = text.rsplit_once("column `")?;
    let end = rest.rfind("` at row")?;
    rest[..end].rsplit("`.`").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(form: Form) -> String {
        let mut buffer = LoadBuffer::new(form);
        buffer.begin_row();
        buffer.null();
        buffer.separator();
        buffer.integer(i64::MIN.into());
        buffer.separator();
        buffer.integer(u64::MAX.into());
        buffer.separator();
        buffer.double(-1e300);
        buffer.separator();
        buffer.decimal(-105, 2);
        buffer.separator();
        buffer.decimal(100, 2);
        buffer.separator();
        buffer.decimal(i128::MAX, 38);
        buffer.separator();
        buffer.plain("2020-01-01");
        buffer.separator();
        buffer.text("it's\ta\\b\n\0");
        buffer.separator();
        buffer.raw(b"\xff\t");
        buffer.end_row();
        String::from_utf8_lossy(&buffer.bytes).into_owned()
    }

    #[test]
    fn what_would_end_a_cell_is_escaped() {
        assert_eq!(
            rows(Form::File),
            "\\N\t-9223372036854775808\t18446744073709551615\t-1e300\t-1.05\t1.00\t1.70141183460469231731687303715884105727\t2020-01-01\tit's\\ta\\\\b\\n\\0\t\u{fffd}\\t\n"
        );
        assert_eq!(
            rows(Form::Literals),
            "(NULL,-9223372036854775808,18446744073709551615,-1e300,-1.05,1.00,1.70141183460469231731687303715884105727,'2020-01-01','it\\'s\ta\\\\b\n\\0',x'ff09'),"
        );
    }

    #[test]
    fn columns_and_rows_are_found() {
        for (text, column, row) in [
            ("Out of range value for column 'a' at row 3", Some("a"), Some(2)),
            ("Incorrect integer value: 'x' for column `test`.`t`.`a b` at row 1", Some("a b"), Some(0)),
            ("Data too long for column 'it's' at row 12 (error 1406)", Some("it's"), Some(11)),
            ("Duplicate entry '1' for key 'PRIMARY'", None, None),
            ("Field 'b' doesn't have a default value", None, None),
        ] {
            let found = location(text);
            assert_eq!(found.1, row, "{text}");
            assert_eq!(found.0, column, "{text}");
        }
    }

    #[test]
    fn counts_are_all_or_something_is_wrong() {
        assert!(counts_are("Records: 3  Deleted: 0  Skipped: 0  Warnings: 0", 3));
        assert!(counts_are("", 3));
        assert!(!counts_are("Records: 3  Deleted: 0  Skipped: 1  Warnings: 1", 3));
        assert!(!counts_are("Records: 2  Deleted: 0  Skipped: 0  Warnings: 0", 3));
    }
}
