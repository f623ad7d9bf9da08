//! The declared types of a query's columns on a connection that is not ours: the same tables, empty, in memory.

use longshore_core::{Query, Result, Target, Watch};

use crate::dialect::quoted_name;
use crate::plan::Facts;
use crate::session::SqliteSession;
use crate::settings::Settings;

/// One database of a connection: `main`, `temp`, or one that is attached.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// The CREATE statements of its tables and views, in their order.
    pub statements: Vec<String>,
}

/// What is known of the columns of `query`, by preparing it where the same tables are, without their rows. Fails where
/// something is not there, such as a function of the connection's own.
pub fn replica(databases: &[Database], query: &str) -> Result<Vec<Facts>> {
    let target = Target::from_url("sqlite://")?;
    let mut session = SqliteSession::open(Settings::of(&target)?, &Watch::never())?;
    // Attached ones first: a view of another database may name them.
    for Database { name, .. } in databases.iter().filter(|database| !is_own(&database.name)) {
        session.tell(&format!("ATTACH ':memory:' AS {}", quoted_name(name)))?;
    }
    for Database { name, statements } in databases {
        for statement in statements {
            // A virtual table of a module that is not here leaves a hole, which only a query that needs it falls into.
            if let Some(statement) = within(statement, name) {
                let _ = session.tell(&statement);
            }
        }
    }
    let (statement, _) = session.connection.prepare(&Query::new(query).text)?;
    match statement {
        Some(statement) => session.facts(&statement, query),
        None => Ok(Vec::new()),
    }
}

fn is_own(name: &str) -> bool {
    matches!(name, "main" | "temp")
}

/// The CREATE statement in the database `name`: `sqlite_schema` keeps it as `CREATE TABLE name ...`, whatever database it is
/// in.
fn within(statement: &str, name: &str) -> Option<String> {
    let kinds = ["CREATE TABLE ", "CREATE VIEW ", "CREATE VIRTUAL TABLE "];
    let kind = kinds.into_iter().find(|kind| statement.starts_with(kind))?;
    Some(format!("{kind}{}.{}", quoted_name(name), &statement[kind.len()..]))
}
