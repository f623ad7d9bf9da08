//! The URL: `user:password@host:port/database?key=value`.

use longshore_core::{Error, Result};
use longshore_source::settings::Url;

/// The settings in what follows `scheme://`, in order.
pub(crate) fn parse(rest: &str) -> Result<Vec<(String, String)>> {
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
    use super::*;

    fn parsed(rest: &str) -> String {
        let pairs = parse(rest).unwrap();
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
        assert!(!parse("a,hidden").unwrap_err().to_string().contains("hidden"));
    }
}
