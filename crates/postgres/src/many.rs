//! One statement with many sets of parameters: pipelined, or an INSERT by arrays where the outcome is the same.

use std::iter;

use longshore_core::{ParameterSets, Result};
use longshore_source::sql::{PlainInsert, positional_sets};

use crate::dialect::DIALECT;
use crate::encode;
use crate::session::{PostgresSession, several};

/// Fewer rows are not worth the question whether arrays may carry them.
const FEW: usize = 16;

/// The bytes of one message's arrays.
const ENOUGH: usize = 256 << 10;

/// The pieces of sets that are sent before the server's word on them is heard.
const UNHEARD: usize = 8;

/// The types of arrays of the parameters' types, if one INSERT of all rows does what an INSERT of each would.
///
/// Not so where what the table's owner has written could see the rows before, or how many statements there are: rules,
/// triggers, policies, functions in defaults, checks and indexes, and a foreign key to the table itself. Nor for columns of
/// domains, composites and arrays of the user's types, even where they get no value, and for arrays of arrays.
const ARRAYS: &str = "SELECT t.typarray::text \
     FROM pg_catalog.unnest('{OIDS}'::pg_catalog.oid[]) WITH ORDINALITY AS p (oid, place) \
     JOIN pg_catalog.pg_type AS t ON t.oid = p.oid \
     WHERE t.typtype IN ('b', 'e') AND t.typcategory <> 'A' AND t.typarray <> 0 AND t.typdelim = ',' \
     AND EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass($1) \
     AND c.relkind = 'r' AND NOT c.relhasrules AND NOT c.relrowsecurity \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal) \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS m JOIN pg_catalog.pg_type AS y ON y.oid = m.atttypid \
     WHERE m.attrelid = c.oid AND (y.typtype NOT IN ('b', 'e') OR y.typcategory = 'A' AND y.typelem >= 16384)) \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_attrdef AS f WHERE f.adrelid = c.oid \
     AND pg_catalog.pg_get_expr(f.adbin, f.adrelid) LIKE '%statement_timestamp%') \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k \
     WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid = c.oid) \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d \
     WHERE d.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass) AND (d.classid, d.objid) IN ( \
     SELECT 'pg_catalog.pg_attrdef'::regclass, a.oid FROM pg_catalog.pg_attrdef AS a WHERE a.adrelid = c.oid \
     UNION ALL SELECT 'pg_catalog.pg_constraint'::regclass, k.oid FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid \
     UNION ALL SELECT 'pg_catalog.pg_class'::regclass, i.indexrelid FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid))) \
     ORDER BY p.place";

/// Runs `text` with each set of parameters; returns how many rows all of them concerned.
pub(crate) fn execute_many(
    session: &mut PostgresSession,
    text: &str,
    sets: &mut ParameterSets<'_>,
) -> Result<Option<u64>> {
    let Some(first) = sets.next().transpose()? else { return Ok(Some(0)) };
    let (statement, _) = positional_sets(&DIALECT, text, &first)?;
    let prepared =
        session.prepare(&statement.text).map_err(|error| statement.restore_position(several(error)))?;
    let types = session.types_of(&prepared.parameters);
    session.catalogue.forget_all();
    session.used = true;
    let arrays = match Insert::parse(&statement.text, types.len()).filter(|_| first.len() >= FEW) {
        Some(insert) => by_arrays(session, &insert, &prepared.parameters)?,
        None => false,
    };
    let mut count = Some(0);
    for (at, sets) in iter::once(Ok(first.clone())).chain(sets).enumerate() {
        let sets = sets?;
        let (_, rows) = positional_sets(&DIALECT, text, &sets)?;
        let rows = rows.iter().map(|values| encode::parameters(values, &types));
        if arrays {
            insert_arrays(session, rows, types.len())?;
            // Now and then it is heard whether all goes well.
            if at % UNHEARD == UNHEARD - 1 {
                count = session.connection.finish_executions(count)?;
            }
        } else {
            let executed = session.connection.execute_each(rows);
            let executed = executed.map_err(|error| statement.restore_position(error))?;
            count = count.zip(executed).map(|(count, executed)| count + executed);
        }
    }
    if arrays { session.connection.finish_executions(count) } else { Ok(count) }
}

/// Prepares `insert` where arrays may carry its rows; whether they may. Otherwise the statement stays as it is.
fn by_arrays(session: &mut PostgresSession, insert: &Insert, types: &[u32]) -> Result<bool> {
    if !session.catalogue.is_present() {
        return Ok(false);
    }
    let oids: Vec<String> = types.iter().map(u32::to_string).collect();
    let question = ARRAYS.replace("OIDS", &oids.join(","));
    let arrays = session.connection.lookup(&question, &insert.table)?;
    let arrays = arrays.into_iter().flatten().map(|oid| oid?.parse().ok()).collect::<Option<Vec<u32>>>();
    let Some(arrays) = arrays.filter(|arrays| arrays.len() == types.len()) else { return Ok(false) };
    session.connection.prepare_with(&insert.text, &arrays)?;
    Ok(true)
}

