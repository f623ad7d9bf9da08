//! Parts of any query by a column of its result.
//!
//! Each part numbers a row by the same CASE over the same bounds, so that every row has exactly one number, whatever the
//! column's values, collation and affinity are. Where comparisons are those of numbers, ranges say the same and can use an
//! index.

use longshore_core::{Error, Params, Query, Result, Split, Value};

use super::rowids::integer;
use crate::cell::{Cell, hex, real_text};
use crate::connection::Statement;
use crate::dialect::{DIALECT, literal, quoted_name};
use crate::session::SqliteSession;

/// The texts of the parts of `text` by the column `on`, `number` or fewer.
pub(super) fn parts(
    session: &SqliteSession,
    text: &str,
    split: &Split,
    on: &str,
    is_whole_number: bool,
    params: &Params,
    number: usize,
) -> Result<Vec<String>> {
    let inner = format!("(\n{}\n) AS \"longshore\"", DIALECT.body(text));
    let key = format!("\"longshore\".{}", quoted_name(on));
    let bounds = if let Some((low, high)) = &split.range {
        spread(&told(low)?, &told(high)?, number)
    } else {
        let text = format!("SELECT min({key}), max({key}) FROM {inner}");
        let ends = ask(session, &Query { text, params: params.clone() })?;
        match ends.first() {
            Some((low, high)) if low.number().and(high.number()).is_some() => spread(low, high, number),
            Some(_) => shares(session, &key, &inner, params, number)?,
            None => Vec::new(),
        }
    };
    let conditions = conditions(&key, &bounds, is_whole_number);
    Ok(conditions.into_iter().map(|condition| format!("SELECT * FROM {inner} WHERE {condition}")).collect())
}

/// A value that parts others.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Bound {
    fn of(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Integer(value) => Self::Integer(value),
            Cell::Real(value) => Self::Real(value),
            Cell::Text(text) => match std::str::from_utf8(text) {
                Ok(text) if !text.contains('\0') => Self::Text(text.to_owned()),
                // Any other bound is as right, if not as even.
                _ => Self::Text(String::new()),
            },
            Cell::Blob(blob) => Self::Blob(blob.to_vec()),
        }
    }

    fn literal(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integer(value) => integer(*value),
            Self::Real(value) if value.is_infinite() => {
                if *value > 0.0 { "9e999" } else { "-9e999" }.to_owned()
            }
            Self::Real(value) => real_text(*value),
            Self::Text(text) => literal(text),
            Self::Blob(blob) => format!("x'{}'", hex(blob)),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss)] // a bound may be about there
            Self::Integer(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            _ => None,
        }
    }
}

/// An end of `partition_range`.
fn told(value: &Value) -> Result<Bound> {
    Ok(match value {
        Value::Int(value) => {
            Bound::Integer(i64::try_from(*value).unwrap_or(if *value < 0 { i64::MIN } else { i64::MAX }))
        }
        Value::Float(value) if !value.is_nan() => Bound::Real(*value),
        _ => {
            return Err(Error::interface("partition_range takes two numbers for SQLite")
                .with_hint("leave it out: the ends are found in the data"));
        }
    })
}

/// Values that part the numbers from `low` to `high` evenly.
fn spread(low: &Bound, high: &Bound, number: usize) -> Vec<Bound> {
    if let (Bound::Integer(low), Bound::Integer(high)) = (low, high) {
        let width = i128::from(*high) - i128::from(*low);
        let count = i128::try_from(number).unwrap_or(i128::MAX);
        let at = |part: i128| i64::try_from(i128::from(*low) + width * part / count).unwrap_or(*high);
        let mut bounds: Vec<Bound> = (1..count).map(|part| Bound::Integer(at(part))).collect();
        bounds.dedup();
        return bounds;
    }
    let (Some(low), Some(high)) = (low.number(), high.number()) else { return Vec::new() };
    #[allow(clippy::cast_precision_loss)] // numbers of parts are small
    let at = |part: usize| low + (high - low) * (part as f64 / number as f64);
    (1..number).map(at).filter(|bound| bound.is_finite()).map(Bound::Real).collect()
}

/// The highest value of each of `number` equal shares but the last.
fn shares(
    session: &SqliteSession,
    key: &str,
    inner: &str,
    params: &Params,
    number: usize,
) -> Result<Vec<Bound>> {
    let text = format!(
        "SELECT max(\"key\"), NULL FROM (SELECT {key} AS \"key\", ntile({number}) OVER (ORDER BY {key}) AS \"share\" \
         FROM {inner} WHERE {key} IS NOT NULL) GROUP BY \"share\" ORDER BY \"share\""
    );
    let mut found = ask(session, &Query { text, params: params.clone() })?;
    found.pop();
    let mut bounds: Vec<Bound> = found.into_iter().map(|(bound, _)| bound).collect();
    bounds.dedup();
    Ok(bounds)
}

fn ask(session: &SqliteSession, query: &longshore_core::Query) -> Result<Vec<(Bound, Bound)>> {
    let mut statement: Statement = session.prepare(query)?;
    let mut found = Vec::new();
    while statement.step()? {
        found.push((Bound::of(statement.cell(0)), Bound::of(statement.cell(1))));
    }
    Ok(found)
}

fn conditions(key: &str, bounds: &[Bound], is_whole_number: bool) -> Vec<String> {
    let is_ranges = is_whole_number && bounds.iter().all(|bound| matches!(bound, Bound::Integer(_)));
    if is_ranges && !bounds.is_empty() {
        return ranges(key, bounds);
    }
    let cases: Vec<String> = bounds
        .iter()
        .enumerate()
        .map(|(part, bound)| format!(" WHEN {key} < {} THEN {part}", bound.literal()))
        .collect();
    let number = bounds.len();
    let case = format!("CASE WHEN {key} IS NULL THEN 0{} ELSE {number} END", cases.concat());
    (0..=number).map(|part| format!("{case} = {part}")).collect()
}

/// The same by ranges, whose bounds grow.
fn ranges(key: &str, bounds: &[Bound]) -> Vec<String> {
    let texts: Vec<String> = bounds.iter().map(Bound::literal).collect();
    let mut found = vec![format!("({key} IS NULL OR {key} < {})", texts[0])];
    found.extend(texts.windows(2).map(|pair| format!("{key} >= {} AND {key} < {}", pair[0], pair[1])));
    found.extend(texts.last().map(|last| format!("{key} >= {last}")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_even() {
        assert_eq!(
            spread(&Bound::Integer(0), &Bound::Integer(100), 4),
            [Bound::Integer(25), Bound::Integer(50), Bound::Integer(75)]
        );
        assert_eq!(spread(&Bound::Integer(i64::MIN), &Bound::Integer(i64::MAX), 2), [Bound::Integer(-1)]);
        assert_eq!(spread(&Bound::Real(0.0), &Bound::Real(1.0), 2), [Bound::Real(0.5)]);
    }

    #[test]
    fn every_row_has_one_part() {
        assert_eq!(
            conditions("k", &[Bound::Text("it's".into())], false),
            [
                "CASE WHEN k IS NULL THEN 0 WHEN k < 'it''s' THEN 0 ELSE 1 END = 0",
                "CASE WHEN k IS NULL THEN 0 WHEN k < 'it''s' THEN 0 ELSE 1 END = 1"
            ]
        );
        assert_eq!(
            conditions("k", &[Bound::Integer(1), Bound::Integer(5)], true),
            ["(k IS NULL OR k < 1)", "k >= 1 AND k < 5", "k >= 5"]
        );
        assert_eq!(conditions("k", &[], true).len(), 1);
    }
}
