//! The coordinator's transaction: the tables are locked first, then the snapshot is taken, then anything is measured.
//!
//! In READ COMMITTED each statement has a snapshot of its own, taken when its locks are there. A TRUNCATE, an ALTER
//! TABLE or a VACUUM FULL that we had to wait for is thus in the snapshot that is exported, and none can come after.

use longshore_core::{Error, Query, Result};
use longshore_source::NotSplit;
use longshore_source::sql::OneTable;

use super::coordinator::{Inheritance, Settings};
use super::plan::{Plan, ROLLBACK_TO_SAVEPOINT, Relation, SAVEPOINT, Statement};
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{one_table, text_array};
use crate::session::PostgresSession;

/// How often a snapshot is taken, when a partition comes or goes meanwhile.
const ATTEMPTS: usize = 3;

const BEGIN_READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY";

/// The state that further sessions would not have: temporary objects, and settings by SET, SET ROLE or SET SESSION
/// AUTHORIZATION, but for those that are set for this very read. An application's name changes no value; BEGIN sets the
/// other two.
const SESSION_STATE: &str = "\
SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()) \
    OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE typnamespace = pg_catalog.pg_my_temp_schema()) \
    OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace = pg_catalog.pg_my_temp_schema()), \
    EXISTS (SELECT FROM pg_catalog.pg_settings WHERE source = 'session' \
            AND setting IS DISTINCT FROM reset_val \
            AND name NOT IN ('application_name', 'transaction_isolation', 'transaction_read_only') \
            AND pg_catalog.lower(name) <> ALL ($1::text[])) \
    OR 'role' <> ALL ($1::text[]) AND current_user <> session_user \
    OR 'session_authorization' <> ALL ($1::text[]) AND session_user <> ( \
        SELECT usename FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid())";

/// The coordinator is idle while the others read; and parts have no parallel workers, so its plans have none.
const SETTINGS: &str = "\
SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true), \
       pg_catalog.set_config('max_parallel_workers_per_gather', '0', true)";

/// Settings for a plan that shows what the query means: all conditions stand on the scan of their table, a Limit is the
/// query's own and not a `min()` that reads an index, and a Unique is a DISTINCT ON.
const BARE_PLANS: &str = "\
SELECT pg_catalog.set_config('enable_seqscan', 'on', true), pg_catalog.set_config('enable_indexscan', 'off', true), \
       pg_catalog.set_config('enable_indexonlyscan', 'off', true), \
       pg_catalog.set_config('enable_bitmapscan', 'off', true), \
       pg_catalog.set_config('enable_hashagg', 'on', true), pg_catalog.set_config('enable_sort', 'off', true)";

const EXPORT: &str = "SELECT pg_catalog.pg_export_snapshot()";

/// The table of a query over one.
const TABLE: &str = "\
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity, \
       pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int8 \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE c.oid = pg_catalog.to_regclass($1)";

/// A snapshot, the queries that are read in it, and what was measured in it.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) queries: Vec<Explained>,
    /// The name by which other sessions join it; `None` where the caller wants none.
    pub(super) exported: Option<String>,
    pub(super) inheritance: Option<Inheritance>,
    /// The settings that the coordinator has set.
    pub(super) settings: Settings,
    /// The table of the only query, where it has one table.
    pub(super) table: Option<Table>,
}

/// A query and its plans.
#[derive(Debug)]
pub(super) struct Explained {
    pub(super) statement: Statement,
    /// Its columns; empty among several queries.
    pub(super) columns: Vec<Described>,
    /// As the server would run it.
    pub(super) plan: Plan,
    /// As [`BARE_PLANS`] shows it.
    pub(super) bare: Plan,
}

/// A table of the catalogue.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) oid: u32,
    pub(super) relation: Relation,
    /// `relkind`: r, p, v, m, f.
    pub(super) kind: String,
    pub(super) has_row_security: bool,
    pub(super) blocks: u64,
}

/// Begins a transaction in which the tables of `queries` stay as they are, and exports its snapshot where
/// `export` says so. Leaves the transaction open.
pub(super) fn take(
    session: &mut PostgresSession,
    queries: &[Query],
    export: bool,
) -> Result<Snapshot, NotSplit> {
    for _ in 0..ATTEMPTS {
        let statements = queries.iter().map(Statement::of).collect::<Result<Vec<_>, _>>()?;
        if let Some(snapshot) = attempt(session, statements, export)? {
            return Ok(snapshot);
        }
        session.connection.simple("ROLLBACK")?;
    }
    Err(NotSplit::because("partitions come and go"))
}

