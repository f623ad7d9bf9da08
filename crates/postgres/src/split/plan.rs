//! A query as the server takes it, with its parameters, and what EXPLAIN (VERBOSE, FORMAT JSON) says of it.

use std::collections::BTreeSet;

use longshore_core::memory::check_available;
use longshore_core::{Params, Query, Result, Value};
use longshore_source::NotSplit;
use longshore_source::sql::{Kind, Token, positional};
use serde_json::Value as Json;

use super::volatile::{has_relative_date, is_relative_date};
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::DIALECT;
use crate::encode;
use crate::session::PostgresSession;

pub(super) const EXPLAIN: &str = "EXPLAIN (VERBOSE, FORMAT JSON) ";

/// How often a plan's texts are in memory at most, while it is read and looked at.
const COPIES: usize = 8;

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
    pub(super) rows: f64,
    pub(super) width: f64,
    pub(super) root: Node,
}

/// One node of a plan.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: String,
    pub(super) relation: Option<Relation>,
    pub(super) alias: String,
    /// Its columns, as expressions.
    pub(super) output: Vec<String>,
    pub(super) filter: Option<String>,
    /// Whether it takes rows together.
    pub(super) is_grouping: bool,
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
    pub(super) fn qualified_name(&self) -> String {
        format!("{}.{}", DIALECT.quoted_name(&self.schema), DIALECT.quoted_name(&self.name))
    }
}

impl Plan {
    /// Reads the server's answer; `None` where it is none, or where there is no memory for its texts: constants in it may
    /// be as long as a value.
    pub(super) fn parse(answer: &str) -> Option<Self> {
        check_available(answer.len().saturating_mul(COPIES)).ok()?;
        let document: Json = serde_json::from_str(answer).ok()?;
        let plan = document.get(0)?.get("Plan")?;
        let number = |key: &str| plan.get(key).and_then(Json::as_f64);
        Some(Self { rows: number("Plan Rows")?, width: number("Plan Width")?, root: node(plan)? })
    }

    pub(super) fn read(answer: &Answer) -> Result<Self, NotSplit> {
        Self::parse(answer.cell(0, 0)).ok_or_else(|| NotSplit::because("the server's plan cannot be read"))
    }

    pub(super) fn nodes(&self) -> Vec<&Node> {
        let mut found = vec![&self.root];
        let mut at = 0;
        while let Some(node) = found.get(at) {
            found.extend(&node.children);
            at += 1;
        }
        found
    }

    pub(super) fn relations(&self) -> BTreeSet<&Relation> {
        self.nodes().into_iter().filter_map(|node| node.relation.as_ref()).collect()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.nodes().into_iter().flat_map(|node| &node.texts).map(String::as_str)
    }
}

impl Node {
    /// A scan's output and filter, whatever the table is called.
    pub(super) fn shape(&self) -> (Vec<String>, Option<String>) {
        let anonymous = |text: &String| anonymous(text, &self.alias);
        (self.output.iter().map(anonymous).collect(), self.filter.as_ref().map(anonymous))
    }
}

fn node(plan: &Json) -> Option<Node> {
    let properties = plan.as_object()?;
    let text = |key: &str| properties.get(key).and_then(Json::as_str).map(str::to_owned);
    let children = properties.get("Plans").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let relation =
        text("Relation Name").map(|name| Relation { schema: text("Schema").unwrap_or_default(), name });
    let expressions = properties.iter().filter(|(key, _)| !NAMES.contains(&key.as_str()) && *key != "Plans");
    let kind = text("Node Type")?;
    Some(Node {
        relation,
        alias: text("Alias").unwrap_or_default(),
        output: properties.get("Output").map(strings).unwrap_or_default(),
        filter: text("Filter"),
        is_grouping: matches!(kind.as_str(), "Aggregate" | "SetOp") || properties.contains_key("Group Key"),
        kind,
        texts: expressions.flat_map(|(_, value)| strings(value)).collect(),
        children: children.iter().map(node).collect::<Option<_>>()?,
    })
}

/// Every text in `value`, however deep.
fn strings(value: &Json) -> Vec<String> {
    match value {
        Json::String(text) => vec![text.clone()],
        Json::Array(values) => values.iter().flat_map(strings).collect(),
        Json::Object(values) => values.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// An expression without its table's name, which the server leaves out where there is one table.
fn anonymous(text: &str, alias: &str) -> String {
    let kept = without_table(&DIALECT.tokens(text), alias);
    kept.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}

/// The tokens without the table's name and the point after it.
pub(super) fn without_table<'a>(tokens: &[Token<'a>], alias: &str) -> Vec<Token<'a>> {
    let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is_mark("."));
    let is_table = |at: usize| DIALECT.name(&tokens[at]).as_deref() == Some(alias) && is_dot(at + 1);
    let is_left_out = |at: usize| is_table(at) || is_dot(at) && at > 0 && is_table(at - 1);
    (0..tokens.len()).filter(|at| !is_left_out(*at)).map(|at| tokens[at]).collect()
}

