//! Parts by the values of a column of the result: the query is wrapped, not edited.

use longshore_core::{Query, Split, Value};
use longshore_source::NotSplit;

use super::blocks::{self, Leaf};
use super::bounds::{self, Distribution};
use super::cuts::{self, Part, Piece};
use super::groups::{Groups, Origin};
use super::key::{Key, PART};
use super::moment::{Explained, Moment, Table, plan};
use super::plan::{EXPLAIN, Relation};
use super::range;
use super::table::with;
use super::volatile::{self, Uses, text_array};
use crate::connection::pipeline::Step;
use crate::dialect::{DIALECT, one_table};
use crate::session::PostgresSession;

/// A part may be expected to have this many times its share; beyond it, the statistics say nothing of this query.
const UNEVEN: f64 = 1.6;

/// No more parts than these are planned to see whether they are even.
const PLANNED: usize = 64;

/// Aggregates whose value depends on the order of their rows, or may: two parts could have another order. Where the key
/// is one call of `$2`, overloads whose result cannot have the key's type, `$3`, are not the one that is called.
const UNORDERED: &str = "\
SELECT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t ON t.oid = p.prorettype \
WHERE p.prokind = 'a' AND p.proname = ANY ($1::text[]) \
AND (p.proname <> $2::text OR t.oid = $3::oid OR t.typtype IN ('p', 'd')) \
AND NOT (p.oid < 16384 AND p.proname = ANY ( \
    '{count,min,max,bool_and,bool_or,every,bit_and,bit_or,bit_xor,percentile_disc,percentile_cont,\
      range_agg,range_intersect_agg,regr_count}')) \
LIMIT 1";

/// Types whose sums and averages are exact: int8, numeric, interval, money.
const EXACT: &[u32] = &[20, 1700, 1186, 790];

/// Divides the moment's only query by the column `on` into about `number` parts.
pub(super) fn parts(
    session: &mut PostgresSession,
    moment: &Moment,
    uses: &Uses,
    split: &Split,
    on: &str,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let query = &moment.queries[0];
    let key = Key::find(session, &query.columns, on)?;
    let keyed = Keyed { query, key };
    let parts = match &split.range {
        Some(range) => keyed.by_range(session, uses, range, number)?,
        None => keyed.by_distribution(session, uses, number)?,
    };
    if parts.len() < 2 {
        return Err(NotSplit::Small);
    }
    let mut queries = Vec::new();
    for part in &parts {
        match part {
            // Without a snapshot, a row that is updated meanwhile would go from one range of blocks into another.
            Part::Value(value, pieces) if *pieces > 1 && moment.snapshot.is_some() => {
                queries.extend(keyed.by_blocks(session, moment, value, *pieces)?);
            }
            _ => queries.push(query.statement.query(keyed.wrapped(part))),
        }
    }
    Ok(queries)
}

/// The ranges of a part, if it has some: the planner multiplies what it knows of the two sides of an OR.
fn without_nulls(part: &Part) -> Option<Part> {
    let Part::Pieces(pieces) = part else { return None };
    let ranges: Vec<Piece> = pieces.iter().filter(|piece| **piece != Piece::Nulls).cloned().collect();
    (!ranges.is_empty()).then_some(Part::Pieces(ranges))
}

struct Keyed<'a> {
    query: &'a Explained,
    key: Key,
}

