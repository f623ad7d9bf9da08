//! The URL: `user:password@host:port/database?key=value`, every part percent-encoded.

use longshore_core::{Error, Result, percent_decode};

/// The settings in what follows `scheme://`, in order. Errors show nothing of it: any part may be a secret that a
/// missing percent sign has brought there.
pub(crate) fn parse(rest: &str) -> Result<Vec<(String, String)>> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, authority),
    };
    // A slash in a password that was not encoded ends the authority there: what follows is no database.
    if path.contains('@') {
        return Err(broken("has an @ behind its first slash"));
    }
    let mut settings = Vec::new();
    if let Some(login) = login {
        let (user, password) = login.split_once(':').map_or((login, None), |(user, it)| (user, Some(it)));
        if !user.is_empty() {
            settings.push(("user".to_owned(), percent_decode(user, "user")?));
        }
        // An empty password says that there is none.
        if let Some(password) = password {
            settings.push(("password".to_owned(), percent_decode(password, "password")?));
        }
    }
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            settings.push((key.to_owned(), value));
        }
    };
    let (name, port) = parse_host(host)?;
    let name = percent_decode(name, "host")?;
    add(if name.starts_with('/') { "socket" } else { "host" }, name);
    add("port", percent_decode(port, "port")?);
    add("database", percent_decode(path, "database")?);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| broken("has a setting without = behind its ?"))?;
        // So does a question mark. A name of a user may have an @, and a password that is a setting of its own.
        if value.contains('@') && !matches!(key, "user" | "password") {
            return Err(broken("has an @ behind its ?"));
        }
        settings.push((percent_decode(key, "setting")?, percent_decode(value, "setting's value")?));
    }
    Ok(settings)
}

fn parse_host(host: &str) -> Result<(&str, &str)> {
    if host.contains(',') {
        return Err(broken("names several hosts")
            .with_hint("name one: a server that is not there is not replaced by another"));
    }
    if let Some(bracketed) = host.strip_prefix('[') {
        let (name, after) = bracketed.split_once(']').ok_or_else(|| broken("has a [ without a ]"))?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((name, port)),
            None if after.is_empty() => Ok((name, "")),
            None => Err(broken("has something other than a port behind a ]")),
        };
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    if port.contains(':') {
        return Err(
            broken("has too many colons in its host").with_hint("write an IPv6 address in brackets: [::1]")
        );
    }
    Ok((name, port))
}

fn broken(what: &str) -> Error {
    Error::interface(format!("the connection's URL {what}")).with_hint(
        "percent-encode special characters in user and password: @ as %40, / as %2F, : as %3A, ? as %3F; or give \
         the parts as a dict",
    )
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
    fn refuses_broken_ones_without_repeating_them() {
        for rest in ["u:hid/den@host/db", "u:hid%zzden@host", "[::1", "[::1]x", "::1", "h?hidden", "a,hidden"]
        {
            let error = parse(rest).unwrap_err();
            let text = error.to_string();
            assert!(!text.contains("hid") && !text.contains("den@") && error.hint().is_some(), "{text}");
        }
    }
}
