//! Follows the columns of a query to the tables that they come from, through CTEs, derived tables and views.

use sqlparser::ast::{
    Ident, ObjectName, Query as Parsed, Select, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor,
    TableWithJoins, With,
};

use super::catalogue::{Catalogue, Relation};
use super::grouping::{Scope, named, path};
use super::origin::{Columns, Origin};
use super::walk::name_of;
use crate::dialect::quoted_name;

/// A walk through queries.
pub(super) struct Provenance<'a> {
    catalogue: &'a Catalogue,
    /// The database of names that have none.
    schema: Option<&'a str>,
    /// The CTEs that can be seen.
    expressions: Vec<(String, Columns)>,
    /// Whether a condition on one table may be handed to another, whose columns need care.
    pub(super) is_delicate: bool,
    /// Whether a group has values that any of its rows may give.
    pub(super) is_unsettled: bool,
}

impl<'a> Provenance<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, schema: Option<&'a str>) -> Self {
        Self { catalogue, schema, expressions: Vec::new(), is_delicate: false, is_unsettled: false }
    }

    /// The columns of `query`.
    pub(super) fn query(&mut self, query: &Parsed) -> Columns {
        let outer = self.expressions.len();
        if let Some(with) = &query.with {
            self.with(with);
        }
        let order = query.order_by.as_ref().map(ToString::to_string).unwrap_or_default();
        let columns = self.body(&query.body, order);
        self.expressions.truncate(outer);
        columns
    }

    fn with(&mut self, with: &With) {
        for table in &with.cte_tables {
            let name = table.alias.name.value.clone();
            let outer = self.expressions.len();
            if with.recursive {
                self.expressions.push((name.clone(), Columns::any(Origin::Computed)));
            }
            let mut columns = self.query(&table.query);
            self.expressions.truncate(outer);
            if with.recursive && compares_rounds(&table.query.body) {
                columns = columns.map(&|_| Origin::Uncertain("a recursive CTE that compares its rows"));
            }
            self.expressions.push((name, columns.renamed(&names_of(&table.alias))));
        }
    }

    fn body(&mut self, body: &SetExpr, order: String) -> Columns {
        match body {
            SetExpr::Select(select) => {
                let scope = self.scope(select, order);
                self.is_unsettled |= !scope.is_settled(self.catalogue.has_full_groups);
                scope.columns()
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                let left = self.body(left, String::new());
                left.united(&self.body(right, String::new()))
            }
            _ => Columns::any(Origin::Uncertain("a form of query that is not looked into")),
        }
    }

    /// A SELECT with the tables of its FROM.
    pub(super) fn scope<'b>(&mut self, select: &'b Select, order: String) -> Scope<'b> {
        let mut sources = Vec::new();
        select.from.iter().for_each(|from| self.from(from, &mut sources));
        // Of columns that are equal, what is true of one is true of the other.
        self.is_delicate |= sources.len() > 1 && sources.iter().any(|(_, columns)| columns.need_care());
        Scope { select, sources, order }
    }

    fn from(&mut self, from: &TableWithJoins, sources: &mut Vec<(String, Columns)>) {
        self.factor(&from.relation, sources);
        from.joins.iter().for_each(|join| self.factor(&join.relation, sources));
    }

    fn factor(&mut self, factor: &TableFactor, sources: &mut Vec<(String, Columns)>) {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let columns = self.table(name);
                let called = alias.as_ref().map_or_else(|| last(name), |alias| alias.name.value.clone());
                sources.push((called, columns));
            }
            TableFactor::Derived { subquery, alias: Some(alias), .. } => {
                let columns = self.query(subquery).renamed(&names_of(alias));
                sources.push((alias.name.value.clone(), columns));
            }
            TableFactor::NestedJoin { table_with_joins, .. } => self.from(table_with_joins, sources),
            _ => {}
        }
    }

    fn table(&mut self, name: &ObjectName) -> Columns {
        let unknown = Columns::any(Origin::Uncertain("partition_on comes from a table that is not known"));
        let Some(name) = name_of(name) else { return unknown };
        if name.0.is_none()
            && let Some((_, columns)) = self.expressions.iter().rfind(|(known, _)| *known == name.1)
        {
            return columns.clone();
        }
        match self.catalogue.find(&name, self.schema) {
            Some(Relation::Table(table)) => match table.columns.as_slice() {
                [] => Columns::any(Origin::Column),
                columns => Columns::of_table(columns),
            },
            Some(Relation::View(view)) => {
                let mut inner = Provenance::new(self.catalogue, Some(&view.schema));
                let columns = inner.query(&view.tree).renamed(&view.columns);
                self.is_delicate |= inner.is_delicate;
                self.is_unsettled |= inner.is_unsettled;
                columns
            }
            None => unknown,
        }
    }
}

fn names_of(alias: &TableAlias) -> Vec<String> {
    alias.columns.iter().map(|column| column.name.value.clone()).collect()
}

fn last(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.clone()).unwrap_or_default()
}

/// Whether a set operation keeps the rows of both its sides as they are.
fn keeps_all(body: &SetExpr) -> bool {
    matches!(body, SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: SetQuantifier::All, .. })
}

fn compares_rounds(body: &SetExpr) -> bool {
    matches!(body, SetExpr::SetOperation { .. }) && !keeps_all(body)
}

/// What a WHERE of `select` calls its column `name`, the one at this place of so many; `None` where it cannot be said.
pub(super) fn called(select: &Select, at: usize, count: usize, name: &str) -> Option<String> {
    let items: Option<Vec<_>> = select.projection.iter().map(named).collect();
    if let Some(items) = items {
        let path = path(items.get(at).filter(|_| items.len() == count)?)?;
        return Some(path.into_iter().map(quoted_name).collect::<Vec<_>>().join("."));
    }
    let is_one = matches!(select.from.as_slice(), [from] if from.joins.is_empty()
        && !matches!(from.relation, TableFactor::NestedJoin { .. }));
    let mut others = select.projection.iter().filter_map(output_name);
    // Of several tables the server may mean another column, which divides rows as well, but not groups.
    let is_clear =
        (is_one || select.distinct.is_none()) && !others.any(|other| other.value.eq_ignore_ascii_case(name));
    is_clear.then(|| quoted_name(name))
}

/// The name that an item has.
fn output_name(item: &sqlparser::ast::SelectItem) -> Option<&Ident> {
    use sqlparser::ast::{Expr, SelectItem};
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last(),
        _ => None,
    }
}
