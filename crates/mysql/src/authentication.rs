//! The proof that the client knows the password (MySQL Internals, "Authentication Method"; MariaDB, "Connection Plugins").

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use longshore_core::{Error, Result, Secret};
use longshore_wire::der::{SEQUENCE, Walk};
use num_bigint::BigUint;
use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::packet::{Reader, protocol_error};
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

const PLUGINS: [(Plugin, &str); 5] = [
    (Plugin::Native, "mysql_native_password"),
    (Plugin::CachingSha2, "caching_sha2_password"),
    (Plugin::Sha256, "sha256_password"),
    (Plugin::Ed25519, "client_ed25519"),
    (Plugin::Clear, "mysql_clear_password"),
];

impl Plugin {
    fn from_name(name: &str) -> Option<Self> {
        PLUGINS.into_iter().find(|(_, known)| *known == name).map(|(plugin, _)| plugin)
    }

    fn name(self) -> &'static str {
        PLUGINS.into_iter().find(|(plugin, _)| *plugin == self).map_or("", |(_, name)| name)
    }
}

/// The next step.
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
    /// Whether no one in between can read what is sent: TLS, or a Unix socket.
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
        self.plugin = match Plugin::from_name(plugin) {
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
    fn with_zero_byte(&self) -> Vec<u8> {
        [self.password(), b"\0"].concat()
    }

    /// The bytes that the plugin sends first.
    fn proof(&mut self) -> Result<Vec<u8>> {
        Ok(match self.plugin {
            Plugin::Native => native(self.password(), &self.nonce),
            Plugin::CachingSha2 => caching_sha2(self.password(), &self.nonce),
            Plugin::Ed25519 => ed25519(self.password(), &self.nonce),
            Plugin::Sha256 if self.password().is_empty() => vec![0],
            Plugin::Sha256 => self.whole_password(1)?,
            Plugin::Clear if self.encrypted && self.settings.clear_password => self.with_zero_byte(),
            Plugin::Clear => return Err(clear_refused(self.encrypted)),
        })
    }

    /// The password itself, where that is safe; otherwise under a key, which `ask` asks for.
    fn whole_password(&mut self, ask: u8) -> Result<Vec<u8>> {
        // sha256_password wants a key even over a Unix socket, where no one can pose as the server.
        if self.encrypted || (self.private && self.plugin == Plugin::CachingSha2) {
            return Ok(self.with_zero_byte());
        }
        match &self.settings.public_key {
            settings::PublicKey::None if !self.private => Err(no_encryption(self.plugin.name())),
            settings::PublicKey::None | settings::PublicKey::Asked => {
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
        PublicKey::from_pem(pem)?.encrypt(&xor(&self.with_zero_byte(), &self.nonce))
    }

    /// Answers what the server says, unless that is an error.
    pub(crate) fn answer(&mut self, payload: &[u8]) -> Result<Step> {
        match payload.split_first() {
            Some((0x00, _)) => Ok(Step::Done),
            Some((0x01, data)) => self.go_on(data),
            Some((0xfe, [])) => Err(refusal("mysql_old_password")),
            Some((0xfe, request)) => self.switch(request),
            _ => Err(protocol_error("an unknown message during the authentication")),
        }
    }

    fn switch(&mut self, request: &[u8]) -> Result<Step> {
        let mut reader = Reader::new(request);
        let name = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let nonce = reader.rest();
        self.plugin = Plugin::from_name(&name).ok_or_else(|| refusal(&name))?;
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
            (plugin, _) => Err(protocol_error(format!("an unknown message of {}", plugin.name()))),
        }
    }
}

fn no_encryption(plugin: &str) -> Error {
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

fn refusal(plugin: &str) -> Error {
    let name: String = plugin.chars().filter(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c)).collect();
    Error::not_supported(format!("the account's authentication {name:?} is not supported"))
        .with_sqlstate("28000")
        .with_hint(
            "give it one of caching_sha2_password, mysql_native_password, sha256_password or ed25519: ALTER USER ... \
             IDENTIFIED WITH ...",
        )
}

/// `mysql_native_password`: SHA1(p) XOR SHA1(nonce, SHA1(SHA1(p))). Nothing where the password is empty.
fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    scramble(&SHA1_FOR_LEGACY_USE_ONLY, password, |twice| [nonce, twice].concat())
}

