//! How a connection is encrypted: what the server has to prove, and what the client shows of itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use longshore_core::{Error, Result};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use crate::verifier::Verifier;

/// The proof that is asked of the server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Nothing: encryption without proof of who is there.
    None,
    /// That a trusted authority has signed it.
    Authority,
    /// That a trusted authority has signed it, for the very host.
    #[default]
    Full,
}

/// The client's own certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The PEM file of the certificate and those between it and its authority.
    pub certificate: PathBuf,
    /// The PEM file of its private key, not encrypted.
    pub key: PathBuf,
}

/// The versions of TLS that are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    All,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

/// How a connection is encrypted. The files are read when it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The proof that is asked of the server.
    pub verification: Verification,
    /// The PEM file of the trusted authorities; `None` for those of the platform.
    pub roots: Option<PathBuf>,
    /// The client's own certificate.
    pub identity: Option<Identity>,
    /// The versions allowed.
    pub versions: Versions,
    /// Whether the server is told, unencrypted, which host is meant (SNI).
    pub name_host: bool,
    /// The application protocols that are offered (ALPN).
    pub protocols: Vec<Vec<u8>>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            verification: Verification::default(),
            roots: None,
            identity: None,
            versions: Versions::default(),
            name_host: true,
            protocols: Vec::new(),
        }
    }
}

impl Tls {
    /// Reads the files and puts everything into the form that the TLS library wants.
    pub fn client(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(self.versions.supported_versions())
            .map_err(|error| Error::internal(format!("cannot set up TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut client = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.load()?;
                let client = builder.with_client_auth_cert(chain, key);
                client.map_err(|error| identity.refusal(&error))?
            }
        };
        client.enable_sni = self.name_host;
        client.alpn_protocols.clone_from(&self.protocols);
        // Each connection has a session of its own; there is no one to resume one with.
        client.resumption = Resumption::disabled();
        Ok(client)
    }

    fn verifier(&self, provider: &CryptoProvider) -> Result<Verifier> {
        let (roots, pinned) = match (&self.roots, self.verification) {
            (_, Verification::None) => (Arc::new(RootCertStore::empty()), Vec::new()),
            (None, _) => (platform_roots()?, Vec::new()),
            (Some(file), _) => roots_of(file)?,
        };
        Ok(Verifier::new(self.verification, roots, pinned, provider.signature_verification_algorithms))
    }
}

impl Versions {
    fn supported_versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        let (newer, older) = ALL.split_at(1);
        match self {
            Self::All => &ALL,
            Self::Only12 => older,
            Self::Only13 => newer,
        }
    }
}

impl Identity {
    fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = certificates(&self.certificate, "client certificate")?;
        private_to_its_owner(&self.key)?;
        let pem = read(&self.key, "client's key")?;
        if pem.windows(9).any(|window| window == b"ENCRYPTED") {
            let message = format!("the client's key in {} is encrypted", self.key.display());
            return Err(Error::interface(message).with_hint(
                "decrypt it into a file of its own, for example with openssl pkey, and name that file",
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
            Error::interface(format!("{} holds no private key in PEM form", self.key.display()))
                .with_hint("name the PEM file of the client's RSA, ECDSA or Ed25519 key")
        })?;
        Ok((chain, key))
    }

    fn refusal(&self, error: &rustls::Error) -> Error {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        Error::interface(format!(
            "cannot use the client certificate {certificate} with the key {key}: {error}"
        ))
        .with_hint("check that the key belongs to the certificate")
    }
}

/// A private key that others can read is not a secret. Root may share one with a group, as key stores do.
#[cfg(unix)]
fn private_to_its_owner(file: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(file).map_err(|error| unreadable(file, "client's key", error))?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden == 0 {
        return Ok(());
    }
    Err(Error::interface(format!("others than its owner can read the client's key {}", file.display()))
        .with_hint("take the permissions away with chmod 600"))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "the signature that Unix needs")]
fn private_to_its_owner(_: &Path) -> Result<()> {
    Ok(())
}

fn unreadable(file: &Path, what: &str, error: std::io::Error) -> Error {
    Error::interface(format!("cannot read the {what} {}: {error}", file.display()))
        .with_hint("check the file's name and its permissions")
        .with_source(error)
}

fn read(file: &Path, what: &str) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| unreadable(file, what, error))
}

fn certificates(file: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file, what)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Error::interface(format!("the {what} {} holds no certificate in PEM form", file.display()))
            .with_hint("name a file with a line -----BEGIN CERTIFICATE-----")),
    }
}

type Roots = (Arc<RootCertStore>, Vec<CertificateDer<'static>>);

fn roots_of(file: &Path) -> Result<Roots> {
    let pinned = certificates(file, "root certificate")?;
    let mut roots = RootCertStore::empty();
    for certificate in &pinned {
        roots.add(certificate.clone()).map_err(|error| {
            Error::interface(format!("a certificate in {} is broken: {error}", file.display()))
                .with_hint("get the authority's certificate again")
        })?;
    }
    Ok((Arc::new(roots), pinned))
}

/// The authorities that the platform trusts, read once: there are hundreds.
fn platform_roots() -> Result<Arc<RootCertStore>> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = ROOTS.get() {
        return Ok(roots.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Error::operational("this machine has no trusted certificate authorities").with_hint(
            "install them (on Debian the package ca-certificates), or name a root certificate file",
        ));
    }
    Ok(ROOTS.get_or_init(|| Arc::new(roots)).clone())
}
