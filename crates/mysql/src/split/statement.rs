//! A query that may be split: what its text says against it, its tables, and how a condition is added to it.

use longshore_core::{Params, Query, Value};
use sqlparser::ast::{
    GroupByExpr, ObjectName, Query as Parsed, Select, SetExpr, SetOperator, SetQuantifier, Statement as Tree,
    TableFactor, TableWithJoins,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use super::halt::Halt;
use crate::encode;
use crate::placeholders::positional;
use crate::tokens::{Kind, Token, quoted_name, tokens};
use crate::zone::Zone;

/// Functions, and words that call one, of which two parts would have two values.
const VOLATILE: &[&str] = &[
    "rand",
    "uuid",
    "uuid_short",
    "uuid_v4",
    "uuid_v7",
    "sys_guid",
    "random_bytes",
    "now",
    "sysdate",
    "curdate",
    "curtime",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "unix_timestamp",
    "connection_id",
    "last_insert_id",
    "row_count",
    "found_rows",
    "sleep",
    "benchmark",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
    "master_pos_wait",
    "master_gtid_wait",
    "nextval",
    "lastval",
    "setval",
    "load_file",
    "ps_current_thread_id",
];

/// Words that lock, write, or change what the statement means.
const FORBIDDEN: &[(&str, &str)] = &[
    ("into", "INTO"),
    ("procedure", "PROCEDURE"),
    ("json_table", "JSON_TABLE"),
    ("sequence", "a sequence"),
    ("next", "a sequence"),
    ("previous", "a sequence"),
    ("handler", "HANDLER"),
];

/// Words of queries whose parts, each by itself, would have other rows.
const WHOLE_ONLY: &[(&str, &str)] = &[
    ("limit", "LIMIT"),
    ("offset", "OFFSET"),
    ("fetch", "FETCH"),
    ("over", "a window function"),
    ("rownum", "ROWNUM()"),
];

/// One query.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its text, with `?` for each parameter and without a semicolon.
    pub(super) text: String,
    values: Vec<Value>,
    /// The tables that it names: database, if it is named, and table.
    pub(super) tables: Vec<(Option<String>, String)>,
    /// What its calls are called, in lower case.
    pub(super) calls: Vec<String>,
    /// Where it is one plain SELECT from one table without anything behind its WHERE: how the table is called in it, and
    /// where the WHERE's condition begins, if there is one.
    pub(super) simple: Option<(String, Option<usize>)>,
}

impl Statement {
    /// The statement of a query; `is_divided` where it is to become several.
    pub(super) fn of(query: &Query, escapes: bool, is_divided: bool) -> Result<Self, Halt> {
        let statement = positional(&query.text, &query.params, escapes)?;
        let found = tokens(&statement.text, escapes);
        refuse(&found, is_divided)?;
        let last = found.iter().rfind(|token| !token.is_mark(";"));
        let text = statement.text[..last.map_or(0, Token::end)].to_owned();
        let found = tokens(&text, escapes);
        let tree = parsed(&text)?;
        let mut walk = Walk::default();
        walk.query(&tree);
        if walk.is_strange {
            return Err(Halt::serial("a form of FROM that is not looked into"));
        }
        if is_divided && let Some(why) = walk.merged {
            return Err(Halt::serial(why));
        }
        let selects = found.iter().filter(|token| token.is_word("select")).count();
        if selects != walk.selects {
            return Err(Halt::serial("a subquery outside of FROM"));
        }
        let simple = simple(&tree, &found);
        let values = statement.values.into_iter().cloned().collect();
        let calls = calls(&found);
        Ok(Self { text, values, tables: walk.tables(), calls, simple })
    }

    /// A query of `text` with this statement's parameters.
    pub(super) fn query(&self, text: String) -> Query {
        let params =
            if self.values.is_empty() { Params::None } else { Params::Positional(self.values.clone()) };
        Query { text, params }
    }

    /// Its parameters, encoded; nothing where there are none.
    pub(super) fn bound(&self, zone: Zone) -> Result<Vec<u8>, Halt> {
        let values: Vec<&Value> = self.values.iter().collect();
        Ok(encode::parameters(&values, zone)?)
    }
}

