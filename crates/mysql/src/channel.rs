//! The socket, and the compressed protocol above it (MySQL Internals, "Compression").

use std::io::Read;

use flate2::read::ZlibDecoder;
use longshore_core::{Deadline, Error, Result};
use longshore_wire::{Inbox, Incoming, Socket};
use ruzstd::decoding::StreamingDecoder;

use crate::client::ClientSocket;
use crate::packet::{self, FULL, protocol_error};

/// How a server's packets are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zlib,
    Zstd,
}

/// The way to the server.
#[derive(Debug)]
pub(crate) enum Channel {
    Plain(Socket),
    Compressed(Box<Compressed>),
    /// The socket of another client's connection.
    Client(ClientSocket),
}

impl Channel {
    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self, Self::Compressed(_))
    }

    /// Sends commands, each of which the server answers by itself or not at all.
    pub(crate) fn send(&mut self, commands: &[Vec<u8>], deadline: &Deadline) -> Result<()> {
        let mut bytes = Vec::new();
        for command in commands {
            match self {
                Self::Plain(_) | Self::Client(_) => packet::append(command, 0, &mut bytes),
                Self::Compressed(compressed) => compressed.append(command, &mut bytes),
            }
        }
        match self {
            Self::Plain(socket) => socket.write_all(&bytes, deadline),
            Self::Compressed(compressed) => compressed.socket.write_all(&bytes, deadline),
            Self::Client(socket) => socket.write_all(&bytes, deadline),
        }
    }

    /// Sends what lies in packets already; compressed frames have none.
    pub(crate) fn send_packets(&mut self, packets: &[u8], deadline: &Deadline) -> Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(packets, deadline),
            Self::Client(socket) => socket.write_all(packets, deadline),
            Self::Compressed(_) => Err(Error::internal("packets without a frame")),
        }
    }
}

impl Incoming for Channel {
    #[inline]
    fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into, deadline),
            Self::Compressed(compressed) => compressed.read(into, deadline),
            Self::Client(socket) => socket.read(into, deadline),
        }
    }
}

/// Lengths packed and unpacked, three bytes each, and a sequence number between them.
const HEADER: usize = 7;

/// A socket whose packets come in compressed frames. What is sent is never worth it, and goes as it is.
#[derive(Debug)]
pub(crate) struct Compressed {
    socket: Socket,
    compression: Compression,
    inbox: Inbox,
    /// The number of the frame that comes next.
    sequence: u8,
    /// The bytes that the last frame held, and how much of it has been read.
    unpacked: Vec<u8>,
    taken: usize,
}

impl Compressed {
    pub(crate) fn new(socket: Socket, compression: Compression) -> Self {
        Self { socket, compression, inbox: Inbox::new(), sequence: 0, unpacked: Vec::new(), taken: 0 }
    }

