//! The obstacles to reading in parts: nodes of a plan, and values that change from call to call or from transaction to
//! transaction, of which two parts would not agree.

use std::collections::BTreeSet;

use longshore_source::NotSplit;
use longshore_source::sql::{Kind, Token};

use super::snapshot::Explained;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{DIALECT, text_array};

/// Stable functions whose value belongs to one transaction, one session or one snapshot. (`clock_timestamp`, `random`,
/// `nextval` and the like are volatile, and need no list.)
const TRANSACTION_FUNCTIONS: &str = "{now,transaction_timestamp,statement_timestamp,mxid_age,\
txid_current,txid_current_if_assigned,txid_current_snapshot,\
pg_current_xact_id,pg_current_xact_id_if_assigned,pg_current_snapshot,\
pg_backend_pid,inet_client_addr,inet_client_port,inet_server_addr,inet_server_port,\
pg_my_temp_schema,pg_is_other_temp_schema,pg_cursor,pg_prepared_statement,pg_listening_channels,\
pg_show_all_settings,pg_timezone_names,pg_timezone_abbrevs,pg_timezone_abbrevs_zone,\
pg_conf_load_time,pg_postmaster_start_time,pg_get_replication_slots,pg_get_publication_tables,\
table_to_xml,table_to_xmlschema,table_to_xml_and_xmlschema,\
schema_to_xml,schema_to_xmlschema,schema_to_xml_and_xmlschema,\
database_to_xml,database_to_xmlschema,database_to_xml_and_xmlschema}";

/// The same without parentheses.
const TRANSACTION_KEYWORDS: &[&str] =
    &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

/// Words for dates and times that the server works out when it reads the text.
const RELATIVE_DATES: &[&str] = &["now", "today", "tomorrow", "yesterday"];

/// The first function or operator that is volatile, that belongs to one transaction, or that is the user's own and not
/// immutable: such a one may read the clock, and tables that nothing locks. Operators in C are trusted: the stable
/// ones of extensions look at settings.
const LOOKUP: &str = "\
SELECT p.proname || '()', p.provolatile = 'v', p.oid >= 16384 \
FROM unnest($1::text[], $2::text[]) AS used (space, name) \
JOIN pg_catalog.pg_proc p ON p.proname = used.name \
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
WHERE CASE used.space WHEN '' THEN pg_catalog.pg_function_is_visible(p.oid) ELSE n.nspname = used.space END \
  AND (p.provolatile = 'v' OR p.provolatile = 's' AND (p.oid >= 16384 OR n.nspname = 'pg_catalog' \
       AND (p.proname = ANY ($4::text[]) OR pg_catalog.starts_with(p.proname, 'pg_stat_get_'))) \
       OR EXISTS (SELECT FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc f ON f.oid IN (a.aggtransfn, a.aggfinalfn) \
                  WHERE a.aggfnoid = p.oid AND f.oid >= 16384 AND f.provolatile <> 'i')) \
UNION ALL \
SELECT 'operator ' || o.oprname, p.provolatile = 'v', true \
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode \
JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
WHERE o.oprname = ANY ($3::text[]) AND p.oid >= 16384 AND p.provolatile <> 'i' \
  AND (p.provolatile = 'v' OR l.lanname NOT IN ('c', 'internal')) \
LIMIT 1";

/// The functions and operators that texts use.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By schema, which is empty where the search path finds it, and name.
    functions: BTreeSet<(String, String)>,
    operators: BTreeSet<String>,
    /// The keyword that differs from part to part, whatever the catalogue says.
    keyword: Option<String>,
}

