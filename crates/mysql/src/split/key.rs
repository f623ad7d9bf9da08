//! The column by whose values a query is split, its bounds, and the conditions of the parts.
//!
//! The server compares, in the column's own collation. Each part takes what all parts before it have left, so that the
//! parts are disjoint and exhaustive whatever the order of the bounds is.

use longshore_core::{Query, Result, Value};
use longshore_source::NotSplit;
use longshore_source::split::{
    SMALL, Scalar, days, even_points, key_column, microseconds, ranges_with_null, unfit_range, whole,
    without_order,
};
use longshore_source::sql::OneTable;
use longshore_values::calendar::{DAY, timestamp_text};

use super::statement::Statement;
use super::tables::Table;
use crate::dialect::{literal, quoted_name};
use crate::encode;
use crate::message::Definition;
use crate::session::MySqlSession;
use crate::types::{Class, Type};

/// The name of the rows that are sampled.
const PART: &str = "longshore_part";

/// A column that parts a result.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// Its name in the query's WHERE.
    column: String,
    pub(super) native: Type,
    /// A relation of its values `k`, from which bounds are sampled, and its parameters.
    values: (String, Vec<Value>),
    /// Whether an index has its values in order.
    is_indexed: bool,
}

impl Key {
    /// The column `name` of the result, which has to be one of `table`, the only one of the query.
    pub(super) fn of_result(
        session: &mut MySqlSession,
        statement: &Statement,
        table: &OneTable<'_>,
        name: &str,
    ) -> Result<Self, NotSplit> {
        let columns = session.definitions(&statement.whole())?;
        let column = find_column(&columns, name).map_err(NotSplit::Failed)?;
        if column.original.is_empty() {
            return Err(NotSplit::because(
                "partition_on is computed; name a column of a table, and select it",
            ));
        }
        let native = Type::of(column);
        let column = format!("{}.{}", table.alias, quoted_name(&column.original));
        let rows = format!("({}\n) AS {PART}", table.rows(&format!("{column} AS k")));
        Ok(Self { column, native, values: (rows, statement.values_of(table).to_vec()), is_indexed: false })
    }

    /// The first column of the primary key of `table`, which the query calls `alias`.
    pub(super) fn of_table(session: &mut MySqlSession, table: &Table, alias: &str) -> Result<Self, NotSplit> {
        let name = primary(session, table)?;
        let table = table.qualified_name();
        let columns = session.definitions(&Query::new(format!("SELECT {name} FROM {table}")))?;
        let Some(column) = columns.first() else {
            return Err(NotSplit::because("the primary key is not a column"));
        };
        let rows = format!("(SELECT {name} AS k FROM {table}) AS {PART}");
        Ok(Self {
            column: format!("{alias}.{name}"),
            native: Type::of(column),
            values: (rows, Vec::new()),
            is_indexed: true,
        })
    }

