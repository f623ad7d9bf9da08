//! Packets: three bytes of length, one of sequence, and the payload (MySQL Internals, "MySQL Packets").
//!
//! A payload of 16 MiB or more comes in several packets, all but the last of them full.

use longshore_core::{Error, Result};
use longshore_wire::Inbox;

/// Length and sequence.
pub(crate) const HEADER: usize = 4;

/// The length of a packet that another one continues.
pub(crate) const FULL: usize = 0xff_ffff;

/// No payload is longer: a server's `max_allowed_packet` is 1 GiB at most.
const LONGEST: usize = 0x7fff_ffff - (1 << 20);

/// The SQLSTATE of a peer that does not keep to the protocol.
pub(crate) const VIOLATION: &str = "08P01";

/// The peer does not keep to the protocol.
#[cold]
pub(crate) fn broken(what: impl std::fmt::Display) -> Error {
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
                return Err(broken(format!("packet {got} where packet {expected} has to come")));
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
            return Err(broken("a message of 2 GiB"));
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

#[cfg(test)]
mod tests {
    use longshore_core::Watch;
    use longshore_wire::Incoming;

    use super::*;

    struct Slices(Vec<u8>, usize);

    impl Incoming for Slices {
        fn read(&mut self, into: &mut [u8], _watch: &Watch) -> Result<usize> {
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
                    None => drop(inbox.fill(&mut from, &Watch::never()).unwrap()),
                }
            };
            assert_eq!(got, length);
            assert!(inbox.bytes()[HEADER..HEADER + got] == payload);
            inbox.consume(HEADER + got);
            let mut sequence = Sequence::Next(9);
            while receive(&mut inbox, 0, &mut sequence).unwrap().is_none() {
                inbox.fill(&mut from, &Watch::never()).unwrap();
            }
            assert_eq!(&inbox.bytes()[HEADER..], b"next");
        }
    }

    #[test]
    fn a_missing_packet_is_an_error() {
        let mut inbox = Inbox::new();
        inbox.fill(&mut Slices(vec![1, 0, 0, 2, 7], 0), &Watch::never()).unwrap();
        let error = receive(&mut inbox, 0, &mut Sequence::Next(1)).unwrap_err();
        assert_eq!(error.sqlstate(), Some(VIOLATION));
    }
}
