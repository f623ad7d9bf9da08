//! Where messages begin and end (PostgreSQL documentation, chapter "Message Formats").

use std::ops::Range;

use longshore_core::Result;

use crate::connection::message::{Frame, header};

/// A row.
const DATA_ROW: u8 = b'D';

/// A statement's columns.
const ROW_DESCRIPTION: u8 = b'T';

/// The end of an exchange: what comes next answers another request.
const READY_FOR_QUERY: u8 = b'Z';

/// The kind of the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A whole row's message.
    Row(Range<usize>),
    /// A whole description of a statement's columns.
    Description(Range<usize>),
    /// A message that is neither, or a part of one.
    Other(Range<usize>),
}

/// Messages that are told apart, and waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Rows.
    pub rows: bool,
    /// Descriptions.
    pub descriptions: bool,
}

/// Keeps count of messages on their way through.
#[derive(Debug, Default)]
pub struct Splitter {
    /// Bytes of the message that began in an earlier piece.
    owed: usize,
    ready: bool,
}

impl Splitter {
    /// The piece at `at`; `None` where more bytes are needed.
    #[inline]
    pub fn next(&mut self, bytes: &[u8], at: usize, wanted: Wanted) -> Result<Option<Piece>> {
        if self.owed > 0 {
            return Ok(self.pass(bytes, at));
        }
        let Some(Frame { tag, length }) = header(&bytes[at..])? else { return Ok(None) };
        let whole = (bytes.len() - at >= length).then_some(at..at + length);
        if tag == DATA_ROW && wanted.rows {
            return Ok(whole.map(Piece::Row));
        }
        if tag == ROW_DESCRIPTION && wanted.descriptions {
            return Ok(whole.map(Piece::Description));
        }
        self.ready |= tag == READY_FOR_QUERY;
        self.owed = length;
        Ok(self.pass(bytes, at))
    }

    fn pass(&mut self, bytes: &[u8], at: usize) -> Option<Piece> {
        let length = self.owed.min(bytes.len() - at);
        self.owed -= length;
        (length > 0).then(|| Piece::Other(at..at + length))
    }

    /// Whether an exchange has ended since the last call.
    pub fn take_ready(&mut self) -> bool {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag], length.to_be_bytes().as_slice(), body].concat()
    }

    const ROWS: Wanted = Wanted { rows: true, descriptions: false };
    const NONE: Wanted = Wanted { rows: false, descriptions: false };

    /// The wanted bytes of `stream`, received up to each of `ends`, and the other bytes.
    fn split(stream: &[u8], ends: impl Iterator<Item = usize>, wanted: Wanted) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut splitter, mut at) = (Splitter::default(), 0);
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for end in ends {
            while let Some(piece) = splitter.next(&stream[..end], at, wanted).unwrap() {
                match piece {
                    Piece::Row(range) | Piece::Description(range) => {
                        at = range.end;
                        found.push(stream[range].to_vec());
                    }
                    Piece::Other(range) => {
                        at = range.end;
                        others.extend_from_slice(&stream[range]);
                    }
                }
            }
        }
        (found, others)
    }

    #[test]
    fn rows_are_told_apart_wherever_the_stream_is_cut() {
        let (bind, row, empty) = (message(b'2', b""), message(b'D', b"a row"), message(b'D', b""));
        let (notice, end) = (message(b'N', &[7; 300]), message(b'Z', b"I"));
        let stream = [&bind, &row, &notice, &empty, &row, &end].map(Vec::as_slice).concat();
        let rest = [bind, notice, end].concat();
        for cut in 0..=stream.len() {
            let (rows, others) = split(&stream, [cut, stream.len()].into_iter(), ROWS);
            assert_eq!((rows.len(), &others), (3, &rest));
            assert_eq!(split(&stream, [cut, stream.len()].into_iter(), NONE), (vec![], stream.clone()));
        }
        let (rows, others) = split(&stream, 1..=stream.len(), ROWS);
        assert_eq!((rows, others), (vec![row.clone(), empty, row], rest));
    }

    #[test]
    fn descriptions_are_told_apart_wherever_the_stream_is_cut() {
        let (parsed, description, end) = (message(b'1', b""), message(b'T', b"columns"), message(b'Z', b"I"));
        let stream = [&parsed, &description, &end].map(Vec::as_slice).concat();
        let wanted = Wanted { rows: false, descriptions: true };
        for cut in 0..=stream.len() {
            let (found, others) = split(&stream, [cut, stream.len()].into_iter(), wanted);
            assert_eq!((found, others), (vec![description.clone()], [&parsed[..], &end].concat()));
            assert_eq!(split(&stream, [cut, stream.len()].into_iter(), ROWS), (vec![], stream.clone()));
        }
    }

    #[test]
    fn the_end_of_an_exchange_is_told_once() {
        let mut splitter = Splitter::default();
        let stream = message(b'Z', b"I");
        assert_eq!(splitter.next(&stream[..5], 0, ROWS).unwrap(), Some(Piece::Other(0..5)));
        assert!(splitter.take_ready());
        assert_eq!(splitter.next(&stream, 5, ROWS).unwrap(), Some(Piece::Other(5..6)));
        assert!(!splitter.take_ready());
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for length in [0_u32, 3, 0x7fff_ffff, u32::MAX] {
            let stream = [b"D".as_slice(), &length.to_be_bytes()].concat();
            assert!(Splitter::default().next(&stream, 0, ROWS).is_err(), "{length}");
        }
    }
}
