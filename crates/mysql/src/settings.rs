//! The settings of a connection: those of MySQL's own clients, from the URL, keywords and an option file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, Kind, PasswordSource, Result, Secret, Target};
use longshore_source::settings::{Url, not_supported, unknown};
use longshore_wire::{Identity, Keepalive, Tls, Verification, Versions};

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

/// The texts of all settings that something has been said about. No `Debug`: one of them is the password.
#[derive(Default)]
struct Values(BTreeMap<&'static str, String>);

impl Settings {
    /// The settings of `target`.
    pub(crate) fn resolve(target: &Target) -> Result<Self> {
        let values = Values::gather(target)?;
        let charset = values.text("charset").unwrap_or("utf8mb4").to_ascii_lowercase();
        if !matches!(charset.as_str(), "utf8mb4" | "utf8" | "auto") {
            return Err(Error::new(Kind::NotSupported, "a charset other than utf8mb4 is not supported")
                .with_hint("leave it out: the server converts its texts, and all values arrive as Unicode"));
        }
        let password = match (&target.password, values.text("password")) {
            (Some(source), _) => Some(source.clone()),
            (None, Some(password)) => Some(Arc::new(Secret::new(password)) as Arc<dyn PasswordSource>),
            (None, None) => None,
        };
        let (mode, tls) = values.encryption()?;
        Ok(Self {
            address: values.address()?,
            user: values.user()?,
            password,
            database: values.text("database").map(str::to_owned),
            mode,
            tls,
            compression: values.compression()?,
            connect_timeout: values.seconds("connect-timeout")?,
            init_command: values.text("init-command").map(str::to_owned),
            zone: values.zone()?,
            public_key: values.public_key()?,
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
            Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{host}:{port}"),
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

impl Values {
    /// Layers everything that says something: keywords over the URL over an option file.
    fn gather(target: &Target) -> Result<Self> {
        let mut values = Self::default();
        for (name, value) in &target.keywords {
            values.set(name, value)?;
        }
        for (name, value) in parse_url(target.rest())?.iter().rev() {
            values.set(name, value)?;
        }
        let file = values.text("defaults-file").map(str::to_owned);
        let group = values.text("defaults-group").map(str::to_owned);
        if let Some(file) = file {
            let mut groups = vec!["client".to_owned()];
            groups.extend(["client-mariadb".to_owned()].into_iter().filter(|_| target.scheme() == "mariadb"));
            groups.extend(group);
            for (name, value) in option_file::read(&file, &groups)?.iter().rev() {
                values.set(name, value).map_err(|error| error.within(format!("the option file {file:?}")))?;
            }
        } else if group.is_some() {
            return Err(Error::interface("defaults-group names a group of no file")
                .with_hint("name the option file with defaults-file"));
        }
        Ok(values)
    }

    /// Sets `name`, which must be known, unless it is set. An empty text leaves it open.
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let (name, value) = match (name.to_ascii_lowercase().replace('_', "-").as_str(), value) {
            // A switch of other clients.
            ("ssl", "true" | "1") => ("ssl-mode", "REQUIRED"),
            ("ssl", "false" | "0") => ("ssl-mode", "DISABLED"),
            _ => (find_key(name)?, value),
        };
        if value.contains('\0') {
            return Err(Error::interface(format!("the connection setting {name} holds a zero byte"))
                .with_hint("take it out: MySQL ends every text there"));
        }
        // An empty password is one, and tells that no other counts.
        if !value.is_empty() || name == "password" {
            self.0.entry(name).or_insert_with(|| value.to_owned());
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    fn flag(&self, name: &str) -> Result<Option<bool>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Some(true)),
            "false" | "0" | "off" | "no" => Ok(Some(false)),
            _ => Err(Error::interface(format!("the connection setting {name} is neither true nor false"))
                .with_hint(format!("write {name}=true or {name}=false"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| {
            Error::interface(format!("the connection setting {name} is not a whole number"))
                .with_hint(format!("write {name}=10, for example"))
        })
    }

    /// A time in seconds; zero means none.
    fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.number(name)?.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    fn address(&self) -> Result<Address> {
        if let Some(path) = self.path("socket") {
            return Ok(Address::Unix(path));
        }
        let port = self.text("port").map(|port| {
            port.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| {
                Error::interface("the connection's port is not a number from 1 to 65535")
                    .with_hint("write it as 3306")
            })
        });
        let port = port.transpose()?;
        let host = self.text("host").unwrap_or("localhost");
        // As MySQL's own clients do; but a port in the settings means TCP.
        if cfg!(unix) && host == "localhost" && port.is_none() {
            let found = SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
            if let Some(path) = found {
                return Ok(Address::Unix(path));
            }
        }
        Ok(Address::Tcp(host.to_owned(), port.unwrap_or(3306)))
    }

    fn user(&self) -> Result<String> {
        let system = || ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        self.text("user").map(str::to_owned).or_else(system).ok_or_else(|| {
            Error::interface("the connection has no user, and the environment names none")
                .with_hint("write it as mysql://user@host/database")
        })
    }

    fn encryption(&self) -> Result<(Mode, Tls)> {
        let roots = self.path("ssl-ca");
        let word = self.text("ssl-mode").map(|word| word.to_ascii_uppercase().replace('-', "_"));
        let (mode, verification) = match word.as_deref() {
            // As for MySQL's own clients, an authority's file is there to be used.
            None if roots.is_some() => (Mode::Required, Verification::Authority),
            None | Some("PREFERRED" | "PREFER") => (Mode::Preferred, Verification::None),
            Some("DISABLED" | "DISABLE") => (Mode::Disabled, Verification::None),
            Some("REQUIRED" | "REQUIRE") => (Mode::Required, Verification::None),
            Some("VERIFY_CA") => (Mode::Required, Verification::Authority),
            Some("VERIFY_IDENTITY" | "VERIFY_FULL") => (Mode::Required, Verification::Full),
            Some(_) => {
                return Err(Error::interface("the connection setting ssl-mode has an unknown value")
                    .with_hint("write one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY"));
            }
        };
        if verification == Verification::Authority && roots.is_none() {
            return Err(Error::interface("ssl-mode=VERIFY_CA has no certificate to verify with").with_hint(
                "name the authority's file with ssl-ca, or use ssl-mode=VERIFY_IDENTITY, which can trust the \
                 authorities of this machine",
            ));
        }
        let identity = match (self.path("ssl-cert"), self.path("ssl-key")) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => {
                return Err(Error::interface("of ssl-cert and ssl-key one is missing")
                    .with_hint("a client's certificate needs its key, and the key its certificate"));
            }
        };
        let tls = Tls { verification, roots, identity, versions: self.versions()?, ..Tls::default() };
        Ok((mode, tls))
    }

    fn versions(&self) -> Result<Versions> {
        let Some(list) = self.text("tls-version") else { return Ok(Versions::All) };
        let named = |version: &str| list.split(',').any(|word| word.trim().eq_ignore_ascii_case(version));
        match (named("TLSv1.2"), named("TLSv1.3")) {
            (true, true) => Ok(Versions::All),
            (true, false) => Ok(Versions::Only12),
            (false, true) => Ok(Versions::Only13),
            (false, false) => {
                Err(Error::new(Kind::NotSupported, "tls-version names no version that is supported")
                    .with_hint("name TLSv1.2, TLSv1.3 or both, with a comma"))
            }
        }
    }

    fn compression(&self) -> Result<Option<Compression>> {
        let Some(word) = self.text("compression") else { return Ok(None) };
        match word.to_ascii_lowercase().as_str() {
            "zlib" | "true" | "1" => Ok(Some(Compression::Zlib)),
            "zstd" => Ok(Some(Compression::Zstd)),
            "uncompressed" | "false" | "0" | "none" => Ok(None),
            _ => Err(Error::interface("the connection setting compression has an unknown value")
                .with_hint("write zlib, zstd, or leave it out")),
        }
    }

    fn zone(&self) -> Result<Zone> {
        let Some(text) = self.text("time-zone") else { return Ok(Zone::UTC) };
        Zone::fixed(text).ok_or_else(|| {
            Error::interface("the connection setting time-zone is not a fixed offset from UTC").with_hint(
                "write it as +02:00; a zone with summer time has hours that come twice, whose TIMESTAMPs could not be \
                 told apart",
            )
        })
    }

    fn public_key(&self) -> Result<PublicKey> {
        Ok(match (self.path("server-public-key-path"), self.flag("get-server-public-key")?) {
            (Some(path), _) => PublicKey::File(path),
            (None, Some(true)) => PublicKey::Asked,
            (None, _) => PublicKey::None,
        })
    }
}

/// Every setting that has an effect, and other clients' names of it.
const KEYS: [(&str, &str); 24] = [
    ("host", "hostname server"),
    ("port", ""),
    ("user", "username"),
    ("password", "passwd pwd"),
    ("database", "dbname db schema database-name"),
    ("socket", "unix-socket"),
    ("ssl-mode", "sslmode"),
    ("ssl-ca", "sslca sslrootcert ssl-root-cert"),
    ("ssl-cert", "sslcert"),
    ("ssl-key", "sslkey"),
    ("tls-version", ""),
    ("compression", "compress compression-algorithms"),
    ("charset", "default-character-set character-set"),
    ("connect-timeout", "timeout"),
    ("init-command", ""),
    ("time-zone", "timezone"),
    ("defaults-file", "read-default-file"),
    ("defaults-group", "read-default-group default-group"),
    ("get-server-public-key", ""),
    ("server-public-key-path", ""),
    ("enable-cleartext-plugin", ""),
    ("program-name", "application-name"),
    ("keepalives", ""),
    ("keepalives-idle", ""),
];

/// Settings that would have to have an effect that they do not have.
const REFUSED: &str = "ssl-crl ssl-crlpath ssl-capath ssl-cipher ssl-fips-mode tls-ciphersuites default-auth plugin-dir \
                       protocol local-infile multi-statements login-path";

/// The setting called `name`; an error that names the closest one, or that says that it is not supported.
fn find_key(name: &str) -> Result<&'static str> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    let is_in = |list: &str| list.split(' ').any(|known| known == wanted);
    if let Some((key, _)) = KEYS.iter().find(|(key, aliases)| *key == wanted || is_in(aliases)) {
        return Ok(key);
    }
    if is_in(REFUSED) {
        return Err(not_supported(name));
    }
    let hint = "the settings are those of the mysql client: host, port, user, password, ssl-mode, ...";
    Err(unknown(name, KEYS.map(|(key, _)| key), None, hint))
}

/// The settings in what follows `scheme://`, in order.
fn parse_url(rest: &str) -> Result<Vec<(String, String)>> {
    let mut url = Url::parse(rest)?;
    if url.hosts.len() > 1 {
        return Err(Error::interface("the connection's URL names several hosts")
            .with_hint("name one: a server that is not there is not replaced by another"));
    }
    let (host, port) = url.hosts.pop().unwrap_or_default();
    let parts = [
        ("user", url.user),
        // An empty password says that there is none.
        ("password", url.password),
        (if host.starts_with('/') { "socket" } else { "host" }, Some(host).filter(|host| !host.is_empty())),
        ("port", Some(port).filter(|port| !port.is_empty())),
        ("database", Some(url.database).filter(|database| !database.is_empty())),
    ];
    let parts = parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Ok(parts.chain(url.settings).collect())
}

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
            assert_eq!(find_key(name).unwrap(), key);
        }
        let error = find_key("pasword").unwrap_err();
        assert!(error.hint().unwrap().contains("password"));
        assert_eq!(find_key("ssl-crl").unwrap_err().kind(), Kind::NotSupported);
    }

    fn parsed(rest: &str) -> String {
        let pairs = parse_url(rest).unwrap();
        pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn takes_every_form_apart() {
        for (rest, expected) in [
            ("", ""),
            ("localhost:3307", "host=localhost port=3307"),
            ("me:@h", "user=me password= host=h"),
            ("user:se%40%2F%3A@h/db", "user=user password=se@/: host=h database=db"),
            ("user:p@ss@h", "user=user password=p@ss host=h"),
            ("u@[::1]:3307/db?ssl-mode=REQUIRED", "user=u host=::1 port=3307 database=db ssl-mode=REQUIRED"),
            ("u@%2Frun%2Fmysqld.sock/db", "user=u socket=/run/mysqld.sock database=db"),
            ("u@/db?unix_socket=%2Ftmp%2Fs", "user=u database=db unix_socket=/tmp/s"),
        ] {
            assert_eq!(parsed(rest), expected, "{rest}");
        }
    }

    #[test]
    fn one_host_is_named() {
        assert!(!parse_url("a,hidden").unwrap_err().to_string().contains("hidden"));
    }
}
