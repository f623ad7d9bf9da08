//! SQLite's entry in the registry.

use longshore_core::{Deadline, Driver, Result, Session, SourceOption, Target};
use longshore_source::Nested;

use crate::session::SqliteSession;
use crate::settings::Settings;

/// SQLite.
#[derive(Debug)]
pub struct Sqlite;

impl Driver for Sqlite {
    fn schemes(&self) -> Vec<&str> {
        vec!["sqlite"]
    }

    fn database<'a>(&'a self, _scheme: &'a str) -> &'a str {
        "SQLite"
    }

    fn options(&self) -> Vec<SourceOption> {
        let sentence =
            "SQLite's columns: of the types that they are declared with, or of what is stored in them alone.";
        vec![Nested::option(), SourceOption::new("sqlite_types", &["declared", "stored"], sentence)]
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(SqliteSession::open(Settings::of(target)?, deadline)?))
    }

    // A file has no other clients to spare, and its rowids' order is the order of a scan.
    fn splits_automatically(&self) -> bool {
        true
    }
}
