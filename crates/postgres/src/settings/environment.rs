//! What the machine and the process add to what the caller gave.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The process's environment as far as it describes a connection. Tests make their own.
#[derive(Clone)]
pub(crate) struct Environment {
    /// Variables by name.
    pub(crate) variables: BTreeMap<String, String>,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// Asks for the operating system's name of the user, which can mean asking a directory server.
    pub(crate) user: fn() -> Option<String>,
    /// Where servers on this machine put their Unix sockets.
    pub(crate) socket_directories: Vec<PathBuf>,
}

impl Environment {
    /// The environment of this process.
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

    /// A variable that is set and not empty.
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

/// Debian's choice, then everybody else's.
fn socket_directories() -> Vec<PathBuf> {
    if cfg!(unix) { ["/var/run/postgresql", "/tmp"].map(PathBuf::from).to_vec() } else { Vec::new() }
}
