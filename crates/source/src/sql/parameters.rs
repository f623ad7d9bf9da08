//! Named parameters: `:name` becomes `$1` or `?`, outside of texts, names and comments.

use std::collections::HashMap;

use longshore_core::{Error, Param, Params, Result, Value};

use super::dialect::{Dialect, Markers};
use super::lexer::{Kind, Token};

/// A statement as the server takes it.
#[derive(Debug, Default)]
pub struct Numbered<'a> {
    /// Its text.
    pub text: String,
    /// Its parameters in order; where places have no numbers, one that is named twice comes twice.
    pub values: Vec<&'a Value>,
    /// Where names became places: the position behind the place in `text`, and behind the name in the caller's text,
    /// in characters.
    renamed: Vec<(usize, usize)>,
}

impl Numbered<'_> {
    /// The error with its position in the caller's own text.
    #[must_use]
    pub fn restore_position(&self, error: Error) -> Error {
        let Some(position) = error.position().and_then(|position| usize::try_from(position).ok()) else {
            return error;
        };
        let before = self.renamed.iter().rev().find(|(place_end, _)| *place_end < position);
        let Some((place_end, name_end)) = before else { return error };
        match u32::try_from(position - place_end + name_end) {
            Ok(restored) => error.with_position(restored),
            Err(_) => error,
        }
    }
}

/// The statement as the server takes it, and its parameters in order.
pub fn positional<'a>(dialect: &Dialect, text: &str, params: &'a Params) -> Result<Numbered<'a>> {
    let unchanged = |values| Numbered { text: text.to_owned(), values, renamed: Vec::new() };
    match params {
        Params::None => Ok(unchanged(Vec::new())),
        Params::Positional(values) => Ok(unchanged(values.iter().collect())),
        Params::Named(params) => by_name(dialect, text, params),
    }
}

/// The statement as the server takes it, and for each of `sets` its parameters in order; the statement's own are the first
/// set's.
pub fn positional_sets<'a>(
    dialect: &Dialect,
    text: &str,
    sets: &'a [Params],
) -> Result<(Numbered<'a>, Vec<Vec<&'a Value>>)> {
    let first = positional(dialect, text, sets.first().unwrap_or(&Params::None))?;
    let names = match sets.first() {
        Some(Params::Named(params)) => params.as_slice(),
        _ => &[],
    };
    let indices: HashMap<_, _> =
        names.iter().enumerate().map(|(index, param)| (&raw const param.value, index)).collect();
    let index = |value: &&Value| indices.get(&std::ptr::from_ref(*value)).copied();
    let order: Vec<usize> = first.values.iter().filter_map(index).collect();
    let is_like_first = |params: &[Param]| {
        params.len() == names.len() && params.iter().zip(names).all(|(one, other)| one.name == other.name)
    };
    let ordered = |set: &'a Params| match set {
        // The text is looked at once for all sets of the same names.
        Params::Named(params) if is_like_first(params) => {
            Ok(order.iter().map(|index| &params[*index].value).collect())
        }
        _ => {
            let other = positional(dialect, text, set)?;
            if other.text == first.text { Ok(other.values) } else { Err(unlike()) }
        }
    };
    let sets = sets.iter().map(ordered).collect::<Result<Vec<_>>>()?;
    Ok((first, sets))
}

/// Sets that are not of one form.
#[cold]
#[must_use]
pub fn unlike() -> Error {
    Error::programming("some sets of parameters have names, and others an order")
        .with_hint("give all of them as dicts, or all as lists")
}

fn by_name<'a>(dialect: &Dialect, text: &str, params: &'a [Param]) -> Result<Numbered<'a>> {
    let tokens = dialect.scan(text);
    let mut statement = Numbered { text: String::with_capacity(text.len()), ..Numbered::default() };
    let indices: HashMap<_, _> =
        params.iter().enumerate().map(|(index, param)| (param.name.as_str(), index)).collect();
    let mut numbers: Vec<Option<usize>> = vec![None; params.len()];
    // The characters until here of the statement and of the caller's text.
    let (mut written, mut read) = (0, 0);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.kind == Kind::Parameter {
            return Err(by_place(token.text));
        }
        let Some(name) = name_at(&tokens, at) else {
            statement.text.push_str(token.text);
            let characters = token.text.chars().count();
            (written, read) = (written + characters, read + characters);
            at += 1;
            continue;
        };
        let index = *indices.get(name.text).ok_or_else(|| missing(name.text))?;
        let has_numbers = dialect.markers != Markers::Questions;
        if numbers[index].is_none() || !has_numbers {
            statement.values.push(&params[index].value);
        }
        let number = *numbers[index].get_or_insert(statement.values.len());
        let place = if has_numbers { format!("${number}") } else { "?".to_owned() };
        statement.text.push_str(&place);
        (written, read) = (written + place.len(), read + 1 + name.text.chars().count());
        statement.renamed.push((written, read));
        at += 2;
    }
    if let Some(unused) = numbers.iter().position(Option::is_none) {
        return Err(Error::programming(format!("the statement has no parameter :{}", params[unused].name))
            .with_hint("write it as :name in the statement, or leave it out of params"));
    }
    Ok(statement)
}

