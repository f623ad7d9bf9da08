//! A result's packets: a first pass finds each cell of its rows, and the server's own end is the result's.

use std::sync::Arc;

use longshore_core::memory::Budget;
use longshore_core::{Error, Result, Session, Warnings};
use longshore_source::rows::{RowWire, Stop};
use longshore_values::{Assembly, Span, Spans};

use crate::connection::{Connection, is_row};
use crate::decode::Format;
use crate::packet::{FULL, HEADER, Sequence, header, protocol_error};
use crate::session::MySqlSession;
use crate::types::Width;

/// A session whose server sends a result's rows.
pub(crate) struct ResultWire {
    pub(crate) session: MySqlSession,
    pub(crate) layout: Layout,
    pub(crate) warnings: Arc<Warnings>,
}

impl RowWire for ResultWire {
    /// The length of its payload.
    type Message = usize;

    fn bytes(&self) -> &[u8] {
        self.session.connection.bytes()
    }

    fn consume(&mut self, count: usize) {
        self.session.connection.consume(count);
    }

    fn has_room(&self) -> bool {
        self.session.connection.has_room()
    }

    fn fill(&mut self, budget: &Budget) -> Result<()> {
        budget.ask(self.session.connection.growth())?;
        self.session.connection.fill().map(drop)
    }

    fn check(&self) -> Result<()> {
        self.session.connection.check()
    }

    fn index(&mut self, at: &mut usize, spans: &mut Spans, most: usize) -> Result<Stop<usize>> {
        let connection = &mut self.session.connection;
        loop {
            let mut sequence = connection.sequence;
            let found = self.layout.index(connection.bytes(), at, &mut sequence, spans, most)?;
            connection.sequence = sequence;
            match found {
                Stop::Full => return Ok(Stop::Full),
                Stop::Starved => return Ok(Stop::Starved),
                Stop::Message(()) => {}
            }
            // A row in several packets, or another message.
            let counted = connection.sequence;
            let Some(length) = connection.message_at(*at)? else { return Ok(Stop::Starved) };
            let start = *at + HEADER;
            let bytes = &connection.bytes()[..start + length];
            if !is_row(&bytes[start..]) {
                // Counted once the rows before it are decoded: a failure of theirs must not have it counted twice.
                connection.sequence = counted;
                return Ok(Stop::Message(length));
            }
            self.layout.row(bytes, start, spans)?;
            *at = start + length;
        }
    }

    fn message(&mut self, length: usize, _rows: &Assembly) -> Result<bool> {
        let connection = &mut self.session.connection;
        connection.message_at(0)?;
        connection.end_rows(length)?;
        // What follows a procedure's result must be its end.
        if connection.has_more() && connection.columns()?.is_some() {
            return Err(Error::not_supported("the statement returns several results")
                .with_hint("have the procedure return one, or write them to tables and read these"));
        }
        if connection.warnings() > 0 && report_warnings(connection, &self.warnings).is_err() {
            // The rows are whole: only a deadline or an interrupt ends the read. A lost connection is the next statement's.
            connection.check()?;
        }
        Ok(true)
    }

    fn into_session(mut self) -> Option<Box<dyn Session>> {
        self.session.connection.stop().then(|| Box::new(self.session) as Box<dyn Session>)
    }
}

/// Reports the warnings that the statement has left behind, one of each code.
fn report_warnings(connection: &mut Connection, warnings: &Warnings) -> Result<()> {
    for warning in connection.show_warnings()? {
        if warning.level != "Note" && warning.is_of_values() {
            let (code, text) = (warning.code, warning.text);
            warnings.tell(&format!("warning {code}"), format!("the server warns: {text} (warning {code})"));
        }
    }
    Ok(())
}

/// How the cells of a result's rows lie in their packets.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    format: Format,
    widths: Vec<Width>,
}

impl Layout {
    pub(crate) fn new(format: Format, widths: Vec<Width>) -> Self {
        Self { format, widths }
    }

    /// The spans of rows from `at` on, which then is behind the last of them: no more than the chunk of `spans` may
    /// have rows, `most`.
    pub(crate) fn index(
        &self,
        bytes: &[u8],
        at: &mut usize,
        sequence: &mut Sequence,
        spans: &mut Spans,
        most: usize,
    ) -> Result<Stop<()>> {
        while spans.rows() < most {
            let rest = bytes.get(*at..).unwrap_or_default();
            let Some((length, number)) = header(rest) else { return Ok(Stop::Starved) };
            let end = *at + HEADER + length;
            if end > bytes.len() {
                return Ok(Stop::Starved);
            }
            let marker = rest.get(HEADER).copied();
            if length == FULL || matches!(marker, Some(0xfe | 0xff)) {
                return Ok(Stop::Message(()));
            }
            sequence.advance(number)?;
            self.row(&bytes[..end], *at + HEADER, spans)?;
            *at = end;
        }
        Ok(Stop::Full)
    }

    /// The spans of the row whose payload is the end of `bytes` from `start`.
    #[inline]
    pub(crate) fn row(&self, bytes: &[u8], start: usize, spans: &mut Spans) -> Result<()> {
        match self.format {
            Format::Binary => self.binary(bytes, start, spans),
            Format::Text => self.text(bytes, start, spans),
        }
    }

