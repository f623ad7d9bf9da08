//! Statements of our own: their rows are few, and are taken as texts.

use longshore_core::Result;

use super::{Connection, Exchange, is_row};
use crate::packet::{HEADER, broken};
use crate::reader::Reader;

/// A row of a lookup, in text.
pub(crate) type TextRow = Vec<Option<String>>;

impl Connection {
    /// Runs a statement that returns nothing of interest.
    pub(crate) fn run(&mut self, text: &str) -> Result<()> {
        self.query(text)?;
        self.finish().map(drop)
    }

    /// The rows of a statement of ours.
    pub(crate) fn rows(&mut self, text: &str) -> Result<Vec<TextRow>> {
        self.table(text).map(|(_, rows)| rows)
    }

    /// The names of its columns, and the rows.
    pub(crate) fn table(&mut self, text: &str) -> Result<(Vec<String>, Vec<TextRow>)> {
        self.query(text)?;
        let (mut names, mut rows) = (Vec::new(), Vec::new());
        if let Some(columns) = self.columns()? {
            names = columns.iter().map(|column| column.name.clone()).collect();
            while self.exchange == Exchange::Rows {
                let length = self.receive()?;
                if is_row(self.payload(length)) {
                    rows.push(text_row(self.payload(length), columns.len())?);
                    self.consume(HEADER + length);
                } else {
                    self.end_rows(length)?;
                }
            }
        }
        self.finish()?;
        Ok((names, rows))
    }

    /// The texts of the only column of a statement of ours, which has parameters.
    pub(crate) fn texts(&mut self, text: &str, bound: &[u8]) -> Result<Vec<Option<String>>> {
        let prepared = self.prepare(text)?;
        let sent = self.execute(prepared.id, bound);
        self.close(prepared.id);
        sent?;
        let mut texts = Vec::new();
        if self.columns()?.is_some() {
            while self.exchange == Exchange::Rows {
                let length = self.receive()?;
                if is_row(self.payload(length)) {
                    texts.push(only_text(self.payload(length))?);
                    self.consume(HEADER + length);
                } else {
                    self.end_rows(length)?;
                }
            }
        }
        self.finish()?;
        Ok(texts)
    }
}

/// The text of a binary row of one column.
fn only_text(payload: &[u8]) -> Result<Option<String>> {
    let mut reader = Reader::new(payload);
    match (reader.u8()?, reader.u8()?) {
        (0, 0b100) => Ok(None),
        (0, 0) => reader.text().map(Some),
        _ => Err(broken("a row that is not of one column")),
    }
}

pub(crate) fn text_row(payload: &[u8], columns: usize) -> Result<TextRow> {
    let mut reader = Reader::new(payload);
    let mut cell = || Ok(reader.cell()?.map(|cell| String::from_utf8_lossy(cell).into_owned()));
    (0..columns).map(|_| cell()).collect()
}
