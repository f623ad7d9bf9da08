//! Several hosts: which is tried when, and what is said when none will do.

use std::hash::{BuildHasher, RandomState};

use longshore_core::{Error, Kind, Result, Watch};

use super::{Attempt, Failure, Link};
use crate::settings::{Host, Role, Settings};

/// Tries the hosts in order until one will do.
pub(super) fn open_any(settings: &Settings, watch: &Watch) -> Result<Link> {
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.shuffle {
        shuffle(&mut hosts);
    }
    let mut round = Round { settings, watch, reasons: Vec::new() };
    let mut others = Vec::new();
    for host in &hosts {
        match round.visit(host, settings.role)? {
            Visit::Open(link) => return Ok(*link),
            Visit::Mismatched => others.push(*host),
            Visit::Failed => {}
        }
    }
    if settings.role == Role::PreferStandby {
        // No standby: the next best is any of those that work.
        for host in others {
            if let Visit::Open(link) = round.visit(host, Role::Any)? {
                return Ok(*link);
            }
        }
    }
    Err(round.failed())
}

enum Visit {
    Open(Box<Link>),
    Mismatched,
    Failed,
}

struct Round<'a> {
    settings: &'a Settings,
    watch: &'a Watch,
    /// Why each host so far would not do.
    reasons: Vec<Error>,
}

impl Round<'_> {
    /// Tries one host; an error means that no other one is worth a try.
    fn visit(&mut self, host: &Host, role: Role) -> Result<Visit> {
        let settings = self.settings;
        let peer = host.peer();
        let watch = match settings.connect_timeout {
            Some(timeout) => self.watch.at_most(timeout),
            None => self.watch.clone(),
        };
        let failure = match (Attempt { settings, host, role, watch: &watch }).run() {
            Ok(link) => return Ok(Visit::Open(Box::new(link))),
            Err(failure) => failure,
        };
        // The caller's own deadline and wish to stop are more than a reason to try the next host.
        self.watch.check().map_err(|error| error.within(format!("connecting to {peer}")))?;
        let failure = match failure {
            Failure::Refused(error) => Failure::refused_for_good(error),
            other => other,
        };
        let visit = match &failure {
            Failure::Final(_) => return Err(failure.error()),
            Failure::Mismatched(_) => Visit::Mismatched,
            _ => Visit::Failed,
        };
        let error = failure.error();
        // What the server itself says stays as it is, unless one has to know which server.
        let is_clear =
            error.message().contains(&peer) || (settings.hosts.len() == 1 && error.kind() != Kind::Timeout);
        self.reasons.push(if is_clear { error } else { error.within(format!("connecting to {peer}")) });
        Ok(visit)
    }

    /// Every reason; kind, state and hint are those of the last.
    fn failed(mut self) -> Error {
        let Some(last) = self.reasons.pop() else {
            return Error::internal("there was no host to connect to");
        };
        if self.reasons.is_empty() {
            return last;
        }
        let kind = last.kind();
        let (state, hint) = (last.sqlstate().map(str::to_owned), last.hint().map(str::to_owned));
        self.reasons.push(last);
        let told: Vec<&str> = self.reasons.iter().map(Error::message).collect();
        let mut error = Error::new(kind, format!("no host accepted the connection: {}", told.join("; ")));
        if let Some(state) = state {
            error = error.with_sqlstate(state);
        }
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        error
    }
}

/// A random order (Fisher and Yates). The standard library's hasher has random keys of its own.
fn shuffle(hosts: &mut [&Host]) {
    let random = RandomState::new();
    for last in (1..hosts.len()).rev() {
        let other = random.hash_one(last) % (last as u64 + 1);
        hosts.swap(last, usize::try_from(other).unwrap_or(last));
    }
}
