//! Proves to the server who is there (MySQL Internals, "Authentication Method"; MariaDB, "Connection Plugins").

use longshore_core::{Error, Kind, Result, Secret};

use crate::packet::broken;
use crate::reader::Reader;
use crate::rsa::PublicKey;
use crate::scramble;
use crate::settings::{self, Settings};

/// A way to authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Clear,
}

impl Plugin {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "mysql_native_password" => Self::Native,
            "caching_sha2_password" => Self::CachingSha2,
            "sha256_password" => Self::Sha256,
            "client_ed25519" => Self::Ed25519,
            "mysql_clear_password" => Self::Clear,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Sha256 => "sha256_password",
            Self::Ed25519 => "client_ed25519",
            Self::Clear => "mysql_clear_password",
        }
    }
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait,
    Done,
}

/// The conversation about who is there.
pub(crate) struct Authentication<'a> {
    settings: &'a Settings,
    password: Option<Secret>,
    /// Whether nobody in between can read what is sent: TLS, or a Unix socket.
    private: bool,
    encrypted: bool,
    plugin: Plugin,
    nonce: Vec<u8>,
    /// The server's key has been asked for.
    awaits_key: bool,
}

impl<'a> Authentication<'a> {
    /// Over a connection that is `encrypted`, or else `private` all the same. The password is asked for here.
    pub(crate) fn new(settings: &'a Settings, encrypted: bool, private: bool) -> Result<Self> {
        let password = settings.password.as_ref().map(|source| source.password()).transpose()?;
        if password.as_ref().is_some_and(|password| password.reveal().contains('\0')) {
            return Err(Error::interface("the password holds a zero byte")
                .with_hint("MySQL ends every text there: no account can have it"));
        }
        Ok(Self {
            settings,
            password,
            private,
            encrypted,
            plugin: Plugin::Native,
            nonce: Vec::new(),
            awaits_key: false,
        })
    }

    /// The plugin to begin with, and its proof. What is unknown the server will change.
    pub(crate) fn begin(&mut self, plugin: &str, nonce: &[u8]) -> Result<(&'static str, Vec<u8>)> {
        self.nonce = nonce.to_vec();
        self.plugin = match Plugin::named(plugin) {
            // The password itself is sent only to whom asks for it.
            Some(Plugin::Clear) | None => Plugin::Native,
            Some(plugin) => plugin,
        };
        Ok((self.plugin.name(), self.proof()?))
    }

    fn password(&self) -> &[u8] {
        self.password.as_ref().map_or(b"", |password| password.reveal().as_bytes())
    }

    /// The password as some plugins want it, with a zero byte behind it.
    fn terminated(&self) -> Vec<u8> {
        [self.password(), b"\0"].concat()
    }

    /// What the plugin sends first.
    fn proof(&mut self) -> Result<Vec<u8>> {
        Ok(match self.plugin {
            Plugin::Native => scramble::native(self.password(), &self.nonce),
            Plugin::CachingSha2 => scramble::caching_sha2(self.password(), &self.nonce),
            Plugin::Ed25519 => scramble::ed25519(self.password(), &self.nonce),
            Plugin::Sha256 if self.password().is_empty() => vec![0],
            Plugin::Sha256 => self.whole_password(1)?,
            Plugin::Clear if self.encrypted && self.settings.clear_password => self.terminated(),
            Plugin::Clear => return Err(clear_refused(self.encrypted)),
        })
    }

    /// The password itself, where that is safe; otherwise under a key, which `ask` asks for.
    fn whole_password(&mut self, ask: u8) -> Result<Vec<u8>> {
        // sha256_password wants a key even over a Unix socket, where nobody can pose as the server.
        if self.encrypted || (self.private && self.plugin == Plugin::CachingSha2) {
            return Ok(self.terminated());
        }
        match &self.settings.public_key {
            settings::PublicKey::None if self.private => {
                self.awaits_key = true;
                Ok(vec![ask])
            }
            settings::PublicKey::None => Err(unprotected(self.plugin.name())),
            settings::PublicKey::Asked => {
                self.awaits_key = true;
                Ok(vec![ask])
            }
            settings::PublicKey::File(path) => {
                let pem = std::fs::read(path).map_err(|error| {
                    Error::interface(format!("the public key {} cannot be read: {error}", path.display()))
                        .with_hint("check the path given as server-public-key-path")
                })?;
                self.under_key(&pem)
            }
        }
    }

    fn under_key(&self, pem: &[u8]) -> Result<Vec<u8>> {
        PublicKey::from_pem(pem)?.encrypt(&scramble::xor(&self.terminated(), &self.nonce))
    }

