//! The few fields of an X.509 certificate that the verifier of TLS does not give away (RFC 5280, section 4.1).

/// Object identifiers, as DER has them.
mod oid {
    pub(super) const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];

    /// What follows the arc of RSA's signature algorithms.
    pub(super) fn rsa(oid: &[u8]) -> Option<&[u8]> {
        oid.strip_prefix(RSA)
    }

    /// What follows the arc of ECDSA's signature algorithms.
    pub(super) fn ecdsa(oid: &[u8]) -> Option<&[u8]> {
        oid.strip_prefix(ECDSA)
    }

    /// What follows the arc of the digest algorithms.
    pub(super) fn sha2(oid: &[u8]) -> Option<&[u8]> {
        oid.strip_prefix(SHA2)
    }
}

/// DER's tags.
mod tag {
    pub(super) const OCTETS: u8 = 0x04;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const SET: u8 = 0x31;
    pub(super) const FIRST: u8 = 0xa0;
    pub(super) const EXTENSIONS: u8 = 0xa3;
}

/// One element: tag, content, and the whole with its header.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

/// Walks over the elements of a DER encoding, one level at a time; ends at the first broken one.
struct Walk<'a>(&'a [u8]);

impl<'a> Walk<'a> {
    fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// Enters a sequence.
    fn enter(&mut self) -> Option<Walk<'a>> {
        self.expect(tag::SEQUENCE).map(|element| Walk(element.content))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            // A length of lengths, of which four bytes are plenty for a certificate.
            let count = usize::from(first & 0x7f);
            let (length, after) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
            rest = after;
            length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(Element { tag, content, whole })
    }
}

/// A certificate taken apart as far as needed here.
pub(crate) struct Certificate<'a> {
    /// The signature algorithm's object identifier and what follows it.
    algorithm: (&'a [u8], &'a [u8]),
    subject: &'a [u8],
    /// The subject's public key with its algorithm (SPKI), DER.
    pub(crate) public_key: &'a [u8],
    extensions: Option<&'a [u8]>,
}

/// A digest algorithm of the SHA-2 family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

impl<'a> Certificate<'a> {
    /// Takes `der` apart; `None` where it is not a certificate.
    pub(crate) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Walk(der).enter()?;
        let body = outer.enter()?;
        let mut algorithm = outer.enter()?;
        let identifier = algorithm.next()?.content;
        // The version is optional; without it, everything is one place further to the front.
        let mut fields = body.skip_while(|field| field.tag == tag::FIRST).skip(4);
        let subject = fields.next()?.content;
        let public_key = fields.next()?.whole;
        let extensions = fields.find(|field| field.tag == tag::EXTENSIONS).map(|field| field.content);
        Some(Self { algorithm: (identifier, algorithm.0), subject, public_key, extensions })
    }

    /// The digest in the certificate's signature, as channel binding wants it (RFC 5929, section 4.1): SHA-256 in
    /// place of MD5 and SHA-1. `None` where the signature has no digest of its own, or one unknown here.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let (identifier, parameters) = self.algorithm;
        if let Some(rest) = oid::rsa(identifier) {
            return match rest {
                [4 | 5 | 11] => Some(Digest::Sha256),
                [12] => Some(Digest::Sha384),
                [13] => Some(Digest::Sha512),
                [10] => probabilistic_digest(parameters),
                _ => None,
            };
        }
        match oid::ecdsa(identifier)? {
            [1] | [3, 2] => Some(Digest::Sha256),
            [3, 3] => Some(Digest::Sha384),
            [3, 4] => Some(Digest::Sha512),
            _ => None,
        }
    }

    /// The last common name in the subject.
    pub(crate) fn common_name(&self) -> Option<&'a str> {
        let sets = Walk(self.subject).filter(|set| set.tag == tag::SET);
        let names = sets.filter_map(|set| {
            let mut pair = Walk(set.content).enter()?;
            (pair.next()?.content == oid::COMMON_NAME).then(|| pair.next())?
        });
        std::str::from_utf8(names.last()?.content).ok()
    }

    /// Whether the certificate lists the names that it is for, so that its common name does not count.
    pub(crate) fn has_alternative_names(&self) -> bool {
        let Some(mut extensions) = self.extensions.and_then(|content| Walk(content).enter()) else {
            return false;
        };
        extensions.any(|extension| {
            extension.content.first() == Some(&0x06)
                && Walk(extension.content).next().is_some_and(|name| name.content == oid::ALTERNATIVE_NAMES)
                && Walk(extension.content).any(|part| part.tag == tag::OCTETS)
        })
    }
}

