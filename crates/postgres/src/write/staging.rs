//! Rows that several sessions copy into a staging table, and how they get into the target: in one transaction, which owns
//! the staging table all the while.

use longshore_core::{Error, Failed, IfExists, Load, Result, Session, Stage, TableName};
use longshore_source::staging::{self as kit, Expected, Staged, Step, UndoLog};

use super::table::{self, NAMING, TargetColumns};
use super::{LONGEST, names_fit, replace, shorten, upsert};
use crate::connection::pipeline;
use crate::dialect::{DIALECT, literal};
use crate::session::PostgresSession;

/// The transaction sees what the others have committed, and may be idle while they copy.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0";

/// The object that a name stands for: its schema, its kind, and whether rules follow an INSERT.
const TARGET: &str = "\
SELECT n.nspname, c.relkind, \
EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type = '3') \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";

/// The object that stands under the target's name.
struct Target {
    schema: String,
    name: String,
    has_rules: bool,
}

/// Begins a write of several sessions, and creates its staging table.
pub(crate) fn open(
    session: Box<PostgresSession>,
    load: &Load,
    helper: &mut dyn Session,
) -> Result<Box<dyn Stage>, Failed> {
    kit::open_stage(session, |session, log| begin(session, load, log, helper))
}

fn begin(
    session: &mut PostgresSession,
    load: &Load,
    log: &mut UndoLog,
    helper: &mut dyn Session,
) -> Result<Staged> {
    names_fit(load)?;
    session.used = true;
    log.begin(session, BEGIN)?;
    table::must_be_postgresql(session)?;
    let target = target(session, &NAMING.table(&load.table))?;
    let (staging, mut steps) = match (target, load.if_exists) {
        (_, IfExists::Fail) => new_table(session, load, None, log, helper)?,
        (target, IfExists::Replace) => new_table(session, load, target, log, helper)?,
        (None, _) => return Err(NAMING.no_table(&load.table)),
        (Some(target), _) => existing_table(session, load, &target, log, helper)?,
    };
    steps.push(Step::Commit);
    let number = (load.if_exists == IfExists::Upsert).then(|| kit::number_column(load));
    Ok(Staged {
        load: kit::staged_load(load, staging.name.clone(), number.as_deref()),
        undo: staging.undo(),
        steps,
    })
}

/// The object that `name`, a quoted one, stands for; `None` for nothing.
fn target(session: &mut PostgresSession, name: &str) -> Result<Option<Target>> {
    let answer = session.connection.ask(pipeline::Step::run(TARGET).bind(name))?;
    if answer.rows.is_empty() {
        return Ok(None);
    }
    let (schema, kind) = (answer.cell(0, 0).to_owned(), answer.cell(0, 1));
    if !["r", "p"].contains(&kind) {
        return Err(Error::not_supported(format!("{name} is not an ordinary table"))
            .with_hint("leave parallel out, or name a table"));
    }
    Ok(Some(Target { name: name.to_owned(), has_rules: answer.cell(0, 2) == "t", schema }))
}

/// A new table, in the place of `old` where there is one.
fn new_table(
    session: &mut PostgresSession,
    load: &Load,
    old: Option<Target>,
    log: &mut UndoLog,
    helper: &mut dyn Session,
) -> Result<(StagingTable, Vec<Step>)> {
    if let Some(old) = &old {
        replace::refuse_dependents(session, load, &old.name)?;
    }
    let takes_place = old.is_some();
    let schema = match old {
        Some(old) => old.schema,
        None => free_schema(session, load)?,
    };
    let staging = StagingTable::claim(session, &schema, &load.table.table, log)?;
    staging.create(&load.table.table, &table::create_statement(load, &staging.quoted)?, helper)?;
    let mut steps = vec![Step::Run(staging.unmark())];
    steps.extend(replace::swap(load, &DIALECT.quoted_name(&schema), &staging.quoted, takes_place));
    Ok((staging, steps))
}

/// The schema that a new table goes into; an error where it has one of that name.
fn free_schema(session: &mut PostgresSession, load: &Load) -> Result<String> {
    let schema = if let Some(schema) = &load.table.schema {
        schema.clone()
    } else {
        session.connection.ask(pipeline::Step::run("SELECT current_schema()"))?.cell(0, 0).to_owned()
    };
    if schema.is_empty() {
        return Err(Error::programming(format!("the new table {} has no schema to go into", load.table))
            .with_sqlstate("3F000")
            .with_hint("name it: \"schema.table\""));
    }
    let name = NAMING.table(&TableName { schema: Some(schema.clone()), ..load.table.clone() });
    if table::exists(session, &name)? {
        return Err(NAMING.already_exists(&load.table));
    }
    Ok(schema)
}

