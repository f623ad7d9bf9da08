//! The text of a query that may be split, and what in it forbids parts.

use longshore_core::{Params, Query};
use longshore_source::NotSplit;
use longshore_source::sql::{Kind, OneTable, Token, tables};
use sqlparser::ast::Statement as Tree;
use sqlparser::dialect::MsSqlDialect;
use sqlparser::parser::Parser;

use crate::dialect::DIALECT;

/// The name of a query around which others are written.
const PART: &str = "longshore_part";

/// Functions whose value depends on their arguments alone, and words before a parenthesis that are none.
const PLAIN_CALLS: &str = "\
    abs acos ascii asin atan atn2 avg cast ceiling char charindex coalesce concat concat_ws convert cos cot count \
    count_big datalength dateadd datediff datediff_big datefromparts datename datepart datetime2fromparts \
    datetimefromparts day degrees difference eomonth exp floor format greatest grouping hashbytes iif isdate isjson \
    isnull isnumeric json_query json_value least left len log log10 lower ltrim max min month nchar nullif parse \
    patindex pi power quotename radians replace replicate reverse right round rtrim sign sin soundex space sqrt \
    square str string_escape stuff substring sum switchoffset tan timefromparts todatetimeoffset translate trim \
    try_cast try_convert try_parse unicode upper var varp stdev stdevp year and any all as by case else except exists from in \
    intersect join like not nvarchar on or select some then union values varbinary varchar when where decimal numeric \
    datetime2 datetimeoffset time binary nchar float having group with";

/// Words of queries whose rows two runs may choose or order otherwise, that write, or that cannot stand in another query.
const FORBIDDEN: &[(&str, &str)] = &[
    ("top", "TOP"),
    ("offset", "OFFSET"),
    ("over", "a window function"),
    ("into", "INTO"),
    ("for", "FOR"),
    ("option", "OPTION"),
    ("tablesample", "TABLESAMPLE"),
    ("current_timestamp", "CURRENT_TIMESTAMP"),
    ("next", "a sequence"),
];

/// Hints that read what others have not committed, or leave out what is locked.
const UNSURE: &[&str] = &["nolock", "readuncommitted", "readpast"];

/// One query: a SELECT, perhaps behind common table expressions.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    /// Its text without a semicolon.
    pub(super) text: &'a str,
    params: &'a Params,
    /// Where its SELECT begins.
    select: usize,
}

impl<'a> Statement<'a> {
    pub(super) fn of(query: &'a Query) -> Result<Self, NotSplit> {
        let text = DIALECT.body(&query.text);
        let trees = Parser::parse_sql(&MsSqlDialect {}, text)
            .map_err(|_| NotSplit::because("its text cannot be parsed"))?;
        let other = || NotSplit::because("it is not one SELECT");
        let ([Tree::Query(_)], Some(outer)) = (trees.as_slice(), DIALECT.outermost(text)) else {
            return Err(other());
        };
        refuse(&DIALECT.tokens(text), &outer)?;
        let select = outer.iter().find(|token| token.is_word("select")).ok_or_else(other)?.start;
        Ok(Self { text, params: &query.params, select })
    }

    /// A query of `text` with this statement's parameters.
    pub(super) fn query(&self, text: String) -> Query {
        Query { text, params: self.params.clone() }
    }

    /// `expressions` over the rows of this query, where `condition` holds.
    pub(super) fn around(&self, expressions: &str, condition: &str) -> String {
        let (before, select) = self.text.split_at(self.select);
        // A comment may end its last line.
        format!("{before}SELECT {expressions} FROM (\n{select}\n) AS {PART} WHERE {condition}")
    }

    /// The one table that it reads, row by row.
    pub(super) fn one_table(&self) -> Result<OneTable<'a>, NotSplit> {
        OneTable::parse(&DIALECT, &MsSqlDialect {}, self.text).ok_or_else(|| {
            NotSplit::because("it is not a plain SELECT from one table; name a column with partition_on")
        })
    }

    /// The tables that it reads, as they are written: with no other SELECT in it, its FROM names all.
    pub(super) fn tables(&self) -> Result<Vec<String>, NotSplit> {
        let found = tables(&DIALECT, &MsSqlDialect {}, self.text)
            .ok_or_else(|| NotSplit::because("the tables to lock are not told by one SELECT from tables"))?;
        let quoted = |path: Vec<String>| {
            path.iter().map(|part| DIALECT.quoted_name(part)).collect::<Vec<_>>().join(".")
        };
        Ok(found.into_iter().map(quoted).collect())
    }
}

