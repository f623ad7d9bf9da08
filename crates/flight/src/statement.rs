//! Statements: what kind one is of, how it is prepared, and the commands that run it.

use arrow_array::RecordBatch;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, Any, CommandPreparedStatementQuery, CommandPreparedStatementUpdate,
    CommandStatementUpdate, DoPutPreparedStatementResult, DoPutUpdateResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, PutResult};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use longshore_core::{Deadline, Error, Params, Result, SEVERAL, Value};
use longshore_flight_protocol::wait;
use longshore_source::sql::{Kind as TokenKind, Numbered, POSTGRESQL, SQLITE, positional};
use prost::Message;

use crate::client::Client;
use crate::encode::Encoder;
use crate::error::protocol_error;
use crate::messages::declared_schema;
use crate::settings::Places;

/// The kind of result that a statement gives, as far as its text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rows,
    NoRows,
    /// The server has to say.
    Unknown,
}

const WITH_ROWS: [&str; 8] = ["select", "values", "table", "from", "show", "explain", "describe", "desc"];
const WITHOUT_ROWS: [&str; 18] = [
    "insert", "update", "delete", "merge", "replace", "create", "drop", "alter", "truncate", "grant",
    "revoke", "set", "reset", "use", "comment", "begin", "commit", "rollback",
];
const CHANGES: [&str; 4] = ["insert", "update", "delete", "merge"];

impl Kind {
    /// The kind of `text`; an error where it is several queries, of which a server may run the first alone.
    pub(crate) fn of(text: &str) -> Result<Self> {
        let tokens = POSTGRESQL.tokens(text);
        let is_one = |words: &[&str], token: &longshore_source::sql::Token<'_>| {
            words.iter().any(|word| token.is_word(word))
        };
        // A server may take a text without a statement for a query, and a result without columns looks complete.
        if tokens.iter().all(|token| token.is_mark(";")) {
            return Ok(Self::NoRows);
        }
        let Some(first) = tokens.iter().find(|token| !token.is_mark("(")) else { return Ok(Self::Unknown) };
        let kind = if first.is_word("with") {
            if tokens.iter().any(|token| is_one(&CHANGES, token)) { Self::Unknown } else { Self::Rows }
        } else if is_one(&WITH_ROWS, first) {
            Self::Rows
        } else if is_one(&WITHOUT_ROWS, first) {
            if returns(text) { Self::Unknown } else { Self::NoRows }
        } else {
            Self::Unknown
        };
        let end = tokens.iter().position(|token| token.kind == TokenKind::Mark && token.is_mark(";"));
        if kind == Self::Rows && end.is_some_and(|end| tokens[end..].iter().any(|token| !token.is_mark(";")))
        {
            return Err(Error::programming("the text is several statements")
                .with_sqlstate("42601")
                .with_hint(SEVERAL));
        }
        Ok(kind)
    }
}

/// Whether a statement that changes rows returns some.
pub(crate) fn returns(text: &str) -> bool {
    POSTGRESQL.tokens(text).iter().any(|token| token.is_word("returning"))
}

/// The statement with parameters by place, and their values.
pub(crate) fn number<'a>(places: Places, text: &str, params: &'a Params) -> Result<Numbered<'a>> {
    let dialect = places.dialect();
    let numbered = positional(&dialect, text, params)?;
    // Some servers do not look at what is left over.
    let (tokens, given) = (dialect.tokens(&numbered.text), numbered.values.len());
    let marks = tokens.iter().filter(|token| token.kind == TokenKind::Parameter).count();
    if places == Places::Questions && marks > 0 && given > marks {
        return Err(Error::programming(format!(
            "the statement has {marks} parameters, and {given} were given"
        ))
        .with_hint("give one value for each"));
    }
    Ok(numbered)
}

/// A statement that the server has prepared.
pub(crate) struct Prepared {
    handle: Bytes,
    /// The columns of its result, where the server tells them.
    pub(crate) rows: Option<SchemaRef>,
    /// Its parameters, where the server tells them.
    pub(crate) parameters: Option<SchemaRef>,
}

impl Prepared {
    /// Has the server prepare `text` in a transaction, or by itself.
    pub(crate) fn new(
        client: &Client,
        text: &str,
        transaction: Option<&Bytes>,
        deadline: &Deadline,
    ) -> Result<Self> {
        let request = ActionCreatePreparedStatementRequest {
            query: text.to_owned(),
            transaction_id: transaction.cloned(),
        };
        let action = Action::new("CreatePreparedStatement", request.as_any().encode_to_vec());
        let answers = client.act(&action, deadline)?;
        let answer: ActionCreatePreparedStatementResult = answer(&answers)?;
        let rows = declared_schema(&answer.dataset_schema)
            .map(|rows| rows.filter(|schema| !schema.fields().is_empty()));
        // Some servers say of all statements that they have none.
        let has_none = POSTGRESQL
            .tokens(text)
            .iter()
            .chain(&SQLITE.tokens(text))
            .all(|token| token.kind != TokenKind::Parameter);
        let parameters = declared_schema(&answer.parameter_schema)
            .map(|parameters| parameters.filter(|schema| has_none || !schema.fields().is_empty()));
        let mut prepared = Self { handle: answer.prepared_statement_handle, rows: None, parameters: None };
        match (rows, parameters) {
            (Ok(rows), Ok(parameters)) => {
                prepared.rows = rows;
                prepared.parameters = parameters;
                Ok(prepared)
            }
            (Err(error), _) | (_, Err(error)) => {
                prepared.close(client);
                Err(error)
            }
        }
    }

