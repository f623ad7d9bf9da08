//! A table beside the target, which other sessions see: its name, its owner, and what a crash has left of one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use longshore_core::{Error, Result};

use super::replace::hash;
use super::target::Name;
use crate::connection::Connection;
use crate::dialect::literal;

/// Characters of the target's name that the table's own has room for.
const ROOM: usize = 45;

/// A table that has the owner's mark: the name alone could be a user's own table's. The owner has a lock of that name, which
/// goes with its session.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    pub(super) name: Name,
    lock: String,
    mark: String,
}

impl Beside {
    /// A name that no other table has. The session is from here on the table's owner.
    pub(super) fn claim(connection: &mut Connection, target: &Name) -> Result<Self> {
        let number = RandomState::new().build_hasher().finish() >> 32;
        let name = target.beside(format!("{}{number:08x}", prefix(target)));
        let beside = Self { lock: lock(&name), mark: mark(target), name };
        if is_locked(connection, &beside.lock)? {
            return Ok(beside);
        }
        Err(Error::operational("another session has a lock of the same name").with_hint("try again"))
    }

    /// Removes the tables beside `target` whose owner's session has ended: what a crash has left. One that somebody still
    /// uses stays.
    pub(super) fn clear(connection: &mut Connection, target: &Name) -> Result<()> {
        for name in left(connection, target)? {
            let lock = lock(&name);
            if !is_locked(connection, &lock)? {
                continue;
            }
            let dropped = drop_soon(connection, &name);
            connection.run(&format!("DO RELEASE_LOCK({})", literal(&lock)))?;
            // One that is in use, or another user's, is no reason not to write.
            if dropped.is_err() && !connection.is_usable() {
                return dropped;
            }
        }
        Ok(())
    }

    /// What follows the definition of the table.
    pub(super) fn comment(&self) -> String {
        format!(" COMMENT={}", literal(&self.mark))
    }

    /// Takes the mark from a table that stays.
    pub(super) fn unmark(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("ALTER TABLE {} COMMENT=''", self.name.quoted()))
    }

    /// The statement by which any session removes the table.
    pub(super) fn undo(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name.quoted())
    }

    /// Removes the table. The lock goes with the session in any case.
    pub(super) fn drop(&self, connection: &mut Connection) -> Result<()> {
        let dropped = drop_soon(connection, &self.name);
        let _ = connection.run(&format!("DO RELEASE_LOCK({})", literal(&self.lock)));
        dropped
    }
}

/// The tables that have the mark. Only those with such a name are opened to be asked for it.
fn left(connection: &mut Connection, target: &Name) -> Result<Vec<Name>> {
    let prefix = prefix(target);
    let named = connection.rows(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {} AND LEFT(table_name, {}) = {}",
        literal(&target.database),
        prefix.chars().count(),
        literal(&prefix)
    ))?;
    let mut left = Vec::new();
    for table in named.into_iter().flatten().flatten() {
        let name = target.beside(table);
        let comment = connection.rows(&format!(
            "SELECT table_comment FROM information_schema.tables WHERE {}",
            name.is("table_schema", "table_name")
        ))?;
        if comment.into_iter().flatten().flatten().any(|comment| comment == mark(target)) {
            left.push(name);
        }
    }
    Ok(left)
}

/// Drops a table, unless a session whose end the server has not noticed yet still writes it.
fn drop_soon(connection: &mut Connection, name: &Name) -> Result<()> {
    connection.run("SET @longshore_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 1")?;
    let dropped = connection.run(&format!("DROP TABLE IF EXISTS {}", name.quoted()));
    connection.run("SET SESSION lock_wait_timeout = @longshore_wait")?;
    dropped
}

/// Tells whether the lock is the session's now.
fn is_locked(connection: &mut Connection, lock: &str) -> Result<bool> {
    let rows = connection.rows(&format!("SELECT GET_LOCK({}, 0)", literal(lock)))?;
    Ok(rows.into_iter().flatten().next().flatten().as_deref() == Some("1"))
}

fn lock(name: &Name) -> String {
    format!("longshore_{:016x}", hash(&name.shown()))
}

/// In ASCII, as a comment has to be: what connects the table with its target.
fn mark(target: &Name) -> String {
    format!("longshore: rows on their way into another table ({:016x})", hash(&target.shown()))
}

/// What the names of all tables beside `target` begin with.
fn prefix(target: &Name) -> String {
    let start: String = target.table.chars().take(ROOM).collect();
    format!("longshore_{start}_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room() {
        for table in ["t".to_owned(), "é".repeat(64)] {
            let target = Name { database: "d".into(), table };
            assert!(prefix(&target).chars().count() + 8 <= 64, "{target:?}");
        }
    }
}
