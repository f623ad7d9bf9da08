//! The coordinator of a split read: the session that exports the snapshot, what the others that join it need, and what
//! is checked at the end.

use std::collections::BTreeSet;

use longshore_core::{Error, Result};
use longshore_source::sql::Kind;
use longshore_source::{NotSplit, hash};

use super::plan::{SAVEPOINT, undo_savepoint};
use super::snapshot::Explained;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, literal, text_array};
use crate::session::PostgresSession;

/// The duties of the session that exports a snapshot, until the parts in it have ended, and then.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(super) deadlock_lock: DeadlockLock,
    pub(super) inheritance: Option<Inheritance>,
    /// Whether the transaction sees what has come since its snapshot: in READ COMMITTED, but not where it has joined one.
    pub(super) sees_changes: bool,
}

impl Coordinator {
    /// While nothing comes from the parts, lets those go first that wait for a lock.
    pub(crate) fn let_waiters_pass(&self, session: &mut PostgresSession) -> Result<()> {
        self.deadlock_lock.resolve(session)
    }

    /// Ends the transaction; an error where the parts may not have seen the same tables.
    pub(crate) fn end(&self, session: &mut PostgresSession) -> Result<()> {
        match &self.inheritance {
            Some(inheritance) => inheritance.end(session, self.sees_changes),
            None => session.connection.simple("COMMIT"),
        }
    }
}

/// The statements by which a session joins the exported `snapshot`, with the `settings` of its coordinator. Its scans
/// begin at the table's start and use no workers: each part is to be read the same way.
pub(super) fn join(snapshot: &str, settings: &Settings) -> String {
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT {}; \
         SET LOCAL idle_in_transaction_session_timeout = 0; \
         SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL synchronize_seqscans = off; {}; {}",
        literal(snapshot),
        settings.adopt(),
        DeadlockLock::of(snapshot).acquire()
    )
}

/// Settings that lead to another table or function, or that a value depends on. Those of extensions have a point in
/// their names.
const COPIED: &str = "{search_path,row_security,\
TimeZone,timezone_abbreviations,DateStyle,IntervalStyle,lc_monetary,lc_numeric,lc_time,\
bytea_output,extra_float_digits,xmlbinary,xmloption,quote_all_identifiers,\
array_nulls,transform_null_equals,standard_conforming_strings,backslash_quote,\
default_text_search_config,gin_fuzzy_search_limit}";

/// As rows of VALUES. The role is a setting, too, though the server lists it nowhere.
const SETTINGS: &str = "\
SELECT pg_catalog.string_agg(pg_catalog.format('(%L, %L)', s.name, s.setting), ', ') \
FROM (SELECT name, setting FROM pg_catalog.pg_settings \
      WHERE context = 'user' AND (name = ANY ($1::text[]) OR name LIKE '%.%') \
      UNION ALL SELECT 'role', pg_catalog.current_setting('role')) AS s";

/// Settings that are the users' own: no list has them. What is not set is empty, as the server has it once it was set.
const NAMED_SETTINGS: &str = "\
SELECT pg_catalog.string_agg(pg_catalog.format('(%L, %L)', name, coalesce(pg_catalog.current_setting(name, true), '')), ', ') \
FROM unnest($1::text[]) AS name WHERE name LIKE '%.%'";

/// The coordinator's settings by name and value, as the server writes them into a statement. What was altered since it was
/// opened, for the role, the database or the server, only sessions that are opened later have.
#[derive(Debug)]
pub(super) struct Settings(pub(super) String);

impl Settings {
    pub(super) fn lookup() -> Step {
        Step::run(SETTINGS).bind(COPIED)
    }

    pub(super) fn read(answer: &Answer) -> Self {
        Self(answer.cell(0, 0).to_owned())
    }

    /// Adds those that `queries` ask for by name.
    pub(super) fn add_named(
        &mut self,
        session: &mut PostgresSession,
        queries: &[Explained],
    ) -> Result<(), NotSplit> {
        let texts = queries.iter().flat_map(|query| query.bare.texts());
        let Some(asked) = texts.map(setting_names).collect::<Option<Vec<_>>>() else {
            return Err(NotSplit::because("current_setting() of a name that is computed"));
        };
        let names: BTreeSet<&str> = asked.iter().flatten().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = names.into_iter().collect();
        let answer = session.connection.ask(Step::run(NAMED_SETTINGS).bind(&text_array(&names)))?;
        let found = answer.cell(0, 0);
        if !found.is_empty() {
            self.0 = format!("{}, {found}", self.0);
        }
        Ok(())
    }

    /// The statements by which another session has them until its transaction ends. What it has already is not set: the
    /// server is stricter with what is set than with what it was started with.
    pub(super) fn adopt(&self) -> String {
        format!(
            "SELECT pg_catalog.set_config(wanted.name, wanted.setting, true) \
             FROM (VALUES {}) AS wanted (name, setting) \
             WHERE coalesce(pg_catalog.current_setting(wanted.name, true), '') OPERATOR(pg_catalog.<>) wanted.setting",
            self.0
        )
    }
}

/// The settings that an expression asks for; `None` where a name is not a plain text.
fn setting_names(text: &str) -> Option<Vec<String>> {
    let found = DIALECT.tokens(text);
    let calls = found.windows(3).filter(|call| call[0].is_word("current_setting") && call[1].is_mark("("));
    calls
        .map(|call| {
            let text = call[2].text.strip_prefix('\'')?.strip_suffix('\'')?;
            (call[2].kind == Kind::Literal && !text.contains('\'')).then(|| text.to_lowercase())
        })
        .collect()
}

