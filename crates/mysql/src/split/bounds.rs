//! The column that parts a result, the values at which it is cut, and the conditions that make the parts.
//!
//! The server compares, in the column's own collation. Each part takes what all parts before it have left, so that the
//! parts are disjoint and exhaustive whatever the order of the bounds is.

use longshore_cells::calendar::timestamp_text;
use longshore_core::{Error, Query, Result, Value};

use super::SMALL;
use super::halt::Halt;
use super::statement::Statement;
use super::tables::Table;
use crate::message::Definition;
use crate::session::MySqlSession;
use crate::tokens::{literal, quoted_name};
use crate::types::{Class, Type};

/// What a wrapped query is called.
const PART: &str = "longshore_part";

/// Values that a sample has, about.
const SAMPLE: u64 = 10_000;

/// How a part's condition comes into the query.
#[derive(Debug)]
enum Way {
    /// The query is wrapped.
    Around,
    /// It gets a WHERE, or another condition in the one that begins here; the table is this one.
    Inside(Option<usize>, String),
}

/// A column that parts a result.
#[derive(Debug)]
pub(super) struct Key {
    /// What conditions call it.
    column: String,
    native: Type,
    way: Way,
}

impl Key {
    /// The column `name` of the result.
    pub(super) fn of_result(
        session: &mut MySqlSession,
        statement: &Statement,
        name: &str,
    ) -> Result<Self, Halt> {
        let columns = session.definitions(&statement.query(statement.text.clone()))?;
        let mut found = columns.iter().filter(|column| column.name == name);
        let Some(column) = found.next() else { return Err(Halt::Failed(unknown(&columns, name))) };
        if found.next().is_some() {
            return Err(Halt::Failed(
                Error::interface(format!(
                    "partition_on names {name:?}, and the query returns several of that name"
                ))
                .with_hint("give each column a name of its own with AS"),
            ));
        }
        let native = Type::of(column);
        if native.class == Class::Json || native.label == "geometry" {
            return Err(Halt::Failed(without_order(name, &native.label)));
        }
        Ok(Self { column: format!("{PART}.{}", quoted_name(name)), native, way: Way::Around })
    }

    /// The first column of the primary key of the only table.
    pub(super) fn of_table(
        session: &mut MySqlSession,
        statement: &Statement,
        tables: &[Table],
    ) -> Result<Self, Halt> {
        let (Some((called, condition)), [table]) = (&statement.simple, tables) else {
            return Err(Halt::serial("it is more than one SELECT from one table; give partition_on"));
        };
        let found = session.connection.rows(&format!(
            "SELECT column_name FROM information_schema.statistics WHERE {} AND index_name = 'PRIMARY' \
             AND seq_in_index = 1",
            table.condition()
        ))?;
        let Some(name) = found.first().and_then(|row| row.first()?.as_deref()) else {
            return Err(Halt::serial("the table has no primary key; give partition_on"));
        };
        let (name, table) = (quoted_name(name), table.qualified());
        let columns = session.definitions(&Query::new(format!("SELECT {name} FROM {table}")))?;
        let Some(column) = columns.first() else { return Err(Halt::serial("the primary key is no column")) };
        Ok(Self {
            column: format!("{called}.{name}"),
            native: Type::of(column),
            way: Way::Inside(*condition, format!("SELECT {name} AS k FROM {table}")),
        })
    }