fn refuse(tokens: &[Token<'_>], outer: &[Token<'_>]) -> Result<(), NotSplit> {
    let has = |word: &str| tokens.iter().any(|token| token.is_word(word));
    if outer.iter().any(|token| token.is_word("order")) {
        return Err(NotSplit::because("ORDER BY"));
    }
    if let Some((_, name)) = FORBIDDEN.iter().find(|(word, _)| has(word)) {
        return Err(NotSplit::because(*name));
    }
    if UNSURE.iter().any(|hint| has(hint)) {
        return Err(NotSplit::because("a hint that reads what others have not committed"));
    }
    // Parameters are question marks or names here; the server's variables are not the same in every session.
    if tokens.windows(2).any(|pair| pair[0].is_mark("@") && pair[1].is_mark("@")) {
        return Err(NotSplit::because("a variable of the server's"));
    }
    let is_known = |name: &str| PLAIN_CALLS.split_ascii_whitespace().any(|known| known == name);
    for at in 1..tokens.len() {
        let (name, is_call) = (&tokens[at - 1], tokens[at].is_mark("("));
        let is_method = at > 1 && tokens[at - 2].is_mark(".");
        if is_call && name.kind == Kind::Word && (is_method || !is_known(&name.text.to_ascii_lowercase())) {
            return Err(NotSplit::because(format!(
                "the function {}, which may have another value in each part",
                name.text
            )));
        }
    }
    Ok(())
}

/// Whether `text` is one SELECT that writes nothing, on no other server either.
pub(super) fn only_reads(text: &str) -> bool {
    const WRITING: &[&str] = &["into", "next", "openquery", "openrowset", "opendatasource"];
    let tokens = DIALECT.tokens(text);
    crate::dialect::is_query(text)
        && !tokens.iter().any(|token| WRITING.iter().any(|word| token.is_word(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        match Statement::of(&Query::new(text)) {
            Err(NotSplit::Reason(reason)) => reason,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn around(text: &str) -> String {
        let query = Query::new(text);
        Statement::of(&query).unwrap().around("*", "a < 1")
    }

    #[test]
    fn common_table_expressions_stay_before() {
        assert_eq!(
            around("SELECT a FROM t -- all\n;"),
            "SELECT * FROM (\nSELECT a FROM t\n) AS longshore_part WHERE a < 1"
        );
        assert_eq!(
            around("WITH c AS (SELECT 1 AS a) SELECT a FROM c UNION ALL SELECT 2"),
            "WITH c AS (SELECT 1 AS a) SELECT * FROM (\nSELECT a FROM c UNION ALL SELECT 2\n) AS longshore_part WHERE a < 1"
        );
    }

    #[test]
    fn what_two_runs_may_see_otherwise_is_not_split() {
        for (text, expected) in [
            ("SELECT TOP (5) a FROM t", "TOP"),
            ("SELECT a FROM t ORDER BY a", "ORDER BY"),
            ("SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS n FROM t", "a window function"),
            ("SELECT NEWID() AS a FROM t", "the function NEWID, which may have another value in each part"),
            ("SELECT dbo.f(a) AS a FROM t", "the function f, which may have another value in each part"),
            ("SELECT a FROM t WITH (NOLOCK)", "a hint that reads what others have not committed"),
            ("SELECT 1; SELECT 2", "it is not one SELECT"),
            ("EXEC p", "it is not one SELECT"),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
    }

    #[test]
    fn the_tables_to_lock_are_told() {
        let tables = |text: &str| Statement::of(&Query::new(text)).and_then(|it| it.tables());
        assert_eq!(
            tables("SELECT * FROM dbo.t AS a JOIN [u v] AS b ON a.x = b.x").unwrap(),
            ["\"dbo\".\"t\"", "\"u v\""]
        );
        assert!(tables("WITH c AS (SELECT 1 AS a) SELECT a FROM c").is_err());
        assert!(tables("SELECT a FROM (SELECT a FROM t) AS u").is_err());
    }

    #[test]
    fn a_select_alone_writes_nothing() {
        assert!(only_reads("SELECT a FROM t"));
        for text in [
            "SELECT a INTO u FROM t",
            "DELETE FROM t",
            "EXEC p",
            "SELECT NEXT VALUE FOR s",
            "SELECT 1; DELETE t",
        ] {
            assert!(!only_reads(text), "{text}");
        }
    }
}
