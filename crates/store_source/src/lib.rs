//! A store as a source without Python: scans, ingestion, transactions, versions and a catalogue.
//!
//! In Python, the SQL of a store is the engine's of `longshore.sources`. Here, a statement is one of a few that need no engine
//! (`statement.rs`), or the caller names an engine's library (`engine`).

mod catalogue;
mod conform;
mod engine;
mod rows;
mod session;
mod settings;
mod sink;
mod statement;

use longshore_core::{Deadline, Driver, Result, Session, SourceOption, Target};

use crate::session::StoreSession;
use crate::settings::Settings;

/// A store in a directory of this machine.
#[derive(Debug)]
pub struct StoreDriver;

impl Driver for StoreDriver {
    fn schemes(&self) -> Vec<&str> {
        vec!["store"]
    }

    fn options(&self) -> Vec<SourceOption> {
        longshore_store::options()
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(StoreSession::open(Settings::of(target)?, deadline)?))
    }
}
