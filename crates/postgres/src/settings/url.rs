//! libpq's URL: `user:password@host:port,host:port/dbname?key=value`.

use longshore_core::Result;
use longshore_source::settings::Url;

/// The settings in what follows `scheme://`, in order.
pub(crate) fn parse(rest: &str) -> Result<Vec<(String, String)>> {
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
}
