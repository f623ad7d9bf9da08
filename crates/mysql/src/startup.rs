//! The start of a connection: the socket, the server's greeting, TLS, and the client's answer (MySQL Internals,
//! "Connection Phase Packets").

use longshore_core::{Deadline, Error, Kind, Result};
use longshore_wire::{Inbox, Socket};

use crate::authentication::{Authentication, Step};
use crate::channel::{Channel, Compressed, Compression};
use crate::message::{Done, capability, parse_done, server_error};
use crate::packet::{self, HEADER, Reader, Sequence, header, protocol_error, put_counted};
use crate::settings::{Address, Mode, Settings};

/// No message of a start-up is longer.
const MAX_STARTUP_MESSAGE: usize = 1 << 20;

/// A connection whose server waits for the first command.
pub(crate) struct Link {
    pub(crate) channel: Channel,
    pub(crate) inbox: Inbox,
    pub(crate) capabilities: u64,
    pub(crate) greeting: Greeting,
    pub(crate) done: Done,
}

/// Opens a connection to the settings' server.
pub(crate) fn open(settings: &Settings, deadline: &Deadline) -> Result<Link> {
    let limited = settings.connect_timeout.map(|limit| deadline.at_most(limit));
    let opened = try_all(settings, limited.as_ref().unwrap_or(deadline));
    opened.map_err(|error| match error.kind() {
        // The caller's own deadline has its own words.
        Kind::Timeout if limited.is_some() && deadline.check().is_ok() => {
            let error = error.within(format!("connecting to {}", settings.peer()));
            error.with_hint("raise connect-timeout, or check the address and the network in between")
        }
        _ => error,
    })
}

/// Why no connection came to be.
enum Failure {
    /// TLS did not come about.
    Unencrypted(Error),
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// As MySQL's own clients: where TLS is only preferred, a server whose TLS is too old is spoken to without.
fn try_all(settings: &Settings, deadline: &Deadline) -> Result<Link> {
    match start(settings, settings.mode, deadline) {
        Err(Failure::Unencrypted(first)) if settings.mode == Mode::Preferred => {
            start(settings, Mode::Disabled, deadline).map_err(|second| match second {
                // What the server says is more than what went before.
                Failure::Final(error) if error.sqlstate().is_some() => error,
                _ => first,
            })
        }
        Ok(link) => Ok(link),
        Err(Failure::Unencrypted(error) | Failure::Final(error)) => Err(error),
    }
}

fn start(settings: &Settings, mode: Mode, deadline: &Deadline) -> Result<Link, Failure> {
    let socket = connect(settings, deadline)?;
    let is_local = matches!(settings.address, Address::Unix(_));
    let mut opening =
        Opening { socket, inbox: Inbox::new(), sequence: Sequence::Next(0), settings, deadline };
    let length = opening.receive()?;
    let greeting =
        Greeting::parse(opening.payload(length)).map_err(|error| opening.with_server_name(error))?;
    opening.inbox.consume(HEADER + length);
    let encrypted = match mode {
        Mode::Disabled => false,
        Mode::Preferred => !is_local && greeting.has(capability::SSL),
        Mode::Required if greeting.has(capability::SSL) => true,
        Mode::Required => return Err(no_tls(opening.socket.peer()).into()),
    };
    let capabilities = agree(&greeting, settings, encrypted)?;
    if encrypted {
        opening = opening.encrypt(capabilities, greeting.collation)?;
    }
    let mut authentication = Authentication::new(settings, encrypted, encrypted || is_local)?;
    let (plugin, proof) = authentication.begin(&greeting.plugin, &greeting.nonce)?;
    opening.send(&response(capabilities, greeting.collation, settings, plugin, &proof))?;
    let done = opening.authenticate(&mut authentication, capabilities)?;
    let channel = match settings.compression {
        Some(compression) => Channel::Compressed(Box::new(Compressed::new(opening.socket, compression))),
        None => Channel::Plain(opening.socket),
    };
    Ok(Link { channel, inbox: opening.inbox, capabilities, greeting, done })
}

fn connect(settings: &Settings, deadline: &Deadline) -> Result<Socket> {
    match &settings.address {
        Address::Tcp(host, port) => Socket::connect_tcp(host, *port, &settings.keepalive, deadline),
        #[cfg(unix)]
        Address::Unix(path) => Socket::connect_unix(path, deadline),
        #[cfg(not(unix))]
        Address::Unix(_) => Err(Error::interface("this system has no Unix sockets")),
    }
}

fn no_tls(peer: &str) -> Error {
    Error::operational(format!("{peer} does not speak TLS, which the connection's ssl-mode demands")).with_hint(
        "give the server a certificate (ssl-cert and ssl-key in its configuration), or use ssl-mode=PREFERRED if no one \
         listens in between",
    )
}

/// The conversation until the server waits for commands.
struct Opening<'a> {
    socket: Socket,
    inbox: Inbox,
    sequence: Sequence,
    settings: &'a Settings,
    deadline: &'a Deadline,
}