/// Rows that are added to those of `target`, or take their place: all of theirs, or that of those with the same key. Their numbers
/// tell which of equal keys is the last.
fn existing_table(
    session: &mut PostgresSession,
    load: &Load,
    target: &Target,
    log: &mut UndoLog,
    helper: &mut dyn Session,
) -> Result<(StagingTable, Vec<Step>)> {
    let (name, is_upsert) = (&target.name, load.if_exists == IfExists::Upsert);
    let is_emptied = load.if_exists == IfExists::Truncate;
    if target.has_rules && !is_upsert {
        return Err(Error::not_supported(format!(
            "{} has rules, which a COPY does not follow, and an INSERT does",
            load.table
        ))
        .with_hint("leave parallel out"));
    }
    // Its columns are to stay as they are until the rows are there. A session that empties it lets no other begin to.
    let mode = if is_emptied { "SHARE UPDATE EXCLUSIVE" } else { "ROW EXCLUSIVE" };
    session.connection.simple(&format!("LOCK TABLE {name} IN {mode} MODE"))?;
    let columns = TargetColumns::describe(session, load, name)?;
    if is_upsert {
        upsert::must_be_unique(session, load, name)?;
    }
    // A trigger may yet give a row what a check wants.
    let is_plain = !is_upsert && !upsert::is_guarded(session, name)?;
    let mut lines = column_definitions(session, load, name, is_plain)?;
    if is_plain {
        lines.extend(checks(session, load, name)?);
    }
    let staging = StagingTable::claim(session, &target.schema, &load.table.table, log)?;
    let steps = if is_upsert {
        let order = DIALECT.quoted_name(&kit::number_column(load));
        lines.push(format!("{order} bigint NOT NULL"));
        upsert::merge(session, load, &columns, name, &staging.quoted, &order)?
    } else {
        let (from, names, overriding) = (&staging.quoted, columns.names(), columns.overriding());
        let insert = format!("INSERT INTO {name} ({names}) {overriding}SELECT {names} FROM {from}");
        let before = is_emptied.then(|| Step::Run(format!("TRUNCATE {name}")));
        let moves = [Step::Move(insert, Expected::All), Step::Run(format!("DROP TABLE {from}"))];
        before.into_iter().chain(moves).collect()
    };
    // It is not logged, for its rows do not stay.
    let create = format!("CREATE UNLOGGED TABLE {} ({})", staging.quoted, lines.join(", "));
    staging.create(&load.table.table, &create, helper)?;
    Ok((staging, steps))
}

/// The target's columns as a new table could have them. A collation is named where it is not the type's own.
const DEFINITIONS: &str = "\
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, \
(SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(l.collname) \
 FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace \
 WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation) \
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";

/// The checks of the target, each with the columns that it looks at. One without looks at whole rows, or at none.
const CHECKS: &str = "\
SELECT pg_catalog.quote_ident(c.conname), pg_catalog.pg_get_constraintdef(c.oid), \
(SELECT json_agg(a.attname) FROM pg_catalog.pg_attribute a \
 WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) AND a.attnum > 0) \
FROM pg_catalog.pg_constraint c \
WHERE c.conrelid = to_regclass($1) AND c.contype = 'c' AND NOT 0 = ANY (c.conkey)";

/// A table next to the target, which other sessions see and fill. It has its owner's mark: its name alone could be that of
/// a user's own table.
struct StagingTable {
    name: TableName,
    schema: String,
    quoted: String,
    mark: String,
}

impl StagingTable {
    /// A name that no other table has, in `schema`. The session's open transaction is from here on the table's owner.
    fn claim(session: &mut PostgresSession, schema: &str, target: &str, log: &mut UndoLog) -> Result<Self> {
        let name = kit::staging_name(Some(schema.to_owned()), &prefix(target));
        let number = lock(&literal(&name.to_string()));
        let claim = format!("SELECT pg_catalog.pg_try_advisory_xact_lock({number})");
        if session.connection.ask(pipeline::Step::run(claim))?.cell(0, 0) != "t" {
            return Err(
                Error::operational("another session has a lock of the same number").with_hint("try again")
            );
        }
        let quoted = NAMING.table(&name);
        let staging = Self { name, schema: schema.to_owned(), quoted, mark: mark(schema, target) };
        log.on_failure(staging.undo());
        Ok(staging)
    }

