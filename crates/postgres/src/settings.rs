//! The settings of a connection: libpq's, from the URL, keywords, a service file and the environment.

mod encryption;
mod environment;
mod hosts;
mod keys;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, PasswordSource, Result, Target};
use longshore_source::settings::Values;
use longshore_wire::Keepalive;

pub(crate) use encryption::{Encryption, Mode};
pub(crate) use environment::Environment;
use environment::{Login, Passfile, service_settings};
pub(crate) use hosts::{Host, Place};
use keys::KEYS;

/// How the authentication is tied to the TLS connection (`channel_binding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingMode {
    Disable,
    Prefer,
    Require,
}

/// The role that the server must be (`target_session_attrs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

/// The ways to authenticate that `require_auth` allows or forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Methods {
    named: Vec<String>,
    /// Whether the named ones are the forbidden ones.
    forbidden: bool,
}

impl Methods {
    /// No restriction.
    #[cfg(test)]
    pub(crate) const ANY: Self = Self { named: Vec::new(), forbidden: false };

    /// Nothing but these.
    #[cfg(test)]
    pub(crate) fn only(named: &[&str]) -> Self {
        Self { named: named.iter().map(|name| (*name).to_owned()).collect(), forbidden: false }
    }

    pub(crate) fn allow(&self, method: &str) -> bool {
        self.named.is_empty() || self.named.iter().any(|name| name == method) != self.forbidden
    }
}

/// Everything about a connection. `Debug` shows no secret.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The hosts to try, in order; never empty.
    pub(crate) hosts: Vec<Host>,
    pub(crate) user: String,
    pub(crate) database: String,
    /// The password for every host; without it, each host's own.
    pub(crate) password: Option<Arc<dyn PasswordSource>>,
    /// Why the password file does not count, if it is there and does not.
    pub(crate) complaint: Option<String>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) application_name: String,
    pub(crate) options: Option<String>,
    pub(crate) time_zone: Option<String>,
    pub(crate) keepalive: Keepalive,
    pub(crate) encryption: Encryption,
    pub(crate) channel_binding: BindingMode,
    pub(crate) methods: Methods,
    pub(crate) role: Role,
    /// Whether the hosts are tried in a random order.
    pub(crate) shuffle: bool,
}

impl Settings {
    /// The settings of `target`; what it leaves open comes from `environment`.
    pub(crate) fn resolve(target: &Target, environment: &Environment) -> Result<Self> {
        let values = gather(target, environment)?;
        check_fixed(&values)?;
        let user = user(&values, environment)?;
        let database = values.text("dbname").unwrap_or(&user).to_owned();
        let mut hosts = hosts::hosts(&values, default_port(target.scheme()), environment)?;
        let password = values.password(target);
        let passfile = match password {
            Some(_) => Passfile::Absent,
            None => Passfile::read(passfile_path(&values, environment).as_deref()),
        };
        for host in &mut hosts {
            let (name, port) = (host.login_name(environment), host.port);
            host.password = passfile.find(&Login { host: &name, port, database: &database, user: &user });
        }
        Ok(Self {
            hosts,
            database,
            password,
            complaint: passfile.complaint(),
            connect_timeout: values.seconds("connect_timeout")?,
            application_name: values
                .text("application_name")
                .or(values.text("fallback_application_name"))
                .unwrap_or("longshore")
                .to_owned(),
            options: values.text("options").map(str::to_owned),
            time_zone: environment.get("PGTZ").map(str::to_owned),
            keepalive: keepalive(&values)?,
            encryption: encryption::encryption(&values, environment)?,
            channel_binding: channel_binding(&values)?,
            methods: methods(values.text("require_auth").unwrap_or_default())?,
            role: role(&values)?,
            shuffle: values
                .choice("load_balance_hosts", &[("disable", false), ("random", true)])?
                .unwrap_or(false),
            user,
        })
    }
}

/// Layers everything that says something: keywords over the URL over a service file over the environment.
fn gather(target: &Target, environment: &Environment) -> Result<Values> {
    let mut values = Values::of(&KEYS, target, "dbname")?;
    let asked = |values: &Values, name: &str, variable: &str| {
        values.text(name).or_else(|| environment.get(variable)).map(str::to_owned)
    };
    if let Some(service) = asked(&values, "service", "PGSERVICE") {
        let file = asked(&values, "servicefile", "PGSERVICEFILE");
        for (name, value) in service_settings(&service, file.as_deref(), environment)? {
            values.set(&name, &value)?;
        }
    }
    for key in KEYS.all {
        let Some((variable, value)) = key.variable.and_then(|name| Some((name, environment.get(name)?)))
        else {
            continue;
        };
        values
            .set(key.name, value)
            .map_err(|error| error.within(format!("the environment variable {variable}")))?;
    }
    Ok(values)
}

