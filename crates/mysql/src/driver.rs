//! The entry of MySQL and MariaDB in the registry.

use longshore_core::{Deadline, Driver, Result, Session, SourceOption, Target};

use crate::options::own_options;
use crate::session::MySqlSession;

/// MySQL, MariaDB, and the servers that speak their wire.
#[derive(Debug)]
pub struct MySql;

impl Driver for MySql {
    fn schemes(&self) -> Vec<&str> {
        vec!["mysql", "mariadb"]
    }

    fn database<'a>(&'a self, scheme: &'a str) -> &'a str {
        if scheme == "mariadb" { "MariaDB" } else { "MySQL" }
    }

    fn options(&self) -> Vec<SourceOption> {
        own_options()
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(MySqlSession::open(target, deadline)?))
    }
}
