//! What makes two parts of one query disagree: values that change from call to call, or from transaction to
//! transaction.

use std::collections::BTreeSet;

use longshore_source::sql::{Kind, Token};

use crate::connection::TextRow;
use crate::connection::pipeline::Step;
use crate::dialect::{DIALECT, tokens};

/// Stable functions whose value belongs to one transaction, one session or one moment. (`clock_timestamp`, `random`,
/// `nextval` and the like are volatile, and need no list.)
const OF_ONE_MOMENT: &str = "{now,transaction_timestamp,statement_timestamp,mxid_age,\
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
const WORDS_OF_ONE_MOMENT: &[&str] =
    &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

/// Dates and times that the server works out when it reads the text.
const TEXTS_OF_ONE_MOMENT: &[&str] = &["now", "today", "tomorrow", "yesterday"];

/// The first function or operator that is volatile, that is of one moment, or that is the user's own and not
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
pub(super) struct Uses {
    /// By schema, which is empty where the search path finds it, and name.
    functions: BTreeSet<(String, String)>,
    operators: BTreeSet<String>,
    /// What needs no look into the catalogue.
    word: Option<String>,
}

impl Uses {
    /// Adds those of an expression or a whole statement.
    pub(super) fn add(&mut self, text: &str) {
        let tokens = tokens(text);
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
                Kind::Word if is_word_of_one_moment(token, before) => {
                    self.word.get_or_insert_with(|| token.text.to_uppercase());
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, tokens: &[Token<'_>], index: usize) {
        let Some(name) = DIALECT.name(&tokens[index]) else { return };
        if is_word_of_one_moment(&tokens[index], None) {
            self.word.get_or_insert_with(|| name.to_uppercase());
        }
        // With one argument it counts from this transaction. (The age of a timestamp shows as CURRENT_DATE.)
        if name == "age" && arguments(&tokens[index + 2..]) == 1 {
            self.word.get_or_insert_with(|| "age()".to_owned());
        }
        let is_qualified = index >= 2 && tokens[index - 1].is_mark(".");
        let schema = if is_qualified { DIALECT.name(&tokens[index - 2]) } else { None };
        self.functions.insert((schema.unwrap_or_default(), name));
    }

    /// Whether the function `name` is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.functions.iter().any(|(_, function)| function == name)
    }

    /// The functions' names.
    pub(super) fn names(&self) -> Vec<&str> {
        self.functions.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// What is known without asking the server.
    pub(super) fn reason(&self) -> Option<String> {
        self.word.as_ref().map(|word| format!("{word} differs from part to part"))
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
            .bind(OF_ONE_MOMENT)
    }
}

/// The reason in the answer to [`Uses::lookup`].
pub(super) fn reason(rows: &[TextRow]) -> Option<String> {
    let row = rows.first()?;
    let cell = |index: usize| row.get(index).and_then(Option::as_deref).unwrap_or_default();
    Some(match (cell(0), cell(1), cell(2)) {
        (name, "t", _) => format!("{name} is volatile"),
        (name, _, "t") => format!("{name} is not declared IMMUTABLE"),
        (name, ..) => format!("{name} differs from part to part"),
    })
}

fn is_word_of_one_moment(token: &Token<'_>, before: Option<&Token<'_>>) -> bool {
    let is_label = before.is_some_and(|before| before.is_mark(".") || before.is_word("as"));
    !is_label && WORDS_OF_ONE_MOMENT.iter().any(|word| token.is_word(word))
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

/// Whether a text in `statement` stands for a moment, such as `'today'`: texts that only a new line parts are one.
pub(super) fn has_moment_text(statement: &str) -> bool {
    let mut joined = String::new();
    for token in tokens(statement) {
        if token.kind == Kind::Literal {
            joined.push_str(body(token.text));
            continue;
        }
        if is_moment(&joined) {
            return true;
        }
        joined.clear();
    }
    is_moment(&joined)
}

/// What is between a literal's quotes or dollars.
fn body(literal: &str) -> &str {
    let start = literal.find(['\'', '$']).unwrap_or_default();
    let mark = match literal[start..].strip_prefix('$') {
        Some(tag) => tag.find('$').map_or(1, |at| at + 2),
        None => 1,
    };
    literal.get(start + mark..literal.len().saturating_sub(mark)).unwrap_or_default()
}

/// Whether the server would read `text` as a moment that is not the same tomorrow: one of the words, alone or with a
/// time of day and a zone.
pub(super) fn is_moment(text: &str) -> bool {
    let is_date = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "+-:/._,".contains(c);
    if text.len() > 64 || !text.chars().all(is_date) {
        return false;
    }
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    let is_special =
        |word: &&str| TEXTS_OF_ONE_MOMENT.iter().any(|special| word.eq_ignore_ascii_case(special));
    // A zone such as America/Indiana/Knox has three words.
    words.len() <= 4 && words.iter().any(is_special)
}

/// An array of texts as the server reads it.
pub(super) fn text_array(items: &[&str]) -> String {
    let quoted = items.iter().map(|item| format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    fn uses(text: &str) -> Uses {
        let mut uses = Uses::default();
        uses.add(text);
        uses
    }

    #[test]
    fn functions_are_names_before_parentheses() {
        let found = uses("lower(x) || s.\"F\"(1, 'now(') - coalesce (a, b) -- g(\n + c.d");
        let functions: Vec<_> = found.functions.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
        assert_eq!(functions, [("", "coalesce"), ("", "lower"), ("s", "F")]);
        assert_eq!(found.operators.iter().map(String::as_str).collect::<Vec<_>>(), ["+", "-", "||"]);
        assert_eq!(found.reason(), None);
    }

    #[test]
    fn words_without_parentheses_count_where_they_are_no_names() {
        assert!(uses("(t.a < CURRENT_DATE)").reason().unwrap().starts_with("CURRENT_DATE"));
        assert!(uses("localtime(3)").reason().is_some());
        for harmless in ["\"current_date\"", "t.current_date", "1 AS localtime", "'CURRENT_DATE'"] {
            assert_eq!(uses(harmless).reason(), None, "{harmless}");
        }
    }

    #[test]
    fn an_age_of_one_argument_is_of_one_moment() {
        assert!(uses("age(t.xmin)").reason().is_some());
        assert!(uses("age(f(a, b))").reason().is_some());
        assert_eq!(uses("age(a, b)").reason(), None);
    }

    #[test]
    fn texts_that_stand_for_a_moment() {
        for text in [
            "'now'",
            "timestamp ' Today '",
            "E'tomorrow 04:05'",
            "$$yesterday$$",
            "$a$now$a$",
            "'to'\n  'day'",
            "date '12:00 America/New_York today'",
        ] {
            assert!(has_moment_text(text), "{text}");
        }
        for text in
            ["'know'", "'nowhere'", "now", "'it happens now and then in the end'", "'%now%'", "'2020-01-01'"]
        {
            assert!(!has_moment_text(text), "{text}");
        }
    }

    #[test]
    fn arrays_quote_their_texts() {
        assert_eq!(text_array(&["a", "b\"\\"]), r#"{"a","b\"\\"}"#);
        assert_eq!(text_array(&[]), "{}");
    }
}
