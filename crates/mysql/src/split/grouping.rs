//! What a SELECT groups its rows by, and what its columns are then.

use longshore_source::sql::{Kind, Token};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, JoinConstraint, Select, SelectItem, TableFactor, TableWithJoins, Value,
};

use super::origin::{Care, Columns, Origin};
use super::refusal::{AGGREGATES, calls, unquoted};
use super::walk::{closing, constraint};
use crate::dialect::tokens;

/// Aggregates that are the same whatever the order of a group's rows is, and whichever of equal values they meet.
const STEADY: &[&str] = &["count", "bit_and", "bit_or", "bit_xor", "min", "max"];

/// A SELECT, and the columns that can be seen in it.
pub(super) struct Scope<'a> {
    pub(super) select: &'a Select,
    /// Each table's name and columns.
    pub(super) sources: Vec<(String, Columns)>,
    /// Its ORDER BY, which may have an aggregate.
    pub(super) order: String,
}

impl Scope<'_> {
    /// The SELECT's columns.
    pub(super) fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        for (at, item) in self.select.projection.iter().enumerate() {
            match item {
                SelectItem::UnnamedExpr(expr) => columns.push(last_name(expr), self.item(at, expr, None)),
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push(Some(&alias.value), self.item(at, expr, Some(&alias.value)));
                }
                _ => self.sources.iter().for_each(|(_, source)| columns.star(self.starred(source))),
            }
        }
        match &self.select.distinct {
            None | Some(Distinct::All) => columns,
            Some(_) => columns.map(&Origin::grouped),
        }
    }

    fn starred(&self, source: &Columns) -> Columns {
        if self.is_grouped() { Columns::any(Origin::Uncertain(NOT_GROUPED)) } else { source.clone() }
    }

    /// Whether rows are put together, by whatever.
    pub(super) fn is_grouped(&self) -> bool {
        self.keys().is_none_or(|keys| !keys.is_empty())
            || self.select.having.is_some()
            || self.select.projection.iter().any(|item| self.has_aggregate(&item.to_string()))
            || self.has_aggregate(&self.order)
    }

    /// Whether every value of a group is settled by what the rows are grouped by. Where `ONLY_FULL_GROUP_BY` is off, the
    /// server takes other columns from any row of the group.
    pub(super) fn is_settled(&self, is_checked: bool) -> bool {
        let keys = self.keys().unwrap_or_default();
        if keys.is_empty() || !self.is_grouped() {
            return true;
        }
        let items = self.select.projection.iter().enumerate();
        let mut others = items.filter(|(at, item)| {
            let alias = if let SelectItem::ExprWithAlias { alias, .. } = item {
                Some(alias.value.as_str())
            } else {
                None
            };
            !named(item).is_some_and(|expr| keys.iter().any(|key| self.is_key(key, *at, expr, alias)))
        });
        let having = self.select.having.as_ref().map(ToString::to_string).unwrap_or_default();
        let settled = |expr: &Expr| self.is_settled_text(&expr.to_string(), keys, is_checked);
        others.all(|(_, item)| named(item).map_or(is_checked, settled))
            && self.is_settled_text(&having, keys, is_checked)
    }

    fn is_settled_text(&self, text: &str, keys: &[Expr], is_checked: bool) -> bool {
        let found = tokens(text, false);
        let called = calls(&found);
        if called.iter().any(|call| call == "any_value") {
            return false;
        }
        if is_checked {
            return true;
        }
        let names: Vec<&str> = keys.iter().filter_map(last_name).collect();
        let mut within = 0;
        found.iter().enumerate().all(|(at, token)| {
            let name = unquoted(token.text);
            let next = found.get(at + 1);
            if next.is_some_and(|next| next.is_mark("("))
                && AGGREGATES.contains(&name.to_ascii_lowercase().as_str())
            {
                within = within.max(closing(&found, at + 1).unwrap_or(0));
            }
            let is_name = matches!(token.kind, Kind::Word | Kind::Quoted);
            let is_key = || names.iter().any(|key| key.eq_ignore_ascii_case(&name));
            // A word that no table has as a column is one of the language's, a function's, or a table's.
            let is_column = || self.sources.iter().any(|(_, columns)| !columns.lacks(&name));
            at < within || !is_name || is_key() || !is_column()
        })
    }

    /// Whether an aggregate of this SELECT is in the expressions of `text`: one in a subquery is if it has columns of this.
    fn has_aggregate(&self, text: &str) -> bool {
        let found = tokens(text, false);
        let mut within = 0;
        for (at, pair) in found.windows(2).enumerate() {
            if pair[0].is_mark("(") && (pair[1].is_word("select") || pair[1].is_word("with")) {
                within = within.max(closing(&found, at).unwrap_or(found.len()));
            }
            let is_call = pair[1].is_mark("(")
                && AGGREGATES.contains(&unquoted(pair[0].text).to_ascii_lowercase().as_str());
            if is_call
                && (at >= within || self.has_own(&found[at + 1..=closing(&found, at + 1).unwrap_or(at + 1)]))
            {
                return true;
            }
        }
        false
    }

    /// Whether a name of `found` may be that of a column that can be seen here.
    fn has_own(&self, found: &[Token<'_>]) -> bool {
        let is_point =
            |at: Option<usize>| at.and_then(|at| found.get(at)).is_some_and(|token| token.is_mark("."));
        found.iter().enumerate().any(|(at, token)| {
            let name = unquoted(token.text);
            let is_name = matches!(token.kind, Kind::Word | Kind::Quoted) && !is_point(at.checked_sub(1));
            let is_table = is_point(Some(at + 1));
            let is_own = |(table, columns): &(String, Columns)| {
                if is_table { table.eq_ignore_ascii_case(&name) } else { !columns.lacks(&name) }
            };
            is_name && self.sources.iter().any(is_own)
        })
    }

    /// What the rows are grouped by; `None` where there is more to it.
    fn keys(&self) -> Option<&[Expr]> {
        match &self.select.group_by {
            GroupByExpr::Expressions(keys, with) if with.is_empty() => Some(keys),
            _ => None,
        }
    }

    /// The origin of the column at this place.
    fn item(&self, at: usize, expr: &Expr, alias: Option<&str>) -> Origin {
        if !self.is_grouped() {
            return self.origin(expr);
        }
        let Some(keys) = self.keys() else { return Origin::Uncertain("WITH ROLLUP") };
        if keys.is_empty() {
            return Origin::Uncertain("an aggregate of all rows: there is one row");
        }
        if keys.iter().any(|key| self.is_key(key, at, expr, alias)) {
            return self.origin(expr).grouped();
        }
        self.aggregate(expr)
    }

    /// Whether `key` of the GROUP BY is the column at this place.
    fn is_key(&self, key: &Expr, at: usize, expr: &Expr, alias: Option<&str>) -> bool {
        if let Expr::Value(value) = key {
            let has_stars = self.select.projection[..at].iter().any(|item| named(item).is_none());
            let place = (at + 1).to_string();
            return !has_stars && matches!(&value.value, Value::Number(number, _) if *number == place);
        }
        if bare(key) == bare(expr) {
            return true;
        }
        let Some(name) = last_name(key) else { return false };
        if let Some((whole, other)) = path(key).zip(path(expr)) {
            // One of them is without its table's name, and no USING has made it another column.
            let is_short = whole.len() == 1 || other.len() == 1;
            if is_short && !self.merges_columns() && Some(name) == last_name(expr) {
                return true;
            }
        }
        // A column of a table goes before an alias.
        let is_alias = alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name)) && is_single(key);
        is_alias && self.sources.iter().all(|(_, columns)| columns.lacks(name))
    }

    fn merges_columns(&self) -> bool {
        fn merges(from: &TableWithJoins) -> bool {
            let nested = |factor: &TableFactor| match factor {
                TableFactor::NestedJoin { table_with_joins, .. } => merges(table_with_joins),
                _ => false,
            };
            nested(&from.relation)
                || from.joins.iter().any(|join| {
                    let on = constraint(&join.join_operator);
                    !matches!(on, Some(JoinConstraint::On(_) | JoinConstraint::None))
                        || nested(&join.relation)
                })
        }
        self.select.from.iter().any(merges)
    }

    /// What an aggregate of whole groups is.
    fn aggregate(&self, expr: &Expr) -> Origin {
        let Expr::Function(function) = expr else { return Origin::Uncertain(NOT_GROUPED) };
        let name = unquoted(&function.name.to_string()).to_ascii_lowercase();
        let arguments = self.computed(&function.args.to_string());
        match name.as_str() {
            _ if arguments != Origin::Computed => arguments,
            "sum" => Origin::Sum,
            name if STEADY.contains(&name) => Origin::Grouped(Care::OfNumbers),
            name if AGGREGATES.contains(&name) => {
                Origin::Uncertain("partition_on is an aggregate that may depend on the order of rows")
            }
            _ => Origin::Uncertain(NOT_GROUPED),
        }
    }

    /// The origin of what is no aggregate.
    fn origin(&self, expr: &Expr) -> Origin {
        match path(expr).as_deref() {
            Some([name]) => found(self.sources.iter(), name),
            Some([.., table, name]) => {
                found(self.sources.iter().filter(|(known, _)| known.eq_ignore_ascii_case(table)), name)
            }
            _ => self.computed(&expr.to_string()),
        }
    }

    /// The origin of what is computed by the expression of this text.
    fn computed(&self, text: &str) -> Origin {
        let found = tokens(text, false);
        if found.iter().any(|token| token.is_word("select")) {
            return Origin::Uncertain("partition_on is computed by a subquery");
        }
        let names = found.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        let sources =
            |name: String| self.sources.iter().filter_map(move |(_, source)| source.find(&name)).max();
        let worst = names.filter_map(|token| sources(unquoted(token.text))).max();
        worst.unwrap_or(Origin::Computed).computed()
    }
}

