//! The bounds of a key's parts: from the planner's statistics, from a sample of the result, or of equal width between two
//! values that the caller gives. The parts are disjoint and together exhaustive, whatever the bounds are.

use longshore_core::{Result, Value};
use longshore_source::split::{Scalar, days, even_points, microseconds, real, unfit_range, whole};

use super::key::{Key, PART};
use super::plan::Statement;
use crate::connection::pipeline::{Answer, Step};
use crate::encode;
use crate::types::{Class, Kind};

/// How many values of a sample are kept: equally many rows are between one and the next.
const QUANTILES: u32 = 256;

/// How many rows a sample has, about.
const SAMPLE: f64 = 10_000.0;

/// The facts of a key's values.
#[derive(Debug, Default)]
pub(super) struct Distribution {
    /// In the key's order, each once.
    pub(super) points: Vec<HistogramPoint>,
    pub(super) nulls: f64,
}

impl Distribution {
    /// The share of the rows that the largest of `number` parts has: that of a value may be more than another part's.
    pub(super) fn largest(&self, number: usize) -> f64 {
        let rows = self.nulls + self.points.iter().map(|point| point.before + point.at).sum::<f64>();
        let value = self.points.iter().map(|point| point.at).fold(0.0, f64::max);
        (value / rows).max(1.0 / count(number))
    }
}

/// Asks for the statistics of the table column that the key is: its most common values and the histogram of the
/// others. The query itself brings no row here, only the collation in which its column is compared.
pub(super) fn statistics_step(statement: &Statement, key: &Key) -> Step {
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
pub(super) fn sample_step(statement: &Statement, key: &Key, rows: f64) -> Step {
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

/// Reads the answer to [`statistics_step`]; `None` where the server has none.
pub(super) fn read_statistics(answer: &Answer) -> Option<Distribution> {
    let mut found = Distribution::default();
    for row in 0..answer.rows.len() {
        let number = |column: usize| answer.cell(row, column).parse().unwrap_or(0.0);
        match row_value(answer, row) {
            Some(value) => found.points.push(HistogramPoint { value, before: number(1), at: number(2) }),
            None => found.nulls = number(2),
        }
    }
    (!found.points.is_empty()).then_some(found)
}

pub(super) fn read_sample(answer: &Answer) -> Distribution {
    let mut found = Distribution::default();
    for row in 0..answer.rows.len() {
        let number = |column: usize| answer.cell(row, column).parse().unwrap_or(0.0);
        // The shares of values and NULLs add up to the sample.
        found.nulls = number(2);
        let unit = (1.0 - found.nulls) / f64::from(QUANTILES + 1);
        if let Some(value) = row_value(answer, row) {
            // A value that is met again has about all the rows between.
            found.points.push(HistogramPoint { value, before: unit, at: unit * (number(1) - 1.0) });
        }
    }
    found
}

fn row_value(answer: &Answer, row: usize) -> Option<String> {
    answer.rows.get(row)?.first()?.clone()
}

/// A value of the key, and how many rows are about it, in any unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HistogramPoint {
    pub(super) value: String,
    /// Rows between the point before and this one.
    pub(super) before: f64,
    /// Rows of this very value.
    pub(super) at: f64,
}

/// One part: the key's values from `start` to before `end`, of which an open end takes all, and the NULLs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPart {
    /// `None` where it has NULLs alone.
    pub(super) range: Option<(Option<String>, Option<String>)>,
    pub(super) has_nulls: bool,
}

/// Divides a key into about `number` parts. The `points` are in the key's order, each once; `nulls` counts the NULLs. A value of
/// many rows is between two bounds, alone.
pub(super) fn equal_parts(points: &[HistogramPoint], nulls: f64, number: usize) -> Vec<KeyPart> {
    let rows = points.iter().map(|point| point.before + point.at).sum::<f64>();
    let share = (rows + nulls) / count(number);
    if share.is_nan() || share <= 0.0 {
        return parts_between(&[]);
    }
    let mut parts = parts_between(&equal_bounds(points, rows, share));
    if let Some(last) = parts.last_mut()
        && nulls >= share / 2.0
    {
        last.has_nulls = false;
        parts.push(KeyPart { range: None, has_nulls: true });
    }
    parts
}

/// Parts between the values of `bounds`, which are in the key's order; the NULLs are in the last.
pub(super) fn parts_between(bounds: &[String]) -> Vec<KeyPart> {
    let starts = [None].into_iter().chain(bounds.iter().cloned().map(Some));
    let ends = bounds.iter().cloned().map(Some).chain([None]);
    let part =
        |(start, end): (_, Option<String>)| KeyPart { has_nulls: end.is_none(), range: Some((start, end)) };
    starts.zip(ends).map(part).collect()
}

