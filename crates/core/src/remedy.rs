//! What to write instead of other libraries' parameters and of a bare table's name: hints for statements that have failed.
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
fn list(tokens: &[Token<'_>], params: &Params, placeholders: Placeholders) -> Option<String> {
    let has_list = match params {
        Params::None => false,
        Params::Positional(values) => values.iter().any(is_list),
        Params::Named(named) => named.iter().any(|param| is_list(&param.value)),
    };
    let numbered = placeholders == Placeholders::Numbered;
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.to_ascii_lowercase(),
        _ => String::new(),
    };
    let parameter = |at: usize| match tokens.get(at) {
        Some(Token::Parameter(parameter)) => Some(*parameter),
        _ => None,
    };
    let is_open = |at: usize| matches!(tokens.get(at), Some(Token::Other('(')));
    (0..tokens.len()).find_map(|at| {
        let parameter = match word(at).as_str() {
            "in" => parameter(at + 1).or_else(|| parameter(at + 2).filter(|_| is_open(at + 1) && has_list)),
            "any" if !numbered => parameter(at + 2).filter(|_| is_open(at + 1)),
            _ => None,
        }?;
        Some(if !numbered {
            "write one parameter for each value: IN (?, ?, ?)".to_owned()
        } else if matches!(parameter, Parameter::Named(_) | Parameter::Formatted(Some(_))) {
            format!("write = ANY({}), and give params a list for it", parameter.named())
        } else {
            "write = ANY($1), and give params a list for it".to_owned()
        })
    })
}

fn is_list(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Row(_))
}

/// The first parameter that this database does not know, or that is of the other kind than `params`.
fn foreign(tokens: &[Token<'_>], params: &Params, placeholders: Placeholders) -> Option<String> {
    let by_place = match placeholders {
        Placeholders::Numbered => "$1, $2, ...",
        Placeholders::QuestionMarks => "?",
    };
    let is_value = |at: usize| match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        Some(Token::Word(word)) => BEFORE_VALUES.contains(&word.to_ascii_lowercase().as_str()),
        Some(Token::Other(other)) => "=<>(,+-*/|".contains(*other),
        Some(Token::Parameter(_)) | None => false,
    };
    tokens.iter().enumerate().find_map(|(at, token)| {
        let Token::Parameter(parameter) = token else { return None };
        match parameter {
            Parameter::Named(_) if matches!(params, Params::Named(_)) || !is_value(at) => None,
            Parameter::Named(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(format!("write {by_place} instead of :{name}, and give params a list"))
            }
            Parameter::Named(name) => Some(format!("give params a dict for :{name}: {{{name:?}: value}}")),
            Parameter::Formatted(Some(name)) if is_value(at) => {
                Some(format!("write :{name} instead of %({name})s, and give params a dict"))
            }
            Parameter::Formatted(None) if is_value(at) => {
                Some(format!("write {by_place} instead of %s, and give params a list"))
            }
            Parameter::QuestionMark if placeholders == Placeholders::Numbered && is_value(at) => {
                Some(format!("write {by_place} instead of ?, and give params a list"))
            }
            Parameter::Numbered if placeholders == Placeholders::QuestionMarks && is_value(at) => {
                Some(format!("write {by_place} instead of $1, and give params a list"))
            }
            _ => None,
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter<'a> {
    /// `:name`
    Named(&'a str),
    /// `%s`, `%(name)s`
    Formatted(Option<&'a str>),
    /// `?`
    QuestionMark,
    /// `$1`
    Numbered,
}

impl Parameter<'_> {
    fn named(&self) -> String {
        match self {
            Self::Named(name) | Self::Formatted(Some(name)) => format!(":{name}"),
            _ => "$1".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Parameter(Parameter<'a>),
    Other(char),
}

/// What stands outside quotes and comments, as far as all databases agree on them.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = token(rest, first);
        found.extend(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

/// The token at the start of `rest`, which begins with `first`, and how long it is.
fn token(rest: &str, first: char) -> (Option<Token<'_>>, usize) {
    let after = |start: usize, end: &str| {
        rest.get(start..).and_then(|tail| tail.find(end)).map_or(rest.len(), |at| start + at + end.len())
    };
    let other = (Some(Token::Other(first)), first.len_utf8());
    let tail = &rest[first.len_utf8()..];
    match first {
        _ if first.is_whitespace() => (None, first.len_utf8()),
        '\'' | '"' | '`' => (Some(Token::Other(first)), after(1, first.encode_utf8(&mut [0; 4]))),
        '-' if tail.starts_with('-') => (None, after(2, "\n")),
        '/' if tail.starts_with('*') => (None, after(2, "*/")),
        '?' => (Some(Token::Parameter(Parameter::QuestionMark)), 1),
        ':' if tail.starts_with(':') => (Some(Token::Other(':')), 2),
        ':' => match word(tail) {
            "" => other,
            name => (Some(Token::Parameter(Parameter::Named(name))), 1 + name.len()),
        },
        '%' => formatted(tail)
            .map_or(other, |(parameter, length)| (Some(Token::Parameter(parameter)), 1 + length)),
        '$' => {
            let name = word(tail);
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
                return (Some(Token::Parameter(Parameter::Numbered)), 1 + name.len());
            }
            // PostgreSQL's quotes: $$ and $tag$.
            match rest.get(..name.len() + 2).filter(|quote| quote.ends_with('$')) {
                Some(quote) => (Some(Token::Other('\'')), after(quote.len(), quote)),
                None => other,
            }
        }
        _ => match word(rest) {
            "" => other,
            word => (Some(Token::Word(word)), word.len()),
        },
    }
}

/// `s` or `(name)s` after a percent sign.
fn formatted(tail: &str) -> Option<(Parameter<'_>, usize)> {
    if word(tail) == "s" {
        return Some((Parameter::Formatted(None), 1));
    }
    let name = word(tail.strip_prefix('(')?);
    let end = tail.get(1 + name.len()..)?.strip_prefix(')')?;
    (!name.is_empty() && word(end) == "s").then_some((Parameter::Formatted(Some(name)), name.len() + 3))
}

/// The letters, digits and underscores at the start of `text`.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
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

    fn numbered(text: &str) -> Option<String> {
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
            assert!(numbered(text).unwrap().contains(word), "{text}");
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
            assert_eq!(numbered(text), None, "{text}");
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
            let said = numbered(name).unwrap();
            assert_eq!(
                said,
                format!("a query is wanted: SELECT * FROM {}", name.trim().trim_end_matches(';'))
            );
        }
        assert_eq!(numbered("SELECT"), None);
        assert_eq!(numbered("boats boats"), None);
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