    /// A marker, a bit for each NULL, and the cells (MySQL Internals, "Binary Protocol Resultset Row").
    #[inline]
    fn binary(&self, bytes: &[u8], start: usize, spans: &mut Spans) -> Result<()> {
        let mask_length = (self.widths.len() + 7 + 2) / 8;
        let cells = start + 1 + mask_length;
        let Some([0, mask @ ..]) = bytes.get(start..cells) else { return Err(damage()) };
        let mut at = cells;
        for (column, width) in self.widths.iter().enumerate() {
            let bit = column + 2;
            if mask[bit / 8] >> (bit % 8) & 1 == 1 {
                spans.set(column, Span::NULL);
                continue;
            }
            let length = match width {
                Width::Fixed(length) => usize::from(*length),
                Width::Byte => {
                    let length = bytes.get(at).copied().ok_or_else(damage)?;
                    at += 1;
                    usize::from(length)
                }
                Width::Counted => read_length(bytes, &mut at)?.ok_or_else(damage)?,
            };
            at = set(spans, column, bytes, at, length)?;
        }
        end_row(spans, at == bytes.len())
    }

    /// Each cell behind its length (MySQL Internals, "Text Resultset Row").
    fn text(&self, bytes: &[u8], start: usize, spans: &mut Spans) -> Result<()> {
        let mut at = start;
        for column in 0..self.widths.len() {
            match read_length(bytes, &mut at)? {
                None => spans.set(column, Span::NULL),
                Some(length) => at = set(spans, column, bytes, at, length)?,
            }
        }
        end_row(spans, at == bytes.len())
    }
}

#[inline]
fn set(spans: &mut Spans, column: usize, bytes: &[u8], at: usize, length: usize) -> Result<usize> {
    let end = at.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(damage)?;
    // A message is shorter than 2 GiB, and so is what of the inbox is indexed before it.
    let place =
        |place: usize| u32::try_from(place).map_err(|_| protocol_error("rows of more than 4 GiB at once"));
    spans.set(column, Span::new(place(at)?, place(length)?));
    Ok(end)
}

#[inline]
fn end_row(spans: &mut Spans, is_whole: bool) -> Result<()> {
    if !is_whole {
        return Err(damage());
    }
    spans.end_row();
    Ok(())
}

/// A length at `at`, which then is behind it; `None` for NULL.
#[inline]
fn read_length(bytes: &[u8], at: &mut usize) -> Result<Option<usize>> {
    let first = bytes.get(*at).copied().ok_or_else(damage)?;
    *at += 1;
    if first < 0xfb {
        return Ok(Some(first.into()));
    }
    let wide = match first {
        0xfb => return Ok(None),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return Err(damage()),
    };
    let digits = bytes.get(*at..*at + wide).ok_or_else(damage)?;
    *at += wide;
    let length = digits.iter().rev().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
    usize::try_from(length).map(Some).map_err(|_| damage())
}

#[cold]
fn damage() -> Error {
    protocol_error("a row whose cells do not fill its packet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans_of(layout: &Layout, payload: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut spans = Spans::new(layout.widths.len());
        layout.row(payload, 0, &mut spans)?;
        let cell = |column| spans.column(column, payload).iter().next().flatten().map(<[u8]>::to_vec);
        Ok((0..layout.widths.len()).map(cell).collect())
    }

    #[test]
    fn binary_rows_fall_into_their_cells() {
        let layout =
            Layout::new(Format::Binary, vec![Width::Fixed(2), Width::Counted, Width::Byte, Width::Counted]);
        let row = [0, 0b10_0000, 1, 2, 2, b'a', b'b', 0];
        assert_eq!(
            spans_of(&layout, &[&row[..6], &[b'b', 0]].concat()).unwrap(),
            [Some(vec![1, 2]), Some(b"ab".to_vec()), Some(vec![]), None]
        );
        for cut in 0..row.len() {
            assert!(spans_of(&layout, &row[..cut]).is_err(), "{cut}");
        }
        assert!(spans_of(&layout, &[row.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn text_rows_fall_into_their_cells() {
        let layout = Layout::new(Format::Text, vec![Width::Fixed(1), Width::Counted]);
        assert_eq!(spans_of(&layout, &[0xfb, 1, b'x']).unwrap(), [None, Some(b"x".to_vec())]);
        let long = [&[0xfc, 0x2c, 0x01], [7; 300].as_slice(), &[0]].concat();
        assert_eq!(spans_of(&layout, &long).unwrap(), [Some(vec![7; 300]), Some(vec![])]);
        assert!(spans_of(&layout, &[0xff, 0]).is_err() && spans_of(&layout, &[0xfe, 1]).is_err());
        assert!(spans_of(&layout, &[0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 0]).is_err());
    }

    #[test]
    fn a_row_is_never_taken_for_an_end() {
        let layout = Layout::new(Format::Text, vec![Width::Counted]);
        let (mut at, mut sequence, mut spans) = (0, Sequence::Next(4), Spans::new(1));
        let bytes = [2, 0, 0, 4, 1, b'a', 7, 0, 0, 5, 0xfe, 0, 0, 0, 0, 0, 0];
        let stop = layout.index(&bytes, &mut at, &mut sequence, &mut spans, 9).unwrap();
        assert_eq!((stop, at, spans.rows()), (Stop::Message(()), 6, 1));
        assert_eq!(sequence, Sequence::Next(5));
    }
}
