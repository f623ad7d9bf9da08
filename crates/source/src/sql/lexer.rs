//! A statement's tokens, as a database's own scanner sees them.

use longshore_core::TableName;

use super::dialect::{Comments, Dialect, Markers, Names};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Quoted,
    /// A text, or bytes.
    Literal,
    /// A number.
    Number,
    /// A parameter's place.
    Parameter,
    /// An operator, or a single mark such as a parenthesis.
    Mark,
    /// Blanks and comments.
    Blank,
    /// A comment that the server runs, or a hint of its optimizer.
    Executed,
}

/// One token where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token's kind.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Its first byte's place in the statement.
    pub start: usize,
}

impl Token<'_> {
    /// The place behind its last byte.
    #[must_use]
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this word; words have no case.
    #[must_use]
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this mark or operator.
    #[must_use]
    pub fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
}

impl Dialect {
    /// All tokens but blanks and comments.
    #[must_use]
    pub fn tokens<'a>(&self, text: &'a str) -> Vec<Token<'a>> {
        let mut found = self.scan(text);
        found.retain(|token| token.kind != Kind::Blank);
        found
    }

    /// All tokens, which are the whole text.
    #[must_use]
    pub fn scan<'a>(&self, text: &'a str) -> Vec<Token<'a>> {
        self.each(text).collect()
    }

    /// All tokens, one after the other.
    pub(super) fn each<'a>(&self, text: &'a str) -> impl Iterator<Item = Token<'a>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            let (kind, length) = (start < text.len()).then(|| self.next(&text[start..]))?;
            // A byte count that is off would be a defect here: never beyond the text, never within a character.
            at = (start + length.max(1)).min(text.len());
            while !text.is_char_boundary(at) {
                at += 1;
            }
            Some(Token { kind, text: &text[start..at], start })
        })
    }

    /// The name that a token stands for, as the catalogue has it; `None` where it is not one, or written `U&"..."`.
    #[must_use]
    pub fn name(&self, token: &Token<'_>) -> Option<String> {
        match token.kind {
            Kind::Word if self.names == Names::Folded => Some(token.text.to_ascii_lowercase()),
            Kind::Word => Some(token.text.to_owned()),
            Kind::Quoted => {
                let first = *token.text.as_bytes().first()?;
                let (_, close) = *self.name_quotes.iter().find(|(open, _)| *open == first)?;
                let close = char::from(close);
                let inner = token.text.get(1..)?.strip_suffix(close)?;
                Some(inner.replace(&format!("{close}{close}"), &close.to_string()))
            }
            _ => None,
        }
    }

    /// A name in quotes.
    #[must_use]
    pub fn quoted_name(&self, name: &str) -> String {
        let (open, close) =
            self.name_quotes.first().map_or(('"', '"'), |(a, b)| (char::from(*a), char::from(*b)));
        format!("{open}{}{close}", name.replace(close, &format!("{close}{close}")))
    }

    /// A table's name for a statement.
    #[must_use]
    pub fn qualified_name(&self, name: &TableName) -> String {
        let parts = name.schema.iter().chain([&name.table]);
        parts.map(|part| self.quoted_name(part)).collect::<Vec<_>>().join(".")
    }

    /// The names that stand before a parenthesis, in lower case: functions, and keywords such as IN.
    #[must_use]
    pub fn calls(&self, tokens: &[Token<'_>]) -> Vec<String> {
        let pairs = tokens.windows(2).filter(|pair| pair[1].is_mark("("));
        pairs.filter_map(|pair| self.name(&pair[0])).map(|name| name.to_ascii_lowercase()).collect()
    }

    /// The statement without semicolons and comments at its end.
    #[must_use]
    pub fn body<'a>(&self, text: &'a str) -> &'a str {
        let tokens = self.tokens(text);
        let last = tokens.iter().rev().find(|token| !token.is_mark(";"));
        &text[..last.map_or(0, Token::end)]
    }

    /// The tokens outside of all parentheses and brackets, which themselves belong to them, without semicolons at the
    /// end; `None` where parentheses do not match, or for more than one statement.
    #[must_use]
    pub fn outermost<'a>(&self, text: &'a str) -> Option<Vec<Token<'a>>> {
        let mut depth = 0_usize;
        let mut found = Vec::new();
        for token in self.tokens(text) {
            let opens = token.is_mark("(") || token.is_mark("[");
            if token.is_mark(")") || token.is_mark("]") {
                depth = depth.checked_sub(1)?;
            }
            if depth == 0 {
                found.push(token);
            }
            depth += usize::from(opens);
        }
        while found.last().is_some_and(|token| token.is_mark(";")) {
            found.pop();
        }
        (depth == 0 && !found.iter().any(|token| token.is_mark(";"))).then_some(found)
    }

    /// The kind of what `text` starts with, and its length in bytes.
    fn next(&self, text: &str) -> (Kind, usize) {
        let bytes = text.as_bytes();
        let first = bytes[0];
        if first.is_ascii_whitespace() || first == 0x0b {
            return (Kind::Blank, 1);
        }
        if let Some(blank) = text.chars().next().filter(|c| self.is_blank(*c)) {
            return (Kind::Blank, blank.len_utf8());
        }
        if let Some(found) = self.comment(bytes).or_else(|| self.quotation(text)) {
            return found;
        }
        match (self.markers, bytes) {
            (Markers::Numbers | Markers::Braces, [b'$', digit, ..]) if digit.is_ascii_digit() => {
                return (Kind::Parameter, run(text, |c| c.is_ascii_digit()));
            }
            (Markers::Braces, [b'{', ..]) => {
                if let Some(length) = in_braces(text) {
                    return (Kind::Parameter, length);
                }
            }
            (Markers::Questions, [b'?', ..]) => return (Kind::Parameter, 1),
            _ => {}
        }
        if first.is_ascii_digit() {
            return self.number(text);
        }
        if is_name(first) || (first == b'$' && !self.dollar_quotes) {
            return (Kind::Word, run(text, |c| is_name_char(c) && !self.is_blank(c)));
        }
        if self.operators.contains(&first) {
            return (Kind::Mark, self.operator(bytes));
        }
        (Kind::Mark, text.chars().next().map_or(1, char::len_utf8))
    }

    /// Whether it is a blank that is not ASCII.
    fn is_blank(&self, c: char) -> bool {
        !c.is_ascii() && self.blanks.iter().any(|(first, last)| (*first..=*last).contains(&c))
    }

    fn comment(&self, bytes: &[u8]) -> Option<(Kind, usize)> {
        let line = || bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let is_mysql = self.comments == Comments::MySql;
        Some(match bytes {
            [b'#', ..] if is_mysql => (Kind::Blank, line()),
            [b'#', b' ' | b'!', ..] if self.comments == Comments::ClickHouse => (Kind::Blank, line()),
            [b'-', b'-', after, ..]
                if is_mysql && !(after.is_ascii_whitespace() || after.is_ascii_control()) =>
            {
                return None;
            }
            [b'-', b'-', ..] => (Kind::Blank, line()),
            [b'/', b'*', b'!' | b'+', ..] | [b'/', b'*', b'M', b'!', ..] if is_mysql => {
                (Kind::Executed, flat_comment(bytes))
            }
            [b'/', b'*', ..] if self.comments == Comments::Nested => (Kind::Blank, nested_comment(bytes)),
            [b'/', b'*', ..] => (Kind::Blank, flat_comment(bytes)),
            _ => return None,
        })
    }

    /// A text or a name in quotes.
    fn quotation(&self, text: &str) -> Option<(Kind, usize)> {
        let bytes = text.as_bytes();
        let first = bytes[0];
        if self.text_quotes.contains(&first) {
            return Some((Kind::Literal, enclosed_length(bytes, first, self.backslash_escapes)));
        }
        if let Some((_, close)) = self.name_quotes.iter().find(|(open, _)| *open == first) {
            return Some((Kind::Quoted, enclosed_length(bytes, *close, false)));
        }
        if first == b'$' && self.dollar_quotes {
            return dollar_quoted(text).map(|length| (Kind::Literal, length));
        }
        self.prefixes.iter().find_map(|(prefix, escapes)| {
            let length = prefix.len();
            let is_there = bytes.get(..length)?.eq_ignore_ascii_case(prefix.as_bytes());
            let (rest, quote) = (&bytes[length..], *bytes.get(length)?);
            match quote {
                b'\'' if is_there => {
                    let escapes = *escapes || self.backslash_escapes;
                    Some((Kind::Literal, length + enclosed_length(rest, quote, escapes)))
                }
                // The standard's names with escapes.
                b'"' if is_there && *prefix == "u&" => {
                    Some((Kind::Quoted, length + enclosed_length(rest, quote, false)))
                }
                _ => None,
            }
        })
    }

    fn number(&self, text: &str) -> (Kind, usize) {
        if self.names != Names::KeptWithDigits {
            return (Kind::Number, run(text, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        }
        let length = run(text, is_name_char);
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'e' | b'E' | b'x');
        (if text[..length].bytes().all(is_digit) { Kind::Number } else { Kind::Word }, length)
    }

    /// The length of an operator: it ends where a comment starts.
    fn operator(&self, bytes: &[u8]) -> usize {
        let length = bytes.iter().position(|byte| !self.operators.contains(byte)).unwrap_or(bytes.len());
        (1..length).find(|at| self.comment(&bytes[*at..]).is_some()).unwrap_or(length)
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

/// The length of the first character and of those after it that `belongs` takes.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    let mut characters = text.char_indices().skip(1);
    characters.find(|(_, c)| !belongs(*c)).map_or(text.len(), |(at, _)| at)
}

/// The length of what stands between quotes, with the doubled quotes in it.
fn enclosed_length(bytes: &[u8], close: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == close && close != b']' && bytes.get(at + 1) == Some(&close) => at += 2,
            byte if byte == close => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn flat_comment(bytes: &[u8]) -> usize {
    bytes.windows(2).skip(2).position(|pair| pair == b"*/").map_or(bytes.len(), |at| at + 4)
}

fn nested_comment(bytes: &[u8]) -> usize {
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

/// The length of `{name:type}`; `None` for another brace. No brace looks beyond the next one, so that many are read in linear
/// time.
fn in_braces(text: &str) -> Option<usize> {
    let (inner, after) = text[1..].split_at(text[1..].find(['{', '}'])?);
    let (name, _) = inner.split_once(':')?;
    let name = name.trim();
    let is_one = after.starts_with('}') && !name.is_empty() && name.chars().all(is_name_char);
    is_one.then_some(inner.len() + 2)
}

/// The length of `$tag$ ... $tag$`; `None` for a lone dollar sign.
fn dollar_quoted(text: &str) -> Option<usize> {
    let rest = &text[1..];
    let is_tag = !rest.starts_with(|c: char| c.is_ascii_digit());
    let tag_length =
        if is_tag { rest.find(|c| !is_name_char(c) || c == '$').unwrap_or(rest.len()) } else { 0 };
    let tag = text.get(..tag_length + 2).filter(|tag| tag.ends_with('$'))?;
    Some(text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sql::{CLICKHOUSE, DUCKDB, POSTGRESQL, SQLITE, STANDARD};

    pub(in crate::sql) const MYSQL: Dialect = Dialect {
        name_quotes: &[(b'`', b'`')],
        text_quotes: b"'\"",
        prefixes: &[("b", false), ("x", false), ("n", false)],
        backslash_escapes: true,
        dollar_quotes: false,
        comments: Comments::MySql,
        markers: Markers::Questions,
        operators: b"",
        names: Names::KeptWithDigits,
        blanks: &[],
    };

    fn texts<'a>(dialect: &Dialect, text: &'a str) -> Vec<&'a str> {
        dialect.tokens(text).iter().map(|token| token.text).collect()
    }

    /// The tokens that stand between blanks.
    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    #[test]
    fn a_statement_falls_into_its_tokens() {
        assert_eq!(
            texts(
                &POSTGRESQL,
                "SELECT a.\"B\"\"c\", 1.5e3, $1::int4[] -- no\nFROM/* x /* y */ */t$1 WHERE a<>-1"
            ),
            words("SELECT a . \"B\"\"c\" , 1.5e3 , $1 : : int4 [ ] FROM t$1 WHERE a <>- 1")
        );
        assert_eq!(
            texts(
                &MYSQL,
                "SELECT `a``b`.c, 1.5, 'it''s\\'x', \"q\", ? -- no\nFROM t1 # no\nWHERE a--1 /* no */ AND b->'$.c'"
            ),
            words(
                "SELECT `a``b` . c , 1 . 5 , 'it''s\\'x' , \"q\" , ? FROM t1 WHERE a - - 1 AND b - > '$.c'"
            )
        );
        assert_eq!(
            texts(&SQLITE, "SELECT [a], `c``d`, \"e\"\"f\", x'00', 'it''s', ?1, :n -- no\n/* x */ FROM t.u"),
            words("SELECT [a] , `c``d` , \"e\"\"f\" , x'00' , 'it''s' , ? 1 , : n FROM t . u")
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
            let found = POSTGRESQL.tokens(quoted);
            assert_eq!((found.len(), found[0].text, found[0].kind), (1, quoted, Kind::Literal), "{quoted}");
        }
        assert_eq!(texts(&POSTGRESQL, "'a' 'b'"), ["'a'", "'b'"]);
        assert_eq!(texts(&POSTGRESQL, "@-/* c */5@--x"), ["@-", "5", "@"]);
        assert_eq!(MYSQL.tokens("SELECT /*! 1 */ x'ff'")[1].kind, Kind::Executed);
        assert_eq!(Dialect { backslash_escapes: false, ..MYSQL }.tokens("'\\'").len(), 1);
    }

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        let text = "Größe \"Größe\" \"a\"\"b\" 'x' (";
        let names: Vec<_> = POSTGRESQL.tokens(text).iter().map(|token| POSTGRESQL.name(token)).collect();
        assert_eq!(names, [Some("größe".into()), Some("Größe".into()), Some("a\"b".into()), None, None]);
        let names: Vec<_> = SQLITE.tokens("A [b] `c``d` 1").iter().map(|token| SQLITE.name(token)).collect();
        assert_eq!(names, [Some("A".into()), Some("b".into()), Some("c`d".into()), None]);
        assert_eq!(
            (POSTGRESQL.quoted_name("a\"b"), MYSQL.quoted_name("a`b")),
            ("\"a\"\"b\"".into(), "`a``b`".into())
        );
    }

    #[test]
    fn a_brace_looks_no_further_than_the_next() {
        // To the text's end and back, so many times, would take minutes.
        let text = "{{".to_owned() + &" ".repeat(1 << 24);
        assert!((0..1 << 17).all(|_| in_braces(&text).is_none()));
    }

    #[test]
    fn any_text_falls_into_tokens() {
        let pieces = [
            "'", "\"", "`", "[", "]", "$", "$a$", "é", "€", "\\", "--", "-- ", "/*", "*/", "/*!", "#", "E'",
            "U&\"", "x'", "a", "1", "\n", ".", "(", "::", "?", ":", "\u{a0}", "\u{3000}",
        ];
        let mut state = 7_usize;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(25_214_903_917).wrapping_add(11) % (1 << 40);
                text.push_str(pieces[(state >> 17) % pieces.len()]);
            }
            for dialect in [
                POSTGRESQL,
                MYSQL,
                DUCKDB,
                SQLITE,
                STANDARD,
                CLICKHOUSE,
                Dialect { backslash_escapes: false, ..MYSQL },
            ] {
                let found = dialect.scan(&text);
                assert_eq!(found.iter().map(|token| token.text).collect::<String>(), text);
            }
        }
    }
}
