//! The leaves of a partitioned table: those that a plan reads, and whether each can be read by itself.

use longshore_source::NotSplit;

use super::blocks::Leaf;
use super::plan::Node;
use super::volatile::text_array;
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};

/// A leaf's columns must be the table's in their order, for whole rows have one; a virtual column of a leaf may be
/// computed otherwise than the table's. The arrays among the result's columns must be as deep: what is made as a
/// partition is told of no dimensions, and an array without them has one.
const LOOKUP: &str = "\
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
pub(super) fn scans(node: &Node) -> Result<Vec<&Node>, NotSplit> {
    match node.kind.as_str() {
        "Seq Scan" if node.children.is_empty() => Ok(vec![node]),
        "Append" if !node.children.is_empty() => {
            let scans = node.children.iter().map(scans).collect::<Result<Vec<_>, _>>()?;
            Ok(scans.into_iter().flatten().collect())
        }
        _ => Err(NotSplit::because("it does more than scan the partitions: give partition_on")),
    }
}

/// Asks for what [`read`] needs, of the partitioned table `parent`, from which `columns` come.
pub(super) fn lookup(parent: u32, columns: &[Described], scans: &[&Node]) -> Step {
    let relations = scans.iter().filter_map(|scan| scan.relation.as_ref());
    let (schemas, names): (Vec<_>, Vec<_>) =
        relations.map(|relation| (relation.schema.as_str(), relation.name.as_str())).unzip();
    let attributes = columns.iter().filter(|column| column.table == parent).map(|column| column.attribute);
    let attributes: Vec<String> = attributes.map(|attribute| attribute.to_string()).collect();
    Step::run(LOOKUP)
        .bind(&text_array(&schemas))
        .bind(&text_array(&names))
        .bind(&parent.to_string())
        .bind(&format!("{{{}}}", attributes.join(",")))
}

/// The leaves, in the order of `scans`.
pub(super) fn read(answer: &Answer, scans: &[&Node]) -> Result<Vec<Leaf>, NotSplit> {
    if answer.rows.len() != scans.len() {
        return Err(NotSplit::because("a partition is not in the catalogue: give partition_on"));
    }
    let numbered = scans.iter().enumerate();
    numbered.map(|(row, scan)| leaf(answer, row, scan)).collect()
}

fn leaf(answer: &Answer, row: usize, scan: &Node) -> Result<Leaf, NotSplit> {
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
        () => Ok(Leaf {
            partition: scan.relation.clone(),
            blocks: answer.cell(row, 6).parse().map_err(|_| NotSplit::because("a partition has no size"))?,
        }),
    }
}
