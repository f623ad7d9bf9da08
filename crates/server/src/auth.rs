//! Who a client is: a file of users, passwords as argon2id has them, and the tokens that stand for them.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use longshore_core::{Deadline, Error, Result, lock};
use longshore_flight_protocol::wait;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::expiring::random;

/// How long a token that is not used is good.
const TOKEN: Duration = Duration::from_secs(3_600);

/// Go's clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The rights of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) role: Role,
}

/// The users of a file, and the tokens that they have got.
pub(crate) struct Users {
    by_name: HashMap<String, (String, Role)>,
    tokens: Mutex<HashMap<String, (Caller, Instant)>>,
    /// How many passwords are checked at once: each takes 19 MiB and a processor, and any stranger has some.
    checks: Semaphore,
    /// The hash of no password, that an unknown name takes as long as a known one.
    nothing: String,
}

/// The hash of a password, with a salt of its own.
pub fn hash(password: &str) -> Result<String> {
    let mut salt = [0_u8; 16];
    SystemRandom::new()
        .fill(&mut salt)
        .map_err(|_| Error::operational("the system has no random numbers"))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| Error::internal(error.to_string()))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|error| Error::internal(error.to_string()))
}

/// The line of a user.
pub fn line_of(name: &str, password: &str, role: &str) -> Result<String> {
    if name.is_empty() || name.chars().any(|one| one == ':' || one.is_control()) || name.starts_with('#') {
        return Err(Error::interface("a user's name is a text without colons, which does not start with #"));
    }
    if password.is_empty() {
        return Err(Error::interface("the password is empty"));
    }
    role_of(role)?;
    Ok(format!("{name}:{}:{role}", hash(password)?))
}

fn role_of(word: &str) -> Result<Role> {
    match word {
        "reader" => Ok(Role::Reader),
        "writer" => Ok(Role::Writer),
        _ => Err(Error::interface("a user's role is reader or writer")),
    }
}

impl Users {
    /// Reads a file of lines `name:hash:role`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::operational(format!("the file of users {} cannot be read: {error}", path.display()))
                .with_hint("longshore users add makes one")
        })?;
        let mut users = HashMap::new();
        for (at, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || {
                Error::interface(format!("line {at} of the file of users is not name:hash:role"))
                    .with_hint("longshore users add writes such lines")
            };
            let mut parts = line.splitn(3, ':');
            let (Some(name), Some(hash), Some(role)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(wrong());
            };
            PasswordHash::new(hash).map_err(|_| wrong())?;
            let role = role_of(role.trim()).map_err(|_| wrong())?;
            if users.insert(name.to_owned(), (hash.to_owned(), role)).is_some() {
                return Err(Error::interface(format!("line {at} of the file of users names a user again")));
            }
        }
        if users.is_empty() {
            return Err(
                Error::interface("the file of users has none").with_hint("longshore users add adds one")
            );
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let checks = Semaphore::new(processors);
        Ok(Self { by_name: users, tokens: Mutex::default(), checks, nothing: hash("")? })
    }

    /// The user that a header names, by a password or by a token.
    pub(crate) fn caller(&self, metadata: &MetadataMap) -> Result<Caller, Status> {
        if let Some(token) = bearer(metadata) {
            return self.of_token(token).ok_or_else(|| refusal("the token is unknown, or has expired"));
        }
        let Some(basic) = after(authorization(metadata), "Basic ") else {
            return Err(refusal("a user and a password, or a token, are needed"));
        };
        self.of_password(basic).ok_or_else(|| refusal("the user or the password is wrong"))
    }

    /// A token for a caller; the one that it has come with, or a user could have any number.
    pub(crate) fn token(&self, caller: &Caller, metadata: &MetadataMap) -> Result<String> {
        if let Some(token) = bearer(metadata) {
            return Ok(token.to_owned());
        }
        let token = format!("{}{}", random()?, random()?);
        let mut tokens = lock(&self.tokens);
        tokens.retain(|_, (_, used)| used.elapsed() < TOKEN);
        tokens.insert(token.clone(), (caller.clone(), Instant::now()));
        Ok(token)
    }

    fn of_token(&self, token: &str) -> Option<Caller> {
        let mut tokens = lock(&self.tokens);
        let (caller, used) = tokens.get_mut(token)?;
        if used.elapsed() >= TOKEN {
            return None;
        }
        *used = Instant::now();
        Some(caller.clone())
    }

    fn of_password(&self, basic: &str) -> Option<Caller> {
        let decoded = String::from_utf8(BASE64.decode(basic.trim()).ok()?).ok()?;
        let (name, password) = decoded.split_once(':')?;
        let found = self.by_name.get(name);
        let hash = found.map_or(&self.nothing, |(hash, _)| hash);
        let _check = wait(&Deadline::never(), self.checks.acquire());
        let is_right = PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        found.filter(|_| is_right).map(|(_, role)| Caller { user: name.to_owned(), role: *role })
    }
}

fn authorization(metadata: &MetadataMap) -> &str {
    metadata.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn bearer(metadata: &MetadataMap) -> Option<&str> {
    after(authorization(metadata), "Bearer ")
}

/// The text that follows a word, which has any case.
fn after<'a>(header: &'a str, word: &str) -> Option<&'a str> {
    header.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word)).map(|_| &header[word.len()..])
}

fn refusal(reason: &str) -> Status {
    Status::unauthenticated(format!("{reason} [SQLSTATE 28000]"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_token_is_not_exchanged_for_another() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{}", line_of("ada", "secret", "reader").unwrap()).unwrap();
        let users = Users::read(file.path()).unwrap();
        let by = |authorization: String| {
            let mut metadata = MetadataMap::new();
            metadata.insert("authorization", authorization.parse().unwrap());
            metadata
        };
        let password = by(format!("Basic {}", BASE64.encode("ada:secret")));
        let token = users.token(&users.caller(&password).unwrap(), &password).unwrap();
        let known = by(format!("bearer {token}"));
        assert_eq!(users.token(&users.caller(&known).unwrap(), &known).unwrap(), token);
        assert_ne!(users.token(&users.caller(&password).unwrap(), &password).unwrap(), token);
        assert_eq!(lock(&users.tokens).len(), 2);
        assert!(users.caller(&by("Bearer x".into())).is_err());
    }

    #[test]
    fn a_line_is_a_name_a_hash_and_a_role() {
        let line = line_of("ada", "secret", "reader").unwrap();
        assert!(line.starts_with("ada:$argon2id$") && line.ends_with(":reader"), "{line}");
        for (name, password, role) in
            [("a:b", "x", "reader"), ("", "x", "reader"), ("a", "", "reader"), ("a", "x", "admin")]
        {
            assert!(line_of(name, password, role).is_err());
        }
    }
}
