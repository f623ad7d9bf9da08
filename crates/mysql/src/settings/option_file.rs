//! Option files: the settings of a group such as `[client]` (MySQL documentation, "Using Option Files").

use longshore_core::{Error, Result};

/// Settings of the client section that the library has no use for, and that change nothing here.
const IGNORED: &str = "auto-rehash no-auto-rehash pager prompt max-allowed-packet net-buffer-length quick \
                       loose-default-character-set";

/// The settings of `groups` in the option file at `path`, the last word of each counting.
pub(crate) fn read(path: &str, groups: &[String]) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::interface(format!("the option file {path:?} cannot be read: {error}"))
            .with_hint("check the path given as defaults-file")
    })?;
    parse(&text, groups).map_err(|error| error.within(format!("the option file {path:?}")))
}

fn parse(text: &str, groups: &[String]) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    let mut counts = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('!') {
            return Err(Error::interface(format!("line {} includes other files", index + 1))
                .with_hint("name the file that holds the settings itself"));
        }
        if let Some(group) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            counts = groups.iter().any(|wanted| wanted == group.0.trim());
            continue;
        }
        if counts {
            settings.extend(setting(line));
        }
    }
    Ok(settings)
}

/// A line's name and value; a name alone is true.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), unquote(value.trim())),
        None => (line.split('#').next().unwrap_or(line).trim(), "true".to_owned()),
    };
    let canonical = name.to_ascii_lowercase().replace('_', "-");
    (!IGNORED.split(' ').any(|ignored| ignored == canonical)).then_some((canonical, value))
}

/// The value without quotes or the comment behind it, its escapes resolved.
fn unquote(value: &str) -> String {
    let (quote, body) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => (Some(quote), &value[1..]),
        _ => (None, value),
    };
    let mut text = String::new();
    let mut characters = body.chars();
    while let Some(c) = characters.next() {
        match c {
            _ if Some(c) == quote => return text,
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\x08'),
                Some('s') => text.push(' '),
                Some(other @ ('\\' | '"' | '\'')) => text.push(other),
                // Any other escape stands for itself, backslash included.
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
            '#' if quote.is_none() && (text.is_empty() || text.ends_with([' ', '\t'])) => break,
            _ => text.push(c),
        }
    }
    if quote.is_none() { text.trim_end().to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_asked_groups_count() {
        let text = "# a comment\nuser=other\n[client]\nuser = me # yes\npassword=\"a#b \\\"c\\\"\"\nssl\n\
                    [mysqld]\nport=1\n[other]\nport='3307'\nssl_ca=C:\\\\x\\y\npager=less\n";
        let groups = ["client".to_owned(), "other".to_owned()];
        let found = parse(text, &groups).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("user", "me"),
                ("password", "a#b \"c\""),
                ("ssl", "true"),
                ("port", "3307"),
                ("ssl-ca", "C:\\x\\y")
            ]
        );
        assert!(parse("!include /etc/x", &groups).is_err());
    }
}
