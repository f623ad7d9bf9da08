//! The machine's additions to what the caller gave: environment variables, the password file and the service file
//! (PostgreSQL documentation, sections "The Password File" and "The Connection Service File").

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longshore_core::{Error, Result, Secret};

use super::keys::KEYS;

/// The process's environment as far as it describes a connection. Tests make their own.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) home: Option<PathBuf>,
    /// Asks for the operating system's name of the user, which can mean asking a directory server.
    pub(crate) user: fn() -> Option<String>,
    /// Where servers on this machine put their Unix sockets.
    pub(crate) socket_directories: Vec<PathBuf>,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: std::env::vars_os()
                .filter_map(text)
                .filter(|(name, _)| name.starts_with("PG"))
                .collect(),
            home: std::env::home_dir(),
            user: system_user,
            socket_directories: socket_directories(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A file in the home directory, as libpq names it.
    pub(crate) fn at_home(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(name))
    }
}

#[cfg(unix)]
fn system_user() -> Option<String> {
    let entry = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    entry.map(|user| user.name).or_else(|| std::env::var("USER").ok())
}

#[cfg(not(unix))]
fn system_user() -> Option<String> {
    std::env::var("USERNAME").ok()
}

fn socket_directories() -> Vec<PathBuf> {
    if cfg!(unix) { ["/var/run/postgresql", "/tmp"].map(PathBuf::from).to_vec() } else { Vec::new() }
}

pub(crate) struct Login<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// A password file's text, or why it does not count.
pub(crate) enum Passfile {
    Absent,
    /// Others than its owner can read it; the text says so.
    Ignored(String),
    Read(String),
}

impl Passfile {
    /// Reads the file at `path`, which need not be there.
    pub(crate) fn read(path: Option<&Path>) -> Self {
        let Some(path) = path else { return Self::Absent };
        let Ok(metadata) = std::fs::metadata(path) else { return Self::Absent };
        if !metadata.is_file() {
            return Self::Ignored(format!(
                "the password file {} is ignored: it is not a plain file",
                path.display()
            ));
        }
        if others_can_read(&metadata) {
            return Self::Ignored(format!(
                "the password file {} is ignored: others can read it (chmod 600 makes it count)",
                path.display()
            ));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::Read(text),
            Err(error) => {
                Self::Ignored(format!("the password file {} cannot be read: {error}", path.display()))
            }
        }
    }

    pub(crate) fn find(&self, login: &Login<'_>) -> Option<Secret> {
        let Self::Read(text) = self else { return None };
        text.lines().find_map(|line| password(line, login))
    }

    /// Why the file does not count, if it is there and does not.
    pub(crate) fn complaint(self) -> Option<String> {
        if let Self::Ignored(why) = self { Some(why) } else { None }
    }
}

