//! Batches -> the rows of a COPY (PostgreSQL documentation, COPY, "File Formats").

use arrow_array::RecordBatch;
use arrow_schema::FieldRef;
use longshore_cells::{Item, Items, Odd};
use longshore_core::{Error, Load, Place, Result};

use super::swift::Swift;
use super::target::Target;
use super::{binary, fit, place, text, value};
use crate::connection::Connection;
use crate::types::Type;

/// A message of rows is sent when it has about so many bytes.
const FLUSH: usize = 256 << 10;

/// The signature of the binary format, its flags, and the length of an extension that there is not.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What is there instead of a row's number of columns at the end.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// The tag and the length of a `CopyData` message, which is known once the message is full.
const HEADER: usize = 5;

/// One column, and what it goes into.
struct Column {
    field: FieldRef,
    native: Type,
    is_key: bool,
}

/// Rows on their way.
pub(super) struct Rows {
    columns: Vec<Column>,
    /// Whether every column has a binary form here. Else all are texts, which the server parses.
    is_binary: bool,
    message: Vec<u8>,
    /// Scratch for one cell's text.
    cell: String,
    count: u64,
}

impl Rows {
    /// Rows of the load's columns into those of `target`.
    pub(super) fn new(load: &Load, target: &Target) -> Self {
        let pairs = load.schema.fields().iter().zip(&target.columns);
        let is_binary = pairs.clone().all(|(field, column)| binary::suits(field, &column.native));
        let column = |(field, column): (&FieldRef, &super::target::Column)| Column {
            field: field.clone(),
            native: column.native.clone(),
            is_key: load.key.contains(field.name()),
        };
        let mut message = Vec::with_capacity(FLUSH + FLUSH / 4);
        message.extend_from_slice(b"d\0\0\0\0");
        if is_binary {
            message.extend_from_slice(SIGNATURE);
        }
        Self { columns: pairs.map(column).collect(), is_binary, message, cell: String::new(), count: 0 }
    }

    /// The statement that begins the COPY into `table`, a quoted name.
    pub(super) fn statement(&self, table: &str, target: &Target) -> String {
        let format = if self.is_binary { "binary" } else { "text" };
        format!("COPY {table} ({}) FROM STDIN (FORMAT {format})", target.names())
    }

    /// Rows so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Sends the rows of `batch`.
    pub(super) fn push(&mut self, batch: &RecordBatch, connection: &mut Connection) -> Result<()> {
        let columns = self.columns.iter().zip(batch.columns());
        let items =
            columns.map(|(column, array)| Items::new(array, &column.field)).collect::<Result<Vec<_>>>()?;
        let swift: Vec<_> = if self.is_binary {
            self.columns.iter().zip(&items).map(|(it, items)| Swift::of(items, &it.native)).collect()
        } else {
            Vec::new()
        };
        for row in 0..batch.num_rows() {
            if self.is_binary {
                self.binary_row(&items, &swift, row)?;
            } else {
                self.text_row(&items, row)?;
            }
            if self.message.len() >= FLUSH {
                self.send(connection)?;
            }
        }
        self.count += batch.num_rows() as u64;
        Ok(())
    }

    fn binary_row(&mut self, items: &[Items<'_>], swift: &[Option<Swift<'_>>], row: usize) -> Result<()> {
        let Self { columns, message, count, .. } = self;
        let number = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        message.extend_from_slice(&number.to_be_bytes());
        for ((column, items), swift) in columns.iter().zip(items).zip(swift) {
            let put = match swift {
                Some(swift) => swift.put(row, &column.native, message),
                None => column.put(&items.get(row), message),
            };
            put.map_err(|odd| fault(odd, column, *count + row as u64, &items.get(row)))?;
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
                .and_then(|()| fit::check(&item, &column.native))
                .and_then(|()| text::put(&item, &column.field, &column.native, cell));
            match put {
                Ok(true) => value::escape(cell, message),
                Ok(false) => message.extend_from_slice(b"\\N"),
                Err(odd) => return Err(fault(odd, column, *count + row as u64, &item)),
            }
        }
        message.push(b'\n');
        Ok(())
    }

    fn send(&mut self, connection: &mut Connection) -> Result<()> {
        let length = u32::try_from(self.message.len() - 1)
            .map_err(|_| Error::data("a row is longer than PostgreSQL's messages may be"))?;
        self.message[1..HEADER].copy_from_slice(&length.to_be_bytes());
        connection.copy_data(&self.message)?;
        self.message.truncate(HEADER);
        Ok(())
    }

    /// Sends what is left, and waits until the server has taken all.
    pub(super) fn end(&mut self, connection: &mut Connection) -> Result<()> {
        if self.is_binary {
            self.message.extend_from_slice(&TRAILER);
        }
        if self.message.len() > HEADER {
            self.send(connection)?;
        }
        let names =
            |error: Error| place::located(error, &self.columns, |column| (&column.field, &column.native));
        let taken = connection.end_copy().map_err(names)?;
        refuse_fewer(&self.count.to_string(), taken)
    }
}

/// A trigger or a rule of the table may have left rows out.
pub(super) fn refuse_fewer(wanted: &str, taken: u64) -> Result<()> {
    if taken.to_string() == wanted {
        return Ok(());
    }
    Err(Error::data(format!("of {wanted} rows the table took {taken}"))
        .with_hint("a trigger or a rule of the table leaves rows out; nothing was written"))
}

impl Column {
    fn put(&self, item: &Item<'_>, message: &mut Vec<u8>) -> Result<(), Odd> {
        self.refuse_null(item)?;
        binary::put(&self.native, item, message)
    }

    /// Equal keys could not be told apart.
    fn refuse_null(&self, item: &Item<'_>) -> Result<(), Odd> {
        if self.is_key && matches!(item, Item::Null) {
            return Err(Odd::with_hint("a key cannot be NULL", "drop such rows, or choose another key"));
        }
        Ok(())
    }
}

#[cold]
fn fault(odd: Odd, column: &Column, row: u64, item: &Item<'_>) -> Error {
    let place = Place {
        column: Some(column.field.name().clone()),
        row: Some(row),
        native_type: Some(column.native.label()),
    };
    let (what, hint) = match odd {
        Odd::Fault(fault) => *fault,
        Odd::Null => ("the value cannot be written".into(), None),
    };
    let error = Error::data(format!("{}: {what}", item.shown()));
    match hint {
        Some(hint) => error.with_hint(hint).at(place),
        None => error.at(place),
    }
}