/// One attempt; `None` where a partition came or went before the snapshot.
fn attempt(
    session: &mut PostgresSession,
    mut statements: Vec<Statement>,
    export: bool,
) -> Result<Option<Snapshot>, NotSplit> {
    let mut opening = opening(session, &statements);
    let mut columns = Vec::new();
    if statements.iter().any(|statement| statement.has_parameters) {
        let described = session.connection.flight(&opening)?;
        columns = read_opening(session, described)?;
        for (statement, (types, _)) in statements.iter_mut().zip(&columns) {
            statement.bind(session, types.clone())?;
        }
        opening.clear();
    }
    let sent = opening.len();
    opening.extend(measuring(&statements, export));
    let mut answers = session.connection.flight(&opening)?;
    let measured = answers.split_off(sent);
    if sent > 0 {
        columns = read_opening(session, answers)?;
    }
    let columns = columns.into_iter().map(|(_, columns)| columns).collect();
    read_measured(statements, columns, export, measured)
}

/// The state that [`SESSION_STATE`] has found.
fn unshared_state(answer: &Answer) -> Option<&'static str> {
    let is = |index: usize| answer.cell(0, index) == "t";
    match (is(0), is(1)) {
        (true, _) => Some("temporary tables of this session"),
        (_, true) => Some("settings of this session (SET)"),
        _ => None,
    }
}

/// The state of this session, in which no transaction is open, that others would not have.
pub(crate) fn private_state(session: &mut PostgresSession) -> Result<Option<&'static str>> {
    if !session.used {
        return Ok(None);
    }
    let set = session.setup.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    let state = Step::run(SESSION_STATE).bind(&text_array(&set));
    session.connection.ask(state).map(|answer| unshared_state(&answer))
}

/// The steps that begin; the last are a description for each statement that needs one.
fn opening(session: &PostgresSession, statements: &[Statement]) -> Vec<Step> {
    let mut steps = vec![Step::run(BEGIN_READ_COMMITTED)];
    if session.used {
        let set = session.setup.iter().flatten().map(String::as_str).collect::<Vec<_>>();
        steps.push(Step::run(SESSION_STATE).bind(&text_array(&set)));
    }
    steps.push(Step::run(SETTINGS));
    if statements.len() == 1 || statements.iter().any(|statement| statement.has_parameters) {
        steps.extend(statements.iter().map(|statement| statement.description(statement.text.as_str())));
    }
    steps
}

/// Of each statement that was described, the types of its parameters and its columns.
type Descriptions = Vec<(Vec<u32>, Vec<Described>)>;

fn read_opening(session: &PostgresSession, answers: Vec<Answer>) -> Result<Descriptions, NotSplit> {
    if session.used {
        unshared_state(&answers[1]).map_or(Ok(()), |what| Err(NotSplit::because(what)))?;
    }
    let described = answers.into_iter().filter_map(|answer| answer.prepared);
    described
        .map(|prepared| match prepared.columns {
            Some(columns) => Ok((prepared.parameters, columns)),
            None => Err(NotSplit::because("it returns no rows")),
        })
        .collect()
}

/// The steps that lock, take the snapshot and measure, in this order.
fn measuring(statements: &[Statement], export: bool) -> Vec<Step> {
    let explain = |statement: &Statement| statement.explanation(&statement.text);
    let mut steps: Vec<Step> = statements.iter().map(explain).collect();
    steps.push(Inheritance::lookup());
    steps.push(Settings::lookup());
    if export {
        steps.push(Step::run(EXPORT));
    }
    // What the subtransaction sets goes with it; all locks that it could take are taken.
    steps.push(Step::run(SAVEPOINT));
    steps.push(Step::run(BARE_PLANS));
    steps.extend(statements.iter().map(explain));
    steps.push(Step::run(ROLLBACK_TO_SAVEPOINT));
    if let Some(table) = only_table(statements) {
        steps.push(Step::run(TABLE).bind(table.name()));
    }
    steps
}

fn only_table(statements: &[Statement]) -> Option<OneTable<'_>> {
    let [statement] = statements else { return None };
    one_table(&statement.text)
}

