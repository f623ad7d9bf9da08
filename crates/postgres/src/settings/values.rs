//! Settings by name, before they are interpreted: libpq's names (PostgreSQL documentation, sections "Parameter
//! Key Words" and "Environment Variables"), and libpq's URL: `user:password@host:port,host:port/dbname?key=value`.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_core::{Error, Result};
use longshore_source::settings::{self, Url, not_supported};

use super::environment::Environment;

/// The texts of all settings that something has been said about. No `Debug`: one of them is the password.
#[derive(Default)]
pub(crate) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Sets `name`, which must be known. An empty text leaves it open.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = find_key(name)?.name;
        if value.contains('\0') {
            return Err(Error::interface(format!("the connection setting {name} holds a zero byte"))
                .with_hint("take it out: PostgreSQL ends every text there"));
        }
        match (name, value) {
            // JDBC's spelling, which libpq knows too.
            ("ssl", "true" | "1") => drop(self.0.insert("sslmode", "require".into())),
            ("ssl", "false" | "0") => drop(self.0.insert("sslmode", "disable".into())),
            ("ssl", _) => {
                return Err(Error::interface("the connection setting ssl is neither true nor false")
                    .with_hint("write sslmode=require, or another of libpq's modes"));
            }
            (_, "") => {}
            _ => drop(self.0.insert(name, value.to_owned())),
        }
        Ok(())
    }

    /// Sets `name` unless it is set.
    pub(crate) fn set_default(&mut self, name: &str, value: &str) -> Result<()> {
        let meant = if name == "ssl" { "sslmode" } else { name };
        if self.0.contains_key(meant) { find_key(name).map(drop) } else { self.set(name, value) }
    }

    /// Sets what is still open from the environment's variables.
    pub(crate) fn set_defaults_from(&mut self, environment: &Environment) -> Result<()> {
        for key in &KEYS {
            let Some(variable) = key.variable else { continue };
            if let Some(value) = environment.get(variable) {
                self.set_default(key.name, value)
                    .map_err(|error| error.within(format!("the environment variable {variable}")))?;
            }
        }
        Ok(())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A whole number, negative ones included.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number: i32 = text.trim().parse().map_err(|_| {
            Error::interface(format!("the connection setting {name} is not a whole number"))
                .with_hint(format!("write {name}=10, for example"))
        })?;
        Ok(Some(number.into()))
    }

    /// A time in seconds; none is what zero and negative numbers mean.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_secs))
    }

    /// A time in milliseconds; none is what zero and negative numbers mean.
    pub(crate) fn milliseconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_millis))
    }

    fn positive(&self, name: &str) -> Result<Option<u64>> {
        let number = self.number(name)?.and_then(|number| u64::try_from(number).ok());
        Ok(number.filter(|number| *number > 0))
    }

    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Error::interface(format!("the connection setting {name} has an unknown value"))
                .with_hint(format!("write one of {}", words.join(", ")))
        })
    }
}

