//! What EXPLAIN (VERBOSE, FORMAT JSON) says of a query.

use std::collections::BTreeSet;

use longshore_source::sql::Token;
use serde_json::{Map, Value};

use crate::dialect::{DIALECT, quoted_name, tokens};

/// What makes the server tell its plan.
pub(super) const EXPLAIN: &str = "EXPLAIN (VERBOSE, FORMAT JSON) ";

/// Properties that name things; all others may hold expressions.
const NAMES: &[&str] = &[
    "Node Type",
    "Parent Relationship",
    "Subplan Name",
    "Relation Name",
    "Schema",
    "Alias",
    "Index Name",
    "CTE Name",
    "Function Name",
    "Join Type",
    "Strategy",
    "Partial Mode",
    "Scan Direction",
    "Operation",
    "Command",
];

/// A query's plan.
#[derive(Debug)]
pub(super) struct Plan {
    /// How many rows the planner expects.
    pub(super) rows: f64,
    /// How many bytes a row has.
    pub(super) width: f64,
    pub(super) root: Node,
}

/// One node of a plan.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: String,
    /// The table that it reads.
    pub(super) relation: Option<Relation>,
    pub(super) alias: String,
    /// Its columns, as expressions.
    pub(super) output: Vec<String>,
    pub(super) filter: Option<String>,
    /// What it takes rows together by, if it does.
    pub(super) groups: Option<Vec<String>>,
    /// Every expression.
    texts: Vec<String>,
    pub(super) children: Vec<Node>,
}

/// A table by its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relation {
    pub(super) schema: String,
    pub(super) name: String,
}

impl Relation {
    /// The name that means this table whatever the session's search path.
    pub(super) fn qualified(&self) -> String {
        format!("{}.{}", quoted_name(&self.schema), quoted_name(&self.name))
    }
}

impl Plan {
    /// Reads the server's answer; `None` where it is none.
    pub(super) fn parse(answer: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(answer).ok()?;
        let plan = document.get(0)?.get("Plan")?;
        let number = |key: &str| plan.get(key).and_then(Value::as_f64);
        Some(Self { rows: number("Plan Rows")?, width: number("Plan Width")?, root: node(plan)? })
    }

    /// All nodes, the root first.
    pub(super) fn nodes(&self) -> Vec<&Node> {
        let mut found = vec![&self.root];
        let mut at = 0;
        while let Some(node) = found.get(at) {
            found.extend(&node.children);
            at += 1;
        }
        found
    }

    /// Every table that it reads.
    pub(super) fn relations(&self) -> BTreeSet<&Relation> {
        self.nodes().into_iter().filter_map(|node| node.relation.as_ref()).collect()
    }

    /// Every expression in it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.nodes().into_iter().flat_map(|node| &node.texts).map(String::as_str)
    }
}

impl Node {
    /// What a scan hands on and what it keeps back, whatever the table is called.
    pub(super) fn shape(&self) -> (Vec<String>, Option<String>) {
        let anonymous = |text: &String| anonymous(text, &self.alias);
        (self.output.iter().map(anonymous).collect(), self.filter.as_ref().map(anonymous))
    }
}

fn node(plan: &Value) -> Option<Node> {
    let properties = plan.as_object()?;
    let text = |key: &str| properties.get(key).and_then(Value::as_str).map(str::to_owned);
    let children = properties.get("Plans").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let relation =
        text("Relation Name").map(|name| Relation { schema: text("Schema").unwrap_or_default(), name });
    let expressions = properties.iter().filter(|(key, _)| !NAMES.contains(&key.as_str()) && *key != "Plans");
    Some(Node {
        kind: text("Node Type")?,
        relation,
        alias: text("Alias").unwrap_or_default(),
        output: properties.get("Output").map(strings).unwrap_or_default(),
        filter: text("Filter"),
        groups: groups(properties),
        texts: expressions.flat_map(|(_, value)| strings(value)).collect(),
        children: children.iter().map(node).collect::<Option<_>>()?,
    })
}

/// The keys of one grouping or of several; a set operation compares all columns.
fn groups(properties: &Map<String, Value>) -> Option<Vec<String>> {
    let names: &[&str] = match properties.get("Node Type")?.as_str()? {
        "SetOp" => &["Output"],
        _ => &["Group Key", "Grouping Sets"],
    };
    names.iter().find_map(|name| properties.get(*name)).map(strings)
}

/// Every text in `value`, however deep.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::Object(values) => values.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// An expression without its table's name, which the server leaves out where there is one table.
fn anonymous(text: &str, alias: &str) -> String {
    let kept = without_table(&tokens(text), alias);
    kept.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}

/// The tokens without the table's name and the point after it.
pub(super) fn without_table<'a>(tokens: &[Token<'a>], alias: &str) -> Vec<Token<'a>> {
    let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is_mark("."));
    let is_table = |at: usize| DIALECT.name(&tokens[at]).as_deref() == Some(alias) && is_dot(at + 1);
    let is_left_out = |at: usize| is_table(at) || is_dot(at) && at > 0 && is_table(at - 1);
    (0..tokens.len()).filter(|at| !is_left_out(*at)).map(|at| tokens[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    const ANSWER: &str = r#"[{"Plan": {"Node Type": "Append", "Plan Rows": 20, "Plan Width": 8, "Plans": [
        {"Node Type": "Seq Scan", "Relation Name": "t_1", "Schema": "public", "Alias": "t_1",
         "Output": ["t_1.a", "f(t_1.b)"], "Filter": "(t_1.a > 5)"},
        {"Node Type": "Function Scan", "Function Name": "g", "Function Call": "g(1)", "Alias": "g"}]}}]"#;

    #[test]
    fn a_plan_is_a_tree_of_expressions() {
        let plan = Plan::parse(ANSWER).unwrap();
        assert_eq!((plan.rows, plan.width), (20.0, 8.0));
        let texts: Vec<_> = plan.texts().collect();
        assert_eq!(texts, ["(t_1.a > 5)", "t_1.a", "f(t_1.b)", "g(1)"]);
        let relations: Vec<_> = plan.relations().into_iter().map(Relation::qualified).collect();
        assert_eq!(relations, ["\"public\".\"t_1\""]);
        let (output, filter) = plan.root.children[0].shape();
        assert_eq!((output[1].as_str(), filter.as_deref()), ("f ( b )", Some("( a > 5 )")));
    }

    #[test]
    fn what_is_no_plan_is_none() {
        for answer in ["", "{}", "[]", "[{\"Plan\": {}}]", "[{\"Plan\": {\"Node Type\": 1}}]", "nonsense"] {
            assert!(Plan::parse(answer).is_none(), "{answer}");
        }
    }
}
