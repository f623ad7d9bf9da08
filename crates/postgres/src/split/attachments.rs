//! Tables that are attached to a query's tables while its parts begin: ATTACH PARTITION and INHERIT do not wait for
//! readers. A part that begins later would read rows that an earlier one has not.

use longshore_core::{Error, Result};

use crate::connection::pipeline::{Answer, Step};
use crate::session::PostgresSession;

/// The tables that this transaction has locked, and what is attached to them. Below 16384 are the catalogue's own.
const LOOK: &str = "\
WITH held AS ( \
    SELECT DISTINCT relation FROM pg_catalog.pg_locks \
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation >= 16384) \
SELECT (SELECT array_agg(relation) FROM held), \
       (SELECT array_agg(inhrelid ORDER BY inhrelid) FROM pg_catalog.pg_inherits \
        WHERE inhparent IN (SELECT relation FROM held))";

const CHECK: &str = "\
SELECT array_agg(inhrelid ORDER BY inhrelid) IS NOT DISTINCT FROM $2::oid[] \
FROM pg_catalog.pg_inherits WHERE inhparent = ANY ($1::oid[])";

/// What was attached to the tables of a query at its moment, as the server prints arrays.
#[derive(Debug)]
pub(super) struct Attachments {
    parents: String,
    children: String,
}

/// Looks what is attached.
pub(super) fn look() -> Step {
    Step::run(LOOK)
}

impl Attachments {
    /// Reads the answer to [`look`]; `None` where the query has no tables.
    pub(super) fn read(answer: &Answer) -> Option<Self> {
        let [parents, children] = [0, 1].map(|column| answer.cell(0, column).to_owned());
        (!parents.is_empty()).then_some(Self { parents, children })
    }

    /// Ends the transaction; an error where something was attached or detached since.
    pub(super) fn end(&self, session: &mut PostgresSession) -> Result<()> {
        let check = Step::run(CHECK).bind(&self.parents);
        let check = if self.children.is_empty() { check.bind_null() } else { check.bind(&self.children) };
        let answers = session.connection.flight(&[check, Step::run("COMMIT")]);
        let answers = answers.inspect_err(|_| session.connection.abandon())?;
        if answers[0].cell(0, 0) == "t" { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    Error::operational(
        "a table was attached to one of the query's tables, or detached, while its parts were read",
    )
    .with_sqlstate("40001")
    .with_hint("read again; or read with partition_num=1")
}
