//! Parts by blocks of the table: ranges of `ctid`.

use longshore_core::Query;
use longshore_source::NotSplit;
use longshore_source::sql::OneTable;

use super::leaves;
use super::moment::{Explained, Moment, Table, plan};
use super::plan::{EXPLAIN, Node, Plan, Relation};
use super::table;
use super::volatile::{self, Uses};
use crate::connection::pipeline::Step;
use crate::dialect::one_table;
use crate::session::PostgresSession;

/// A table whose rows a query returns, by itself or as a partition.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The partition; `None` for the table that the query names.
    pub(super) partition: Option<Relation>,
    pub(super) blocks: u64,
}

/// A range of one leaf's blocks; an end that is open takes what may come after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) leaf: usize,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
}

/// A table of fewer blocks is not cut: the server reads it whole in any case.
const SMALLEST: u64 = 16;

/// Divides the moment's only query into about `number` parts.
pub(super) fn parts(
    session: &mut PostgresSession,
    moment: &Moment,
    uses: &Uses,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let query = &moment.queries[0];
    if query.bare.relations().is_empty() {
        return Err(empty_or_no_table(query));
    }
    let (Some(text), Some(table)) = (one_table(&query.statement.text), &moment.table) else {
        return Err(NotSplit::because("it is more than a SELECT from one table: give partition_on"));
    };
    let cut = Cut { query, text, table };
    match table.kind.as_str() {
        "r" | "m" => cut.table(session, uses, number),
        "p" => cut.partitions(session, uses, number),
        _ => Err(NotSplit::because("a view: give partition_on")),
    }
}

/// A plan that reads no table is of a condition that never holds, or of functions.
fn empty_or_no_table(query: &Explained) -> NotSplit {
    match query.bare.root.kind.as_str() {
        "Result" => NotSplit::Small,
        _ => NotSplit::because("it reads no table: give partition_on"),
    }
}

struct Cut<'a> {
    query: &'a Explained,
    text: OneTable<'a>,
    table: &'a Table,
}

