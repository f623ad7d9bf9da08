//! The column of a result that divides it: its type and conditions on it, and whether a condition on it keeps groups whole.
//!
//! The server moves a condition below what groups the rows, for it takes equal values for the same. Where the key tells
//! them apart (`1.0` and `1.00` as texts), two parts would each have a group of their own of what is one.

use longshore_source::NotSplit;
use longshore_source::split::{key_column, without_order};

use super::bounds::KeyPart;
use super::plan::Plan;
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, literal};
use crate::session::PostgresSession;
use crate::types::Type;

/// The name of the wrapped query.
pub(super) const PART: &str = "longshore_part";

/// The builtin types with an order, by OID: those with a default operator class of btree, and the two that are read as
/// another.
const ORDERED: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 25, 26, 650, 700, 701, 774, 790, 829, 869, 1042, 1043, 1082, 1083, 1114,
    1184, 1186, 1266, 1560, 1562, 1700, 2950, 3220, 3802, 5069,
];

/// Any other type, by its own default operator class or that of all enums.
const ORDER_LOOKUP: &str = "\
SELECT t.oid::regtype, quote_ident(n.nspname) || '.' || quote_ident(t.typname), \
       (SELECT pg_catalog.json_agg(format('OPERATOR(%I.%s)', s.nspname, o.oprname) ORDER BY a.amopstrategy) \
        FROM pg_catalog.pg_opclass c JOIN pg_catalog.pg_am m ON m.oid = c.opcmethod AND m.amname = 'btree' \
        JOIN pg_catalog.pg_amop a ON a.amopfamily = c.opcfamily AND a.amoppurpose = 's' \
             AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype \
        JOIN pg_catalog.pg_operator o ON o.oid = a.amopopr JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace \
        WHERE c.opcdefault AND c.opcintype = CASE t.typtype WHEN 'e' THEN 'pg_catalog.anyenum'::regtype ELSE t.oid END) \
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = $1::oid";

/// The operators of an order. Named in full: the search path may lead to others.
#[derive(Debug)]
struct Operators {
    less: String,
    at_least: String,
}

/// A column that parts a result.
#[derive(Debug)]
pub(super) struct Key {
    /// The table and attribute that it comes from unchanged; 0 for an expression.
    pub(super) table: u32,
    pub(super) attribute: i16,
    /// Its name in a wrapped query.
    pub(super) column: String,
    /// Its type, by a name without modifiers whatever the search path.
    pub(super) type_name: String,
    pub(super) native: Type,
    operators: Operators,
}

impl Key {
    /// The column `name` of a query.
    pub(super) fn find(
        session: &mut PostgresSession,
        columns: &[Described],
        name: &str,
    ) -> Result<Self, NotSplit> {
        let index =
            key_column(columns.iter().map(|column| column.name.as_str()), name).map_err(NotSplit::Failed)?;
        let column = &columns[index];
        let native = session.types_of(&[column.oid]).remove(0);
        let (type_name, operators) = match Type::builtin(column.oid) {
            Some(builtin) if ORDERED.contains(&column.oid) => {
                (format!("pg_catalog.{}", DIALECT.quoted_name(&builtin.name)), builtin_operators())
            }
            Some(builtin) => return Err(NotSplit::Failed(without_order(name, &builtin.label()))),
            None => look_up(session, column)?,
        };
        Ok(Self {
            table: column.table,
            attribute: column.attribute,
            column: format!("{PART}.{}", DIALECT.quoted_name(name)),
            type_name,
            native,
            operators,
        })
    }

    fn value(&self, text: &str) -> String {
        format!("{}::{}", literal(text), self.type_name)
    }

    /// The condition of a part on `column`, which is the key under any name.
    pub(super) fn condition(&self, column: &str, part: &KeyPart) -> String {
        let Operators { less, at_least } = &self.operators;
        let range = part.range.as_ref().map(|(start, end)| {
            let start = start.as_ref().map(|start| format!("{column} {at_least} {}", self.value(start)));
            let end = end.as_ref().map(|end| format!("{column} {less} {}", self.value(end)));
            match (start, end) {
                (None, None) => format!("{column} IS NOT NULL"),
                (Some(start), Some(end)) => format!("({start} AND {end})"),
                (Some(one), None) | (None, Some(one)) => one,
            }
        });
        let nulls = part.has_nulls.then(|| format!("{column} IS NULL"));
        range.into_iter().chain(nulls).collect::<Vec<_>>().join(" OR ")
    }
}

fn builtin_operators() -> Operators {
    let operator = |name: &str| format!("OPERATOR(pg_catalog.{name})");
    Operators { less: operator("<"), at_least: operator(">=") }
}

fn look_up(session: &mut PostgresSession, column: &Described) -> Result<(String, Operators), NotSplit> {
    let answer = session.connection.ask(Step::run(ORDER_LOOKUP).bind(&column.oid.to_string()))?;
    match operators(&answer) {
        Some(operators) => Ok((answer.cell(0, 1).to_owned(), operators)),
        None => Err(NotSplit::Failed(without_order(&column.name, answer.cell(0, 0)))),
    }
}

/// The five operators of a btree's strategies: `<`, `<=`, `=`, `>=`, `>`.
fn operators(answer: &Answer) -> Option<Operators> {
    let names: [String; 5] = serde_json::from_str(answer.cell(0, 2)).ok()?;
    let [less, _, _, at_least, _] = names;
    Some(Operators { less, at_least })
}

/// Whether the key comes from a view, whose columns may be computed.
const VIEW_LOOKUP: &str = "SELECT relkind = 'v' FROM pg_catalog.pg_class WHERE oid = $1::oid";

/// A step that asks what [`check_groups`] needs.
pub(super) fn view_lookup(key: &Key) -> Step {
    Step::run(VIEW_LOOKUP).bind(&key.table.to_string())
}

/// Refuses a key that may divide the groups of `plan`, or differ from part to part because it is computed from the rows of one: any
/// but a table's column, which is compared by the equality that it is grouped by.
pub(super) fn check_groups(plan: &Plan, view: &Answer) -> Result<(), NotSplit> {
    let has_groups = plan.nodes().into_iter().any(|node| node.is_grouping);
    if view.cell(0, 0) == "f" || !has_groups {
        return Ok(());
    }
    Err(NotSplit::because("the query has groups or aggregates, and partition_on is not a table's column"))
}
