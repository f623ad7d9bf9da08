//! Statements of the library's own: lookups, scripts, and the file of `LOAD DATA LOCAL INFILE`.

use longshore_core::{Error, Result};

use super::{Connection, Exchange, cleanup, command};
use crate::message::{Answer, Done, capability};
use crate::packet::{self, HEADER, Reader, Sequence, protocol_error};

/// A row of a lookup, in text.
pub(crate) type TextRow = Vec<Option<String>>;

impl Connection {
    /// Runs a statement that returns nothing of interest.
    pub(crate) fn run(&mut self, text: &str) -> Result<()> {
        self.query(text)?;
        self.finish().map(drop)
    }

    /// Begins a transaction whose snapshot is that of now. It is only as good as the isolation level, which may be another
    /// by default.
    pub(crate) fn begin_snapshot(&mut self) -> Result<()> {
        self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    }

    /// The rows of a statement of ours.
    pub(crate) fn rows(&mut self, text: &str) -> Result<Vec<TextRow>> {
        self.table(text).map(|(_, rows)| rows)
    }

    /// The first cell of its rows.
    pub(crate) fn value(&mut self, text: &str) -> Result<Option<String>> {
        Ok(self.rows(text)?.into_iter().flatten().next().flatten())
    }

    /// The cells of some of its columns, which are known by their names alone.
    pub(crate) fn cells_by_name<const N: usize>(
        &mut self,
        text: &str,
        wanted: [&str; N],
    ) -> Result<Vec<[Option<String>; N]>> {
        let (names, rows) = self.table(text)?;
        let at = wanted.map(|wanted| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)));
        Ok(rows.iter().map(|row| at.map(|at| row.get(at?)?.clone())).collect())
    }

    /// The names of its columns, and the rows.
    pub(crate) fn table(&mut self, text: &str) -> Result<(Vec<String>, Vec<TextRow>)> {
        self.query(text)?;
        let columns = self.columns()?.unwrap_or_default();
        let mut rows = Vec::new();
        self.each_row(|row| text_row(row, columns.len()).map(|row| rows.push(row)))?;
        self.finish()?;
        Ok((columns.into_iter().map(|column| column.name).collect(), rows))
    }

    /// The texts of the only column of a statement of ours, which has parameters.
    pub(crate) fn texts(&mut self, text: &str, bound: &[u8]) -> Result<Vec<Option<String>>> {
        let prepared = self.prepare(text)?;
        let sent = self.execute(prepared.id, bound);
        self.close(prepared.id);
        sent?;
        let mut texts = Vec::new();
        self.columns()?;
        self.each_row(|row| only_text(row).map(|text| texts.push(text)))?;
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
        _ => Err(protocol_error("a row that is not of one column")),
    }
}

pub(crate) fn text_row(payload: &[u8], columns: usize) -> Result<TextRow> {
    let mut reader = Reader::new(payload);
    let mut cell = || Ok(reader.cell()?.map(|cell| String::from_utf8_lossy(cell).into_owned()));
    (0..columns).map(|_| cell()).collect()
}

impl Connection {
    /// Runs the statements of a script. An error says which one has failed; a CALL counts as many as it has results.
    pub(crate) fn script(&mut self, text: &str) -> Result<()> {
        self.take_several(true)?;
        let mut done = 0;
        let ran = self.query(text).and_then(|()| self.results(&mut done));
        let ran = ran.map_err(|error| error.within(format!("statement {}", done + 1)));
        // For every other text the server takes one statement, as before.
        if ran.is_ok() || self.stop() {
            let deadline = self.set_deadline(cleanup());
            self.is_dead |= self.take_several(false).is_err();
            self.deadline = deadline;
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
                    self.each_row(|_| Ok(()))?;
                }
                Answer::File(_) => return Err(self.refuse_file()),
            }
            *done += 1;
        }
        Ok(())
    }

    /// Has the server take several statements in one text, or one.
    pub(super) fn take_several(&mut self, several: bool) -> Result<()> {
        self.send(command::SET_OPTION, &u16::from(!several).to_le_bytes(), Exchange::Answer)?;
        let length = self.receive()?;
        match self.payload(length).first() {
            // The mark of an end without rows, or of a statement's.
            Some(0xfe | 0) => {
                self.consume(HEADER + length);
                self.exchange = Exchange::Idle;
                Ok(())
            }
            _ => Err(protocol_error("an unknown answer to an option")),
        }
    }
}