/// Refuses what Longshore cannot do otherwise than in one way.
fn check_fixed(values: &Values) -> Result<()> {
    let encoding = values.text("client_encoding").unwrap_or("auto").to_ascii_lowercase();
    if !matches!(encoding.as_str(), "auto" | "utf8" | "utf-8" | "unicode") {
        return Err(not_supported("a client_encoding other than UTF8")
            .with_hint("leave it out: the server converts its texts, and all values arrive as Unicode"));
    }
    let gss = values.choice("gssencmode", &[("disable", false), ("prefer", false), ("require", true)])?;
    if gss == Some(true) {
        return Err(not_supported("gssencmode=require").with_hint("encrypt with TLS: sslmode=verify-full"));
    }
    let versions = [("3.0", false), ("3.2", true), ("latest", true)];
    if values.choice("min_protocol_version", &versions)? == Some(true) {
        return Err(not_supported("a min_protocol_version above 3.0").with_hint("leave it out"));
    }
    values.choice("max_protocol_version", &versions)?;
    Ok(())
}

fn not_supported(what: &str) -> Error {
    Error::not_supported(format!("{what} is not supported"))
}

fn user(values: &Values, environment: &Environment) -> Result<String> {
    values.text("user").map(str::to_owned).or_else(environment.user).ok_or_else(|| {
        Error::interface("the connection has no user, and the operating system names none")
            .with_hint("write it as postgresql://user@host/database, or set PGUSER")
    })
}

/// The port that a wire-compatible database has by its own custom.
fn default_port(scheme: &str) -> u16 {
    match scheme {
        "redshift" => 5439,
        "cockroachdb" => 26257,
        _ => 5432,
    }
}

fn passfile_path(values: &Values, environment: &Environment) -> Option<PathBuf> {
    values.text("passfile").map(PathBuf::from).or_else(|| environment.at_home(".pgpass"))
}

fn keepalive(values: &Values) -> Result<Keepalive> {
    let count = values.number("keepalives_count")?.filter(|count| *count > 0);
    Ok(Keepalive {
        enabled: values.number("keepalives")? != Some(0),
        idle: values.seconds("keepalives_idle")?,
        interval: values.seconds("keepalives_interval")?,
        count: count.and_then(|count| u32::try_from(count).ok()),
        user_timeout: values.milliseconds("tcp_user_timeout")?,
    })
}

fn channel_binding(values: &Values) -> Result<BindingMode> {
    let choices = [
        ("disable", BindingMode::Disable),
        ("prefer", BindingMode::Prefer),
        ("require", BindingMode::Require),
    ];
    Ok(values.choice("channel_binding", &choices)?.unwrap_or(BindingMode::Prefer))
}

fn role(values: &Values) -> Result<Role> {
    let choices = [
        ("any", Role::Any),
        ("read-write", Role::ReadWrite),
        ("read-only", Role::ReadOnly),
        ("primary", Role::Primary),
        ("standby", Role::Standby),
        ("prefer-standby", Role::PreferStandby),
    ];
    Ok(values.choice("target_session_attrs", &choices)?.unwrap_or(Role::Any))
}

/// Takes `require_auth` apart: methods that must be used, or with `!` before each, methods that must not.
fn methods(list: &str) -> Result<Methods> {
    const KNOWN: [&str; 7] = ["password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"];
    let wrong = |what: &str| {
        Error::interface(format!("the connection setting require_auth {what}"))
            .with_hint(format!("list some of {} by commas, or each with ! before it", KNOWN.join(", ")))
    };
    let words: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let negated = words.iter().filter(|name| name.starts_with('!')).count();
    if negated != 0 && negated != words.len() {
        return Err(wrong("mixes methods with and without !"));
    }
    let named: Vec<String> = words.iter().map(|name| name.trim_start_matches('!').to_owned()).collect();
    if !named.iter().all(|name| KNOWN.contains(&name.as_str())) {
        return Err(wrong("names an unknown method"));
    }
    Ok(Methods { forbidden: negated != 0, named })
}

#[cfg(test)]
mod tests;
