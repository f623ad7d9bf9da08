//! The settings of a connection: those of MySQL's own clients, from the URL, keywords and an option file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, PasswordSource, Result, Target};
use longshore_source::settings::{Key, Keys, Values, port};
use longshore_wire::{Identity, Keepalive, Tls, Verification, Versions, peer_name};

use crate::channel::Compression;
use crate::temporal::Zone;

mod option_file;

/// Where servers on this machine put their Unix sockets.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",
    "/var/lib/mysql/mysql.sock",
];

/// The server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// Whether TLS is wanted (`ssl-mode`; what has to be verified is in [`Tls`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Disabled,
    /// Where the server can.
    Preferred,
    Required,
}

/// How a password may travel where the connection is not encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {
    /// Not at all.
    None,
    /// Under a key that the server sends.
    Asked,
    /// Under the key in this file.
    File(PathBuf),
}

/// Everything about a connection. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) address: Address,
    pub(crate) user: String,
    pub(crate) password: Option<Arc<dyn PasswordSource>>,
    pub(crate) database: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) tls: Tls,
    pub(crate) compression: Option<Compression>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) init_command: Option<String>,
    pub(crate) zone: Zone,
    pub(crate) public_key: PublicKey,
    /// Whether a server may have the password as it is, under TLS.
    pub(crate) clear_password: bool,
    pub(crate) program: String,
    pub(crate) keepalive: Keepalive,
}

impl Settings {
    /// The settings of `target`.
    pub(crate) fn resolve(target: &Target) -> Result<Self> {
        let values = gather(target)?;
        let charset = values.text("charset").unwrap_or("utf8mb4").to_ascii_lowercase();
        if !matches!(charset.as_str(), "utf8mb4" | "utf8" | "auto") {
            return Err(Error::not_supported("a charset other than utf8mb4 is not supported")
                .with_hint("leave it out: the server converts its texts, and all values arrive as Unicode"));
        }
        let (mode, tls) = encryption(&values)?;
        Ok(Self {
            address: address(&values)?,
            user: user(&values)?,
            password: values.password(target),
            database: values.text("database").map(str::to_owned),
            mode,
            tls,
            compression: compression(&values)?,
            connect_timeout: values.seconds("connect-timeout")?,
            init_command: values.text("init-command").map(str::to_owned),
            zone: zone(&values)?,
            public_key: public_key(&values)?,
            clear_password: values.flag("enable-cleartext-plugin")?.unwrap_or(false),
            program: values.text("program-name").unwrap_or("longshore").to_owned(),
            keepalive: Keepalive {
                enabled: values.flag("keepalives")?.unwrap_or(true),
                idle: values.seconds("keepalives-idle")?,
                ..Keepalive::default()
            },
        })
    }

    /// The server as errors name it.
    pub(crate) fn peer(&self) -> String {
        match &self.address {
            Address::Tcp(host, port) => peer_name(host, *port),
            Address::Unix(path) => path.display().to_string(),
        }
    }

    /// The host's name that a certificate has to be for.
    pub(crate) fn host(&self) -> &str {
        match &self.address {
            Address::Tcp(host, _) => host,
            Address::Unix(_) => "localhost",
        }
    }
}

/// Layers everything that says something: keywords over the URL over an option file.
fn gather(target: &Target) -> Result<Values> {
    let mut values = Values::of(&KEYS, target, "database")?;
    let group = values.text("defaults-group").map(str::to_owned);
    let Some(file) = values.text("defaults-file").map(str::to_owned) else {
        if group.is_none() {
            return Ok(values);
        }
        return Err(Error::interface("defaults-group names a group of no file")
            .with_hint("name the option file with defaults-file"));
    };
    let mut groups = vec!["client".to_owned()];
    groups.extend(["client-mariadb".to_owned()].into_iter().filter(|_| target.scheme() == "mariadb"));
    groups.extend(group);
    for (name, value) in option_file::read(&file, &groups)?.iter().rev() {
        values.set(name, value).map_err(|error| error.within(format!("the option file {file:?}")))?;
    }
    Ok(values)
}

fn address(values: &Values) -> Result<Address> {
    let host = values.text("host").unwrap_or("localhost");
    if let Some(path) = values.path("socket").or_else(|| host.starts_with('/').then(|| host.into())) {
        return Ok(Address::Unix(path));
    }
    if host.contains(',') {
        return Err(Error::interface("the connection names several hosts")
            .with_hint("name one: a server that is not there is not replaced by another"));
    }
    let port = values.text("port").map(port).transpose()?;
    // As MySQL's own clients do; but a port in the settings means TCP.
    if cfg!(unix) && host == "localhost" && port.is_none() {
        let found = SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
        if let Some(path) = found {
            return Ok(Address::Unix(path));
        }
    }
    Ok(Address::Tcp(host.to_owned(), port.unwrap_or(3306)))
}

