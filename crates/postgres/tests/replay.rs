//! Conversations with PostgreSQL, cut and garbled at every byte.

#[path = "../../wire/tests/replay/mod.rs"]
mod replay;

use std::path::{Path, PathBuf};

use longshore_core::Protocol;
use longshore_postgres::Postgres;
use replay::faults::Replay;

const QUERY: &str = "SELECT i, i::text AS t, 1.5::numeric(9,2) AS n, ARRAY[i, NULL] AS l, NULL::date AS d, \
                     (ARRAY['A','B']::\"char\"[])[1] AS c FROM generate_series(1, 5) AS i";

/// The type of a row is turned into that of a notice, the end, a setting.
const MASKS: &[u8] = &[0xff, 0x0a, 0x1e, 0x17];

#[test]
fn a_binary_read_is_whole_or_fails() {
    with("binary", |replay| replay.reads(QUERY, Protocol::Binary, MASKS));
}

#[test]
fn a_text_read_is_whole_or_fails() {
    with("text", |replay| replay.reads(QUERY, Protocol::Text, MASKS));
}

#[test]
fn a_write_is_whole_or_fails() {
    with("write", |replay| replay.writes(0));
}

fn with(name: &str, work: impl FnOnce(&Replay)) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conversations/{name}.txt"));
    work(&Replay {
        driver: &Postgres,
        url: |path: &Path| {
            let directory = path.parent().unwrap().display().to_string().replace('/', "%2F");
            format!("postgresql://postgres@/postgres?host={directory}&port=5432")
        },
        socket: ".s.PGSQL.5432",
        count: messages,
        variable: "LONGSHORE_RECORD_POSTGRESQL".to_owned(),
        file,
    });
}

/// A letter and a length; the client's first has no letter.
fn messages(said: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = said;
    while let Some(length) = rest.get(usize::from(count > 0)..).and_then(|rest| rest.first_chunk::<4>()) {
        let size = usize::from(count > 0) + u32::from_be_bytes(*length) as usize;
        let Some(next) = rest.get(size..) else { break };
        rest = next;
        count += 1;
    }
    count
}
