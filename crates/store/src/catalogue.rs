//! The catalogue: which versions there are, and which files each table has in each.
//!
//! The state of a version is the rows that have begun and have not ended: those begin with a version that it adds, and end with the
//! one that replaces them. Rows are never changed otherwise, so that a reader of a version needs no transaction of the catalogue.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::Schema;
use longshore_core::{Error, Result};
use rusqlite::types::FromSql;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};

use crate::chunk::{Chunk, ChunkFile, encoded_name};
use crate::copied::Copied;
use crate::store::Access;
use crate::table::Table;

/// The mark of the catalogue among other files of SQLite: "LNGS".
const APPLICATION: i32 = 0x4c4e_4753;
/// The format of everything in a store.
const FORMAT: i32 = 5;

/// The tables. An end that has not come is the greatest of all numbers, and indexes go by ends: no earlier version is looked at.
const SCHEMA: &str = "
CREATE TABLE version (id INTEGER PRIMARY KEY, at INTEGER NOT NULL);
INSERT INTO version VALUES (0, 0);
CREATE TABLE relation (
    id INTEGER NOT NULL, begins INTEGER NOT NULL, ends INTEGER NOT NULL DEFAULT 9223372036854775807, name TEXT NOT NULL COLLATE NOCASE,
    schema BLOB NOT NULL, key TEXT NOT NULL, definition TEXT, next_field INTEGER NOT NULL
);
CREATE INDEX relation_ends ON relation (ends, id);
CREATE INDEX relation_name ON relation (name, ends);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY, relation INTEGER NOT NULL, begins INTEGER NOT NULL, ends INTEGER NOT NULL DEFAULT 9223372036854775807,
    number INTEGER NOT NULL, place INTEGER NOT NULL, file TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL, encoded_bytes INTEGER, encoded_checksum INTEGER, statistics TEXT NOT NULL
);
CREATE INDEX chunk_ends ON chunk (relation, ends);
CREATE TABLE deletion (
    chunk INTEGER NOT NULL, begins INTEGER NOT NULL, ends INTEGER NOT NULL DEFAULT 9223372036854775807, rows BLOB NOT NULL,
    PRIMARY KEY (chunk, ends, begins)
);
CREATE TABLE change (
    version INTEGER NOT NULL, name TEXT NOT NULL COLLATE NOCASE, operation TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE INDEX change_name ON change (name, version);
";

/// The columns of `file_of`.
const FILE: &str = "file, rows, bytes, checksum, encoded_bytes, encoded_checksum, statistics";

/// The change that a version did to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The version.
    pub version: i64,
    /// When it was committed, in microseconds since 1970, UTC.
    pub at: i64,
    /// The table's name then.
    pub table: String,
    /// The operation: "create", "append", "delete", ...
    pub operation: String,
    /// How many rows it wrote or deleted.
    pub rows: u64,
}

/// A table before and after a transaction: `None` where there is none.
pub(crate) struct Changed {
    pub(crate) before: Option<Arc<Table>>,
    pub(crate) after: Option<Arc<Table>>,
}

/// The change that a transaction did to a table, for the list of versions.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) operation: &'static str,
    pub(crate) rows: u64,
}

/// The connection to it.
pub(crate) struct Catalogue {
    connection: Connection,
    /// The store that it is a copy of, for who may not write next to that.
    copied: Option<Copied>,
}

