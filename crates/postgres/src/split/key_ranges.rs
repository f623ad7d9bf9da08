//! Parts by the values of a column of the result: the query is wrapped, not edited.

use longshore_core::{Query, Split, Value};
use longshore_source::NotSplit;

use super::bounds::{
    Distribution, KeyPart, equal_parts, parts_between, range_bounds, read_sample, read_statistics,
    sample_step, statistics_step,
};
use super::key::{Key, PART, check_groups, view_lookup};
use super::plan::Plan;
use super::snapshot::{Explained, Snapshot};
use super::volatile::{self, Calls};
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

/// A part may be expected to have this many times its share; beyond it, the statistics say nothing of this query.
const UNEVEN: f64 = 1.6;

/// No more parts than these are planned to see whether they are even.
const PLANNED: usize = 64;

/// Divides the snapshot's only query by the column `on` into about `number` parts.
pub(super) fn parts(
    session: &mut PostgresSession,
    snapshot: &Snapshot,
    calls: &Calls,
    split: &Split,
    on: &str,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let query = &snapshot.queries[0];
    let key = Key::find(session, &query.columns, on)?;
    let split_by_key = KeySplit { query, key };
    let parts = match &split.range {
        Some(range) => split_by_key.by_range(session, calls, range, number)?,
        None => split_by_key.by_distribution(session, calls, number)?,
    };
    if parts.len() < 2 {
        return Err(NotSplit::Small);
    }
    Ok(parts.iter().map(|part| query.statement.query(split_by_key.wrap(part))).collect())
}

struct KeySplit<'a> {
    query: &'a Explained,
    key: Key,
}

impl KeySplit<'_> {
    fn by_range(
        &self,
        session: &mut PostgresSession,
        calls: &Calls,
        range: &(Value, Value),
        number: usize,
    ) -> Result<Vec<KeyPart>, NotSplit> {
        let bounds = range_bounds(&self.key, range, number)?;
        self.ask(session, calls, None)?;
        Ok(parts_between(&bounds))
    }

    fn by_distribution(
        &self,
        session: &mut PostgresSession,
        calls: &Calls,
        number: usize,
    ) -> Result<Vec<KeyPart>, NotSplit> {
        let statement = &self.query.statement;
        let statistics = (self.key.table != 0).then(|| statistics_step(statement, &self.key));
        if let Some(found) = self.ask(session, calls, statistics)? {
            let parts = equal_parts(&found.points, found.nulls, number);
            if self.is_whole_table() || self.is_even(session, &parts, found.largest(number))? {
                return Ok(parts);
            }
        }
        let sample = sample_step(statement, &self.key, self.query.plan.rows);
        let found = read_sample(&session.connection.ask(sample)?);
        Ok(equal_parts(&found.points, found.nulls, number))
    }

    /// Asks what makes the read serial after all, and for the `statistics` in the same flight.
    fn ask(
        &self,
        session: &mut PostgresSession,
        calls: &Calls,
        statistics: Option<Step>,
    ) -> Result<Option<Distribution>, NotSplit> {
        let has_statistics = statistics.is_some();
        let steps = [calls.lookup(), view_lookup(&self.key)];
        let answers = session.connection.flight(&steps.into_iter().chain(statistics).collect::<Vec<_>>())?;
        volatile::check(&answers[0])?;
        check_groups(&self.query.bare, &answers[1])?;
        Ok(answers.last().filter(|_| has_statistics).and_then(read_statistics))
    }

    /// Whether the result is a table with all its rows, which the statistics are of.
    fn is_whole_table(&self) -> bool {
        let root = &self.query.bare.root;
        root.kind == "Seq Scan" && root.filter.is_none() && root.children.is_empty()
    }

    /// Whether the planner, which knows the query's conditions, expects no part of much more than this share of the rows.
    fn is_even(
        &self,
        session: &mut PostgresSession,
        parts: &[KeyPart],
        share: f64,
    ) -> Result<bool, NotSplit> {
        let statement = &self.query.statement;
        if parts.len() > PLANNED {
            return Ok(true);
        }
        // The planner multiplies what it knows of the two sides of an OR.
        let ranges = parts.iter().filter(|part| part.range.is_some());
        let ranges = ranges.map(|part| KeyPart { has_nulls: false, ..part.clone() });
        let steps = ranges.map(|part| statement.explanation(&self.wrap(&part))).collect::<Vec<_>>();
        let answers = session.connection.flight(&steps)?;
        let plans = answers.iter().map(Plan::read).collect::<Result<Vec<_>, _>>()?;
        let largest = plans.iter().map(|plan| plan.rows).fold(0.0, f64::max);
        Ok(largest <= self.query.plan.rows * share * UNEVEN)
    }

    fn wrap(&self, part: &KeyPart) -> String {
        let condition = self.key.condition(&self.key.column, part);
        format!("SELECT * FROM ({}\n) AS {PART} WHERE {condition}", self.query.statement.text)
    }
}