impl Cut<'_> {
    fn table(
        &self,
        session: &mut PostgresSession,
        uses: &Uses,
        number: usize,
    ) -> Result<Vec<Query>, NotSplit> {
        let scan = self.only_scan()?;
        let leaves = [Leaf { partition: None, blocks: self.table.blocks }];
        let ranges = ranges(&leaves, number);
        if ranges.len() < 2 {
            return Err(NotSplit::Small);
        }
        let first = self.part(&leaves, ranges[0]);
        let answers = session.connection.flight(&[uses.lookup(), self.explanation(&first)])?;
        if let Some(reason) = volatile::reason(&answers[0].rows) {
            return Err(NotSplit::Reason(reason));
        }
        check(&plan(&answers[1])?, &self.table.relation(), scan, true)?;
        Ok(ranges.into_iter().map(|range| self.query.statement.query(self.part(&leaves, range))).collect())
    }

    fn partitions(
        &self,
        session: &mut PostgresSession,
        uses: &Uses,
        number: usize,
    ) -> Result<Vec<Query>, NotSplit> {
        if self.table.has_row_security {
            return Err(NotSplit::because("row-level security on a partitioned table: give partition_on"));
        }
        if table::asks_for_the_table(&self.text) {
            return Err(NotSplit::because("it asks which partition a row is in: give partition_on"));
        }
        let scans = leaves::scans(&self.query.bare.root)?;
        let lookup = leaves::lookup(self.table.oid, &self.query.columns, &scans);
        let answers = session.connection.flight(&[uses.lookup(), lookup])?;
        if let Some(reason) = volatile::reason(&answers[0].rows) {
            return Err(NotSplit::Reason(reason));
        }
        let leaves = leaves::read(&answers[1], &scans)?;
        let ranges = ranges(&leaves, number);
        if ranges.len() < 2 {
            return Err(NotSplit::Small);
        }
        self.check_leaves(session, &scans, &leaves, &ranges)?;
        Ok(ranges.into_iter().map(|range| self.query.statement.query(self.part(&leaves, range))).collect())
    }

    /// Has the server plan and describe one part of each leaf.
    fn check_leaves(
        &self,
        session: &mut PostgresSession,
        scans: &[&Node],
        leaves: &[Leaf],
        ranges: &[Range],
    ) -> Result<(), NotSplit> {
        let firsts = ranges.chunk_by(|a, b| a.leaf == b.leaf).map(|of_leaf| of_leaf[0]).collect::<Vec<_>>();
        let steps = firsts.iter().flat_map(|range| {
            let part = self.part(leaves, *range);
            [self.explanation(&part), self.query.statement.description(part)]
        });
        let answers = session.connection.flight(&steps.collect::<Vec<_>>())?;
        for (range, answers) in firsts.iter().zip(answers.chunks(2)) {
            let Some(partition) = &leaves[range.leaf].partition else { continue };
            let is_ranged = range.start.is_some() || range.end.is_some();
            check(&plan(&answers[0])?, partition, scans[range.leaf], is_ranged)?;
            let columns = answers[1].prepared.as_ref().and_then(|prepared| prepared.columns.as_deref());
            let same = columns.is_some_and(|columns| {
                columns.len() == self.query.columns.len()
                    && columns
                        .iter()
                        .zip(&self.query.columns)
                        .all(|(a, b)| (&a.name, a.oid, a.modifier) == (&b.name, b.oid, b.modifier))
            });
            if !same {
                return Err(NotSplit::because(
                    "a partition has other columns than its table: give partition_on",
                ));
            }
        }
        Ok(())
    }

    /// The scan that is the whole plan.
    fn only_scan(&self) -> Result<&Node, NotSplit> {
        let root = &self.query.bare.root;
        let is_its = root.relation.as_ref() == Some(&self.table.relation());
        match root.kind.as_str() {
            "Seq Scan" if root.children.is_empty() && is_its => Ok(root),
            "Append" | "Merge Append" => Err(NotSplit::because("tables that inherit: give partition_on")),
            "Tid Scan" | "Tid Range Scan" => Err(NotSplit::because("it chooses rows by ctid itself")),
            _ => Err(NotSplit::because("it is more than one scan of a table: give partition_on")),
        }
    }

    fn part(&self, leaves: &[Leaf], range: Range) -> String {
        let condition = within(&self.text.alias, range);
        match &leaves[range.leaf].partition {
            None => table::with(&self.text, condition.as_deref()),
            Some(partition) => table::over(&self.text, &partition.qualified(), condition.as_deref()),
        }
    }

    fn explanation(&self, part: &str) -> Step {
        self.query.statement.step(format!("{EXPLAIN}{part}"))
    }
}

