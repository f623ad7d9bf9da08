//! What in a plan cannot be read in parts.

use longshore_source::NotSplit;

use super::moment::Explained;
use super::volatile::Uses;
use crate::dialect::tokens;

/// Nodes of which two parts could give different rows, or rows of two moments.
const NODES: &[(&str, &str)] = &[
    ("Limit", "LIMIT, OFFSET or FETCH"),
    ("Sample Scan", "TABLESAMPLE"),
    ("WindowAgg", "a window function"),
    ("Unique", "DISTINCT ON"),
];

/// The same, though each is in one part only.
const NODES_OF_ANY_QUERY: &[(&str, &str)] = &[
    ("LockRows", "FOR UPDATE or FOR SHARE"),
    ("ModifyTable", "it changes data"),
    ("Foreign Scan", "a foreign table has a snapshot of its own"),
    ("Custom Scan", "an extension reads the table, in a snapshot of its own"),
];

/// Refuses what the plans show to be of no use as a part; `is_divided` where one query becomes several. Returns what
/// is left to look up.
pub(super) fn refuse(query: &Explained, is_divided: bool, is_used: bool) -> Result<Uses, NotSplit> {
    let nodes = query.bare.nodes();
    let reasons = NODES.iter().filter(|_| is_divided).chain(NODES_OF_ANY_QUERY);
    for (kind, reason) in reasons {
        if nodes.iter().any(|node| node.kind == *kind) {
            return Err(NotSplit::because(*reason));
        }
    }
    let mut relations = nodes.iter().filter_map(|node| node.relation.as_ref());
    if relations.any(|relation| relation.schema.starts_with("pg_temp_")) {
        return Err(NotSplit::because("a temporary table"));
    }
    let uses = uses(query)?;
    // Settings whose names the server does not list are known to this session only.
    if is_used && uses.has("current_setting") {
        return Err(NotSplit::because("current_setting() on a connection that may have settings of its own"));
    }
    uses.reason().map_or(Ok(uses), |reason| Err(NotSplit::Reason(reason)))
}

/// Every function and operator of the plan. Lists of values are not shown in it: they stand in the statement itself, or
/// else in a view.
fn uses(query: &Explained) -> Result<Uses, NotSplit> {
    let mut uses = Uses::default();
    query.bare.texts().for_each(|text| uses.add(text));
    if query.bare.nodes().iter().any(|node| node.kind == "Values Scan") {
        let text = &query.statement.text;
        if !tokens(text).iter().any(|token| token.is_word("values")) {
            return Err(NotSplit::because("a list of values in a view"));
        }
        uses.add(text);
    }
    Ok(uses)
}