fn read_measured(
    statements: Vec<Statement>,
    columns: Vec<Vec<Described>>,
    export: bool,
    answers: Vec<Answer>,
) -> Result<Option<Snapshot>, NotSplit> {
    let has_table = only_table(&statements).is_some();
    let mut answers = answers.into_iter();
    let plans = read_plans(answers.by_ref().take(statements.len()))?;
    let inheritance = answers.next().and_then(|answer| Inheritance::read(&answer));
    let settings = Settings::read(&answers.next().unwrap_or_default());
    let exported =
        answers.by_ref().take(usize::from(export)).map(|answer| answer.cell(0, 0).to_owned()).next();
    let bare = read_plans(answers.by_ref().skip(2).take(statements.len()))?;
    let table = answers.nth(1).filter(|_| has_table).and_then(|answer| read_table(&answer));
    // A partition may be attached without a wait for us: what follows must be about the very same tables.
    if plans.iter().zip(&bare).any(|(plan, bare)| plan.relations() != bare.relations()) {
        return Ok(None);
    }
    let mut columns = columns.into_iter();
    let both = plans.into_iter().zip(bare);
    let queries = statements.into_iter().zip(both).map(|(statement, (plan, bare))| Explained {
        statement,
        columns: columns.next().unwrap_or_default(),
        plan,
        bare,
    });
    Ok(Some(Snapshot { queries: queries.collect(), exported, inheritance, settings, table }))
}

fn read_plans(answers: impl Iterator<Item = Answer>) -> Result<Vec<Plan>, NotSplit> {
    answers.map(|answer| Plan::read(&answer)).collect()
}

fn read_table(answer: &Answer) -> Option<Table> {
    let cell = |index: usize| answer.cell(0, index);
    Some(Table {
        oid: cell(0).parse().ok()?,
        relation: Relation { schema: cell(1).to_owned(), name: cell(2).to_owned() },
        kind: cell(3).to_owned(),
        has_row_security: cell(4) == "t",
        blocks: cell(5).parse().ok()?,
    })
}

pub(super) const BEGIN_REPEATABLE_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// How often its transaction is begun.
const LOCK_ATTEMPTS: usize = 10;

/// Whether a table that this transaction has locked is not the one that its snapshot shows. The function looks at the
/// catalogue as it is now. Below 16384 are the catalogue's own.
const REWRITTEN: &str = "\
WITH held AS ( \
    SELECT DISTINCT relation FROM pg_catalog.pg_locks \
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation >= 16384) \
SELECT EXISTS (SELECT FROM held LEFT JOIN pg_catalog.pg_class c ON c.oid = held.relation \
    WHERE c.oid IS NULL \
       OR c.relkind IN ('r', 'm') AND c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid))";

/// Begins a transaction in whose snapshot one session reads `queries` one after the other, each table of theirs as it
/// stays until the end.
///
/// The snapshot is older than the later queries' locks. What is rewritten in between (TRUNCATE, VACUUM FULL) looks empty
/// to it: so all are locked first, and where a table has other files by then than the snapshot knows, it begins again.
pub(crate) fn begin_together(session: &mut PostgresSession, queries: &[Query]) -> Result<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock_tables(session, queries) {
            Ok(false) => return Ok(()),
            Ok(true) => session.connection.simple("ROLLBACK")?,
            Err(NotSplit::Failed(error)) => return Err(error),
            // The query itself meets the same, and tells it better.
            Err(_) => {
                session.connection.simple("ROLLBACK")?;
                return session.connection.simple(BEGIN_REPEATABLE_READ);
            }
        }
    }
    Err(Error::operational("the queries' tables are rewritten again and again while they are locked")
        .with_sqlstate("40001")
        .with_hint("read again; or give each query a snapshot of its own: options={\"snapshot\": False}"))
}

/// Begins, and tells whether a table was rewritten meanwhile.
fn lock_tables(session: &mut PostgresSession, queries: &[Query]) -> Result<bool, NotSplit> {
    // What cannot be explained has no tables to lock before it runs.
    let mut statements: Vec<Statement> =
        queries.iter().filter_map(|query| Statement::parse(query).ok()).collect();
    let mut steps = vec![Step::run(BEGIN_REPEATABLE_READ)];
    for statement in &mut statements {
        if statement.has_parameters {
            statement.describe_and_bind(session, Vec::new())?;
        }
        steps.push(statement.explanation(&statement.text));
    }
    steps.push(Step::run(REWRITTEN));
    let answers = session.connection.flight(&steps)?;
    Ok(answers.last().is_some_and(|answer| answer.cell(0, 0) == "t"))
}