fn user(values: &Values) -> Result<String> {
    let system = || ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    values.text("user").map(str::to_owned).or_else(system).ok_or_else(|| {
        Error::interface("the connection has no user, and the environment names none")
            .with_hint("write it as mysql://user@host/database")
    })
}

fn encryption(values: &Values) -> Result<(Mode, Tls)> {
    let roots = values.path("ssl-ca");
    let modes = [
        ("DISABLED DISABLE", (Mode::Disabled, Verification::None)),
        ("PREFERRED PREFER", (Mode::Preferred, Verification::None)),
        ("REQUIRED REQUIRE", (Mode::Required, Verification::None)),
        ("VERIFY_CA", (Mode::Required, Verification::Authority)),
        ("VERIFY_IDENTITY VERIFY_FULL", (Mode::Required, Verification::Full)),
    ];
    let (mode, verification) = values.choice("ssl-mode", &modes)?.unwrap_or(match roots {
        // As for MySQL's own clients, an authority's file is there to be used.
        Some(_) => (Mode::Required, Verification::Authority),
        None => (Mode::Preferred, Verification::None),
    });
    if verification == Verification::Authority && roots.is_none() {
        return Err(Error::interface("ssl-mode=VERIFY_CA has no certificate to verify with").with_hint(
            "name the authority's file with ssl-ca, or use ssl-mode=VERIFY_IDENTITY, which can trust the \
             authorities of this machine",
        ));
    }
    let identity = match (values.path("ssl-cert"), values.path("ssl-key")) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (None, None) => None,
        _ => {
            return Err(Error::interface("of ssl-cert and ssl-key one is missing")
                .with_hint("a client's certificate needs its key, and the key its certificate"));
        }
    };
    let tls = Tls { verification, roots, identity, versions: versions(values)?, ..Tls::default() };
    Ok((mode, tls))
}

fn versions(values: &Values) -> Result<Versions> {
    let Some(list) = values.text("tls-version") else { return Ok(Versions::All) };
    let named = |version: &str| list.split(',').any(|word| word.trim().eq_ignore_ascii_case(version));
    match (named("TLSv1.2"), named("TLSv1.3")) {
        (true, true) => Ok(Versions::All),
        (true, false) => Ok(Versions::Only12),
        (false, true) => Ok(Versions::Only13),
        (false, false) => Err(Error::not_supported("tls-version names no version that is supported")
            .with_hint("name TLSv1.2, TLSv1.3 or both, with a comma")),
    }
}

fn compression(values: &Values) -> Result<Option<Compression>> {
    let choices = [
        ("zlib true 1", Some(Compression::Zlib)),
        ("zstd", Some(Compression::Zstd)),
        ("uncompressed false 0 none", None),
    ];
    Ok(values.choice("compression", &choices)?.flatten())
}

fn zone(values: &Values) -> Result<Zone> {
    let Some(text) = values.text("time-zone") else { return Ok(Zone::UTC) };
    Zone::from_offset(text).ok_or_else(|| {
        Error::interface("the connection setting time-zone is not a fixed offset from UTC").with_hint(
            "write it as +02:00; a zone with summer time has hours that come twice, whose TIMESTAMPs could not be \
             told apart",
        )
    })
}

fn public_key(values: &Values) -> Result<PublicKey> {
    Ok(match (values.path("server-public-key-path"), values.flag("get-server-public-key")?) {
        (Some(path), _) => PublicKey::File(path),
        (None, Some(true)) => PublicKey::Asked,
        (None, _) => PublicKey::None,
    })
}