    /// Answers what the server says, unless that is an error.
    pub(crate) fn answer(&mut self, payload: &[u8]) -> Result<Step> {
        match payload.split_first() {
            Some((0x00, _)) => Ok(Step::Done),
            Some((0x01, data)) => self.go_on(data),
            Some((0xfe, [])) => Err(refused("mysql_old_password")),
            Some((0xfe, request)) => self.switch(request),
            _ => Err(broken("an unknown message during the authentication")),
        }
    }

    fn switch(&mut self, request: &[u8]) -> Result<Step> {
        let mut reader = Reader::new(request);
        let name = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let nonce = reader.rest();
        self.plugin = Plugin::named(&name).ok_or_else(|| refused(&name))?;
        // Some plugins' nonces end with a zero byte, which is none of theirs.
        self.nonce = match (self.plugin, nonce) {
            (plugin, [nonce @ .., 0]) if plugin != Plugin::Ed25519 => nonce.to_vec(),
            (_, nonce) => nonce.to_vec(),
        };
        self.awaits_key = false;
        self.proof().map(Step::Send)
    }

    fn go_on(&mut self, data: &[u8]) -> Result<Step> {
        match (self.plugin, data) {
            _ if self.awaits_key => {
                self.awaits_key = false;
                self.under_key(data).map(Step::Send)
            }
            // The server remembers the password's hash, and is content.
            (Plugin::CachingSha2, [0x03]) => Ok(Step::Wait),
            // It does not, and wants the password.
            (Plugin::CachingSha2, [0x04]) => self.whole_password(0x02).map(Step::Send),
            (plugin, _) => Err(broken(format!("an unknown message of {}", plugin.name()))),
        }
    }
}

fn unprotected(plugin: &str) -> Error {
    Error::operational(format!("{plugin} needs the password itself, and the connection is not encrypted"))
        .with_sqlstate("28000")
        .with_hint(
            "encrypt it with ssl-mode=REQUIRED; or name the server's key with server-public-key-path; or, where no one \
             can pose as the server, have it sent: get-server-public-key=true",
        )
}

fn clear_refused(encrypted: bool) -> Error {
    let why = if encrypted { "that is not allowed" } else { "the connection is not encrypted" };
    Error::operational(format!("the server wants the password as it is (mysql_clear_password), and {why}"))
        .with_sqlstate("28000")
        .with_hint(
            "where the server can be trusted with it, allow it: enable-cleartext-plugin=true with ssl-mode=VERIFY_IDENTITY",
        )
}

fn refused(plugin: &str) -> Error {
    let name: String = plugin.chars().filter(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c)).collect();
    Error::new(Kind::NotSupported, format!("the account's authentication {name:?} is not supported"))
        .with_sqlstate("28000")
        .with_hint(
            "give it one of caching_sha2_password, mysql_native_password, sha256_password or ed25519: ALTER USER ... \
             IDENTIFIED WITH ...",
        )
}

#[cfg(test)]
mod tests {
    use longshore_core::Target;

    use super::*;

    fn settings(rest: &str) -> Settings {
        Settings::resolve(&Target::from_url(&format!("mysql://{rest}")).unwrap()).unwrap()
    }

    fn switch(to: &str) -> Vec<u8> {
        [b"\xfe", to.as_bytes(), b"\0", &[7; 20], b"\0"].concat()
    }

    #[test]
    fn the_password_is_never_sent_in_the_open() {
        let plain = settings("me:secret@h?enable-cleartext-plugin=true");
        let mut open = Authentication::new(&plain, false, false).unwrap();
        assert_eq!(open.begin("mysql_clear_password", &[1; 20]).unwrap().0, "mysql_native_password");
        for wish in ["mysql_clear_password", "sha256_password", "dialog", "auth_gssapi_client", ""] {
            let error = open.answer(&switch(wish)).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        open.answer(&switch("caching_sha2_password")).unwrap();
        assert!(open.answer(&[1, 4]).is_err());
        assert!(open.answer(b"\xfe").is_err());
        let quiet = settings("me:secret@h");
        let mut private = Authentication::new(&quiet, true, true).unwrap();
        private.begin("caching_sha2_password", &[1; 20]).unwrap();
        assert!(private.answer(&switch("mysql_clear_password")).is_err());
        private.answer(&switch("caching_sha2_password")).unwrap();
        assert!(matches!(private.answer(&[1, 4]), Ok(Step::Send(sent)) if sent == b"secret\0"));
        assert!(matches!(private.answer(&[0]), Ok(Step::Done)));
    }

    #[test]
    fn a_key_is_asked_for_only_on_request() {
        let asking = settings("me:secret@h?get-server-public-key=true");
        let mut open = Authentication::new(&asking, false, false).unwrap();
        open.begin("caching_sha2_password", &[1; 20]).unwrap();
        assert!(matches!(open.answer(&[1, 4]), Ok(Step::Send(sent)) if sent == [2]));
        assert!(open.answer(b"\x01no key").is_err());
        assert_eq!(open.begin("sha256_password", &[1; 20]).unwrap().1, [1]);
    }
}
