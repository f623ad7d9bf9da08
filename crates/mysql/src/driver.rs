//! The entry of MySQL and MariaDB in the registry.

use longshore_core::{Driver, Result, Session, Target, Watch};

use crate::session::MySqlSession;

/// MySQL, MariaDB, and the servers that speak their wire.
#[derive(Debug)]
pub struct MySql;

impl Driver for MySql {
    fn schemes(&self) -> Vec<&str> {
        vec!["mysql", "mariadb"]
    }

    fn connect(&self, target: &Target, watch: &Watch) -> Result<Box<dyn Session>> {
        Ok(Box::new(MySqlSession::open(target, watch)?))
    }
}
