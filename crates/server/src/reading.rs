//! Sessions that only read, held to that by their database: each statement is within a transaction that writes nothing.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{
    Batches, CatalogueQueries, Column, Deadline, Direct, Done, Driver, Error, Failed, Finaliser, Kind,
    Loading, Placeholders, Preparing, Query, ReadOptions, Result, Session, SessionFactory, TableName, Target,
    Transaction, TransactionStatements,
};
use longshore_source::sql::POSTGRESQL;

/// The first words of statements that read.
const READING: [&str; 9] = ["select", "with", "values", "table", "show", "describe", "desc", "explain", "("];
/// The words by which a query of MySQL's writes a file of the server's.
const FILES: [&str; 2] = ["outfile", "dumpfile"];

/// A factory of sessions that only read, of a source whose sessions write.
#[must_use]
pub fn read_only(source: Arc<Direct>) -> Arc<Direct> {
    Direct::new(
        Arc::new(Reading(source)),
        Target::from_keywords("reading", std::collections::BTreeMap::new()),
    )
}

struct Reading(Arc<Direct>);

impl Driver for Reading {
    fn schemes(&self) -> Vec<&str> {
        vec!["reading"]
    }

    fn connect(&self, _target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        Ok(Box::new(ReadingSession { session: self.0.open(deadline)?, is_owners: false }))
    }
}

/// A session in whose transactions nothing is written.
struct ReadingSession {
    session: Box<dyn Session>,
    /// Whether the open transaction is one that its owner has begun.
    is_owners: bool,
}

/// The error of a statement that changes something.
pub(crate) fn refusal() -> Error {
    Error::new(Kind::Programming, "this user only reads").with_sqlstate("25006").with_hint(
        "SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN do; a writer's role is in the file of users",
    )
}

fn check(text: &str) -> Result<()> {
    let tokens = POSTGRESQL.tokens(text);
    let reads = tokens
        .first()
        .is_some_and(|first| READING.iter().any(|word| first.is_word(word) || first.is_mark(word)));
    // What stands in a comment with ! is MySQL's to run.
    let is_hidden = text.contains("/*!");
    if !reads || is_hidden || tokens.iter().any(|token| FILES.iter().any(|word| token.is_word(word))) {
        return Err(refusal());
    }
    Ok(())
}

impl ReadingSession {
    /// Begins a transaction that writes nothing, where none is open.
    fn begin_for(&mut self, query: &Query) -> Result<()> {
        check(&query.text)?;
        if self.session.transaction() != Transaction::None {
            return Ok(());
        }
        self.begin_reading(query)
    }

    fn begin_reading(&mut self, query: &Query) -> Result<()> {
        let splitting = self.session.splitting().map_err(|reason| {
            Error::not_supported(format!("users of this source cannot be held to reading: {reason}"),
            )
            .with_hint(
                "give the server an account of the database that only reads, and its users the role writer",
            )
        })?;
        splitting.begin_reading(query)
    }

    /// Whether a statement does no more than choose the schema of names without one, as the server itself does.
    fn chooses_schema(&self, text: &str) -> bool {
        let is_quoted = |name: &str| {
            let quote = name.chars().next().filter(|quote| "\"`".contains(*quote));
            let within = quote.and_then(|quote| name.strip_prefix(quote)?.strip_suffix(quote));
            within.is_some_and(|within| !within.is_empty() && !within.contains(['"', '`', '\\']))
        };
        if check(text).is_ok() {
            return false;
        }
        let Some(queries) = self.session.catalogue_queries() else { return false };
        queries.use_schema.split_once("{}").is_some_and(|(before, after)| {
            text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).is_some_and(is_quoted)
        })
    }

    /// Ends a transaction that a statement has begun.
    fn end(&mut self) -> Result<()> {
        if self.is_owners { Ok(()) } else { self.session.rollback() }
    }
}

impl Session for ReadingSession {
    fn execute(&mut self, query: &Query) -> Result<Option<u64>> {
        if self.chooses_schema(&query.text) {
            return self.session.execute(query);
        }
        self.begin_for(query)?;
        let done = self.session.execute(query);
        let ended = self.end();
        done.and_then(|done| ended.map(|()| done))
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        self.session.describe(query, options)
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed> {
        if let Err(error) = self.begin_for(query) {
            return Err(Failed { error, session: Some(self) });
        }
        let is_owners = self.is_owners;
        match self.session.read(query, options) {
            Ok(batches) => Ok(Box::new(ReadingBatches { batches, is_owners })),
            Err(Failed { error, session }) => Err(Failed { error, session: give_back(session, is_owners) }),
        }
    }

    fn transaction(&self) -> Transaction {
        self.session.transaction()
    }

    fn is_usable(&self) -> bool {
        self.session.is_usable()
    }

    fn reset(&mut self) -> Result<()> {
        self.is_owners = false;
        self.session.reset()
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        self.session.set_deadline(deadline);
    }

    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>> {
        Err(self)
    }

    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        self.session.preparing()
    }

    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        self.session.catalogue_queries()
    }

    fn qualified_name(&self, table: &TableName) -> String {
        self.session.qualified_name(table)
    }

    fn statements(&self) -> TransactionStatements {
        self.session.statements()
    }

    fn placeholders(&self) -> Placeholders {
        self.session.placeholders()
    }

    fn begin(&mut self) -> Result<()> {
        self.begin_reading(&Query::new("SELECT 1"))?;
        self.is_owners = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.is_owners = false;
        self.session.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.is_owners = false;
        self.session.rollback()
    }
}

/// The session that only reads, outside of a transaction of the statement's own.
fn give_back(session: Option<Box<dyn Session>>, is_owners: bool) -> Option<Box<dyn Session>> {
    let mut session = ReadingSession { session: session?, is_owners };
    session.end().ok()?;
    Some(Box::new(session))
}

struct ReadingBatches {
    batches: Box<dyn Batches>,
    is_owners: bool,
}

impl Iterator for ReadingBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

impl Batches for ReadingBatches {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.batches.finaliser()
    }

    fn effect(&self) -> Option<Done> {
        self.batches.effect()
    }

    fn fails_transaction(&self) -> bool {
        self.is_owners && self.batches.fails_transaction()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        give_back(self.batches.into_session(), self.is_owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_may_write_is_refused_by_its_first_word() {
        for reads in
            ["SELECT 1", "/* a */ with x as (select 1) select * from x", "(select 1)", "explain select 1"]
        {
            check(reads).unwrap();
        }
        for writes in [
            "",
            "COMMIT",
            "SET TRANSACTION READ WRITE",
            "DO $$ begin end $$",
            "insert into t values (1)",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "PRAGMA query_only = off",
            "SELECT 1 /*! INTO OUTFILE '/tmp/x' */",
            "ATTACH 'x' AS y",
        ] {
            assert_eq!(check(writes).unwrap_err().sqlstate(), Some("25006"), "{writes}");
        }
    }
}
