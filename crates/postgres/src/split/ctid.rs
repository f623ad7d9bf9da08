//! Parts by blocks of a table or of its partitions: ranges of `ctid`. They read no table that inherits from theirs: another
//! may begin to while the parts are read.

use longshore_core::Query;
use longshore_source::NotSplit;
use longshore_source::sql::OneTable;

use super::plan::{Node, Plan, Relation};
use super::snapshot::{Explained, Snapshot, Table};
use super::volatile::{self, Calls};
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, one_table, text_array};
use crate::session::PostgresSession;

/// A table whose rows a query returns, by itself or as a partition.
#[derive(Debug)]
struct ScannedTable {
    /// The partition; `None` for the table that the query names.
    partition: Option<Relation>,
    blocks: u64,
}

/// A range of one table's blocks; an open end takes what may come after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockRange {
    table: usize,
    start: Option<u64>,
    end: Option<u64>,
}

/// A table of fewer blocks is not divided: the server reads it whole in any case.
const SMALLEST: u64 = 16;

/// Divides the snapshot's only query into about `number` parts.
pub(super) fn parts(
    session: &mut PostgresSession,
    snapshot: &Snapshot,
    calls: &Calls,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let query = &snapshot.queries[0];
    if query.bare.relations().is_empty() {
        return Err(empty_or_no_table(query));
    }
    let (Some(text), Some(table)) = (one_table(&query.statement.text), &snapshot.table) else {
        return Err(NotSplit::because("it is more than a SELECT from one table: give partition_on"));
    };
    let split = CtidSplit { query, text, table };
    match table.kind.as_str() {
        "r" | "m" => split.table(session, calls, number),
        "p" => split.partitions(session, calls, number),
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

struct CtidSplit<'a> {
    query: &'a Explained,
    text: OneTable<'a>,
    table: &'a Table,
}

impl CtidSplit<'_> {
    fn table(
        &self,
        session: &mut PostgresSession,
        calls: &Calls,
        number: usize,
    ) -> Result<Vec<Query>, NotSplit> {
        let scan = self.only_scan()?;
        let tables = [ScannedTable { partition: None, blocks: self.table.blocks }];
        let ranges = ranges(&tables, number);
        if ranges.len() < 2 {
            return Err(NotSplit::Small);
        }
        let first = self.part(&tables, ranges[0]);
        let answers =
            session.connection.flight(&[calls.lookup(), self.query.statement.explanation(&first)])?;
        volatile::check(&answers[0])?;
        check_part_plan(&Plan::read(&answers[1])?, &self.table.relation, scan, true)?;
        Ok(ranges.into_iter().map(|range| self.query.statement.query(self.part(&tables, range))).collect())
    }

    fn partitions(
        &self,
        session: &mut PostgresSession,
        calls: &Calls,
        number: usize,
    ) -> Result<Vec<Query>, NotSplit> {
        if self.table.has_row_security {
            return Err(NotSplit::because("row-level security on a partitioned table: give partition_on"));
        }
        if names_row_or_table(&self.text) {
            return Err(NotSplit::because("it asks which partition a row is in: give partition_on"));
        }
        let scans = partition_scans(&self.query.bare.root)?;
        let lookup = partition_lookup(self.table.oid, &self.query.columns, &scans);
        let answers = session.connection.flight(&[calls.lookup(), lookup])?;
        volatile::check(&answers[0])?;
        let tables = read_partitions(&answers[1], &scans)?;
        let ranges = ranges(&tables, number);
        if ranges.len() < 2 {
            return Err(NotSplit::Small);
        }
        self.check_leaves(session, &scans, &tables, &ranges)?;
        Ok(ranges.into_iter().map(|range| self.query.statement.query(self.part(&tables, range))).collect())
    }

    /// Has the server plan and describe one part of each table.
    fn check_leaves(
        &self,
        session: &mut PostgresSession,
        scans: &[&Node],
        tables: &[ScannedTable],
        ranges: &[BlockRange],
    ) -> Result<(), NotSplit> {
        let firsts =
            ranges.chunk_by(|a, b| a.table == b.table).map(|of_table| of_table[0]).collect::<Vec<_>>();
        let steps = firsts.iter().flat_map(|range| {
            let part = self.part(tables, *range);
            [self.query.statement.explanation(&part), self.query.statement.description(part)]
        });
        let answers = session.connection.flight(&steps.collect::<Vec<_>>())?;
        for (range, answers) in firsts.iter().zip(answers.chunks(2)) {
            let Some(partition) = &tables[range.table].partition else { continue };
            let is_ranged = range.start.is_some() || range.end.is_some();
            check_part_plan(&Plan::read(&answers[0])?, partition, scans[range.table], is_ranged)?;
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

    fn only_scan(&self) -> Result<&Node, NotSplit> {
        let root = &self.query.bare.root;
        let is_its = root.relation.as_ref() == Some(&self.table.relation);
        match root.kind.as_str() {
            "Seq Scan" if root.children.is_empty() && is_its => Ok(root),
            "Append" | "Merge Append" => Err(NotSplit::because("tables that inherit: give partition_on")),
            "Tid Scan" | "Tid Range Scan" => Err(NotSplit::because("it chooses rows by ctid itself")),
            _ => Err(NotSplit::because("it is more than one scan of a table: give partition_on")),
        }
    }

    fn part(&self, tables: &[ScannedTable], range: BlockRange) -> String {
        let condition = block_condition(&self.text.alias, range);
        restrict(&self.text, tables[range.table].partition.as_ref(), condition.as_deref())
    }
}

/// The condition that a row of the table `alias` lies within `range`.
fn block_condition(alias: &str, range: BlockRange) -> Option<String> {
    let tid = |operator: &str, block: u64| format!("{alias}.ctid {operator} '({block},0)'::pg_catalog.tid");
    let conditions = [range.start.map(|block| tid(">=", block)), range.end.map(|block| tid("<", block))];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

/// Lays the blocks of all tables end to end and divides them into `number` runs of the same length; a run that goes on in
/// the next table is one range in each. A table's first range is open below and its last is open above. Tables without
/// blocks had no row in the snapshot. Small tables are not divided.
fn ranges(tables: &[ScannedTable], number: usize) -> Vec<BlockRange> {
    let total: u64 = tables.iter().map(|table| table.blocks).sum();
    let number = total.min(number as u64);
    let bounds = (1..number).map(|run| u128::from(total) * u128::from(run) / u128::from(number));
    let bounds: Vec<u64> = bounds.filter_map(|bound| u64::try_from(bound).ok()).collect();
    let mut ranges = Vec::new();
    let mut before = 0;
    for (table, ScannedTable { blocks, .. }) in tables.iter().enumerate() {
        let inner = before + 1..if *blocks < SMALLEST { before } else { before + blocks };
        let inside = bounds.iter().filter(|bound| inner.contains(bound));
        let inner_bounds: Vec<Option<u64>> = inside.map(|bound| Some(bound - before)).collect();
        let starts = [None].into_iter().chain(inner_bounds.iter().copied());
        let ends = inner_bounds.iter().copied().chain([None]);
        if *blocks > 0 {
            ranges.extend(starts.zip(ends).map(|(start, end)| BlockRange { table, start, end }));
        }
        before += blocks;
    }
    ranges
}

/// Refuses a part whose plan is anything but the scan of one table, by a range of its blocks where it `is_ranged`, with
/// the output and the filter of the whole query's `scan` of it.
fn check_part_plan(part: &Plan, table: &Relation, scan: &Node, is_ranged: bool) -> Result<(), NotSplit> {
    let root = &part.root;
    let is_only_table =
        part.nodes().iter().all(|node| node.relation.as_ref().is_none_or(|found| found == table));
    let (output, filter) = root.shape();
    let (scan_output, scan_filter) = scan.shape();
    let is_same = is_only_table && output == scan_output;
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

/// A partition's columns must be the table's in their order, for whole rows have one; a virtual column of a partition may be
/// computed otherwise than the table's. The arrays among the result's columns must be as deep: what is made as a
/// partition declares no dimensions, and an array without them has one.
const PARTITION_LOOKUP: &str = "\
SELECT c.relkind = 'r', c.relrowsecurity, pg_catalog.has_table_privilege(c.oid, 'SELECT'), \
       (SELECT array_agg((attname, atttypid, atttypmod, attcollation)::text ORDER BY attnum) \
        FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) \
       = (SELECT array_agg((attname, atttypid, atttypmod, attcollation)::text ORDER BY attnum) \
          FROM pg_catalog.pg_attribute WHERE attrelid = $3::oid AND attnum > 0 AND NOT attisdropped), \
       EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attgenerated = 'v'), \
       EXISTS (SELECT FROM pg_catalog.pg_attribute whole JOIN pg_catalog.pg_attribute own \
                    ON own.attrelid = c.oid AND own.attname = whole.attname \
               WHERE whole.attrelid = $3::oid AND whole.attnum = ANY ($4::int2[]) \
                 AND greatest(own.attndims, 1) <> greatest(whole.attndims, 1)), \
       pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int8 \
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS leaf (space, name, number) \
JOIN pg_catalog.pg_namespace n ON n.nspname = leaf.space \
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = leaf.name \
ORDER BY leaf.number";

/// The scans of a plan that does nothing but append them.
fn partition_scans(node: &Node) -> Result<Vec<&Node>, NotSplit> {
    match node.kind.as_str() {
        "Seq Scan" if node.children.is_empty() => Ok(vec![node]),
        "Append" if !node.children.is_empty() => {
            let scans = node.children.iter().map(partition_scans).collect::<Result<Vec<_>, _>>()?;
            Ok(scans.into_iter().flatten().collect())
        }
        _ => Err(NotSplit::because("it does more than scan the partitions: give partition_on")),
    }
}

/// Asks for what [`read_partitions`] needs, of the partitioned table `parent`, from which `columns` come.
fn partition_lookup(parent: u32, columns: &[Described], scans: &[&Node]) -> Step {
    let relations = scans.iter().filter_map(|scan| scan.relation.as_ref());
    let (schemas, names): (Vec<_>, Vec<_>) =
        relations.map(|relation| (relation.schema.as_str(), relation.name.as_str())).unzip();
    let attributes = columns.iter().filter(|column| column.table == parent).map(|column| column.attribute);
    let attributes: Vec<String> = attributes.map(|attribute| attribute.to_string()).collect();
    Step::run(PARTITION_LOOKUP)
        .bind(&text_array(&schemas))
        .bind(&text_array(&names))
        .bind(&parent.to_string())
        .bind(&format!("{{{}}}", attributes.join(",")))
}

/// The partitions, in the order of `scans`.
fn read_partitions(answer: &Answer, scans: &[&Node]) -> Result<Vec<ScannedTable>, NotSplit> {
    if answer.rows.len() != scans.len() {
        return Err(NotSplit::because("a partition is not in the catalogue: give partition_on"));
    }
    let numbered = scans.iter().enumerate();
    numbered.map(|(row, scan)| read_partition(answer, row, scan)).collect()
}

fn read_partition(answer: &Answer, row: usize, scan: &Node) -> Result<ScannedTable, NotSplit> {
    let is = |column: usize| answer.cell(row, column) == "t";
    let name = scan.relation.as_ref().map_or("", |relation| relation.name.as_str());
    let refuse = |what: &str| Err(NotSplit::Reason(format!("{what} partition {name:?}: give partition_on")));
    match () {
        () if !is(0) => refuse("a foreign"),
        () if is(1) => refuse("row-level security on the"),
        () if !is(2) => refuse("no right to SELECT from the"),
        () if !is(3) => refuse("columns of another order in the"),
        () if is(4) => refuse("a virtual column in the"),
        () if is(5) => refuse("arrays of other dimensions in the"),
        () => Ok(ScannedTable {
            partition: scan.relation.clone(),
            blocks: answer.cell(row, 6).parse().map_err(|_| NotSplit::because("a partition has no size"))?,
        }),
    }
}

/// `query` over the rows of its table alone, or of `partition` instead, that `condition` holds for as well.
fn restrict(query: &OneTable<'_>, partition: Option<&Relation>, condition: Option<&str>) -> String {
    let table = partition
        .map_or_else(|| query.table().to_string(), |partition| query.with_alias(&partition.qualified_name()));
    query.over(&format!("ONLY {table}"), condition)
}

/// Whether the text names the row as a whole, or which table it is from: a partition would answer otherwise.
fn names_row_or_table(query: &OneTable<'_>) -> bool {
    let outside = query.outside(&DIALECT);
    let mut depth = 0_usize;
    for (index, token) in outside.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let has_column = outside.get(index + 1).is_some_and(|next| next.is_mark("."));
        let is_all = has_column && outside.get(index + 2).is_some_and(|next| next.is_mark("*"));
        let name = DIALECT.name(token).unwrap_or_default();
        let is_whole = DIALECT.quoted_name(&name) == query.alias && (!has_column || is_all && depth > 0);
        if name == "tableoid" || is_whole {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::one_table;

    fn tables(blocks: &[u64]) -> Vec<ScannedTable> {
        blocks.iter().map(|blocks| ScannedTable { partition: None, blocks: *blocks }).collect()
    }

    fn show(blocks: &[u64], number: usize) -> Vec<String> {
        let ranges = ranges(&tables(blocks), number);
        let side = |side: Option<u64>| side.map(|block| block.to_string()).unwrap_or_default();
        ranges.iter().map(|it| format!("{}:{}-{}", it.table, side(it.start), side(it.end))).collect()
    }

    #[test]
    fn blocks_are_divided_into_runs_of_one_length() {
        assert_eq!(show(&[100], 3), ["0:-33", "0:33-66", "0:66-"]);
        assert_eq!(show(&[100], 1), ["0:-"]);
        assert_eq!(show(&[16], 50).len(), 16);
        assert_eq!(show(&[15], 2), ["0:-"]);
        assert!(show(&[0], 4).is_empty());
        assert_eq!(show(&[u64::from(u32::MAX)], 2), ["0:-2147483647", "0:2147483647-"]);
    }

    #[test]
    fn a_run_goes_on_in_the_next_leaf() {
        assert_eq!(show(&[40, 0, 40], 2), ["0:-", "2:-"]);
        assert_eq!(show(&[60, 20], 2), ["0:-40", "0:40-", "1:-"]);
        assert_eq!(show(&[1, 1, 1], 2), ["0:-", "1:-", "2:-"]);
    }

    #[test]
    fn every_block_is_in_one_range() {
        for blocks in [[0, 17, 1, 32], [30, 0, 0, 1], [100, 1, 16, 1]] {
            for number in 1..20 {
                let ranges = ranges(&tables(&blocks), number);
                for (table, count) in blocks.iter().enumerate() {
                    for block in 0..count + 2 {
                        let holds = |range: &&BlockRange| {
                            range.table == table
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
        let range = BlockRange { table: 0, start: Some(1), end: Some(4) };
        assert_eq!(
            block_condition("\"t\"", range).unwrap(),
            "\"t\".ctid >= '(1,0)'::pg_catalog.tid AND \"t\".ctid < '(4,0)'::pg_catalog.tid"
        );
        assert_eq!(block_condition("\"t\"", BlockRange { table: 0, start: None, end: None }), None);
    }

    #[test]
    fn parts_read_their_own_table_only() {
        let query = one_table("SELECT t.a FROM s.t WHERE a = 1").unwrap();
        let of = |partition, condition| restrict(&query, partition, condition);
        assert_eq!(of(None, Some("C")), "SELECT t.a FROM ONLY s.t WHERE (a = 1\n) AND C");
        assert_eq!(of(None, None), "SELECT t.a FROM ONLY s.t WHERE (a = 1\n)");
        let partition = Relation { schema: "p".into(), name: "l".into() };
        assert_eq!(
            of(Some(&partition), Some("C")),
            "SELECT t.a FROM ONLY \"p\".\"l\" AS \"t\" WHERE (a = 1\n) AND C"
        );
    }

    #[test]
    fn whole_rows_are_found() {
        for text in [
            "SELECT t FROM t",
            "SELECT row_to_json(x) FROM t AS x",
            "SELECT pg_typeof(t.*) FROM t",
            "SELECT a FROM t WHERE tableoid > 0",
            "SELECT a FROM t WHERE t IS NULL",
        ] {
            assert!(names_row_or_table(&one_table(text).unwrap()), "{text}");
        }
        for text in ["SELECT t.*, t.a FROM t", "SELECT x.a, count FROM t AS x", "SELECT t FROM t AS x"] {
            assert!(!names_row_or_table(&one_table(text).unwrap()), "{text}");
        }
    }
}
