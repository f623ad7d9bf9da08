//! The values at which a key is cut.

use longshore_cells::calendar::timestamp_text;
use longshore_core::{Error, Query, Result, Value};
use longshore_source::NotSplit;

use super::SMALL;
use super::key::Key;
use super::statement::Statement;
use crate::encode;
use crate::session::MySqlSession;
use crate::types::Class;

/// Values that a sample has, about.
const SAMPLE: u64 = 10_000;

/// The values that cut the key into about `number` parts, as literals. The query's tables have about so many `bytes`.
pub(super) fn find(
    session: &mut MySqlSession,
    statement: &Statement,
    key: &Key,
    range: Option<&(Value, Value)>,
    bytes: u64,
    number: usize,
) -> Result<Vec<String>, NotSplit> {
    if let Some(range) = range {
        return between(session, key, range, number).map_err(NotSplit::Failed);
    }
    if key.is_indexed() && is_integer(key.native.class) {
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
) -> Result<Vec<String>, NotSplit> {
    let (source, _) = key.source(statement)?;
    let rows = session.connection.rows(&format!("SELECT MIN(k), MAX(k) FROM {source}"))?;
    let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<i128>().ok();
    match (end(0), end(1)) {
        (Some(low), Some(high)) => Ok(steps(low, high, number)),
        // Nothing is there.
        _ => Err(NotSplit::Small),
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
) -> Result<Vec<String>, NotSplit> {
    let (source, values) = key.source(statement)?;
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
    let bound = encode::parameters(&values, session.connection.zone())?;
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

    #[test]
    fn steps_are_even_and_each_once() {
        assert_eq!(steps(1, 100, 4), ["26", "51", "76"]);
        assert_eq!(steps(0, 2, 4), ["1", "2"]);
        assert!(steps(7, 7, 4).is_empty());
        assert_eq!(steps(i64::MIN.into(), u64::MAX.into(), 2).len(), 1);
    }
}
