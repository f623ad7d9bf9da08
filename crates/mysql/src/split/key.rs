//! The column that parts a result, and the conditions that make the parts.
//!
//! The server compares, in the column's own collation. Each part takes what all parts before it have left, so that the
//! parts are disjoint and exhaustive whatever the order of the bounds is.

use longshore_core::{Error, Query, Result};
use sqlparser::ast::SetExpr;

use super::catalogue::{Catalogue, Relation, Table, learn_columns};
use super::halt::Halt;
use super::origin::Reach;
use super::provenance::{Provenance, called};
use super::refusal::{AGGREGATES, calls};
use super::statement::Statement;
use crate::dialect::{literal, quoted_name, tokens};
use crate::message::Definition;
use crate::session::MySqlSession;
use crate::types::{Class, Type};

/// What a wrapped query is called.
const PART: &str = "longshore_part";

/// More rows than there are: no condition passes a LIMIT.
const FENCE: &str = "LIMIT 18446744073709551615";

/// How a part's condition comes into the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The query is wrapped.
    Around,
    /// The query is wrapped, and no condition gets into it.
    Fenced,
    /// It becomes a condition of the query's own WHERE.
    Inside,
    /// The same, in a query that is wrapped: what the server writes down before it sends it has types of the plan's own.
    InsideGathered,
}

/// A column that parts a result.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// What conditions call it.
    column: String,
    pub(super) native: Type,
    way: Way,
    /// What the result calls it, and what all its columns are called.
    name: String,
    names: Vec<String>,
    /// The table whose primary key it starts.
    table: Option<String>,
}

impl Key {
    /// The column `name` of the result.
    pub(super) fn of_result(
        session: &mut MySqlSession,
        statement: &Statement,
        catalogue: &mut Catalogue,
        name: &str,
    ) -> Result<Self, Halt> {
        let columns = session.definitions(&statement.whole())?;
        let at = place(&columns, name).map_err(Halt::Failed)?;
        let native = Type::of(&columns[at]);
        learn(session, statement, catalogue)?;
        check_bits(statement, catalogue, &columns)?;
        let mut provenance = Provenance::new(catalogue, catalogue.database.as_deref());
        let origin = provenance.query(&statement.tree.root).at(at, columns.len(), name);
        if provenance.is_unsettled {
            return Err(Halt::serial(
                "a column that is neither grouped nor aggregated may have any value of its group",
            ));
        }
        let reach = origin.reach(native.class).map_err(Halt::serial)?;
        let is_fenced = reach == Reach::Fenced || provenance.is_delicate;
        let key = Self {
            column: format!("{PART}.{}", quoted_name(name)),
            native,
            way: if is_fenced { Way::Fenced } else { Way::Around },
            name: name.to_owned(),
            names: columns.iter().map(|column| column.name.clone()).collect(),
            table: None,
        };
        let inside = inside(statement, at, columns.len(), name).filter(|_| !is_fenced);
        let Some(column) = inside else { return Ok(key) };
        let way = if gathers(statement, catalogue) { Way::InsideGathered } else { Way::Inside };
        let inner = Self { column, way, ..key.clone() };
        Ok(if is_understood(session, statement, &inner)? { inner } else { key })
    }

    /// The first column of the primary key of the only table.
    pub(super) fn of_table(
        session: &mut MySqlSession,
        statement: &Statement,
        catalogue: &mut Catalogue,
    ) -> Result<Self, Halt> {
        learn(session, statement, catalogue)?;
        let only = statement.only_table().filter(|(_, select)| {
            let mut provenance = Provenance::new(catalogue, catalogue.database.as_deref());
            statement.shape.is_some() && !provenance.scope(select, String::new()).is_grouped()
        });
        let Some(((name, called), _)) = only else {
            return Err(Halt::serial("it is more than one SELECT from one table; give partition_on"));
        };
        let Some(Relation::Table(table)) = catalogue.find(&name, catalogue.database.as_deref()) else {
            return Err(Halt::serial("it reads no table but a view; give partition_on"));
        };
        let name = primary(session, table)?;
        let table = table.qualified();
        let columns = session.definitions(&Query::new(format!("SELECT {name} FROM {table}")))?;
        let Some(column) = columns.first() else {
            return Err(Halt::serial("the primary key is not a column"));
        };
        Ok(Self {
            column: format!("{}.{name}", quoted_name(&called)),
            native: Type::of(column),
            way: Way::Inside,
            name: String::new(),
            names: Vec::new(),
            table: Some(format!("(SELECT {name} AS k FROM {table}) AS {PART}")),
        })
    }

