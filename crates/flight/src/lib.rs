//! Flight SQL: any database behind a server of Apache Arrow's protocol, as a source.
//!
//! Results are Arrow from the server on. [`link`] is one HTTP/2 connection, driven by a thread of its own; [`client`] makes
//! the calls of Flight over it, with what proves who calls; [`messages`] takes a stream apart; [`results`] are the rows of all
//! endpoints.

mod binding;
mod catalogue;
mod client;
mod credentials;
mod encode;
mod error;
mod link;
mod messages;
mod options;
mod parts;
mod results;
mod session;
mod settings;
mod sink;
mod statement;

use longshore_core::{Deadline, Driver, Result, Session, Target};

use crate::session::FlightSession;
use crate::settings::Settings;

/// Servers that speak Flight SQL.
#[derive(Debug)]
pub struct Flight;

impl Driver for Flight {
    fn schemes(&self) -> Vec<&str> {
        settings::SCHEMES.to_vec()
    }

    fn database<'a>(&'a self, scheme: &'a str) -> &'a str {
        if scheme == "grpc+tls" { "Flight SQL, encrypted" } else { "Flight SQL" }
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(FlightSession::open(Settings::of(target)?, deadline)?))
    }
}
