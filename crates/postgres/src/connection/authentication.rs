//! Proves the user to the server, and with SCRAM the server to the user. Bytes in, bytes out: no socket here.

use longshore_core::{Error, PasswordSource, Result, Secret};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use super::message::{Reader, protocol_error};
use crate::settings::{BindingMode, Methods};

/// The user's name and secrets, known before the server asks.
pub(crate) struct Credentials<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: Option<&'a dyn PasswordSource>,
    /// Why a password file that is there does not count.
    pub(crate) complaint: Option<&'a str>,
    pub(crate) methods: &'a Methods,
    pub(crate) binding: BindingMode,
    pub(crate) encrypted: bool,
    /// The digest of the server's certificate.
    pub(crate) end_point: Option<Vec<u8>>,
}

/// How far the exchange has come.
enum State {
    /// Nothing has been asked for.
    Untouched,
    /// The server has the last word about the one answer it asked for.
    Answered,
    /// SCRAM: the server's challenge is next.
    Challenge(ScramSha256),
    /// SCRAM: the server's own proof is next.
    Proof(ScramSha256),
    /// SCRAM: both sides have proved themselves.
    Proven,
}

pub(crate) enum Step {
    /// Send this message and wait for the next one.
    Send(Vec<u8>),
    /// Wait for the next one.
    Wait,
    /// The server is content.
    Done,
}

pub(crate) struct Authentication<'a> {
    credentials: Credentials<'a>,
    state: State,
    bound: bool,
}

/// Request codes of the message `R` (PostgreSQL documentation, chapter "Message Formats").
mod request {
    pub(super) const OK: i32 = 0;
    pub(super) const CLEARTEXT: i32 = 3;
    pub(super) const MD5: i32 = 5;
    pub(super) const GSS: i32 = 7;
    pub(super) const SSPI: i32 = 9;
    pub(super) const SASL: i32 = 10;
    pub(super) const SASL_CONTINUE: i32 = 11;
    pub(super) const SASL_FINAL: i32 = 12;
}

impl<'a> Authentication<'a> {
    pub(crate) fn new(credentials: Credentials<'a>) -> Self {
        Self { credentials, state: State::Untouched, bound: false }
    }

