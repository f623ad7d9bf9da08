//! The savepoint around what may fail, or must leave nothing behind.

use longshore_core::Result;

use crate::session::PostgresSession;

pub(super) const SET: &str = "SAVEPOINT longshore";

pub(super) const RELEASE: &str = "RELEASE SAVEPOINT longshore";

pub(super) const RETURN: &str = "ROLLBACK TO SAVEPOINT longshore";

/// Undoes what came after the savepoint, and forgets it.
pub(super) fn undo(session: &mut PostgresSession) -> Result<()> {
    session.connection.simple(&format!("{RETURN}; {RELEASE}"))
}
