//! A statement's tokens, as MySQL's own scanner sees them (MySQL documentation, chapter "Language Structure").

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in backticks.
    Quoted,
    /// A text in single or double quotes; double ones hold a name in some SQL modes.
    Literal,
    Number,
    /// A parameter's place: `?`.
    Parameter,
    /// An operator, or a single mark such as a parenthesis.
    Mark,
    /// Blanks and comments.
    Blank,
    /// A comment that the server runs: `/*! ... */`, `/*M! ... */`; or a hint of the optimizer.
    Executed,
}

/// One token where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Its first byte's place in the statement.
    pub(crate) start: usize,
}

impl Token<'_> {
    /// Whether it is this word; words have no case.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this mark.
    pub(crate) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// All tokens, blanks included; `escapes` tells whether a backslash in a text escapes.
pub(crate) fn scan(text: &str, escapes: bool) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = next(&text[at..], escapes);
        // A byte count that is off would be a defect here: never beyond the text, never within a character.
        let mut end = (at + length.max(1)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        found.push(Token { kind, text: &text[at..end], start: at });
        at = end;
    }
    found
}

/// All tokens but blanks and comments.
pub(crate) fn tokens(text: &str, escapes: bool) -> Vec<Token<'_>> {
    let mut found = scan(text, escapes);
    found.retain(|token| token.kind != Kind::Blank);
    found
}

fn next(text: &str, escapes: bool) -> (Kind, usize) {
    let bytes = text.as_bytes();
    match bytes {
        [b'#', ..] => (Kind::Blank, line(bytes)),
        // Two hyphens are a comment only before a blank.
        [b'-', b'-'] => (Kind::Blank, 2),
        [b'-', b'-', after, ..] if after.is_ascii_whitespace() || after.is_ascii_control() => {
            (Kind::Blank, line(bytes))
        }
        [b'/', b'*', b'!' | b'+', ..] | [b'/', b'*', b'M', b'!', ..] => (Kind::Executed, comment(bytes)),
        [b'/', b'*', ..] => (Kind::Blank, comment(bytes)),
        [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => (Kind::Blank, 1),
        [quote @ (b'\'' | b'"'), ..] => (Kind::Literal, quoted(bytes, *quote, escapes)),
        [b'`', ..] => (Kind::Quoted, quoted(bytes, b'`', false)),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
            (Kind::Literal, 1 + quoted(&bytes[1..], b'\'', escapes))
        }
        [b'?', ..] => (Kind::Parameter, 1),
        [byte, ..] if byte.is_ascii_digit() => number(text),
        [byte, ..] if is_name(*byte) => (Kind::Word, word(text)),
        _ => (Kind::Mark, text.chars().next().map_or(1, char::len_utf8)),
    }
}

/// A number; or a name, which may start with digits.
fn number(text: &str) -> (Kind, usize) {
    let length = word(text);
    let is_number =
        text[..length].bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'e' | b'E' | b'x'));
    (if is_number { Kind::Number } else { Kind::Word }, length)
}

pub(crate) fn word(text: &str) -> usize {
    text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii())
            .len()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn line(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
}

fn comment(bytes: &[u8]) -> usize {
    bytes.windows(2).skip(2).position(|pair| pair == b"*/").map_or(bytes.len(), |at| at + 4)
}

/// The length of a quoted text with the doubled quotes in it.
fn quoted(bytes: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A name in backticks.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a literal, whatever the server takes backslashes and quotes for.
pub(crate) fn literal(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && !b"'\\".contains(&byte));
    if is_plain {
        return format!("'{text}'");
    }
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    let digits: String = text.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    // Weaker than any column's collation, as every literal.
    format!("_utf8mb4 x'{digits}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text, true).iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_statement_falls_into_its_tokens() {
        assert_eq!(
            texts(
                "SELECT `a``b`.c, 1.5, 'it''s \\' x', \"q\", ? -- no\nFROM t1 # no\nWHERE a--1 /* no */ AND b->'$.c'"
            ),
            [
                "SELECT",
                "`a``b`",
                ".",
                "c",
                ",",
                "1",
                ".",
                "5",
                ",",
                "'it''s \\' x'",
                ",",
                "\"q\"",
                ",",
                "?",
                "FROM",
                "t1",
                "WHERE",
                "a",
                "-",
                "-",
                "1",
                "AND",
                "b",
                "-",
                ">",
                "'$.c'"
            ]
        );
        assert_eq!(tokens("SELECT /*! 1 */ x'ff'", true)[1].kind, Kind::Executed);
        assert_eq!(tokens("'\\'", false).len(), 1);
    }

    #[test]
    fn literals_quote_what_they_hold() {
        assert_eq!(literal("plain"), "'plain'");
        assert_eq!(literal("it's"), "_utf8mb4 x'69742773'");
        assert_eq!(quoted_name("a`b"), "`a``b`");
    }

    #[test]
    fn any_text_falls_into_tokens() {
        let pieces = [
            "'", "\"", "`", "é", "€", "\\", "-- ", "--", "/*", "*/", "/*!", "#", "a", "1", "\n", "?", ":",
            "x'",
        ];
        let mut state = 7_usize;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(25_214_903_917).wrapping_add(11) % (1 << 40);
                text.push_str(pieces[(state >> 17) % pieces.len()]);
            }
            for escapes in [true, false] {
                let found = scan(&text, escapes);
                assert_eq!(found.iter().map(|token| token.text).collect::<String>(), text);
            }
        }
    }
}
