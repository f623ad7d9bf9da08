//! A new table in the place of an old one.

use longshore_core::{Error, Load, Result};
use longshore_source::staging::Step;

use super::{LONGEST, shorten, table};
use crate::connection::pipeline;
use crate::dialect::{DIALECT, literal};
use crate::session::PostgresSession;

/// The objects that depend on a table but do not go with it: views, foreign keys, and the table of which it is a partition.
const DEPENDENTS: &str = "\
SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) \
FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = to_regclass($1) \
AND d.deptype = 'n' AND d.classid = 'pg_constraint'::regclass \
AND (SELECT conrelid FROM pg_catalog.pg_constraint c WHERE c.oid = d.objid) <> to_regclass($1) \
UNION SELECT DISTINCT pg_describe_object('pg_class'::regclass, r.ev_class, 0) \
FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid \
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass \
AND d.refobjid = to_regclass($1) AND r.ev_class <> to_regclass($1) \
UNION SELECT DISTINCT pg_describe_object('pg_class'::regclass, inhparent, 0) \
FROM pg_catalog.pg_inherits WHERE inhrelid = to_regclass($1) \
ORDER BY 1";

/// Makes the new table; returns its name and what is to be done at the end.
pub(super) fn begin(session: &mut PostgresSession, load: &Load, name: &str) -> Result<(String, Vec<Step>)> {
    if !table::exists(session, name)? {
        return Ok((name.to_owned(), table::create(session, load, name)?));
    }
    refuse_dependents(session, load, name)?;
    let new = format!("longshore_{}_new", shorten(&load.table.table, LONGEST - "longshore__new".len()));
    // Next to the old one, wherever the search path has found that.
    let schema = session.connection.ask(
        pipeline::Step::run(
            "SELECT quote_ident(n.nspname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
         ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
        )
        .bind(name),
    )?;
    let schema = schema.cell(0, 0);
    let into = format!("{schema}.{}", DIALECT.quoted_name(&new));
    table::run_alone(session, &table::create_statement(load, &into)?)?;
    let steps = swap(load, schema, &into, true);
    Ok((into, steps))
}

/// The steps that make `new`, which is in the quoted `schema`, the load's table, in the place of one that is there or not.
pub(super) fn swap(load: &Load, schema: &str, new: &str, takes_place: bool) -> Vec<Step> {
    let name = DIALECT.quoted_name(&load.table.table);
    let table = format!("{schema}.{name}");
    let mut steps: Vec<Step> = table::primary_key(load, new).into_iter().map(Step::Run).collect();
    if takes_place {
        steps.push(Step::Run(format!("DROP TABLE {table}")));
    }
    steps.push(Step::Run(format!("ALTER TABLE {new} RENAME TO {name}")));
    if !load.key.is_empty() {
        steps.push(Step::Run(key_name(&literal(&table))));
    }
    steps
}

/// The statement that gives the primary key of `table`, a literal, the name that it would have had in a table of its own,
/// where that is free.
fn key_name(table: &str) -> String {
    format!(
        "DO $do$ DECLARE name text; own text; BEGIN \
         SELECT left(c.relname, {LONGEST} - 5) || '_pkey', k.conname INTO name, own \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p' \
         WHERE c.oid = to_regclass({table}); \
         IF NOT EXISTS (SELECT FROM pg_catalog.pg_class i, pg_catalog.pg_class c WHERE c.oid = to_regclass({table}) \
         AND i.relnamespace = c.relnamespace AND i.relname = name) THEN \
         EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', {table}, own, name); END IF; END $do$"
    )
}

pub(super) fn refuse_dependents(session: &mut PostgresSession, load: &Load, name: &str) -> Result<()> {
    let rows = session.connection.ask(pipeline::Step::run(DEPENDENTS).bind(name))?.rows;
    let dependents: Vec<String> =
        rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    if dependents.is_empty() {
        return Ok(());
    }
    Err(Error::programming(format!(
        "{} cannot be replaced: {} depends on it",
        load.table,
        dependents.join(", ")
    ))
    .with_sqlstate("2BP01")
    .with_hint(
        "if_exists=\"truncate\" replaces the rows and keeps the table; or drop what depends on it first",
    ))
}
