//! The opening of a connection: finds a host, encrypts, authenticates, and ends at the first `ReadyForQuery`.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use bytes::BytesMut;
use longshore_core::{Deadline, Error, Kind, PasswordSource, Process, Result, Transaction};
use longshore_wire::{Inbox, Socket, Tls};

use super::authentication::{self, Authentication, Credentials};
use super::cancel::Canceller;
use super::message::{Frame, HEADER, Reader, frame, protocol_error, server_error, unexpected_message};
use super::pipeline::Step;
use super::{Connection, Exchange};
use crate::settings::{Host, Mode, Place, Role, Settings};

/// No message before the first `ReadyForQuery` is longer.
const LONGEST_MESSAGE: usize = 1 << 20;

/// Why an attempt failed, which decides what is tried next.
enum Failure {
    /// Nothing else would help: wrong settings, a wrong password, the caller's wish to stop.
    Final(Error),
    /// The server cannot be reached, or not just now.
    Unreachable(Error),
    /// TLS did not come about.
    Unencrypted(Error),
    /// The server has refused before it asked for a proof: its rules may depend on the encryption.
    Refused(Error),
    /// The server works, but is not what `target_session_attrs` wants.
    Mismatched(Error),
}

impl Failure {
    /// A server's refusal that no other encryption would change; another host might, while this one starts up.
    fn refused_for_good(error: Error) -> Self {
        match error.sqlstate() {
            Some("57P03") => Self::Unreachable(error),
            _ => Self::Final(error),
        }
    }

    /// The failure of two attempts: that of the first, unless this one, the second, came further.
    fn unless_further(self, first: Self) -> Self {
        if matches!(self, Self::Final(_) | Self::Mismatched(_)) { self } else { first }
    }

    fn error(self) -> Error {
        match self {
            Self::Final(error)
            | Self::Unreachable(error)
            | Self::Unencrypted(error)
            | Self::Refused(error)
            | Self::Mismatched(error) => error,
        }
    }
}

/// One host, tried for one role.
struct Attempt<'a> {
    settings: &'a Settings,
    host: &'a Host,
    role: Role,
    deadline: &'a Deadline,
}

