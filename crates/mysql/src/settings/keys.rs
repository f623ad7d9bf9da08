//! The names of connection settings: those of MySQL's own clients, with `_` for `-` or the other way round.

use longshore_core::Result;
use longshore_source::settings::{not_supported, unknown};

/// Every setting that has an effect.
const KEYS: [&str; 24] = [
    "host",
    "port",
    "user",
    "password",
    "database",
    "socket",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "tls-version",
    "compression",
    "charset",
    "connect-timeout",
    "init-command",
    "time-zone",
    "defaults-file",
    "defaults-group",
    "get-server-public-key",
    "server-public-key-path",
    "enable-cleartext-plugin",
    "program-name",
    "keepalives",
    "keepalives-idle",
];

/// Other clients' words for the same.
const ALIASES: [(&str, &str); 26] = [
    ("dbname", "database"),
    ("db", "database"),
    ("schema", "database"),
    ("username", "user"),
    ("passwd", "password"),
    ("pwd", "password"),
    ("hostname", "host"),
    ("server", "host"),
    ("unix-socket", "socket"),
    ("sslmode", "ssl-mode"),
    ("sslca", "ssl-ca"),
    ("sslrootcert", "ssl-ca"),
    ("ssl-root-cert", "ssl-ca"),
    ("sslcert", "ssl-cert"),
    ("sslkey", "ssl-key"),
    ("compress", "compression"),
    ("compression-algorithms", "compression"),
    ("default-character-set", "charset"),
    ("character-set", "charset"),
    ("timeout", "connect-timeout"),
    ("timezone", "time-zone"),
    ("read-default-file", "defaults-file"),
    ("read-default-group", "defaults-group"),
    ("default-group", "defaults-group"),
    ("application-name", "program-name"),
    ("database-name", "database"),
];

/// Settings that would have to have an effect that they do not have.
const REFUSED: [&str; 12] = [
    "ssl-crl",
    "ssl-crlpath",
    "ssl-capath",
    "ssl-cipher",
    "ssl-fips-mode",
    "tls-ciphersuites",
    "default-auth",
    "plugin-dir",
    "protocol",
    "local-infile",
    "multi-statements",
    "login-path",
];

/// The setting called `name`; an error that names the closest one, or that says that it is not supported.
pub(crate) fn find(name: &str) -> Result<&'static str> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    if let Some(key) = KEYS.iter().find(|key| **key == wanted) {
        return Ok(key);
    }
    if let Some((_, key)) = ALIASES.iter().find(|(alias, _)| *alias == wanted) {
        return Ok(key);
    }
    if REFUSED.contains(&wanted.as_str()) {
        return Err(not_supported(name));
    }
    let hint = "the settings are those of the mysql client: host, port, user, password, ssl-mode, ...";
    Err(unknown(name, KEYS, None, hint))
}

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

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
            assert_eq!(find(name).unwrap(), key);
        }
        let error = find("pasword").unwrap_err();
        assert!(error.hint().unwrap().contains("password"));
        assert_eq!(find("ssl-crl").unwrap_err().kind(), Kind::NotSupported);
    }
}