impl Opening<'_> {
    /// Waits for a message; gives the length of its payload, which lies behind a header in the inbox.
    fn receive(&mut self) -> Result<usize> {
        loop {
            if let Some((length, number)) = header(self.inbox.bytes()) {
                // What else answers need not be a MySQL server at all.
                if length > MAX_STARTUP_MESSAGE || self.sequence != Sequence::Next(number) {
                    return Err(protocol_error("a first message that is not a MySQL packet"));
                }
            }
            if let Some(length) = packet::receive(&mut self.inbox, 0, &mut self.sequence)? {
                return Ok(length);
            }
            self.inbox.fill(&mut self.socket, self.deadline)?;
        }
    }

    fn payload(&self, length: usize) -> &[u8] {
        &self.inbox.bytes()[HEADER..HEADER + length]
    }

    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let Sequence::Next(number) = self.sequence else { return Ok(()) };
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        packet::append(payload, number, &mut bytes);
        self.sequence = Sequence::Next(number.wrapping_add(1));
        self.socket.write_all(&bytes, self.deadline)
    }

    fn encrypt(mut self, capabilities: u64, collation: u8) -> Result<Self, Failure> {
        // What came before the encryption must not be taken for a part of what is encrypted.
        if !self.inbox.bytes().is_empty() {
            return Err(protocol_error("bytes behind the greeting").into());
        }
        self.send(&tls_request(capabilities, collation))?;
        let socket = self.socket.start_tls(&self.settings.tls, self.settings.host(), self.deadline);
        match socket {
            Ok(socket) => Ok(Self { socket, ..self }),
            Err(error) if error.message().contains("HandshakeFailure") => {
                Err(Failure::Unencrypted(error.with_hint(
                    "the server wants a client certificate (ssl-cert and ssl-key), or has no cipher with forward \
                     secrecy, as some servers before MySQL 8.0.16; where no one listens in between, use \
                     ssl-mode=DISABLED",
                )))
            }
            Err(error) if error.kind() == Kind::Operational => Err(Failure::Unencrypted(error)),
            Err(error) => Err(Failure::Final(error)),
        }
    }

    fn authenticate(&mut self, authentication: &mut Authentication<'_>, capabilities: u64) -> Result<Done> {
        loop {
            let length = self.receive()?;
            let payload = self.payload(length);
            if payload.first() == Some(&0xff) {
                return Err(self.with_server_name(server_error(payload)));
            }
            let step = authentication.answer(payload)?;
            let ended = matches!(step, Step::Done).then(|| parse_done(payload, capabilities)).transpose()?;
            self.inbox.consume(HEADER + length);
            match (step, ended) {
                (Step::Send(answer), _) => self.send(&answer)?,
                (_, Some(done)) => return Ok(done),
                _ => {}
            }
        }
    }

    /// The server's refusal, with the server's name.
    fn with_server_name(&self, error: Error) -> Error {
        error.within(format!("{} refuses the connection", self.socket.peer()))
    }
}

