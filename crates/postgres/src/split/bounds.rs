//! The distribution of a key: from the planner's statistics, or from a sample of the result.

use super::cuts::Point;
use super::key::{Key, PART};
use super::statement::Statement;
use crate::connection::pipeline::{Answer, Step};

/// How many values of a sample are kept: equally many rows are between one and the next.
const QUANTILES: u32 = 256;

/// How many rows a sample has, about.
const SAMPLE: f64 = 10_000.0;

/// What is known of a key's values.
#[derive(Debug, Default)]
pub(super) struct Distribution {
    /// In the key's order, each once.
    pub(super) points: Vec<Point>,
    pub(super) nulls: f64,
}

/// Asks for the statistics of the table column that the key is: its most common values and the histogram of the
/// others. The query itself brings no row here, only the collation in which its column is compared.
pub(super) fn statistics(statement: &Statement, key: &Key) -> Step {
    let Key { column, type_name, table, attribute, .. } = key;
    let text = &statement.text;
    statement.step(format!(
        "WITH longshore_found AS ( \
             SELECT s.null_frac, s.most_common_vals::text AS common, s.most_common_freqs AS frequencies, \
                    s.histogram_bounds::text AS bounds \
             FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname \
                  AND s.attname = a.attname \
             WHERE a.attrelid = {table}::oid AND a.attnum = {attribute} ORDER BY s.inherited DESC LIMIT 1), \
         longshore_common AS ( \
             SELECT u.value, u.frequency \
             FROM longshore_found AS f, unnest(f.common::{type_name}[], f.frequencies) AS u (value, frequency)), \
         longshore_histogram AS ( \
             SELECT u.value, u.number, pg_catalog.count(*) OVER () - 1 AS bins \
             FROM longshore_found AS f, unnest(f.bounds::{type_name}[]) WITH ORDINALITY AS u (value, number)), \
         longshore_points AS ( \
             SELECT {column} AS value, 0::float8 AS before, 0::float8 AS at FROM ({text}\n) AS {PART} WHERE false \
             UNION ALL SELECT value, 0, frequency FROM longshore_common \
             UNION ALL \
             SELECT value, CASE number WHEN 1 THEN 0 ELSE greatest(0, 1 - (SELECT null_frac FROM longshore_found) \
                        - (SELECT coalesce(sum(frequency), 0) FROM longshore_common)) / greatest(bins, 1) END, 0 \
             FROM longshore_histogram \
             UNION ALL SELECT NULL, 0, null_frac FROM longshore_found) \
         SELECT value::text AS shown, sum(before), sum(at) FROM longshore_points GROUP BY value ORDER BY value"
    ))
}

/// Asks for a sample of the key's values in the result, of which the planner expects `rows`.
pub(super) fn sample(statement: &Statement, key: &Key, rows: f64) -> Step {
    let Key { column, .. } = key;
    let text = &statement.text;
    let chance = SAMPLE / rows.max(1.0);
    let filter = if chance < 0.5 { format!("WHERE pg_catalog.random() < {chance:e}") } else { String::new() };
    statement.step(format!(
        "SELECT u.value::text AS shown, pg_catalog.count(*), s.nulls \
         FROM (SELECT percentile_disc((SELECT pg_catalog.array_agg(i / {QUANTILES}::float8) \
                                       FROM pg_catalog.generate_series(0, {QUANTILES}) AS i)) \
                      WITHIN GROUP (ORDER BY key) AS quantiles, \
                      1 - pg_catalog.count(key)::float8 / greatest(pg_catalog.count(*), 1) AS nulls \
               FROM (SELECT {column} AS key FROM ({text}\n) AS {PART} {filter}) AS keys) AS s \
         LEFT JOIN LATERAL unnest(s.quantiles) AS u (value) ON true \
         GROUP BY u.value, s.nulls ORDER BY u.value"
    ))
}

/// Reads the answer to [`statistics`]; `None` where the server has none.
pub(super) fn read_statistics(answer: &Answer) -> Option<Distribution> {
    let mut found = Distribution::default();
    for row in 0..answer.rows.len() {
        let number = |column: usize| answer.cell(row, column).parse().unwrap_or(0.0);
        match value(answer, row) {
            Some(value) => found.points.push(Point { value, before: number(1), at: number(2) }),
            None => found.nulls = number(2),
        }
    }
    (!found.points.is_empty()).then_some(found)
}

/// Reads the answer to [`sample`].
pub(super) fn read_sample(answer: &Answer) -> Distribution {
    let mut found = Distribution::default();
    for row in 0..answer.rows.len() {
        let number = |column: usize| answer.cell(row, column).parse().unwrap_or(0.0);
        // The shares of values and NULLs add up to the sample.
        found.nulls = number(2);
        let unit = (1.0 - found.nulls) / f64::from(QUANTILES + 1);
        if let Some(value) = value(answer, row) {
            // A value that is met again has about all the rows between.
            found.points.push(Point { value, before: unit, at: unit * (number(1) - 1.0) });
        }
    }
    found
}

fn value(answer: &Answer, row: usize) -> Option<String> {
    answer.rows.get(row)?.first()?.clone()
}