static KEYS: Keys = Keys {
    all: &[
        Key::new("host").or("hostname server"),
        Key::new("port"),
        Key::new("user").or("username"),
        // An empty password is one, and tells that no other counts.
        Key::new("password").or("passwd pwd").even_empty(),
        Key::new("database").or("dbname db schema database-name"),
        Key::new("socket").or("unix-socket"),
        Key::new("ssl-mode").or("sslmode").switch("ssl", ["REQUIRED", "DISABLED"]),
        Key::new("ssl-ca").or("sslca sslrootcert ssl-root-cert"),
        Key::new("ssl-cert").or("sslcert"),
        Key::new("ssl-key").or("sslkey"),
        Key::new("tls-version"),
        Key::new("compression").or("compress compression-algorithms"),
        Key::new("charset").or("default-character-set character-set"),
        Key::new("connect-timeout").or("timeout"),
        Key::new("init-command"),
        Key::new("time-zone").or("timezone"),
        Key::new("defaults-file").or("read-default-file"),
        Key::new("defaults-group").or("read-default-group default-group"),
        Key::new("get-server-public-key"),
        Key::new("server-public-key-path"),
        Key::new("enable-cleartext-plugin"),
        Key::new("program-name").or("application-name"),
        Key::new("keepalives"),
        Key::new("keepalives-idle"),
        Key::new("ssl-crl")
            .or("ssl-crlpath ssl-capath ssl-cipher ssl-fips-mode tls-ciphersuites default-auth plugin-dir protocol \
                 local-infile multi-statements login-path")
            .refuse(),
    ],
    hint: "the settings are those of the mysql client: host, port, user, password, ssl-mode, ...",
};

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

    fn resolve(rest: &str) -> Result<Settings> {
        Settings::resolve(&Target::from_url(&format!("mysql://{rest}"))?)
    }

    #[test]
    fn every_part_of_a_url_is_a_setting() {
        let settings =
            resolve("me:pw@db.example:3307/sales?ssl-mode=VERIFY_IDENTITY&compression=zstd").unwrap();
        assert_eq!(settings.address, Address::Tcp("db.example".into(), 3307));
        assert_eq!((settings.user.as_str(), settings.database.as_deref()), ("me", Some("sales")));
        assert_eq!((settings.mode, settings.tls.verification), (Mode::Required, Verification::Full));
        assert_eq!(settings.compression, Some(Compression::Zstd));
        assert!(!format!("{settings:?}").contains("pw"));
    }

    #[test]
    fn keywords_win_over_the_url() {
        let mut target = Target::from_url("mysql://me@h/a?connect_timeout=3").unwrap();
        target.keywords = [("database".to_owned(), "b".to_owned())].into();
        let settings = Settings::resolve(&target).unwrap();
        assert_eq!(settings.database.as_deref(), Some("b"));
        assert_eq!(settings.connect_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn what_would_not_happen_is_refused() {
        for rest in [
            "me@h?ssl-mode=VERIFY_CA",
            "me@h?ssl-mode=sometimes",
            "me@h?ssl-cert=x",
            "me@h?charset=latin1",
            "me@h?time_zone=Europe/Berlin",
            "me@h?compression=lz4",
            "me@h:0",
            "me@h?read_default_group=x",
            "me@h?tls-version=TLSv1.1",
        ] {
            let error = resolve(rest).unwrap_err();
            assert!(error.hint().is_some(), "{rest}: {error}");
        }
    }

    #[test]
    fn an_authority_that_is_named_is_asked() {
        let settings = resolve("me@h?ssl_ca=/x.pem").unwrap();
        assert_eq!((settings.mode, settings.tls.verification), (Mode::Required, Verification::Authority));
    }

    #[test]
    fn names_have_several_spellings() {
        for (name, key) in [
            ("ssl_mode", "ssl-mode"),
            ("sslmode", "ssl-mode"),
            ("unix_socket", "socket"),
            ("db", "database"),
            ("Host", "host"),
            ("read_default_file", "defaults-file"),
        ] {
            assert_eq!(KEYS.find(name).unwrap().name, key);
        }
        let error = KEYS.find("pasword").unwrap_err();
        assert!(error.hint().unwrap().contains("password"));
        assert_eq!(KEYS.find("ssl-crl").unwrap_err().kind(), Kind::NotSupported);
    }

    #[test]
    fn a_path_is_a_socket() {
        let socket = |rest: &str| resolve(rest).unwrap().address;
        assert_eq!(socket("u@%2Frun%2Fmysqld.sock/db"), Address::Unix("/run/mysqld.sock".into()));
        assert_eq!(socket("u@/db?unix_socket=%2Ftmp%2Fs"), Address::Unix("/tmp/s".into()));
        assert_eq!(socket("u@[::1]:3307/db"), Address::Tcp("::1".into(), 3307));
    }

    #[test]
    fn an_empty_password_is_one() {
        let password = resolve("me:@h").unwrap().password.unwrap();
        assert_eq!(password.password().unwrap().reveal(), "");
        assert!(resolve("me@h").unwrap().password.is_none());
    }

    #[test]
    fn one_host_is_named() {
        assert!(!resolve("me@a,hidden").unwrap_err().to_string().contains("hidden"));
    }
}
