//! What a statement's words say against reading it in parts.

use longshore_source::NotSplit;
use longshore_source::sql::{Kind, Token};

/// Functions, and words that call one, of which two parts would have two values.
const VOLATILE: &[&str] = &[
    "rand",
    "uuid",
    "uuid_short",
    "uuid_v4",
    "uuid_v7",
    "sys_guid",
    "random_bytes",
    "now",
    "sysdate",
    "curdate",
    "curtime",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "unix_timestamp",
    "connection_id",
    "last_insert_id",
    "row_count",
    "found_rows",
    "sleep",
    "benchmark",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
    "master_pos_wait",
    "master_gtid_wait",
    "nextval",
    "lastval",
    "setval",
    "load_file",
    "ps_current_thread_id",
];

/// Words that lock, write, or change what the statement means.
const FORBIDDEN: &[(&str, &str)] = &[
    ("into", "INTO"),
    ("procedure", "PROCEDURE"),
    ("json_table", "JSON_TABLE"),
    ("table", "TABLE"),
    ("sequence", "a sequence"),
    ("next", "a sequence"),
    ("previous", "a sequence"),
    ("handler", "HANDLER"),
];

/// Words of queries in which a row of the result is more than one row of the tables, or depends on others: parts, each by
/// itself, would have other rows.
const WHOLE_ONLY: &[(&str, &str)] = &[
    ("limit", "LIMIT"),
    ("offset", "OFFSET"),
    ("fetch", "FETCH"),
    ("over", "a window function"),
    ("rownum", "ROWNUM()"),
    ("group", "GROUP BY"),
    ("having", "HAVING"),
    ("distinct", "DISTINCT"),
    ("distinctrow", "DISTINCT"),
    ("union", "UNION"),
    ("intersect", "INTERSECT"),
    ("except", "EXCEPT"),
];

/// Aggregates of MySQL and MariaDB. Those of the server's own plugins are functions that somebody has made.
const AGGREGATES: &[&str] = &[
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "any_value",
    "st_collect",
];

/// Refuses what would be something else in each part; `is_divided` where one query becomes several.
pub(super) fn refuse(found: &[Token<'_>], is_divided: bool) -> Result<(), NotSplit> {
    let first = found.iter().find(|token| !token.is_mark("("));
    if !first.is_some_and(|first| first.is_word("select") || first.is_word("with")) {
        return Err(NotSplit::because("it is not a SELECT"));
    }
    let locks = |(at, token): (usize, &Token<'_>)| {
        let next = found.get(at + 1);
        let is = |word: &str| next.is_some_and(|next| next.is_word(word));
        token.is_word("for") && (is("update") || is("share")) || token.is_word("lock") && is("in")
    };
    if found.iter().enumerate().any(locks) {
        return Err(NotSplit::because("FOR UPDATE or FOR SHARE"));
    }
    for (at, token) in found.iter().enumerate() {
        // Behind a point stands a name.
        let is_name = at > 0 && found[at - 1].is_mark(".");
        match token.kind {
            Kind::Executed => return Err(NotSplit::because("a comment that the server reads")),
            Kind::Mark if token.text == "@" => return Err(NotSplit::because("a variable")),
            Kind::Word if !is_name => check_word(token, is_divided)?,
            _ => {}
        }
    }
    let aggregate = calls(found).into_iter().find(|call| is_divided && AGGREGATES.contains(&call.as_str()));
    aggregate.map_or(Ok(()), |call| Err(NotSplit::because(format!("the aggregate {call}()"))))
}

fn check_word(token: &Token<'_>, is_divided: bool) -> Result<(), NotSplit> {
    let word = token.text.to_ascii_lowercase();
    if VOLATILE.contains(&word.as_str()) {
        return Err(NotSplit::because(format!("{} differs from part to part", word.to_ascii_uppercase())));
    }
    let reasons = FORBIDDEN.iter().chain(WHOLE_ONLY.iter().filter(|_| is_divided));
    match reasons.into_iter().find(|(known, _)| *known == word) {
        Some((_, reason)) => Err(NotSplit::because(*reason)),
        None => Ok(()),
    }
}

/// Every word before a parenthesis.
pub(super) fn calls(found: &[Token<'_>]) -> Vec<String> {
    let pairs = found.windows(2).filter(|pair| pair[1].is_mark("("));
    let names = pairs.filter_map(|pair| match pair[0].kind {
        Kind::Word => Some(pair[0].text.to_ascii_lowercase()),
        Kind::Quoted => Some(unquoted(pair[0].text).to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}

fn unquoted(name: &str) -> String {
    name.trim_matches('`').replace("``", "`")
}
