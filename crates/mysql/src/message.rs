//! A server's messages: OK, EOF, errors, and the definitions of columns (MySQL Internals, "Generic Response Packets" and
//! "Column Definition").

use longshore_core::{Error, Kind, Result};

use crate::packet::{Reader, protocol_error};

/// The capabilities that client and server agree on (`CLIENT_...` and MariaDB's `MARIADB_CLIENT_...`).
pub(crate) mod capability {
    /// MySQL sets it, MariaDB does not: it has capabilities of its own then.
    pub(crate) const MYSQL: u64 = 1;
    pub(crate) const FOUND_ROWS: u64 = 1 << 1;
    pub(crate) const LONG_FLAG: u64 = 1 << 2;
    pub(crate) const CONNECT_WITH_DB: u64 = 1 << 3;
    pub(crate) const COMPRESS: u64 = 1 << 5;
    pub(crate) const LOCAL_FILES: u64 = 1 << 7;
    pub(crate) const PROTOCOL_41: u64 = 1 << 9;
    pub(crate) const SSL: u64 = 1 << 11;
    pub(crate) const TRANSACTIONS: u64 = 1 << 13;
    pub(crate) const SECURE_CONNECTION: u64 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u64 = 1 << 16;
    pub(crate) const MULTI_RESULTS: u64 = 1 << 17;
    pub(crate) const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub(crate) const PLUGIN_AUTH: u64 = 1 << 19;
    pub(crate) const CONNECT_ATTRS: u64 = 1 << 20;
    pub(crate) const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
    pub(crate) const SESSION_TRACK: u64 = 1 << 23;
    pub(crate) const DEPRECATE_EOF: u64 = 1 << 24;
    pub(crate) const ZSTD: u64 = 1 << 26;
    pub(crate) const EXTENDED_METADATA: u64 = 1 << 35;
}

/// Bits of the server's status.
pub(crate) mod status {
    pub(crate) const IN_TRANSACTION: u16 = 1;
    pub(crate) const COMMITS_EACH: u16 = 2;
    pub(crate) const MORE_RESULTS: u16 = 8;
    pub(crate) const NO_BACKSLASH_ESCAPES: u16 = 512;
    pub(crate) const IN_READ_ONLY_TRANSACTION: u16 = 0x2000;
    pub(crate) const STATE_CHANGED: u16 = 0x4000;
}

/// The end of a statement, or of a result's rows.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) affected: u64,
    /// The number that a column with `AUTO_INCREMENT` has given to the first new row; 0 for none.
    pub(crate) inserted: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
    /// The counts of a statement that loads rows, in words.
    pub(crate) info: String,
    /// System variables that the statement has changed, with their new values.
    pub(crate) changed: Vec<(String, String)>,
    /// The database that it has gone over to.
    pub(crate) database: Option<String>,
}

/// The end that an OK or EOF payload tells, whatever its first byte.
pub(crate) fn parse_done(payload: &[u8], capabilities: u64) -> Result<Done> {
    let mut reader = Reader::new(payload);
    let first = reader.u8()?;
    if first == 0xfe && capabilities & capability::DEPRECATE_EOF == 0 {
        let warnings = reader.u16()?;
        return Ok(Done { status: reader.u16()?, warnings, ..Done::default() });
    }
    let (affected, inserted) = (reader.length()?, reader.length()?);
    let (status, warnings) = (reader.u16()?, reader.u16()?);
    let mut done = Done { affected, inserted, status, warnings, ..Done::default() };
    if capabilities & capability::SESSION_TRACK == 0 {
        // The protocol's description has the bytes alone, and servers put their number in front.
        let rest = reader.rest();
        let mut counted = Reader::new(rest);
        let text = counted.text().ok().filter(|_| counted.is_empty());
        done.info = text.unwrap_or_else(|| String::from_utf8_lossy(rest).into_owned());
        return Ok(done);
    }
    if !reader.is_empty() {
        done.info = reader.text()?;
    }
    if status & status::STATE_CHANGED != 0 {
        note_changes(Reader::new(reader.counted_bytes()?), &mut done)?;
    }
    Ok(done)
}

/// The end that the message behind the last row tells. It has to be one in every part: a row that was damaged on its way
/// must not be taken for it.
pub(crate) fn end_of_rows(payload: &[u8], capabilities: u64) -> Result<Done> {
    let deprecated = capabilities & capability::DEPRECATE_EOF != 0;
    let ended = parse_done(payload, capabilities)?;
    let is_one = if deprecated {
        let mut reader = Reader::new(payload);
        let counts = (reader.u8()?, reader.length()?, reader.length()?);
        let _status_and_warnings = reader.bytes(4)?;
        if !reader.is_empty() {
            let _info = reader.counted_bytes()?;
        }
        if capabilities & capability::SESSION_TRACK != 0 && ended.status & status::STATE_CHANGED != 0 {
            let _changes = reader.counted_bytes()?;
        }
        counts == (0xfe, 0, 0) && reader.is_empty()
    } else {
        payload.len() == 5
    };
    if is_one { Ok(ended) } else { Err(protocol_error("an end of rows that is not one")) }
}