    /// A value of the key in a condition; `None` where none can be written.
    pub(super) fn literal(&self, text: &str) -> Option<String> {
        match self.native.class {
            Class::Bytes => {
                let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex.then(|| format!("x'{text}'"))
            }
            // Zero dates are not literals in the server's stricter modes.
            Class::Date | Class::DateTime | Class::Timestamp => {
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

    /// A point between two of its values in a condition.
    fn point(&self, point: Scalar) -> Option<String> {
        let Scalar::Steps(at) = point else { return None };
        let timestamp = || i64::try_from(at).ok().map(timestamp_text);
        match self.native.class {
            Class::Date => self.literal(timestamp_text(i64::try_from(at).ok()?.checked_mul(DAY)?).get(..10)?),
            Class::DateTime | Class::Timestamp => self.literal(&timestamp()?),
            _ => Some(at.to_string()),
        }
    }

    /// The conditions of the parts between the `bounds`.
    pub(super) fn conditions(&self, bounds: &[String]) -> Vec<String> {
        // IS NULL takes zero dates, too, in columns that have no NULL.
        ranges_with_null(&self.column, bounds, "TRUE", "<=> NULL")
    }
}

/// The only column called `name`, whose values the server can compare.
fn find_column<'a>(columns: &'a [Definition], name: &str) -> Result<&'a Definition> {
    let column = &columns[key_column(columns.iter().map(|column| column.name.as_str()), name)?];
    let native = Type::of(column);
    if native.class == Class::Json || native.label == "geometry" {
        return Err(without_order(name, &native.label));
    }
    Ok(column)
}

/// The first column of the table's primary key, as a name.
fn primary(session: &mut MySqlSession, table: &Table) -> Result<String, NotSplit> {
    let found = session.connection.value(&format!(
        "SELECT column_name FROM information_schema.statistics WHERE {} AND index_name = 'PRIMARY' \
         AND seq_in_index = 1",
        table.condition()
    ))?;
    match found {
        Some(name) => Ok(quoted_name(&name)),
        None => Err(NotSplit::because("the table has no primary key; give partition_on")),
    }
}

/// Values that a sample has, about.
const SAMPLE: u64 = 10_000;

/// The bounds of about `number` parts, as literals. The query's tables have about so many `bytes`.
pub(super) fn bounds(
    session: &mut MySqlSession,
    key: &Key,
    range: Option<&(Value, Value)>,
    bytes: u64,
    number: usize,
) -> Result<Vec<String>, NotSplit> {
    if let Some(range) = range {
        return between(session, key, range, number).map_err(NotSplit::Failed);
    }
    if key.is_indexed && is_integer(key.native.class) {
        return ends(session, key, number);
    }
    sample(session, key, bytes, number)
}

fn is_integer(class: Class) -> bool {
    use Class::{Int8, Int16, Int32, Int64, Tiny1, UInt8, UInt16, UInt32, UInt64};
    matches!(class, Tiny1 | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

/// Bounds of equal width between the lowest and the highest value, which an index finds at once.
fn ends(session: &mut MySqlSession, key: &Key, number: usize) -> Result<Vec<String>, NotSplit> {
    let (source, _) = &key.values;
    let rows = session.connection.rows(&format!("SELECT MIN(k), MAX(k) FROM {source}"))?;
    let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<i128>().ok();
    match (end(0), end(1)) {
        (Some(low), Some(high)) => {
            let points = even_points(Scalar::Steps(low), Scalar::Steps(high), number, |point| point)?;
            Ok(points.into_iter().filter_map(|point| key.point(point)).collect())
        }
        // Nothing is there.
        _ => Err(NotSplit::Small),
    }
}

/// Quantiles of a sample of the key, which the server has put in order.
fn sample(session: &mut MySqlSession, key: &Key, bytes: u64, number: usize) -> Result<Vec<String>, NotSplit> {
    let (source, values) = &key.values;
    let shown = match key.native.class {
        Class::Bytes => "HEX(k)",
        Class::Bit => "CAST(k + 0 AS CHAR)",
        _ => "CAST(k AS CHAR)",
    };
    // A query with parameters is not asked for its plan; few of its tables' rows are enough, and many do no harm.
    let estimate = match values.as_slice() {
        [] => super::estimate(session, &Query::new(format!("SELECT k FROM {source}")))?,
        _ => (bytes < SMALL).then_some(0),
    };
    let chance = match estimate {
        Some(rows) if rows <= SAMPLE => String::new(),
        Some(rows) => format!(" AND RAND() * {rows} < {SAMPLE}"),
        None => " AND RAND() < 0.05".to_owned(),
    };
    let sample = format!("SELECT {shown} FROM {source} WHERE k IS NOT NULL{chance} ORDER BY k");
    let bound = encode::parameters(&values.iter().collect::<Vec<_>>(), session.connection.zone())?;
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
    let offset = session.connection.zone().offset().unwrap_or_default();
    let point = |value: &Value| match (key.native.class, value) {
        (Class::Date, value) => days(value),
        (Class::DateTime, value) => microseconds(value),
        (Class::Timestamp, Value::TimestampTz(at)) => Some(i128::from(*at) + i128::from(offset)),
        (class, value) if is_number(class) => whole(value),
        _ => None,
    };
    let (low, high) = point(low).zip(point(high)).ok_or_else(|| unfit_range(&key.native.label))?;
    let points = even_points(Scalar::Steps(low), Scalar::Steps(high), number, |point| point)?;
    Ok(points.into_iter().filter_map(|point| key.point(point)).collect())
}

fn is_number(class: Class) -> bool {
    is_integer(class)
        || matches!(class, Class::Float | Class::Double | Class::Decimal(..) | Class::Year | Class::Bit)
}

#[cfg(test)]
mod tests {

    use super::*;

    fn key(class: Class) -> Key {
        let native = Type { class, label: "made".into(), not_null: false };
        Key { column: "k".into(), native, values: (String::new(), Vec::new()), is_indexed: false }
    }

    #[test]
    fn each_part_takes_what_is_left() {
        let conditions = key(Class::Int64).conditions(&["5".into(), "9".into()]);
        assert_eq!(conditions, ["k < 5", "k >= 5 AND k < 9", "(k >= 5 AND k >= 9 OR k <=> NULL)"]);
        assert_eq!(key(Class::Int64).conditions(&[]), ["(TRUE OR k <=> NULL)"]);
    }

    #[test]
    fn values_are_literals_or_left_out() {
        assert_eq!(key(Class::Bytes).literal("00FF"), Some("x'00FF'".into()));
        assert_eq!(key(Class::Int64).literal("1 OR 1"), None);
        assert_eq!(key(Class::Date).literal("0000-00-00"), None);
        assert_eq!(key(Class::Text).literal("it's"), Some("_utf8mb4 x'69742773'".into()));
        assert_eq!(key(Class::Text).literal(""), None);
    }

    #[test]
    fn points_are_literals() {
        let point = |class, at| key(class).point(Scalar::Steps(at));
        assert_eq!(point(Class::Int64, -7), Some("-7".into()));
        assert_eq!(point(Class::Date, 1), Some("'1970-01-02'".into()));
        assert_eq!(point(Class::DateTime, 1_500_000), Some("'1970-01-01 00:00:01.5'".into()));
        assert_eq!(point(Class::Date, i128::MAX), None);
    }
}
