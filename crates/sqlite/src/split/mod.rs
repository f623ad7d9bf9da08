//! How one read becomes several: disjoint parts that together are the query, all in one snapshot.

mod keys;
mod rowids;
mod snapshot;

use longshore_core::{
    Error, NATIVE_TYPE, Parts, Query, ReadOptions, Result, Session as _, Split, SplitPlan, Transaction,
};
use longshore_source::NotSplit;
use longshore_source::split::{most_sessions, sessions_for};
use longshore_source::sql::Kind;

use crate::dialect::{calls, literal, one_table, tokens};
use crate::session::SqliteSession;
use crate::types::Plan;

pub(crate) use snapshot::join;

fn serial<T>(reason: impl Into<String>) -> Result<T, NotSplit> {
    Err(NotSplit::Reason(reason.into()))
}

/// Divides `queries` as [`longshore_core::Session::split`] says. With parts in one snapshot, the session is left in the
/// transaction that keeps it; otherwise in none.
pub(crate) fn split(
    session: &mut SqliteSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<SplitPlan> {
    if session.transaction() != Transaction::None {
        return Ok(SplitPlan::Serial("an open transaction".into()));
    }
    let divided = divide(session, queries, split, options);
    if divided.is_err() || !options.snapshot {
        session.rollback()?;
    }
    divided.map_or_else(NotSplit::into_plan, |parts| Ok(SplitPlan::Parts(parts)))
}

fn divide(
    session: &mut SqliteSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, NotSplit> {
    let most = most_sessions(queries, split)?;
    // First, for most reads are small and ask for no parts.
    let number =
        if split.number.is_none() && queries.len() == 1 { sessions_for(bytes(session)?, most) } else { most };
    if number < 2 {
        return Err(NotSplit::Small);
    }
    refuse_session(session)?;
    // The parts are planned in the snapshot that they will see.
    let snapshot = snapshot::export(session)?;
    let plans = queries.iter().map(|query| plans(session, query, options)).collect::<Result<Vec<_>, _>>()?;
    let queries: Vec<Query> = match (queries, plans.first()) {
        ([query], Some(plans)) => {
            let texts = texts(session, query, plans, split, number)?;
            if split.number.is_none() && split.on.is_none() {
                refuse_other_order(session, query, &texts)?;
            }
            refuse_other_columns(session, query, &texts, plans, options)?;
            texts.into_iter().map(|text| Query { text, params: query.params.clone() }).collect()
        }
        _ => queries.to_vec(),
    };
    if queries.len() < 2 {
        return Err(NotSplit::Small);
    }
    let snapshot = options.snapshot.then_some(snapshot);
    Ok(Parts { sessions: number.min(queries.len()), queries, snapshot })
}

/// Refuses a session that has what further ones would not see.
fn refuse_session(session: &SqliteSession) -> Result<(), NotSplit> {
    if session.settings.file.is_none() {
        return serial("a database in memory belongs to one connection");
    }
    if session.settings.open.name.contains("cache=shared") {
        return serial("connections with cache=shared wait for each other");
    }
    if session.has_own_settings {
        return serial("settings made by PRAGMA");
    }
    for (text, reason) in [
        ("SELECT EXISTS (SELECT 1 FROM sqlite_temp_schema)", "temporary tables"),
        (
            "SELECT EXISTS (SELECT 1 FROM pragma_database_list WHERE name NOT IN ('main', 'temp'))",
            "attached databases",
        ),
        ("SELECT locking_mode <> 'normal' FROM pragma_locking_mode", "locking_mode is exclusive"),
    ] {
        if session.query(text, |row| row.is_true(0))?.contains(&true) {
            return serial(reason);
        }
    }
    Ok(())
}

fn plans(session: &SqliteSession, query: &Query, options: &ReadOptions) -> Result<Vec<Plan>, NotSplit> {
    let statement = session.prepare(query)?;
    if !statement.is_read_only() {
        return serial("the statement writes");
    }
    let plans = session.plans(&statement, &query.text, options)?;
    match plans.iter().find(|plan| plan.is_open()) {
        Some(open) => serial(format!(
            "column {:?} has no declared type, and a stream needs one: give schema=",
            open.field.name()
        )),
        None => Ok(plans),
    }
}

/// The texts of the parts.
fn texts(
    session: &SqliteSession,
    query: &Query,
    plans: &[Plan],
    split: &Split,
    number: usize,
) -> Result<Vec<String>, NotSplit> {
    if let Some(reason) = volatile_reason(session, &query.text, split.on.is_some())? {
        return serial(reason);
    }
    let Some(on) = &split.on else {
        let Some(table) = one_table(&query.text) else {
            return serial("it is not a plain SELECT over one table: give partition_on");
        };
        let conditions = rowids::conditions(session, &table, number)?.or_else(serial)?;
        return Ok(conditions.iter().map(|condition| table.over(table.table(), Some(condition))).collect());
    };
    let Some(key) = plans.iter().find(|plan| plan.field.name() == on) else {
        let known: Vec<&str> = plans.iter().map(|plan| plan.field.name().as_str()).collect();
        return Err(Error::unknown_column("partition_on", on, &known).into());
    };
    for (index, plan) in plans.iter().enumerate() {
        let name = plan.field.name();
        if plans[..index].iter().any(|other| other.field.name().eq_ignore_ascii_case(name)) {
            return serial(format!("two columns have the name {name:?}"));
        }
    }
    // INT in the declared type means INTEGER affinity (sqlite.org/datatype3.html, section 3.1); in a compound, each
    // SELECT would have its own.
    let declared = key.field.metadata().get(NATIVE_TYPE).map(|native| native.to_ascii_uppercase());
    let is_whole_number =
        declared.is_some_and(|declared| declared.contains("INT")) && one_table(&query.text).is_some();
    Ok(keys::parts(session, &query.text, split, on, is_whole_number, &query.params, number)?)
}

/// A part must have the columns that the whole has.
fn refuse_other_columns(
    session: &SqliteSession,
    query: &Query,
    texts: &[String],
    plans: &[Plan],
    options: &ReadOptions,
) -> Result<(), NotSplit> {
    let Some(text) = texts.first() else { return Ok(()) };
    let part = Query { text: text.clone(), params: query.params.clone() };
    let statement = session.prepare(&part)?;
    let parts = session.plans(&statement, text, options)?;
    let is_same = |(a, b): (&Plan, &Plan)| {
        a.class == b.class
            && a.read_as == b.read_as
            && a.field.name() == b.field.name()
            && a.field.metadata() == b.field.metadata()
    };
    if parts.len() == plans.len() && parts.iter().zip(plans).all(is_same) {
        return Ok(());
    }
    serial("the parts would have other columns than the whole")
}

/// Where the source chooses, an index that serves the whole query must go on to serve it, and the rows come in the order in
/// which one session reads them: that of a scan.
fn refuse_other_order(session: &SqliteSession, query: &Query, texts: &[String]) -> Result<(), NotSplit> {
    let is_scan = |step: &String| step.starts_with("SCAN ") && !step.contains(" USING ");
    let is_range = |step: &String| step.contains(" USING INTEGER PRIMARY KEY (");
    let is_alone = |text: &str, wanted: &dyn Fn(&String) -> bool| {
        // What SQLite does, step by step (sqlite.org/eqp.html).
        let explained = Query { text: format!("EXPLAIN QUERY PLAN {text}"), params: query.params.clone() };
        let steps = session.query_with(&explained, |row| row.text(3))?;
        Ok::<_, Error>(steps.len() == 1 && steps.iter().all(wanted))
    };
    let Some(part) = texts.first() else { return Ok(()) };
    let reversed = session.query("PRAGMA reverse_unordered_selects", |row| row.is_true(0))?;
    if reversed == [false] && is_alone(&query.text, &is_scan)? && is_alone(part, &is_range)? {
        return Ok(());
    }
    Err(NotSplit::Small)
}

/// How large the file is.
fn bytes(session: &SqliteSession) -> Result<u64> {
    let size = session
        .query("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", |row| {
            row.integer(0)
        })?;
    Ok(size.first().copied().flatten().and_then(|size| size.try_into().ok()).unwrap_or_default())
}

/// Functions that may read the clock, whatever SQLite says of them.
const CLOCK: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];

/// Aggregates whose result does not depend on the order of the rows.
const ORDERLESS: &[&str] = &["count", "min", "max"];

/// Words that make a result depend on the order of rows or on the clock, wherever they stand.
const WORDS: &[&str] = &["limit", "offset", "over", "current_date", "current_time", "current_timestamp"];

/// `SQLITE_DETERMINISTIC` (`sqlite.org/c3ref/c_deterministic.html`).
const DETERMINISTIC: i64 = 0x800;

/// Why `text` cannot be read in parts. `is_whole` tells that each part runs it as a whole and takes some of its rows.
pub(super) fn volatile_reason(session: &SqliteSession, text: &str, is_whole: bool) -> Result<Option<String>> {
    let tokens = tokens(text);
    let word = tokens
        .iter()
        .filter(|token| token.kind == Kind::Word)
        .find(|token| WORDS.iter().any(|word| token.is_word(word)));
    if let Some(word) = word {
        return Ok(Some(format!("{} may differ from part to part", word.text.to_uppercase())));
    }
    for name in calls(text) {
        if CLOCK.contains(&name.as_str()) {
            return Ok(Some(format!("{name}() may read the clock")));
        }
        let text = format!("SELECT type, flags FROM pragma_function_list WHERE name = {}", literal(&name));
        let kinds = session.query(&text, |row| (row.text(0), row.integer(1).unwrap_or_default()))?;
        let refusal = |(kind, flags): (String, i64)| refusal(&name, &kind, flags, is_whole);
        if let Some(reason) = kinds.into_iter().find_map(refusal) {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn refusal(name: &str, kind: &str, flags: i64, is_whole: bool) -> Option<String> {
    match kind {
        "s" if flags & DETERMINISTIC == 0 => Some(format!("{name}() may differ from part to part")),
        "s" => None,
        _ if is_whole && ORDERLESS.contains(&name) => None,
        _ if is_whole => Some(format!("{name}() may depend on the order of the rows")),
        _ => Some(format!("{name}() looks at all rows together")),
    }
}
