//! The entry of SQL Server in the registry.

use longshore_core::{Deadline, Driver, Result, Session, SourceOption, Target};

use crate::session::MsSqlSession;

/// SQL Server and Azure SQL.
#[derive(Debug)]
pub struct MsSql;

impl Driver for MsSql {
    fn schemes(&self) -> Vec<&str> {
        vec!["mssql", "sqlserver"]
    }

    fn database<'a>(&'a self, _scheme: &'a str) -> &'a str {
        "SQL Server, Azure SQL"
    }

    fn options(&self) -> Vec<SourceOption> {
        vec![SourceOption::new(
            "lock",
            &["false", "true"],
            "Whether MySQL and SQL Server may lock tables briefly, where connections cannot share a snapshot otherwise.",
        )]
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(MsSqlSession::open(target, deadline)?))
    }
}