/// The digest of RSASSA-PSS, which its parameters name (RFC 8017, appendix A.2.3). The default is SHA-1.
fn probabilistic_digest(parameters: &[u8]) -> Option<Digest> {
    let mut fields = Walk(parameters).enter()?;
    let Some(digest) = fields.find(|field| field.tag == tag::FIRST) else { return Some(Digest::Sha256) };
    match oid::sha2(Walk(digest.content).enter()?.next()?.content) {
        Some([1]) | None => Some(Digest::Sha256),
        Some([2]) => Some(Digest::Sha384),
        Some([3]) => Some(Digest::Sha512),
        Some(_) => None,
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
        element(tag::SEQUENCE, &parts.concat())
    }

    fn algorithm(identifier: &[u8], parameters: &[u8]) -> Vec<u8> {
        sequence(&[element(6, identifier), parameters.to_vec()])
    }

    fn certificate(signature: &[u8], extensions: Option<Vec<u8>>) -> Vec<u8> {
        let name =
            |text: &[u8]| element(tag::SET, &sequence(&[element(6, oid::COMMON_NAME), element(12, text)]));
        let body = [
            element(tag::FIRST, &element(2, &[2])),
            element(2, &[1]),
            algorithm(&[1], &[]),
            sequence(&[name(b"the authority")]),
            sequence(&[]),
            sequence(&[name(b"first"), name(b"db.example.com")]),
            sequence(&[element(3, &[7; 200])]),
            extensions.map(|list| element(tag::EXTENSIONS, &list)).unwrap_or_default(),
        ];
        sequence(&[sequence(&body), signature.to_vec(), element(3, &[0])])
    }

    const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];

    #[test]
    fn finds_names_and_key() {
        let alternatives = sequence(&[sequence(&[element(6, oid::ALTERNATIVE_NAMES), element(4, b"x")])]);
        let der = certificate(&algorithm(RSA_SHA256, &[5, 0]), Some(alternatives));
        let parsed = Certificate::parse(&der).unwrap();
        assert_eq!(parsed.common_name(), Some("db.example.com"));
        assert_eq!(parsed.public_key, sequence(&[element(3, &[7; 200])]));
        assert!(parsed.has_alternative_names());
        let der = certificate(&algorithm(RSA_SHA256, &[5, 0]), None);
        assert!(!Certificate::parse(&der).unwrap().has_alternative_names());
    }

    #[test]
    fn finds_the_digest() {
        let rsa = |last| [&RSA_SHA256[..8], &[last]].concat();
        let ecdsa = |last| vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last];
        let hash = |last| algorithm(&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last], &[]);
        let pss = |last| sequence(&[element(tag::FIRST, &hash(last))]);
        let cases = [
            (algorithm(&rsa(4), &[5, 0]), Some(Digest::Sha256)),
            (algorithm(&rsa(5), &[5, 0]), Some(Digest::Sha256)),
            (algorithm(&rsa(11), &[5, 0]), Some(Digest::Sha256)),
            (algorithm(&rsa(12), &[5, 0]), Some(Digest::Sha384)),
            (algorithm(&rsa(13), &[5, 0]), Some(Digest::Sha512)),
            (algorithm(&rsa(14), &[5, 0]), None),
            (algorithm(&rsa(10), &pss(1)), Some(Digest::Sha256)),
            (algorithm(&rsa(10), &pss(3)), Some(Digest::Sha512)),
            (algorithm(&rsa(10), &sequence(&[])), Some(Digest::Sha256)),
            (algorithm(&ecdsa(2), &[]), Some(Digest::Sha256)),
            (algorithm(&ecdsa(3), &[]), Some(Digest::Sha384)),
            (algorithm(&ecdsa(4), &[]), Some(Digest::Sha512)),
            (algorithm(&[0x2b, 0x65, 0x70], &[]), None),
        ];
        for (signature, digest) in cases {
            assert_eq!(Certificate::parse(&certificate(&signature, None)).unwrap().digest(), digest);
        }
    }

    #[test]
    fn survives_every_cut_and_every_changed_byte() {
        let alternatives = sequence(&[sequence(&[element(6, oid::ALTERNATIVE_NAMES), element(4, b"x")])]);
        let whole = certificate(&algorithm(RSA_SHA256, &[5, 0]), Some(alternatives));
        for cut in 0..whole.len() {
            assert!(Certificate::parse(&whole[..cut]).is_none());
        }
        for place in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                if let Some(parsed) = Certificate::parse(&changed) {
                    let _ = (parsed.digest(), parsed.common_name(), parsed.has_alternative_names());
                }
            }
        }
    }
}
