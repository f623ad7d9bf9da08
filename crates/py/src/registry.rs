//! The drivers: one line each.

use std::collections::HashSet;
use std::sync::Arc;

use longshore_core::{Driver, Error, Result, SourceOption, Target};

fn drivers() -> [Arc<dyn Driver>; 3] {
    [
        Arc::new(longshore_postgres::Postgres),
        Arc::new(longshore_mysql::MySql),
        Arc::new(longshore_sqlite::Sqlite),
    ]
}

/// The driver that `target`'s scheme names.
pub(crate) fn driver(target: &Target) -> Result<Arc<dyn Driver>> {
    let found = drivers().into_iter().find(|driver| driver.schemes().contains(&target.scheme()));
    found.or_else(|| longshore_arrow_source::driver(target.scheme())).ok_or_else(|| {
        Error::interface(format!("no driver for URLs that start with {}://", target.scheme()))
            .with_hint(format!("known are {}", schemes().join(", ")))
    })
}

/// Every scheme that names a driver.
pub(crate) fn schemes() -> Vec<String> {
    let names = |driver: Arc<dyn Driver>| driver.schemes().into_iter().map(str::to_owned).collect::<Vec<_>>();
    drivers().into_iter().flat_map(names).collect()
}

/// Every key of `options=` that is a source's own, once.
pub(crate) fn options() -> Vec<SourceOption> {
    let mut options: Vec<SourceOption> = drivers().iter().flat_map(|driver| driver.options()).collect();
    let mut names = HashSet::new();
    options.retain(|option| names.insert(option.name.clone()));
    options
}