impl Attempt<'_> {
    /// Connects, with and without TLS as `sslmode` orders.
    fn run(&self) -> Result<Connection, Failure> {
        let is_local = matches!(self.host.place, Place::Unix(_));
        match self.settings.encryption.mode {
            _ if is_local => self.plain(),
            Mode::Disable => self.plain(),
            Mode::Require => self.connect_with_tls(),
            Mode::Prefer => match self.connect_preferring_tls() {
                Err(first @ (Failure::Unencrypted(_) | Failure::Refused(_))) => {
                    self.plain().map_err(|failure| failure.unless_further(first))
                }
                outcome => outcome,
            },
            Mode::Allow => match self.plain() {
                Err(first @ Failure::Refused(_)) => {
                    self.connect_with_tls().map_err(|failure| match failure {
                        // The rules for encrypted connections are what counts, if there can be any.
                        Failure::Refused(_) => failure,
                        _ => failure.unless_further(first),
                    })
                }
                outcome => outcome,
            },
        }
    }

    fn plain(&self) -> Result<Connection, Failure> {
        self.start(self.connect()?)
    }

    fn connect_with_tls(&self) -> Result<Connection, Failure> {
        match self.upgrade(self.connect()?)? {
            Upgraded::Encrypted(socket) => self.start(socket),
            Upgraded::Refused(socket) => Err(Failure::Unencrypted(without_tls(socket.peer()))),
        }
    }

    fn connect_preferring_tls(&self) -> Result<Connection, Failure> {
        match self.upgrade(self.connect()?)? {
            Upgraded::Encrypted(socket) => self.start(socket),
            // Over the same connection, without a second attempt.
            Upgraded::Refused(socket) => self.start(socket).map_err(|failure| match failure {
                Failure::Refused(error) => Failure::refused_for_good(error),
                other => other,
            }),
        }
    }

    fn connect(&self) -> Result<Socket, Failure> {
        let socket = match &self.host.place {
            Place::Tcp(host) => {
                Socket::connect_tcp(host, self.host.port, &self.settings.keepalive, self.deadline)
            }
            #[cfg(unix)]
            Place::Unix(path) => Socket::connect_unix(path, self.deadline),
            #[cfg(not(unix))]
            Place::Unix(_) => Err(Error::interface("this system has no Unix sockets")),
        };
        socket.map_err(Failure::Unreachable)
    }

    fn encryption(&self) -> Upgrade {
        let encryption = &self.settings.encryption;
        Upgrade { tls: encryption.tls.clone(), host: self.host.name.clone(), direct: encryption.direct }
    }

    fn upgrade(&self, socket: Socket) -> Result<Upgraded, Failure> {
        use longshore_core::Kind;
        upgrade(socket, &self.encryption(), self.deadline).map_err(|error| match error.kind() {
            Kind::Operational => Failure::Unencrypted(error),
            Kind::Timeout => Failure::Unreachable(error),
            _ => Failure::Final(error),
        })
    }

    /// Everything from the start-up packet on.
    fn start(&self, socket: Socket) -> Result<Connection, Failure> {
        let upgrade = socket.is_encrypted().then(|| self.encryption());
        let mut opening = Opening {
            inbox: Inbox::new(),
            parameters: BTreeMap::new(),
            key: Vec::new(),
            socket,
            deadline: self.deadline,
        };
        opening.run(self.settings, self.host)?;
        let mut connection = opening.connection(upgrade);
        match connection.mismatch(self.role) {
            Ok(None) => Ok(connection),
            Ok(Some(mismatch)) => Err(Failure::Mismatched(
                Error::operational(format!("{} {mismatch}", self.host.peer()))
                    .with_hint("list other hosts, or change target_session_attrs"),
            )),
            Err(error) => {
                connection.is_lost = true;
                Err(Failure::Unreachable(error))
            }
        }
    }
}

/// The conversation until the server is ready.
struct Opening<'a> {
    socket: Socket,
    inbox: Inbox,
    parameters: BTreeMap<String, String>,
    key: Vec<u8>,
    deadline: &'a Deadline,
}