/// The values at which the points, of `rows` rows, are to be divided into parts of about a `share`.
fn equal_bounds(points: &[HistogramPoint], rows: f64, share: f64) -> Vec<String> {
    let mut below = Vec::with_capacity(points.len());
    let mut sum = 0.0;
    for point in points {
        below.push(sum + point.before);
        sum += point.before + point.at;
    }
    let mut bounds = Vec::new();
    let (mut used, mut remaining) = (0.0, (rows / share).round());
    while remaining > 1.0 {
        // What is left, by the parts that are left.
        let target = used + (rows - used) / remaining;
        let after = below.partition_point(|below| *below < target);
        let before = after.checked_sub(1).filter(|before| below[*before] > used);
        let is_nearer =
            |before: &usize| below.get(after).is_none_or(|above| target - below[*before] < above - target);
        let at = before.filter(is_nearer).unwrap_or(after);
        let Some(point) = points.get(at) else { break };
        bounds.push(point.value.clone());
        used = below[at];
        // A value of many rows has taken more than one share.
        remaining = ((rows - used) / share).round().min(remaining - 1.0);
    }
    bounds
}

#[allow(clippy::cast_precision_loss)] // numbers of parts are small
fn count(number: usize) -> f64 {
    number as f64
}

/// The bounds that divide the span from `low` to `high` into at most `number` parts of one width, as texts of the key's
/// type.
pub(super) fn range_bounds(key: &Key, (low, high): &(Value, Value), number: usize) -> Result<Vec<String>> {
    let unfit = || unfit_range(&key.native.label());
    let Kind::Plain(class) = key.native.kind else { return Err(unfit()) };
    let (low, high) = scalar(class, low).zip(scalar(class, high)).ok_or_else(unfit)?;
    let points = even_points(low, high, number, |point| round(point, class))?;
    points.iter().map(|point| scalar_text(key, class, point)).collect()
}

/// The point in a type that has fewer numbers.
#[allow(clippy::cast_possible_truncation)] // to the nearest is meant
fn round(point: Scalar, class: Class) -> Scalar {
    match (point, class) {
        // Below it the server would say that a float4 is out of range.
        (Scalar::Real(number), Class::Float4) if number.abs() < f64::from(f32::MIN_POSITIVE) => {
            Scalar::Real(0.0)
        }
        (Scalar::Real(number), Class::Float4) => Scalar::Real(f64::from(number as f32)),
        _ => point,
    }
}

/// A caller's value on the scale of a type; `None` where it is of another kind.
fn scalar(class: Class, value: &Value) -> Option<Scalar> {
    let limits = match class {
        Class::Int2 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Class::Int4 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Class::Int8 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Class::Unsigned => (0, i128::from(u32::MAX)),
        Class::Xid8 => (0, i128::from(u64::MAX)),
        Class::Float4 => {
            return real(value).map(|it| Scalar::Real(it.clamp(-f64::from(f32::MAX), f64::from(f32::MAX))));
        }
        Class::Float8 | Class::Numeric => return real(value).map(Scalar::Real),
        Class::Date => return days(value).map(Scalar::Steps),
        Class::Timestamp => return microseconds(value).map(Scalar::Steps),
        Class::Timestamptz => {
            return match value {
                Value::TimestampTz(at) => Some(Scalar::Steps(i128::from(*at))),
                _ => None,
            };
        }
        _ => return None,
    };
    whole(value).map(|value| Scalar::Steps(value.clamp(limits.0, limits.1)))
}