    fn append(&mut self, command: &[u8], into: &mut Vec<u8>) {
        let mut packets = Vec::with_capacity(command.len() + packet::HEADER);
        packet::append(command, 0, &mut packets);
        self.sequence = 0;
        for frame in packets.chunks(FULL) {
            let [a, b, c, ..] = u32::try_from(frame.len()).unwrap_or_default().to_le_bytes();
            into.extend([a, b, c, self.sequence, 0, 0, 0]);
            into.extend_from_slice(frame);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize> {
        while self.taken == self.unpacked.len() {
            if !self.unpack()? && self.inbox.fill(&mut self.socket, deadline)? == 0 {
                return Ok(0);
            }
        }
        let count = into.len().min(self.unpacked.len() - self.taken);
        into[..count].copy_from_slice(&self.unpacked[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }

    /// Unpacks the frame at the start of the inbox, if it is complete.
    fn unpack(&mut self) -> Result<bool> {
        let bytes = self.inbox.bytes();
        let Some((packet, unpacked)) =
            bytes.first_chunk::<HEADER>().and_then(|it| it.split_last_chunk::<3>())
        else {
            return Ok(false);
        };
        let Some((length, number)) = packet::header(packet) else { return Ok(false) };
        let unpacked = unpacked.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let Some(frame) = bytes.get(HEADER..HEADER + length) else { return Ok(false) };
        if number != self.sequence {
            let expected = self.sequence;
            return Err(protocol_error(format!(
                "compressed frame {number} where frame {expected} has to come"
            )));
        }
        self.unpacked.clear();
        self.taken = 0;
        if unpacked == 0 {
            self.unpacked.extend_from_slice(frame);
        } else {
            decompress(self.compression, frame, unpacked, &mut self.unpacked)?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.inbox.consume(HEADER + length);
        Ok(true)
    }
}

/// Appends what `frame` holds, which must be `length` bytes.
pub(crate) fn decompress(
    compression: Compression,
    frame: &[u8],
    length: usize,
    into: &mut Vec<u8>,
) -> Result<()> {
    // One byte more than there may be shows that there is more.
    let most = length as u64 + 1;
    let got = match compression {
        Compression::Zlib => ZlibDecoder::new(frame).take(most).read_to_end(into),
        Compression::Zstd => {
            StreamingDecoder::new(frame).map_err(|error| damage(&error))?.take(most).read_to_end(into)
        }
    };
    match got {
        Ok(got) if got == length => Ok(()),
        Ok(_) => Err(protocol_error("a compressed frame of another length than it claims")),
        Err(error) => Err(damage(&error)),
    }
}

#[cold]
fn damage(error: &impl std::fmt::Display) -> Error {
    protocol_error(format!("a compressed frame that cannot be unpacked ({error})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn text() -> Vec<u8> {
        b"a text, a text, a text, a text".repeat(20)
    }

    fn unpack(compression: Compression, frame: &[u8], length: usize) -> Result<Vec<u8>> {
        let mut into = Vec::new();
        decompress(compression, frame, length, &mut into).map(|()| into)
    }

    /// The bytes of `zstd` 1.5.4 for the text: at level 3 and at level 19, with and without the length and a checksum.
    const ZSTD: [&str; 4] = [
        "28b52ffd6058010d0200406120746578742c202720f095030428204001010a08504080820428204001010a0850408002022a204001010a08\
         504080020214244001010a0c01991430457201",
        "28b52ffd605801950000406120746578742c2002003782aa40e57201",
        "28b52ffd00580d0200406120746578742c202720f095030428204001010a08504080820428204001010a0850408002022a204001010a0850\
         4080020214244001010a0c01991430457201",
        "28b52ffd0468950000406120746578742c2002003782aa40e572010ddb8324",
    ];

    fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
    }

    fn packets() -> Vec<(Compression, Vec<u8>)> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&text()).unwrap();
        let zstd = ZSTD.iter().map(|digits| (Compression::Zstd, bytes(digits)));
        [(Compression::Zlib, encoder.finish().unwrap())].into_iter().chain(zstd).collect()
    }

    #[test]
    fn frames_hold_what_they_claim() {
        let text = text();
        for (compression, frame) in packets() {
            assert_eq!(unpack(compression, &frame, text.len()).unwrap(), text);
            assert!(unpack(compression, &frame, text.len() - 1).is_err());
            assert!(unpack(compression, &frame, text.len() + 1).is_err());
        }
    }

    #[test]
    fn frames_that_are_cut_or_of_another_kind_are_errors() {
        let text = text();
        for (compression, frame) in packets() {
            for cut in 0..frame.len() {
                assert!(unpack(compression, &frame[..cut], text.len()).is_err(), "{compression:?} {cut}");
            }
            let other = if compression == Compression::Zlib { Compression::Zstd } else { Compression::Zlib };
            assert!(unpack(other, &frame, text.len()).is_err());
        }
    }

    #[test]
    fn frames_with_a_wrong_bit_are_errors_or_have_the_length_that_they_claim() {
        let text = text();
        for (compression, frame) in packets() {
            for bit in 0..frame.len() * 8 {
                let mut wrong = frame.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                let got = unpack(compression, &wrong, text.len());
                assert!(got.is_err() || got.unwrap().len() == text.len());
            }
        }
    }
}