impl Opening<'_> {
    fn connection(self, upgrade: Option<Upgrade>) -> Connection {
        let canceller = Canceller {
            peer: self.socket.peer().to_owned(),
            address: self.socket.address().clone(),
            upgrade,
            key: self.key,
        };
        Connection {
            socket: self.socket,
            inbox: self.inbox,
            parameters: self.parameters,
            canceller,
            outbox: BytesMut::new(),
            unnamed: None,
            deadline: self.deadline.clone(),
            exchange: Exchange::Idle,
            is_lost: false,
            transaction: Transaction::None,
            process: Process::current(),
        }
    }

    fn run(&mut self, settings: &Settings, host: &Host) -> Result<(), Failure> {
        let packet = startup_packet(settings).map_err(Failure::Final)?;
        self.socket.write_all(&packet, self.deadline).map_err(Failure::Unreachable)?;
        self.authenticate(settings, host)?;
        self.collect()?;
        check_encoding(&self.parameters).map_err(Failure::Final)
    }

    fn authenticate(&mut self, settings: &Settings, host: &Host) -> Result<(), Failure> {
        let own = host.password.as_ref().map(|secret| secret as &dyn PasswordSource);
        let mut authentication = Authentication::new(Credentials {
            user: &settings.user,
            password: settings.password.as_deref().or(own),
            complaint: settings.complaint.as_deref(),
            methods: &settings.methods,
            binding: settings.channel_binding,
            encrypted: self.socket.is_encrypted(),
            end_point: self.socket.channel_binding(),
        });
        loop {
            let frame = self.receive(b"REvN").map_err(Failure::Unreachable)?;
            let body = self.inbox.bytes().get(HEADER..frame.length).unwrap_or_default();
            let step = match frame.tag {
                b'R' => authentication.answer(body).map_err(Failure::Final)?,
                b'E' if authentication.has_begun() => return Err(Failure::Final(server_error(body))),
                b'E' => return Err(Failure::Refused(server_error(body))),
                // A notice; or a list of options that the server does not know, and none was sent.
                _ => authentication::Step::Wait,
            };
            self.inbox.consume(frame.length);
            match step {
                authentication::Step::Send(answer) => {
                    self.socket.write_all(&answer, self.deadline).map_err(Failure::Unreachable)?;
                }
                authentication::Step::Wait => {}
                authentication::Step::Done => return Ok(()),
            }
        }
    }

    /// Takes in what the server tells of itself until it is ready.
    fn collect(&mut self) -> Result<(), Failure> {
        loop {
            let frame = self.receive(b"SKZENA").map_err(Failure::Unreachable)?;
            let body = self.inbox.bytes().get(HEADER..frame.length).unwrap_or_default();
            match frame.tag {
                b'S' => {
                    let (name, value) = parameter(body).map_err(Failure::Unreachable)?;
                    self.parameters.insert(name, value);
                }
                b'K' => self.key = body.to_vec(),
                b'E' => return Err(Failure::refused_for_good(server_error(body))),
                _ => {}
            }
            self.inbox.consume(frame.length);
            if frame.tag == b'Z' {
                return Ok(());
            }
        }
    }

    /// Waits for a message of one of these types; what else arrives need not be from a PostgreSQL server at all.
    fn receive(&mut self, expected: &[u8]) -> Result<Frame> {
        loop {
            let bytes = self.inbox.bytes();
            if let Some(tag) = bytes.first().filter(|tag| !expected.contains(tag)) {
                return Err(unexpected_message(*tag, "the start of a session"));
            }
            if let Some([_, a, b, c, d]) = bytes.first_chunk::<HEADER>() {
                let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                if length > LONGEST_MESSAGE {
                    return Err(protocol_error(format!(
                        "a message of {length} bytes at the start of a session"
                    )));
                }
            }
            if let Some(frame) = frame(bytes)? {
                return Ok(frame);
            }
            self.inbox.fill(&mut self.socket, self.deadline)?;
        }
    }
}

fn parameter(body: &[u8]) -> Result<(String, String)> {
    let mut reader = Reader::new(body);
    Ok((reader.text()?, reader.text()?))
}

/// Tries the hosts in order until one fits.
pub(super) fn open_any(settings: &Settings, deadline: &Deadline) -> Result<Connection> {
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.shuffle {
        shuffle(&mut hosts);
    }
    let mut round = Round { settings, deadline, reasons: Vec::new() };
    let mut others = Vec::new();
    for host in &hosts {
        match round.visit(host, settings.role)? {
            Visit::Open(connection) => return Ok(*connection),
            Visit::Mismatched => others.push(*host),
            Visit::Failed => {}
        }
    }
    if settings.role == Role::PreferStandby {
        // No standby: the next best is any of those that work.
        for host in others {
            if let Visit::Open(connection) = round.visit(host, Role::Any)? {
                return Ok(*connection);
            }
        }
    }
    Err(round.into_error())
}

enum Visit {
    Open(Box<Connection>),
    Mismatched,
    Failed,
}

struct Round<'a> {
    settings: &'a Settings,
    deadline: &'a Deadline,
    /// Why each host so far would not do.
    reasons: Vec<Error>,
}

