//! The settings that a URL or keywords say of a database: which file, and how it is opened.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use longshore_core::{Error, Result, Target, percent_decode};
use longshore_source::settings::{Key, Keys, Url, Values};

use crate::cell::hex;
use crate::connection::{Open, first_bytes};

/// The settings that are known, next to `pragma.<name>`.
static KEYS: Keys = Keys {
    all: &[
        Key::new("database"),
        Key::new("mode"),
        Key::new("immutable"),
        Key::new("cache"),
        Key::new("busy_timeout").or("timeout"),
        Key::new("attach"),
    ],
    hint: "the settings are database, mode, immutable, cache, busy_timeout, attach and pragma.<name>",
};

/// How long to wait for a lock where nothing is said.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes 18 and 19 of a file in WAL mode (sqlite.org/fileformat.html, section 1.3.3).
const WAL: [u8; 2] = [2, 2];

/// A database and how to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) open: Open,
    /// The file; `None` for a database in memory.
    pub(crate) file: Option<String>,
    /// Statements that run first.
    pub(crate) pragmas: Vec<String>,
}

impl Settings {
    pub(crate) fn of(target: &Target) -> Result<Self> {
        if target.password.is_some() {
            return Err(Error::interface("SQLite has no password"));
        }
        let (path, query) = target.rest().split_once('?').unwrap_or((target.rest(), ""));
        let (mut values, mut pragmas) = (Values::new(&KEYS), BTreeMap::new());
        let path = if path.is_empty() { String::new() } else { percent_decode(file_of(path)?, "path")? };
        let place = [("database".to_owned(), path)];
        // Keywords win over the URL.
        for (name, value) in target.keywords.clone().into_iter().chain(place).chain(pairs(query)?) {
            match name.strip_prefix("pragma.") {
                Some(pragma) => drop(pragmas.entry(pragma.to_owned()).or_insert(value)),
                None => values.set(&name, &value)?,
            }
        }
        let pragmas = pragmas.iter().map(|(name, value)| pragma(name, value)).collect::<Result<_>>()?;
        Self::read(&values, pragmas, target.creates)
    }

    fn read(values: &Values, pragmas: Vec<String>, creates: bool) -> Result<Self> {
        let is_immutable = values.flag("immutable")?.unwrap_or(false);
        let modes =
            [("ro", Mode::Read), ("rw", Mode::Write), ("rwc", Mode::Create), ("memory", Mode::Memory)];
        let otherwise = if creates && !is_immutable { Mode::Create } else { Mode::Write };
        let mode = values.choice("mode", &modes)?.unwrap_or(otherwise);
        let cache = values.choice("cache", &[("shared", "shared"), ("private", "private")])?;
        let busy_timeout = busy_timeout(values)?;
        let database = values.text("database").unwrap_or_default().to_owned();
        let is_memory = database.is_empty() || database == ":memory:" || mode == Mode::Memory;
        if is_memory && creates && cache != Some("shared") {
            return Err(Error::interface(
                "the database is in memory, of one connection: what is written would be gone when the call ends",
            )
            .with_hint(
                "write to a file, such as sqlite:///new.db, or keep a connection open and write to that: \
                 connection = longshore.connect(\"sqlite://\")",
            ));
        }
        let parameters = parameters(mode, is_immutable, cache);
        let name = match parameters {
            Some(parameters) => format!("file:{}?{parameters}", encode(&database)),
            None if is_memory => ":memory:".to_owned(),
            // SQLite would take it for a URI.
            None if database.starts_with("file:") => format!("./{database}"),
            None => database.clone(),
        };
        let attach = values.flag("attach")?.unwrap_or(true);
        let read_only = mode == Mode::Read || is_immutable;
        let create = is_memory || mode == Mode::Create;
        let file = (!is_memory).then_some(database);
        Ok(Self { open: Open { name, read_only, create, busy_timeout, attach }, file, pragmas })
    }

