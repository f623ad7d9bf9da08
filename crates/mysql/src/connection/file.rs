//! Files that the server asks for (`LOAD DATA LOCAL INFILE`): rows of ours, and nothing else.

use longshore_core::{Error, Kind, Result};

use super::{Connection, Exchange, command};
use crate::message::{Answer, Done, capability};
use crate::packet::{self, HEADER, Sequence, broken};

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
