//! Connection settings: the parts of a URL, the keys that a source knows, and what was said of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, PasswordSource, Result, Secret, Target, percent_decode};

/// A setting that a source knows. Upper and lower case are the same in its name, and so are `-` and `_`.
#[derive(Debug)]
pub struct Key {
    /// As errors and documents write it.
    pub name: &'static str,
    /// Other names of it, parted by spaces.
    aliases: &'static str,
    /// The environment's variable that stands in for it.
    pub variable: Option<&'static str>,
    /// The words of it that a switch of this name stands for: on, and off.
    switch: Option<(&'static str, [&'static str; 2])>,
    support: Support,
}

/// Whether a setting has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    Full,
    /// It has, and an empty text is one.
    EvenEmpty,
    /// It has none here, and needs none.
    Ignored,
    /// It would have to have an effect that it does not have.
    Refused,
}

impl Key {
    /// A setting that has its effect.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, aliases: "", variable: None, switch: None, support: Support::Full }
    }

    /// The same under other names too, which are parted by spaces.
    #[must_use]
    pub const fn or(self, aliases: &'static str) -> Self {
        Self { aliases, ..self }
    }

    /// The same, with the environment's variable that stands in for it.
    #[must_use]
    pub const fn variable(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    /// The same, which other clients have as a switch: `name`, and the words for on and off.
    #[must_use]
    pub const fn switch(self, name: &'static str, words: [&'static str; 2]) -> Self {
        Self { switch: Some((name, words)), ..self }
    }

    /// The same, of which an empty text says something too.
    #[must_use]
    pub const fn even_empty(self) -> Self {
        Self { support: Support::EvenEmpty, ..self }
    }

    /// A setting that has no effect here, and needs none.
    #[must_use]
    pub const fn ignore(self) -> Self {
        Self { support: Support::Ignored, ..self }
    }

    /// A setting that would have to have an effect that it does not have.
    #[must_use]
    pub const fn refuse(self) -> Self {
        Self { support: Support::Refused, ..self }
    }

    fn is_called(&self, name: &str) -> bool {
        let is_switch = self.switch.is_some_and(|(switch, _)| switch == name);
        fold(self.name) == name || is_switch || self.aliases.split(' ').any(|alias| alias == name)
    }
}

/// The settings that a source knows.
#[derive(Debug)]
pub struct Keys {
    /// All of them.
    pub all: &'static [Key],
    /// The hint for a name that is close to none of them.
    pub hint: &'static str,
}

impl Keys {
    /// The key called `name`; an error that names the closest one, or that says that it is not supported.
    pub fn find(&self, name: &str) -> Result<&'static Key> {
        let wanted = fold(name);
        let Some(key) = self.all.iter().find(|key| key.is_called(&wanted)) else {
            let known = self.all.iter().filter(|key| key.support != Support::Refused).map(|key| key.name);
            return Err(unknown(name, known, self.hint));
        };
        if key.support == Support::Refused {
            return Err(Error::not_supported(format!("the connection setting {name:?} is not supported"))
                .with_hint("leave it out; what it asks for would not happen"));
        }
        Ok(key)
    }
}

