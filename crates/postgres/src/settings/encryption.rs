//! When and how a connection is encrypted: libpq's `ssl...` settings.

use std::path::PathBuf;

use longshore_core::{Error, Result};
use longshore_source::settings::Values;
use longshore_wire::{Identity, Tls, Verification, Versions};

use super::environment::Environment;

/// Whether TLS is wanted (`sslmode`; what has to be verified is in [`Tls`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Never.
    Disable,
    /// Only where the server refuses otherwise.
    Allow,
    /// Where the server can.
    Prefer,
    /// Always.
    Require,
}

/// When and how a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encryption {
    pub(crate) mode: Mode,
    /// TLS from the first byte on, without asking the server (`sslnegotiation=direct`).
    pub(crate) direct: bool,
    pub(crate) tls: Tls,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SslMode {
    Off(Mode),
    On(Verification),
}

/// Takes the `ssl...` settings together.
pub(crate) fn encryption(values: &Values, environment: &Environment) -> Result<Encryption> {
    let modes = [
        ("disable", SslMode::Off(Mode::Disable)),
        ("allow", SslMode::Off(Mode::Allow)),
        ("prefer", SslMode::Off(Mode::Prefer)),
        ("require", SslMode::On(Verification::None)),
        ("verify-ca", SslMode::On(Verification::Authority)),
        ("verify-full", SslMode::On(Verification::Full)),
    ];
    let system = values.text("sslrootcert") == Some("system");
    let fallback = if system { SslMode::On(Verification::Full) } else { SslMode::Off(Mode::Prefer) };
    let ssl_mode = values.choice("sslmode", &modes)?.unwrap_or(fallback);
    if system && ssl_mode != SslMode::On(Verification::Full) {
        return Err(Error::interface(
            "sslrootcert=system with a weak sslmode proves nothing: anyone can get a certificate",
        )
        .with_hint("use sslmode=verify-full with it"));
    }
    let direct = values.choice("sslnegotiation", &[("postgres", false), ("direct", true)])?.unwrap_or(false);
    if direct && matches!(ssl_mode, SslMode::Off(_)) {
        return Err(Error::interface("sslnegotiation=direct leaves no way to do without TLS")
            .with_hint("use sslmode=require or stronger with it"));
    }
    let roots = if system { None } else { root_file(values, environment) };
    let (mode, verification) = match ssl_mode {
        SslMode::Off(mode) => (mode, Verification::None),
        // As in libpq: a root certificate that is there is used.
        SslMode::On(Verification::None) if roots.is_some() => (Mode::Require, Verification::Authority),
        SslMode::On(Verification::Authority) if roots.is_none() => return Err(no_roots()),
        SslMode::On(verification) => (Mode::Require, verification),
    };
    let tls = Tls {
        verification,
        roots,
        identity: identity(values, environment)?,
        versions: versions(values)?,
        name_host: values.choice("sslsni", &[("0", false), ("1", true)])?.unwrap_or(true),
        protocols: if direct { vec![b"postgresql".to_vec()] } else { Vec::new() },
    };
    Ok(Encryption { mode, direct, tls })
}

fn no_roots() -> Error {
    Error::interface("sslmode=verify-ca has no root certificate to verify with").with_hint(
        "name the authority's file with sslrootcert, put it at ~/.postgresql/root.crt, or use sslmode=verify-full, \
         which can trust the authorities of this machine",
    )
}

fn root_file(values: &Values, environment: &Environment) -> Option<PathBuf> {
    file(values, environment, "sslrootcert", "root.crt")
}

/// The file that a setting names, or the one at libpq's own place if it is there.
fn file(values: &Values, environment: &Environment, name: &str, usual: &str) -> Option<PathBuf> {
    values.text(name).map(PathBuf::from).or_else(|| {
        environment.at_home(".postgresql").map(|home| home.join(usual)).filter(|path| path.exists())
    })
}

fn identity(values: &Values, environment: &Environment) -> Result<Option<Identity>> {
    let modes = [("disable", Some(false)), ("allow", Some(true)), ("require", None)];
    match values.choice("sslcertmode", &modes)?.unwrap_or(Some(true)) {
        Some(true) => {}
        Some(false) => return Ok(None),
        None => {
            return Err(Error::not_supported("sslcertmode=require is not supported")
                .with_hint("leave it out: the certificate is shown whenever the server asks for one"));
        }
    }
    let Some(certificate) = file(values, environment, "sslcert", "postgresql.crt") else { return Ok(None) };
    let key = file(values, environment, "sslkey", "postgresql.key").ok_or_else(|| {
        Error::interface(format!("the client certificate {} has no key", certificate.display()))
            .with_hint("name the key's file with sslkey, or put it at ~/.postgresql/postgresql.key")
    })?;
    Ok(Some(Identity { certificate, key }))
}

/// TLS 1.2 and 1.3 are what there is; an older minimum asks for no more than that.
fn versions(values: &Values) -> Result<Versions> {
    let known = [("TLSv1", 0), ("TLSv1.1", 1), ("TLSv1.2", 2), ("TLSv1.3", 3)];
    let lowest = values.choice("ssl_min_protocol_version", &known)?.unwrap_or(2);
    let highest = values.choice("ssl_max_protocol_version", &known)?.unwrap_or(3);
    match (lowest, highest) {
        (_, 0 | 1) => Err(Error::not_supported("TLS below version 1.2 is not supported")
            .with_hint("raise ssl_max_protocol_version, or leave it out")),
        (3, 2) => Err(Error::interface("ssl_min_protocol_version is above ssl_max_protocol_version")
            .with_hint("leave one of them out")),
        (3, _) => Ok(Versions::Only13),
        (_, 2) => Ok(Versions::Only12),
        _ => Ok(Versions::All),
    }
}
