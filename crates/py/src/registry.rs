//! The drivers: one line each.

use longshore_core::{Driver, Error, Result, Target};

static DRIVERS: &[&dyn Driver] =
    &[&longshore_postgres::Postgres, &longshore_mysql::MySql, &longshore_sqlite::Sqlite];

/// The driver that `target`'s scheme names.
pub(crate) fn driver(target: &Target) -> Result<&'static dyn Driver> {
    let found = DRIVERS.iter().find(|driver| driver.schemes().contains(&target.scheme()));
    found.copied().or_else(|| longshore_arrow_source::driver(target.scheme())).ok_or_else(|| {
        Error::interface(format!("no driver for URLs that start with {}://", target.scheme()))
            .with_hint(format!("known are {}", schemes().join(", ")))
    })
}

/// Every scheme that names a driver.
pub(crate) fn schemes() -> Vec<&'static str> {
    DRIVERS.iter().flat_map(|driver| driver.schemes()).copied().collect()
}