impl Catalogue {
    /// Opens the catalogue, or makes it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | match access {
                Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
                Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
                Access::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            };
        longshore_sqlite::install_locks();
        let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
        connection.busy_timeout(Duration::from_secs(60)).map_err(failure)?;
        let mut catalogue = Self { connection, copied: None };
        if access != Access::Read {
            catalogue.prepare(access)?;
        } else if needs_files(&catalogue.connection)
            && let Some((connection, copied)) = Copied::of(path)?
        {
            catalogue = Self { connection, copied: Some(copied) };
        }
        catalogue.check_format(path)?;
        Ok(catalogue)
    }

    /// Sees what others have committed since, which a copy does not have.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        if let Some(copied) = &self.copied
            && !copied.is_current()?
        {
            *self = Self::open(&copied.path, Access::Read)?;
        }
        Ok(())
    }

    /// Has the catalogue's commits reach the disk before they return, and makes its tables where they are missing.
    fn prepare(&self, access: Access) -> Result<()> {
        // To its end: the change of the mode is a commit, which may fail after the pragma's row.
        self.all("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        let mode: String = self.one("PRAGMA journal_mode", [])?;
        if mode != "wal" {
            return Err(Error::operational(format!(
                "the catalogue cannot have a write-ahead log, but {mode:?}"
            )));
        }
        let pragmas = "PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1";
        self.connection.execute_batch(pragmas).map_err(failure)?;
        if access != Access::Create {
            return Ok(());
        }
        let transaction = self.begin()?;
        if !transaction.table_exists(None, "version").map_err(failure)? {
            transaction.execute_batch(SCHEMA).map_err(failure)?;
            let marks = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}");
            transaction.execute_batch(&marks).map_err(failure)?;
        }
        transaction.commit().map_err(failure)
    }

    fn check_format(&self, path: &Path) -> Result<()> {
        if self.one::<i32>("PRAGMA application_id", [])? != APPLICATION {
            return Err(Error::operational(format!("{} is not the catalogue of a store", path.display())));
        }
        match self.one("PRAGMA user_version", [])? {
            FORMAT => Ok(()),
            format => Err(Error::operational(format!(
                "the store has format {format}; this Longshore knows format {FORMAT}"
            ))
            .with_hint("open it with the Longshore that has written it")),
        }
    }

    /// The versions that are kept, from the oldest to the newest.
    pub(crate) fn versions(&self) -> Result<RangeInclusive<i64>> {
        Ok(self.one("SELECT min(id) FROM version", [])?..=self.newest()?)
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Result<i64> {
        self.one("SELECT max(id) FROM version", [])
    }

    /// The version that was the newest at a time; `None` before the first.
    pub(crate) fn version_at(&self, at: i64) -> Result<Option<i64>> {
        self.one("SELECT max(id) FROM version WHERE at <= ?", [at])
    }

    /// The names of a version's tables.
    pub(crate) fn names(&self, version: i64) -> Result<Vec<String>> {
        self.all("SELECT name FROM relation WHERE begins <= ?1 AND ends > ?1", [version], |row| row.get(0))
    }

    /// The names of a version's files.
    pub(crate) fn names_of_files(&self, version: i64) -> Result<HashSet<String>> {
        let query = "SELECT file FROM chunk WHERE begins <= ?1 AND ends > ?1
             AND relation IN (SELECT id FROM relation WHERE begins <= ?1 AND ends > ?1)";
        let names: Vec<String> = self.all(query, [version], |row| row.get(0))?;
        Ok(names.into_iter().flat_map(|name| [encoded_name(&name), name]).collect())
    }

    /// The newest version that has changed what a name stands for.
    pub(crate) fn last_change(&self, name: &str) -> Result<i64> {
        self.one("SELECT coalesce(max(version), 0) FROM change WHERE name = ?", [name])
    }

    /// A version's table.
    pub(crate) fn table(&self, name: &str, version: i64) -> Result<Option<Table>> {
        let query = "SELECT id, name, definition, next_field, schema, key FROM relation
             WHERE name = ?1 AND begins <= ?2 AND ends > ?2";
        let found = self.connection.query_row(query, params![name, version], |row| {
            let (schema, key): (Vec<u8>, String) = (row.get(4)?, row.get(5)?);
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, schema, key))
        });
        let found = found.optional().map_err(failure)?;
        let Some((id, name, definition, next_field, schema, key)) = found else { return Ok(None) };
        let schema = try_schema_from_flatbuffer_bytes(&schema).map_err(|error| damage(&error))?;
        let key = serde_json::from_str(&key).map_err(|error| damage(&error))?;
        let chunks = self.chunks(id, version)?;
        Ok(Some(Table { id, name, schema: Arc::new(schema), key, definition, next_field, chunks }))
    }

    fn chunks(&self, relation: i64, version: i64) -> Result<Vec<Chunk>> {
        let query = format!(
            "SELECT {FILE}, id, number, place, (
                 SELECT CAST(group_concat(rows, '') AS BLOB) FROM deletion WHERE chunk = chunk.id AND begins <= ?2 AND ends > ?2)
             FROM chunk WHERE relation = ?1 AND begins <= ?2 AND ends > ?2 ORDER BY place"
        );
        self.all(&query, params![relation, version], |row| {
            let mut deleted = positions(&row.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default());
            deleted.sort_unstable();
            Ok(Chunk {
                id: row.get(7)?,
                number: row.get(8)?,
                order: row.get(9)?,
                file: Arc::new(file_of(row)?),
                deleted: deleted.into(),
            })
        })
    }

    /// The changes of a table, or of all, the oldest first.
    pub(crate) fn changes(&self, name: Option<&str>) -> Result<Vec<Change>> {
        let query =
            "SELECT version, at, name, operation, rows FROM change JOIN version ON version.id = version
             WHERE ?1 IS NULL OR name = ?1 ORDER BY version, change.rowid";
        self.all(query, [name], |row| {
            let (table, operation, rows) = (row.get(2)?, row.get(3)?, row.get::<_, i64>(4)?);
            Ok(Change { version: row.get(0)?, at: row.get(1)?, table, operation, rows: rows.cast_unsigned() })
        })
    }

    /// Makes a version of what a transaction that has seen version `seen` has changed, if no other has changed these tables meanwhile.
    pub(crate) fn commit(&self, seen: i64, changed: &[(&str, Changed)], done: &[Done]) -> Result<i64> {
        let transaction = self.begin()?;
        for (name, _) in changed {
            if self.last_change(name)? > seen {
                return Err(conflict(name));
            }
        }
        // Times grow with versions, whatever the clock does.
        let insert = "INSERT INTO version SELECT id + 1, max(?, at + 1) FROM version ORDER BY id DESC LIMIT 1 RETURNING id";
        let version = self.one(insert, [now()])?;
        let write = || {
            write_tables(&transaction, version, changed)?;
            for Done { name, operation, rows } in done {
                let values = params![version, name, operation, rows.cast_signed()];
                transaction.execute("INSERT INTO change VALUES (?, ?, ?, ?)", values)?;
            }
            Ok(())
        };
        write().map_err(failure)?;
        transaction.commit().map_err(failure)?;
        Ok(version)
    }

    /// Has a commit that failed be none: the log may hold it whole, though it is not synced. Another commit in its place does that.
    pub(crate) fn void_failed(&self) -> Result<()> {
        // A page that stays as it is would not be written.
        let change = |by| format!("UPDATE version SET at = at {by} WHERE id = (SELECT max(id) FROM version)");
        let commit = format!("BEGIN IMMEDIATE; {}; {}; COMMIT", change("+ 1"), change("- 1"));
        self.connection.execute_batch(&commit).map_err(failure)
    }

    /// Forgets what no version from `oldest` on has, nor one of `read`, which others read now.
    pub(crate) fn forget(&self, oldest: i64, read: &[i64]) -> Result<()> {
        let transaction = self.begin()?;
        let read = serde_json::to_string(read).map_err(|error| Error::internal(error.to_string()))?;
        for table in ["relation", "chunk", "deletion"] {
            let delete = format!(
                "DELETE FROM {table} WHERE ends <= ?1
                 AND NOT EXISTS (SELECT 1 FROM json_each(?2) WHERE value >= begins AND value < ends)"
            );
            transaction.execute(&delete, params![oldest, read]).map_err(failure)?;
        }
        let lists = "DELETE FROM deletion WHERE chunk NOT IN (SELECT id FROM chunk)";
        transaction.execute(lists, []).map_err(failure)?;
        transaction.execute("DELETE FROM version WHERE id < ?", [oldest]).map_err(failure)?;
        transaction.commit().map_err(failure)
    }

    /// The files of all versions.
    pub(crate) fn files(&self) -> Result<Vec<ChunkFile>> {
        self.all(&format!("SELECT {FILE} FROM chunk ORDER BY id"), [], file_of)
    }

    /// The damage that SQLite finds in the catalogue itself.
    pub(crate) fn check(&self) -> Result<Vec<String>> {
        let found: Vec<String> = self.all("PRAGMA integrity_check", [], |row| row.get(0))?;
        let damage = found.into_iter().filter(|text| text != "ok");
        Ok(damage.map(|text| format!("the catalogue: {text}")).collect())
    }

    fn begin(&self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(failure)
    }

    fn one<T: FromSql>(&self, query: &str, params: impl Params) -> Result<T> {
        self.connection.query_row(query, params, |row| row.get(0)).map_err(failure)
    }

    fn all<T>(
        &self,
        query: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare(query).map_err(failure)?;
        let rows = statement.query_map(params, read).map_err(failure)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failure)
    }
}

