//! A query as the server takes it, with what is bound to it.

use longshore_core::{Params, Query, Result, Value};
use longshore_source::NotSplit;
use longshore_source::sql::positional;
use longshore_source::sql::{Kind, Token};

use super::volatile::{has_moment_text, is_moment};
use crate::connection::pipeline::Step;
use crate::dialect::{DIALECT, tokens};
use crate::encode;
use crate::session::PostgresSession;

/// What a statement starts with that can be explained and read as a part.
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

/// Whether a value is, or holds, a text that the server may read as a moment.
fn means_moment(value: &Value) -> bool {
    match value {
        Value::Text(text) => is_moment(text),
        Value::List(items) | Value::Row(items) => items.iter().any(means_moment),
        _ => false,
    }
}

impl Statement {
    /// The statement of a query that may be split.
    pub(super) fn of(query: &Query) -> Result<Self, NotSplit> {
        let statement = Self::parse(query)?;
        if has_moment_text(&statement.text) || statement.values.iter().any(means_moment) {
            return Err(NotSplit::because("a text such as 'now' or 'today' differs from part to part"));
        }
        Ok(statement)
    }

    /// The statement of a query that can be explained.
    pub(super) fn parse(query: &Query) -> Result<Self, NotSplit> {
        let statement = positional(&DIALECT, &query.text, &query.params)?;
        let found = tokens(&statement.text);
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
        session.catalogue.load(&mut session.connection, &[], &types)?;
        if !session.connection.is_usable() {
            session.connection.sync()?;
        }
        let values: Vec<&Value> = self.values.iter().collect();
        self.bound = encode::parameters(&values, &session.types_of(&types))?;
        self.types = types;
        Ok(())
    }

    /// A step that runs `text`, which has this statement's parameters.
    pub(super) fn step(&self, text: impl Into<String>) -> Step {
        Step::run(text).with(&self.types, &self.bound)
    }

    /// A step that describes `text`, which has this statement's parameters.
    pub(super) fn description(&self, text: impl Into<String>) -> Step {
        Step::describe(text).with(&self.types, &[])
    }

    /// A query of `text` with this statement's parameters.
    pub(super) fn query(&self, text: String) -> Query {
        Query { text, params: Params::Positional(self.values.clone()) }
    }
}
