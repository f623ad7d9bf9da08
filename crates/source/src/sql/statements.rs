//! A statement's text for a driver that looks at it by itself: its parameters' places, a script's statements, first words.

use std::mem;

use super::dialect::{Dialect, Markers};
use super::lexer::{Kind, Token};

/// The text in pieces: every second one is a parameter's place, `:name`, `$name` or one of the dialect's own, and between
/// them is the rest.
#[must_use]
pub fn places<'a>(dialect: &Dialect, text: &'a str) -> Vec<&'a str> {
    let tokens = dialect.scan(text);
    let (mut pieces, mut after) = (Vec::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        let end = match token.kind {
            Kind::Parameter => token.end(),
            Kind::Mark if is_named(dialect, &tokens, at) => tokens[at + 1].end(),
            _ => continue,
        };
        pieces.extend([&text[after..token.start], &text[token.start..end]]);
        after = end;
    }
    pieces.push(&text[after..]);
    pieces
}

/// The statements of a script, which semicolons part, without those that say nothing.
#[must_use]
pub fn statements<'a>(dialect: &Dialect, script: &'a str) -> Vec<&'a str> {
    let (mut found, mut start, mut says_something) = (Vec::new(), 0, false);
    for token in dialect.each(script) {
        if !token.is_mark(";") {
            says_something |= token.kind != Kind::Blank;
            continue;
        }
        found.extend(says_something.then(|| &script[start..token.start]));
        (start, says_something) = (token.end(), false);
    }
    found.extend(says_something.then(|| &script[start..]));
    found
}

/// The first tokens of a statement in capitals, `most` at most, without the semicolons and parentheses that open it. Of
/// semicolons in a row there is one, and of a literal, which may be as long as a value, a quote alone.
#[must_use]
pub fn first_words(dialect: &Dialect, text: &str, most: usize) -> Vec<String> {
    let mut is_behind_end = false;
    let tokens = dialect.each(text).filter(|token| token.kind != Kind::Blank).filter(|token| {
        let was_behind_end = mem::replace(&mut is_behind_end, token.is_mark(";"));
        !(was_behind_end && is_behind_end)
    });
    let words = tokens.skip_while(|token| token.is_mark(";") || token.is_mark("("));
    let shown = |token: Token<'_>| if token.kind == Kind::Literal { "'" } else { token.text }.to_uppercase();
    words.take(most).map(shown).collect()
}

/// Whether a colon or a dollar sign and the word after it are a place: not a cast's, a slice's or a struct's.
fn is_named(dialect: &Dialect, tokens: &[Token<'_>], at: usize) -> bool {
    let is_sign = tokens[at].is_mark(":") || (tokens[at].is_mark("$") && dialect.markers == Markers::Numbers);
    let is_name = tokens
        .get(at + 1)
        .is_some_and(|next| next.kind == Kind::Word && !next.text.starts_with(|c: char| c.is_ascii_digit()));
    let follows_value = at.checked_sub(1).is_some_and(|before| {
        let before = &tokens[before];
        match before.kind {
            Kind::Blank => false,
            Kind::Mark => matches!(before.text, ":" | "]" | ")" | "}"),
            _ => true,
        }
    });
    is_sign && is_name && !follows_value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{CLICKHOUSE, DUCKDB, POSTGRESQL, SQLITE, STANDARD};

    fn places_of(dialect: &Dialect, text: &'static str) -> Vec<&'static str> {
        let pieces = places(dialect, text);
        assert_eq!(pieces.concat(), text);
        pieces.into_iter().skip(1).step_by(2).collect()
    }

    #[test]
    fn places_stand_outside_of_texts_names_and_comments() {
        let text = "SELECT :a, $b, $1, ':c', \":d\", E'\\':e', $$:f$$, x::g, c[1:h], {'k':i}, f(y):j -- :k\n/* /* :l */ :m */, :größe";
        assert_eq!(places_of(&POSTGRESQL, text), [":a", "$b", "$1", ":größe"]);
        let text = "SELECT ?, :a, '?', \"?\", ARRAY[:b], /* ? */ x::c -- ?";
        assert_eq!(places_of(&STANDARD, text), ["?", ":a", ":b"]);
        let text = "SELECT :a, $1, {b:UInt8}, { c : Array(String) }, {'k':1}, x ? y:z, '\\':d', `\\`:e`, $t$:f$t$ # :g\n, t$2";
        assert_eq!(places_of(&CLICKHOUSE, text), [":a", "$1", "{b:UInt8}", "{ c : Array(String) }"]);
    }

    #[test]
    fn blanks_of_unicode_are_blanks_or_letters() {
        let text = "SELECT a =\u{a0}:b,\u{3000}c\u{2003}:d";
        for dialect in [&DUCKDB, &CLICKHOUSE, &STANDARD] {
            assert_eq!(places_of(dialect, text), [":b", ":d"]);
        }
        for dialect in [&POSTGRESQL, &SQLITE] {
            assert!(places_of(dialect, text).is_empty());
        }
    }

    #[test]
    fn a_script_falls_into_its_statements() {
        let script = " ; SELECT ';' ; -- nothing;\n; /* ; */ SELECT \"a;b\" /* ; */ ;";
        assert_eq!(statements(&STANDARD, script), [" SELECT ';' ", " /* ; */ SELECT \"a;b\" /* ; */ "]);
        assert!(statements(&STANDARD, "-- SELECT 1").is_empty());
    }

    #[test]
    fn the_first_words_are_behind_comments_and_parentheses() {
        let words = |text| first_words(&STANDARD, text, 2).join(" ");
        assert_eq!(words("-- a\n/* b */ ((select\n1))"), "SELECT 1");
        assert_eq!(words("; commit"), "COMMIT");
        assert_eq!(words("commit;; /* ; */ ;"), "COMMIT ;");
        assert_eq!(words("values 'a'"), "VALUES '");
        assert_eq!(words(" /* select */ ; "), "");
    }
}