/// The tables that this transaction has locked, and what is attached to them. Below 16384 are the catalogue's own.
const INHERITANCE: &str = "\
WITH held AS ( \
    SELECT DISTINCT relation FROM pg_catalog.pg_locks \
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation >= 16384) \
SELECT (SELECT array_agg(relation) FROM held), \
       (SELECT array_agg(inhrelid ORDER BY inhrelid) FROM pg_catalog.pg_inherits \
        WHERE inhparent IN (SELECT relation FROM held))";

const INHERITANCE_CHECK: &str = "\
SELECT array_agg(inhrelid ORDER BY inhrelid) IS NOT DISTINCT FROM $2::oid[] \
FROM pg_catalog.pg_inherits WHERE inhparent = ANY ($1::oid[])";

/// The tables that inherited from a query's tables in its snapshot, as the server prints arrays. ATTACH PARTITION and
/// INHERIT do not wait for readers: a part that begins later would read rows that an earlier one has not.
#[derive(Debug)]
pub(super) struct Inheritance {
    pub(super) parents: String,
    pub(super) children: String,
}

impl Inheritance {
    pub(super) fn lookup() -> Step {
        Step::run(INHERITANCE)
    }

    /// Reads the answer to [`Inheritance::lookup`]; `None` where the query has no tables.
    pub(super) fn read(answer: &Answer) -> Option<Self> {
        let [parents, children] = [0, 1].map(|column| answer.cell(0, column).to_owned());
        (!parents.is_empty()).then_some(Self { parents, children })
    }

    /// Ends the transaction; an error where something was attached or detached since. The question comes before the end,
    /// which lets those through who wait to detach, unless the transaction does not see what came later.
    fn end(&self, session: &mut PostgresSession, sees_changes: bool) -> Result<()> {
        let check = Step::run(INHERITANCE_CHECK).bind(&self.parents);
        let check = if self.children.is_empty() { check.bind_null() } else { check.bind(&self.children) };
        let (mut steps, at) = ([check, Step::run("COMMIT")], usize::from(!sees_changes));
        steps.rotate_left(at);
        let answers = session.connection.flight(&steps).inspect_err(|_| session.connection.abandon())?;
        if answers[at].cell(0, 0) == "t" { Ok(()) } else { Err(changed_partitions()) }
    }
}

fn changed_partitions() -> Error {
    Error::operational(
        "a table was attached to one of the query's tables, or detached, while its parts were read",
    )
    .with_sqlstate("40001")
    .with_hint("read again; or read with partition_num=1")
}

/// Whether a session that holds the lock waits for a lock.
const IS_STUCK: &str = "\
SELECT EXISTS (SELECT FROM pg_catalog.pg_locks shared JOIN pg_catalog.pg_locks waiting ON waiting.pid = shared.pid \
    WHERE shared.locktype = 'advisory' AND shared.objsubid = 1 \
      AND shared.classid::int8 << 32 | shared.objid::int8 = $1::int8 AND NOT waiting.granted)";

/// A little longer than the server waits before it looks for a deadlock.
const TIMEOUT: &str = "\
SELECT pg_catalog.set_config('statement_timeout', '0', true), \
       pg_catalog.set_config('lock_timeout', (setting::int + 300)::text, true) \
FROM pg_catalog.pg_settings WHERE name = 'deadlock_timeout'";

/// The advisory lock that the parts of one read share, by its number.
///
/// A deadlock that the server does not see: a part waits for its lock behind another session that waits for the coordinator,
/// and the coordinator waits for the part, but here and not there. When nothing comes, the coordinator waits for this
/// lock for as long as the server takes to look for a deadlock. The server finds a cycle, and lets the part go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeadlockLock(i64);

impl DeadlockLock {
    pub(super) fn of(snapshot: &str) -> Self {
        Self(hash(snapshot).cast_signed())
    }

    /// The statement that a part's session runs to hold it.
    pub(super) fn acquire(self) -> String {
        format!("SELECT pg_catalog.pg_advisory_xact_lock_shared({})", self.0)
    }

    /// Lets those sessions go first that hold the lock and wait for another.
    pub(super) fn resolve(self, session: &mut PostgresSession) -> Result<()> {
        let is_stuck = Step::run(IS_STUCK).bind(&self.0.to_string());
        if session.connection.ask(is_stuck)?.cell(0, 0) != "t" {
            return Ok(());
        }
        let exclusive = format!("SELECT pg_catalog.pg_advisory_xact_lock({})", self.0);
        let steps = [Step::run(SAVEPOINT), Step::run(TIMEOUT), Step::run(exclusive)];
        match session.connection.flight(&steps) {
            Err(error) if !session.connection.is_usable() => Err(error),
            // It does not get the lock, and need not: the server has looked for a deadlock.
            _ => undo_savepoint(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_settings_are_found() {
        let text =
            "((t.k = 3) AND (current_setting('harbour.Berth'::text, true) <> current_setting('a.b'::text)))";
        assert_eq!(setting_names(text).unwrap(), ["harbour.berth", "a.b"]);
        assert_eq!(setting_names("(t.current_setting = 1)").unwrap(), [""; 0]);
        for computed in
            ["current_setting(t.name)", "current_setting(('a.'::text || t.b))", "current_setting(E'a\\b')"]
        {
            assert_eq!(setting_names(computed), None, "{computed}");
        }
    }

    #[test]
    fn every_snapshot_has_a_lock_of_its_own() {
        let locks =
            ["00000003-0000001B-1", "00000003-0000001B-2", "00000004-0000001B-1"].map(DeadlockLock::of);
        assert!(locks[0] != locks[1] && locks[1] != locks[2] && locks[0] != locks[2]);
        assert_eq!(DeadlockLock::of("00000003-0000001B-1"), locks[0]);
    }
}
