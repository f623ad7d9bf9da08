//! Parts of any query by a column of its result.
//!
//! Each part numbers a row by the same CASE over the same bounds, so that every row has exactly one number, whatever the
//! column's values, collation and affinity are. Where comparisons are those of numbers, ranges say the same and can use an
//! index.

use longshore_core::{Error, Params, Query, Result, Split, Value};
use longshore_source::split::{Scalar, even_points, ranges};

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
        spread(&range_end(low)?, &range_end(high)?, number)?
    } else {
        let text = format!("SELECT min({key}), max({key}) FROM {inner}");
        let query = Query { text, params: params.clone() };
        let ends = session.query_with(&query, |row| (bound(row.cell(0)), bound(row.cell(1))))?;
        match ends.first() {
            Some((low, high)) if number_of(low).and(number_of(high)).is_some() => spread(low, high, number)?,
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
fn spread(low: &OwnedCell, high: &OwnedCell, number: usize) -> Result<Vec<OwnedCell>> {
    let ends = if let (OwnedCell::Integer(low), OwnedCell::Integer(high)) = (low, high) {
        Some((Scalar::Steps((*low).into()), Scalar::Steps((*high).into())))
    } else {
        number_of(low).map(Scalar::Real).zip(number_of(high).map(Scalar::Real))
    };
    let Some((low, high)) = ends else { return Ok(Vec::new()) };
    let cell = |point| match point {
        Scalar::Steps(value) => i64::try_from(value).ok().map(OwnedCell::Integer),
        Scalar::Real(value) => Some(OwnedCell::Real(value)).filter(|_| value.is_finite()),
    };
    Ok(even_points(low, high, number, |point| point)?.into_iter().filter_map(cell).collect())
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
        let mut found = ranges(key, &bounds.iter().map(bound_literal).collect::<Vec<_>>());
        found[0] = format!("({key} IS NULL OR {})", found[0]);
        return found;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_even() {
        let integers =
            |low, high, number| spread(&OwnedCell::Integer(low), &OwnedCell::Integer(high), number).unwrap();
        assert_eq!(integers(0, 100, 4), [25, 50, 75].map(OwnedCell::Integer));
        assert_eq!(integers(i64::MIN, i64::MAX, 2), [OwnedCell::Integer(0)]);
        let halves = spread(&OwnedCell::Integer(0), &OwnedCell::Real(1.0), 2);
        assert_eq!(halves.unwrap(), [OwnedCell::Real(0.5)]);
        assert!(spread(&OwnedCell::Integer(2), &OwnedCell::Integer(1), 2).is_err());
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