/// A row's cells in text.
type Cells = Vec<Option<Vec<u8>>>;

/// Sends the INSERT that is prepared with the arrays of `rows`, some rows at a time: the server inserts some while the next
/// are encoded.
fn insert_arrays(
    session: &mut PostgresSession,
    rows: impl Iterator<Item = Result<Cells>>,
    columns: usize,
) -> Result<()> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let arrays = arrays(&mut rows, columns)?;
        session.connection.enqueue_execution(&arrays)?;
        session.connection.send_executions()?;
    }
    Ok(())
}

/// The cells of each column as an array in text, of as many rows as make a message of some size.
fn arrays(rows: &mut impl Iterator<Item = Result<Cells>>, count: usize) -> Result<Cells> {
    let mut columns = vec![b"{".to_vec(); count];
    while columns.iter().map(Vec::len).sum::<usize>() < ENOUGH
        && let Some(row) = rows.next()
    {
        for (column, cell) in columns.iter_mut().zip(row?) {
            if column.len() > 1 {
                column.push(b',');
            }
            push_element(column, cell.as_deref());
        }
    }
    for column in &mut columns {
        column.push(b'}');
    }
    Ok(columns.into_iter().map(Some).collect())
}

fn push_element(array: &mut Vec<u8>, cell: Option<&[u8]>) {
    let Some(cell) = cell else {
        array.extend_from_slice(b"NULL");
        return;
    };
    array.push(b'"');
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\');
    let mut rest = cell;
    while let Some(at) = rest.iter().position(is_special) {
        array.extend_from_slice(&rest[..at]);
        array.extend_from_slice(&[b'\\', rest[at]]);
        rest = &rest[at + 1..];
    }
    array.extend_from_slice(rest);
    array.push(b'"');
}

/// An INSERT of nothing but parameters, each in its place.
struct Insert {
    /// The table as the statement names it.
    table: String,
    /// The statement that takes its rows out of arrays.
    text: String,
}

impl Insert {
    fn parse(text: &str, parameters: usize) -> Option<Self> {
        let insert = PlainInsert::parse(&DIALECT, text)?;
        let places: Vec<String> = (1..=parameters).map(|number| format!("${number}")).collect();
        let values = insert.values.iter().map(|value| value.text);
        if !values.eq(places.iter().map(String::as_str)) {
            return None;
        }
        let columns: Vec<String> = places.iter().map(|place| format!("pg_catalog.unnest({place})")).collect();
        let text_of_arrays = format!("{}SELECT * FROM ROWS FROM ({})", insert.head, columns.join(", "));
        Some(Self { table: insert.table_text(text).to_owned(), text: text_of_arrays })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str, parameters: usize) -> Option<(String, String)> {
        Insert::parse(text, parameters).map(|insert| (insert.table, insert.text))
    }

    #[test]
    fn an_insert_of_parameters_takes_arrays() {
        let found = bulk("INSERT INTO a.\"B c\" (x, \"y\") /* ( */ VALUES ($1, $2);", 2).unwrap();
        let text = "INSERT INTO a.\"B c\" (x, \"y\") /* ( */ SELECT * FROM ROWS FROM \
             (pg_catalog.unnest($1), pg_catalog.unnest($2))";
        assert_eq!(found, ("a.\"B c\"".to_owned(), text.to_owned()));
        assert!(bulk("insert into t values ($1)", 1).is_some());
    }

    #[test]
    fn every_other_statement_is_left_alone() {
        for (text, parameters) in [
            ("INSERT INTO t VALUES ($1, $1)", 1),
            ("INSERT INTO t VALUES ($2, $1)", 2),
            ("INSERT INTO t VALUES ($1, DEFAULT)", 1),
            ("INSERT INTO t VALUES ($1::int)", 1),
            ("INSERT INTO t VALUES ($1 + 1)", 1),
            ("INSERT INTO t VALUES ($1), (2)", 1),
            ("INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING", 1),
            ("INSERT INTO t VALUES ($1) RETURNING a", 1),
            ("INSERT INTO t AS u VALUES ($1)", 1),
            ("INSERT INTO t (a[1]) VALUES ($1)", 1),
            ("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES ($1)", 1),
            ("WITH w AS (SELECT 1) INSERT INTO t VALUES ($1)", 1),
            ("UPDATE t SET a = $1", 1),
            ("INSERT INTO t DEFAULT VALUES", 0),
        ] {
            assert_eq!(bulk(text, parameters), None, "{text}");
        }
    }

    #[test]
    fn elements_are_quoted() {
        let rows = vec![vec![Some(b"a\"b\\".to_vec()), None], vec![Some(b"NULL".to_vec()), Some(Vec::new())]];
        let arrays = arrays(&mut rows.into_iter().map(Ok), 2).unwrap();
        let texts = arrays.into_iter().map(|array| String::from_utf8(array.unwrap()).unwrap());
        assert_eq!(texts.collect::<Vec<_>>(), [r#"{"a\"b\\","NULL"}"#, r#"{NULL,""}"#]);
    }
}
