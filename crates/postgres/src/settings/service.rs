//! The connection service file (PostgreSQL documentation, section "The Connection Service File").

use std::path::{Path, PathBuf};

use longshore_core::{Error, Result};

use super::environment::Environment;
use super::keys;

/// The settings of the service called `name`: from `file` if given, else from the user's file, then the
/// system's.
pub(crate) fn settings(
    name: &str,
    file: Option<&str>,
    environment: &Environment,
) -> Result<Vec<(String, String)>> {
    for path in files(file, environment) {
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(settings) = section(&text, name, &path)? {
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

fn files(given: Option<&str>, environment: &Environment) -> Vec<PathBuf> {
    let own = given.map(PathBuf::from).or_else(|| environment.at_home(".pg_service.conf"));
    // Debian's libpq looks there; others have no place of their own but this variable.
    let system = environment.get("PGSYSCONFDIR").unwrap_or("/etc/postgresql-common");
    own.into_iter().chain([Path::new(system).join("pg_service.conf")]).collect()
}

/// The settings in the section `[name]`, if `text` has it.
fn section(text: &str, name: &str, path: &Path) -> Result<Option<Vec<(String, String)>>> {
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
        keys::find(key).map_err(|error| error.within(place))?;
        settings.push((key.to_owned(), value.to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_section() {
        let text =
            "# comment\n[one]\nhost=a\n\n[two]\n  host=b\nport=5433\noptions=-c a=b\n[three]\nhost=c\n";
        let found = section(text, "two", Path::new("f")).unwrap().unwrap();
        let expected = [("host", "b"), ("port", "5433"), ("options", "-c a=b")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert!(section(text, "four", Path::new("f")).unwrap().is_none());
    }

    #[test]
    fn says_which_line_is_wrong() {
        for (text, expected) in
            [("[a]\nhots=x", "hots"), ("[a]\nhost", "no \"=\""), ("[a]\nservice=b", "refer to another")]
        {
            let error = section(text, "a", Path::new("f")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(expected), "{error}");
        }
    }
}
