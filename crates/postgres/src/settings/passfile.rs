//! The password file (PostgreSQL documentation, section "The Password File").

use std::path::Path;

use longshore_core::Secret;

/// What a line of the file is compared with.
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

    /// The password of the first line that fits.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
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
            assert_eq!(find(file, host, port, database, user).as_deref(), Some(expected));
        }
        assert_eq!(find("localhost:5432:db", "localhost", 5432, "db", "me"), None);
        assert_eq!(find("", "localhost", 5432, "db", "me"), None);
    }

    #[cfg(unix)]
    #[test]
    fn counts_only_while_nobody_else_can_read_it() {
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
}