    /// Fails where no database can be there, in words that say why.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = Path::new(file);
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(Error::operational(format!(
                "{file:?} is a directory, and no database [SQLITE_CANTOPEN_ISDIR]"
            ))
            .with_hint("give the path of a file")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.open.create => {
                Err(Error::operational(format!("there is no file {file:?} [SQLITE_CANTOPEN]")).with_hint(format!(
                    "sqlite:///relative has three slashes, sqlite:////absolute four; the working directory is {}; \
                     write_sql makes a new file with its table, mode=rwc at once",
                    std::env::current_dir().unwrap_or_default().display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// The hint where SQLite cannot open the file, as far as the file system tells.
    pub(crate) fn remedy(&self) -> Option<String> {
        let path = Path::new(self.file.as_deref()?);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Some(format!("there is no folder {}: make it first", folder.display()));
        }
        if !path.exists() {
            return Some(format!(
                "a new file is made in {}: look whether that folder may be written",
                folder.display()
            ));
        }
        let is_wal = first_bytes(path).is_some_and(|header: [u8; 20]| header[18..] == WAL);
        is_wal.then(|| {
            "the database is in WAL mode, whose -wal and -shm files cannot be made or read: let the folder be written, \
             or, where no one writes to the database meanwhile, read it with immutable=1"
                .to_owned()
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Create,
    Memory,
}

/// The path of what follows `sqlite://`.
fn file_of(rest: &str) -> Result<&str> {
    rest.strip_prefix('/').ok_or_else(|| {
        Error::interface("a SQLite URL has no host")
            .with_hint("write sqlite:///relative/path, sqlite:////absolute/path or sqlite:///:memory:")
    })
}

/// The parameters of a URI (sqlite.org/uri.html); `None` where a plain name does.
fn parameters(mode: Mode, is_immutable: bool, cache: Option<&str>) -> Option<String> {
    let mut parameters: Vec<String> = cache.map(|kind| format!("cache={kind}")).into_iter().collect();
    if is_immutable {
        parameters.push("immutable=1".to_owned());
    }
    if parameters.is_empty() {
        return None;
    }
    if mode == Mode::Memory {
        parameters.push("mode=memory".to_owned());
    }
    Some(parameters.join("&"))
}

/// A path within a URI.
fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b':' => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.push('%');
                encoded.push_str(&hex(&[byte]));
            }
        }
    }
    // Two slashes at the start would name a host.
    if encoded.starts_with("//") { format!("//{encoded}") } else { encoded }
}

fn busy_timeout(values: &Values) -> Result<Duration> {
    let Some(text) = values.text("busy_timeout") else { return Ok(BUSY_TIMEOUT) };
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| Error::interface(format!("busy_timeout is a number of seconds, not {text:?}")))
}

/// The settings behind a URL's question mark, each once.
fn pairs(query: &str) -> Result<Vec<(String, String)>> {
    if query.split('&').any(|pair| matches!(pair, "immutable" | "immutable=")) {
        return Err(Error::interface("immutable has no value, which SQLite would take for false")
            .with_hint("write immutable=1, or leave it out"));
    }
    let pairs = Url::pairs(query)?;
    let mut names = HashSet::new();
    match pairs.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(Error::interface(format!("the URL gives {name} twice"))),
        None => Ok(pairs),
    }
}

/// The statement of `pragma.<name>=<value>`.
fn pragma(name: &str, value: &str) -> Result<String> {
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_word(name) || !is_word(value.trim_start_matches('-')) {
        return Err(Error::interface(format!("pragma.{name} is not a PRAGMA with its value: {value:?}"))
            .with_hint("write it as pragma.cache_size=-64000: a name, and a word or a number"));
    }
    Ok(format!("PRAGMA {name} = {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Settings> {
        Settings::of(&Target::from_url(url).unwrap())
    }

    #[test]
    fn urls_name_a_file_or_memory() {
        for (url, name, file) in [
            ("sqlite:///a/b.db", "a/b.db", Some("a/b.db")),
            ("sqlite:////a/b%20c.db", "/a/b c.db", Some("/a/b c.db")),
            ("sqlite:///C:/a.db", "C:/a.db", Some("C:/a.db")),
            ("sqlite:///:memory:", ":memory:", None),
            ("sqlite://", ":memory:", None),
            ("sqlite:///", ":memory:", None),
            ("sqlite:///file:a?mode=ro", "./file:a", Some("file:a")),
            ("sqlite:////a%3F.db?immutable=1", "file:/a%3f.db?immutable=1", Some("/a?.db")),
            ("sqlite:///a?cache=shared&mode=memory", "file:a?cache=shared&mode=memory", None),
        ] {
            let settings = of(url).unwrap();
            assert_eq!((settings.open.name.as_str(), settings.file.as_deref()), (name, file), "{url}");
        }
    }

    #[test]
    fn a_file_is_made_only_where_that_is_asked_for() {
        assert!(!of("sqlite:///a").unwrap().open.create);
        assert!(!of("sqlite:///a?mode=ro").unwrap().open.create);
        assert!(of("sqlite:///a?mode=ro").unwrap().open.read_only);
        assert!(of("sqlite:///a?mode=rwc").unwrap().open.create);
    }

    #[test]
    fn a_write_makes_the_file_where_nothing_else_is_said() {
        let writing = |url: &str| {
            let mut target = Target::from_url(url).unwrap();
            target.creates = true;
            Settings::of(&target)
        };
        assert!(writing("sqlite:///a").unwrap().open.create);
        for url in ["sqlite:///a?mode=rw", "sqlite:///a?mode=ro", "sqlite:///a?immutable=1"] {
            assert!(!writing(url).unwrap().open.create, "{url}");
        }
        for url in ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a?mode=memory"] {
            assert!(writing(url).unwrap_err().hint().unwrap().contains("longshore.connect"), "{url}");
        }
        assert!(writing("sqlite:///a?mode=memory&cache=shared").is_ok());
    }

    #[test]
    fn waits_and_pragmas() {
        let settings = of("sqlite:///a?timeout=0.5&pragma.cache_size=-64000").unwrap();
        assert_eq!(settings.open.busy_timeout, Duration::from_millis(500));
        assert_eq!(settings.pragmas, ["PRAGMA cache_size = -64000"]);
        assert_eq!(of("sqlite:///a").unwrap().open.busy_timeout, BUSY_TIMEOUT);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, word) in [
            ("sqlite://host/a", "host"),
            ("sqlite:///a?mode=x", "mode"),
            ("sqlite:///a?cache=x", "cache"),
            ("sqlite:///a?mode=ro&immutable", "immutable has no value"),
            ("sqlite:///a?immutable=", "immutable has no value"),
            ("sqlite:///a?busy_timeout=x", "busy_timeout"),
            ("sqlite:///a?busy_timeout=-1", "busy_timeout"),
            ("sqlite:///a?vfs=x", "vfs"),
            ("sqlite:///a?mode=ro&mode=rw", "twice"),
            ("sqlite:///a?pragma.x%3By=1", "pragma.x;y"),
            ("sqlite:///a?pragma.x=1%3BDROP", "DROP"),
        ] {
            assert!(of(url).unwrap_err().to_string().contains(word), "{url}");
        }
    }
}