    /// The command that reads its rows.
    pub(crate) fn query(&self) -> CommandPreparedStatementQuery {
        CommandPreparedStatementQuery { prepared_statement_handle: self.handle.clone() }
    }

    /// The command that runs it.
    pub(crate) fn update_command(&self) -> CommandPreparedStatementUpdate {
        CommandPreparedStatementUpdate { prepared_statement_handle: self.handle.clone() }
    }

    /// Gives it one set of parameters for its rows.
    pub(crate) fn bind(&mut self, client: &Client, values: &[&Value], deadline: &Deadline) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let batch = crate::binding::rows(&[values.to_vec()], self.parameters.as_deref())?;
        let results = put_batch(client, &self.query(), &batch, deadline)?;
        // A server without state gives another handle that has them.
        for result in results {
            let Ok(bound) = DoPutPreparedStatementResult::decode(result.app_metadata) else { continue };
            if let Some(handle) = bound.prepared_statement_handle.filter(|handle| !handle.is_empty()) {
                self.handle = handle;
            }
        }
        Ok(())
    }

    /// Runs it with each set of parameters, and gives the rows that all have changed, where the server tells it.
    pub(crate) fn update(
        &self,
        client: &Client,
        sets: &[Vec<&Value>],
        deadline: &Deadline,
    ) -> Result<Option<u64>> {
        let command = self.update_command();
        if sets.first().is_none_or(Vec::is_empty) {
            let run = client.put(futures::stream::iter([first_message(&command)]));
            return changed_rows(&wait(deadline, run)??);
        }
        let batch = crate::binding::rows(sets, self.parameters.as_deref())?;
        changed_rows(&put_batch(client, &command, &batch, deadline)?)
    }

    /// Has the server forget it, without waiting for the answer: it may not come.
    pub(crate) fn close(self, client: &Client) {
        client.act_unwatched(self.closing());
    }

    /// Has the server forget it, and waits for the answer: some servers fail at a next statement meanwhile.
    pub(crate) fn close_answered(self, client: &Client, deadline: &Deadline) {
        // The rows are there: they do not depend on what the server says of this.
        let _ = client.act(&self.closing(), deadline);
    }

    fn closing(self) -> Action {
        let request = ActionClosePreparedStatementRequest { prepared_statement_handle: self.handle };
        Action::new("ClosePreparedStatement", request.as_any().encode_to_vec())
    }
}

/// Runs a statement without parameters, and gives the rows that it has changed, where the server tells it.
pub(crate) fn update(
    client: &Client,
    text: &str,
    transaction: Option<&Bytes>,
    deadline: &Deadline,
) -> Result<Option<u64>> {
    let command = CommandStatementUpdate { query: text.to_owned(), transaction_id: transaction.cloned() };
    let run = client.put(futures::stream::iter([first_message(&command)]));
    changed_rows(&wait(deadline, run)??)
}

fn put_batch(
    client: &Client,
    command: &impl ProstMessageExt,
    batch: &RecordBatch,
    deadline: &Deadline,
) -> Result<Vec<PutResult>> {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let (mut encoder, first) = Encoder::begin(&batch.schema(), descriptor);
    let messages = std::iter::once(first).chain(encoder.encode(batch)?);
    wait(deadline, client.put(futures::stream::iter(messages)))?
}

/// The message of a command without rows.
fn first_message(command: &impl ProstMessageExt) -> FlightData {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    FlightData::new().with_descriptor(descriptor)
}

/// How many rows were changed.
pub(crate) fn changed_rows(results: &[PutResult]) -> Result<Option<u64>> {
    let Some(last) = results.last() else { return Ok(None) };
    let result = DoPutUpdateResult::decode(last.app_metadata.clone())
        .map_err(|error| protocol_error(format_args!("the count of changed rows: {error}")))?;
    Ok(u64::try_from(result.record_count).ok())
}

/// The message that an action is answered with.
pub(crate) fn answer<T: ProstMessageExt + Message + Default>(answers: &[Bytes]) -> Result<T> {
    let first = answers.first().ok_or_else(|| protocol_error("an action has no answer"))?;
    let any = Any::decode(first.clone())
        .map_err(|error| protocol_error(format_args!("an action's answer: {error}")))?;
    any.unpack()
        .map_err(|error| protocol_error(format_args!("an action's answer: {error}")))?
        .ok_or_else(|| protocol_error(format_args!("an action is answered with {}", any.type_url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_statement_is_known_where_its_text_tells() {
        for (text, kind) in [
            ("SELECT 1", Kind::Rows),
            (" -- a\n(select 1) union select 2;", Kind::Rows),
            ("with a as (select 1) select * from a", Kind::Rows),
            ("with a as (delete from t returning *) select * from a", Kind::Unknown),
            ("INSERT INTO t VALUES (1)", Kind::NoRows),
            ("insert into t values (1) returning a", Kind::Unknown),
            ("CREATE TRIGGER a BEGIN SELECT 1; SELECT 2; END", Kind::NoRows),
            ("FETCH ALL FROM 2 OF c", Kind::Unknown),
            ("-- nothing", Kind::NoRows),
            (" ; ", Kind::NoRows),
            ("; SELECT 1", Kind::Unknown),
        ] {
            assert_eq!(Kind::of(text).unwrap(), kind, "{text}");
        }
        assert_eq!(Kind::of("SELECT 1; DROP TABLE t").unwrap_err().hint(), Some(SEVERAL));
    }
}
