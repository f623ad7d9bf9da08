//! Conversations with MySQL and MariaDB, cut and garbled at every byte.

#[path = "../../wire/tests/replay/mod.rs"]
mod replay;

use std::path::{Path, PathBuf};

use longshore_core::Protocol;
use longshore_mysql::MySql;
use replay::faults::Replay;

const QUERY: &str = "SELECT n.i, concat('t', n.i) AS t, CAST(1.5 AS DECIMAL(9,2)) AS d, nullif(n.i, 2) AS m, \
                     DATE '2024-02-29' AS day FROM (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS n";

/// A row becomes the end or an error, and the end one of several results.
const MASKS: &[u8] = &[0xff, 0xfe, 0x01, 0x08, 0x80];

#[test]
fn a_binary_read_of_mysql_is_whole_or_fails() {
    with("mysql", "binary", |replay| replay.reads(QUERY, Protocol::Binary, MASKS));
}

#[test]
fn a_text_read_of_mysql_is_whole_or_fails() {
    with("mysql", "text", |replay| replay.reads(QUERY, Protocol::Text, MASKS));
}

#[test]
fn a_write_to_mysql_is_whole_or_fails() {
    with("mysql", "write", |replay| replay.writes(AFTER_COMMIT));
}

#[test]
fn a_binary_read_of_mariadb_is_whole_or_fails() {
    with("mariadb", "binary", |replay| replay.reads(QUERY, Protocol::Binary, MASKS));
}

#[test]
fn a_text_read_of_mariadb_is_whole_or_fails() {
    with("mariadb", "text", |replay| replay.reads(QUERY, Protocol::Text, MASKS));
}

#[test]
fn a_write_to_mariadb_is_whole_or_fails() {
    with("mariadb", "write", |replay| replay.writes(AFTER_COMMIT));
}

/// After the commit, `sql_mode` becomes what it was.
const AFTER_COMMIT: usize = 1;

fn with(server: &str, name: &str, work: impl FnOnce(&Replay)) {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conversations/{server}_{name}.txt"));
    work(&Replay {
        driver: &MySql,
        url: |path: &Path| {
            let path = path.display().to_string().replace('/', "%2F");
            format!("mysql://root@/test?socket={path}")
        },
        socket: "mysqld.sock",
        count: messages,
        variable: format!("LONGSHORE_RECORD_{}", server.to_uppercase()),
        file,
    });
}

/// A length of three bytes and a number.
fn messages(said: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = said;
    while let Some(&[a, b, c]) = rest.first_chunk::<3>() {
        let Some(next) = rest.get(4 + u32::from_le_bytes([a, b, c, 0]) as usize..) else { break };
        rest = next;
        count += 1;
    }
    count
}