/// Whether SQLite wants to make files next to the catalogue, and must not.
fn needs_files(connection: &Connection) -> bool {
    let read = connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
    let code = read.err().and_then(|error| error.sqlite_error_code());
    matches!(code, Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen))
}

/// The file that a row's first columns tell of.
fn file_of(row: &Row<'_>) -> rusqlite::Result<ChunkFile> {
    let numbers = |one: i64, other: i64| (one.cast_unsigned(), other.cast_unsigned());
    let encoded =
        row.get::<_, Option<i64>>(4)?.zip(row.get(5)?).map(|(bytes, checksum)| numbers(bytes, checksum));
    Ok(ChunkFile::new(row.get(0)?, row.get(1)?, numbers(row.get(2)?, row.get(3)?), encoded, row.get(6)?))
}

/// Ends what a version does not have any more, and begins what it has since. A table that goes under another name is the same.
fn write_tables(db: &Connection, version: i64, changed: &[(&str, Changed)]) -> rusqlite::Result<()> {
    let before: Vec<&Table> = changed.iter().filter_map(|(_, table)| table.before.as_deref()).collect();
    let after: Vec<&Table> = changed.iter().filter_map(|(_, table)| table.after.as_deref()).collect();
    for table in &before {
        let now = after.iter().find(|now| now.id == table.id);
        if !now.is_some_and(|now| now.describes_as(table)) {
            db.execute(
                "UPDATE relation SET ends = ?1 WHERE id = ?2 AND ends = ?3",
                params![version, table.id, i64::MAX],
            )?;
        }
        for chunk in &table.chunks {
            match now.and_then(|now| now.chunks.iter().find(|now| now.id == chunk.id)) {
                None => {
                    db.execute("UPDATE chunk SET ends = ? WHERE id = ?", params![version, chunk.id])?;
                }
                Some(now) => {
                    let is_new = |row: &u32| chunk.deleted.binary_search(row).is_err();
                    write_deletion(
                        db,
                        version,
                        chunk.id,
                        now.deleted.iter().copied().filter(is_new).collect(),
                    )?;
                }
            }
        }
    }
    for table in &after {
        let Table { id, name, key, definition, next_field, .. } = table;
        if !before.iter().any(|before| before.id == *id && before.describes_as(table)) {
            let (schema, key) = (encode(&table.schema), serde_json::to_string(key).unwrap_or_default());
            db.execute(
                "INSERT INTO relation (id, begins, name, schema, key, definition, next_field) VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![id, version, name, schema, key, definition, next_field],
            )?;
        }
        for Chunk { number, order, file, deleted, .. } in
            table.chunks.iter().filter(|chunk| chunk.id.is_none())
        {
            let (bytes, checksum) = (file.bytes.cast_signed(), file.checksum.cast_signed());
            let encoded = file.encoded.as_ref();
            db.execute(
                &format!("INSERT INTO chunk ({FILE}, relation, begins, number, place) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
                params![
                    file.name, file.rows, bytes, checksum, encoded.map(|file| file.bytes.cast_signed()),
                    encoded.map(|file| file.checksum.cast_signed()), file.statistics, id, version, number, order
                ],
            )?;
            write_deletion(db, version, Some(db.last_insert_rowid()), deleted.to_vec())?;
        }
    }
    Ok(())
}

/// Writes which other rows of a chunk are deleted. They take over the lists that came last, as long as those are no longer: a chunk
/// has few lists, and a row is written again a few times at most.
fn write_deletion(
    db: &Connection,
    version: i64,
    chunk: Option<i64>,
    mut new: Vec<u32>,
) -> rusqlite::Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let query = "SELECT begins, rows FROM deletion WHERE chunk = ? AND ends = ? ORDER BY begins DESC";
    let (mut statement, mut first) = (db.prepare(query)?, version);
    let mut lists = statement.query(params![chunk, i64::MAX])?;
    while let Some(list) = lists.next()? {
        let rows = positions(list.get_ref(1)?.as_blob()?);
        if rows.len() > new.len() {
            break;
        }
        (first, new) = (list.get(0)?, [new, rows].concat());
    }
    let end = "UPDATE deletion SET ends = ?1 WHERE chunk = ?2 AND ends = ?3 AND begins >= ?4";
    db.execute(end, params![version, chunk, i64::MAX, first])?;
    let rows: Vec<u8> = new.iter().flat_map(|row| row.to_le_bytes()).collect();
    let insert = "INSERT INTO deletion (chunk, begins, rows) VALUES (?, ?, ?)";
    db.execute(insert, params![chunk, version, rows]).map(drop)
}

