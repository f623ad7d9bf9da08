//! The column of a result that divides it: its type and conditions on it, and whether a condition on it keeps groups whole.
//!
//! The server moves a condition below what groups the rows, for it takes equal values for the same. Where the key tells
//! them apart (`1.0` and `1.00` as texts), two parts would each have a group of their own of what is one.

use longshore_source::NotSplit;
use longshore_source::split::{key_column, without_order};

use super::bounds::{KeyPart, KeyRange, RangeStart};
use super::plan::{Node, Plan, without_table};
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, literal};
use crate::session::PostgresSession;
use crate::types::Type;

/// What the wrapped query is called.
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
    equal: String,
    at_least: String,
    greater: String,
}

/// A column that parts a result.
#[derive(Debug)]
pub(super) struct Key {
    /// Its place among the columns.
    pub(super) index: usize,
    /// The table and attribute that it comes from unchanged; 0 for an expression.
    pub(super) table: u32,
    pub(super) attribute: i16,
    pub(super) oid: u32,
    /// What it is called in a wrapped query.
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
            None => looked_up(session, column)?,
        };
        Ok(Self {
            index,
            table: column.table,
            attribute: column.attribute,
            oid: column.oid,
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
        match part {
            KeyPart::Value(value) => format!("{column} {} {}", self.operators.equal, self.value(value)),
            KeyPart::Ranges(pieces) => {
                let pieces: Vec<String> = pieces.iter().map(|piece| self.piece(column, piece)).collect();
                pieces.join(" OR ")
            }
        }
    }

    fn piece(&self, column: &str, piece: &KeyRange) -> String {
        let Operators { less, at_least, greater, .. } = &self.operators;
        let KeyRange::Between(start, end) = piece else { return format!("{column} IS NULL") };
        let start = start.as_ref().map(|start| match start {
            RangeStart::From(value) => format!("{column} {at_least} {}", self.value(value)),
            RangeStart::After(value) => format!("{column} {greater} {}", self.value(value)),
        });
        let end = end.as_ref().map(|end| format!("{column} {less} {}", self.value(end)));
        match (start, end) {
            (None, None) => format!("{column} IS NOT NULL"),
            (Some(start), Some(end)) => format!("({start} AND {end})"),
            (Some(one), None) | (None, Some(one)) => one,
        }
    }
}

fn builtin_operators() -> Operators {
    let operator = |name: &str| format!("OPERATOR(pg_catalog.{name})");
    Operators { less: operator("<"), equal: operator("="), at_least: operator(">="), greater: operator(">") }
}

fn looked_up(session: &mut PostgresSession, column: &Described) -> Result<(String, Operators), NotSplit> {
    let answer = session.connection.ask(Step::run(ORDER_LOOKUP).bind(&column.oid.to_string()))?;
    match operators(&answer) {
        Some(operators) => Ok((answer.cell(0, 1).to_owned(), operators)),
        None => Err(NotSplit::Failed(without_order(&column.name, answer.cell(0, 0)))),
    }
}

/// The five operators of a btree's strategies: `<`, `<=`, `=`, `>=`, `>`.
fn operators(answer: &Answer) -> Option<Operators> {
    let names: [String; 5] = serde_json::from_str(answer.cell(0, 2)).ok()?;
    let [less, _, equal, at_least, greater] = names;
    Some(Operators { less, equal, at_least, greater })
}

/// Nodes that hand rows on as they are.
const TRANSPARENT: &[&str] = &["Sort", "Incremental Sort", "Gather", "Gather Merge", "Materialize"];

/// Whether the key comes from a view, whose columns may be computed; whether it is compared as the plan shows it. A plan shows no
/// COLLATE: where the users have made a collation of which two equal texts are not the same (version 12 and newer), any text
/// may be compared by it.
const FACTS_LOOKUP: &str = "\
SELECT (SELECT relkind = 'v' FROM pg_catalog.pg_class WHERE oid = $1::oid), \
       (SELECT typcollation = 0 AND typtype IN ('b', 'd', 'e') OR NOT EXISTS ( \
            SELECT FROM pg_catalog.pg_collation AS l \
            WHERE l.oid >= 16384 AND pg_catalog.to_jsonb(l) ->> 'collisdeterministic' = 'false') \
        FROM pg_catalog.pg_type WHERE oid = $2::oid)";

/// A step that asks what [`check_groups`] needs.
pub(super) fn facts_lookup(key: &Key) -> Step {
    Step::run(FACTS_LOOKUP).bind(&key.table.to_string()).bind(&key.oid.to_string())
}

/// Refuses a key that may divide the groups of `plan`, or differ from part to part because it is computed from the rows of one. A
/// table's column is compared by the equality that it is grouped by; any other key has to be what the only grouping is by.
pub(super) fn check_groups(plan: &Plan, key: &Key, facts: &Answer) -> Result<(), NotSplit> {
    let is_tables_column = facts.cell(0, 0) == "f";
    let is_compared_as_shown = facts.cell(0, 1) == "t";
    let takes_together = |node: &&Node| node.groups.is_some() || node.kind == "Aggregate";
    let groupings: Vec<&Node> = plan.nodes().into_iter().filter(takes_together).collect();
    if is_tables_column || groupings.is_empty() {
        return Ok(());
    }
    let bare = |text: &String| bare(plan, text);
    let of_groups = groupings.iter().copied().filter(|node| groupings.len() == 1 && is_at_top(plan, node));
    let mut keys = of_groups.flat_map(|node| node.groups.iter().flatten()).map(bare);
    let own = plan.root.output.get(key.index).map(bare);
    if is_compared_as_shown && keys.any(|key| Some(&key) == own.as_ref()) {
        return Ok(());
    }
    Err(NotSplit::because(
        "the query has groups or aggregates, and partition_on is neither a table's column nor what it is grouped by",
    ))
}

/// Whether nothing is computed after `node`.
fn is_at_top(plan: &Plan, node: &Node) -> bool {
    let mut top = &plan.root;
    while TRANSPARENT.contains(&top.kind.as_str()) {
        let Some(child) = top.children.first() else { return false };
        top = child;
    }
    std::ptr::eq(top, node)
}

/// An expression in one form: the server writes more parentheses here and leaves a table's name out there.
fn bare(plan: &Plan, text: &str) -> String {
    let nodes = plan.nodes();
    let mut aliases = nodes.iter().map(|node| node.alias.as_str()).filter(|alias| !alias.is_empty());
    let only = aliases.next().filter(|first| aliases.all(|alias| alias == *first));
    let found = DIALECT.tokens(text);
    let kept = without_table(&found, only.unwrap_or_default());
    let text = kept.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
    without_parentheses(&text).to_owned()
}

/// An expression without the parentheses around all of it.
fn without_parentheses(expression: &str) -> &str {
    match DIALECT.outermost(expression).as_deref() {
        Some([open, close]) if open.is_mark("(") => {
            without_parentheses(expression[open.end()..close.start].trim())
        }
        _ => expression,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_around_all_go() {
        for (text, bare) in [("((a))", "a"), ("(a) + (b)", "(a) + (b)"), ("(max(a))", "max(a)"), ("", "")] {
            assert_eq!(without_parentheses(text), bare);
        }
    }
}
