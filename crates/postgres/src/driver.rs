//! PostgreSQL's entry in the registry.

use longshore_core::{Deadline, Driver, Result, Session, Target};

use crate::session::PostgresSession;

/// PostgreSQL, and the servers that speak its wire.
#[derive(Debug)]
pub struct Postgres;

impl Driver for Postgres {
    fn schemes(&self) -> Vec<&str> {
        vec!["postgresql", "postgres", "redshift", "cockroachdb"]
    }

    fn database<'a>(&'a self, scheme: &'a str) -> &'a str {
        match scheme {
            "redshift" => "Amazon Redshift",
            "cockroachdb" => "CockroachDB",
            _ => "PostgreSQL",
        }
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(PostgresSession::open(target, deadline)?))
    }
}