/// `utf8mb4_general_ci`: every version knows it.
const UTF8MB4: u8 = 45;
/// `utf8mb4_0900_ai_ci`, which MySQL 8 has for tables: what a session casts to text could not be compared with them in another.
const UTF8MB4_0900: u8 = 255;

/// The longest message that may come: what `max_allowed_packet` is at most.
const MAX_MESSAGE: u32 = 1 << 30;

/// A server's greeting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) thread: u32,
    pub(crate) capabilities: u64,
    /// The collation of the session's own texts.
    pub(crate) collation: u8,
    /// Random bytes that no proof may be repeated for.
    pub(crate) nonce: Vec<u8>,
    /// The authentication that most of the server's accounts have.
    pub(crate) plugin: String,
}

impl Greeting {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        match reader.u8()? {
            10 => {}
            0xff => return Err(server_error(payload)),
            version => {
                return Err(protocol_error(format!("a greeting of protocol version {version}")));
            }
        }
        let version = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let thread = reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.bytes(1)?;
        let low = reader.u16()?;
        let (charset, _status, high) = (reader.u8()?, reader.u16()?, reader.u16()?);
        let mut capabilities = u64::from(low) | u64::from(high) << 16;
        let nonce_length = usize::from(reader.u8()?);
        reader.bytes(6)?;
        let extended = reader.u32()?;
        if capabilities & capability::MYSQL == 0 {
            capabilities |= u64::from(extended) << 32;
        }
        if capabilities & capability::SECURE_CONNECTION != 0 {
            let rest = reader.bytes(nonce_length.saturating_sub(8).max(13))?;
            // A zero byte ends it.
            nonce.extend_from_slice(&rest[..rest.len() - 1]);
        }
        let plugin = String::from_utf8_lossy(reader.until_zero()).into_owned();
        // MariaDB puts this in front, for replicas that take 10 for less than 5.
        let version = version.strip_prefix("5.5.5-").unwrap_or(&version).to_owned();
        let collation = if charset == UTF8MB4_0900 { UTF8MB4_0900 } else { UTF8MB4 };
        let greeting = Self { version, thread, capabilities, collation, nonce, plugin };
        greeting.check()?;
        Ok(greeting)
    }

    fn check(&self) -> Result<()> {
        use capability::{PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION};
        let needed = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
        if self.capabilities & needed == needed {
            return Ok(());
        }
        Err(Error::not_supported(format!("the server's version {} is too old", self.version))
            .with_hint("MySQL 5.6 and MariaDB 10.0 are the oldest that can be spoken to"))
    }

    pub(crate) fn has(&self, capability: u64) -> bool {
        self.capabilities & capability != 0
    }
}

/// The capabilities that client and server will both use.
fn agree(greeting: &Greeting, settings: &Settings, encrypted: bool) -> Result<u64> {
    use capability as can;
    let mut wanted = can::LONG_FLAG
        | can::FOUND_ROWS
        | can::PROTOCOL_41
        // For rows of ours alone: a request for another file is refused.
        | can::LOCAL_FILES
        | can::TRANSACTIONS
        | can::SECURE_CONNECTION
        | can::MULTI_RESULTS
        | can::PS_MULTI_RESULTS
        | can::PLUGIN_AUTH
        | can::PLUGIN_AUTH_LENENC
        | can::CONNECT_ATTRS
        | can::SESSION_TRACK
        | can::DEPRECATE_EOF
        | can::EXTENDED_METADATA;
    if greeting.has(can::MYSQL) {
        wanted |= can::MYSQL;
    }
    if settings.database.is_some() {
        wanted |= can::CONNECT_WITH_DB;
    }
    let (compression, name) = match settings.compression {
        Some(Compression::Zlib) => (can::COMPRESS, "zlib"),
        Some(Compression::Zstd) => (can::ZSTD, "zstd"),
        None => (0, ""),
    };
    if compression != 0 && !greeting.has(compression) {
        return Err(Error::not_supported(format!(
            "the server {} does not compress with {name}",
            greeting.version
        ))
        .with_hint("leave compression out, or try the other of zlib and zstd"));
    }
    wanted |= compression;
    let agreed = wanted & greeting.capabilities;
    Ok(if encrypted { agreed | can::SSL } else { agreed })
}

