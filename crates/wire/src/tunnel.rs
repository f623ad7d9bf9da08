//! TLS over a stream, a slice of waiting at a time.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use longshore_core::{Deadline, Error, Result};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error as TlsError};

use crate::certificate::Certificate;
use crate::stream::{Stream, is_pause};
use crate::{Tls, Verification};

/// Encrypted bytes taken from the system at once: four records.
const CAPACITY: usize = 64 * 1024;

/// One TLS session. Between its calls the stream belongs to the caller.
pub(crate) struct Tunnel {
    session: ClientConnection,
    received: Received,
}

impl Tunnel {
    /// A session towards `host` that has not begun.
    pub(crate) fn new(tls: &Tls, host: &str) -> Result<Self> {
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(_) if tls.verification != Verification::Full => IpAddr::V4(Ipv4Addr::UNSPECIFIED).into(),
            Err(_) => {
                return Err(Error::interface(format!("no certificate can be for the host {host:?}"))
                    .with_hint("write a DNS name or an IP address, or let the name go unchecked with sslmode=verify-ca"));
            }
        };
        let session = ClientConnection::new(Arc::new(tls.client()?), name)
            .map_err(|error| Error::internal(format!("cannot set up TLS: {error}")))?;
        Ok(Self { session, received: Received::default() })
    }

    /// Does the handshake. Errors name the server as `peer`.
    pub(crate) fn handshake(&mut self, stream: &mut Stream, deadline: &Deadline, peer: &str) -> Result<()> {
        while self.session.is_handshaking() {
            let Err(error) = self.step(stream) else { continue };
            if is_pause(&error) {
                deadline.check().map_err(|error| error.within(format!("starting TLS with {peer}")))?;
                continue;
            }
            // The alert tells the server why. Whether it arrives changes nothing here.
            let _ = self.flush(stream);
            return Err(failure(peer, "starting TLS with", error));
        }
        Ok(())
    }

    fn step(&mut self, stream: &mut Stream) -> io::Result<()> {
        self.flush(stream)?;
        if self.session.is_handshaking() && self.receive(stream)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Decrypts what is there into `into`; 0 means that the server has ended the session in order.
    pub(crate) fn read(&mut self, stream: &mut Stream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.receive(stream)?;
                    self.flush(stream)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// Takes some of `bytes` over, to be sent now or by the next [`Tunnel::flush`].
    pub(crate) fn write(&mut self, stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
        self.flush(stream)?;
        self.session.writer().write(bytes)
    }

    /// Sends everything that has been taken over.
    pub(crate) fn flush(&mut self, stream: &mut Stream) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(stream)?;
        }
        Ok(())
    }

    fn receive(&mut self, stream: &mut Stream) -> io::Result<usize> {
        self.received.fill(stream)?;
        let count = self.session.read_tls(&mut self.received)?;
        self.session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(count)
    }

    /// The application protocol that the server has agreed to.
    pub(crate) fn application_protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// The digest of the server's certificate (RFC 5929, section 4: tls-server-end-point).
    pub(crate) fn end_point(&self) -> Option<Vec<u8>> {
        let certificate = self.session.peer_certificates()?.first()?;
        let algorithm = Certificate::parse(certificate)?.digest()?;
        Some(ring::digest::digest(algorithm, certificate).as_ref().to_vec())
    }
}

/// Encrypted bytes between the system and the session, which would fetch them 4 KiB at a time.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Received {
    /// Fetches more, unless there still is something.
    fn fill(&mut self, stream: &mut Stream) -> io::Result<()> {
        if self.start < self.end {
            return Ok(());
        }
        self.bytes.resize(CAPACITY, 0);
        self.end = stream.read(&mut self.bytes)?;
        self.start = 0;
        Ok(())
    }
}

impl Read for Received {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.get(self.start..self.end).unwrap_or_default().read(into)?;
        self.start += count;
        Ok(count)
    }
}

/// The connection to `peer` is of no more use.
#[cold]
pub(crate) fn failure(peer: &str, doing: &str, error: io::Error) -> Error {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    if let Some((what, hint)) = tls.map(explain) {
        return Error::operational(format!("TLS failed while {doing} {peer}: {what}"))
            .with_sqlstate("08006")
            .with_hint(hint)
            .with_source(error);
    }
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server ended it without a word".to_owned(),
        _ => error.to_string(),
    };
    Error::operational(format!("the connection was lost while {doing} {peer}: {what}"))
        .with_sqlstate("08006")
        .with_hint("look into the server's log, and at the network in between; then connect again")
        .with_source(error)
}

/// The text of what is wrong, and what to do.
fn explain(error: &TlsError) -> (String, &'static str) {
    match error {
        TlsError::InvalidCertificate(error) => explain_certificate(error),
        TlsError::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => (
            format!("the server refused it ({error})"),
            "give a client certificate with sslcert and sslkey, if the server demands one",
        ),
        TlsError::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate,
        ) => (
            format!("the server does not accept the client certificate ({error})"),
            "give one that the server's authority has signed and that has not expired",
        ),
        TlsError::AlertReceived(AlertDescription::ProtocolVersion) | TlsError::PeerIncompatible(_) => (
            format!("client and server share no version or cipher ({error})"),
            "have the server speak TLS 1.2 or 1.3",
        ),
        _ => (error.to_string(), "check that host and port belong to a server that speaks TLS"),
    }
}

fn explain_certificate(error: &CertificateError) -> (String, &'static str) {
    use CertificateError as Fault;
    let (what, hint) = match error {
        Fault::UnknownIssuer => (
            "is signed by no trusted authority".into(),
            "name the file of its authority's certificate with sslrootcert",
        ),
        Fault::Expired | Fault::ExpiredContext { .. } => {
            ("has expired".into(), "have it renewed on the server, and check this machine's clock")
        }
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
            ("is not valid yet".into(), "check this machine's clock, and the server's when it was made")
        }
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => (
            wrong_name(error),
            "connect by a name that it is for, or let the name go unchecked with sslmode=verify-ca",
        ),
        Fault::Other(fault) => (
            format!("breaks the rules ({fault})"),
            "have one of X.509 version 3 made for the server; one that is its own authority has to be named itself \
             with sslrootcert",
        ),
        fault => {
            (format!("is not to be trusted ({fault})"), "have a new one made for the server by an authority")
        }
    };
    (format!("the server's certificate {what}"), hint)
}

fn wrong_name(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            format!("lists no names, and its common name is not {:?}", expected.to_str())
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("is not for {:?} but for {}", expected.to_str(), presented.join(", "))
        }
        _ => "is not for this host".into(),
    }
}
