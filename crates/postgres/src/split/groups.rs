//! Whether a condition on the key keeps groups whole. The server moves it below what groups the rows, for it takes equal
//! values for the same. Where the key tells them apart (`1.0` and `1.00` as texts), two parts would each have a group of
//! their own of what is one.

use longshore_source::sql::{Kind, Token};

use super::key::Key;
use super::plan::{Node, Plan, without_table};
use super::volatile::text_array;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, tokens};

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
const LOOKUP: &str = "\
WITH blind AS ( \
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
          AND (a.attcollation = 0 OR NOT EXISTS (SELECT FROM blind))), \
       (SELECT typcollation = 0 AND typtype IN ('b', 'd', 'e') OR NOT EXISTS (SELECT FROM blind) \
        FROM pg_catalog.pg_type WHERE oid = $2::oid), \
       (SELECT pg_catalog.bool_and(prokind = 'a') FROM pg_catalog.pg_proc WHERE proname = $7)";

/// A column that groups, of a table.
struct Column<'a> {
    schema: &'a str,
    relation: &'a str,
    name: String,
}

/// What groups the rows of a query.
pub(super) struct Groups<'a> {
    plan: &'a Plan,
    nodes: Vec<&'a Node>,
}

/// What the server says of them: answers that have nothing to do with one another.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Origin {
    /// Whether the key is a column of a table, and not a view's.
    pub(super) is_tables: bool,
    are_identical: bool,
    is_compared_as_shown: bool,
    is_aggregate: bool,
}

impl<'a> Groups<'a> {
    /// Those of `plan`.
    pub(super) fn of(plan: &'a Plan) -> Self {
        Self { plan, nodes: plan.nodes().into_iter().filter(|node| node.groups.is_some()).collect() }
    }

    /// Asks what [`Origin::read`] needs.
    pub(super) fn lookup(&self, key: &Key) -> Step {
        let columns = self.columns().unwrap_or_default();
        let schemas: Vec<&str> = columns.iter().map(|column| column.schema).collect();
        let relations: Vec<&str> = columns.iter().map(|column| column.relation).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let function = self.key_text(key).and_then(|text| called(&text)).unwrap_or_default();
        Step::run(LOOKUP)
            .bind(&key.table.to_string())
            .bind(&key.oid.to_string())
            .bind(&text_array(&schemas))
            .bind(&text_array(&relations))
            .bind(&text_array(&names))
            .bind(IDENTICAL)
            .bind(&function)
    }

    /// Whether every group is in one part.
    pub(super) fn are_whole(&self, key: &Key, origin: Origin) -> bool {
        // A table's column is compared by the equality that it is grouped by.
        self.nodes.is_empty()
            || origin.is_tables
            || self.are_identical(origin)
            || self.is_of_groups(key, origin)
    }

    fn are_identical(&self, origin: Origin) -> bool {
        origin.are_identical && self.columns().is_some()
    }

    /// Whether the key is what the rows are grouped by, with the same equality, or is computed from whole groups.
    fn is_of_groups(&self, key: &Key, origin: Origin) -> bool {
        let Some((node, text)) = self.only_at_top().zip(self.key_text(key)) else { return false };
        origin.is_aggregate || origin.is_compared_as_shown && self.keys(node).contains(&text)
    }

    /// The columns that group, if nothing else does.
    fn columns(&self) -> Option<Vec<Column<'a>>> {
        let keys = self.nodes.iter().flat_map(|node| node.groups.iter().flatten());
        keys.map(|key| self.column(key)).collect()
    }

    fn column(&self, key: &str) -> Option<Column<'a>> {
        let found = tokens(key);
        let [alias, point, name] = found.as_slice() else { return None };
        let alias = DIALECT.name(alias).filter(|_| point.is_mark("."))?;
        let node = self.plan.nodes().into_iter().find(|node| node.alias == alias)?;
        let relation = node.relation.as_ref()?;
        Some(Column { schema: &relation.schema, relation: &relation.name, name: DIALECT.name(name)? })
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
        let found = tokens(text);
        let kept = without_table(&found, only.unwrap_or_default());
        let mut kept = kept.as_slice();
        while let [first, inner @ .., last] = kept
            && first.is_mark("(")
            && last.is_mark(")")
            && is_balanced(inner)
        {
            kept = inner;
        }
        kept.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }
}

impl Origin {
    /// Reads the answer to [`Groups::lookup`].
    pub(super) fn read(answer: &Answer) -> Self {
        Self {
            is_tables: answer.cell(0, 0) == "f",
            are_identical: answer.cell(0, 1) == "t",
            is_compared_as_shown: answer.cell(0, 2) == "t",
            is_aggregate: answer.cell(0, 3) == "t",
        }
    }
}

/// The function of which `text` is a single call.
fn called(text: &str) -> Option<String> {
    let found = tokens(text);
    match found.as_slice() {
        [name, open, inner @ .., close]
            if matches!(name.kind, Kind::Word | Kind::Quoted)
                && open.is_mark("(")
                && close.is_mark(")")
                && is_balanced(inner) =>
        {
            DIALECT.name(name)
        }
        _ => None,
    }
}

/// Whether every parenthesis that closes has one that opens before it.
fn is_balanced(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    for token in tokens {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 0 => return false,
            ")" => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}