/// A point as a text of the key's type.
fn scalar_text(key: &Key, class: Class, point: &Scalar) -> Result<String> {
    let value = match (*point, class) {
        (Scalar::Steps(days), Class::Date) => i32::try_from(days).ok().map(Value::Date),
        (Scalar::Steps(at), Class::Timestamp) => i64::try_from(at).ok().map(Value::Timestamp),
        (Scalar::Steps(at), Class::Timestamptz) => i64::try_from(at).ok().map(Value::TimestampTz),
        (Scalar::Steps(number), _) => Some(Value::Int(number)),
        (Scalar::Real(number), _) => Some(Value::Float(number)),
    };
    let value = value.ok_or_else(|| unfit_range(&key.native.label()))?;
    let encoded = encode::parameters(&[&value], std::slice::from_ref(&key.native))?;
    let text = encoded.into_iter().next().flatten().unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the part takes this number, or NULL.
    fn takes(part: &KeyPart, key: Option<i64>) -> bool {
        let number = |text: &String| text.parse::<i64>().unwrap();
        let Some(key) = key else { return part.has_nulls };
        part.range.as_ref().is_some_and(|(start, end)| {
            start.as_ref().is_none_or(|start| key >= number(start))
                && end.as_ref().is_none_or(|end| key < number(end))
        })
    }

    fn is_exact(parts: &[KeyPart]) {
        for key in (-1..40).map(Some).chain([None]) {
            let found = parts.iter().filter(|part| takes(part, key)).count();
            assert_eq!(found, 1, "{key:?} in {parts:?}");
        }
    }

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn rows(&mut self) -> f64 {
            let scale = [0_u32, 1, 10, 1000][usize::try_from(self.below(4)).unwrap()];
            f64::from(scale) * f64::from(u32::try_from(self.below(100)).unwrap())
        }
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_doubled() {
        let mut dice = Dice(1);
        for _ in 0..20_000 {
            let values = (0..38).filter(|_| dice.below(5) == 0).collect::<Vec<u32>>();
            let points: Vec<HistogramPoint> = values
                .iter()
                .map(|value| HistogramPoint {
                    value: value.to_string(),
                    before: dice.rows(),
                    at: dice.rows(),
                })
                .collect();
            let nulls = dice.rows();
            let number = usize::try_from(1 + dice.below(12)).unwrap();
            is_exact(&equal_parts(&points, nulls, number));
        }
    }

    #[test]
    fn equal_bounds_lose_nothing() {
        is_exact(&parts_between(&["3", "3", "9", "9"].map(str::to_owned)));
        is_exact(&parts_between(&[]));
    }

    fn even(count: u32) -> Vec<HistogramPoint> {
        (0..count).map(|value| HistogramPoint { value: value.to_string(), before: 0.0, at: 1.0 }).collect()
    }

    #[test]
    fn an_even_key_is_divided_evenly() {
        let parts = equal_parts(&even(100), 0.0, 4);
        assert_eq!(parts, parts_between(&["25", "50", "75"].map(str::to_owned)));
    }

    #[test]
    fn a_value_that_dominates_is_alone() {
        let mut points = even(20);
        points[10].at = 60.0;
        let parts = equal_parts(&points, 1.0, 4);
        assert_eq!(parts, parts_between(&["10", "11"].map(str::to_owned)));
        is_exact(&parts);
    }

    #[test]
    fn many_nulls_are_a_part() {
        let parts = equal_parts(&even(10), 90.0, 4);
        assert!(parts.contains(&KeyPart { range: None, has_nulls: true }), "{parts:?}");
        is_exact(&parts);
    }

    const DAY: i64 = 86_400_000_000;

    const CLASSES: &[(Class, &str)] = &[
        (Class::Int2, "int2"),
        (Class::Int4, "int4"),
        (Class::Int8, "int8"),
        (Class::Unsigned, "oid"),
        (Class::Xid8, "xid8"),
        (Class::Float4, "float4"),
        (Class::Float8, "float8"),
        (Class::Numeric, "numeric"),
        (Class::Date, "date"),
        (Class::Timestamp, "timestamp"),
        (Class::Timestamptz, "timestamptz"),
    ];

    /// Spans of the type `class`: of one value, of neighbours, and wide ones.
    fn spans(class: Class) -> Vec<(Scalar, Scalar)> {
        let values: Vec<Value> = match class {
            Class::Date => [-1, 0, 1, 20_000, i32::MAX].map(Value::Date).into(),
            Class::Timestamp => [-1, 0, 1, DAY, i64::MAX].map(Value::Timestamp).into(),
            Class::Timestamptz => [-1, 0, 1, DAY, i64::MAX].map(Value::TimestampTz).into(),
            _ => [0.1, 0.3, 0.7, 1.1, 19.99, -0.05, 99.95, 1e-300, -1e300, 0.0, -0.0, 1e300, f64::MAX]
                .into_iter()
                .flat_map(|value| [value, f64::next_up(value)])
                .chain([1.0, 1.0 + f64::from(f32::EPSILON), f64::from(f32::MAX), f64::MIN])
                .map(Value::Float)
                .collect(),
        };
        let points: Vec<Scalar> = values.iter().filter_map(|value| scalar(class, value)).collect();
        let pairs = points.iter().flat_map(|low| points.iter().map(|high| (*low, *high)));
        pairs.filter(|(low, high)| low <= high).collect()
    }

    #[test]
    fn bounds_are_in_order_and_distinct() {
        for (class, name) in CLASSES {
            let spans = spans(*class);
            assert!(spans.len() > 10, "{name}");
            for (low, high) in spans {
                for number in 1..40 {
                    let points = even_points(low, high, number, |point| round(point, *class)).unwrap();
                    assert!(points.len() < number, "{name}");
                    assert!(
                        points.windows(2).all(|pair| pair[0] < pair[1]),
                        "{name} {low:?} {high:?} {points:?}"
                    );
                    let (low, high) = (round(low, *class), round(high, *class));
                    let within = points.iter().all(|point| low <= *point && *point <= high);
                    assert!(within, "{name} {low:?} {high:?} {points:?}");
                }
            }
        }
    }

    #[test]
    fn a_wide_span_is_divided_into_all_its_parts() {
        for class in [Class::Int4, Class::Float4, Class::Float8, Class::Numeric] {
            let (low, high) = (Value::Int(0), Value::Int(1000));
            let (low, high) = scalar(class, &low).zip(scalar(class, &high)).unwrap();
            assert_eq!(even_points(low, high, 16, |point| round(point, class)).unwrap().len(), 15);
        }
    }
}