/// The condition that a row of the table `alias` lies within `range`.
pub(super) fn within(alias: &str, range: Range) -> Option<String> {
    let tid = |operator: &str, block: u64| format!("{alias}.ctid {operator} '({block},0)'::pg_catalog.tid");
    let conditions = [range.start.map(|block| tid(">=", block)), range.end.map(|block| tid("<", block))];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

/// Lays the blocks of all leaves end to end and cuts them into `number` runs of the same length; a run that goes on in
/// the next leaf is one range in each. A leaf's first range is open below and its last is open above. Leaves without
/// blocks had no row at the moment of the snapshot. Small leaves are not cut.
pub(super) fn ranges(leaves: &[Leaf], number: usize) -> Vec<Range> {
    let total: u64 = leaves.iter().map(|leaf| leaf.blocks).sum();
    let number = total.min(number as u64);
    let bounds = (1..number).map(|run| u128::from(total) * u128::from(run) / u128::from(number));
    let bounds: Vec<u64> = bounds.filter_map(|bound| u64::try_from(bound).ok()).collect();
    let mut ranges = Vec::new();
    let mut before = 0;
    for (leaf, Leaf { blocks, .. }) in leaves.iter().enumerate() {
        let inner = before + 1..if *blocks < SMALLEST { before } else { before + blocks };
        let inside = bounds.iter().filter(|bound| inner.contains(bound));
        let cuts: Vec<Option<u64>> = inside.map(|bound| Some(bound - before)).collect();
        let starts = [None].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([None]);
        if *blocks > 0 {
            ranges.extend(starts.zip(ends).map(|(start, end)| Range { leaf, start, end }));
        }
        before += blocks;
    }
    ranges
}

/// Refuses a part whose plan is anything but the scan of one leaf, by a range of its blocks where it `is_ranged`, with
/// what the whole query's `scan` of it hands on and keeps back.
pub(super) fn check(part: &Plan, leaf: &Relation, scan: &Node, is_ranged: bool) -> Result<(), NotSplit> {
    let root = &part.root;
    let is_leaf = part.nodes().iter().all(|node| node.relation.as_ref().is_none_or(|found| found == leaf));
    let (output, filter) = root.shape();
    let (scan_output, scan_filter) = scan.shape();
    let is_same = is_leaf && output == scan_output;
    match root.kind.as_str() {
        "Tid Range Scan" | "Seq Scan" if root.children.is_empty() && is_same && filter == scan_filter => {
            if is_ranged == (root.kind == "Tid Range Scan") {
                return Ok(());
            }
            Err(NotSplit::because("this server reads no ranges of blocks: give partition_on"))
        }
        "Index Scan" | "Index Only Scan" | "Bitmap Heap Scan" if is_same => {
            if is_ranged {
                return Err(NotSplit::because(
                    "an index finds the rows faster than parts would: give partition_on",
                ));
            }
            Ok(())
        }
        _ => Err(NotSplit::because("the parts' plans are not the whole's: give partition_on")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(blocks: &[u64]) -> Vec<Leaf> {
        blocks.iter().map(|blocks| Leaf { partition: None, blocks: *blocks }).collect()
    }

    fn shown(blocks: &[u64], number: usize) -> Vec<String> {
        let ranges = ranges(&leaves(blocks), number);
        let side = |side: Option<u64>| side.map(|block| block.to_string()).unwrap_or_default();
        ranges.iter().map(|it| format!("{}:{}-{}", it.leaf, side(it.start), side(it.end))).collect()
    }

    #[test]
    fn blocks_are_cut_into_runs_of_one_length() {
        assert_eq!(shown(&[100], 3), ["0:-33", "0:33-66", "0:66-"]);
        assert_eq!(shown(&[100], 1), ["0:-"]);
        assert_eq!(shown(&[16], 50).len(), 16);
        assert_eq!(shown(&[15], 2), ["0:-"]);
        assert!(shown(&[0], 4).is_empty());
        assert_eq!(shown(&[u64::from(u32::MAX)], 2), ["0:-2147483647", "0:2147483647-"]);
    }

    #[test]
    fn a_run_goes_on_in_the_next_leaf() {
        assert_eq!(shown(&[40, 0, 40], 2), ["0:-", "2:-"]);
        assert_eq!(shown(&[60, 20], 2), ["0:-40", "0:40-", "1:-"]);
        assert_eq!(shown(&[1, 1, 1], 2), ["0:-", "1:-", "2:-"]);
    }

    #[test]
    fn every_block_is_in_one_range() {
        for blocks in [[0, 17, 1, 32], [30, 0, 0, 1], [100, 1, 16, 1]] {
            for number in 1..20 {
                let ranges = ranges(&leaves(&blocks), number);
                for (leaf, count) in blocks.iter().enumerate() {
                    for block in 0..count + 2 {
                        let holds = |range: &&Range| {
                            range.leaf == leaf
                                && range.start.is_none_or(|start| start <= block)
                                && range.end.is_none_or(|end| block < end)
                        };
                        let expected = usize::from(*count > 0);
                        assert_eq!(ranges.iter().filter(holds).count(), expected, "{blocks:?} {number}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_is_a_condition() {
        let range = Range { leaf: 0, start: Some(1), end: Some(4) };
        assert_eq!(
            within("\"t\"", range).unwrap(),
            "\"t\".ctid >= '(1,0)'::pg_catalog.tid AND \"t\".ctid < '(4,0)'::pg_catalog.tid"
        );
        assert_eq!(within("\"t\"", Range { leaf: 0, start: None, end: None }), None);
    }
}