impl Calls {
    /// Adds those of an expression or a whole statement.
    pub(super) fn add(&mut self, text: &str) {
        let tokens = DIALECT.tokens(text);
        for (index, token) in tokens.iter().enumerate() {
            let after = tokens.get(index + 1);
            let before = index.checked_sub(1).and_then(|index| tokens.get(index));
            match token.kind {
                Kind::Mark if !"()[],;.:".contains(token.text) => {
                    self.operators.insert(token.text.to_owned());
                }
                Kind::Word | Kind::Quoted if after.is_some_and(|after| after.is_mark("(")) => {
                    self.function(&tokens, index);
                }
                Kind::Word if is_transaction_keyword(token, before) => {
                    self.keyword.get_or_insert_with(|| token.text.to_uppercase());
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, tokens: &[Token<'_>], index: usize) {
        let Some(name) = DIALECT.name(&tokens[index]) else { return };
        if is_transaction_keyword(&tokens[index], None) {
            self.keyword.get_or_insert_with(|| name.to_uppercase());
        }
        // With one argument it counts from this transaction. (The age of a timestamp shows as CURRENT_DATE.)
        if name == "age" && arguments(&tokens[index + 2..]) == 1 {
            self.keyword.get_or_insert_with(|| "age()".to_owned());
        }
        let is_qualified = index >= 2 && tokens[index - 1].is_mark(".");
        let schema = if is_qualified { DIALECT.name(&tokens[index - 2]) } else { None };
        self.functions.insert((schema.unwrap_or_default(), name));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.functions.iter().any(|(_, function)| function == name)
    }

    /// Asks the server for the rest.
    pub(super) fn lookup(&self) -> Step {
        let (schemas, names): (Vec<_>, Vec<_>) =
            self.functions.iter().map(|(schema, name)| (schema.as_str(), name.as_str())).unzip();
        let operators: Vec<_> = self.operators.iter().map(String::as_str).collect();
        Step::run(LOOKUP)
            .bind(&text_array(&schemas))
            .bind(&text_array(&names))
            .bind(&text_array(&operators))
            .bind(TRANSACTION_FUNCTIONS)
    }
}

/// Refuses to split for the reason in the answer to [`Calls::lookup`], if it has one.
pub(super) fn check(answer: &Answer) -> Result<(), NotSplit> {
    if answer.rows.is_empty() {
        return Ok(());
    }
    Err(NotSplit::Reason(match (answer.cell(0, 0), answer.cell(0, 1), answer.cell(0, 2)) {
        (name, "t", _) => format!("{name} is volatile"),
        (name, _, "t") => format!("{name} is not declared IMMUTABLE"),
        (name, ..) => format!("{name} differs from part to part"),
    }))
}

fn is_transaction_keyword(token: &Token<'_>, before: Option<&Token<'_>>) -> bool {
    let is_label = before.is_some_and(|before| before.is_mark(".") || before.is_word("as"));
    !is_label && TRANSACTION_KEYWORDS.iter().any(|word| token.is_word(word))
}

/// How many arguments stand before the parenthesis that closes the call.
fn arguments(tokens: &[Token<'_>]) -> usize {
    let (mut depth, mut count) = (0, 1);
    for token in tokens {
        match token.text {
            "(" | "[" => depth += 1,
            ")" if depth == 0 => break,
            ")" | "]" => depth -= 1,
            "," if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether a text in `statement` stands for such a date, as `'today'`: texts that only a new line parts are one.
pub(super) fn has_relative_date(statement: &str) -> bool {
    let mut joined = String::new();
    for token in DIALECT.tokens(statement) {
        if token.kind == Kind::Literal {
            joined.push_str(body(token.text));
            continue;
        }
        if is_relative_date(&joined) {
            return true;
        }
        joined.clear();
    }
    is_relative_date(&joined)
}

/// The text between a literal's quotes or dollars.
fn body(literal: &str) -> &str {
    let start = literal.find(['\'', '$']).unwrap_or_default();
    let mark = match literal[start..].strip_prefix('$') {
        Some(tag) => tag.find('$').map_or(1, |at| at + 2),
        None => 1,
    };
    literal.get(start + mark..literal.len().saturating_sub(mark)).unwrap_or_default()
}

/// Whether the server would read `text` as a date that is not the same tomorrow: one of the words, alone or with a
/// time of day and a zone.
pub(super) fn is_relative_date(text: &str) -> bool {
    let is_date = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "+-:/._,".contains(c);
    if text.len() > 64 || !text.chars().all(is_date) {
        return false;
    }
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    let is_special = |word: &&str| RELATIVE_DATES.iter().any(|special| word.eq_ignore_ascii_case(special));
    // A zone such as America/Indiana/Knox has three words.
    words.len() <= 4 && words.iter().any(is_special)
}

/// Nodes of which two parts could give different rows.
const DIVIDED_NODES: &[(&str, &str)] = &[
    ("Limit", "LIMIT, OFFSET or FETCH"),
    ("Sample Scan", "TABLESAMPLE"),
    ("WindowAgg", "a window function"),
    ("Unique", "DISTINCT ON"),
];

/// Nodes that change data or lock it, or that read outside of the snapshot.
const NODES: &[(&str, &str)] = &[
    ("LockRows", "FOR UPDATE or FOR SHARE"),
    ("ModifyTable", "it changes data"),
    ("Foreign Scan", "a foreign table has a snapshot of its own"),
    ("Custom Scan", "an extension reads the table, in a snapshot of its own"),
];

/// The functions and operators of a query, which are left to look up; an error where its plan shows that it cannot be
/// a part, or, `is_divided` into several, cannot be them.
pub(crate) fn checked_calls(query: &Explained, is_divided: bool, is_used: bool) -> Result<Calls, NotSplit> {
    let nodes = query.bare.nodes();
    let reasons = DIVIDED_NODES.iter().filter(|_| is_divided).chain(NODES);
    for (kind, reason) in reasons {
        if nodes.iter().any(|node| node.kind == *kind) {
            return Err(NotSplit::because(*reason));
        }
    }
    let mut relations = nodes.iter().filter_map(|node| node.relation.as_ref());
    if relations.any(|relation| relation.schema.starts_with("pg_temp_")) {
        return Err(NotSplit::because("a temporary table"));
    }
    let calls = calls(query)?;
    // Settings whose names the server does not list are known to this session only.
    if is_used && calls.has("current_setting") {
        return Err(NotSplit::because("current_setting() on a connection that may have settings of its own"));
    }
    match &calls.keyword {
        Some(keyword) => Err(NotSplit::Reason(format!("{keyword} differs from part to part"))),
        None => Ok(calls),
    }
}

/// Every function and operator of the plan. Lists of values are not shown in it: they stand in the statement itself, or
/// else in a view.
fn calls(query: &Explained) -> Result<Calls, NotSplit> {
    let mut calls = Calls::default();
    query.bare.texts().for_each(|text| calls.add(text));
    if query.bare.nodes().iter().any(|node| node.kind == "Values Scan") {
        let text = &query.statement.text;
        if !DIALECT.tokens(text).iter().any(|token| token.is_word("values")) {
            return Err(NotSplit::because("a list of values in a view"));
        }
        calls.add(text);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Calls {
        let mut calls = Calls::default();
        calls.add(text);
        calls
    }

    #[test]
    fn functions_are_names_before_parentheses() {
        let found = calls("lower(x) || s.\"F\"(1, 'now(') - coalesce (a, b) -- g(\n + c.d");
        let functions: Vec<_> = found.functions.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
        assert_eq!(functions, [("", "coalesce"), ("", "lower"), ("s", "F")]);
        assert_eq!(found.operators.iter().map(String::as_str).collect::<Vec<_>>(), ["+", "-", "||"]);
        assert_eq!(found.keyword, None);
    }

    #[test]
    fn words_without_parentheses_count_where_they_are_not_names() {
        assert!(calls("(t.a < CURRENT_DATE)").keyword.unwrap().starts_with("CURRENT_DATE"));
        assert!(calls("localtime(3)").keyword.is_some());
        for harmless in ["\"current_date\"", "t.current_date", "1 AS localtime", "'CURRENT_DATE'"] {
            assert_eq!(calls(harmless).keyword, None, "{harmless}");
        }
    }

    #[test]
    fn an_age_of_one_argument_counts_from_its_transaction() {
        assert!(calls("age(t.xmin)").keyword.is_some());
        assert!(calls("age(f(a, b))").keyword.is_some());
        assert_eq!(calls("age(a, b)").keyword, None);
    }

    #[test]
    fn texts_that_stand_for_relative_dates() {
        for text in [
            "'now'",
            "timestamp ' Today '",
            "E'tomorrow 04:05'",
            "$$yesterday$$",
            "$a$now$a$",
            "'to'\n  'day'",
            "date '12:00 America/New_York today'",
        ] {
            assert!(has_relative_date(text), "{text}");
        }
        for text in
            ["'know'", "'nowhere'", "now", "'it happens now and then in the end'", "'%now%'", "'2020-01-01'"]
        {
            assert!(!has_relative_date(text), "{text}");
        }
    }
}
