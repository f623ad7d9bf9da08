//! Transact-SQL (Transact-SQL reference), as far as statements are looked at before they are sent.

use std::borrow::Cow;
use std::fmt::Write;

use longshore_core::{Error, Param, Params, Result, Value};
use longshore_source::sql::{Comments, Dialect, Kind, Markers, Names, Token, positional};
use sqlparser::ast::Statement;
use sqlparser::dialect::MsSqlDialect;
use sqlparser::parser::Parser;

/// How the server reads a statement, under `QUOTED_IDENTIFIER` ON.
pub(crate) const DIALECT: Dialect = Dialect {
    name_quotes: &[(b'"', b'"'), (b'[', b']')],
    text_quotes: b"'",
    prefixes: &[("n", false)],
    backslash_escapes: false,
    dollar_quotes: false,
    comments: Comments::Nested,
    markers: Markers::Questions,
    operators: b"",
    names: Names::Kept,
    blanks: &[],
};

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    // The server takes a backslash before a line's end out of a text, together with that.
    let parts = text.replace('\'', "''").replace("\\\n", "\\'+N'\n").replace("\\\r", "\\'+N'\r");
    format!("N'{parts}'")
}

/// A statement as the server takes it.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) text: String,
    /// The values of `@p1`, `@p2`, ... or of the names that `prefix` begins; NULLs stand in the text.
    pub(crate) values: Vec<&'a Value>,
    pub(crate) prefix: String,
}

/// `text` with its parameters: `?` by position, `:name` and `@name` by name, become `@p1`, `@p2`, ...
pub(crate) fn bind<'a>(text: &str, params: &'a Params) -> Result<Bound<'a>> {
    let text = match params {
        Params::Named(params) => with_colons(text, params),
        _ => Cow::Borrowed(text),
    };
    let statement = positional(&DIALECT, &text, params)?;
    let prefix = free_prefix(&text);
    let mut bound = Bound { text: String::new(), values: Vec::new(), prefix };
    if statement.values.is_empty() {
        bound.text = statement.text;
        return Ok(bound);
    }
    let mut values = statement.values.iter();
    let mut places = 0;
    for token in DIALECT.scan(&statement.text) {
        if token.kind != Kind::Parameter {
            bound.text.push_str(token.text);
            continue;
        }
        places += 1;
        match values.next() {
            // A NULL of a type of its own could not be compared with every other.
            Some(Value::Null) => bound.text.push_str("NULL"),
            Some(value) => {
                bound.values.push(value);
                // A String takes all that is written.
                let _ = write!(bound.text, "@{}{}", bound.prefix, bound.values.len());
            }
            None => {}
        }
    }
    let given = statement.values.len();
    if places != given {
        return Err(Error::programming(format!("the statement has {places} parameters, and params {given}"))
            .with_hint("write one ? for each value; a ? in a text or a comment is not one"));
    }
    Ok(bound)
}

/// A beginning for names of parameters, which the text has for no variable of its own.
fn free_prefix(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut prefix = "p".to_owned();
    while lower.contains(&format!("@{prefix}")) {
        prefix.push('p');
    }
    prefix
}

/// The text with `:name` for each `@name` that is a parameter.
fn with_colons<'a>(text: &'a str, params: &[Param]) -> Cow<'a, str> {
    let tokens = DIALECT.scan(text);
    let is_parameter = |at: usize| {
        let is_variable = at > 0 && tokens[at - 1].is_mark("@");
        let name = tokens.get(at + 1).filter(|name| name.kind == Kind::Word && !is_variable);
        tokens[at].is_mark("@") && name.is_some_and(|name| params.iter().any(|param| param.name == name.text))
    };
    if !(0..tokens.len()).any(is_parameter) {
        return Cow::Borrowed(text);
    }
    let written = |at: usize| if is_parameter(at) { ":" } else { tokens[at].text };
    Cow::Owned((0..tokens.len()).map(written).collect())
}

/// Whether `text` is one SELECT over one table.
pub(crate) fn is_plain(text: &str) -> bool {
    longshore_source::sql::is_plain(&MsSqlDialect {}, text)
}

/// Whether `text` does nothing but SET, and no variables, which end with their batch.
pub(crate) fn is_setting(text: &str) -> bool {
    let tokens = DIALECT.tokens(text);
    let is_set = |token: &Token<'_>| token.is_word("set");
    let mut statements =
        tokens.split(|token| token.is_mark(";")).filter(|tokens| !tokens.is_empty()).peekable();
    statements.peek().is_some()
        && statements.all(|tokens| {
            is_set(&tokens[0])
                && tokens[1..].iter().all(|token| !is_set(token) && !token.is_mark("@"))
                && !tokens.iter().any(is_beginning)
        })
}

/// Whether a token begins a statement other than SET, or can be part of none.
fn is_beginning(token: &Token<'_>) -> bool {
    const WORDS: &[&str] = &[
        "select", "insert", "update", "delete", "merge", "exec", "execute", "create", "drop", "alter",
        "truncate", "declare", "begin", "commit", "rollback", "use", "if", "while", "print", "grant",
        "revoke", "deny",
    ];
    WORDS.iter().any(|word| token.is_word(word))
}

/// Whether the parser knows `text` as one statement, a query.
pub(crate) fn is_query(text: &str) -> bool {
    let parsed = Parser::parse_sql(&MsSqlDialect {}, text);
    matches!(parsed.as_deref(), Ok([Statement::Query(_)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_params(names: &[&str]) -> Params {
        let param = |name: &&str| Param { name: (*name).to_owned(), value: Value::Int(1) };
        Params::Named(names.iter().map(param).collect())
    }

    fn text(text: &str, params: &Params) -> Result<String> {
        bind(text, params).map(|bound| bound.text)
    }

    #[test]
    fn parameters_get_the_names_of_the_server() {
        let values = Params::Positional(vec![Value::Int(1), Value::Null, Value::Int(2)]);
        let bound = bind("SELECT ?, '?', [?], ? -- ?\nWHERE a = ?", &values).unwrap();
        assert_eq!(bound.text, "SELECT @p1, '?', [?], NULL -- ?\nWHERE a = @p2");
        assert_eq!(bound.values, [&Value::Int(1), &Value::Int(2)]);
        let expected = "SELECT @p1, @p2, @p3, @@VERSION, @other";
        assert_eq!(
            text("SELECT :a, @b, @a, @@VERSION, @other", &named_params(&["a", "b"])).unwrap(),
            expected
        );
        assert_eq!(
            text("DECLARE @p1 int; SELECT ?", &Params::Positional(vec![Value::Int(1)])).unwrap(),
            "DECLARE @p1 int; SELECT @pp1"
        );
        assert!(text("SELECT ?", &values).is_err() && text("SELECT :a", &named_params(&["b"])).is_err());
        assert_eq!(text("SELECT ?", &Params::None).unwrap(), "SELECT ?");
    }

    #[test]
    fn literals_keep_what_the_server_would_take_out() {
        assert_eq!(literal("it's"), "N'it''s'");
        assert_eq!(literal("a\\\nb"), "N'a\\'+N'\nb'");
    }

    #[test]
    fn settings_are_set() {
        assert!(is_setting("SET LANGUAGE German; SET DATEFIRST 1;") && is_setting("set nocount on"));
        for other in ["", "SET @a = 1", "SET NOCOUNT ON SELECT 1", "SELECT 1", "SET NOCOUNT ON SET @a = 1"] {
            assert!(!is_setting(other), "{other}");
        }
    }
}