fn positions(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

fn encode(schema: &Schema) -> Vec<u8> {
    let mut tracker = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message
}

/// The time now, in microseconds since 1970, UTC.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// A name as it is compared: without regard to the case of ASCII's letters, as the engine does.
pub(crate) fn fold(name: &str) -> String {
    name.to_ascii_lowercase()
}

pub(crate) fn conflict(table: &str) -> Error {
    Error::operational(format!("another transaction has changed the table {table:?} since this one began"))
        .with_sqlstate("40001")
        .with_hint("roll it back, and repeat it from its start")
}

fn damage(error: &dyn std::fmt::Display) -> Error {
    Error::operational(format!("the catalogue is damaged: {error}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form of map_err")]
fn failure(error: rusqlite::Error) -> Error {
    let message = format!("the store's catalogue: {error}");
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy) => Error::operational(message)
            .with_sqlstate("55P03")
            .with_hint("another process commits, and did not end within a minute"),
        Some(rusqlite::ErrorCode::ReadOnly) => Error::operational(message).with_hint(
            "who reads a store has to be allowed to write into its directory, where SQLite keeps its locks",
        ),
        Some(rusqlite::ErrorCode::DiskFull) => {
            Error::operational(message).with_sqlstate("53100").with_hint("make room, and repeat it")
        }
        _ => Error::operational(message),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The history of a table that each version has altered, appended to, and deleted from.
    const HISTORY: &str = "
        CREATE TEMP TABLE past AS WITH RECURSIVE v (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM v WHERE n < ?1)
            SELECT n, iif(n < ?1, n + 1, 9223372036854775807) AS ends FROM v;
        INSERT INTO version SELECT n, n FROM past;
        INSERT INTO change SELECT n, 't', 'append', 1 FROM past;
        INSERT INTO relation SELECT 7, n, ends, 't', ?2, '[]', NULL, 0 FROM past;
        INSERT INTO chunk SELECT n, 7, n, ends, 0, 0, n || '.arrow', 9, 9, 9, NULL, NULL, '{}' FROM past;
        INSERT INTO deletion SELECT ?1, n, ends, x'00000000' FROM past;";

    /// How many steps SQLite takes to read the newest version of so many, and to make the next.
    fn steps(versions: i64) -> usize {
        let folder = std::env::temp_dir().join(format!("longshore-steps-{}-{versions}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut catalogue = Catalogue::open(&folder.join("catalogue.db"), Access::Create).unwrap();
        let schema = encode(&Schema::empty());
        for statement in HISTORY.split_inclusive(';') {
            let mut statement = catalogue.connection.prepare(statement).unwrap();
            let given: [&dyn rusqlite::ToSql; 2] = [&versions, &schema];
            statement.execute(&given[..statement.parameter_count()]).unwrap();
        }
        let counted = Arc::new(AtomicUsize::new(0));
        let steps = counted.clone();
        let count = move || steps.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        catalogue.connection.progress_handler(1, Some(count)).unwrap();
        assert_eq!(catalogue.versions().unwrap(), 0..=versions);
        assert_eq!(catalogue.last_change("t").unwrap(), versions);
        assert_eq!(catalogue.names(versions).unwrap(), ["t"]);
        assert_eq!(catalogue.names_of_files(versions).unwrap().len(), 2);
        let before = Arc::new(catalogue.table("t", versions).unwrap().unwrap());
        assert_eq!((before.chunks.len(), before.rows()), (1, 8));
        let mut after = before.as_ref().clone();
        after.next_field += 1;
        after.chunks[0].deleted = [0, 1].into();
        after.chunks.push(Chunk { id: None, ..after.chunks[0].clone() });
        let after = Some(Arc::new(after));
        let changed = [("t", Changed { before: Some(before), after })];
        let done = Done { name: "t".to_owned(), operation: "append", rows: 9 };
        assert_eq!(catalogue.commit(versions, &changed, &[done]).unwrap(), versions + 1);
        assert_eq!(catalogue.table("t", versions + 1).unwrap().unwrap().rows(), 14);
        assert_eq!(catalogue.table("t", versions).unwrap().unwrap().rows(), 8);
        std::fs::remove_dir_all(folder).unwrap();
        counted.load(Ordering::Relaxed)
    }

    #[test]
    fn a_commit_takes_as_long_after_many_versions_as_after_few() {
        assert_eq!(steps(2_000), steps(20));
    }
}