impl Round<'_> {
    /// Tries one host; an error means that no other one is worth a try.
    fn visit(&mut self, host: &Host, role: Role) -> Result<Visit> {
        let settings = self.settings;
        let peer = host.peer();
        let deadline = match settings.connect_timeout {
            Some(timeout) => self.deadline.at_most(timeout),
            None => self.deadline.clone(),
        };
        let failure = match (Attempt { settings, host, role, deadline: &deadline }).run() {
            Ok(connection) => return Ok(Visit::Open(Box::new(connection))),
            Err(failure) => failure,
        };
        // The caller's own deadline and wish to stop are more than a reason to try the next host.
        self.deadline.check().map_err(|error| error.within(format!("connecting to {peer}")))?;
        let failure = match failure {
            Failure::Refused(error) => Failure::refused_for_good(error),
            other => other,
        };
        let visit = match &failure {
            Failure::Final(_) => return Err(failure.error()),
            Failure::Mismatched(_) => Visit::Mismatched,
            _ => Visit::Failed,
        };
        let error = failure.error();
        // What the server itself says stays as it is, unless one has to know which server.
        let is_clear =
            error.message().contains(&peer) || (settings.hosts.len() == 1 && error.kind() != Kind::Timeout);
        self.reasons.push(if is_clear { error } else { error.within(format!("connecting to {peer}")) });
        Ok(visit)
    }

    /// Every reason; kind, state and hint are those of the last.
    fn into_error(mut self) -> Error {
        let Some(last) = self.reasons.pop() else {
            return Error::internal("there was no host to connect to");
        };
        if self.reasons.is_empty() {
            return last;
        }
        let kind = last.kind();
        let (state, hint) = (last.sqlstate().map(str::to_owned), last.hint().map(str::to_owned));
        self.reasons.push(last);
        let told: Vec<&str> = self.reasons.iter().map(Error::message).collect();
        let mut error = Error::new(kind, format!("no host accepted the connection: {}", told.join("; ")));
        if let Some(state) = state {
            error = error.with_sqlstate(state);
        }
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        error
    }
}

/// A random order (Fisher and Yates). The standard library's hasher has random keys of its own.
fn shuffle(hosts: &mut [&Host]) {
    let random = RandomState::new();
    for last in (1..hosts.len()).rev() {
        let other = random.hash_one(last) % (last as u64 + 1);
        hosts.swap(last, usize::try_from(other).unwrap_or(last));
    }
}

const VERSION: [u8; 4] = [0, 3, 0, 0];

/// The longest packet that servers accept (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST_PACKET: usize = 10_000;

/// The start-up packet: nothing beyond what every server and pooler knows, unless the caller asks for it.
fn startup_packet(settings: &Settings) -> Result<Vec<u8>> {
    let options = [
        ("user", Some(settings.user.as_str())),
        ("database", Some(&settings.database)),
        ("application_name", Some(&settings.application_name)),
        ("client_encoding", Some("UTF8")),
        ("DateStyle", Some("ISO")),
        ("TimeZone", settings.time_zone.as_deref()),
        ("options", settings.options.as_deref()),
    ];
    let mut packet = vec![0; 4];
    packet.extend(VERSION);
    for (name, value) in options {
        let Some(value) = value else { continue };
        for text in [name, value] {
            packet.extend(text.as_bytes());
            packet.push(0);
        }
    }
    packet.push(0);
    let length =
        u32::try_from(packet.len()).ok().filter(|_| packet.len() <= LONGEST_PACKET).ok_or_else(|| {
            Error::interface(format!(
                "user, database, application_name and options together exceed {LONGEST_PACKET} bytes"
            ))
            .with_hint("shorten them; settings can also be made by pre_execution_query")
        })?;
    if let Some(start) = packet.first_chunk_mut() {
        *start = length.to_be_bytes();
    }
    Ok(packet)
}

/// Every text is read as UTF-8: a server that sends another encoding must not get that far.
pub(super) fn check_encoding(parameters: &BTreeMap<String, String>) -> Result<()> {
    let Some(encoding) = parameters.get("client_encoding") else { return Ok(()) };
    let letters =
        encoding.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    if matches!(letters.as_str(), "UTF8" | "UNICODE") {
        return Ok(());
    }
    Err(Error::operational(format!(
        "the server sends its texts in {encoding} although it was asked for UTF8"
    ))
    .with_hint(
        "take client_encoding out of options, of the pooler's settings and of ALTER ROLE or ALTER DATABASE",
    ))
}