/// The first words of a statement that can be explained and read as a part.
const QUERIES: &[&str] = &["select", "with", "values", "table"];

/// One query.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its text, with numbered parameters and without a semicolon.
    pub(super) text: String,
    values: Vec<Value>,
    types: Vec<u32>,
    bound: Vec<Option<Vec<u8>>>,
    /// Whether it has parameters, with values or without.
    pub(super) has_parameters: bool,
}

/// Whether a value is, or holds, a text that the server may read as a relative date.
fn holds_relative_date(value: &Value) -> bool {
    match value {
        Value::Text(text) => is_relative_date(text),
        Value::List(items) | Value::Row(items) => items.iter().any(holds_relative_date),
        _ => false,
    }
}

impl Statement {
    /// The statement of a query that may be split.
    pub(super) fn of(query: &Query) -> Result<Self, NotSplit> {
        let statement = Self::parse(query)?;
        if has_relative_date(&statement.text) || statement.values.iter().any(holds_relative_date) {
            return Err(NotSplit::because("a text such as 'now' or 'today' differs from part to part"));
        }
        Ok(statement)
    }

    /// The statement of a query that can be explained.
    pub(super) fn parse(query: &Query) -> Result<Self, NotSplit> {
        let statement = positional(&DIALECT, &query.text, &query.params)?;
        let found = DIALECT.tokens(&statement.text);
        let first = found.iter().find(|token| !token.is_mark("("));
        if !first.is_some_and(|first| QUERIES.iter().any(|word| first.is_word(word))) {
            return Err(NotSplit::because("it is not a SELECT"));
        }
        let last = found.iter().rfind(|token| !token.is_mark(";"));
        let text = statement.text[..last.map_or(0, Token::end)].to_owned();
        let values: Vec<Value> = statement.values.into_iter().cloned().collect();
        let is_parameter = |token: &Token<'_>| token.kind == Kind::Parameter;
        let has_parameters = !values.is_empty() || found.iter().any(is_parameter);
        Ok(Self { text, values, types: Vec::new(), bound: Vec::new(), has_parameters })
    }

    /// Learns the types of the parameters, and encodes their values.
    pub(super) fn bind(&mut self, session: &mut PostgresSession, types: Vec<u32>) -> Result<()> {
        session.load_types(&[], &types)?;
        let values: Vec<&Value> = self.values.iter().collect();
        self.bound = encode::parameters(&values, &session.types_of(&types))?;
        self.types = types;
        Ok(())
    }

    /// Has the server describe the statement, after the steps `before`, and encodes its parameters.
    pub(super) fn describe_and_bind(
        &mut self,
        session: &mut PostgresSession,
        before: Vec<Step>,
    ) -> Result<()> {
        let mut steps = before;
        steps.push(self.description(self.text.as_str()));
        let answers = session.connection.flight(&steps)?;
        let prepared = answers.into_iter().find_map(|answer| answer.prepared);
        self.bind(session, prepared.map(|prepared| prepared.parameters).unwrap_or_default())
    }

    /// A step that runs `text`, which has this statement's parameters.
    pub(super) fn step(&self, text: impl Into<String>) -> Step {
        Step::run(text).with(&self.types, &self.bound)
    }

    /// A step that tells the plan of `text`, which has this statement's parameters.
    pub(super) fn explanation(&self, text: &str) -> Step {
        self.step(format!("{EXPLAIN}{text}"))
    }

    /// A step that describes `text`, which has this statement's parameters.
    pub(super) fn description(&self, text: impl Into<String>) -> Step {
        Step::describe(text).with(&self.types, &[])
    }

    pub(super) fn query(&self, text: String) -> Query {
        Query { text, params: Params::Positional(self.values.clone()) }
    }
}

pub(super) const SAVEPOINT: &str = "SAVEPOINT longshore";

pub(super) const RELEASE_SAVEPOINT: &str = "RELEASE SAVEPOINT longshore";

pub(super) const ROLLBACK_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT longshore";

/// Undoes what came after the savepoint, and forgets it.
pub(super) fn undo_savepoint(session: &mut PostgresSession) -> Result<()> {
    session.connection.simple(&format!("{ROLLBACK_TO_SAVEPOINT}; {RELEASE_SAVEPOINT}"))
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
        let relations: Vec<_> = plan.relations().into_iter().map(Relation::qualified_name).collect();
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