    /// Whether an index has its values in order.
    pub(super) fn is_indexed(&self) -> bool {
        self.table.is_some()
    }

    /// A value of the key in a condition; `None` where none can be written.
    pub(super) fn literal(&self, text: &str) -> Option<String> {
        match self.native.class {
            Class::Bytes => {
                let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex.then(|| format!("x'{text}'"))
            }
            // Zero dates are no literals in the server's stricter modes.
            Class::Date | Class::DateTime | Class::Instant => {
                (!text.starts_with("0000") && !text.contains("-00")).then(|| literal(text))
            }
            // An empty text is NULL in one of MariaDB's modes.
            Class::Text | Class::Json | Class::Uuid | Class::Time => {
                (!text.is_empty()).then(|| literal(text))
            }
            _ => {
                let is_number =
                    !text.is_empty() && text.bytes().all(|byte| b"+-.0123456789eE".contains(&byte));
                is_number.then(|| text.to_owned())
            }
        }
    }

    /// The conditions of the parts that `bounds` cut.
    pub(super) fn conditions(&self, bounds: &[String]) -> Vec<String> {
        let Self { column, .. } = self;
        let mut before: Vec<String> = Vec::with_capacity(bounds.len());
        let mut conditions = Vec::with_capacity(bounds.len() + 1);
        for bound in bounds {
            let here = format!("{column} < {bound}");
            conditions.push(before.iter().chain([&here]).cloned().collect::<Vec<_>>().join(" AND "));
            before.push(format!("{column} >= {bound}"));
        }
        // IS NULL takes zero dates, too, in columns that have no NULL.
        let last = if before.is_empty() { "TRUE".to_owned() } else { before.join(" AND ") };
        conditions.push(format!("({last}) OR {column} <=> NULL"));
        conditions
    }

    /// The query's rows that `condition` takes.
    pub(super) fn part(&self, statement: &Statement, condition: &str) -> Result<String, Halt> {
        let shape = statement.shape.as_ref();
        if let Some(shape) = shape.filter(|_| self.way == Way::Inside) {
            return Ok(shape.with(&statement.text, condition));
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let inner = statement.unordered(&names)?;
        let (text, order) = (inner.text, inner.order);
        if let Some(shape) = shape.filter(|_| self.way == Way::InsideGathered) {
            return Ok(format!("SELECT * FROM ({}\n) AS {PART}{order}", shape.with(text, condition)));
        }
        if self.way == Way::Fenced {
            let fenced = format!("SELECT * FROM ({text}\n) AS {PART} {FENCE}");
            return Ok(format!("SELECT * FROM ({fenced}) AS {PART} WHERE {condition}{order}"));
        }
        Ok(format!("SELECT * FROM ({text}\n) AS {PART} WHERE {condition}{order}"))
    }

    /// What is sampled, and what the key is called in it.
    pub(super) fn source(&self, statement: &Statement) -> (String, String) {
        let key = format!("{PART}.k");
        if let Some(table) = &self.table {
            return (table.clone(), key);
        }
        // The rows before they are grouped: each has its share of the work. Parameters behind them would be too many.
        let is_inside = matches!(self.way, Way::Inside | Way::InsideGathered) && !statement.has_parameters();
        let shape = statement.shape.as_ref().filter(|_| is_inside);
        if let Some(shape) = shape {
            let rows = shape.rows(&statement.text, &format!("{} AS k", self.column));
            return (format!("({rows}\n) AS {PART}"), key);
        }
        (format!("({}\n) AS {PART}", statement.text), format!("{PART}.{}", quoted_name(&self.name)))
    }
}
/// The place of the only column called `name`.
fn place(columns: &[Definition], name: &str) -> Result<usize> {
    let mut found = columns.iter().enumerate().filter(|(_, column)| column.name == name);
    let Some((at, column)) = found.next() else { return Err(unknown(columns, name)) };
    if found.next().is_some() {
        return Err(Error::interface(format!(
            "partition_on names {name:?}, and the query returns several of that name"
        ))
        .with_hint("give each column a name of its own with AS"));
    }
    let native = Type::of(column);
    if native.class == Class::Json || native.label == "geometry" {
        return Err(without_order(name, &native.label));
    }
    Ok(at)
}

/// Learns what the tables' columns are called, where the query puts rows together.
fn learn(session: &mut MySqlSession, statement: &Statement, catalogue: &mut Catalogue) -> Result<(), Halt> {
    if groups(statement, catalogue) { learn_columns(session, catalogue) } else { Ok(()) }
}

fn groups(statement: &Statement, catalogue: &Catalogue) -> bool {
    let views = catalogue.views.iter().map(|view| view.tree.to_string());
    let texts = views.chain([statement.tree.root.to_string()]);
    let is_grouping = |text: String| {
        let found = tokens(&text, false);
        found.iter().any(|token| token.is_word("group"))
            || calls(&found).iter().any(|call| AGGREGATES.contains(&call.as_str()))
    };
    texts.into_iter().any(is_grouping)
}

/// Whether the server gathers the query's rows, to group them or to put them in order, before it sends any.
fn gathers(statement: &Statement, catalogue: &Catalogue) -> bool {
    let tree = &statement.tree.root;
    let SetExpr::Select(select) = tree.body.as_ref() else { return false };
    let order = tree.order_by.as_ref().map(ToString::to_string).unwrap_or_default();
    let is_ordered = !order.is_empty();
    let scope = Provenance::new(catalogue, catalogue.database.as_deref()).scope(select, order);
    select.distinct.is_some() || scope.is_grouped() || is_ordered && scope.sources.len() > 1
}

/// Refuses bits of derived tables in a query that gathers them: some plans send them as integers.
fn check_bits(statement: &Statement, catalogue: &Catalogue, columns: &[Definition]) -> Result<(), Halt> {
    let has_bits = columns.iter().any(|column| Type::of(column).class == Class::Bit);
    let text = statement.tree.root.to_string();
    let found = tokens(&text, false);
    let has = |word: &str| found.iter().filter(|token| token.is_word(word)).count();
    let is_derived = has("select") > 1 || !catalogue.views.is_empty();
    let is_gathered = groups(statement, catalogue) || has("distinct") > 0 || has("order") > 0;
    if has_bits && is_derived && is_gathered {
        return Err(Halt::serial("a bit column of a derived table, whose type depends on the plan"));
    }
    Ok(())
}

/// What the query's own WHERE would call the key.
fn inside(statement: &Statement, at: usize, count: usize, name: &str) -> Option<String> {
    statement.shape.as_ref()?;
    match statement.tree.root.body.as_ref() {
        SetExpr::Select(select) => called(select, at, count, name),
        _ => None,
    }
}

/// Whether the server understands the key's conditions. Of a name that several tables have, it does not.
fn is_understood(session: &mut MySqlSession, statement: &Statement, key: &Key) -> Result<bool, Halt> {
    let part = key.part(statement, &format!("{} IS NULL", key.column))?;
    match session.definitions(&statement.query(part)) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlstate().is_some() && session.connection.stop() => Ok(false),
        Err(error) => Err(Halt::Failed(error)),
    }
}

