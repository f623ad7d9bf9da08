//! Opens a connection: finds a host, encrypts, authenticates, and ends at the first `ReadyForQuery`.

mod hosts;
mod packet;

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::{Error, PasswordSource, Result, Target, Watch};
use longshore_wire::{Inbox, Socket};

use crate::authentication::{Authentication, Credentials, Step};
use crate::cancel::Canceller;
use crate::message::{Frame, HEADER, Reader, broken, frame, server_error, unexpected};
use crate::negotiation::{Upgrade, Upgraded, refused, upgrade};
use crate::role::Ready;
use crate::settings::environment::Environment;
use crate::settings::{Host, Mode, Place, Role, Settings};

/// No message before the first `ReadyForQuery` is longer.
const LONGEST: usize = 1 << 20;

/// A connection that is ready for its first query.
pub(crate) struct Link {
    pub(crate) socket: Socket,
    pub(crate) inbox: Inbox,
    /// What the server has reported about itself (`ParameterStatus`).
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) canceller: Arc<Canceller>,
}

/// Opens a connection to the first of the target's hosts that will do.
pub(crate) fn open(target: &Target, watch: &Watch) -> Result<Link> {
    let settings = Settings::resolve(target, &Environment::of_process())?;
    hosts::open_any(&settings, watch)
}

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
    watch: &'a Watch,
}

impl Attempt<'_> {
    /// Connects, with and without TLS as `sslmode` orders.
    fn run(&self) -> Result<Link, Failure> {
        let is_local = matches!(self.host.place, Place::Unix(_));
        match self.settings.encryption.mode {
            _ if is_local => self.plain(),
            Mode::Disable => self.plain(),
            Mode::Require => self.encrypted(),
            Mode::Prefer => match self.preferred() {
                Err(first @ (Failure::Unencrypted(_) | Failure::Refused(_))) => {
                    self.plain().map_err(|failure| failure.unless_further(first))
                }
                outcome => outcome,
            },
            Mode::Allow => match self.plain() {
                Err(first @ Failure::Refused(_)) => self.encrypted().map_err(|failure| match failure {
                    // The rules for encrypted connections are what counts, if there can be any.
                    Failure::Refused(_) => failure,
                    _ => failure.unless_further(first),
                }),
                outcome => outcome,
            },
        }
    }

    fn plain(&self) -> Result<Link, Failure> {
        self.start(self.connect()?)
    }

    fn encrypted(&self) -> Result<Link, Failure> {
        match self.upgrade(self.connect()?)? {
            Upgraded::Encrypted(socket) => self.start(socket),
            Upgraded::Refused(socket) => Err(Failure::Unencrypted(refused(socket.peer()))),
        }
    }

    fn preferred(&self) -> Result<Link, Failure> {
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
                Socket::connect_tcp(host, self.host.port, &self.settings.keepalive, self.watch)
            }
            #[cfg(unix)]
            Place::Unix(path) => Socket::connect_unix(path, self.watch),
            #[cfg(not(unix))]
            Place::Unix(_) => Err(Error::interface("this system has no Unix sockets")),
        };
        socket.map_err(Failure::Unreachable)
    }

    fn wanted(&self) -> Upgrade {
        let encryption = &self.settings.encryption;
        Upgrade { tls: encryption.tls.clone(), host: self.host.name.clone(), direct: encryption.direct }
    }

    fn upgrade(&self, socket: Socket) -> Result<Upgraded, Failure> {
        use longshore_core::Kind;
        upgrade(socket, &self.wanted(), self.watch).map_err(|error| match error.kind() {
            Kind::Operational => Failure::Unencrypted(error),
            Kind::Timeout => Failure::Unreachable(error),
            _ => Failure::Final(error),
        })
    }

    /// Everything from the start-up packet on.
    fn start(&self, socket: Socket) -> Result<Link, Failure> {
        let upgrade = socket.is_encrypted().then(|| self.wanted());
        let mut opening = Opening {
            inbox: Inbox::new(),
            parameters: BTreeMap::new(),
            key: Vec::new(),
            socket,
            watch: self.watch,
        };
        opening.run(self.settings, self.host)?;
        self.check_role(&mut opening)?;
        let canceller = Canceller {
            peer: opening.socket.peer().to_owned(),
            address: opening.socket.address().clone(),
            upgrade,
            key: opening.key,
        };
        Ok(Link {
            socket: opening.socket,
            inbox: opening.inbox,
            parameters: opening.parameters,
            canceller: Arc::new(canceller),
        })
    }

    fn check_role(&self, opening: &mut Opening<'_>) -> Result<(), Failure> {
        let Opening { socket, inbox, parameters, watch, .. } = opening;
        let ready = Ready { socket, inbox, parameters, watch };
        let Some(what) = ready.mismatch(self.role).map_err(Failure::Unreachable)? else { return Ok(()) };
        // A goodbye, for the server's log. Whether it arrives changes nothing.
        let _ = opening.socket.write_all(&packet::TERMINATE, self.watch);
        let error = Error::operational(format!("{} {what}", self.host.peer()))
            .with_hint("list other hosts, or change target_session_attrs");
        Err(Failure::Mismatched(error))
    }
}

/// The conversation until the server is ready.
struct Opening<'a> {
    socket: Socket,
    inbox: Inbox,
    parameters: BTreeMap<String, String>,
    key: Vec<u8>,
    watch: &'a Watch,
}

impl Opening<'_> {
    fn run(&mut self, settings: &Settings, host: &Host) -> Result<(), Failure> {
        let packet = packet::startup(settings).map_err(Failure::Final)?;
        self.socket.write_all(&packet, self.watch).map_err(Failure::Unreachable)?;
        self.authenticate(settings, host)?;
        self.collect()?;
        packet::check_encoding(&self.parameters).map_err(Failure::Final)
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
                // A notice; or a list of wishes that the server does not know, and none was made.
                _ => Step::Wait,
            };
            self.inbox.consume(frame.length);
            match step {
                Step::Send(answer) => {
                    self.socket.write_all(&answer, self.watch).map_err(Failure::Unreachable)?;
                }
                Step::Wait => {}
                Step::Done => return Ok(()),
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
                return Err(unexpected(*tag, "the start of a session"));
            }
            if let Some([_, a, b, c, d]) = bytes.first_chunk::<HEADER>() {
                let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                if length > LONGEST {
                    return Err(broken(format!("a message of {length} bytes at the start of a session")));
                }
            }
            if let Some(frame) = frame(bytes)? {
                return Ok(frame);
            }
            self.inbox.fill(&mut self.socket, self.watch)?;
        }
    }
}

fn parameter(body: &[u8]) -> Result<(String, String)> {
    let mut reader = Reader::new(body);
    Ok((reader.text()?, reader.text()?))
}

#[cfg(test)]
mod tests;