    /// Removes the staging tables of `target` whose owner's transaction has ended: what a crash has left. One that is still
    /// in use stays, and so does one of another user's.
    fn drop_abandoned(&self, target: &str, helper: &mut dyn Session) -> Result<()> {
        let (schema, mark, prefix) = (literal(&self.schema), literal(&self.mark), literal(&prefix(target)));
        let lock = lock("n.nspname || '.' || c.relname");
        helper.run(&format!(
            "DO $do$ DECLARE name text; number bigint; BEGIN FOR name, number IN \
             SELECT format('%I.%I', n.nspname, c.relname), {lock} FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = {schema} AND c.relkind = 'r' AND starts_with(c.relname, {prefix}) \
             AND pg_catalog.obj_description(c.oid, 'pg_class') = {mark} \
             LOOP IF pg_catalog.pg_try_advisory_xact_lock(number) THEN \
             BEGIN EXECUTE 'LOCK TABLE ' || name || ' IN ACCESS EXCLUSIVE MODE NOWAIT'; \
             EXECUTE 'DROP TABLE ' || name; \
             EXCEPTION WHEN lock_not_available OR insufficient_privilege OR undefined_table THEN NULL; END; \
             END IF; END LOOP; END $do$"
        ))
    }

    /// Creates the table by `statement`, once those of `target` that a crash has left are gone.
    fn create(&self, target: &str, statement: &str, helper: &mut dyn Session) -> Result<()> {
        self.drop_abandoned(target, helper)?;
        helper.run(&format!("{statement}; {}", self.comment())).map_err(|error| match error.sqlstate() {
            Some("42501") => error.with_hint(
                "parallel makes a table next to the target: get the right to make tables in its schema, or leave \
                 parallel out",
            ),
            _ => error,
        })
    }

    fn comment(&self) -> String {
        format!("COMMENT ON TABLE {} IS {}", self.quoted, literal(&self.mark))
    }

    /// The statement that takes the mark from a table that stays.
    fn unmark(&self) -> String {
        format!("COMMENT ON TABLE {} IS NULL", self.quoted)
    }

    /// The statements by which any session removes the table. One whose writers the server still counts as there is
    /// not waited for: the next write finds it.
    fn undo(&self) -> String {
        format!("BEGIN; SET LOCAL lock_timeout = '1s'; DROP TABLE IF EXISTS {}; COMMIT", self.quoted)
    }
}

/// The definitions of the columns of `target`, a quoted name, that the load has; with NOT NULL where that `is_strict`.
fn column_definitions(
    session: &mut PostgresSession,
    load: &Load,
    target: &str,
    is_strict: bool,
) -> Result<Vec<String>> {
    let rows = session.connection.ask(pipeline::Step::run(DEFINITIONS).bind(target))?.rows;
    let definition = |name: &String| {
        let row = rows.iter().find(|row| row.first().is_some_and(|cell| cell.as_ref() == Some(name)))?;
        let cell = |at: usize| row.get(at).and_then(Option::as_deref);
        let collation = cell(3).map_or(String::new(), |collation| format!(" COLLATE {collation}"));
        let not_null = if is_strict && cell(2) == Some("t") { " NOT NULL" } else { "" };
        Some(format!("{} {}{collation}{not_null}", DIALECT.quoted_name(name), cell(1)?))
    };
    Ok(load.schema.fields().iter().filter_map(|field| definition(field.name())).collect())
}

/// The checks of `target`, a quoted name, that look at columns of the load only: so a row that they refuse has its number.
fn checks(session: &mut PostgresSession, load: &Load, target: &str) -> Result<Vec<String>> {
    let answer = session.connection.ask(pipeline::Step::run(CHECKS).bind(target))?;
    let has = |column: &String| load.schema.fields().iter().any(|field| field.name() == column);
    let check = |row: Vec<Option<String>>| {
        let [Some(name), Some(check), Some(columns)] = row.as_slice() else { return None };
        let columns: Vec<String> = serde_json::from_str(columns).ok()?;
        // New rows are held to it, whether or not the old ones were.
        let check = check.strip_suffix(" NOT VALID").unwrap_or(check);
        columns.iter().all(has).then(|| format!("CONSTRAINT {name} {check}"))
    };
    Ok(answer.rows.into_iter().filter_map(check).collect())
}

/// The number of the lock that a table's owner has, from an expression that is its schema and its name.
fn lock(name: &str) -> String {
    format!("pg_catalog.hashtextextended(({name}) COLLATE \"C\", 0)")
}

fn mark(schema: &str, target: &str) -> String {
    format!(
        "longshore: rows on their way into {}.{}",
        DIALECT.quoted_name(schema),
        DIALECT.quoted_name(target)
    )
}

/// The beginning of the names of all staging tables for `target`.
fn prefix(target: &str) -> String {
    format!("longshore_{}_", shorten(target, LONGEST - "longshore__12345678".len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit() {
        for target in ["t".to_owned(), "x".repeat(63), "é".repeat(31)] {
            assert!(prefix(&target).len() + 8 <= LONGEST, "{target}");
        }
        assert_eq!(prefix("orders"), "longshore_orders_");
    }
}
