//! The names of connection settings: those of MySQL's own clients, with `_` for `-` or the other way round.

use longshore_core::{Error, Kind, Result};

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
        return Err(Error::new(
            Kind::NotSupported,
            format!("the connection setting {name:?} is not supported"),
        )
        .with_hint("leave it out; what it asks for would not happen"));
    }
    Err(unknown(name, &wanted))
}

fn unknown(name: &str, wanted: &str) -> Error {
    // What is no word at all may be a piece of a secret that was not percent-encoded.
    let is_word = !name.is_empty()
        && name.len() < 40
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_word {
        return Error::interface("the connection's settings hold a name that is not a word")
            .with_hint("percent-encode special characters in a URL: @ as %40, / as %2F, ? as %3F, & as %26");
    }
    let near = KEYS.iter().map(|key| (distance(wanted, key), *key)).min();
    let hint = match near {
        Some((far, key)) if far <= 1 + wanted.len() / 4 => format!("did you mean {key:?}?"),
        _ => "the settings are those of the mysql client: host, port, user, password, ssl-mode, ...".into(),
    };
    Error::interface(format!("unknown connection setting {name:?}")).with_hint(hint)
}

/// The insertions, deletions and replacements between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.bytes().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
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
        assert!(!find("ss@host/db").unwrap_err().to_string().contains("ss@"));
        assert_eq!(find("ssl-crl").unwrap_err().kind(), Kind::NotSupported);
    }
}
