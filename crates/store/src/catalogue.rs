//! The catalogue: which versions there are, and which files each table has in each.
//!
//! The catalogue of versions. What one adds begins with it, and what a later one replaces ends with that: its state are
//! the rows that and have not ended. Rows are never changed otherwise, so that a reader of a version needs no
//! transaction of the catalogue.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::Schema;
use longshore_core::{Error, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::chunk::{Chunk, ChunkFile, encoded_name};
use crate::copied::Copied;
use crate::table::Table;

/// The mark of the catalogue among other files of SQLite: "LNGS".
const APPLICATION: i32 = 0x4c4e_4753;
/// The format of everything in a store. One of format 3 has a single list of deleted rows for each chunk.
const FORMAT: i32 = 4;
/// The statements that make one a store of several.
const SEVERAL_LISTS: &str =
    "CREATE INDEX IF NOT EXISTS deletion_ends ON deletion (chunk, ends, begins); PRAGMA user_version = 4";

const SCHEMA: &str = "
CREATE TABLE version (id INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE relation (
    id INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, begins INTEGER NOT NULL, ends INTEGER, schema BLOB NOT NULL,
    key TEXT NOT NULL, definition TEXT, next_field INTEGER NOT NULL, PRIMARY KEY (id, begins)
);
CREATE INDEX relation_name ON relation (folded, begins);
CREATE INDEX relation_ends ON relation (ends, id, begins);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY, relation INTEGER NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, begins INTEGER NOT NULL,
    ends INTEGER, file TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, statistics TEXT NOT NULL,
    encoded_bytes INTEGER, encoded_checksum INTEGER
);
CREATE INDEX chunk_ends ON chunk (ends, relation, begins);
CREATE TABLE deletion (
    chunk INTEGER NOT NULL, begins INTEGER NOT NULL, ends INTEGER, rows BLOB NOT NULL, PRIMARY KEY (chunk, begins)
);
CREATE TABLE change (
    version INTEGER NOT NULL, relation INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, operation TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE INDEX change_name ON change (folded, version);
CREATE TABLE oldest (version INTEGER NOT NULL);
INSERT INTO version VALUES (0, 0);
INSERT INTO oldest VALUES (0);
";

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
    pub(crate) relation: i64,
    pub(crate) name: String,
    pub(crate) operation: &'static str,
    pub(crate) rows: u64,
}

/// The connection to it.
#[derive(Debug)]
pub(crate) struct Catalogue {
    connection: Connection,
    /// The store that it is a copy of, for who may not write next to that.
    copied: Option<Copied>,
}

impl Catalogue {
    /// Opens the catalogue; makes it where it `may_make` one.
    pub(crate) fn open(path: &Path, read_only: bool, may_make: bool) -> Result<Self> {
        let catalogue = Self::opened(path, read_only, may_make)?;
        catalogue.check_format(path)?;
        Ok(catalogue)
    }

    fn opened(path: &Path, read_only: bool, may_make: bool) -> Result<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags |= if read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        if may_make {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        longshore_sqlite::install_locks();
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(60)).map_err(failed)?;
        if read_only
            && needs_files(&connection)
            && let Some((connection, copied)) = Copied::of(path)?
        {
            return Ok(Self { connection, copied: Some(copied) });
        }
        let mut catalogue = Self { connection, copied: None };
        if !read_only {
            catalogue.prepare(may_make)?;
        }
        Ok(catalogue)
    }

    /// Sees what others have committed since, which a copy does not have.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        if let Some(copied) = &self.copied
            && !copied.is_current()?
        {
            *self = Self::opened(copied.path(), true, false)?;
        }
        Ok(())
    }

    /// Has the catalogue's commits reach the disk before they return, and makes its tables where they are missing.
    fn prepare(&mut self, may_make: bool) -> Result<()> {
        // To its end: the change of the mode is a commit, which may fail after the pragma's row.
        let mode: Vec<String> = self.all("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        let now: Vec<String> = self.all("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode != ["wal"] || now != ["wal"] {
            return Err(Error::operational(format!(
                "the catalogue cannot have a write-ahead log, but {now:?}"
            )));
        }
        self.connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
            .map_err(failed)?;
        if !may_make {
            return Ok(());
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        if !transaction.table_exists(None, "version").map_err(failed)? {
            transaction.execute_batch(SCHEMA).map_err(failed)?;
            transaction.execute_batch(SEVERAL_LISTS).map_err(failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    fn check_format(&self, path: &Path) -> Result<()> {
        let number =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(failed);
        if number("application_id")? != APPLICATION {
            return Err(Error::operational(format!("{} is not the catalogue of a store", path.display())));
        }
        match number("user_version")? {
            3 | FORMAT => Ok(()),
            format => Err(Error::operational(format!(
                "the store has format {format}; this Longshore knows format {FORMAT}"
            ))
            .with_hint("open it with the Longshore that has written it")),
        }
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Result<i64> {
        self.connection.query_row("SELECT max(id) FROM version", [], |row| row.get(0)).map_err(failed)
    }

    /// The version that was the newest at a time; `None` before the first.
    pub(crate) fn version_at(&self, at: i64) -> Result<Option<i64>> {
        self.connection
            .query_row("SELECT max(id) FROM version WHERE at <= ?", [at], |row| row.get(0))
            .map_err(failed)
    }

    /// The oldest version that is kept, and whether `version` is one that is.
    pub(crate) fn is_kept(&self, version: i64) -> Result<(i64, bool)> {
        self.connection
            .query_row(
                "SELECT (SELECT version FROM oldest) AS first, ?1 >= (SELECT version FROM oldest) AND EXISTS (SELECT 1 FROM version WHERE id = ?1)",
                [version],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(failed)
    }

    /// The names of a version's tables, in order.
    pub(crate) fn names(&self, version: i64) -> Result<Vec<String>> {
        let query =
            "SELECT name FROM relation WHERE begins <= ?1 AND (ends IS NULL OR ends > ?1) ORDER BY name";
        self.all(query, [version], |row| row.get(0))
    }

    /// The names of a version's files.
    pub(crate) fn names_of_files(&self, version: i64) -> Result<HashSet<String>> {
        let query = "SELECT file FROM chunk WHERE begins <= ?1 AND (ends IS NULL OR ends > ?1)";
        let names: Vec<String> = self.all(query, [version], |row| row.get(0))?;
        Ok(names.into_iter().flat_map(|name| [encoded_name(&name), name]).collect())
    }

    /// The newest version that has changed what a name stands for.
    pub(crate) fn last_change(&self, folded: &str) -> Result<i64> {
        let query = "SELECT coalesce(max(version), 0) FROM change WHERE folded = ?";
        self.connection.query_row(query, [folded], |row| row.get(0)).map_err(failed)
    }

    /// A version's table.
    pub(crate) fn table(&self, folded: &str, version: i64) -> Result<Option<Table>> {
        let query = "SELECT id, name, schema, key, definition, next_field FROM relation
             WHERE folded = ?1 AND begins <= ?2 AND (ends IS NULL OR ends > ?2) ORDER BY begins DESC";
        let found = self.connection.query_row(query, params![folded, version], |row| {
            let (schema, key): (Vec<u8>, String) = (row.get(2)?, row.get(3)?);
            Ok((row.get(0)?, row.get(1)?, schema, key, row.get(4)?, row.get(5)?))
        });
        let found = found.optional().map_err(failed)?;
        let Some((id, name, schema, key, definition, next_field)) = found else { return Ok(None) };
        let schema = try_schema_from_flatbuffer_bytes(&schema).map_err(|error| damaged(&error))?;
        let key = serde_json::from_str(&key).map_err(|error| damaged(&error))?;
        let chunks = self.chunks(id, version)?;
        Ok(Some(Table { id, name, schema: Arc::new(schema), key, definition, next_field, chunks }))
    }

    fn chunks(&self, relation: i64, version: i64) -> Result<Vec<Chunk>> {
        // Of the lists, too, each is looked for that has begun and has not ended, among the chunk's by their ends.
        let query = "SELECT file, rows, bytes, checksum, statistics, encoded_bytes, encoded_checksum, id, number, place, (
                 SELECT CAST(coalesce(group_concat(rows, ''), '') AS BLOB) FROM (
                     SELECT rows FROM deletion WHERE chunk = chunk.id AND ends IS NULL AND begins <= ?2
                     UNION ALL SELECT rows FROM deletion WHERE chunk = chunk.id AND ends > ?2 AND +begins <= ?2))
             FROM chunk WHERE relation = ?1 AND begins <= ?2 AND (ends IS NULL OR ends > ?2) ORDER BY place";
        self.all(query, params![relation, version], |row| {
            let mut deleted = positions(&row.get::<_, Vec<u8>>(10)?);
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
    pub(crate) fn changes(&self, folded: Option<&str>) -> Result<Vec<Change>> {
        let query = "SELECT version, at, name, operation, rows FROM change JOIN version ON version.id = version
             WHERE (?1 IS NULL OR folded = ?1) AND version >= (SELECT version FROM oldest) ORDER BY version, change.rowid";
        self.all(query, params![folded], |row| {
            let (table, operation, rows) = (row.get(2)?, row.get(3)?, row.get::<_, i64>(4)?);
            Ok(Change { version: row.get(0)?, at: row.get(1)?, table, operation, rows: rows.cast_unsigned() })
        })
    }

    /// Makes a version of what a transaction that has seen version `seen` has changed, if no other has changed these tables meanwhile.
    pub(crate) fn commit(&mut self, seen: i64, changed: &[(&str, Changed)], done: &[Done]) -> Result<i64> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        for (folded, _) in changed {
            if self.last_change(folded)? > seen {
                return Err(conflict(folded));
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        // Times grow with versions, whatever the clock does.
        let insert = "INSERT INTO version SELECT id + 1, max(?, at + 1) FROM version ORDER BY id DESC LIMIT 1 RETURNING id";
        let version: i64 = transaction.query_row(insert, [now], |row| row.get(0)).map_err(failed)?;
        for (_, table) in changed {
            write_table(&transaction, version, table).map_err(failed)?;
        }
        for each in done {
            let (folded, rows) = (fold(&each.name), each.rows.cast_signed());
            let values = params![version, each.relation, each.name, folded, each.operation, rows];
            transaction.execute("INSERT INTO change VALUES (?, ?, ?, ?, ?, ?)", values).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(version)
    }

    /// Has a commit that failed be none: the log may hold it whole, though it is not synced. Another commit in its place does that.
    pub(crate) fn void_failed(&mut self) -> Result<()> {
        // A page that stays as it is would not be written.
        self.connection
            .execute_batch(
                "BEGIN IMMEDIATE; UPDATE oldest SET version = version + 1; UPDATE oldest SET version = version - 1; COMMIT",
            )
            .map_err(failed)
    }

    /// Forgets what no version from `oldest` on has, nor one of `read`, which others read now.
    pub(crate) fn forget(&mut self, oldest: i64, read: &[i64]) -> Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let read = serde_json::to_string(read).map_err(|error| Error::internal(error.to_string()))?;
        for (table, id) in [("relation", "rowid"), ("chunk", "id"), ("deletion", "rowid")] {
            let query = format!(
                "DELETE FROM {table} WHERE {id} IN (SELECT {id} FROM {table} AS t WHERE ends <= ?1
                 AND NOT EXISTS (SELECT 1 FROM json_each(?2) AS reader WHERE reader.value >= t.begins AND reader.value < t.ends))"
            );
            transaction.execute(&query, params![oldest, read]).map_err(failed)?;
        }
        transaction
            .execute("DELETE FROM deletion WHERE chunk NOT IN (SELECT id FROM chunk)", [])
            .map_err(failed)?;
        transaction.execute("UPDATE oldest SET version = max(version, ?)", [oldest]).map_err(failed)?;
        transaction
            .execute("DELETE FROM version WHERE id < ?1 AND id > 0 AND id NOT IN (SELECT value FROM json_each(?2))", params![oldest, read])
            .map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// The files of all versions.
    pub(crate) fn files(&self) -> Result<Vec<ChunkFile>> {
        let query = "SELECT file, rows, bytes, checksum, statistics, encoded_bytes, encoded_checksum FROM chunk ORDER BY id";
        self.all(query, [], file_of)
    }

    /// The damage that SQLite finds in the catalogue itself.
    pub(crate) fn check(&self) -> Result<Vec<String>> {
        let found: Vec<String> = self.all("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok(found
            .into_iter()
            .filter(|text| text != "ok")
            .map(|text| format!("the catalogue: {text}"))
            .collect())
    }

    fn all<T>(
        &self,
        query: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let rows = statement.query_map(params, read).map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
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
    let (bytes, checksum): (i64, i64) = (row.get(2)?, row.get(3)?);
    let (bytes, checksum) = (bytes.cast_unsigned(), checksum.cast_unsigned());
    let file = ChunkFile::new(row.get(0)?, row.get(1)?, bytes, checksum, row.get(4)?);
    let encoded: Option<(i64, i64)> = row.get::<_, Option<i64>>(5)?.zip(row.get(6)?);
    Ok(file.with_encoded(encoded.map(|(bytes, checksum)| (bytes.cast_unsigned(), checksum.cast_unsigned()))))
}

fn write_table(catalogue: &Connection, version: i64, changed: &Changed) -> rusqlite::Result<()> {
    let (before, after) = (changed.before.as_deref(), changed.after.as_deref());
    let goes_on = before.zip(after).is_some_and(|(before, after)| before.id == after.id);
    let is_same = goes_on && before.zip(after).is_some_and(|(before, after)| before.describes_as(after));
    if let Some(before) = before.filter(|_| !is_same) {
        catalogue.execute(
            // Under another name it may have begun with this version.
            "UPDATE relation SET ends = ?1 WHERE id = ?2 AND ends IS NULL AND begins < ?1",
            params![version, before.id],
        )?;
    }
    if let Some(after) = after.filter(|_| !is_same) {
        let Table { id, name, schema, key, definition, next_field, .. } = after;
        let (schema, key) = (encoded(schema), serde_json::to_string(key).unwrap_or_default());
        catalogue.execute(
            "INSERT INTO relation VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?)",
            params![id, name, fold(name), version, schema, key, definition, next_field],
        )?;
    }
    let relation = after.map(|table| table.id);
    let (before, after): (&[Chunk], &[Chunk]) =
        (before.map_or(&[], |table| &table.chunks), after.map_or(&[], |table| &table.chunks));
    let kept = if goes_on { after } else { &[] };
    for chunk in before {
        let Some(now) = kept.iter().find(|other| other.id == chunk.id) else {
            for (table, id) in [("chunk", "id"), ("deletion", "chunk")] {
                let end = format!("UPDATE {table} SET ends = ?1 WHERE {id} = ?2 AND ends IS NULL");
                catalogue.execute(&end, params![version, chunk.id])?;
            }
            continue;
        };
        let new = now.deleted.iter().copied().filter(|row| chunk.deleted.binary_search(row).is_err());
        write_deletion(catalogue, version, chunk.id, new.collect())?;
    }
    for chunk in after.iter().filter(|chunk| !goes_on || chunk.id.is_none()) {
        let file = &chunk.file;
        let (bytes, checksum, encoded) =
            (file.bytes.cast_signed(), file.checksum.cast_signed(), file.encoded.as_deref());
        catalogue.execute(
            "INSERT INTO chunk (relation, number, place, begins, file, rows, bytes, checksum, statistics, encoded_bytes, encoded_checksum)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                relation, chunk.number, chunk.order, version, file.name, file.rows, bytes, checksum, file.statistics,
                encoded.map(|file| file.bytes.cast_signed()), encoded.map(|file| file.checksum.cast_signed())
            ],
        )?;
        write_deletion(catalogue, version, Some(catalogue.last_insert_rowid()), chunk.deleted.to_vec())?;
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
    db.execute_batch(SEVERAL_LISTS)?;
    let query = "SELECT begins, rows FROM deletion WHERE chunk = ? AND ends IS NULL ORDER BY begins DESC";
    let (mut statement, mut first) = (db.prepare(query)?, version);
    let mut lists = statement.query([chunk])?;
    while let Some(list) = lists.next()? {
        let rows = positions(list.get_ref(1)?.as_blob()?);
        if rows.len() > new.len() {
            break;
        }
        (first, new) = (list.get(0)?, [new, rows].concat());
    }
    let end = "UPDATE deletion SET ends = ?1 WHERE chunk = ?2 AND ends IS NULL AND begins >= ?3";
    db.execute(end, params![version, chunk, first])?;
    let rows: Vec<u8> = new.iter().flat_map(|row| row.to_le_bytes()).collect();
    db.execute("INSERT INTO deletion VALUES (?, ?, NULL, ?)", params![chunk, version, rows]).map(drop)
}

fn positions(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

fn encoded(schema: &Schema) -> Vec<u8> {
    let mut tracker = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message
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

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::operational(format!("the catalogue is damaged: {error}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form of map_err")]
fn failed(error: rusqlite::Error) -> Error {
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
            SELECT n, nullif(n + 1, ?1 + 1) AS ends FROM v;
        INSERT INTO version SELECT n, n FROM past;
        INSERT INTO change SELECT n, 7, 't', 't', 'append', 1 FROM past;
        INSERT INTO relation SELECT 7, 't', 't', n, ends, ?2, '[]', NULL, 0 FROM past;
        INSERT INTO chunk SELECT n, 7, 0, 0, n, ends, n || '.arrow', 9, 9, 9, '{}', NULL, NULL FROM past;
        INSERT INTO deletion SELECT ?1, n, ends, x'00000000' FROM past;";

    /// How many steps SQLite takes to read the newest version of so many, and to make the next.
    fn steps(versions: i64) -> usize {
        let folder = std::env::temp_dir().join(format!("longshore-steps-{}-{versions}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut catalogue = Catalogue::open(&folder.join("catalogue.db"), false, true).unwrap();
        let schema = encoded(&Schema::empty());
        for statement in HISTORY.split_inclusive(';') {
            let mut statement = catalogue.connection.prepare(statement).unwrap();
            let given: [&dyn rusqlite::ToSql; 2] = [&versions, &schema];
            statement.execute(&given[..statement.parameter_count()]).unwrap();
        }
        let counted = Arc::new(AtomicUsize::new(0));
        let steps = counted.clone();
        let count = move || steps.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        catalogue.connection.progress_handler(1, Some(count)).unwrap();
        assert_eq!(catalogue.newest().unwrap(), versions);
        assert!(catalogue.is_kept(versions).unwrap().1);
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
        let done = Done { relation: 7, name: "t".to_owned(), operation: "append", rows: 9 };
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
