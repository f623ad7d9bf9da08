//! Named parameters: `:name` becomes `$1`, `$2`, ... outside of texts, names and comments.

use longshore_core::{Error, Param, Params, Result, Value};

/// The statement as the server takes it, and its parameters in order.
pub(crate) fn positional<'a>(text: &str, params: &'a Params) -> Result<(String, Vec<&'a Value>)> {
    match params {
        Params::None => Ok((text.to_owned(), Vec::new())),
        Params::Positional(values) => Ok((text.to_owned(), values.iter().collect())),
        Params::Named(params) => named(text, params),
    }
}

fn named<'a>(text: &str, params: &'a [Param]) -> Result<(String, Vec<&'a Value>)> {
    let mut statement = String::with_capacity(text.len());
    let mut order: Vec<usize> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
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
        statement.push_str(&format!("${}", number + 1));
        rest = &rest[1 + length..];
    }
    if let Some(unused) = (0..params.len()).find(|index| !order.contains(index)) {
        return Err(Error::programming(format!("the statement has no parameter :{}", params[unused].name))
            .with_hint("write it as :name in the statement, or leave it out of params"));
    }
    Ok((statement, order.into_iter().map(|index| &params[index].value).collect()))
}

#[cold]
fn missing(name: &str) -> Error {
    Error::programming(format!("params has no value for :{name}"))
        .with_hint("add it to the dict; a colon that is no parameter stands in quotes or before a blank")
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
        [byte, ..] if is_name(*byte) => text.len() - text.trim_start_matches(|c| is_name_char(c) || c == '$').len(),
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

fn is_name(byte: u8) -> bool {
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

fn quoted(bytes: &[u8], quote: u8, escapes: bool) -> usize {
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
fn comment(bytes: &[u8]) -> usize {
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
fn dollar_quoted(text: &str) -> usize {
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
        positional(text, &Params::Named(params)).map(|(text, values)| (text, values.len()))
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
            "SELECT $1:2",
            "SELECT a$b$c, x$",
        ] {
            let (rewritten, count) = rewrite(&format!("{text} "), &[]).unwrap();
            assert_eq!((rewritten.trim_end(), count), (text, 0));
        }
    }

    #[test]
    fn missing_and_unused_names_are_errors() {
        assert!(rewrite("SELECT :a", &[]).unwrap_err().to_string().contains(":a"));
        assert!(rewrite("SELECT 1", &["a"]).unwrap_err().to_string().contains(":a"));
    }
}
