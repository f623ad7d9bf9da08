//! Parts of any query by a column of its result.
//!
//! Each part numbers a row by the same CASE over the same bounds, so that every row has exactly one number, whatever the
//! column's values, collation and affinity are. Where comparisons are those of numbers, ranges say the same and can use an
//! index.

use longshore_core::{Error, Params, Query, Result, Split, Value};

use super::rowids::integer;
use crate::cell::{Cell, OwnedCell, hex, real_text};
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
        let (low, high) = (range_end(low)?, range_end(high)?);
        // Bounds that fall would have rows in two parts.
        let is_reversed = match (&low, &high) {
            (OwnedCell::Integer(low), OwnedCell::Integer(high)) => low > high,
            _ => number_of(&low) > number_of(&high),
        };
        if is_reversed {
            return Err(Split::falling_range());
        }
        spread(&low, &high, number)
    } else {
        let text = format!("SELECT min({key}), max({key}) FROM {inner}");
        let query = Query { text, params: params.clone() };
        let ends = session.query_with(&query, |row| (bound(row.cell(0)), bound(row.cell(1))))?;
        match ends.first() {
            Some((low, high)) if number_of(low).and(number_of(high)).is_some() => spread(low, high, number),
            Some(_) => shares(session, &key, &inner, params, number)?,
            None => Vec::new(),
        }
    };
    let conditions = conditions(&key, &bounds, is_whole_number);
    Ok(conditions.into_iter().map(|condition| format!("SELECT * FROM {inner} WHERE {condition}")).collect())
}

/// A bound from a cell. Where a text cannot be a literal, any other bound is as right, if not as even.
fn bound(cell: Cell<'_>) -> OwnedCell {
    match cell {
        Cell::Null => OwnedCell::Null,
        Cell::Integer(value) => OwnedCell::Integer(value),
        Cell::Real(value) => OwnedCell::Real(value),
        Cell::Text(text) => {
            let text = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0'));
            OwnedCell::Text(text.unwrap_or_default().to_owned())
        }
        Cell::Blob(blob) => OwnedCell::Blob(blob.to_vec()),
    }
}

fn bound_literal(bound: &OwnedCell) -> String {
    match bound {
        OwnedCell::Null => "NULL".to_owned(),
        OwnedCell::Integer(value) => integer(*value),
        OwnedCell::Real(value) if value.is_infinite() => {
            if *value > 0.0 { "9e999" } else { "-9e999" }.to_owned()
        }
        OwnedCell::Real(value) => real_text(*value),
        OwnedCell::Text(text) => literal(text),
        OwnedCell::Blob(blob) => format!("x'{}'", hex(blob)),
    }
}

fn number_of(bound: &OwnedCell) -> Option<f64> {
    match bound {
        #[allow(clippy::cast_precision_loss)] // a bound may be about there
        OwnedCell::Integer(value) => Some(*value as f64),
        OwnedCell::Real(value) => Some(*value),
        _ => None,
    }
}

/// An end of `partition_range`.
fn range_end(value: &Value) -> Result<OwnedCell> {
    Ok(match value {
        Value::Int(value) => {
            OwnedCell::Integer(i64::try_from(*value).unwrap_or(if *value < 0 { i64::MIN } else { i64::MAX }))
        }
        Value::Float(value) if !value.is_nan() => OwnedCell::Real(*value),
        _ => {
            return Err(Error::interface("partition_range takes two numbers for SQLite")
                .with_hint("leave it out: the ends are found in the data"));
        }
    })
}

/// Bounds that split the numbers from `low` to `high` evenly.
fn spread(low: &OwnedCell, high: &OwnedCell, number: usize) -> Vec<OwnedCell> {
    if let (OwnedCell::Integer(low), OwnedCell::Integer(high)) = (low, high) {
        let width = i128::from(*high) - i128::from(*low);
        let count = i128::try_from(number).unwrap_or(i128::MAX);
        let at = |part: i128| i64::try_from(i128::from(*low) + width * part / count).unwrap_or(*high);
        let mut bounds: Vec<OwnedCell> = (1..count).map(|part| OwnedCell::Integer(at(part))).collect();
        bounds.dedup();
        return bounds;
    }
    let (Some(low), Some(high)) = (number_of(low), number_of(high)) else { return Vec::new() };
    #[allow(clippy::cast_precision_loss)] // numbers of parts are small
    let at = |part: usize| low + (high - low) * (part as f64 / number as f64);
    (1..number).map(at).filter(|bound| bound.is_finite()).map(OwnedCell::Real).collect()
}

/// The highest value of each of `number` equal shares but the last.
fn shares(
    session: &SqliteSession,
    key: &str,
    inner: &str,
    params: &Params,
    number: usize,
) -> Result<Vec<OwnedCell>> {
    let text = format!(
        "SELECT max(\"key\") FROM (SELECT {key} AS \"key\", ntile({number}) OVER (ORDER BY {key}) AS \"share\" \
         FROM {inner} WHERE {key} IS NOT NULL) GROUP BY \"share\" ORDER BY \"share\""
    );
    let query = Query { text, params: params.clone() };
    let mut bounds = session.query_with(&query, |row| bound(row.cell(0)))?;
    bounds.pop();
    bounds.dedup();
    Ok(bounds)
}

fn conditions(key: &str, bounds: &[OwnedCell], is_whole_number: bool) -> Vec<String> {
    let is_ranges = is_whole_number && bounds.iter().all(|bound| matches!(bound, OwnedCell::Integer(_)));
    if is_ranges && !bounds.is_empty() {
        return ranges(key, bounds);
    }
    let cases: Vec<String> = bounds
        .iter()
        .enumerate()
        .map(|(part, bound)| format!(" WHEN {key} < {} THEN {part}", bound_literal(bound)))
        .collect();
    let number = bounds.len();
    let case = format!("CASE WHEN {key} IS NULL THEN 0{} ELSE {number} END", cases.concat());
    (0..=number).map(|part| format!("{case} = {part}")).collect()
}

/// The same by ranges, whose bounds grow.
fn ranges(key: &str, bounds: &[OwnedCell]) -> Vec<String> {
    let texts: Vec<String> = bounds.iter().map(bound_literal).collect();
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
            spread(&OwnedCell::Integer(0), &OwnedCell::Integer(100), 4),
            [OwnedCell::Integer(25), OwnedCell::Integer(50), OwnedCell::Integer(75)]
        );
        assert_eq!(
            spread(&OwnedCell::Integer(i64::MIN), &OwnedCell::Integer(i64::MAX), 2),
            [OwnedCell::Integer(-1)]
        );
        assert_eq!(spread(&OwnedCell::Real(0.0), &OwnedCell::Real(1.0), 2), [OwnedCell::Real(0.5)]);
    }

    #[test]
    fn every_row_has_one_part() {
        assert_eq!(
            conditions("k", &[OwnedCell::Text("it's".into())], false),
            [
                "CASE WHEN k IS NULL THEN 0 WHEN k < 'it''s' THEN 0 ELSE 1 END = 0",
                "CASE WHEN k IS NULL THEN 0 WHEN k < 'it''s' THEN 0 ELSE 1 END = 1"
            ]
        );
        assert_eq!(
            conditions("k", &[OwnedCell::Integer(1), OwnedCell::Integer(5)], true),
            ["(k IS NULL OR k < 1)", "k >= 1 AND k < 5", "k >= 5"]
        );
        assert_eq!(conditions("k", &[], true).len(), 1);
    }
}
