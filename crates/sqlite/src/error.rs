//! SQLite's result codes (sqlite.org/rescode.html) as errors.

use longshore_core::memory::OutOfMemory;
use longshore_core::{Error, Kind};

/// The names of the codes that callers meet, extended ones included, without `SQLITE_`.
#[rustfmt::skip]
const NAMES: &[(i32, &str)] = &[
    (1, "ERROR"), (2, "INTERNAL"), (3, "PERM"), (4, "ABORT"), (5, "BUSY"), (6, "LOCKED"), (7, "NOMEM"),
    (8, "READONLY"), (9, "INTERRUPT"), (10, "IOERR"), (11, "CORRUPT"), (12, "NOTFOUND"), (13, "FULL"),
    (14, "CANTOPEN"), (15, "PROTOCOL"), (17, "SCHEMA"), (18, "TOOBIG"), (19, "CONSTRAINT"),
    (20, "MISMATCH"), (21, "MISUSE"), (22, "NOLFS"), (23, "AUTH"), (25, "RANGE"), (26, "NOTADB"),
    (257, "ERROR_MISSING_COLLSEQ"), (261, "BUSY_RECOVERY"), (262, "LOCKED_SHAREDCACHE"),
    (264, "READONLY_RECOVERY"), (266, "IOERR_READ"), (267, "CORRUPT_VTAB"), (270, "CANTOPEN_NOTEMPDIR"),
    (275, "CONSTRAINT_CHECK"), (513, "ERROR_RETRY"), (516, "ABORT_ROLLBACK"), (517, "BUSY_SNAPSHOT"),
    (520, "READONLY_CANTLOCK"), (522, "IOERR_SHORT_READ"), (523, "CORRUPT_SEQUENCE"),
    (526, "CANTOPEN_ISDIR"), (531, "CONSTRAINT_COMMITHOOK"), (769, "ERROR_SNAPSHOT"), (773, "BUSY_TIMEOUT"),
    (776, "READONLY_ROLLBACK"), (778, "IOERR_WRITE"), (779, "CORRUPT_INDEX"), (782, "CANTOPEN_FULLPATH"),
    (787, "CONSTRAINT_FOREIGNKEY"), (1032, "READONLY_DBMOVED"), (1034, "IOERR_FSYNC"),
    (1043, "CONSTRAINT_FUNCTION"), (1288, "READONLY_CANTINIT"), (1299, "CONSTRAINT_NOTNULL"),
    (1544, "READONLY_DIRECTORY"), (1546, "IOERR_TRUNCATE"), (1550, "CANTOPEN_SYMLINK"),
    (1555, "CONSTRAINT_PRIMARYKEY"), (1802, "IOERR_FSTAT"), (1811, "CONSTRAINT_TRIGGER"),
    (2067, "CONSTRAINT_UNIQUE"), (2579, "CONSTRAINT_ROWID"), (3082, "IOERR_NOMEM"),
    (3091, "CONSTRAINT_DATATYPE"), (3850, "IOERR_LOCK"), (4618, "IOERR_SHMOPEN"), (5386, "IOERR_SHMMAP"),
    (6410, "IOERR_GETTEMPPATH"), (8458, "IOERR_CORRUPTFS"),
];

/// `SQLITE_IOERR_NOMEM`.
const NO_MEMORY_FOR_IO: i32 = 3082;

/// `SQLITE_ERROR_SNAPSHOT`.
const SNAPSHOT_GONE: i32 = 769;

/// The name of `code`, or of the primary code that it belongs to.
fn name(code: i32) -> String {
    let find = |code: i32| NAMES.iter().find(|(known, _)| *known == code);
    let known = find(code).or_else(|| find(code & 0xff));
    known.map_or("an unknown result code".to_owned(), |(_, name)| format!("SQLITE_{name}"))
}

/// The error of an extended result code and SQLite's own words.
#[cold]
#[must_use]
pub fn error_of(code: i32, message: &str) -> Error {
    let error = Error::new(kind(code), format!("{message} [{}]", name(code))).with_vendor_code(code);
    let error = if is_transient(code) { error.transient() } else { error };
    let error = match sqlstate(code) {
        Some(sqlstate) => error.with_sqlstate(sqlstate),
        None => error,
    };
    match hint(code, message) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Whether another connection was in the way: with a lock, or with a checkpoint beyond the snapshot.
fn is_transient(code: i32) -> bool {
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
        7 => OutOfMemory::HINT,
        _ if code == NO_MEMORY_FOR_IO => OutOfMemory::HINT,
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
        assert!(error_of(5, "database is locked").is_transient());
        let gone = error_of(769, "SQL logic error");
        assert_eq!((gone.kind(), gone.is_transient()), (Kind::Operational, true));
        assert!(!error_of(1, "SQL logic error").is_transient());
        assert_eq!(name(255), "an unknown result code");
        assert!(NAMES.is_sorted_by_key(|(code, _)| *code));
    }
}