fn found<'a>(sources: impl Iterator<Item = &'a (String, Columns)>, name: &str) -> Origin {
    let found = sources.filter_map(|(_, columns)| columns.find(name)).max();
    found.unwrap_or(Origin::Uncertain("partition_on is not a column that can be followed to its table"))
}

const NOT_GROUPED: &str = "partition_on is not among what the query groups by";

/// The expression of an item that is no asterisk.
pub(super) fn named(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The names of a column: its own, perhaps behind its table's and its database's.
pub(super) fn path(expr: &Expr) -> Option<Vec<&str>> {
    match expr {
        Expr::Identifier(name) => Some(vec![&name.value]),
        Expr::CompoundIdentifier(names) => Some(names.iter().map(|name| name.value.as_str()).collect()),
        _ => None,
    }
}

fn last_name(expr: &Expr) -> Option<&str> {
    path(expr).and_then(|path| path.last().copied())
}

fn is_single(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_))
}

/// An expression in one form, whether or not its names are quoted.
fn bare(expr: &Expr) -> Vec<String> {
    let text = expr.to_string();
    let plain = |token: &Token<'_>| match token.kind {
        Kind::Quoted => unquoted(token.text),
        _ => token.text.to_owned(),
    };
    tokens(&text, false).iter().map(plain).collect()
}