/// Notes the tracked changes of a session's state.
fn note_changes(mut changes: Reader<'_>, done: &mut Done) -> Result<()> {
    while !changes.is_empty() {
        let (kind, mut data) = (changes.u8()?, Reader::new(changes.counted_bytes()?));
        match kind {
            0 => {
                while !data.is_empty() {
                    done.changed.push((data.text()?, data.text()?));
                }
            }
            1 => done.database = Some(data.text()?),
            _ => {}
        }
    }
    Ok(())
}

/// A column of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    pub(crate) name: String,
    /// Its name in the table that it comes from unchanged; empty for an expression.
    pub(crate) original: String,
    /// MariaDB's names of the type and of the format, where it tells them.
    pub(crate) extended: String,
    pub(crate) format: String,
    pub(crate) charset: u16,
    pub(crate) length: u32,
    pub(crate) code: u8,
    pub(crate) flags: u16,
    pub(crate) decimals: u8,
}

/// The definition of a column.
pub(crate) fn definition(payload: &[u8], capabilities: u64) -> Result<Definition> {
    let mut reader = Reader::new(payload);
    // Catalogue, database, the table's alias, and its name.
    for _ in 0..4 {
        reader.counted_bytes()?;
    }
    let (name, original) = (reader.text()?, reader.text()?);
    let mut definition = Definition { name, original, ..Definition::default() };
    if capabilities & capability::EXTENDED_METADATA != 0 {
        let mut extended = Reader::new(reader.counted_bytes()?);
        while !extended.is_empty() {
            match extended.u8()? {
                0 => definition.extended = extended.text()?,
                1 => definition.format = extended.text()?,
                _ => drop(extended.counted_bytes()?),
            }
        }
    }
    let mut fixed = Reader::new(reader.counted_bytes()?);
    definition.charset = fixed.u16()?;
    definition.length = fixed.u32()?;
    definition.code = fixed.u8()?;
    definition.flags = fixed.u16()?;
    definition.decimals = fixed.u8()?;
    Ok(definition)
}

/// The first answer to a statement.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Done),
    /// A result of so many columns follows.
    Columns(usize),
    /// The server waits for the file of this name.
    File(String),
}

/// The first packet that answers a statement.
pub(crate) fn answer(payload: &[u8], capabilities: u64) -> Result<Answer> {
    match payload.first() {
        Some(0x00) => parse_done(payload, capabilities).map(Answer::Done),
        Some(0xff) => Err(server_error(payload)),
        Some(0xfb) => Ok(Answer::File(String::from_utf8_lossy(&payload[1..]).into_owned())),
        _ => {
            let count = Reader::new(payload).length()?;
            // A table has 4,096 columns at most, and a result not many more.
            let count =
                u16::try_from(count).map_err(|_| protocol_error(format!("a result of {count} columns")))?;
            Ok(Answer::Columns(count.into()))
        }
    }
}

/// The error that an ERR payload tells of.
pub(crate) fn server_error(payload: &[u8]) -> Error {
    read_error(payload).unwrap_or_else(|broken| broken)
}

fn read_error(payload: &[u8]) -> Result<Error> {
    let mut reader = Reader::new(payload);
    let _marker = reader.u8()?;
    let code = reader.u16()?;
    let rest = reader.rest();
    let (sqlstate, text) = match rest {
        [b'#', state @ ..] if state.len() >= 5 => state.split_at(5),
        _ => (b"HY000".as_slice(), rest),
    };
    let sqlstate = String::from_utf8_lossy(sqlstate).into_owned();
    Ok(error(code, &sqlstate, &String::from_utf8_lossy(text)))
}

fn error(code: u16, sqlstate: &str, text: &str) -> Error {
    let error = Error::new(kind(code, sqlstate), format!("{text} (error {code})"))
        .with_sqlstate(sqlstate)
        .with_vendor_code(code.into());
    hint(code).into_iter().fold(error, Error::with_hint)
}

/// The error that a warning would be in another statement.
pub(crate) fn warning(code: u16, text: &str) -> Error {
    let sqlstate = match code {
        1048 | 1062 | 1216 | 1217 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 4025 => "23000",
        1264 | 1690 => "22003",
        1406 => "22001",
        1292 | 1366 | 1411 => "22007",
        3140 | 3141 => "22032",
        1265 => "01000",
        _ => "HY000",
    };
    error(code, sqlstate, text)
}

/// The error's number in the text that [`server_error`] made.
pub(crate) fn code(error: &Error) -> Option<u16> {
    error.sqlstate()?;
    error.message().rsplit_once("(error ")?.1.strip_suffix(')')?.parse().ok()
}

