//! Packets: three bytes of length, one of sequence, and the payload (MySQL Internals, "MySQL Packets"); and the fields of
//! a payload ("Basic Types").
//!
//! A payload of 16 MiB or more comes in several packets, all but the last of them full.

use longshore_core::{Error, Result};
use longshore_source::rows::VIOLATION;
use longshore_wire::Inbox;

/// Length and sequence.
pub(crate) const HEADER: usize = 4;

/// The length of a packet that another one continues.
pub(crate) const FULL: usize = 0xff_ffff;

/// No payload is longer: a server's `max_allowed_packet` is 1 GiB at most.
const LONGEST: usize = 0x7fff_ffff - (1 << 20);

/// The peer does not keep to the protocol.
#[cold]
pub(crate) fn protocol_error(what: impl std::fmt::Display) -> Error {
    Error::operational(format!("the server's answer breaks the MySQL protocol: {what}"))
        .with_sqlstate(VIOLATION)
        .with_hint(
            "check that host and port belong to a MySQL or MariaDB server and that nothing in between alters bytes",
        )
}

/// The number that the next packet must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    Next(u8),
    /// Under compression the numbers follow the compressed frames, which are counted themselves.
    Unchecked,
}

impl Sequence {
    #[inline]
    pub(crate) fn advance(&mut self, got: u8) -> Result<()> {
        match self {
            Self::Next(expected) if *expected == got => *expected = got.wrapping_add(1),
            Self::Next(expected) => {
                let expected = *expected;
                return Err(protocol_error(format!("packet {got} where packet {expected} has to come")));
            }
            Self::Unchecked => {}
        }
        Ok(())
    }
}

/// Length and sequence number of the packet at the start of `bytes`.
#[inline]
pub(crate) fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let [a, b, c, sequence] = *bytes.first_chunk::<HEADER>()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

/// The payload's length of the message at `at` of the inbox, whose bytes then lie together behind one header; `None`
/// where more bytes are needed.
pub(crate) fn receive(inbox: &mut Inbox, at: usize, sequence: &mut Sequence) -> Result<Option<usize>> {
    let bytes = inbox.bytes();
    let (mut place, mut continued, mut counted) = (at, Vec::new(), *sequence);
    loop {
        let Some((length, number)) = header(bytes.get(place..).unwrap_or_default()) else { return Ok(None) };
        if bytes.len() - place - HEADER < length {
            return Ok(None);
        }
        counted.advance(number)?;
        place += HEADER + length;
        if place - at > LONGEST {
            return Err(protocol_error("a message of 2 GiB"));
        }
        if length < FULL {
            break;
        }
        continued.push(place);
    }
    *sequence = counted;
    inbox.cut(&continued, HEADER);
    Ok(Some(place - at - HEADER * (1 + continued.len())))
}

/// Appends `payload` in packets, the first with the number `sequence`.
pub(crate) fn append(payload: &[u8], sequence: u8, into: &mut Vec<u8>) {
    let mut number = sequence;
    let mut rest = payload;
    loop {
        let length = rest.len().min(FULL);
        let [a, b, c, ..] = u32::try_from(length).unwrap_or_default().to_le_bytes();
        into.extend([a, b, c, number]);
        into.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        number = number.wrapping_add(1);
        // A full packet is always continued, if only by an empty one.
        if length < FULL {
            return;
        }
    }
}

/// The fields of one payload, from its start.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(crate) fn length(&mut self) -> Result<u64> {
        Ok(match self.u8()? {
            small @ 0..=0xfa => u64::from(small),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => u64::from_le_bytes(self.array()?),
            other => return Err(protocol_error(format!("a length that starts with {other:#04x}"))),
        })
    }

    /// Bytes behind their length.
    pub(crate) fn counted_bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.length()?).map_err(|_| protocol_error("a length beyond memory"))?;
        self.bytes(length)
    }

    /// The same; `None` for NULL in a text row.
    pub(crate) fn cell(&mut self) -> Result<Option<&'a [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.0 = &self.0[1..];
            return Ok(None);
        }
        self.counted_bytes().map(Some)
    }

    /// Text behind its length; what is not UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Result<String> {
        self.counted_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Bytes that end at a zero byte, or with the payload.
    pub(crate) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let taken = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[], |end| &self.0[end + 1..]);
        taken
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Appends an integer in its length-encoded form.
pub(crate) fn put_length(value: u64, into: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => into.push(bytes[0]),
        0xfb..=0xffff => {
            into.push(0xfc);
            into.extend(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            into.push(0xfd);
            into.extend(&bytes[..3]);
        }
        _ => {
            into.push(0xfe);
            into.extend(bytes);
        }
    }
}

/// Appends bytes behind their length.
pub(crate) fn put_counted(bytes: &[u8], into: &mut Vec<u8>) {
    put_length(bytes.len() as u64, into);
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use longshore_core::Deadline;
    use longshore_wire::Incoming;

    use super::*;

    struct Slices(Vec<u8>, usize);

    impl Incoming for Slices {
        fn read(&mut self, into: &mut [u8], _deadline: &Deadline) -> Result<usize> {
            let count = into.len().min(self.0.len() - self.1);
            into[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }

    #[test]
    fn long_payloads_go_out_and_come_back_in_several_packets() {
        for length in [0, 1, FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 7] {
            let payload: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let mut sent = Vec::new();
            append(&payload, 3, &mut sent);
            append(b"next", 9, &mut sent);
            let (mut inbox, mut from) = (Inbox::new(), Slices(sent, 0));
            let mut sequence = Sequence::Next(3);
            let got = loop {
                match receive(&mut inbox, 0, &mut sequence).unwrap() {
                    Some(got) => break got,
                    None => drop(inbox.fill(&mut from, &Deadline::never()).unwrap()),
                }
            };
            assert_eq!(got, length);
            assert!(inbox.bytes()[HEADER..HEADER + got] == payload);
            inbox.consume(HEADER + got);
            let mut sequence = Sequence::Next(9);
            while receive(&mut inbox, 0, &mut sequence).unwrap().is_none() {
                inbox.fill(&mut from, &Deadline::never()).unwrap();
            }
            assert_eq!(&inbox.bytes()[HEADER..], b"next");
        }
    }

    #[test]
    fn a_missing_packet_is_an_error() {
        let mut inbox = Inbox::new();
        inbox.fill(&mut Slices(vec![1, 0, 0, 2, 7], 0), &Deadline::never()).unwrap();
        let error = receive(&mut inbox, 0, &mut Sequence::Next(1)).unwrap_err();
        assert_eq!(error.sqlstate(), Some(VIOLATION));
    }

    #[test]
    fn lengths_come_back_as_they_went() {
        for value in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            put_length(value, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.length().unwrap(), value);
            assert!(reader.is_empty());
        }
        assert!(Reader::new(&[0xfb]).length().is_err() && Reader::new(&[0xff]).length().is_err());
        assert!(Reader::new(&[5, 1]).counted_bytes().is_err());
        assert_eq!(Reader::new(&[0xfb, 9]).cell().unwrap(), None);
    }
}