    /// A value of the key in a condition; `None` where none can be written.
    fn literal(&self, text: &str) -> Option<String> {
        match self.native.class {
            Class::Bytes => {
                let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex.then(|| format!("x'{text}'"))
            }
            // Zero dates are no literals in the server's stricter modes.
            Class::Date | Class::DateTime | Class::Instant => {
                (!text.starts_with("0000") && !text.contains("-00")).then(|| literal(text))
            }
            Class::Text | Class::Json | Class::Uuid | Class::Time => Some(literal(text)),
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
        let last = if before.is_empty() { "TRUE".to_owned() } else { before.join(" AND ") };
        conditions.push(format!("({last}) OR {column} IS NULL"));
        conditions
    }

    /// The query's rows that `condition` takes.
    pub(super) fn part(&self, statement: &Statement, condition: &str) -> String {
        let text = &statement.text;
        match &self.way {
            Way::Around => format!("SELECT * FROM ({text}\n) AS {PART} WHERE {condition}"),
            Way::Inside(None, _) => format!("{text}\nWHERE {condition}"),
            Way::Inside(Some(at), _) => {
                let (head, own) = text.split_at(*at);
                format!("{head} ({own}\n) AND ({condition})")
            }
        }
    }

    /// What is sampled, and what the key is called in it.
    fn source(&self, statement: &Statement) -> (String, String) {
        match &self.way {
            Way::Around => (format!("({}\n) AS {PART}", statement.text), self.column.clone()),
            Way::Inside(_, source) => (format!("({source}) AS {PART}"), format!("{PART}.k")),
        }
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

/// The values that cut the key into about `number` parts, as literals. The query's tables have about so many `bytes`.
pub(super) fn find(
    session: &mut MySqlSession,
    statement: &Statement,
    key: &Key,
    range: Option<&(Value, Value)>,
    bytes: u64,
    number: usize,
) -> Result<Vec<String>, Halt> {
    if let Some(range) = range {
        return between(session, key, range, number).map_err(Halt::Failed);
    }
    let is_inside = matches!(key.way, Way::Inside(..));
    if is_inside && is_integer(key.native.class) {
        return ends(session, statement, key, number);
    }
    sampled(session, statement, key, bytes, number)
}

fn is_integer(class: Class) -> bool {
    use Class::{Int8, Int16, Int32, Int64, Tiny1, UInt8, UInt16, UInt32, UInt64};
    matches!(class, Tiny1 | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

/// Bounds of equal width between the lowest and the highest value, which an index finds at once.
fn ends(
    session: &mut MySqlSession,
    statement: &Statement,
    key: &Key,
    number: usize,
) -> Result<Vec<String>, Halt> {
    let (source, column) = key.source(statement);
    let rows = session.connection.rows(&format!("SELECT MIN({column}), MAX({column}) FROM {source}"))?;
    let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<i128>().ok();
    match (end(0), end(1)) {
        (Some(low), Some(high)) => Ok(steps(low, high, number)),
        // Nothing is there.
        _ => Err(Halt::Whole),
    }
}

fn steps(low: i128, high: i128, number: usize) -> Vec<String> {
    let parts = i128::try_from(number).unwrap_or(1);
    // The last value belongs to the span.
    let mut bounds: Vec<i128> = (1..parts).map(|part| low + (high - low + 1) * part / parts).collect();
    bounds.dedup();
    bounds.retain(|bound| *bound > low);
    bounds.iter().map(ToString::to_string).collect()
}

/// Quantiles of a sample of the key, which the server has put in order.
fn sampled(
    session: &mut MySqlSession,
    statement: &Statement,
    key: &Key,
    bytes: u64,
    number: usize,
) -> Result<Vec<String>, Halt> {
    let (source, column) = key.source(statement);
    let shown = match key.native.class {
        Class::Bytes => format!("HEX({column})"),
        Class::Bit => format!("CAST({column} + 0 AS CHAR)"),
        _ => format!("CAST({column} AS CHAR)"),
    };
    // A query with parameters is not asked for its plan; few of its tables' rows are enough, and many do no harm.
    let bound = match key.way {
        Way::Around => statement.bound(session.connection.zone())?,
        Way::Inside(..) => Vec::new(),
    };
    let estimate = match bound.as_slice() {
        [] => super::estimate(session, &Query::new(format!("SELECT {column} FROM {source}")))?,
        _ => (bytes < SMALL).then_some(0),
    };
    let chance = match estimate {
        Some(rows) if rows <= SAMPLE => String::new(),
        Some(rows) => format!(" AND RAND() * {rows} < {SAMPLE}"),
        None => " AND RAND() < 0.05".to_owned(),
    };
    let sample = format!("SELECT {shown} FROM {source} WHERE {column} IS NOT NULL{chance} ORDER BY {column}");
    let texts = session.connection.texts(&sample, &bound)?;
    let values: Vec<&String> = texts.iter().flatten().collect();
    let mut bounds: Vec<String> = (1..number)
        .filter_map(|part| values.get(part * values.len() / number))
        .filter_map(|value| key.literal(value))
        .collect();
    bounds.dedup();
    Ok(bounds)
}

/// Bounds of equal width between two values that the caller gives.
fn between(
    session: &MySqlSession,
    key: &Key,
    (low, high): &(Value, Value),
    number: usize,
) -> Result<Vec<String>> {
    const DAY: i128 = 86_400_000_000;
    let unfit = || {
        Error::interface(format!(
            "partition_range does not fit the type {} of partition_on",
            key.native.label
        ))
        .with_hint("give two numbers, two dates or two datetimes, as the column has them; or leave it out")
    };
    let offset = session.connection.zone().offset().unwrap_or_default();
    let point = |value: &Value| -> Option<i128> {
        match (key.native.class, value) {
            (Class::Date | Class::DateTime, Value::Date(days)) => Some(i128::from(*days) * DAY),
            (Class::Date | Class::DateTime, Value::Timestamp(at)) => Some((*at).into()),
            (Class::Instant, Value::Instant(at)) => Some(i128::from(*at) + i128::from(offset)),
            (class, value) if is_number(class) => whole(value),
            _ => None,
        }
    };
    let (low, high) = point(low).zip(point(high)).ok_or_else(unfit)?;
    if low > high {
        return Err(Error::interface("partition_range ends before it begins")
            .with_hint("give the lowest value first: partition_range=(low, high)"));
    }
    let texts = steps(low, high, number);
    if is_number(key.native.class) {
        return Ok(texts);
    }
    let moments = texts.iter().filter_map(|text| text.parse::<i64>().ok()).map(timestamp_text);
    let days = moments.map(|text| match key.native.class {
        Class::Date => text.get(..10).unwrap_or_default().to_owned(),
        _ => text,
    });
    let mut literals: Vec<String> = days.filter_map(|text| key.literal(&text)).collect();
    literals.dedup();
    Ok(literals)
}

fn is_number(class: Class) -> bool {
    is_integer(class)
        || matches!(class, Class::Float | Class::Double | Class::Decimal(..) | Class::Year | Class::Bit)
}

/// The whole part of a number: a bound need not be exact.
fn whole(value: &Value) -> Option<i128> {
    #[allow(clippy::cast_possible_truncation)] // what is beyond 128 bits is beyond the type, too
    let floor =
        |value: f64| value.is_finite().then(|| value.floor() as i128).filter(|it| it.abs() < 1 << 100);
    match value {
        Value::Int(value) => Some(*value).filter(|value| value.abs() < 1 << 100),
        Value::Float(value) => floor(*value),
        Value::Decimal(text) => floor(text.parse().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Width;

    fn key(class: Class) -> Key {
        let native = Type { class, width: Width::Counted, label: "made".into(), not_null: false };
        Key { column: "k".into(), native, way: Way::Around }
    }

    #[test]
    fn each_part_takes_what_is_left() {
        let conditions = key(Class::Int64).conditions(&["5".into(), "9".into()]);
        assert_eq!(conditions, ["k < 5", "k >= 5 AND k < 9", "(k >= 5 AND k >= 9) OR k IS NULL"]);
        assert_eq!(key(Class::Int64).conditions(&[]), ["(TRUE) OR k IS NULL"]);
    }

    #[test]
    fn steps_are_even_and_each_once() {
        assert_eq!(steps(1, 100, 4), ["26", "51", "76"]);
        assert_eq!(steps(0, 2, 4), ["1", "2"]);
        assert!(steps(7, 7, 4).is_empty());
        assert_eq!(steps(i64::MIN.into(), u64::MAX.into(), 2).len(), 1);
    }

    #[test]
    fn values_are_literals_or_left_out() {
        assert_eq!(key(Class::Bytes).literal("00FF"), Some("x'00FF'".into()));
        assert_eq!(key(Class::Int64).literal("1 OR 1"), None);
        assert_eq!(key(Class::Date).literal("0000-00-00"), None);
        assert_eq!(key(Class::Text).literal("it's"), Some("_utf8mb4 x'69742773'".into()));
    }
}