/// `caching_sha2_password`: SHA256(p) XOR SHA256(SHA256(SHA256(p)), nonce). Nothing where the password is empty.
fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    scramble(&SHA256, password, |twice| [twice, nonce].concat())
}

fn scramble(algorithm: &'static Algorithm, password: &[u8], mixed: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(algorithm, password);
    let twice = digest(algorithm, once.as_ref());
    xor(once.as_ref(), digest(algorithm, &mixed(twice.as_ref())).as_ref())
}

/// `client_ed25519`: a signature of the nonce. The secret scalar is the password's own SHA-512, and not that of a
/// seed of 32 bytes as in RFC 8032, section 5.1.6, which this follows otherwise.
fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let secret = wide(&[password]);
    let (low, prefix) = secret.split_at(32);
    let mut clamped = [0; 32];
    clamped.copy_from_slice(low);
    let scalar = Scalar::from_bytes_mod_order(clamp_integer(clamped));
    let public = EdwardsPoint::mul_base(&scalar).compress();
    let blind = Scalar::from_bytes_mod_order_wide(&wide(&[prefix, nonce]));
    let commitment = EdwardsPoint::mul_base(&blind).compress();
    let challenge =
        Scalar::from_bytes_mod_order_wide(&wide(&[commitment.as_bytes(), public.as_bytes(), nonce]));
    let answer = blind + challenge * scalar;
    [commitment.as_bytes().as_slice(), answer.as_bytes()].concat()
}

fn wide(parts: &[&[u8]]) -> [u8; 64] {
    let mut context = Context::new(&SHA512);
    for part in parts {
        context.update(part);
    }
    let mut bytes = [0; 64];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// Each byte of `bytes` with that of `mask`, which is repeated.
fn xor(bytes: &[u8], mask: &[u8]) -> Vec<u8> {
    bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// Bytes of a SHA-1 digest.
const DIGEST: usize = 20;

/// An RSA public key.
#[derive(Debug)]
pub(crate) struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
    /// The modulus' length in bytes.
    length: usize,
}

/// DER's tags of a key's numbers, and of the bits that hold the key.
const INTEGER: u8 = 2;
const BITS: u8 = 3;

impl PublicKey {
    /// The key of a PEM text: a `SubjectPublicKeyInfo` (RFC 5280, section 4.1) or a bare `RSAPublicKey` (RFC 8017,
    /// appendix A.1.1).
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self> {
        let der = std::str::from_utf8(text).ok().and_then(pem);
        der.as_deref().and_then(Self::from_der).ok_or_else(|| {
            Error::operational("the server's public key is not an RSA key in PEM form")
                .with_hint("encrypt the connection instead: ssl-mode=REQUIRED")
        })
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let mut fields = Walk(der).enter()?;
        let mut modulus = fields.next()?;
        // An algorithm's identifier comes before the key, which a bit string then wraps.
        if modulus.tag == SEQUENCE {
            fields = Walk(fields.expect(BITS)?.content.strip_prefix(&[0])?).enter()?;
            modulus = fields.next()?;
        }
        let exponent = fields.expect(INTEGER)?.content;
        let modulus = (modulus.tag == INTEGER).then_some(modulus.content)?;
        let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        let length = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
        // Even or tiny ones are not keys; an exponent as long as the modulus would take seconds.
        let is_key = (64..=2048).contains(&length) && modulus.bit(0) && (2..=64).contains(&exponent.bits());
        is_key.then_some(Self { modulus, exponent, length })
    }

    /// `message` for the eyes of the key's owner.
    pub(crate) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>> {
        let longest = self.length.saturating_sub(2 * DIGEST + 2);
        if message.len() > longest {
            return Err(Error::interface("the password is too long for the server's public key")
                .with_hint("encrypt the connection instead: ssl-mode=REQUIRED"));
        }
        let mut seed = [0; DIGEST];
        SystemRandom::new().fill(&mut seed).map_err(|_| Error::operational("no random numbers to be had"))?;
        let padded = pad(message, &seed, self.length);
        let encrypted = BigUint::from_bytes_be(&padded).modpow(&self.exponent, &self.modulus).to_bytes_be();
        let mut block = vec![0; self.length - encrypted.len()];
        block.extend(encrypted);
        Ok(block)
    }
}

/// EME-OAEP: a zero byte, the masked seed, the masked data.
fn pad(message: &[u8], seed: &[u8; DIGEST], length: usize) -> Vec<u8> {
    let mut data = digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref().to_vec();
    data.resize(length - DIGEST - 2 - message.len(), 0);
    data.push(1);
    data.extend_from_slice(message);
    let masked = xor(&data, &mask(seed, data.len()));
    let seed = xor(seed, &mask(&masked, DIGEST));
    [[0].as_slice(), &seed, &masked].concat()
}

/// MGF1 with SHA-1 (RFC 8017, appendix B.2.1).
fn mask(seed: &[u8], length: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(length + DIGEST);
    for counter in 0_u32.. {
        if mask.len() >= length {
            break;
        }
        let block = [seed, &counter.to_be_bytes()].concat();
        mask.extend_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &block).as_ref());
    }
    mask.truncate(length);
    mask
}