/// The kind of an error, by its number where its SQLSTATE says nothing (MySQL Server Error Reference).
fn kind(code: u16, sqlstate: &str) -> Kind {
    match code {
        // Not null, foreign keys, checks and duplicates without a SQLSTATE of their own.
        1048 | 1062 | 1169 | 1216 | 1217 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 3819 | 4025 => {
            Kind::Integrity
        }
        1235 | 1289 | 1295 | 1286 => Kind::NotSupported,
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 => Kind::Operational,
        1049 | 1052 | 1102 | 1103 | 1109 | 1193 | 1238 | 1305 | 1364 | 1381 | 1390 | 4161 => {
            Kind::Programming
        }
        1264 | 1265 | 1366 | 1292 | 1406 | 1411 | 1690 | 3140 | 3141 | 3146 => Kind::Data,
        _ => match sqlstate.get(..2).unwrap_or_default() {
            "0A" => Kind::NotSupported,
            "21" | "22" => Kind::Data,
            "23" => Kind::Integrity,
            "07" | "24" | "26" | "34" | "3D" | "3F" | "42" => Kind::Programming,
            _ => Kind::Operational,
        },
    }
}

fn hint(code: u16) -> Option<&'static str> {
    Some(match code {
        1040 | 1203 | 1226 => "close connections that are not needed, or raise the server's max_connections",
        1044 | 1142 | 1143 | 1227 | 1370 => {
            "have the privilege granted to this user (SHOW GRANTS tells what it has)"
        }
        1045 | 1698 => "check user and password, and from which hosts the account may connect",
        1049 => "check the database's name in the URL; SHOW DATABASES lists those that there are",
        1053 | 1077 | 1079 => "the server is shutting down: connect again when it is back",
        1054 => "check the column's spelling; SHOW COLUMNS FROM the table lists them",
        1064 => "check the statement's syntax near the text that the message quotes",
        1129 => "run FLUSH HOSTS on the server, and find out what has failed to connect so often",
        1146 => "check the table's name and the database that the connection uses",
        1153 | 1301 => "raise max_allowed_packet on the server, or send and select smaller values",
        1205 => "another transaction holds a lock: run the statement again",
        1213 => "the transaction was rolled back to end a deadlock: repeat it from its start",
        1290 => "an option of the server forbids it, such as --read-only or --secure-file-priv",
        1317 => "another session has stopped the statement (KILL QUERY)",
        1969 | 3024 => {
            "the server's own limit for statements is over: max_statement_time or max_execution_time"
        }
        1148 | 3948 | 4166 => "local files are never read: write_sql loads data that is in memory",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::packet::put_counted;

    use super::*;

    #[test]
    fn errors_keep_number_and_state() {
        let error = server_error(b"\xff\x7a\x04#42S02Table 'a.b' doesn't exist");
        assert_eq!(error.sqlstate(), Some("42S02"));
        assert_eq!(error.kind(), Kind::Programming);
        assert_eq!(error.message(), "Table 'a.b' doesn't exist (error 1146)");
        assert_eq!(code(&error), Some(1146));
        // Its state is that of a constraint.
        let ambiguous = server_error(b"\xff\x1c\x04#23000Column 'a' in field list is ambiguous");
        assert_eq!(ambiguous.kind(), Kind::Programming);
        let early = server_error(b"\xff\x10\x04Too many connections");
        assert_eq!((early.sqlstate(), code(&early)), (Some("HY000"), Some(1040)));
        assert_eq!(server_error(b"\xff\x10").sqlstate(), Some("08P01"));
    }

    #[test]
    fn counts_in_words_are_read_with_and_without_their_length() {
        for message in [b"\0\x03\0\x02\0\0\0\x0aRecords: 3".as_slice(), b"\0\x03\0\x02\0\0\0Records: 3"] {
            let done = parse_done(message, 0).unwrap();
            assert_eq!((done.affected, done.info.as_str()), (3, "Records: 3"));
        }
    }

    #[test]
    fn a_damaged_row_is_not_an_end() {
        let new = capability::DEPRECATE_EOF | capability::SESSION_TRACK;
        assert_eq!(end_of_rows(&[0xfe, 0, 0, 2, 0, 0, 0], new).unwrap().status, 2);
        assert_eq!(end_of_rows(&[0xfe, 0, 0, 2, 0], 0).unwrap().status, 2);
        for damaged in
            [[0xfe, 1, 0, 2, 0, 0, 0].as_slice(), &[0xfe, 0, 0, 2, 0, 0, 0, 1], &[0xfe, 0, 0, 2, 0], &[0xfe]]
        {
            assert!(end_of_rows(damaged, new).is_err(), "{damaged:?}");
        }
        assert!(end_of_rows(&[0xfe, 0, 0, 2, 0, 0], 0).is_err());
    }

    #[test]
    fn tracked_variables_are_found() {
        let mut variable = Vec::new();
        put_counted(b"time_zone", &mut variable);
        put_counted(b"+02:00", &mut variable);
        let mut state = vec![4, 1, b'1', 1, 3, 2, b'd', b'b', 0];
        put_counted(&variable, &mut state);
        let mut payload = vec![0, 5, 0, 0x02, 0x40, 0, 0, 0];
        put_counted(&state, &mut payload);
        let done = parse_done(&payload, capability::SESSION_TRACK).unwrap();
        assert_eq!((done.affected, done.status), (5, 0x4002));
        assert_eq!(done.changed, [("time_zone".to_owned(), "+02:00".to_owned())]);
        assert_eq!(done.database.as_deref(), Some("db"));
    }
}
