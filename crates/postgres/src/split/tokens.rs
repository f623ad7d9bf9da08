//! A statement's tokens, as PostgreSQL's own scanner sees them (documentation, chapter "Lexical Structure").

use crate::placeholders::{comment, dollar_quoted, is_name, quoted};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in double quotes.
    Quoted,
    /// A text in single quotes or dollars.
    Literal,
    /// A number, or a parameter's.
    Number,
    /// An operator, or a single mark such as a parenthesis.
    Mark,
}

/// One token where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Its first byte's place in the statement.
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this word; words have no case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this mark or operator.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    /// The name that it stands for, as the catalogue has it; `None` for U&"..." too.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_ascii_lowercase()),
            Kind::Quoted => {
                let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
                Some(inner.replace("\"\"", "\""))
            }
            _ => None,
        }
    }
}

/// All tokens but blanks and comments.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = next(&text[at..]);
        if let Some(kind) = kind {
            found.push(Token { kind, text: &text[at..at + length], start: at });
        }
        at += length;
    }
    found
}

/// The kind of what `text` starts with, `None` for blanks and comments, and its length in bytes.
fn next(text: &str) -> (Option<Kind>, usize) {
    let bytes = text.as_bytes();
    match bytes {
        [b'-', b'-', ..] => (None, bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())),
        [b'/', b'*', ..] => (None, comment(bytes)),
        [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => (None, 1),
        [b'\'', ..] => (Some(Kind::Literal), whole(bytes, b'\'', false)),
        [b'"', ..] => (Some(Kind::Quoted), whole(bytes, b'"', false)),
        [b'e' | b'E', b'\'', ..] => (Some(Kind::Literal), 1 + whole(&bytes[1..], b'\'', true)),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
            (Some(Kind::Literal), 1 + whole(&bytes[1..], b'\'', false))
        }
        [b'u' | b'U', b'&', b'\'', ..] => (Some(Kind::Literal), 2 + whole(&bytes[2..], b'\'', false)),
        [b'u' | b'U', b'&', b'"', ..] => (Some(Kind::Quoted), 2 + whole(&bytes[2..], b'"', false)),
        [b'$', digit, ..] if digit.is_ascii_digit() => {
            (Some(Kind::Number), run(text, |c| c.is_ascii_digit()))
        }
        [b'$', ..] => match dollar_quoted(text) {
            1 => (Some(Kind::Mark), 1),
            length => (Some(Kind::Literal), length),
        },
        [byte, ..] if byte.is_ascii_digit() => {
            (Some(Kind::Number), run(text, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        }
        [byte, ..] if is_name(*byte) => (
            Some(Kind::Word),
            run(text, |c| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()),
        ),
        [byte, ..] if OPERATORS.contains(byte) => (Some(Kind::Mark), operator(bytes)),
        _ => (Some(Kind::Mark), text.chars().next().map_or(1, char::len_utf8)),
    }
}

const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`?";

/// The length of an operator: it ends where a comment starts.
fn operator(bytes: &[u8]) -> usize {
    let length = bytes.iter().position(|byte| !OPERATORS.contains(byte)).unwrap_or(bytes.len());
    let comment = (1..length).find(|at| matches!(&bytes[*at..], [b'-', b'-', ..] | [b'/', b'*', ..]));
    comment.unwrap_or(length)
}

/// The length of a quoted text with the doubled quotes in it.
fn whole(bytes: &[u8], quote: u8, escapes: bool) -> usize {
    let mut length = quoted(bytes, quote, escapes);
    while bytes.get(length) == Some(&quote) {
        length += quoted(&bytes[length..], quote, escapes);
    }
    length
}

/// The length of the first character and of those after it that `belongs` takes.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    let mut characters = text.char_indices().skip(1);
    characters.find(|(_, c)| !belongs(*c)).map_or(text.len(), |(at, _)| at)
}

/// A name in double quotes.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal, whatever the server takes backslashes for.
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_statement_falls_into_its_tokens() {
        assert_eq!(
            texts("SELECT a.\"B \"\"c\", 1.5e3, $1::int4[] -- no\nFROM/* x /* y */ */t$1 WHERE a<>-1"),
            [
                "SELECT",
                "a",
                ".",
                "\"B \"\"c\"",
                ",",
                "1.5e3",
                ",",
                "$1",
                ":",
                ":",
                "int4",
                "[",
                "]",
                "FROM",
                "t$1",
                "WHERE",
                "a",
                "<>-",
                "1"
            ]
        );
    }

    #[test]
    fn quoted_texts_are_one_token_each() {
        for quoted in [
            "'it''s'",
            "''",
            "E'a\\'b'",
            "E'\\\\'",
            "$$ WHERE ' $$",
            "$t$ $$ $t$",
            "u&'\\0041'",
            "X'ff'",
            "'open WHERE",
            "N'größe'",
        ] {
            let found = tokens(quoted);
            assert_eq!((found.len(), found[0].text, found[0].kind), (1, quoted, Kind::Literal), "{quoted}");
        }
        assert_eq!(texts("'a' 'b'"), ["'a'", "'b'"]);
        assert_eq!(texts("@-/* c */5@--x"), ["@-", "5", "@"]);
    }

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        let names: Vec<_> = tokens("Größe \"Größe\" \"a\"\"b\" 'x' (").iter().map(Token::name).collect();
        assert_eq!(names, [Some("größe".into()), Some("Größe".into()), Some("a\"b".into()), None, None]);
    }

    #[test]
    fn literals_quote_what_they_hold() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(quoted_name("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn any_text_falls_into_tokens() {
        let pieces = [
            "'", "\"", "$", "$a$", "é", "€", "\\", "--", "/*", "*/", "E'", "U&\"", "a", "1", "\n", ".", "(",
            "::",
        ];
        let mut state = 7_usize;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(25_214_903_917).wrapping_add(11) % (1 << 40);
                text.push_str(pieces[(state >> 17) % pieces.len()]);
            }
            let mut end = 0;
            for token in tokens(&text) {
                assert!(end <= token.start && !token.text.is_empty(), "{text:?}");
                end = token.end();
            }
        }
    }
}
