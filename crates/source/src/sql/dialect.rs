//! How databases' own scanners read a statement, each a value.

/// How a database's scanner reads a statement.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The quotes that open and close a name.
    pub name_quotes: &'static [(u8, u8)],
    /// The quotes around a text; the first is the standard's.
    pub text_quotes: &'static [u8],
    /// Letters before the first of them, in lower case, and whether they have a backslash escape.
    pub prefixes: &'static [(&'static str, bool)],
    /// Whether a backslash escapes in every text.
    pub backslash_escapes: bool,
    /// Whether `$tag$` quotes a text.
    pub dollar_quotes: bool,
    /// The comments.
    pub comments: Comments,
    /// The places of parameters.
    pub markers: Markers,
    /// The characters that make one operator when they follow each other.
    pub operators: &'static [u8],
    /// The names without quotes.
    pub names: Names,
    /// The blanks that are not ASCII, each range's first and last. Every other character that is not ASCII is a letter.
    pub blanks: &'static [(char, char)],
}

/// The names without quotes of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// In lower case, however they are written.
    Folded,
    /// As they are written.
    Kept,
    /// The same, and the first character may be a digit.
    KeptWithDigits,
}

/// The comments of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comments {
    /// The standard's, and `/* */` within each other.
    Nested,
    /// The standard's; the first `*/` ends all.
    Flat,
    /// `#`, and two hyphens only before a blank; `/*!` and `/*+` are not for readers alone.
    MySql,
    /// The standard's, and `#` before a blank or `!`.
    ClickHouse,
}

/// The places of parameters in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markers {
    /// `$1`, `$2`, ...
    Numbers,
    /// `?` for each.
    Questions,
    /// `{name:type}`, and numbers.
    Braces,
}

/// PostgreSQL's scanner (documentation, chapter "Lexical Structure").
pub const POSTGRESQL: Dialect = Dialect {
    name_quotes: &[(b'"', b'"')],
    text_quotes: b"'",
    prefixes: &[("e", true), ("b", false), ("x", false), ("n", false), ("u&", false)],
    backslash_escapes: false,
    dollar_quotes: true,
    comments: Comments::Nested,
    markers: Markers::Numbers,
    operators: b"+-*/<>=~!@#%^&|`?",
    names: Names::Folded,
    blanks: &[],
};

/// `DuckDB`'s scanner, which is PostgreSQL's behind one that takes Unicode's blanks for spaces.
pub const DUCKDB: Dialect = Dialect {
    blanks: &[
        ('\u{a0}', '\u{a0}'),
        ('\u{2000}', '\u{200b}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{2060}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ],
    ..POSTGRESQL
};

/// SQLite's scanner (sqlite.org/lang.html).
pub const SQLITE: Dialect = Dialect {
    name_quotes: &[(b'"', b'"'), (b'`', b'`'), (b'[', b']')],
    text_quotes: b"'",
    prefixes: &[("x", false)],
    backslash_escapes: false,
    dollar_quotes: false,
    comments: Comments::Flat,
    markers: Markers::Questions,
    operators: b"",
    names: Names::Kept,
    blanks: &[],
};

/// The standard's scanner, and Trino's, with MySQL's quotes of names: in brackets are an array's elements. White space is
/// Unicode's, which Trino refuses.
pub const STANDARD: Dialect = Dialect {
    name_quotes: &[(b'"', b'"'), (b'`', b'`')],
    text_quotes: b"'",
    prefixes: &[("x", false), ("n", false), ("u&", false)],
    backslash_escapes: false,
    dollar_quotes: false,
    comments: Comments::Flat,
    markers: Markers::Questions,
    operators: b"",
    names: Names::Folded,
    blanks: CLICKHOUSE.blanks,
};

/// `ClickHouse`'s scanner (its `Lexer.cpp`). Names escape as texts do, and are none the less [`Kind::Literal`] here.
pub const CLICKHOUSE: Dialect = Dialect {
    name_quotes: &[],
    text_quotes: b"'\"`",
    prefixes: &[],
    backslash_escapes: true,
    dollar_quotes: true,
    comments: Comments::ClickHouse,
    markers: Markers::Braces,
    operators: b"",
    names: Names::Kept,
    blanks: &[
        ('\u{85}', '\u{85}'),
        ('\u{a0}', '\u{a0}'),
        ('\u{180e}', '\u{180e}'),
        ('\u{2000}', '\u{200d}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{2060}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ],
};

impl Dialect {
    /// The dialect of this name: `postgresql`, `duckdb`, `sqlite`, `clickhouse` or `standard`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        match name {
            "postgresql" => Some(&POSTGRESQL),
            "duckdb" => Some(&DUCKDB),
            "sqlite" => Some(&SQLITE),
            "clickhouse" => Some(&CLICKHOUSE),
            "standard" => Some(&STANDARD),
            _ => None,
        }
    }

    /// The dialect of a database of this name that has such places. One that is not known may be SQL Server, whose brackets
    /// quote names as SQLite's do.
    #[must_use]
    pub fn with_places(place: &str, database: Option<&str>) -> &'static Self {
        match (place, database) {
            ("$1", Some("duckdb")) => &DUCKDB,
            ("$1", _) => &POSTGRESQL,
            (_, None | Some("sqlite")) => &SQLITE,
            _ => &STANDARD,
        }
    }
}
