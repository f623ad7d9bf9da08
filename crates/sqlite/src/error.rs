//! SQLite's result codes (sqlite.org/rescode.html) as errors.

use longshore_core::memory::NoRoom;
use longshore_core::{Error, Kind};

/// The names of the codes that callers meet, extended ones included.
const NAMES: &[(i32, &str)] = &[
    (1, "SQLITE_ERROR"),
    (2, "SQLITE_INTERNAL"),
    (3, "SQLITE_PERM"),
    (4, "SQLITE_ABORT"),
    (5, "SQLITE_BUSY"),
    (6, "SQLITE_LOCKED"),
    (7, "SQLITE_NOMEM"),
    (8, "SQLITE_READONLY"),
    (9, "SQLITE_INTERRUPT"),
    (10, "SQLITE_IOERR"),
    (11, "SQLITE_CORRUPT"),
    (12, "SQLITE_NOTFOUND"),
    (13, "SQLITE_FULL"),
    (14, "SQLITE_CANTOPEN"),
    (15, "SQLITE_PROTOCOL"),
    (17, "SQLITE_SCHEMA"),
    (18, "SQLITE_TOOBIG"),
    (19, "SQLITE_CONSTRAINT"),
    (20, "SQLITE_MISMATCH"),
    (21, "SQLITE_MISUSE"),
    (22, "SQLITE_NOLFS"),
    (23, "SQLITE_AUTH"),
    (25, "SQLITE_RANGE"),
    (26, "SQLITE_NOTADB"),
    (257, "SQLITE_ERROR_MISSING_COLLSEQ"),
    (261, "SQLITE_BUSY_RECOVERY"),
    (262, "SQLITE_LOCKED_SHAREDCACHE"),
    (264, "SQLITE_READONLY_RECOVERY"),
    (266, "SQLITE_IOERR_READ"),
    (267, "SQLITE_CORRUPT_VTAB"),
    (270, "SQLITE_CANTOPEN_NOTEMPDIR"),
    (275, "SQLITE_CONSTRAINT_CHECK"),
    (513, "SQLITE_ERROR_RETRY"),
    (516, "SQLITE_ABORT_ROLLBACK"),
    (517, "SQLITE_BUSY_SNAPSHOT"),
    (520, "SQLITE_READONLY_CANTLOCK"),
    (522, "SQLITE_IOERR_SHORT_READ"),
    (523, "SQLITE_CORRUPT_SEQUENCE"),
    (526, "SQLITE_CANTOPEN_ISDIR"),
    (531, "SQLITE_CONSTRAINT_COMMITHOOK"),
    (769, "SQLITE_ERROR_SNAPSHOT"),
    (773, "SQLITE_BUSY_TIMEOUT"),
    (776, "SQLITE_READONLY_ROLLBACK"),
    (778, "SQLITE_IOERR_WRITE"),
    (779, "SQLITE_CORRUPT_INDEX"),
    (782, "SQLITE_CANTOPEN_FULLPATH"),
    (787, "SQLITE_CONSTRAINT_FOREIGNKEY"),
    (1032, "SQLITE_READONLY_DBMOVED"),
    (1034, "SQLITE_IOERR_FSYNC"),
    (1043, "SQLITE_CONSTRAINT_FUNCTION"),
    (1288, "SQLITE_READONLY_CANTINIT"),
    (1299, "SQLITE_CONSTRAINT_NOTNULL"),
    (1544, "SQLITE_READONLY_DIRECTORY"),
    (1546, "SQLITE_IOERR_TRUNCATE"),
    (1550, "SQLITE_CANTOPEN_SYMLINK"),
    (1555, "SQLITE_CONSTRAINT_PRIMARYKEY"),
    (1802, "SQLITE_IOERR_FSTAT"),
    (1811, "SQLITE_CONSTRAINT_TRIGGER"),
    (2067, "SQLITE_CONSTRAINT_UNIQUE"),
    (2579, "SQLITE_CONSTRAINT_ROWID"),
    (3082, "SQLITE_IOERR_NOMEM"),
    (3091, "SQLITE_CONSTRAINT_DATATYPE"),
    (3850, "SQLITE_IOERR_LOCK"),
    (4618, "SQLITE_IOERR_SHMOPEN"),
    (5386, "SQLITE_IOERR_SHMMAP"),
    (6410, "SQLITE_IOERR_GETTEMPPATH"),
    (8458, "SQLITE_IOERR_CORRUPTFS"),
];

