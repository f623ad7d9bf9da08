//! The names of libpq's settings (PostgreSQL documentation, sections "Parameter Key Words" and "Environment
//! Variables").

use longshore_core::{Error, Result};
use longshore_source::settings::{self, not_supported};

/// A setting's name, and the environment variable that stands in for it.
pub(crate) struct Key {
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

pub(crate) static KEYS: [Key; 54] = [
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
pub(crate) fn find(name: &str) -> Result<&'static Key> {
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
            let error = find(name).err().unwrap();
            assert!(error.to_string().contains(name) && error.hint().unwrap().contains(meant), "{error}");
        }
        assert!(!find("entirely_else").err().unwrap().hint().unwrap().contains("did you mean"));
    }

    #[test]
    fn says_what_is_not_supported() {
        assert_eq!(find("requirepeer").err().unwrap().kind(), Kind::NotSupported);
    }
}
