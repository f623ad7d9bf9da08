//! Connection settings: the parts of a URL, and names that are not known.

use longshore_core::{Error, Kind, Result, percent_decode};

/// The parts of a URL `scheme://user:password@host:port,.../database?key=value`, decoded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The user; `None` where it is not named.
    pub user: Option<String>,
    /// The password; an empty one is one.
    pub password: Option<String>,
    /// Each host and its port, empty where they are not named.
    pub hosts: Vec<(String, String)>,
    /// The database; empty where it is not named.
    pub database: String,
    /// The settings behind the question mark, in order.
    pub settings: Vec<(String, String)>,
}

impl Url {
    /// Takes what follows `scheme://` apart. Errors show nothing of it: any part may be a secret that a missing percent
    /// sign has brought there.
    pub fn parse(rest: &str) -> Result<Self> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        // A slash in a password that was not encoded ends the authority there: what follows is not a database.
        if path.contains('@') {
            return Err(broken("has an @ behind its first slash"));
        }
        let mut url = Self { database: percent_decode(path, "database")?, ..Self::default() };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').map_or((login, None), |(user, it)| (user, Some(it)));
            if !user.is_empty() {
                url.user = Some(percent_decode(user, "user")?);
            }
            url.password = password.map(|password| percent_decode(password, "password")).transpose()?;
        }
        for host in hosts.split(',') {
            let (name, port) = split_port(host)?;
            url.hosts.push((percent_decode(name, "host")?, percent_decode(port, "port")?));
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| broken("has a setting without = behind its ?"))?;
            // So does a question mark. A name of a user may have an @, and a password that is a setting of its own.
            if value.contains('@') && !matches!(key, "user" | "password") {
                return Err(broken("has an @ behind its ?"));
            }
            url.settings.push((percent_decode(key, "setting")?, percent_decode(value, "setting's value")?));
        }
        Ok(url)
    }
}

fn split_port(host: &str) -> Result<(&str, &str)> {
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
    Ok((name, port))
}

#[cold]
fn broken(what: &str) -> Error {
    Error::interface(format!("the connection's URL {what}")).with_hint(
        "percent-encode special characters in user and password: @ as %40, / as %2F, : as %3A, ? as %3F; or give \
         the parts as a dict",
    )
}

/// The error of a setting that would have to have an effect that it does not have.
#[cold]
#[must_use]
pub fn not_supported(name: &str) -> Error {
    Error::new(Kind::NotSupported, format!("the connection setting {name:?} is not supported"))
        .with_hint("leave it out; what it asks for would not happen")
}

/// The error of a setting that is not among the `known`; `hint` is what to do where none of them is close, or where it
/// is another library's word.
#[cold]
pub fn unknown<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    other: Option<String>,
    hint: &str,
) -> Error {
    // What is not a word may be a piece of a secret that was not percent-encoded.
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_word || name.is_empty() || name.len() >= 40 {
        return Error::interface("the connection's settings hold a name that is not a word")
            .with_hint("percent-encode special characters in a URL: @ as %40, / as %2F, ? as %3F, & as %26");
    }
    let wanted = name.to_ascii_lowercase();
    let near = known.into_iter().map(|key| (distance(&wanted, key), key)).min();
    let hint = other.unwrap_or_else(|| match near {
        Some((far, key)) if far <= 1 + wanted.len() / 4 => format!("did you mean {key:?}?"),
        _ => hint.to_owned(),
    });
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

    fn url(rest: &str) -> (Option<String>, Option<String>, String, String) {
        let url = Url::parse(rest).unwrap();
        let hosts: Vec<String> = url.hosts.iter().map(|(name, port)| format!("{name}|{port}")).collect();
        (url.user, url.password, hosts.join(","), url.database)
    }

    #[test]
    fn takes_every_form_apart() {
        let some = |text: &str| Some(text.to_owned());
        for (rest, user, password, hosts, database) in [
            ("", None, None, "|", ""),
            ("localhost:5433", None, None, "localhost|5433", ""),
            ("user@localhost/mydb", some("user"), None, "localhost|", "mydb"),
            ("user:se%40%2F%3A@h", some("user"), some("se@/:"), "h|", ""),
            ("user:p@ss@h", some("user"), some("p@ss"), "h|", ""),
            ("user:a:b@h", some("user"), some("a:b"), "h|", ""),
            ("me:@h", some("me"), some(""), "h|", ""),
            ("host1:123,host2:456/db", None, None, "host1|123,host2|456", "db"),
            ("[2001:db8::1]/db", None, None, "2001:db8::1|", "db"),
            ("[::1]:5433,[::2]", None, None, "::1|5433,::2|", ""),
            ("%2Fvar%2Frun/db", None, None, "/var/run|", "db"),
            ("h/a%2Fb", None, None, "h|", "a/b"),
            ("r%C3%A9mi@:1/db", some("rémi"), None, "|1", "db"),
        ] {
            assert_eq!(url(rest), (user, password, hosts.to_owned(), database.to_owned()), "{rest}");
        }
        let settings = Url::parse("h?a=1%202&&user=o@ther&password=x%26y").unwrap().settings;
        let pairs: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(pairs, ["a=1 2", "user=o@ther", "password=x&y"]);
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
            "h?a=hid@den",
            "u:%00hidden@h",
            "h:1:hidden",
        ] {
            let error = Url::parse(rest).unwrap_err();
            let text = error.to_string();
            let is_told = text.contains("hid") || text.contains("den@");
            assert!(!is_told && error.hint().is_some(), "{rest}: {text}");
        }
    }

    #[test]
    fn names_the_closest_key_and_repeats_no_secret() {
        let hint = |name: &str| unknown(name, ["host", "password"], None, "other").hint().map(str::to_owned);
        assert_eq!(hint("Pasword"), Some("did you mean \"password\"?".into()));
        assert_eq!(hint("entirely_else"), Some("other".into()));
        assert!(!unknown("ss@host/db", ["host"], None, "").to_string().contains("ss@"));
        assert_eq!(not_supported("sslcrl").kind(), Kind::NotSupported);
    }
}