/// The name under which the server asks for rows of ours; no file is ever opened.
pub(crate) const FILE: &str = "longshore";

/// Bytes of a packet: less than any server's `max_allowed_packet` is in earnest.
const PACKET: usize = 256 << 10;

impl Connection {
    /// Whether rows can go as a file, whose packets go on from an answer: compressed frames have no such thing.
    pub(crate) fn offers_files(&self) -> bool {
        self.capabilities() & capability::LOCAL_FILES != 0 && !self.link.channel.is_compressed()
    }

    /// Runs a statement that loads [`FILE`], whose bytes come next.
    pub(crate) fn begin_file(&mut self, statement: &str) -> Result<()> {
        self.send(command::QUERY, statement.as_bytes(), Exchange::Answer)?;
        match self.answer()? {
            Answer::File(name) if name == FILE => Ok(()),
            Answer::File(_) => Err(self.refuse_file()),
            Answer::Done(_) | Answer::Columns(_) => {
                Err(protocol_error("no request for the rows that are to come"))
            }
        }
    }

    /// Sends some of the file's bytes, in `buffer`, which is used again.
    pub(crate) fn send_file(&mut self, bytes: &[u8], most: usize, buffer: &mut Vec<u8>) -> Result<()> {
        for piece in bytes.chunks(most.clamp(1, PACKET)) {
            self.check()?;
            self.send_piece(piece, buffer)?;
        }
        Ok(())
    }

    fn send_piece(&mut self, piece: &[u8], buffer: &mut Vec<u8>) -> Result<()> {
        let Sequence::Next(number) = self.sequence else {
            return Err(protocol_error("a file without a number"));
        };
        buffer.clear();
        packet::append(piece, number, buffer);
        debug_assert_eq!(buffer.len(), piece.len() + HEADER);
        self.sequence = Sequence::Next(number.wrapping_add(1));
        let sent = self.link.channel.send_packets(buffer, &self.deadline);
        // Half a packet may be out: nothing can follow it.
        self.is_dead |= sent.is_err();
        sent
    }

    /// Tells the server that the file has ended; its answer comes next.
    pub(super) fn end_of_file(&mut self) -> Result<()> {
        if !self.link.channel.is_compressed() {
            self.exchange = Exchange::Answer;
            return self.send_piece(&[], &mut Vec::new());
        }
        self.is_dead = true;
        Err(protocol_error("a request for a local file, which was never offered"))
    }

    /// Ends the file, and gives what the server says of it.
    pub(crate) fn end_file(&mut self) -> Result<Done> {
        self.end_of_file()?;
        self.read_end()
    }

    /// Gives the server an empty file, and the error that says so: it asks for one that is none of ours.
    pub(super) fn refuse_file(&mut self) -> Error {
        let answered = self.end_of_file().and_then(|()| self.answer());
        self.is_status_unknown = true;
        // A server that goes on asking is not listened to any longer.
        self.is_dead |= !matches!(answered, Ok(Answer::Done(_)) | Err(_));
        match answered {
            Err(error) if self.is_dead => error,
            _ => Error::not_supported("the server asks for a local file, which is refused")
                .with_hint("local files are never read: write_sql loads data that is in memory"),
        }
    }
}

/// A warning of the server's.
pub(crate) struct Warning {
    pub(crate) level: String,
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// Codes of warnings that are not about values: words and hints that the server deprecates, does not know or leaves out.
const NOT_OF_VALUES: [u16; 13] =
    [1064, 1287, 1681, 3126, 3127, 3128, 3129, 3130, 3131, 3132, 3133, 3719, 3778];

impl Warning {
    /// Whether it tells of a value, and not of the statement's words.
    pub(crate) fn is_of_values(&self) -> bool {
        !NOT_OF_VALUES.contains(&self.code)
    }
}

impl Connection {
    /// The warnings that the last statement has left behind: as many as a server keeps by default.
    pub(crate) fn show_warnings(&mut self) -> Result<Vec<Warning>> {
        let warning = |row: TextRow| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let (level, code, text) = (cells.next()?, cells.next()?, cells.next()?);
            Some(Warning { level, code: code.parse().unwrap_or_default(), text })
        };
        Ok(self.rows("SHOW WARNINGS LIMIT 64")?.into_iter().filter_map(warning).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_about_words_are_not_of_values() {
        let warning = |code| Warning { level: "Warning".into(), code, text: String::new() };
        // VALUES() is deprecated; a value was truncated.
        assert!(!warning(1287).is_of_values() && warning(1265).is_of_values());
    }
}
