//! The hints for statements that have failed: what to write instead of other libraries' parameters and of a bare
//! table's name.
//!
//! Nothing is rewritten. A statement is looked at only when the server has refused it.

use std::slice;

use crate::{Batches, Error, Failed, Kind, Params, Query, ReadOptions, Result, Session, Value};

/// How a database writes its parameters by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholders {
    /// `$1`, `$2`, ..., and lists are values.
    Numbered,
    /// `?`, and there are no lists.
    QuestionMarks,
}

/// Words after which a value stands.
const BEFORE_VALUES: &[&str] = &[
    "all", "and", "any", "between", "by", "else", "ilike", "in", "is", "like", "limit", "not", "offset",
    "or", "select", "then", "values", "when",
];

/// Words that alone are statements, or the beginning of one.
const STATEMENTS: &[&str] =
    &["delete", "explain", "insert", "pragma", "select", "show", "table", "update", "values", "with"];

/// [`Session::read`], whose error has the remedy.
pub(crate) fn read(
    session: Box<dyn Session>,
    query: &Query,
    options: &ReadOptions,
) -> Result<Box<dyn Batches>, Failed> {
    let placeholders = session.placeholders();
    session.read(query, options).map_err(|failed| Failed {
        error: with_remedy(failed.error, slice::from_ref(query), placeholders),
        session: failed.session,
    })
}

/// The error of one of `queries` with a hint, if it is one that a query's text explains.
pub(crate) fn with_remedy(error: Error, queries: &[Query], placeholders: Placeholders) -> Error {
    match queries.iter().find_map(|query| remedy(&error, query, placeholders)) {
        Some(remedy) => error.with_hint(remedy),
        None => error,
    }
}

fn remedy(error: &Error, query: &Query, placeholders: Placeholders) -> Option<String> {
    let tokens = tokens(&query.text);
    match error.kind() {
        Kind::Programming | Kind::Interface if is_of_the_text(error.sqlstate()) => bare_table(&query.text)
            .or_else(|| list(&tokens, &query.params, placeholders))
            .or_else(|| foreign(&tokens, &query.params, placeholders)),
        // A tuple is a row, which is not a value of the column.
        Kind::Data => list(&tokens, &query.params, placeholders),
        _ => None,
    }
}

/// Whether a state is that of a syntax error or of an unknown parameter; the sources' own errors have none.
fn is_of_the_text(sqlstate: Option<&str>) -> bool {
    sqlstate.is_none_or(|state| matches!(state, "42601" | "42P02" | "42000" | "42S22"))
}

/// A statement that is a name.
fn bare_table(text: &str) -> Option<String> {
    let name = text.trim().trim_end_matches(';').trim_end();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '`' | '$');
    let is_one = !name.is_empty()
        && name.chars().all(is_name)
        && !STATEMENTS.contains(&name.to_ascii_lowercase().as_str());
    is_one.then(|| format!("a query is wanted: SELECT * FROM {name}"))
}

/// `IN :x`, `IN (:x)` with a list, `= ANY(:x)` where there is none.
fn list(tokens: &[&str], params: &Params, placeholders: Placeholders) -> Option<String> {
    let has_list = match params {
        Params::None => false,
        Params::Positional(values) => values.iter().any(is_list),
        Params::Named(named) => named.iter().any(|param| is_list(&param.value)),
    };
    let numbered = placeholders == Placeholders::Numbered;
    let parameter = |at: usize| tokens.get(at).filter(|token| is_parameter(token));
    let inner = |at: usize| parameter(at + 1).filter(|_| tokens.get(at) == Some(&"("));
    tokens.iter().zip(1..).find_map(|(word, next)| {
        let parameter = match word.to_ascii_lowercase().as_str() {
            "in" => parameter(next).or_else(|| inner(next).filter(|_| has_list)),
            "any" if !numbered => inner(next),
            _ => None,
        }?;
        if !numbered {
            return Some("write one parameter for each value: IN (?, ?, ?)".to_owned());
        }
        let parameter = name_of(parameter).map_or("$1".to_owned(), |name| format!(":{name}"));
        Some(format!("write = ANY({parameter}), and give params a list for it"))
    })
}

fn is_list(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Row(_))
}

/// The first parameter that this database does not know, or that is of the other kind than `params`.
fn foreign(tokens: &[&str], params: &Params, placeholders: Placeholders) -> Option<String> {
    let numbered = placeholders == Placeholders::Numbered;
    let by_place = if numbered { "$1, $2, ..." } else { "?" };
    let is_named = matches!(params, Params::Named(_));
    let is_value = |before: &str| {
        "=<>(,+-*/|".contains(before) || BEFORE_VALUES.contains(&before.to_ascii_lowercase().as_str())
    };
    let values = tokens.windows(2).filter(|pair| is_value(pair[0]) && is_parameter(pair[1]));
    values.map(|pair| pair[1]).find_map(|token| match (token.as_bytes()[0], name_of(token)) {
        (b':', _) if is_named => None,
        (b':', Some(name)) if !name.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(format!("give params a dict for :{name}: {{{name:?}: value}}"))
        }
        (b'%', Some(name)) => Some(format!("write :{name} instead of {token}, and give params a dict")),
        (b'?', _) if !numbered => None,
        (b'$', _) if numbered => None,
        (b'$', _) => Some(format!("write {by_place} instead of $1, and give params a list")),
        _ => Some(format!("write {by_place} instead of {token}, and give params a list")),
    })
}

/// Whether a token is `:name`, `%s`, `%(name)s`, `?` or `$1`.
fn is_parameter(token: &str) -> bool {
    token == "?" || (token.len() > 1 && token.starts_with([':', '%', '$']))
}

