//! Rows that take the place of those with the same key.

use longshore_core::{Load, Result};
use longshore_source::staging::{Expected, Step};

use super::table::{NAMING, TargetColumns};
use crate::connection::{TextRow, pipeline};
use crate::dialect::DIALECT;
use crate::session::PostgresSession;

const STAGE: &str = "pg_temp.longshore_stage";

/// The columns of each unique index that can tell all rows apart, and at once.
const UNIQUE: &str = "\
SELECT (SELECT json_agg(a.attname) FROM pg_catalog.pg_attribute a \
        WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])) \
FROM pg_catalog.pg_index i WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate \
AND i.indpred IS NULL AND i.indexprs IS NULL";

/// Whether a table, or a partition of it, has rules, or triggers before rows: they can leave rows out.
const GUARDS: &str = "\
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1) AND c.relhasrules) \
OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal AND t.tgtype & 3 = 3 AND t.tgrelid IN \
(SELECT relid FROM pg_catalog.pg_partition_tree(to_regclass($1)) UNION SELECT to_regclass($1)))";

/// Makes the stage; returns its name and what is to be done at the end.
pub(super) fn begin(session: &mut PostgresSession, load: &Load, name: &str) -> Result<(String, Vec<Step>)> {
    let target = TargetColumns::describe(session, load, name)?;
    must_be_unique(session, load, name)?;
    session.connection.simple(&format!(
        "CREATE TEMPORARY TABLE longshore_stage AS SELECT {} FROM {name} WITH NO DATA",
        target.names()
    ))?;
    // A fresh table's rows lie in the order in which they came.
    let steps = merge(session, load, &target, name, STAGE, "ctid")?;
    Ok((STAGE.to_owned(), steps))
}

fn assignments<'a>(columns: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    columns.into_iter().map(|column| format!("{0} = EXCLUDED.{0}", DIALECT.quoted_name(column))).collect()
}

/// Whether something of the table's could leave a row out.
pub(super) fn is_guarded(session: &mut PostgresSession, name: &str) -> Result<bool> {
    Ok(session.connection.ask(pipeline::Step::run(GUARDS).bind(name))?.cell(0, 0) == "t")
}

/// The steps that move the rows of the table `from` into `name`, whose columns `target` has. Of those with one key the last by
/// `order` stays.
pub(super) fn merge(
    session: &mut PostgresSession,
    load: &Load,
    target: &TargetColumns,
    name: &str,
    from: &str,
    order: &str,
) -> Result<Vec<Step>> {
    let (names, key) = (target.names(), NAMING.list(&load.key));
    let names_of_others = target.columns.iter().map(|column| &column.name);
    let others = assignments(names_of_others.filter(|name| !load.key.contains(name)));
    let guarded = is_guarded(session, name)?;
    // What is updated is counted, what is left alone is not.
    let changes = if others.is_empty() && guarded { assignments(&load.key) } else { others };
    let action =
        if changes.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", changes.join(", ")) };
    let insert = format!(
        "INSERT INTO {name} ({names}) {}SELECT DISTINCT ON ({key}) {names} FROM {from} \
         ORDER BY {key}, {order} DESC ON CONFLICT ({key}) DO {action}",
        target.overriding()
    );
    let count = format!("SELECT count(*) FROM (SELECT DISTINCT {key} FROM {from}) AS keys");
    let expected = if guarded { Expected::Count(count) } else { Expected::Any };
    Ok(vec![Step::Move(insert, expected), Step::Run(format!("DROP TABLE {from}"))])
}

pub(super) fn must_be_unique(session: &mut PostgresSession, load: &Load, name: &str) -> Result<()> {
    let rows = session.connection.ask(pipeline::Step::run(UNIQUE).bind(name))?.rows;
    let columns = |row: &TextRow| serde_json::from_str(row.first()?.as_deref()?).ok();
    NAMING.check_key(load, &load.table, &rows.iter().filter_map(columns).collect::<Vec<_>>())
}
