//! libpq's URL: `user:password@host:port,host:port/dbname?key=value`, every part percent-encoded.

use longshore_core::{Error, Result, percent_decode};

/// The settings in what follows `scheme://`, in order. Errors show nothing of it: any part may be a secret that
/// a missing percent sign has brought there.
pub(crate) fn parse(rest: &str) -> Result<Vec<(String, String)>> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    // A slash in a password that was not encoded ends the authority there: what follows is no database.
    if path.contains('@') {
        return Err(broken("has an @ behind its first slash"));
    }
    let mut settings = Vec::new();
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            settings.push((key.to_owned(), value));
        }
    };
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        add("user", percent_decode(user, "user")?);
        add("password", percent_decode(password, "password")?);
    }
    let (names, ports) = parse_hosts(hosts)?;
    add("host", names);
    add("port", ports);
    add("dbname", percent_decode(path, "database")?);
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

/// The hosts and the ports, each parted by commas.
fn parse_hosts(hosts: &str) -> Result<(String, String)> {
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[') {
            Some(bracketed) => {
                let (name, after) = bracketed.split_once(']').ok_or_else(|| broken("has a [ without a ]"))?;
                match after.strip_prefix(':') {
                    Some(port) => (name, port),
                    None if after.is_empty() => (name, ""),
                    None => return Err(broken("has something other than a port behind a ]")),
                }
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        if port.contains(':') {
            return Err(
                broken("has too many colons in a host").with_hint("write an IPv6 address in brackets: [::1]")
            );
        }
        names.push(percent_decode(name, "host")?);
        ports.push(percent_decode(port, "port")?);
    }
    let given =
        |list: &[String]| if list.iter().all(String::is_empty) { String::new() } else { list.join(",") };
    Ok((given(&names), given(&ports)))
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

    #[test]
    fn refuses_broken_ones_without_repeating_them() {
        for rest in [
            "u:hid/den@host/db",
            "u:hid%zzden@host",
            "[::1",
            "[::1]x",
            "::1",
            "h?hidden",
            "u:%00hidden@h",
            "h:1:hidden",
        ] {
            let error = parse(rest).unwrap_err();
            let text = error.to_string();
            assert!(
                !text.contains("hid") && !text.contains("den@") && error.hint().is_some(),
                "{rest}: {text}"
            );
        }
    }
}
