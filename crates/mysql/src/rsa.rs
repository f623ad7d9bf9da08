//! A password under the server's public key: RSAES-OAEP with SHA-1 (RFC 8017, section 7.1).

use longshore_core::{Error, Result};
use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};

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
        let (outer, _) = element(der, 0x30)?;
        // An algorithm's identifier comes before the key, which a bit string then wraps.
        let bare = match element(outer, 0x30) {
            Some((_, rest)) => {
                let (bits, _) = element(rest, 0x03)?;
                element(bits.strip_prefix(&[0])?, 0x30)?.0
            }
            None => outer,
        };
        let (modulus, rest) = element(bare, 0x02)?;
        let (exponent, _) = element(rest, 0x02)?;
        let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        let length = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
        // Even or tiny ones are no keys; an exponent as long as the modulus would take seconds.
        let is_key = (64..=2048).contains(&length) && modulus.bit(0) && (2..=64).contains(&exponent.bits());
        is_key.then_some(Self { modulus, exponent, length })
    }

    /// `message` for the eyes of the key's owner.
    pub(crate) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>> {
        let room = self.length.saturating_sub(2 * DIGEST + 2);
        if message.len() > room {
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
    let masked = crate::scramble::xor(&data, &mask(seed, data.len()));
    let seed = crate::scramble::xor(seed, &mask(&masked, DIGEST));
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

/// The content of a DER element with `tag`, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk()?;
    if found != tag {
        return None;
    }
    if first < 0x80 {
        return rest.split_at_checked(first.into());
    }
    let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(it, _)| it.len() <= 4)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}

/// The bytes between a PEM text's two lines of hyphens.
fn pem(text: &str) -> Option<Vec<u8>> {
    let body = text.split("-----").nth(2)?;
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in body.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (seed, masked) = plain.split_at(DIGEST);
        let seed = crate::scramble::xor(seed, &mask(masked, DIGEST));
        let data = crate::scramble::xor(masked, &mask(&seed, masked.len()));
        assert_eq!(&data[..DIGEST], digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref());
        let message = data[DIGEST..].iter().position(|byte| *byte == 1).unwrap() + DIGEST + 1;
        assert_eq!(&data[message..], b"secret\0");
        assert!(key.encrypt(&[0; 200]).is_err());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "-----BEGIN-----", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "é"]
        {
            assert!(PublicKey::from_pem(text.as_bytes()).is_err(), "{text}");
        }
    }
}