/// The name of a parameter that has one.
fn name_of(parameter: &str) -> Option<&str> {
    parameter.strip_prefix(':').or_else(|| parameter.strip_prefix("%(")?.strip_suffix(")s"))
}

/// The words, parameters and marks outside of comments, as far as all databases agree on them. A quoted text is its first
/// quote.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = token(rest, first);
        tokens.extend((token > 0).then(|| &rest[..token]));
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The length of the token at the start of `rest`, which begins with `first`, and of what it stands for.
fn token(rest: &str, first: char) -> (usize, usize) {
    let until =
        |start: usize, end: &str| rest[start..].find(end).map_or(rest.len(), |at| start + at + end.len());
    let word = |start: usize| {
        let is_over = |c: char| !(c.is_alphanumeric() || c == '_');
        rest[start..].find(is_over).map_or(rest.len(), |length| start + length)
    };
    let length = match first {
        '\'' | '"' | '`' => return (1, until(1, &rest[..1])),
        '-' if rest.starts_with("--") => return (0, until(2, "\n")),
        '/' if rest.starts_with("/*") => return (0, until(2, "*/")),
        ':' if rest.starts_with("::") => return (1, 2),
        ':' => word(1),
        '%' if &rest[..word(1)] == "%s" => 2,
        '%' if rest.starts_with("%(") && rest[word(2)..].starts_with(")s") => word(2) + 2,
        '$' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => word(1),
        // PostgreSQL's quotes: $$ and $tag$.
        '$' if rest[word(1)..].starts_with('$') => return (1, until(word(1) + 1, &rest[..=word(1)])),
        _ => word(0).max(first.len_utf8()),
    };
    (length, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Param;

    fn hint(text: &str, params: Params, placeholders: Placeholders) -> Option<String> {
        let query = [Query { text: text.into(), params }];
        let error = Error::programming("syntax error").with_sqlstate("42601");
        with_remedy(error, &query, placeholders).hint().map(str::to_owned)
    }

    fn numbered_hint(text: &str) -> Option<String> {
        hint(text, Params::Positional(vec![Value::Int(1)]), Placeholders::Numbered)
    }

    #[test]
    fn what_stands_where_a_value_stands_is_a_parameter() {
        for (text, word) in [
            ("SELECT * FROM t WHERE a = %s", "$1, $2, ... instead of %s"),
            ("SELECT %s", "$1, $2, ... instead of %s"),
            ("SELECT * FROM t WHERE a IN (1, ?)", "$1, $2, ... instead of ?"),
            ("SELECT * FROM t WHERE a LIKE ? AND b", "$1, $2, ... instead of ?"),
            ("SELECT * FROM t WHERE a = %(x)s", ":x instead of %(x)s"),
            ("SELECT * FROM t WHERE a = :1", "$1, $2, ... instead of :1"),
            ("SELECT * FROM t WHERE a = :x", "a dict for :x"),
        ] {
            assert!(numbered_hint(text).unwrap().contains(word), "{text}");
        }
        assert_eq!(
            hint("SELECT * FROM t WHERE a = $1", Params::None, Placeholders::QuestionMarks).unwrap(),
            "write ? instead of $1, and give params a list"
        );
    }

    #[test]
    fn operators_quotes_and_comments_are_left_alone() {
        for text in [
            "SELECT a %s FROM t WHERE",
            "SELECT doc ? 'a' FROM",
            "SELECT '= %s', \"= ?\", `= ?` FROM -- = %s\n WHERE /* = ? */",
            "SELECT $$ = ? $$, $a$ = %s $a$ FROM",
            "SELECT a::text, b[1:n] FROM",
            "SELECT a = $1 FROM",
            "'= %s",
            "/* = %s",
            "SELECT 'é' ? é FROM",
            "",
        ] {
            assert_eq!(numbered_hint(text), None, "{text}");
        }
    }

    #[test]
    fn lists() {
        let named = |value| Params::Named(vec![Param { name: "x".into(), value }]);
        let both = || Value::List(vec![Value::Int(1), Value::Int(2)]);
        let of = |text: &str, placeholders| hint(text, named(both()), placeholders);
        for text in ["SELECT * FROM t WHERE a IN :x", "SELECT * FROM t WHERE a NOT in (:x)"] {
            assert!(of(text, Placeholders::Numbered).unwrap().contains("= ANY(:x)"), "{text}");
            assert!(of(text, Placeholders::QuestionMarks).unwrap().contains("IN (?, ?, ?)"), "{text}");
        }
        let any = "SELECT * FROM t WHERE a = ANY(:x)";
        assert_eq!(of(any, Placeholders::Numbered), None);
        assert!(of(any, Placeholders::QuestionMarks).is_some());
        let one = "SELECT * FROM t WHERE a IN (:x) AND";
        assert_eq!(hint(one, named(Value::Int(1)), Placeholders::Numbered), None);
    }

    #[test]
    fn a_name_is_not_a_query() {
        for name in ["boats", "public.boats", "\"Boats\"", "`boats`;", " boats\n"] {
            let said = numbered_hint(name).unwrap();
            assert_eq!(
                said,
                format!("a query is wanted: SELECT * FROM {}", name.trim().trim_end_matches(';'))
            );
        }
        assert_eq!(numbered_hint("SELECT"), None);
        assert_eq!(numbered_hint("boats boats"), None);
    }

    #[test]
    fn other_errors_are_left_alone() {
        let query = [Query::new("boats")];
        let error = Error::operational("the connection was lost");
        assert_eq!(with_remedy(error, &query, Placeholders::Numbered).hint(), None);
        let error = Error::programming("no such column").with_sqlstate("42703").with_hint("look");
        assert_eq!(with_remedy(error, &query, Placeholders::Numbered).hint(), Some("look"));
    }
}
