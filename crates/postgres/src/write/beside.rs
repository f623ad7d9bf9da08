//! A table beside the target, which other sessions see: its name, its columns, and what a crash has left of one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use longshore_core::{Error, Load, Result, Session};

use super::{LONGEST, create, quoted_name};
use crate::connection::pipeline::Step;
use crate::dialect::literal;
use crate::session::PostgresSession;

/// The column that has the rows' numbers, where their order counts.
const ROW: &str = "longshore_row";

/// The target's columns as a new table could have them. A collation is named where it is not the type's own.
const COLUMNS: &str = "\
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

/// A table that has the owner's mark. The name alone could be a user's own table's.
pub(super) struct Beside {
    pub(super) schema: String,
    pub(super) table: String,
    /// The name for statements.
    pub(super) quoted: String,
    mark: String,
}

impl Beside {
    /// A name that no other table has, in `schema`. The session's open transaction is from here on the table's owner.
    pub(super) fn claim(session: &mut PostgresSession, schema: &str, target: &str) -> Result<Self> {
        let table = format!("{}{:08x}", prefix(target), RandomState::new().build_hasher().finish() >> 32);
        let quoted = format!("{}.{}", quoted_name(schema), quoted_name(&table));
        let number = lock(&literal(&format!("{schema}.{table}")));
        let claim = format!("SELECT pg_catalog.pg_try_advisory_xact_lock({number})");
        let answers = session.connection.flight(&[Step::run(claim)])?;
        if answers.first().is_none_or(|answer| answer.cell(0, 0) != "t") {
            return Err(
                Error::operational("another session has a lock of the same number").with_hint("try again")
            );
        }
        Ok(Self { schema: schema.to_owned(), table, quoted, mark: mark(schema, target) })
    }

    /// Removes the tables beside `target` whose owner's transaction has ended: what a crash has left. One that
    /// somebody still uses stays, and so does one of another user's.
    pub(super) fn clear(&self, target: &str, helper: &mut dyn Session) -> Result<()> {
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

    /// Makes a table that will be the target itself.
    pub(super) fn make_new(&self, load: &Load, helper: &mut dyn Session) -> Result<()> {
        self.make(&create::statement(load, &self.quoted)?, helper)
    }

    /// Makes a table of these columns and checks. It is not logged, for its rows do not stay.
    pub(super) fn make_waiting(&self, lines: &[String], helper: &mut dyn Session) -> Result<()> {
        self.make(&format!("CREATE UNLOGGED TABLE {} ({})", self.quoted, lines.join(", ")), helper)
    }

    fn make(&self, statement: &str, helper: &mut dyn Session) -> Result<()> {
        helper.run(&format!("{statement}; {}", self.comment())).map_err(|error| match error.sqlstate() {
            Some("42501") => error.with_hint(
                "parallel makes a table beside the target: get the right to make tables in its schema, or leave \
                 parallel out",
            ),
            _ => error,
        })
    }

    fn comment(&self) -> String {
        format!("COMMENT ON TABLE {} IS {}", self.quoted, literal(&self.mark))
    }

    /// The statement that takes the mark from a table that stays.
    pub(super) fn unmark(&self) -> String {
        format!("COMMENT ON TABLE {} IS NULL", self.quoted)
    }

    /// The statements by which any session removes the table. One whose writers the server still counts as there is
    /// not waited for: the next write finds it.
    pub(super) fn undo(&self) -> String {
        format!("BEGIN; SET LOCAL lock_timeout = '1s'; DROP TABLE IF EXISTS {}; COMMIT", self.quoted)
    }
}

/// The definitions of the columns of `target`, a quoted name, that the load has; with NOT NULL where that `is_strict`.
pub(super) fn columns(
    session: &mut PostgresSession,
    load: &Load,
    target: &str,
    is_strict: bool,
) -> Result<Vec<String>> {
    let answers = session.connection.flight(&[Step::run(COLUMNS).bind(target)])?;
    let rows: Vec<_> = answers.into_iter().flat_map(|answer| answer.rows).collect();
    let definition = |name: &String| {
        let row = rows.iter().find(|row| row.first().is_some_and(|cell| cell.as_ref() == Some(name)))?;
        let cell = |at: usize| row.get(at).and_then(Option::as_deref);
        let collation = cell(3).map_or(String::new(), |collation| format!(" COLLATE {collation}"));
        let not_null = if is_strict && cell(2) == Some("t") { " NOT NULL" } else { "" };
        Some(format!("{} {}{collation}{not_null}", quoted_name(name), cell(1)?))
    };
    Ok(load.schema.fields().iter().filter_map(|field| definition(field.name())).collect())
}

/// The checks of `target`, a quoted name, that look at columns of the load only: so a row that they refuse has its number.
pub(super) fn checks(session: &mut PostgresSession, load: &Load, target: &str) -> Result<Vec<String>> {
    let answers = session.connection.flight(&[Step::run(CHECKS).bind(target)])?;
    let has = |column: &String| load.schema.fields().iter().any(|field| field.name() == column);
    let check = |row: Vec<Option<String>>| {
        let [Some(name), Some(check), Some(columns)] = row.as_slice() else { return None };
        let columns: Vec<String> = serde_json::from_str(columns).ok()?;
        // New rows are held to it, whether or not the old ones were.
        let check = check.strip_suffix(" NOT VALID").unwrap_or(check);
        columns.iter().all(has).then(|| format!("CONSTRAINT {name} {check}"))
    };
    Ok(answers.into_iter().flat_map(|answer| answer.rows).filter_map(check).collect())
}

/// A name for the rows' numbers that no column of the load has.
pub(super) fn row_column(load: &Load) -> String {
    let mut name = ROW.to_owned();
    while load.schema.fields().iter().any(|field| *field.name() == name) {
        name.push('_');
    }
    name
}

/// The number of the lock that a table's owner has, from an expression that is its schema and its name.
fn lock(name: &str) -> String {
    format!("pg_catalog.hashtextextended(({name}) COLLATE \"C\", 0)")
}

fn mark(schema: &str, target: &str) -> String {
    format!("longshore: rows on their way into {}.{}", quoted_name(schema), quoted_name(target))
}

/// What the names of all tables beside `target` begin with.
fn prefix(target: &str) -> String {
    let mut end = target.len().min(LONGEST - "longshore__12345678".len());
    while !target.is_char_boundary(end) {
        end -= 1;
    }
    format!("longshore_{}_", &target[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room() {
        for target in ["t".to_owned(), "x".repeat(63), "é".repeat(31)] {
            assert!(prefix(&target).len() + 8 <= LONGEST, "{target}");
        }
        assert_eq!(prefix("orders"), "longshore_orders_");
    }
}
