//! Which servers a connection may go to.

use std::path::PathBuf;

use longshore_core::{Error, Result, Secret};
use longshore_source::settings::{Values, port};
use longshore_wire::peer_name;

use super::environment::Environment;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host name or an address.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// One of the servers to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// The name that the server's certificate has to be for.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) port: u16,
    /// The password file's password for this host.
    pub(crate) password: Option<Secret>,
}

impl Host {
    fn new(name: &str, address: &str, port: u16, environment: &Environment) -> Result<Self> {
        let name = match (name, address) {
            ("", "") => default_name(port, environment),
            ("", address) => address.to_owned(),
            (name, _) => name.to_owned(),
        };
        let place = if !address.is_empty() {
            check_address(address)?;
            Place::Tcp(address.to_owned())
        } else if name.starts_with('/') {
            Place::Unix(socket_path(&name, port))
        } else if name.starts_with('@') {
            return Err(Error::interface("sockets in the abstract name space are not supported")
                .with_hint("name the directory of the server's Unix socket, or a host"));
        } else {
            Place::Tcp(name.clone())
        };
        Ok(Self { name, place, port, password: None })
    }

    /// The name that lines of the password file are for.
    pub(crate) fn login_name(&self, environment: &Environment) -> String {
        let is_default =
            environment.socket_directories.iter().any(|path| path.as_os_str() == self.name.as_str());
        if is_default { "localhost".into() } else { self.name.clone() }
    }

    /// The server as errors name it.
    pub(crate) fn peer(&self) -> String {
        match &self.place {
            Place::Unix(path) => path.display().to_string(),
            Place::Tcp(host) => peer_name(host, self.port),
        }
    }
}

/// The hosts that the settings list, each with its port.
pub(crate) fn hosts(values: &Values, default_port: u16, environment: &Environment) -> Result<Vec<Host>> {
    let names = list(values, "host");
    let addresses = list(values, "hostaddr");
    let ports = list(values, "port");
    let count = names.len().max(addresses.len()).max(1);
    if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
        return Err(mismatch("host", names.len(), "hostaddr", addresses.len()));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(mismatch("port", ports.len(), "host", count));
    }
    let at = |list: &[String], index: usize| list.get(index).cloned().unwrap_or_default();
    (0..count)
        .map(|index| {
            let text = at(&ports, if ports.len() == 1 { 0 } else { index });
            let port = if text.is_empty() { default_port } else { port(&text)? };
            Host::new(&at(&names, index), &at(&addresses, index), port, environment)
        })
        .collect()
}

fn list(values: &Values, name: &str) -> Vec<String> {
    let Some(text) = values.text(name) else { return Vec::new() };
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

fn mismatch(a: &str, m: usize, b: &str, n: usize) -> Error {
    Error::interface(format!("the connection settings list {m} of {a} but {n} of {b}"))
        .with_hint("list as many of each, separated by commas")
}

fn check_address(text: &str) -> Result<()> {
    // An IPv6 address may name its interface behind a percent sign.
    let bare = text.split_once('%').map_or(text, |(address, _)| address);
    bare.parse::<std::net::IpAddr>().map(drop).map_err(|_| {
        Error::interface(format!("hostaddr is not an IP address: {text:?}"))
            .with_hint("give a name as host instead")
    })
}

/// The directory of a server's socket on this machine if there is one, else this machine's name for itself.
fn default_name(port: u16, environment: &Environment) -> String {
    let directories = environment.socket_directories.iter().filter_map(|directory| directory.to_str());
    let mut there = directories.filter(|directory| socket_path(directory, port).exists());
    there.next().unwrap_or("localhost").to_owned()
}

fn socket_path(directory: &str, port: u16) -> PathBuf {
    PathBuf::from(directory).join(format!(".s.PGSQL.{port}"))
}
