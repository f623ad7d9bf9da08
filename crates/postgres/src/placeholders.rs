//! Named parameters: `:name` becomes `$1`, `$2`, ... outside of texts, names and comments.

use longshore_core::{Error, Param, Params, Result, Value};

/// A statement as the server takes it.
#[derive(Debug, Default)]
pub(crate) struct Statement<'a> {
    pub(crate) text: String,
    /// Its parameters in order.
    pub(crate) values: Vec<&'a Value>,
    /// Where names became numbers: the position behind the number in `text`, and behind the name in the caller's
    /// text, in characters.
    renamed: Vec<(usize, usize)>,
}

impl Statement<'_> {
    /// The error with its position in the caller's own text.
    pub(crate) fn restore_position(&self, error: Error) -> Error {
        let Some(position) = error.position().and_then(|position| usize::try_from(position).ok()) else {
            return error;
        };
        let before = self.renamed.iter().rev().find(|(number_end, _)| *number_end < position);
        let Some((number_end, name_end)) = before else { return error };
        match u32::try_from(position - number_end + name_end) {
            Ok(restored) => error.with_position(restored),
            Err(_) => error,
        }
    }
}

/// The statement as the server takes it, and its parameters in order.
pub(crate) fn positional<'a>(text: &str, params: &'a Params) -> Result<Statement<'a>> {
    let unchanged = |values| Statement { text: text.to_owned(), values, renamed: Vec::new() };
    match params {
        Params::None => Ok(unchanged(Vec::new())),
        Params::Positional(values) => Ok(unchanged(values.iter().collect())),
        Params::Named(params) => named(text, params),
    }
}

fn named<'a>(text: &str, params: &'a [Param]) -> Result<Statement<'a>> {
    let mut statement = String::with_capacity(text.len());
    let mut renamed = Vec::new();
    let mut order: Vec<usize> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if is_number(rest) {
            return Err(mixed());
        }
        let skipped = skip(rest);
        if skipped > 0 {
            statement.push_str(&rest[..skipped]);
            rest = &rest[skipped..];
            continue;
        }
        // `skip` stops only before a colon that starts a name.
        let length = name_length(&rest[1..]);
        let name = &rest[1..=length];
        let index = params.iter().position(|param| param.name == name).ok_or_else(|| missing(name))?;
        let number = order.iter().position(|known| *known == index).unwrap_or_else(|| {
            order.push(index);
            order.len() - 1
        });
        statement.push('$');
        statement.push_str(&(number + 1).to_string());
        rest = &rest[1 + length..];
        renamed.push((statement.chars().count(), text[..text.len() - rest.len()].chars().count()));
    }
    if let Some(unused) = (0..params.len()).find(|index| !order.contains(index)) {
        return Err(Error::programming(format!("the statement has no parameter :{}", params[unused].name))
            .with_hint("write it as :name in the statement, or leave it out of params"));
    }
    let values = order.into_iter().map(|index| &params[index].value).collect();
    Ok(Statement { text: statement, values, renamed })
}

/// Whether a numbered parameter starts here.
fn is_number(text: &str) -> bool {
    matches!(text.as_bytes(), [b'$', b'0'..=b'9', ..])
}

#[cold]
fn mixed() -> Error {
    Error::programming("the statement has both $1 and named parameters")
        .with_hint("give every parameter a name, or give params as a list")
}

#[cold]
fn missing(name: &str) -> Error {
    Error::programming(format!("params has no value for :{name}"))
        .with_hint("add it to the dict; a colon that is not a parameter stands in quotes or before a blank")
}

/// The bytes at the start of `text` that hold no parameter; 0 where a parameter starts.
fn skip(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [b'\'', ..] => quoted(bytes, b'\'', false),
        [b'"', ..] => quoted(bytes, b'"', false),
        [b'e' | b'E', b'\'', ..] => 1 + quoted(&bytes[1..], b'\'', true),
        [b'-', b'-', ..] => bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1),
        [b'/', b'*', ..] => comment(bytes),
        [b'$', ..] => dollar_quoted(text),
        // A cast, a slice's or an assignment's colon is no parameter.
        [b':', b':' | b'=', ..] => 2,
        [b':', ..] if name_length(&text[1..]) > 0 => 0,
        // A dollar inside a name quotes nothing.
        [byte, ..] if is_name(*byte) => {
            text.len() - text.trim_start_matches(|c| is_name_char(c) || c == '$').len()
        }
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// The length of the parameter's name that `text` starts with: digits may follow, not lead, as in `a[1:2]`.
fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.len() - text.trim_start_matches(is_name_char).len()
}

pub(crate) fn quoted(bytes: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            // A doubled quote is two texts side by side: it ends one and starts the next.
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Comments nest.
pub(crate) fn comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `$tag$ ... $tag$`, or `$1`, or a lone dollar sign.
pub(crate) fn dollar_quoted(text: &str) -> usize {
    let tag_length = name_length(&text[1..]);
    let Some(tag) = text.get(..tag_length + 2).filter(|tag| tag.ends_with('$')) else { return 1 };
    text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(text: &str, names: &[&str]) -> Result<(String, usize)> {
        let params =
            names.iter().map(|name| Param { name: (*name).to_owned(), value: Value::Null }).collect();
        positional(text, &Params::Named(params)).map(|statement| (statement.text, statement.values.len()))
    }

    #[test]
    fn numbers_and_names_do_not_mix() {
        assert!(rewrite("SELECT :a, $1", &["a"]).is_err());
        assert_eq!(rewrite("SELECT :a, b$1, '$1'", &["a"]).unwrap(), ("SELECT $1, b$1, '$1'".to_owned(), 1));
    }

    #[test]
    fn names_are_numbered_in_order_of_use() {
        let (text, count) = rewrite("SELECT :b, :a, :b::int WHERE x=:größe", &["a", "b", "größe"]).unwrap();
        assert_eq!((text.as_str(), count), ("SELECT $1, $2, $1::int WHERE x=$3", 3));
    }

    #[test]
    fn colons_elsewhere_are_left_alone() {
        for text in [
            "SELECT ':a', \":a\", E'\\':a', 'it''s :a' -- :a\n, /* :a /* :a */ :a */ $$ :a $$, $t$ :a $$ $t$, a[1:2], x::a, f(a := 1)",
            "SELECT 'open :a",
            "SELECT a$b$c, x$",
        ] {
            let (rewritten, count) = rewrite(&format!("{text} "), &[]).unwrap();
            assert_eq!((rewritten.trim_end(), count), (text, 0));
        }
    }

    #[test]
    fn positions_are_those_of_the_callers_text() {
        let params = Params::Named(vec![Param { name: "größe".to_owned(), value: Value::Null }]);
        let statement = positional("SELECT :größe, nope, :größe, x", &params).unwrap();
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
    fn missing_and_unused_names_are_errors() {
        assert!(rewrite("SELECT :a", &[]).unwrap_err().to_string().contains(":a"));
        assert!(rewrite("SELECT 1", &["a"]).unwrap_err().to_string().contains(":a"));
    }
}
