//! The drivers that are Rust's: one line each. What Python adds is above it.

use std::collections::HashSet;
use std::sync::Arc;

use longshore_core::{Driver, SourceOption};

fn drivers() -> Vec<Arc<dyn Driver>> {
    vec![
        Arc::new(longshore_postgres::Postgres),
        Arc::new(longshore_mysql::MySql),
        #[cfg(feature = "mssql")]
        Arc::new(longshore_mssql::MsSql),
        Arc::new(longshore_sqlite::Sqlite),
        Arc::new(longshore_flight::Flight),
    ]
}

/// The driver that a URL's scheme names.
#[must_use]
pub fn driver(scheme: &str) -> Option<Arc<dyn Driver>> {
    drivers().into_iter().find(|driver| driver.schemes().contains(&scheme))
}

/// Every scheme that names a driver, and the name of its database.
#[must_use]
pub fn schemes() -> Vec<(String, String)> {
    let named = |driver: &Arc<dyn Driver>| {
        let named = |scheme: &str| (scheme.to_owned(), driver.database(scheme).to_owned());
        driver.schemes().into_iter().map(named).collect::<Vec<_>>()
    };
    drivers().iter().flat_map(named).collect()
}

/// Every key of `options=` that is a source's own, once.
#[must_use]
pub fn options() -> Vec<SourceOption> {
    let mut options: Vec<SourceOption> = drivers().iter().flat_map(|driver| driver.options()).collect();
    let mut names = HashSet::new();
    options.retain(|option| names.insert(option.name.clone()));
    options
}