fn refuse(found: &[Token<'_>], is_divided: bool) -> Result<(), Halt> {
    let first = found.iter().find(|token| !token.is_mark("("));
    if !first.is_some_and(|first| first.is_word("select") || first.is_word("with")) {
        return Err(Halt::serial("it is no SELECT"));
    }
    let locks = |(at, token): (usize, &Token<'_>)| {
        let next = found.get(at + 1);
        let is = |word: &str| next.is_some_and(|next| next.is_word(word));
        token.is_word("for") && (is("update") || is("share")) || token.is_word("lock") && is("in")
    };
    if found.iter().enumerate().any(locks) {
        return Err(Halt::serial("FOR UPDATE or FOR SHARE"));
    }
    for (at, token) in found.iter().enumerate() {
        // Behind a point stands a name.
        let is_name = at > 0 && found[at - 1].is_mark(".");
        match token.kind {
            Kind::Executed => return Err(Halt::serial("a comment that the server reads")),
            Kind::Mark if token.text == "@" => return Err(Halt::serial("a variable")),
            Kind::Word if !is_name => check_word(token, is_divided)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_word(token: &Token<'_>, is_divided: bool) -> Result<(), Halt> {
    let word = token.text.to_ascii_lowercase();
    if VOLATILE.contains(&word.as_str()) {
        return Err(Halt::serial(format!("{} differs from part to part", word.to_ascii_uppercase())));
    }
    let reasons = FORBIDDEN.iter().chain(WHOLE_ONLY.iter().filter(|_| is_divided));
    match reasons.into_iter().find(|(known, _)| *known == word) {
        Some((_, reason)) => Err(Halt::serial(*reason)),
        None => Ok(()),
    }
}

fn parsed(text: &str) -> Result<Box<Parsed>, Halt> {
    match Parser::parse_sql(&MySqlDialect {}, text) {
        Ok(mut trees) if trees.len() == 1 => match trees.remove(0) {
            Tree::Query(query) => Ok(query),
            _ => Err(Halt::serial("it is no SELECT")),
        },
        _ => Err(Halt::serial("its text cannot be taken apart")),
    }
}

/// Every word before a parenthesis.
fn calls(found: &[Token<'_>]) -> Vec<String> {
    let pairs = found.windows(2).filter(|pair| pair[1].is_mark("("));
    let names = pairs.filter_map(|pair| match pair[0].kind {
        Kind::Word => Some(pair[0].text.to_ascii_lowercase()),
        Kind::Quoted => Some(unquoted(pair[0].text).to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}

fn unquoted(name: &str) -> String {
    name.trim_matches('`').replace("``", "`")
}

/// What a walk over a query's FROMs finds.
#[derive(Default)]
struct Walk {
    names: Vec<(Option<String>, String)>,
    expressions: Vec<String>,
    selects: usize,
    /// Rows are put together: a part by itself would put others together.
    merged: Option<&'static str>,
    is_strange: bool,
}

impl Walk {
    fn query(&mut self, query: &Parsed) {
        if let Some(with) = &query.with {
            // A CTE that names itself has rows of any number of rounds: the same in each part, all the same.
            for table in &with.cte_tables {
                self.expressions.push(table.alias.name.value.to_ascii_lowercase());
                self.query(&table.query);
            }
        }
        self.body(&query.body);
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let keeps_all = *op == SetOperator::Union && *set_quantifier == SetQuantifier::All;
                if !keeps_all {
                    self.merged = Some("a set operation other than UNION ALL");
                }
                self.body(left);
                self.body(right);
            }
            _ => self.is_strange = true,
        }
    }

    fn select(&mut self, select: &Select) {
        self.selects += 1;
        let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
        if !ungrouped || select.having.is_some() {
            self.merged = Some("GROUP BY: each part would group all rows again");
        }
        if select.distinct.is_some() {
            self.merged = Some("DISTINCT: each part would compare all rows again");
        }
        let projection = select.projection.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        if has_aggregate(&projection) {
            self.merged = Some("an aggregate: each part would compute it again");
        }
        select.from.iter().for_each(|from| self.from(from));
    }

    fn from(&mut self, from: &TableWithJoins) {
        self.factor(&from.relation);
        from.joins.iter().for_each(|join| self.factor(&join.relation));
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, args: None, .. } => match names(name) {
                Some(name) => self.names.push(name),
                None => self.is_strange = true,
            },
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.from(table_with_joins),
            _ => self.is_strange = true,
        }
    }

    /// The names that no CTE has.
    fn tables(self) -> Vec<(Option<String>, String)> {
        let Self { names, expressions, .. } = self;
        let is_table = |(schema, name): &(Option<String>, String)| {
            schema.is_some() || !expressions.contains(&name.to_ascii_lowercase())
        };
        names.into_iter().filter(is_table).collect()
    }
}

/// Aggregates of MySQL and MariaDB. Those of the server's own plugins are functions that somebody has made.
const AGGREGATES: &[&str] = &[
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "any_value",
    "st_collect",
];

fn has_aggregate(text: &str) -> bool {
    calls(&tokens(text, true)).iter().any(|name| AGGREGATES.contains(&name.as_str()))
}

fn names(name: &ObjectName) -> Option<(Option<String>, String)> {
    let parts: Vec<String> =
        name.0.iter().map(|part| part.as_ident().map(|name| name.value.clone())).collect::<Option<_>>()?;
    match parts.as_slice() {
        [table] => Some((None, table.clone())),
        [schema, table] => Some((Some(schema.clone()), table.clone())),
        _ => None,
    }
}

/// See [`Statement::simple`].
fn simple(tree: &Parsed, found: &[Token<'_>]) -> Option<(String, Option<usize>)> {
    let SetExpr::Select(select) = tree.body.as_ref() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, partitions, .. } = &from.relation else { return None };
    let is_plain =
        tree.with.is_none() && tree.order_by.is_none() && from.joins.is_empty() && partitions.is_empty();
    let called = match alias {
        Some(alias) => alias.name.value.clone(),
        None => name.0.last()?.as_ident()?.value.clone(),
    };
    // Nothing of another clause: what follows WHERE is its condition, to the end.
    let mut depth = 0_usize;
    let mut wheres = Vec::new();
    for token in found {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            _ if token.is_word("where") => wheres.push(token.end()),
            _ if ["group", "having", "order", "window", "union", "use", "force", "ignore"]
                .iter()
                .any(|word| token.is_word(word)) =>
            {
                return None;
            }
            _ => {}
        }
    }
    let condition = match (wheres.as_slice(), &select.selection) {
        ([], None) => None,
        ([at], Some(_)) => Some(*at),
        _ => return None,
    };
    let starts_plain = found.first().is_some_and(|first| first.is_word("select"));
    (is_plain && starts_plain && depth == 0).then(|| (quoted_name(&called), condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Statement, Halt> {
        Statement::of(&Query::new(text), true, true)
    }

    #[test]
    fn what_differs_from_part_to_part_is_refused() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "SELECT rand() FROM t",
            "SELECT a FROM t LIMIT 5",
            "SELECT current_date FROM t",
            "SELECT @a FROM t",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT /*!40001 SQL_NO_CACHE */ a FROM t",
            "SELECT count(*) FROM t",
            "SELECT `count`(a) FROM t",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t GROUP BY a",
            "SELECT a FROM t UNION SELECT a FROM u",
            "SELECT a, row_number() OVER () FROM t",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT a FROM t; SELECT b FROM t",
            "SELECT a INTO @x FROM t",
            "not sql",
            "",
        ] {
            assert!(matches!(of(text), Err(Halt::Serial(_))), "{text}");
        }
        for text in
            ["SELECT a, t.now FROM t", "SELECT a FROM t UNION ALL SELECT a FROM u", "SELECT `limit` FROM t"]
        {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn simple_selects_have_a_place_for_a_condition() {
        let simple = |text: &str| {
            of(text).unwrap().simple.map(|(name, at)| (name, at.map(|at| text[at..].to_owned())))
        };
        assert_eq!(simple("SELECT a FROM t"), Some(("`t`".into(), None)));
        assert_eq!(simple("SELECT a FROM s.t AS x;"), Some(("`x`".into(), None)));
        assert_eq!(
            simple("SELECT a FROM t WHERE a = 1 OR (b)"),
            Some(("`t`".into(), Some(" a = 1 OR (b)".into())))
        );
        for other in
            ["SELECT a FROM t ORDER BY a", "SELECT a FROM t JOIN u ON 1", "(SELECT a FROM t)", "SELECT 1"]
        {
            assert_eq!(simple(other), None, "{other}");
        }
    }

    #[test]
    fn tables_are_those_that_no_cte_is() {
        let tables =
            of("WITH c AS (SELECT * FROM s.t) SELECT * FROM c JOIN (SELECT * FROM u) d ON 1").unwrap().tables;
        assert_eq!(tables, [(Some("s".to_owned()), "t".to_owned()), (None, "u".to_owned())]);
    }
}
