//! Decides whether a server's certificate proves what it has to.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::Verification;
use crate::certificate::Certificate;

/// Checks chain and name as far as asked, and always the signature over the handshake.
#[derive(Debug)]
pub(crate) struct Verifier {
    verification: Verification,
    roots: Arc<RootCertStore>,
    /// The certificates of the caller's own root file: a server that shows one of them itself is trusted.
    pinned: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(crate) fn new(
        verification: Verification,
        roots: Arc<RootCertStore>,
        pinned: Vec<CertificateDer<'static>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        Self { verification, roots, pinned, algorithms }
    }

    fn verify_chain(
        &self,
        shown: &CertificateDer<'_>,
        parsed: &ParsedCertificate<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let all = self.algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(parsed, &self.roots, between, now, all) {
            // A self-signed certificate is often its own authority, which the rules of the web do not allow. The
            // time of its validity has been checked before these errors can arise.
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_)))
                if self.pinned.iter().any(|root| root == shown) =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verification == Verification::None {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(shown)?;
        self.verify_chain(shown, &parsed, between, now)?;
        if self.verification == Verification::Full {
            verify_name(shown, &parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, shown, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // By the bare key, since certificates of X.509 version 1 are common behind sslmode=require, where nothing
        // else of a certificate counts.
        let certificate =
            Certificate::parse(shown).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(certificate.public_key);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Checks that the certificate is for `name`. Where it lists no alternative names, its common name counts, as it
/// does for libpq.
fn verify_name(
    shown: &CertificateDer<'_>,
    parsed: &ParsedCertificate<'_>,
    name: &ServerName<'_>,
) -> Result<(), Error> {
    let Err(error) = verify_server_name(parsed, name) else { return Ok(()) };
    let lists_no_names = matches!(
        &error,
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) if presented.is_empty()
    );
    let certificate = Certificate::parse(shown).filter(|_| lists_no_names);
    match certificate.as_ref().and_then(Certificate::common_name) {
        Some(common) if matches_common_name(common, &name.to_str()) => Ok(()),
        _ => Err(error),
    }
}

/// Whether `common`, perhaps with `*` in place of the first label, names `host`.
fn matches_common_name(common: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let Some(domain) = common.strip_prefix("*.") else { return common.eq_ignore_ascii_case(host) };
    let is_name = host.parse::<std::net::IpAddr>().is_err();
    is_name
        && host.split_once('.').is_some_and(|(label, rest)| {
            !label.is_empty() && domain.contains('.') && rest.eq_ignore_ascii_case(domain)
        })
}

#[cfg(test)]
mod tests {
    use super::matches_common_name;

    #[test]
    fn a_common_name_stands_for_one_host_or_one_level() {
        for (common, host, expected) in [
            ("db.example.com", "DB.example.com", true),
            ("db.example.com", "db.example.com.", true),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.com", "example.com", false),
            ("*", "localhost", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("", "localhost", false),
        ] {
            assert_eq!(matches_common_name(common, host), expected, "{common} {host}");
        }
    }
}
