//! Frames of the protocol, version 3 (PostgreSQL documentation, chapter "Message Formats").

use longshore_core::{Error, Kind, Place, Result};
use longshore_source::rows::VIOLATION;

/// No message of the server is longer: a value is at most 1 GiB, a row a little more than that.
const LONGEST: usize = 0x7fff_ffff;

/// A message that lies complete at the start of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    /// Its length in all: tag, length word and body.
    pub(crate) length: usize,
}

/// Tag and length word.
pub const HEADER: usize = 5;

/// The frame at the start of `bytes`; `None` where more bytes are needed.
#[inline]
pub(crate) fn frame(bytes: &[u8]) -> Result<Option<Frame>> {
    Ok(header(bytes)?.filter(|frame| bytes.len() >= frame.length))
}

/// The same, whether all of it is there or not.
#[inline]
pub(crate) fn header(bytes: &[u8]) -> Result<Option<Frame>> {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let [tag, a, b, c, d] = *header;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..LONGEST).contains(&length) {
        return Err(protocol_error(format!("a message of type {:?} claims {length} bytes", char::from(tag))));
    }
    Ok(Some(Frame { tag, length: length + 1 }))
}

pub(crate) fn protocol_error(what: impl std::fmt::Display) -> Error {
    Error::operational(format!("the server's answer breaks the PostgreSQL protocol: {what}"))
        .with_sqlstate(VIOLATION)
        .with_hint(
            "check that host and port belong to a PostgreSQL server and that nothing in between alters bytes",
        )
}

pub(crate) fn unexpected_message(tag: u8, during: &str) -> Error {
    protocol_error(format!("message type {:?} during {during}", char::from(tag)))
}

/// Reads a message's body field by field; every lack of bytes is a protocol error.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| protocol_error("a message ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| protocol_error("a message ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn i16(&mut self) -> Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A text that ends at a zero byte; what is not UTF-8 is replaced, as in messages of a server that has not
    /// yet been told the client's encoding.
    pub(crate) fn text(&mut self) -> Result<String> {
        self.name().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// The bytes of such a text.
    pub(crate) fn name(&mut self) -> Result<&'a [u8]> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| protocol_error("a text without its end"))?;
        let name = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(name)
    }

    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The error that an `ErrorResponse` body tells of (chapter "Error and Notice Message Fields").
pub(crate) fn server_error(body: &[u8]) -> Error {
    fields(body).unwrap_or_else(|broken| broken)
}

fn fields(body: &[u8]) -> Result<Error> {
    let mut reader = Reader::new(body);
    let (mut message, mut sqlstate, mut detail, mut hint) = (String::new(), String::new(), None, None);
    let (mut context, mut position, mut column) = (None, None, None);
    loop {
        match reader.u8()? {
            0 => break,
            b'M' => message = reader.text()?,
            b'C' => sqlstate = reader.text()?,
            b'D' => detail = Some(reader.text()?),
            b'H' => hint = Some(reader.text()?),
            b'W' => context = Some(reader.text()?),
            b'P' => position = reader.text()?.parse().ok(),
            b'c' => column = Some(reader.text()?),
            _ => drop(reader.text()?),
        }
    }
    let mut error = Error::new(kind(&sqlstate), message).with_sqlstate(sqlstate);
    if let Some(detail) = detail.into_iter().chain(context).reduce(|a, b| format!("{a}\n{b}")) {
        error = error.with_detail(detail);
    }
    if let Some(hint) = hint {
        error = error.with_hint(hint);
    }
    if let Some(position) = position {
        error = error.with_position(position);
    }
    if column.is_some() {
        error = error.at(Place { column, ..Place::default() });
    }
    Ok(error)
}

/// The kind of a SQLSTATE, by its class (PostgreSQL documentation, appendix "Error Codes").
fn kind(sqlstate: &str) -> Kind {
    match sqlstate.get(..2).unwrap_or_default() {
        "0A" => Kind::NotSupported,
        "20" | "21" | "22" => Kind::Data,
        "23" | "44" => Kind::Integrity,
        "03" | "07" | "26" | "34" | "3D" | "3F" | "42" => Kind::Programming,
        "XX" => Kind::Internal,
        _ => Kind::Operational,
    }
}