/// A setting's name, and the environment variable that stands in for it.
pub(super) struct Key {
    pub(crate) name: &'static str,
    pub(crate) variable: Option<&'static str>,
    /// Whether Longshore does something about it.
    support: Support,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Support {
    /// It has its effect.
    Full,
    /// It has none here, and needs none.
    Ignored,
    /// It would have to have an effect that it does not have.
    Refused,
}

const fn key(name: &'static str, variable: &'static str) -> Key {
    Key { name, variable: Some(variable), support: Support::Full }
}

const fn bare(name: &'static str, support: Support) -> Key {
    Key { name, variable: None, support }
}

const fn refused(name: &'static str, variable: &'static str) -> Key {
    Key { name, variable: Some(variable), support: Support::Refused }
}

static KEYS: [Key; 54] = [
    key("host", "PGHOST"),
    key("hostaddr", "PGHOSTADDR"),
    key("port", "PGPORT"),
    key("dbname", "PGDATABASE"),
    key("user", "PGUSER"),
    key("password", "PGPASSWORD"),
    key("passfile", "PGPASSFILE"),
    key("service", "PGSERVICE"),
    key("servicefile", "PGSERVICEFILE"),
    key("connect_timeout", "PGCONNECT_TIMEOUT"),
    key("application_name", "PGAPPNAME"),
    bare("fallback_application_name", Support::Full),
    key("options", "PGOPTIONS"),
    // Not PGCLIENTENCODING: the encoding on the wire is nothing that a caller could see.
    bare("client_encoding", Support::Full),
    bare("keepalives", Support::Full),
    bare("keepalives_idle", Support::Full),
    bare("keepalives_interval", Support::Full),
    bare("keepalives_count", Support::Full),
    bare("tcp_user_timeout", Support::Full),
    key("sslmode", "PGSSLMODE"),
    key("sslnegotiation", "PGSSLNEGOTIATION"),
    key("sslrootcert", "PGSSLROOTCERT"),
    key("sslcert", "PGSSLCERT"),
    key("sslkey", "PGSSLKEY"),
    key("sslcertmode", "PGSSLCERTMODE"),
    key("sslsni", "PGSSLSNI"),
    key("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    key("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    key("channel_binding", "PGCHANNELBINDING"),
    key("require_auth", "PGREQUIREAUTH"),
    key("target_session_attrs", "PGTARGETSESSIONATTRS"),
    key("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    key("gssencmode", "PGGSSENCMODE"),
    key("min_protocol_version", "PGMINPROTOCOLVERSION"),
    key("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    // A key file that needs the password is refused where it is read.
    bare("sslpassword", Support::Ignored),
    bare("sslcompression", Support::Ignored),
    bare("krbsrvname", Support::Ignored),
    bare("gsslib", Support::Ignored),
    bare("gssdelegation", Support::Ignored),
    refused("sslcrl", "PGSSLCRL"),
    refused("sslcrldir", "PGSSLCRLDIR"),
    refused("requirepeer", "PGREQUIREPEER"),
    bare("replication", Support::Refused),
    bare("sslkeylogfile", Support::Refused),
    bare("scram_client_key", Support::Refused),
    bare("scram_server_key", Support::Refused),
    bare("oauth_issuer", Support::Refused),
    bare("oauth_client_id", Support::Refused),
    bare("oauth_client_secret", Support::Refused),
    bare("oauth_scope", Support::Refused),
    bare("oauth_ca_file", Support::Refused),
    // JDBC's; libpq takes ssl=true in a URL for sslmode=require.
    bare("ssl", Support::Full),
    bare("authtype", Support::Ignored),
];

/// Words of other libraries for libpq's keys.
const ALIASES: [(&str, &str); 12] = [
    ("database", "dbname"),
    ("db", "dbname"),
    ("username", "user"),
    ("passwd", "password"),
    ("pass", "password"),
    ("pwd", "password"),
    ("server", "host"),
    ("hostname", "host"),
    ("address", "hostaddr"),
    ("timeout", "connect_timeout"),
    ("schema", "options"),
    ("search_path", "options"),
];

/// The key called `name`; an error that names the closest one, or that says that it is not supported.
pub(super) fn find_key(name: &str) -> Result<&'static Key> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else { return Err(unknown(name)) };
    if key.support == Support::Refused {
        return Err(not_supported(name));
    }
    Ok(key)
}

fn unknown(name: &str) -> Error {
    let other =
        ALIASES.iter().find(|(alias, _)| *alias == name.to_ascii_lowercase()).map(|(_, key)| match *key {
            "options" => format!("write it as options: -c {name}=..."),
            key => format!("write it as {key:?}"),
        });
    let known = KEYS.iter().filter(|key| key.support != Support::Refused).map(|key| key.name);
    let hint = "the settings are those of libpq: host, port, dbname, user, password, sslmode, ...";
    settings::unknown(name, known, other, hint)
}

/// The settings in what follows `scheme://`, in order.
pub(super) fn parse_url(rest: &str) -> Result<Vec<(String, String)>> {
    let url = Url::parse(rest)?;
    let (names, ports): (Vec<String>, Vec<String>) = url.hosts.into_iter().unzip();
    let list =
        |parts: Vec<String>| if parts.iter().all(String::is_empty) { String::new() } else { parts.join(",") };
    let pieces = [
        ("user", url.user.unwrap_or_default()),
        ("password", url.password.unwrap_or_default()),
        ("host", list(names)),
        ("port", list(ports)),
        ("dbname", url.database),
    ];
    let pieces = pieces.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(pieces.map(|(key, value)| (key.to_owned(), value)).chain(url.settings).collect())
}

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

    #[test]
    fn names_the_closest_key() {
        for (name, meant) in [
            ("pasword", "password"),
            ("sslmod", "sslmode"),
            ("database", "dbname"),
            ("username", "user"),
            ("connect_timout", "connect_timeout"),
            ("Host", "host"),
        ] {
            let error = find_key(name).err().unwrap();
            assert!(error.to_string().contains(name) && error.hint().unwrap().contains(meant), "{error}");
        }
        assert!(!find_key("entirely_else").err().unwrap().hint().unwrap().contains("did you mean"));
    }

    #[test]
    fn says_what_is_not_supported() {
        assert_eq!(find_key("requirepeer").err().unwrap().kind(), Kind::NotSupported);
    }

    fn parsed(rest: &str) -> String {
        let pairs = parse_url(rest).unwrap();
        pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn takes_every_form_apart() {
        for (rest, expected) in [
            ("", ""),
            ("/", ""),
            ("localhost", "host=localhost"),
            ("localhost:5433", "host=localhost port=5433"),
            ("localhost/mydb", "host=localhost dbname=mydb"),
            ("user@localhost", "user=user host=localhost"),
            ("user:se%40%2F%3A@localhost", "user=user password=se@/: host=localhost"),
            ("user:p@ss@localhost", "user=user password=p@ss host=localhost"),
            ("user:a:b@localhost", "user=user password=a:b host=localhost"),
            (
                "u@h/db?connect_timeout=10&application_name=my%20app",
                "user=u host=h dbname=db connect_timeout=10 application_name=my app",
            ),
            (
                "host1:123,host2:456/db?target_session_attrs=any",
                "host=host1,host2 port=123,456 dbname=db target_session_attrs=any",
            ),
            ("host1,host2:456", "host=host1,host2 port=,456"),
            ("/mydb?host=localhost&port=5433", "dbname=mydb host=localhost port=5433"),
            ("[2001:db8::1234]/database", "host=2001:db8::1234 dbname=database"),
            ("[::1]:5433,[::2]", "host=::1,::2 port=5433,"),
            ("%2Fvar%2Flib%2Fpostgresql/dbname", "host=/var/lib/postgresql dbname=dbname"),
            ("user@:5433/db", "user=user port=5433 dbname=db"),
            ("h/a%2Fb", "host=h dbname=a/b"),
            ("?user=other&password=x%26y", "user=other password=x&y"),
            ("h?options=-c%20search_path%3Da", "host=h options=-c search_path=a"),
            ("r%C3%A9mi@h", "user=rémi host=h"),
        ] {
            assert_eq!(parsed(rest), expected, "{rest}");
        }
    }
}