/// The name of the parameter that starts at a colon: not a cast's, a slice's or an assignment's.
fn name_at<'a, 'b>(tokens: &'b [Token<'a>], at: usize) -> Option<&'b Token<'a>> {
    let is_cast = at > 0 && tokens[at - 1].is_mark(":");
    let name = tokens.get(at + 1).filter(|_| tokens[at].is_mark(":") && !is_cast)?;
    (name.kind == Kind::Word && !name.text.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

#[cold]
fn by_place(place: &str) -> Error {
    Error::programming(format!("the statement has {place} where params is a dict"))
        .with_hint("write :name in the statement, or give params as a list")
}

#[cold]
fn missing(name: &str) -> Error {
    Error::programming(format!("params has no value for :{name}"))
        .with_hint("add it to the dict; a colon that is not a parameter stands in quotes or before a blank")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::POSTGRESQL;
    use crate::sql::lexer::tests::MYSQL;

    fn rewrite(dialect: &Dialect, text: &str, names: &[&str]) -> Result<(String, usize)> {
        let params =
            names.iter().map(|name| Param { name: (*name).to_owned(), value: Value::Null }).collect();
        positional(dialect, text, &Params::Named(params))
            .map(|statement| (statement.text.clone(), statement.values.len()))
    }

    #[test]
    fn numbers_and_names_do_not_mix() {
        assert!(rewrite(&POSTGRESQL, "SELECT :a, $1", &["a"]).is_err());
        assert!(rewrite(&MYSQL, "SELECT ?, :a", &["a"]).is_err());
        let expected = ("SELECT $1, b$1, '$1'".to_owned(), 1);
        assert_eq!(rewrite(&POSTGRESQL, "SELECT :a, b$1, '$1'", &["a"]).unwrap(), expected);
    }

    #[test]
    fn brackets_quote_names_in_sqlite_and_in_a_database_that_is_not_known() {
        let text = "SELECT [a?b], [c:d] WHERE e = :e";
        for database in [None, Some("sqlite")] {
            let dialect = Dialect::with_places("?", database);
            let expected = ("SELECT [a?b], [c:d] WHERE e = ?".to_owned(), 1);
            assert_eq!(rewrite(dialect, text, &["e"]).unwrap(), expected);
        }
        let dialect = Dialect::with_places("?", Some("trino"));
        assert_eq!(rewrite(dialect, "SELECT ARRAY[:e]", &["e"]).unwrap(), ("SELECT ARRAY[?]".to_owned(), 1));
    }

    #[test]
    fn names_become_places() {
        let names = ["a", "b", "größe"];
        let text = "SELECT :b, :a, :b, x->'$.y' WHERE z=:größe";
        let expected = ("SELECT ?, ?, ?, x->'$.y' WHERE z=?".to_owned(), 4);
        assert_eq!(rewrite(&MYSQL, text, &names).unwrap(), expected);
        let expected = ("SELECT $1, $2, $1::int WHERE x=$3".to_owned(), 3);
        assert_eq!(rewrite(&POSTGRESQL, "SELECT :b, :a, :b::int WHERE x=:größe", &names).unwrap(), expected);
    }

    #[test]
    fn colons_elsewhere_are_left_alone() {
        for text in [
            "SELECT ':a', \":a\", E'\\':a', 'it''s :a' -- :a\n, /* :a /* :a */ :a */ $$ :a $$, $t$ :a $$ $t$, a[1:2], x::a, f(a := 1)",
            "SELECT 'open :a",
            "SELECT a$b$c, x$, a :: b",
        ] {
            assert_eq!(rewrite(&POSTGRESQL, text, &[]).unwrap(), (text.to_owned(), 0));
        }
        for text in [
            "SELECT ':a', \":a\", `:a`, 'it''s \\' :a' -- :a\n, /* :a */ 1 # :a\n, @x := 1, '10:20', 'open",
            "SELECT 1:2",
        ] {
            assert_eq!(rewrite(&MYSQL, text, &[]).unwrap(), (text.to_owned(), 0));
        }
    }

    #[test]
    fn positions_are_those_of_the_callers_text() {
        let params = Params::Named(vec![Param { name: "größe".to_owned(), value: Value::Null }]);
        let statement = positional(&POSTGRESQL, "SELECT :größe, nope, :größe, x", &params).unwrap();
        let restored = |position| {
            statement.restore_position(Error::programming("no").with_position(position)).position()
        };
        assert_eq!(statement.text, "SELECT $1, nope, $1, x");
        assert_eq!(
            (restored(1), restored(8), restored(12), restored(22)),
            (Some(1), Some(8), Some(16), Some(30))
        );
    }

    #[test]
    fn sets_follow_the_names_of_the_statement() {
        let set = |names: &[&str]| {
            let param = |(at, name): (usize, &&str)| Param {
                name: (*name).to_owned(),
                value: Value::Int(i128::try_from(at).unwrap()),
            };
            Params::Named(names.iter().enumerate().map(param).collect())
        };
        let sets = [set(&["a", "b"]), set(&["a", "b"]), set(&["b", "a"])];
        let (statement, values) = positional_sets(&POSTGRESQL, "SELECT :b, :a, :b", &sets).unwrap();
        assert_eq!(statement.text, "SELECT $1, $2, $1");
        let [zero, one] = [&Value::Int(0), &Value::Int(1)];
        assert_eq!(values, [[one, zero], [one, zero], [zero, one]]);
        let mixed = [set(&["a"]), Params::Positional(vec![Value::Null])];
        assert!(positional_sets(&POSTGRESQL, "SELECT :a", &mixed).is_err());
    }

    #[test]
    fn missing_and_unused_names_are_errors() {
        assert!(rewrite(&POSTGRESQL, "SELECT :a", &[]).unwrap_err().to_string().contains(":a"));
        assert!(rewrite(&MYSQL, "SELECT 1", &["a"]).unwrap_err().to_string().contains(":a"));
    }
}