impl Keyed<'_> {
    fn by_range(
        &self,
        session: &mut PostgresSession,
        uses: &Uses,
        range: &(Value, Value),
        number: usize,
    ) -> Result<Vec<Part>, NotSplit> {
        let bounds = range::bounds(&self.key, range, number)?;
        self.ask(session, uses, None)?;
        Ok(cuts::between(&bounds))
    }

    fn by_distribution(
        &self,
        session: &mut PostgresSession,
        uses: &Uses,
        number: usize,
    ) -> Result<Vec<Part>, NotSplit> {
        let statement = &self.query.statement;
        let statistics = (self.key.table != 0).then(|| bounds::statistics(statement, &self.key));
        if let Some(found) = self.ask(session, uses, statistics)? {
            let parts = cuts::cut(&found.points, found.nulls, number);
            if self.is_whole_table() || self.is_even(session, &parts, number)? {
                return Ok(parts);
            }
        }
        let sample = bounds::sample(statement, &self.key, self.query.plan.rows);
        let answers = session.connection.flight(&[sample])?;
        let found = bounds::read_sample(&answers[0]);
        Ok(cuts::cut(&found.points, found.nulls, number))
    }

    /// Asks what makes the read serial after all, and for the `statistics` in the same flight.
    fn ask(
        &self,
        session: &mut PostgresSession,
        uses: &Uses,
        statistics: Option<Step>,
    ) -> Result<Option<Distribution>, NotSplit> {
        let groups = Groups::of(&self.query.bare);
        let has_statistics = statistics.is_some();
        let steps = [uses.lookup(), groups.lookup(&self.key), self.unordered()];
        let answers = session.connection.flight(&steps.into_iter().chain(statistics).collect::<Vec<_>>())?;
        if let Some(reason) = volatile::reason(&answers[0].rows) {
            return Err(NotSplit::Reason(reason));
        }
        let origin = Origin::read(&answers[1]);
        if !groups.are_whole(&self.key, origin) {
            return Err(NotSplit::because(
                "partition_on tells apart what the query takes for equal, and may divide groups",
            ));
        }
        if !origin.is_tables && !answers[2].rows.is_empty() {
            let aggregate = answers[2].cell(0, 0);
            return Err(NotSplit::Reason(format!(
                "{aggregate}() may depend on the order of rows, and partition_on is computed from it"
            )));
        }
        Ok(answers.last().filter(|_| has_statistics).and_then(bounds::read_statistics))
    }

    /// Asks for aggregates that could give the key another value in another part.
    fn unordered(&self) -> Step {
        let nodes = self.query.bare.nodes();
        let aggregates: Vec<_> = nodes.into_iter().filter(|node| node.kind == "Aggregate").collect();
        let own = self.query.bare.root.output.get(self.key.index);
        let mut uses = Uses::default();
        match (aggregates.as_slice(), own) {
            // Computed here and nowhere before.
            ([_], Some(own)) if own.contains('(') => uses.add(own),
            _ => aggregates.iter().flat_map(|node| &node.output).for_each(|text| uses.add(text)),
        }
        let mut names = uses.names();
        if own.is_some_and(|own| self.is_exact_sum(own)) {
            names.retain(|name| !["sum", "avg"].contains(name));
        }
        let called = own.filter(|_| aggregates.len() == 1).and_then(|own| called(own)).unwrap_or_default();
        let key_type = self.query.columns[self.key.index].oid;
        Step::run(UNORDERED).bind(&text_array(&names)).bind(&called).bind(&key_type.to_string())
    }

    fn is_exact_sum(&self, own: &str) -> bool {
        let call = own.trim_start_matches('(');
        EXACT.contains(&self.query.columns[self.key.index].oid)
            && (call.starts_with("sum(") || call.starts_with("avg("))
    }

    /// Whether the result is a table with all its rows, which the statistics are of.
    fn is_whole_table(&self) -> bool {
        let root = &self.query.bare.root;
        root.kind == "Seq Scan" && root.filter.is_none() && root.children.is_empty()
    }

    /// Whether the planner, which knows the query's conditions, expects parts of about one size.
    fn is_even(
        &self,
        session: &mut PostgresSession,
        parts: &[Part],
        number: usize,
    ) -> Result<bool, NotSplit> {
        let statement = &self.query.statement;
        let ranges = parts.iter().filter_map(without_nulls).collect::<Vec<_>>();
        if ranges.len() > PLANNED {
            return Ok(true);
        }
        let explain = |part| statement.step(format!("{EXPLAIN}{}", self.wrapped(part)));
        let answers = session.connection.flight(&ranges.iter().map(explain).collect::<Vec<_>>())?;
        let plans = answers.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
        let largest = plans.iter().map(|plan| plan.rows).fold(0.0, f64::max);
        #[allow(clippy::cast_precision_loss)] // numbers of parts are small
        let share = self.query.plan.rows / number as f64;
        Ok(largest <= share * UNEVEN)
    }

    /// The query's rows of one part.
    fn wrapped(&self, part: &Part) -> String {
        let condition = self.key.condition(&self.key.column, part);
        format!("SELECT * FROM ({}\n) AS {PART} WHERE {condition}", self.query.statement.text)
    }

    /// The rows of one value, cut into `pieces` by blocks where that can be.
    fn by_blocks(
        &self,
        session: &mut PostgresSession,
        moment: &Moment,
        value: &str,
        pieces: usize,
    ) -> Result<Vec<Query>, NotSplit> {
        let statement = &self.query.statement;
        let part = Part::Value(value.to_owned(), pieces);
        let cut = moment.table.as_ref().and_then(|table| self.pieces(table, &part, pieces));
        let texts = match cut {
            Some(pieces) if self.are_ranges(session, &pieces)? => pieces.texts,
            _ => vec![self.wrapped(&part)],
        };
        Ok(texts.into_iter().map(|text| statement.query(text)).collect())
    }

    /// The pieces of a part, where the query is the scan of one table.
    fn pieces(&self, table: &Table, part: &Part, pieces: usize) -> Option<Pieces> {
        let text = one_table(&self.query.statement.text)?;
        let root = &self.query.bare.root;
        let is_plain = matches!(table.kind.as_str(), "r" | "m") && table.oid == self.key.table;
        if !is_plain || root.kind != "Seq Scan" || !root.children.is_empty() {
            return None;
        }
        let is_value = self.key.condition(root.output.get(self.key.index)?, part);
        let ranges = blocks::ranges(&[Leaf { partition: None, blocks: table.blocks }], pieces);
        let within = ranges.into_iter().filter_map(|range| blocks::within(&text.alias, range));
        let within: Vec<String> = within.collect();
        Some(Pieces {
            relation: table.relation(),
            any_value: with(&text, Some(within.first()?)),
            texts: within
                .iter()
                .map(|within| with(&text, Some(&format!("{is_value} AND {within}"))))
                .collect(),
        })
    }

    /// Whether the server reads the pieces by their blocks, and nothing but the whole query's table.
    fn are_ranges(&self, session: &mut PostgresSession, pieces: &Pieces) -> Result<bool, NotSplit> {
        let explain = |text: &String| self.query.statement.step(format!("{EXPLAIN}{text}"));
        let steps: Vec<Step> = pieces.texts.iter().take(1).chain([&pieces.any_value]).map(explain).collect();
        let answers = session.connection.flight(&steps)?;
        let is_range = plan(&answers[0])?.root.kind == "Tid Range Scan";
        let is_same = blocks::check(&plan(&answers[1])?, &pieces.relation, &self.query.bare.root, true);
        Ok(is_range && is_same.is_ok())
    }
}

/// The function that an output calls, where it is one call and nothing else but parentheses.
fn called(output: &str) -> Option<String> {
    match DIALECT.outermost(output)?.as_slice() {
        [open, close] if open.is_mark("(") => called(&output[open.end()..close.start]),
        [name, open, _] if open.is_mark("(") => DIALECT.name(name),
        _ => None,
    }
}

/// One value's rows by ranges of blocks.
struct Pieces {
    relation: Relation,
    texts: Vec<String>,
    /// The first range with all values, for its plan must be the whole query's but for the range.
    any_value: String,
}

#[cfg(test)]
mod tests {
    use super::called;

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