/// `SQLITE_IOERR_NOMEM`.
const NO_MEMORY_FOR_IO: i32 = 3082;

/// `SQLITE_ERROR_SNAPSHOT`.
const SNAPSHOT_GONE: i32 = 769;

/// The name of `code`, or of the primary code that it belongs to.
fn name(code: i32) -> &'static str {
    let find = |code: i32| NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
    find(code).or_else(|| find(code & 0xff)).unwrap_or("an unknown result code")
}

/// The error of an extended result code and SQLite's own words.
#[cold]
#[must_use]
pub fn error_of(code: i32, message: &str) -> Error {
    let error = Error::new(kind(code), format!("{message} [{}]", name(code)));
    let error = if is_passing(code) { error.passing() } else { error };
    let error = match sqlstate(code) {
        Some(sqlstate) => error.with_sqlstate(sqlstate),
        None => error,
    };
    match hint(code, message) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Whether somebody else was in the way: with a lock, or with a checkpoint beyond the snapshot.
fn is_passing(code: i32) -> bool {
    code & 0xff == 5 || code == SNAPSHOT_GONE
}

fn kind(code: i32) -> Kind {
    match code & 0xff {
        _ if code == SNAPSHOT_GONE => Kind::Operational,
        1 | 17 | 25 => Kind::Programming,
        2 | 21 => Kind::Internal,
        7 => Kind::Memory,
        _ if code == NO_MEMORY_FOR_IO => Kind::Memory,
        9 => Kind::Cancelled,
        18 | 20 => Kind::Data,
        19 => Kind::Integrity,
        _ => Kind::Operational,
    }
}

/// The SQL standard's state, where it says the same.
fn sqlstate(code: i32) -> Option<&'static str> {
    Some(match code {
        9 => "57014",
        1555 | 2067 | 2579 => "23505",
        1299 => "23502",
        787 => "23503",
        275 => "23514",
        _ if code & 0xff == 19 => "23000",
        _ => return None,
    })
}

fn hint(code: i32, message: &str) -> Option<&'static str> {
    Some(match code & 0xff {
        1 if message.starts_with("no such table") => {
            "look at the path of the file: sqlite:///relative has three slashes, sqlite:////absolute four"
        }
        5 => {
            "another connection has the database locked: give it more time with busy_timeout (seconds), or end the other \
             transaction"
        }
        6 => "another statement of this process has the table locked: end it first",
        7 => NoRoom::HINT,
        _ if code == NO_MEMORY_FOR_IO => NoRoom::HINT,
        8 => "the file or its folder cannot be written, or the connection was opened with mode=ro",
        _ if code == SNAPSHOT_GONE => "another connection has written over it: begin again",
        10 => "the disk, or the network that it is on, failed: look into the system's log",
        11 => {
            "the file is damaged or cut short: PRAGMA integrity_check tells more, .recover of the sqlite3 shell saves what is left"
        }
        13 => "make room on the disk, or for temporary files set SQLITE_TMPDIR",
        14 => "look whether the file and its folder are there and may be read",
        23 => "the statement is not allowed here",
        26 => "the file is not a SQLite database, is encrypted, or is damaged at its start",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_extended_name() {
        let error = error_of(2067, "UNIQUE constraint failed: t.a");
        assert_eq!(error.kind(), Kind::Integrity);
        assert_eq!(
            error.to_string(),
            "UNIQUE constraint failed: t.a [SQLITE_CONSTRAINT_UNIQUE] [SQLSTATE 23505]"
        );
        assert_eq!(name(5 | 99 << 8), "SQLITE_BUSY");
        assert!(error_of(5, "database is locked").is_passing());
        let gone = error_of(769, "SQL logic error");
        assert_eq!((gone.kind(), gone.is_passing()), (Kind::Operational, true));
        assert!(!error_of(1, "SQL logic error").is_passing());
        assert_eq!(name(255), "an unknown result code");
        assert!(NAMES.is_sorted_by_key(|(code, _)| *code));
    }
}