/// The first column of the table's primary key, as a name.
fn primary(session: &mut MySqlSession, table: &Table) -> Result<String, Halt> {
    let found = session.connection.rows(&format!(
        "SELECT column_name FROM information_schema.statistics WHERE {} AND index_name = 'PRIMARY' \
         AND seq_in_index = 1",
        table.condition()
    ))?;
    match found.first().and_then(|row| row.first()?.as_deref()) {
        Some(name) => Ok(quoted_name(name)),
        None => Err(Halt::serial("the table has no primary key; give partition_on")),
    }
}

fn unknown(columns: &[Definition], name: &str) -> Error {
    let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    Error::interface(format!("partition_on names {name:?}, which the query does not return"))
        .with_hint(format!("it returns {}", known.join(", ")))
}

fn without_order(name: &str, native: &str) -> Error {
    Error::interface(format!("partition_on names {name:?}, whose type {native} has no order"))
        .with_hint("give a column of numbers, dates, times, text or bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Width;

    fn key(class: Class) -> Key {
        let native = Type { class, width: Width::Counted, label: "made".into(), not_null: false };
        Key { column: "k".into(), native, way: Way::Around, name: "k".into(), names: Vec::new(), table: None }
    }

    #[test]
    fn each_part_takes_what_is_left() {
        let conditions = key(Class::Int64).conditions(&["5".into(), "9".into()]);
        assert_eq!(conditions, ["k < 5", "k >= 5 AND k < 9", "(k >= 5 AND k >= 9) OR k <=> NULL"]);
        assert_eq!(key(Class::Int64).conditions(&[]), ["(TRUE) OR k <=> NULL"]);
    }

    #[test]
    fn values_are_literals_or_left_out() {
        assert_eq!(key(Class::Bytes).literal("00FF"), Some("x'00FF'".into()));
        assert_eq!(key(Class::Int64).literal("1 OR 1"), None);
        assert_eq!(key(Class::Date).literal("0000-00-00"), None);
        assert_eq!(key(Class::Text).literal("it's"), Some("_utf8mb4 x'69742773'".into()));
        assert_eq!(key(Class::Text).literal(""), None);
    }
}
