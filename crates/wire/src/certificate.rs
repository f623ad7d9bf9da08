//! The few fields of an X.509 certificate that the verifier of TLS does not give away (RFC 5280, section 4.1).

use ring::digest::{Algorithm, SHA256, SHA384, SHA512};
use rustls::pki_types::{AlgorithmIdentifier, alg_id};

use crate::der::{SEQUENCE, Walk};

/// The object identifier of a common name, as DER has it.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// DER's tags of a set, and of the first optional field.
const SET: u8 = 0x31;
const FIRST: u8 = 0xa0;

/// Signature algorithms that are older than those of TLS: RSA over MD5 and SHA-1, ECDSA over SHA-1.
const OLD: [AlgorithmIdentifier; 3] = [
    AlgorithmIdentifier::from_slice(&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4, 5, 0]),
    AlgorithmIdentifier::from_slice(&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5, 5, 0]),
    AlgorithmIdentifier::from_slice(&[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]),
];

/// The digests that channel binding takes of a certificate, and the signatures of which it takes them (RFC 5929, section
/// 4.1): SHA-256 in place of MD5 and SHA-1.
static DIGESTS: [(&Algorithm, &[AlgorithmIdentifier]); 4] = [
    (&SHA256, &OLD),
    (&SHA256, &[alg_id::RSA_PKCS1_SHA256, alg_id::RSA_PSS_SHA256, alg_id::ECDSA_SHA256]),
    (&SHA384, &[alg_id::RSA_PKCS1_SHA384, alg_id::RSA_PSS_SHA384, alg_id::ECDSA_SHA384]),
    (&SHA512, &[alg_id::RSA_PKCS1_SHA512, alg_id::RSA_PSS_SHA512, alg_id::ECDSA_SHA512]),
];

/// A certificate taken apart as far as needed here.
pub(crate) struct Certificate<'a> {
    /// The signature algorithm's object identifier and what follows it.
    algorithm: &'a [u8],
    subject: &'a [u8],
    /// The subject's public key with its algorithm (SPKI), DER.
    pub(crate) public_key: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Takes `der` apart; `None` where it is not a certificate.
    pub(crate) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Walk(der).enter()?;
        let body = outer.enter()?;
        let algorithm = outer.expect(SEQUENCE)?.content;
        // The version is optional; without it, everything is one place further to the front.
        let mut fields = body.skip_while(|field| field.tag == FIRST).skip(4);
        Some(Self { algorithm, subject: fields.next()?.content, public_key: fields.next()?.whole })
    }

    /// The digest for channel binding; `None` where the signature has no digest of its own, or one unknown here.
    pub(crate) fn digest(&self) -> Option<&'static Algorithm> {
        let is_it = |algorithm: &AlgorithmIdentifier| algorithm.as_ref() == self.algorithm;
        DIGESTS.iter().find(|(_, signatures)| signatures.iter().any(is_it)).map(|(digest, _)| *digest)
    }

    /// The last common name in the subject.
    pub(crate) fn common_name(&self) -> Option<&'a str> {
        let sets = Walk(self.subject).filter(|set| set.tag == SET);
        let names = sets.filter_map(|set| {
            let mut pair = Walk(set.content).enter()?;
            (pair.next()?.content == COMMON_NAME).then(|| pair.next())?
        });
        std::str::from_utf8(names.last()?.content).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut der = vec![tag];
        match content.len() {
            length @ 0..0x80 => der.push(u8::try_from(length).unwrap()),
            length => {
                der.push(0x82);
                der.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
        }
        der.extend(content);
        der
    }

    fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
        element(SEQUENCE, &parts.concat())
    }

    fn certificate(signature: &AlgorithmIdentifier) -> Vec<u8> {
        let name = |text: &[u8]| element(SET, &sequence(&[element(6, COMMON_NAME), element(12, text)]));
        let body = [
            element(FIRST, &element(2, &[2])),
            element(2, &[1]),
            sequence(&[element(6, &[1])]),
            sequence(&[name(b"the authority")]),
            sequence(&[]),
            sequence(&[name(b"first"), name(b"db.example.com")]),
            sequence(&[element(3, &[7; 200])]),
        ];
        sequence(&[sequence(&body), sequence(&[signature.to_vec()]), element(3, &[0])])
    }

    #[test]
    fn finds_names_and_key() {
        let der = certificate(&alg_id::RSA_PKCS1_SHA256);
        let parsed = Certificate::parse(&der).unwrap();
        assert_eq!(parsed.common_name(), Some("db.example.com"));
        assert_eq!(parsed.public_key, sequence(&[element(3, &[7; 200])]));
    }

    #[test]
    fn finds_the_digest() {
        for (digest, signatures) in DIGESTS {
            for signature in signatures {
                let der = certificate(signature);
                assert_eq!(Certificate::parse(&der).unwrap().digest(), Some(digest));
            }
        }
        assert_eq!(Certificate::parse(&certificate(&alg_id::ED25519)).unwrap().digest(), None);
    }

    #[test]
    fn survives_every_cut_and_every_changed_byte() {
        let whole = certificate(&alg_id::RSA_PKCS1_SHA256);
        for cut in 0..whole.len() {
            assert!(Certificate::parse(&whole[..cut]).is_none());
        }
        for place in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                if let Some(parsed) = Certificate::parse(&changed) {
                    let _ = (parsed.digest(), parsed.common_name());
                }
            }
        }
    }
}