/// The request to go on under TLS (`SSLRequest`), which is also the start of a [`response`].
fn tls_request(capabilities: u64, collation: u8) -> Vec<u8> {
    let [low, high] = [capabilities & 0xffff_ffff, capabilities >> 32]
        .map(|half| u32::try_from(half).unwrap_or_default().to_le_bytes());
    let mut packet = Vec::with_capacity(256);
    packet.extend(low);
    packet.extend(MAX_MESSAGE.to_le_bytes());
    packet.push(collation);
    packet.extend([0; 19]);
    // MySQL wants zeros here, and MariaDB's own capabilities are only set with MariaDB.
    packet.extend(high);
    packet
}

/// Who the client is (`HandshakeResponse41`).
fn response(capabilities: u64, collation: u8, settings: &Settings, plugin: &str, proof: &[u8]) -> Vec<u8> {
    let mut packet = tls_request(capabilities, collation);
    packet.extend_from_slice(settings.user.as_bytes());
    packet.push(0);
    if capabilities & capability::PLUGIN_AUTH_LENENC != 0 {
        put_counted(proof, &mut packet);
    } else {
        packet.push(u8::try_from(proof.len()).unwrap_or_default());
        packet.extend_from_slice(proof);
    }
    if let Some(database) = &settings.database {
        packet.extend_from_slice(database.as_bytes());
        packet.push(0);
    }
    packet.extend_from_slice(plugin.as_bytes());
    packet.push(0);
    if capabilities & capability::CONNECT_ATTRS != 0 {
        put_counted(&attributes(settings), &mut packet);
    }
    if capabilities & capability::ZSTD != 0 {
        // The level at which the server packs: its own default.
        packet.push(3);
    }
    packet
}

/// The attributes that the server's list of sessions shows.
fn attributes(settings: &Settings) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let process = std::process::id().to_string();
    let mut attributes = Vec::new();
    for (name, value) in [
        ("_client_name", "longshore"),
        ("_client_version", version),
        ("_pid", process.as_str()),
        ("program_name", settings.program.as_str()),
    ] {
        put_counted(name.as_bytes(), &mut attributes);
        put_counted(value.as_bytes(), &mut attributes);
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(capabilities: u64, version: &str) -> Vec<u8> {
        let bytes = capabilities.to_le_bytes();
        let mut packet = vec![10];
        packet.extend(version.as_bytes());
        packet.extend([0, 7, 0, 0, 0]);
        packet.extend(b"12345678\0");
        packet.extend([bytes[0], bytes[1], 45, 2, 0, bytes[2], bytes[3], 21]);
        packet.extend([0; 6]);
        packet.extend(&bytes[4..]);
        packet.extend(b"abcdefghijkl\0mysql_native_password\0");
        packet
    }

    #[test]
    fn greetings_tell_who_is_there() {
        use capability::{EXTENDED_METADATA, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION};
        let needed = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
        let maria = Greeting::parse(&greeting(needed | EXTENDED_METADATA, "5.5.5-10.11.6-MariaDB")).unwrap();
        assert!(maria.has(EXTENDED_METADATA));
        assert_eq!((maria.version.as_str(), maria.thread), ("10.11.6-MariaDB", 7));
        assert_eq!(
            (maria.nonce.as_slice(), maria.plugin.as_str()),
            (b"12345678abcdefghijkl".as_slice(), "mysql_native_password")
        );
        // What MySQL has there is not a capability.
        let mysql =
            Greeting::parse(&greeting(needed | EXTENDED_METADATA | capability::MYSQL, "8.0.15")).unwrap();
        assert!(!mysql.has(EXTENDED_METADATA));
        assert_eq!(Greeting::parse(&greeting(PROTOCOL_41, "5.1")).unwrap_err().kind(), Kind::NotSupported);
        let whole = greeting(needed, "8.0.15");
        for cut in 0..whole.len() - 40 {
            assert!(Greeting::parse(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