    /// Whether the server has asked for a proof yet.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Untouched)
    }

    /// Answers the body of a message `R`.
    pub(crate) fn answer(&mut self, body: &[u8]) -> Result<Step> {
        let mut reader = Reader::new(body);
        let code = reader.i32()?;
        let state = std::mem::replace(&mut self.state, State::Answered);
        match (code, state) {
            (request::OK, state) => self.finish(&state),
            (request::CLEARTEXT, State::Untouched) => self.cleartext(),
            (request::MD5, State::Untouched) => self.md5(reader.bytes(4)?),
            (request::SASL, State::Untouched) => self.begin_scram(reader),
            (request::SASL_CONTINUE, State::Challenge(scram)) => self.prove(scram, reader.rest()),
            (request::SASL_FINAL, State::Proof(scram)) => self.check_proof(scram, reader.rest()),
            (request::GSS, State::Untouched) => Err(self.foreign("gss", "Kerberos (GSSAPI)")),
            (request::SSPI, State::Untouched) => Err(self.foreign("sspi", "Windows logins (SSPI)")),
            (code, State::Untouched) => Err(not_supported(&format!(
                "the way to authenticate that the server asks for (number {code})"
            ))),
            (code, _) => Err(protocol_error(format!("authentication request {code} out of turn"))),
        }
    }

    fn finish(&self, state: &State) -> Result<Step> {
        match state {
            State::Untouched => self.permit("none")?,
            State::Challenge(_) | State::Proof(_) => {
                return Err(Error::operational(
                    "the server ended SCRAM authentication without its own proof",
                )
                .with_hint(
                    "something in between may pretend to be the server: check the address, and use TLS",
                ));
            }
            State::Answered | State::Proven => {}
        }
        if self.credentials.binding == BindingMode::Require && !self.bound {
            return Err(no_binding("the server did not use it"));
        }
        Ok(Step::Done)
    }

    /// Refuses a method that the caller does not allow, before anything secret is sent.
    fn permit(&self, method: &str) -> Result<()> {
        if self.credentials.methods.allow(method) {
            return Ok(());
        }
        let what = if method == "none" { "no authentication at all" } else { method };
        Err(Error::operational(format!("require_auth does not allow what the server wants: {what}"))
            .with_hint("change require_auth, or the server's pg_hba.conf"))
    }

    /// Permits a method that knows no channel binding.
    fn permit_unbound(&self, method: &str) -> Result<()> {
        self.permit(method)?;
        match self.credentials.binding {
            BindingMode::Require => Err(no_binding(&format!("the server asks for {method}"))),
            _ => Ok(()),
        }
    }

    fn foreign(&self, method: &str, name: &str) -> Error {
        self.permit(method).err().unwrap_or_else(|| not_supported(name))
    }

    fn password(&self) -> Result<Secret> {
        let Some(source) = self.credentials.password else { return Err(self.no_password()) };
        let password = source.password()?;
        if password.reveal().is_empty() {
            return Err(self.no_password());
        }
        if password.reveal().contains('\0') {
            return Err(Error::interface("the password holds a zero byte")
                .with_hint("take it out: PostgreSQL ends every text there"));
        }
        Ok(password)
    }

    fn no_password(&self) -> Error {
        let user = self.credentials.user;
        let error = Error::operational(format!(
            "the server wants a password for the user {user:?}, and there is none"
        ))
        .with_hint("give it in the URL (user:password@host), as password=, in PGPASSWORD or in ~/.pgpass");
        match self.credentials.complaint {
            Some(complaint) => error.with_detail(complaint),
            None => error,
        }
    }

    fn cleartext(&self) -> Result<Step> {
        self.permit_unbound("password")?;
        Ok(Step::Send(message(&[self.password()?.reveal().as_bytes(), b"\0"])))
    }

    fn md5(&self, salt: &[u8]) -> Result<Step> {
        self.permit_unbound("md5")?;
        let salt = *salt.first_chunk().ok_or_else(|| protocol_error("a short salt"))?;
        let hash = md5_hash(self.credentials.user.as_bytes(), self.password()?.reveal().as_bytes(), salt);
        Ok(Step::Send(message(&[hash.as_bytes(), b"\0"])))
    }

    fn begin_scram(&mut self, mut offer: Reader<'_>) -> Result<Step> {
        let (mut plain, mut plus) = (false, false);
        let mut offered = Vec::new();
        loop {
            match offer.text()? {
                end if end.is_empty() => break,
                name => {
                    plain |= name == SCRAM_SHA_256;
                    plus |= name == SCRAM_SHA_256_PLUS;
                    offered.push(name);
                }
            }
        }
        if !plain && !plus {
            return Err(not_supported(&format!(
                "each of the server's ways to authenticate ({})",
                offered.join(", ")
            )));
        }
        self.permit("scram-sha-256")?;
        let binding = self.binding(plus)?;
        let mechanism = if self.bound { SCRAM_SHA_256_PLUS } else { SCRAM_SHA_256 };
        if !self.bound && !plain {
            return Err(no_binding("the server insists on it, but it cannot be done here"));
        }
        let scram = ScramSha256::new(self.password()?.reveal().as_bytes(), binding);
        let first = scram.message();
        let length = i32::try_from(first.len()).map_err(|_| protocol_error("an endless SCRAM message"))?;
        let send = message(&[mechanism.as_bytes(), b"\0", &length.to_be_bytes(), first]);
        self.state = State::Challenge(scram);
        Ok(Step::Send(send))
    }

    /// How the exchange is tied to the TLS connection; sets `bound` where it is.
    fn binding(&mut self, offered: bool) -> Result<ChannelBinding> {
        let Credentials { binding, encrypted, .. } = self.credentials;
        if offered && !encrypted {
            // A server offers it under TLS alone: the encryption was taken away on the way.
            return Err(protocol_error("SCRAM-SHA-256-PLUS on a connection that is not encrypted"));
        }
        if binding == BindingMode::Require && !offered {
            return Err(no_binding(if encrypted { "the server does not offer it" } else { "it needs TLS" }));
        }
        match self.credentials.end_point.take() {
            _ if binding == BindingMode::Disable => Ok(ChannelBinding::unsupported()),
            Some(digest) if offered => {
                self.bound = true;
                Ok(ChannelBinding::tls_server_end_point(digest))
            }
            // Tells the server that it could have been had, so that it notices an offer that was taken away.
            Some(_) => Ok(ChannelBinding::unrequested()),
            None if binding == BindingMode::Require => {
                Err(no_binding("the server's certificate has no digest to bind to"))
            }
            None => Ok(ChannelBinding::unsupported()),
        }
    }

    fn prove(&mut self, mut scram: ScramSha256, challenge: &[u8]) -> Result<Step> {
        scram
            .update(challenge)
            .map_err(|error| protocol_error(format!("a SCRAM challenge of no use: {error}")))?;
        let send = message(&[scram.message()]);
        self.state = State::Proof(scram);
        Ok(Step::Send(send))
    }

    fn check_proof(&mut self, mut scram: ScramSha256, proof: &[u8]) -> Result<Step> {
        scram.finish(proof).map_err(|error| {
            Error::operational("the server could not prove that it knows the password")
                .with_hint(
                    "something in between may pretend to be the server: check the address, and use TLS",
                )
                .with_source(error)
        })?;
        self.state = State::Proven;
        Ok(Step::Wait)
    }
}

fn not_supported(what: &str) -> Error {
    Error::not_supported(format!("{what}: not supported"))
        .with_hint("let the user log in by scram-sha-256 in the server's pg_hba.conf")
}

fn no_binding(why: &str) -> Error {
    Error::operational(format!("channel_binding=require cannot be met: {why}"))
        .with_hint("use TLS and a SCRAM-SHA-256 password, or set channel_binding=prefer")
}

/// A message `p` of these parts.
fn message(parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut message = Vec::with_capacity(1 + length);
    message.push(b'p');
    // Texts as long as 2 GiB would not have come this far.
    message.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        message.extend_from_slice(part);
    }
    message
}

#[cfg(test)]
mod tests;
