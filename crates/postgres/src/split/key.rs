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
use crate::dialect::{DIALECT, literal, text_array};
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
            KeyPart::Value(value, _) => format!("{column} {} {}", self.operators.equal, self.value(value)),
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

/// The builtin types of which two equal values are the same, by OID. Not among them: floats (-0), numeric (its scale),
/// interval (a month is 30 days), char (blanks at the end), jsonb, and what is made of others.
const IDENTICAL: &str =
    "{16,17,18,19,20,21,23,25,26,774,790,829,869,1043,1082,1083,1114,1184,1266,1560,1562,2950,3220,5069}";

/// Whether the key comes from a view, whose columns may be computed; whether the columns that group are of types whose
/// equality is identity; whether the key is compared as the plan shows it; whether a function's name is only that of
/// aggregates. A plan shows no COLLATE: where the users have made a collation of which two equal texts are not the same
/// (version 12 and newer), any text may be compared by it.
const GROUP_LOOKUP: &str = "\
WITH inexact AS ( \
    SELECT FROM pg_catalog.pg_collation AS l \
    WHERE l.oid >= 16384 AND pg_catalog.to_jsonb(l) ->> 'collisdeterministic' = 'false') \
SELECT (SELECT relkind = 'v' FROM pg_catalog.pg_class WHERE oid = $1::oid), \
       (SELECT pg_catalog.count(*) = pg_catalog.cardinality($5::text[]) \
        FROM unnest($3::text[], $4::text[], $5::text[]) AS used (space, relation, name) \
        JOIN pg_catalog.pg_namespace n ON n.nspname = used.space \
        JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = used.relation \
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = used.name \
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
        WHERE (t.typtype = 'e' OR CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END = ANY ($6::oid[])) \
          AND (a.attcollation = 0 OR NOT EXISTS (SELECT FROM inexact))), \
       (SELECT typcollation = 0 AND typtype IN ('b', 'd', 'e') OR NOT EXISTS (SELECT FROM inexact) \
        FROM pg_catalog.pg_type WHERE oid = $2::oid), \
       (SELECT pg_catalog.bool_and(prokind = 'a') FROM pg_catalog.pg_proc WHERE proname = $7)";

/// A column that groups, of a table.
struct GroupColumn<'a> {
    schema: &'a str,
    relation: &'a str,
    name: String,
}

/// What groups the rows of a query.
pub(super) struct Groups<'a> {
    plan: &'a Plan,
    nodes: Vec<&'a Node>,
}

/// What the catalogue says of the columns that group, and of the key.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct GroupFacts {
    /// Whether the key is a column of a table, and not a view's.
    pub(super) is_tables: bool,
    are_identical: bool,
    is_compared_as_shown: bool,
    is_aggregate: bool,
}

impl<'a> Groups<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        Self { plan, nodes: plan.nodes().into_iter().filter(|node| node.groups.is_some()).collect() }
    }

    /// Asks what [`GroupFacts::read`] needs.
    pub(super) fn lookup(&self, key: &Key) -> Step {
        let columns = self.columns().unwrap_or_default();
        let schemas: Vec<&str> = columns.iter().map(|column| column.schema).collect();
        let relations: Vec<&str> = columns.iter().map(|column| column.relation).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let function = self.key_text(key).and_then(|text| called(&text)).unwrap_or_default();
        Step::run(GROUP_LOOKUP)
            .bind(&key.table.to_string())
            .bind(&key.oid.to_string())
            .bind(&text_array(&schemas))
            .bind(&text_array(&relations))
            .bind(&text_array(&names))
            .bind(IDENTICAL)
            .bind(&function)
    }

    /// Whether every group is in one part.
    pub(super) fn are_whole(&self, key: &Key, facts: GroupFacts) -> bool {
        // A table's column is compared by the equality that it is grouped by.
        self.nodes.is_empty() || facts.is_tables || self.are_identical(facts) || self.is_of_groups(key, facts)
    }

    fn are_identical(&self, facts: GroupFacts) -> bool {
        facts.are_identical && self.columns().is_some()
    }

    /// Whether the key is what the rows are grouped by, with the same equality, or is computed from whole groups.
    fn is_of_groups(&self, key: &Key, facts: GroupFacts) -> bool {
        let Some((node, text)) = self.only_at_top().zip(self.key_text(key)) else { return false };
        facts.is_aggregate || facts.is_compared_as_shown && self.keys(node).contains(&text)
    }

    /// The columns that group, if nothing else does.
    fn columns(&self) -> Option<Vec<GroupColumn<'a>>> {
        let keys = self.nodes.iter().flat_map(|node| node.groups.iter().flatten());
        keys.map(|key| self.column(key)).collect()
    }

    fn column(&self, key: &str) -> Option<GroupColumn<'a>> {
        let found = DIALECT.tokens(key);
        let [alias, point, name] = found.as_slice() else { return None };
        let alias = DIALECT.name(alias).filter(|_| point.is_mark("."))?;
        let node = self.plan.nodes().into_iter().find(|node| node.alias == alias)?;
        let relation = node.relation.as_ref()?;
        Some(GroupColumn { schema: &relation.schema, relation: &relation.name, name: DIALECT.name(name)? })
    }

    /// The only node that groups, where nothing is computed after it.
    fn only_at_top(&self) -> Option<&'a Node> {
        let [only] = self.nodes.as_slice() else { return None };
        let mut node = &self.plan.root;
        while TRANSPARENT.contains(&node.kind.as_str()) {
            node = node.children.first()?;
        }
        std::ptr::eq(node, *only).then_some(node)
    }

    fn key_text(&self, key: &Key) -> Option<String> {
        self.plan.root.output.get(key.index).map(|text| self.bare(text))
    }

    fn keys(&self, node: &Node) -> Vec<String> {
        node.groups.iter().flatten().map(|text| self.bare(text)).collect()
    }

    /// An expression in one form: the server writes more parentheses here and leaves a table's name out there.
    fn bare(&self, text: &str) -> String {
        let nodes = self.plan.nodes();
        let mut aliases = nodes.iter().map(|node| node.alias.as_str()).filter(|alias| !alias.is_empty());
        let only = aliases.next().filter(|first| aliases.all(|alias| alias == *first));
        let found = DIALECT.tokens(text);
        let kept = without_table(&found, only.unwrap_or_default());
        let text = kept.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        without_parentheses(&text).to_owned()
    }
}

impl GroupFacts {
    pub(super) fn read(answer: &Answer) -> Self {
        Self {
            is_tables: answer.cell(0, 0) == "f",
            are_identical: answer.cell(0, 1) == "t",
            is_compared_as_shown: answer.cell(0, 2) == "t",
            is_aggregate: answer.cell(0, 3) == "t",
        }
    }
}

/// The function that an expression calls, where it is one call and nothing else but parentheses.
pub(super) fn called(expression: &str) -> Option<String> {
    match DIALECT.outermost(without_parentheses(expression))?.as_slice() {
        [name, open, _] if open.is_mark("(") => DIALECT.name(name),
        _ => None,
    }
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
    fn one_call_has_a_name() {
        for text in
            ["max(a)", "(max(a))", "((max(lower(a))))", "\"max\"(DISTINCT a ORDER BY (a))", "MAX(a[1])"]
        {
            assert_eq!(called(text).as_deref(), Some("max"), "{text}");
        }
        for text in [
            "a",
            "(a)",
            "a[1]",
            "max(a) + 1",
            "(max(a)) + (min(b))",
            "(max(a))::int",
            "max(a) FILTER (WHERE b)",
            "",
        ] {
            assert_eq!(called(text), None, "{text}");
        }
    }
}
