//! Statements of the library's own: lookups, scripts, and the file of `LOAD DATA LOCAL INFILE`.

use std::time::Duration;

use longshore_core::{Error, Kind, Result, Watch};

use super::{Connection, Exchange, command, is_row};
use crate::message::{Answer, Done, capability};
use crate::packet::{self, HEADER, Reader, Sequence, broken};

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

/// How long the server may take to set its option back, whatever the caller's own deadline is.
const SETTING: Duration = Duration::from_secs(2);

impl Connection {
    /// Runs the statements of a script. An error says which one has failed; a CALL counts as many as it has results.
    pub(crate) fn script(&mut self, text: &str) -> Result<()> {
        self.take_several(true)?;
        let mut done = 0;
        let ran = self.query(text).and_then(|()| self.results(&mut done));
        let ran = ran.map_err(|error| error.within(format!("statement {}", done + 1)));
        // For every other text the server takes one statement, as before.
        if ran.is_ok() || self.stop() {
            let watch = self.attend_for(Watch::never().at_most(SETTING));
            let set = self.take_several(false);
            self.attend(&watch);
            if set.is_err() {
                self.give_up();
            }
        }
        ran
    }

    /// Reads the results of all statements, and counts those that have ended well.
    fn results(&mut self, done: &mut usize) -> Result<()> {
        while self.exchange != Exchange::Idle {
            match self.answer()? {
                Answer::Done(_) => {}
                Answer::Columns(columns) => {
                    self.definitions(columns)?;
                    self.discard_rows()?;
                }
                Answer::File(_) => return Err(self.refuse_file()),
            }
            *done += 1;
        }
        Ok(())
    }

    /// Has the server take several statements in one text, or one.
    fn take_several(&mut self, several: bool) -> Result<()> {
        self.send(command::SET_OPTION, &u16::from(!several).to_le_bytes(), Exchange::Answer)?;
        let length = self.receive()?;
        match self.payload(length).first() {
            Some(0xff) => Err(self.take_error(length)),
            // The mark of an end without rows, or of a statement's.
            Some(0xfe | 0) => {
                self.consume(HEADER + length);
                self.exchange = Exchange::Idle;
                Ok(())
            }
            _ => Err(broken("an unknown answer to an option")),
        }
    }
}

/// The name under which the server asks for rows of ours; no file is ever opened.
pub(crate) const FILE: &str = "longshore";

/// Bytes of a packet: less than any server's `max_allowed_packet` is in earnest.
const PACKET: usize = 256 << 10;

impl Connection {
    /// Whether rows can go as a file. Compressed frames have no room for what goes on from an answer.
    pub(crate) fn offers_files(&self) -> bool {
        self.capabilities() & capability::LOCAL_FILES != 0 && !self.link.channel.is_compressed()
    }

    /// Runs a statement that loads [`FILE`], whose bytes come next.
    pub(crate) fn begin_file(&mut self, statement: &str) -> Result<()> {
        self.send(command::QUERY, statement.as_bytes(), Exchange::Answer)?;
        match self.answer()? {
            Answer::File(name) if name == FILE => Ok(()),
            Answer::File(_) => Err(self.refuse_file()),
            Answer::Done(_) | Answer::Columns(_) => Err(broken("no wish for the rows that are to come")),
        }
    }

    /// Sends some of the file's bytes, in `room`, which is used again.
    pub(crate) fn send_file(&mut self, bytes: &[u8], most: usize, room: &mut Vec<u8>) -> Result<()> {
        for piece in bytes.chunks(most.clamp(1, PACKET)) {
            self.check()?;
            self.send_piece(piece, room)?;
        }
        Ok(())
    }

    fn send_piece(&mut self, piece: &[u8], room: &mut Vec<u8>) -> Result<()> {
        let Sequence::Next(number) = self.sequence else { return Err(broken("a file without a number")) };
        room.clear();
        packet::append(piece, number, room);
        debug_assert_eq!(room.len(), piece.len() + HEADER);
        self.sequence = Sequence::Next(number.wrapping_add(1));
        let sent = self.link.channel.send_packets(room, &self.watch);
        // Half a packet may be out: nothing can follow it.
        self.cut |= sent.is_err();
        sent
    }

    /// Tells the server that the file has ended; its answer comes next.
    pub(super) fn end_of_file(&mut self) -> Result<()> {
        if !self.link.channel.is_compressed() {
            self.exchange = Exchange::Answer;
            return self.send_piece(&[], &mut Vec::new());
        }
        self.cut = true;
        Err(broken("a wish for a local file, which was never offered"))
    }

    /// Ends the file, and gives what the server says of it.
    pub(crate) fn end_file(&mut self) -> Result<Done> {
        self.end_of_file()?;
        match self.answer()? {
            Answer::Done(done) => Ok(done),
            _ => Err(broken("an unknown answer to a file")),
        }
    }

    /// Gives the server an empty file, and the error that says so: it asks for one that is none of ours.
    pub(super) fn refuse_file(&mut self) -> Error {
        let answered = self.end_of_file().and_then(|()| self.answer());
        self.uncertain = true;
        // A server that goes on asking is not listened to any longer.
        self.cut |= !matches!(answered, Ok(Answer::Done(_)) | Err(_));
        match answered {
            Err(error) if self.cut => error,
            _ => Error::new(Kind::NotSupported, "the server asks for a local file, which is refused")
                .with_hint("local files are never read: write_sql loads data that is in memory"),
        }
    }
}
