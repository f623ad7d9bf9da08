//! One moment for queries that one session reads one after the other.
//!
//! The snapshot is older than the later queries' locks. What is rewritten in between (TRUNCATE, VACUUM FULL) looks empty to
//! it: so all are locked first, and a table that has other files by then than the snapshot knows is a reason to begin anew.

use longshore_core::{Error, Query, Result};
use longshore_source::NotSplit;

use super::plan::EXPLAIN;
use super::statement::Statement;
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// How often it is begun.
const ATTEMPTS: usize = 10;

/// Whether a table that this transaction has locked is not the one that its snapshot shows. The function looks at the
/// catalogue as it is now. Below 16384 are the catalogue's own.
const REWRITTEN: &str = "\
WITH held AS ( \
    SELECT DISTINCT relation FROM pg_catalog.pg_locks \
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation >= 16384) \
SELECT EXISTS (SELECT FROM held LEFT JOIN pg_catalog.pg_class c ON c.oid = held.relation \
    WHERE c.oid IS NULL \
       OR c.relkind IN ('r', 'm') AND c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid))";

/// Begins a transaction whose snapshot has every table of `queries` as it stays until the end.
pub(crate) fn begin(session: &mut PostgresSession, queries: &[Query]) -> Result<()> {
    for _ in 0..ATTEMPTS {
        match attempt(session, queries) {
            Ok(false) => return Ok(()),
            Ok(true) => session.connection.simple("ROLLBACK")?,
            Err(NotSplit::Failed(error)) => return Err(error),
            // The query itself meets the same, and tells it better.
            Err(_) => {
                session.connection.simple("ROLLBACK")?;
                return session.connection.simple(BEGIN);
            }
        }
    }
    Err(Error::operational("the queries' tables are rewritten again and again while they are locked")
        .with_sqlstate("40001")
        .with_hint("read again; or give each query a snapshot of its own: options={\"snapshot\": False}"))
}

/// Begins, and tells whether a table was rewritten meanwhile.
fn attempt(session: &mut PostgresSession, queries: &[Query]) -> Result<bool, NotSplit> {
    // What cannot be explained has no tables to lock before it runs.
    let mut statements: Vec<Statement> =
        queries.iter().filter_map(|query| Statement::parse(query).ok()).collect();
    let mut steps = vec![Step::run(BEGIN)];
    for statement in &mut statements {
        if statement.has_parameters {
            describe(session, statement)?;
        }
        steps.push(statement.step(format!("{EXPLAIN}{}", statement.text)));
    }
    steps.push(Step::run(REWRITTEN));
    let answers = session.connection.flight(&steps)?;
    Ok(answers.last().is_some_and(|answer| answer.cell(0, 0) == "t"))
}

fn describe(session: &mut PostgresSession, statement: &mut Statement) -> Result<()> {
    let answers = session.connection.flight(&[statement.description(statement.text.as_str())])?;
    let prepared = answers.into_iter().find_map(|answer| answer.prepared);
    statement.bind(session, prepared.map(|prepared| prepared.parameters).unwrap_or_default())
}