fn fold(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// The texts of all settings that something has been said about. No `Debug`: one of them is the password.
pub struct Values {
    keys: &'static Keys,
    texts: BTreeMap<&'static str, String>,
}

impl Values {
    /// Nothing yet, of `keys`.
    #[must_use]
    pub fn new(keys: &'static Keys) -> Self {
        Self { keys, texts: BTreeMap::new() }
    }

    /// The values of `target`: its keywords, which win over its URL, whose database goes under the name `database`.
    pub fn of(keys: &'static Keys, target: &Target, database: &str) -> Result<Self> {
        let mut values = Self::new(keys);
        // "ssl-mode" before "ssl", which says less.
        for (name, value) in target.keywords.iter().rev() {
            values.set(name, value)?;
        }
        for (name, value) in Url::parse(target.rest())?.settings(database).rev() {
            values.set(&name, &value)?;
        }
        Ok(values)
    }

    /// Sets `name`, which must be known, unless it is set. An empty text leaves it open.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = self.keys.find(name)?;
        if value.contains('\0') {
            return Err(Error::interface(format!("the connection setting {} holds a zero byte", key.name))
                .with_hint("take it out: the server ends every text there"));
        }
        let value = match key.switch {
            Some((switch, [on, off])) if fold(name) == switch => {
                if flag(switch, value)? {
                    on
                } else {
                    off
                }
            }
            _ => value,
        };
        if !value.is_empty() || key.support == Support::EvenEmpty {
            self.texts.entry(key.name).or_insert_with(|| value.to_owned());
        }
        Ok(())
    }

    /// The value that was said of a setting.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// The same, as the path of a file.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// The password: `target`'s own source of one, or the setting `password`.
    #[must_use]
    pub fn password(&self, target: &Target) -> Option<Arc<dyn PasswordSource>> {
        target.password.clone().or_else(|| Some(Arc::new(Secret::new(self.text("password")?))))
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.text(name).map(|text| flag(name, text)).transpose()
    }

    /// A whole number, negative ones included.
    pub fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number: i32 = text.trim().parse().map_err(|_| {
            Error::interface(format!("the connection setting {name} is not a whole number"))
                .with_hint(format!("write {name}=10, for example"))
        })?;
        Ok(Some(number.into()))
    }

    /// A time in seconds; none is what zero and negative numbers mean.
    pub fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_secs))
    }

    /// A time in milliseconds; none is what zero and negative numbers mean.
    pub fn milliseconds(&self, name: &str) -> Result<Option<Duration>> {
        Ok(self.positive(name)?.map(Duration::from_millis))
    }

    fn positive(&self, name: &str) -> Result<Option<u64>> {
        let number = self.number(name)?.and_then(|number| u64::try_from(number).ok());
        Ok(number.filter(|number| *number > 0))
    }

    /// One of `choices`: the words for it, parted by spaces, and what they mean.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wanted = fold(text);
        let found = choices.iter().find(|(words, _)| words.split(' ').any(|word| fold(word) == wanted));
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words = choices.iter().filter_map(|(words, _)| words.split(' ').next());
            Error::interface(format!("the connection setting {name} has an unknown value"))
                .with_hint(format!("write one of {}", words.collect::<Vec<_>>().join(", ")))
        })
    }
}

/// The text of a setting that is true or false.
fn flag(name: &str, text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Ok(true),
        "false" | "0" | "off" | "no" => Ok(false),
        _ => Err(Error::interface(format!("the connection setting {name} is neither true nor false"))
            .with_hint(format!("write {name}=true or {name}=false"))),
    }
}

/// A port. The text is not repeated: in a URL it may be the start of a password.
pub fn port(text: &str) -> Result<u16> {
    text.trim().parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        Error::interface("the port is not a number from 1 to 65535").with_hint(
            "in a URL, percent-encode special characters in user and password: @ as %40, / as %2F, : as %3A",
        )
    })
}

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
            return Err(url_error("has an @ behind its first slash"));
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
        url.settings = Self::pairs(query)?;
        Ok(url)
    }

    /// The settings behind a URL's question mark, in order.
    pub fn pairs(query: &str) -> Result<Vec<(String, String)>> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| url_error("has a setting without = behind its ?"))?;
            // So does a question mark. A name of a user may have an @, and a password that is a setting of its own.
            if value.contains('@') && !matches!(key, "user" | "password") {
                return Err(url_error("has an @ behind its ?"));
            }
            Ok((percent_decode(key, "setting")?, percent_decode(value, "setting's value")?))
        });
        decoded.collect()
    }

    /// The parts as settings, in order: `user`, `password`, `host` and `port` with a comma between several, the database
    /// under its own name, and those behind the question mark.
    #[must_use]
    pub fn settings(self, database: &str) -> impl DoubleEndedIterator<Item = (String, String)> + use<> {
        let (hosts, numbers): (Vec<String>, Vec<String>) = self.hosts.into_iter().unzip();
        let list = |parts: Vec<String>| parts.iter().any(|part| !part.is_empty()).then(|| parts.join(","));
        let parts = [
            ("user", self.user),
            ("password", self.password),
            ("host", list(hosts)),
            ("port", list(numbers)),
            (database, Some(self.database).filter(|database| !database.is_empty())),
        ];
        let parts = parts.map(|(name, value)| Some((name.to_owned(), value?)));
        parts.into_iter().flatten().chain(self.settings)
    }
}