impl Connection {
    /// The kind that the server is instead of what `role` wants; `None` where it is right.
    fn mismatch(&mut self, role: Role) -> Result<Option<&'static str>> {
        Ok(match role {
            Role::Any => None,
            Role::ReadWrite => self.is_read_only()?.then_some("is read-only"),
            Role::ReadOnly => (!self.is_read_only()?).then_some("is not read-only"),
            Role::Primary => self.is_standby()?.then_some("is a standby"),
            Role::Standby | Role::PreferStandby => (!self.is_standby()?).then_some("is not a standby"),
        })
    }

    /// Since version 14 the server reports both; before, and elsewhere, it has to be asked.
    fn is_read_only(&mut self) -> Result<bool> {
        match (self.parameter("default_transaction_read_only"), self.parameter("in_hot_standby")) {
            (Some(read_only), Some(standby)) => Ok(read_only || standby),
            _ => Ok(self.ask(Step::run("SHOW transaction_read_only"))?.cell(0, 0) == "on"),
        }
    }

    fn is_standby(&mut self) -> Result<bool> {
        match self.parameter("in_hot_standby") {
            Some(standby) => Ok(standby),
            None => Ok(self.ask(Step::run("SELECT pg_catalog.pg_is_in_recovery()"))?.cell(0, 0) == "t"),
        }
    }

    fn parameter(&self, parameter: &str) -> Option<bool> {
        self.parameters.get(parameter).map(|value| value == "on")
    }
}

/// Asks for TLS: length and code of `SSLRequest`.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// How to come to TLS.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    pub(crate) tls: Tls,
    /// The name that the server's certificate has to be for.
    pub(crate) host: String,
    pub(crate) direct: bool,
}

/// The outcome of the request for TLS.
pub(crate) enum Upgraded {
    Encrypted(Socket),
    /// The server has none; the socket is as before.
    Refused(Socket),
}

/// Goes over to TLS if the server can.
pub(crate) fn upgrade(mut socket: Socket, upgrade: &Upgrade, deadline: &Deadline) -> Result<Upgraded> {
    if !upgrade.direct && !ask_for_tls(&mut socket, deadline)? {
        return Ok(Upgraded::Refused(socket));
    }
    let socket = socket.start_tls(&upgrade.tls, &upgrade.host, deadline)?;
    if upgrade.direct && socket.application_protocol() != Some(b"postgresql") {
        return Err(protocol_error("TLS that was not agreed to be for PostgreSQL")
            .with_hint("sslnegotiation=direct needs PostgreSQL 17 or newer; leave it out for others"));
    }
    Ok(Upgraded::Encrypted(socket))
}

/// The server has no TLS where the caller wants nothing else.
pub(crate) fn without_tls(peer: &str) -> Error {
    Error::operational(format!("{peer} does not speak TLS, which the connection's sslmode demands"))
        .with_hint(
            "turn ssl on in the server's postgresql.conf, or use sslmode=prefer if no one can listen in between",
        )
}

fn ask_for_tls(socket: &mut Socket, deadline: &Deadline) -> Result<bool> {
    socket.write_all(&SSL_REQUEST, deadline)?;
    // Anything behind the one byte of the answer was put there by somebody in between, to be taken for a part of
    // the encrypted conversation (CVE-2021-23222).
    let mut answer = [0; 16];
    let count = socket.read(&mut answer, deadline)?;
    match answer.get(..count).unwrap_or_default() {
        b"S" => Ok(true),
        b"N" => Ok(false),
        [] => Err(Error::operational(format!("{} closed the connection when asked for TLS", socket.peer()))
            .with_hint(
                "check that host and port belong to a PostgreSQL server, and its log for why it hung up",
            )),
        // Nothing vouches for the text of an error that arrives before the server has proved itself.
        [b'E', ..] => Err(Error::operational(format!("{} failed when asked for TLS", socket.peer()))
            .with_hint("look into the server's log: it may have no room for another connection")),
        [b'S' | b'N', ..] => Err(protocol_error("more than one byte in answer to the request for TLS")),
        [other, ..] => Err(protocol_error(format!("the byte {other:#04x} in answer to the request for TLS"))),
    }
}

#[cfg(test)]
mod tests;