#[cfg(unix)]
fn others_can_read(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_can_read(_: &std::fs::Metadata) -> bool {
    false
}

fn password(line: &str, login: &Login<'_>) -> Option<Secret> {
    if line.starts_with('#') {
        return None;
    }
    let port = login.port.to_string();
    let mut rest = line;
    for expected in [login.host, &port, login.database, login.user] {
        let (field, after) = split_field(rest)?;
        if field != "*" && unescape(field) != expected {
            return None;
        }
        rest = after;
    }
    let password = unescape(rest);
    (!password.is_empty()).then(|| Secret::new(password))
}

/// The text before the first colon without a backslash, and what follows it.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b':' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

/// The settings of the service called `name`: from `file` if that is named, else from the user's file, then the
/// system's.
pub(super) fn service_settings(
    name: &str,
    file: Option<&str>,
    environment: &Environment,
) -> Result<Vec<(String, String)>> {
    for path in service_files(file, environment) {
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(settings) = service_section(&text, name, &path)? {
                    return Ok(settings);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => {}
            Err(error) => {
                return Err(Error::interface(format!(
                    "cannot read the service file {}: {error}",
                    path.display()
                ))
                .with_hint("check servicefile, or PGSERVICEFILE"));
            }
        }
    }
    Err(Error::interface(format!("the service {name:?} is defined nowhere")).with_hint(format!(
        "define it as a section [{name}] in ~/.pg_service.conf, or name its file in PGSERVICEFILE"
    )))
}

fn service_files(named: Option<&str>, environment: &Environment) -> Vec<PathBuf> {
    let users = named.map(PathBuf::from).or_else(|| environment.at_home(".pg_service.conf"));
    // Debian's libpq looks there; others have no place of their own but this variable.
    let system = environment.get("PGSYSCONFDIR").unwrap_or("/etc/postgresql-common");
    users.into_iter().chain([Path::new(system).join("pg_service.conf")]).collect()
}

/// The settings in the section `[name]`, if `text` has it.
fn service_section(text: &str, name: &str, path: &Path) -> Result<Option<Vec<(String, String)>>> {
    let mut found: Option<Vec<(String, String)>> = None;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            found = (header.strip_suffix(']') == Some(name)).then(Vec::new);
            continue;
        }
        let Some(settings) = &mut found else { continue };
        let place = format!("the service file {}, line {}", path.display(), number + 1);
        let Some((key, value)) = line.split_once('=') else {
            return Err(Error::interface(format!("{place}: no \"=\"")).with_hint("write it as key=value"));
        };
        if matches!(key, "service" | "servicefile") {
            return Err(Error::interface(format!("{place}: a service cannot refer to another one"))
                .with_hint("write the other one's settings there"));
        }
        KEYS.find(key).map_err(|error| error.within(place))?;
        settings.push((key.to_owned(), value.to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_password(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        let file = Passfile::Read(text.to_owned());
        file.find(&Login { host, port, database, user }).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn takes_the_first_line_that_fits() {
        let file = "# a comment\n\
                    #localhost:5432:db:me:no\n\
                    other:5432:db:me:no\n\
                    localhost:5433:*:me:by port\n\
                    localhost:*:db:me:with:colons\n\
                    a\\:b:*:*:m\\\\e:es\\:cap\\\\ed\n\
                    *:*:*:someone:\n\
                    *:*:*:*:anybody\n";
        for (host, port, database, user, expected) in [
            ("localhost", 5433, "x", "me", "by port"),
            ("localhost", 5432, "db", "me", "with:colons"),
            ("a:b", 1, "x", "m\\e", "es:cap\\ed"),
            ("far", 1, "x", "someone", "anybody"),
        ] {
            assert_eq!(find_password(file, host, port, database, user).as_deref(), Some(expected));
        }
        assert_eq!(find_password("localhost:5432:db", "localhost", 5432, "db", "me"), None);
        assert_eq!(find_password("", "localhost", 5432, "db", "me"), None);
    }

    #[cfg(unix)]
    #[test]
    fn counts_only_while_others_cannot_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("longshore-pgpass-{}", std::process::id()));
        std::fs::write(&path, "*:*:*:*:x").unwrap();
        for (mode, counts) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let file = Passfile::read(Some(&path));
            assert_eq!(matches!(file, Passfile::Read(_)), counts, "{mode:o}");
            assert_eq!(file.complaint().is_some(), !counts);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Passfile::read(Some(&path)), Passfile::Absent));
    }

    #[test]
    fn reads_its_own_section() {
        let text =
            "# comment\n[one]\nhost=a\n\n[two]\n  host=b\nport=5433\noptions=-c a=b\n[three]\nhost=c\n";
        let found = service_section(text, "two", Path::new("f")).unwrap().unwrap();
        let expected = [("host", "b"), ("port", "5433"), ("options", "-c a=b")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert!(service_section(text, "four", Path::new("f")).unwrap().is_none());
    }

    #[test]
    fn says_which_line_is_wrong() {
        for (text, expected) in
            [("[a]\nhots=x", "hots"), ("[a]\nhost", "no \"=\""), ("[a]\nservice=b", "refer to another")]
        {
            let error = service_section(text, "a", Path::new("f")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(expected), "{error}");
        }
    }
}