/// The bytes between a PEM text's two lines of hyphens.
fn pem(text: &str) -> Option<Vec<u8>> {
    let body: String = text.split("-----").nth(2)?.split_ascii_whitespace().collect();
    BASE64_STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::edwards::CompressedEdwardsY;
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
        for request in ["mysql_clear_password", "sha256_password", "dialog", "auth_gssapi_client", ""] {
            let error = open.answer(&switch(request)).unwrap_err();
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

    #[test]
    fn native_proofs_are_undone_by_the_stored_hash() {
        let nonce = b"01234567890123456789";
        let proof = native(b"secret", nonce);
        let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, b"secret");
        let stored = digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref());
        let mask = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[nonce.as_slice(), stored.as_ref()].concat());
        assert_eq!(xor(&proof, mask.as_ref()), once.as_ref());
        assert!(native(b"", nonce).is_empty() && caching_sha2(b"", nonce).is_empty());
        assert_eq!(caching_sha2(b"secret", nonce).len(), 32);
    }

    #[test]
    fn signatures_are_good() {
        let nonce = [7; 32];
        let signature = ed25519("größe".as_bytes(), &nonce);
        let (commitment, answer) = signature.split_at(32);
        let secret = wide(&["größe".as_bytes()]);
        let mut clamped = [0; 32];
        clamped.copy_from_slice(&secret[..32]);
        let public = EdwardsPoint::mul_base_clamped(clamped);
        let challenge = wide(&[commitment, public.compress().as_bytes(), &nonce]);
        let challenge = Scalar::from_bytes_mod_order_wide(&challenge);
        let answer = Scalar::from_bytes_mod_order(answer.try_into().unwrap());
        let expected = CompressedEdwardsY(commitment.try_into().unwrap()).decompress().unwrap();
        assert_eq!(EdwardsPoint::mul_base(&answer), expected + public * challenge);
    }

    /// A key that was made for this test, of 512 bits, and its private exponent.
    fn toy() -> (PublicKey, BigUint) {
        // Two Mersenne primes: nothing that anybody would use.
        let one = BigUint::from(1_u8);
        let (p, q) = ((&one << 521_u32) - &one, (&one << 607_u32) - &one);
        let exponent = BigUint::from(65_537_u32);
        let totient = (&p - &one) * (&q - &one);
        let private = exponent.modinv(&totient).unwrap();
        let modulus = p * q;
        let length = usize::try_from(modulus.bits().div_ceil(8)).unwrap();
        (PublicKey { modulus, exponent, length }, private)
    }

    #[test]
    fn the_owner_reads_what_was_encrypted() {
        let (key, private) = toy();
        let block = key.encrypt(b"secret\0").unwrap();
        assert_eq!(block.len(), key.length);
        let plain = BigUint::from_bytes_be(&block).modpow(&private, &key.modulus).to_bytes_be();
        // A number has no zeros in front, of which the block has one at least.
        let plain = [vec![0; key.length - 1 - plain.len()], plain].concat();
        let (seed, masked) = plain.split_at(DIGEST);
        let seed = xor(seed, &mask(masked, DIGEST));
        let data = xor(masked, &mask(&seed, masked.len()));
        assert_eq!(&data[..DIGEST], digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref());
        let message = data[DIGEST..].iter().position(|byte| *byte == 1).unwrap() + DIGEST + 1;
        assert_eq!(&data[message..], b"secret\0");
        assert!(key.encrypt(&[0; 200]).is_err());
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        for text in ["", "-----BEGIN-----", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "é"]
        {
            assert!(PublicKey::from_pem(text.as_bytes()).is_err(), "{text}");
        }
    }
}
