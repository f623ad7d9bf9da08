//! Opens a connection: connects, encrypts, authenticates, and compresses.

use longshore_core::{Error, Kind, Result, Watch};
use longshore_wire::{Inbox, Socket};

use crate::authentication::{Authentication, Step};
use crate::channel::{Channel, Compressed};
use crate::handshake::{self, Greeting};
use crate::message::{Done, capability, done, server_error};
use crate::packet::{self, HEADER, Sequence, broken, header};
use crate::settings::{Mode, Place, Settings};

/// No message of a start-up is longer.
const LONGEST: usize = 1 << 20;

/// A connection whose server waits for the first command.
pub(crate) struct Link {
    pub(crate) channel: Channel,
    pub(crate) inbox: Inbox,
    pub(crate) capabilities: u64,
    pub(crate) greeting: Greeting,
    pub(crate) done: Done,
}

/// Opens a connection to the settings' server.
pub(crate) fn open(settings: &Settings, watch: &Watch) -> Result<Link> {
    let limited = settings.connect_timeout.map(|limit| watch.at_most(limit));
    let opened = try_all(settings, limited.as_ref().unwrap_or(watch));
    opened.map_err(|error| match error.kind() {
        // The caller's own deadline has its own words.
        Kind::Timeout if limited.is_some() && watch.check().is_ok() => {
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
fn try_all(settings: &Settings, watch: &Watch) -> Result<Link> {
    match start(settings, settings.mode, watch) {
        Err(Failure::Unencrypted(first)) if settings.mode == Mode::Preferred => {
            start(settings, Mode::Disabled, watch).map_err(|second| match second {
                // What the server says is more than what went before.
                Failure::Final(error) if error.sqlstate().is_some() => error,
                _ => first,
            })
        }
        Ok(link) => Ok(link),
        Err(Failure::Unencrypted(error) | Failure::Final(error)) => Err(error),
    }
}

fn start(settings: &Settings, mode: Mode, watch: &Watch) -> Result<Link, Failure> {
    let socket = connect(settings, watch)?;
    let is_local = matches!(settings.place, Place::Unix(_));
    let mut opening = Opening { socket, inbox: Inbox::new(), sequence: Sequence::Next(0), settings, watch };
    let length = opening.receive()?;
    let greeting = Greeting::parse(opening.payload(length)).map_err(|error| opening.named(error))?;
    opening.inbox.consume(HEADER + length);
    let encrypted = match mode {
        Mode::Disabled => false,
        Mode::Preferred => !is_local && greeting.has(capability::SSL),
        Mode::Required if greeting.has(capability::SSL) => true,
        Mode::Required => return Err(no_tls(opening.socket.peer()).into()),
    };
    let capabilities = handshake::agreed(&greeting, settings, encrypted)?;
    if encrypted {
        opening = opening.encrypt(capabilities)?;
    }
    let mut authentication = Authentication::new(settings, encrypted, encrypted || is_local)?;
    let (plugin, proof) = authentication.begin(&greeting.plugin, &greeting.nonce)?;
    opening.send(&handshake::response(capabilities, settings, plugin, &proof))?;
    let done = opening.authenticate(&mut authentication, capabilities)?;
    let channel = match settings.compression {
        Some(compression) => Channel::Compressed(Box::new(Compressed::new(opening.socket, compression))),
        None => Channel::Plain(opening.socket),
    };
    Ok(Link { channel, inbox: opening.inbox, capabilities, greeting, done })
}

fn connect(settings: &Settings, watch: &Watch) -> Result<Socket> {
    match &settings.place {
        Place::Tcp(host, port) => Socket::connect_tcp(host, *port, &settings.keepalive, watch),
        #[cfg(unix)]
        Place::Unix(path) => Socket::connect_unix(path, watch),
        #[cfg(not(unix))]
        Place::Unix(_) => Err(Error::interface("this system has no Unix sockets")),
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
    watch: &'a Watch,
}

impl Opening<'_> {
    /// Waits for a message; gives the length of its payload, which lies behind a header in the inbox.
    fn receive(&mut self) -> Result<usize> {
        loop {
            if let Some((length, number)) = header(self.inbox.bytes()) {
                // What else answers need not be a MySQL server at all.
                if length > LONGEST || self.sequence != Sequence::Next(number) {
                    return Err(broken("a first message that is not a MySQL packet"));
                }
            }
            if let Some(length) = packet::receive(&mut self.inbox, 0, &mut self.sequence)? {
                return Ok(length);
            }
            self.inbox.fill(&mut self.socket, self.watch)?;
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
        self.socket.write_all(&bytes, self.watch)
    }

    fn encrypt(mut self, capabilities: u64) -> Result<Self, Failure> {
        // What came before the encryption must not be taken for a part of what is encrypted.
        if !self.inbox.bytes().is_empty() {
            return Err(broken("bytes behind the greeting").into());
        }
        self.send(&handshake::tls_request(capabilities))?;
        let socket = self.socket.start_tls(&self.settings.tls, self.settings.host(), self.watch);
        match socket {
            Ok(socket) => Ok(Self { socket, ..self }),
            Err(error) if error.message().contains("HandshakeFailure") => {
                Err(Failure::Unencrypted(error.with_hint(
                    "the server wants a client certificate (ssl-cert and ssl-key), or has no cipher with forward \
                     secrecy, as some servers before MySQL 8.0.16; where nobody listens in between, use \
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
                return Err(self.named(server_error(payload)));
            }
            let step = authentication.answer(payload)?;
            let ended = matches!(step, Step::Done).then(|| done(payload, capabilities)).transpose()?;
            self.inbox.consume(HEADER + length);
            match (step, ended) {
                (Step::Send(answer), _) => self.send(&answer)?,
                (_, Some(done)) => return Ok(done),
                _ => {}
            }
        }
    }

    /// The server's refusal, with the server's name.
    fn named(&self, error: Error) -> Error {
        error.within(format!("{} refuses the connection", self.socket.peer()))
    }
}
