//! A database: what to connect to, by its URL.

use std::collections::BTreeMap;
use std::sync::Arc;

use adbc_core::error::{Error, Result, Status};
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use longshore_core::{Direct, Driver as CoreDriver, Target};
use longshore_registry::{driver, schemes};
use longshore_store_source::StoreDriver;

use crate::connection::Connection;
use crate::error::{adbc_error, catch_panic, not_supported, refusal};
use crate::options::{self, optionable, text, untold};

/// The options that every database has, by the names that the sources have for them.
const STANDARD: [(&str, &str); 2] = [("username", "user"), ("password", "password")];

/// The driver.
#[derive(Default)]
pub(crate) struct Driver;

impl adbc_core::Driver for Driver {
    type DatabaseType = Database;

    fn new_database(&mut self) -> Result<Database> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<Database> {
        let opts = opts.into_iter().map(|(key, value)| {
            let value = text(key.as_ref(), &value)?;
            Ok((key.as_ref().to_owned(), value))
        });
        let opts = opts.collect::<Result<BTreeMap<String, String>>>()?;
        catch_panic(|| Database::new(opts))
    }
}

/// A database, whose options are fixed once it is made: a source checks them when it connects.
pub(crate) struct Database {
    source: Arc<Direct>,
    scheme: String,
}

impl Database {
    fn new(mut opts: BTreeMap<String, String>) -> Result<Self> {
        let uri = opts.remove("uri").ok_or_else(|| {
            refusal(
                Status::InvalidState,
                "the option \"uri\" is missing: postgresql://user@host/database, for example",
            )
        })?;
        let mut target = Target::from_url(&uri).map_err(adbc_error)?;
        for (standard, own) in STANDARD {
            if let Some(value) = opts.remove(standard) {
                target.keywords.insert(own.into(), value);
            }
        }
        target.keywords.extend(opts);
        let scheme = target.scheme().to_owned();
        let driver = known_driver(&scheme).ok_or_else(|| absent(&scheme))?;
        Ok(Self { source: Direct::new(driver, target), scheme })
    }

    #[allow(clippy::unused_self)] // as its macro calls it
    fn set(&mut self, key: &str, _value: &OptionValue) -> Result<()> {
        Err(refusal(
            Status::InvalidState,
            format!("the option {key:?} is set before the database is initialised"),
        ))
    }

    /// No more of the URL than its scheme: it may hold a password.
    fn option(&self, key: &str) -> Result<OptionValue> {
        if key == "uri" { Ok(format!("{}://***", self.scheme).into()) } else { Err(untold(key)) }
    }
}

/// A driver of the registry, or a store, whose driver in Python is Python's own.
fn known_driver(scheme: &str) -> Option<Arc<dyn CoreDriver>> {
    let store =
        || StoreDriver.schemes().contains(&scheme).then(|| Arc::new(StoreDriver) as Arc<dyn CoreDriver>);
    driver(scheme).or_else(store)
}

fn absent(scheme: &str) -> Error {
    let built_in = schemes().into_iter().map(|(scheme, _)| scheme);
    let known = built_in.chain(StoreDriver.schemes().into_iter().map(str::to_owned));
    not_supported(format!(
        "no driver for URLs that start with {scheme}:// in this library, which has {}; sources that live in Python, and SQL \
         Server, whose client brings OpenSSL, are longshore.connect's",
        known.collect::<Vec<_>>().join(", ")
    ))
}

optionable!(Database, OptionDatabase);

impl adbc_core::Database for Database {
    type ConnectionType = Connection;

    fn new_connection(&self) -> Result<Connection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<Connection> {
        let opts: Vec<_> = opts.into_iter().collect();
        catch_panic(|| {
            let mut connection = Connection::open(self.source.clone())?;
            for (key, value) in &opts {
                connection.set(key.as_ref(), value)?;
            }
            Ok(connection)
        })
    }
}
