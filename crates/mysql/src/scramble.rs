//! How each authentication plugin proves that the client knows the password, which none of them sends.

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};

/// `mysql_native_password`: SHA1(p) XOR SHA1(nonce, SHA1(SHA1(p))). Nothing where the password is empty.
pub(crate) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, password);
    let twice = digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref());
    let mut mixed = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    mixed.update(nonce);
    mixed.update(twice.as_ref());
    xor(once.as_ref(), mixed.finish().as_ref())
}

/// `caching_sha2_password`: SHA256(p) XOR SHA256(SHA256(SHA256(p)), nonce). Nothing where the password is empty.
pub(crate) fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(&SHA256, password);
    let twice = digest(&SHA256, once.as_ref());
    let mut mixed = Context::new(&SHA256);
    mixed.update(twice.as_ref());
    mixed.update(nonce);
    xor(once.as_ref(), mixed.finish().as_ref())
}

/// `client_ed25519`: a signature of the nonce. The secret scalar is the password's own SHA-512, and not that of a
/// seed of 32 bytes as in RFC 8032, section 5.1.6, which this follows otherwise.
pub(crate) fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
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
pub(crate) fn xor(bytes: &[u8], mask: &[u8]) -> Vec<u8> {
    bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::edwards::CompressedEdwardsY;

    use super::*;

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
}
