//! The parts of a query over one table, which read no table that inherits from it: another may begin to while the parts
//! are read.

use longshore_source::sql::OneTable;

use crate::dialect::{DIALECT, quoted_name};

/// The query over the rows that `condition` holds for as well.
pub(super) fn with(query: &OneTable<'_>, condition: Option<&str>) -> String {
    query.over(&format!("ONLY {}", query.table()), condition)
}

/// The same over the table `leaf`, by its qualified name, instead.
pub(super) fn over(query: &OneTable<'_>, leaf: &str, condition: Option<&str>) -> String {
    query.over(&format!("ONLY {}", query.renamed(leaf)), condition)
}

/// Whether the text names the row as a whole, or which table it is from: a partition would answer otherwise.
pub(super) fn asks_for_the_table(query: &OneTable<'_>) -> bool {
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
        let is_whole = quoted_name(&name) == query.alias && (!has_column || is_all && depth > 0);
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

    #[test]
    fn parts_read_their_own_table_only() {
        let query = one_table("SELECT t.a FROM s.t WHERE a = 1").unwrap();
        assert_eq!(with(&query, Some("C")), "SELECT t.a FROM ONLY s.t WHERE (a = 1\n) AND C");
        assert_eq!(with(&query, None), "SELECT t.a FROM ONLY s.t WHERE (a = 1\n)");
        assert_eq!(over(&query, "L", Some("C")), "SELECT t.a FROM ONLY L AS \"t\" WHERE (a = 1\n) AND C");
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
            assert!(asks_for_the_table(&one_table(text).unwrap()), "{text}");
        }
        for text in ["SELECT t.*, t.a FROM t", "SELECT x.a, count FROM t AS x", "SELECT t FROM t AS x"] {
            assert!(!asks_for_the_table(&one_table(text).unwrap()), "{text}");
        }
    }
}