fn split_port(host: &str) -> Result<(&str, &str)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(bracketed) => {
            let (name, after) = bracketed.split_once(']').ok_or_else(|| url_error("has a [ without a ]"))?;
            match after.strip_prefix(':') {
                Some(port) => (name, port),
                None if after.is_empty() => (name, ""),
                None => return Err(url_error("has something other than a port behind a ]")),
            }
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    if port.contains(':') {
        return Err(
            url_error("has too many colons in a host").with_hint("write an IPv6 address in brackets: [::1]")
        );
    }
    Ok((name, port))
}

#[cold]
fn url_error(what: &str) -> Error {
    Error::interface(format!("the connection's URL {what}")).with_hint(
        "percent-encode special characters in user and password: @ as %40, / as %2F, : as %3A, ? as %3F; or give \
         the parts as a dict",
    )
}

/// The error of a setting that is not among the `known`; `hint` is what to do where none of them is close.
#[cold]
fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, hint: &str) -> Error {
    // What is not a word may be a piece of a secret that was not percent-encoded.
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_word || name.is_empty() || name.len() >= 40 {
        return Error::interface("the connection's settings hold a name that is not a word")
            .with_hint("percent-encode special characters in a URL: @ as %40, / as %2F, ? as %3F, & as %26");
    }
    let wanted = name.to_ascii_lowercase();
    let near = known.into_iter().map(|key| (strsim::levenshtein(&wanted, key), key)).min();
    let hint = match near {
        Some((far, key)) if far <= 1 + wanted.len() / 4 => format!("did you mean {key:?}?"),
        _ => hint.to_owned(),
    };
    Error::interface(format!("unknown connection setting {name:?}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

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
        let hint = |name: &str| unknown(name, ["host", "password"], "other").hint().map(str::to_owned);
        assert_eq!(hint("Pasword"), Some("did you mean \"password\"?".into()));
        assert_eq!(hint("entirely_else"), Some("other".into()));
        assert!(!unknown("ss@host/db", ["host"], "").to_string().contains("ss@"));
    }

    #[test]
    fn what_was_said_first_counts_and_names_have_several_spellings() {
        static KEYS: Keys = Keys {
            all: &[
                Key::new("time_out").or("limit timeout"),
                Key::new("password").even_empty(),
                Key::new("mode"),
                Key::new("crl").refuse(),
            ],
            hint: "write it as database",
        };
        let mut values = Values::new(&KEYS);
        for (name, value) in
            [("Time-Out", ""), ("TIMEOUT", "5"), ("time_out", "7"), ("password", ""), ("password", "x")]
        {
            values.set(name, value).unwrap();
        }
        assert_eq!(values.seconds("time_out").unwrap(), Some(Duration::from_secs(5)));
        assert_eq!(values.text("password"), Some(""));
        values.set("mode", "Verify_CA").unwrap();
        assert_eq!(values.choice("mode", &[("off none", 0), ("verify-ca", 1)]).unwrap(), Some(1));
        let hint =
            values.choice("mode", &[("off none", 0), ("on", 1)]).unwrap_err().hint().map(str::to_owned);
        assert_eq!(hint.as_deref(), Some("write one of off, on"));
        assert!(values.number("mode").is_err() && values.flag("mode").is_err());
        assert_eq!(values.set("crl", "x").unwrap_err().kind(), Kind::NotSupported);
        assert_eq!(values.set("db", "x").unwrap_err().hint(), Some("write it as database"));
        assert!(values.set("mode", "a\0").is_err());
    }
}
