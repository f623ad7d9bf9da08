//! Named parameters: `:name` becomes `?`, outside of texts, names and comments.

use longshore_core::{Error, Param, Params, Result, Value};

use crate::tokens::{Kind, scan, word};

/// A statement as the server takes it.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) text: String,
    /// Its parameters in order; one that is named twice comes twice.
    pub(crate) values: Vec<&'a Value>,
}

/// The statement as the server takes it, and its parameters in order; `escapes` tells whether a backslash escapes.
pub(crate) fn positional<'a>(text: &str, params: &'a Params, escapes: bool) -> Result<Statement<'a>> {
    match params {
        Params::None => Ok(Statement { text: text.to_owned(), values: Vec::new() }),
        Params::Positional(values) => {
            Ok(Statement { text: text.to_owned(), values: values.iter().collect() })
        }
        Params::Named(params) => named(text, params, escapes),
    }
}

fn named<'a>(text: &str, params: &'a [Param], escapes: bool) -> Result<Statement<'a>> {
    let tokens = scan(text, escapes);
    let mut statement = String::with_capacity(text.len());
    let mut values = Vec::new();
    let mut used = vec![false; params.len()];
    let mut skipped = None;
    for (at, token) in tokens.iter().enumerate() {
        if skipped == Some(at) {
            continue;
        }
        let name = tokens.get(at + 1).filter(|next| {
            let is_name = next.kind == Kind::Word && !next.text.starts_with(|c: char| c.is_ascii_digit());
            token.is_mark(":") && is_name && word(next.text) == next.text.len()
        });
        match name {
            Some(name) => {
                let index = params
                    .iter()
                    .position(|param| param.name == name.text)
                    .ok_or_else(|| missing(name.text))?;
                used[index] = true;
                values.push(&params[index].value);
                statement.push('?');
                skipped = Some(at + 1);
            }
            None if token.kind == Kind::Parameter => {
                return Err(Error::programming("the statement has ? where params is a dict")
                    .with_hint("write :name in the statement, or give params as a list"));
            }
            None => statement.push_str(token.text),
        }
    }
    if let Some(unused) = used.iter().position(|used| !used) {
        return Err(Error::programming(format!("the statement has no parameter :{}", params[unused].name))
            .with_hint("write it as :name in the statement, or leave it out of params"));
    }
    Ok(Statement { text: statement, values })
}

#[cold]
fn missing(name: &str) -> Error {
    Error::programming(format!("params has no value for :{name}"))
        .with_hint("add it to the dict; a colon that is not a parameter stands in quotes or before a blank")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(text: &str, names: &[&str]) -> Result<(String, usize)> {
        let params =
            names.iter().map(|name| Param { name: (*name).to_owned(), value: Value::Null }).collect();
        positional(text, &Params::Named(params), true)
            .map(|statement| (statement.text.clone(), statement.values.len()))
    }

    #[test]
    fn names_become_places() {
        let (text, count) =
            rewrite("SELECT :b, :a, :b, x->'$.y' WHERE z=:größe", &["a", "b", "größe"]).unwrap();
        assert_eq!((text.as_str(), count), ("SELECT ?, ?, ?, x->'$.y' WHERE z=?", 4));
    }

    #[test]
    fn colons_elsewhere_are_left_alone() {
        for text in [
            "SELECT ':a', \":a\", `:a`, 'it''s \\' :a' -- :a\n, /* :a */ 1 # :a\n, @x := 1, '10:20', 'open",
            "SELECT 1:2",
        ] {
            assert_eq!(rewrite(text, &[]).unwrap(), (text.to_owned(), 0));
        }
    }

    #[test]
    fn missing_and_unused_names_are_errors() {
        assert!(rewrite("SELECT :a", &[]).unwrap_err().to_string().contains(":a"));
        assert!(rewrite("SELECT 1", &["a"]).unwrap_err().to_string().contains(":a"));
        assert!(rewrite("SELECT ?, :a", &["a"]).is_err());
    }
}
