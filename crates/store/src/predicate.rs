//! Which chunks and rows a comparison with a constant may hold for.
//!
//! The engine tests it again, and rounds constants in ways of its own: the limits here are a little wider than they
//! look, and where a comparison's meaning is not known, it may hold everywhere.

use std::ops::Range;

use arrow_array::Array;
use arrow_schema::DataType;
use longshore_values::per_second;

use crate::statistics::{Bound, ColumnStatistics};

const MICROS: i128 = 1_000_000;
const DAY_MILLIS: i128 = 86_400_000;

/// How far a timestamp may lie beyond a constant, in seconds.
const SECONDS: i128 = 1;

/// How far a float may lie beyond a constant, as a part of it.
const TOLERANCE: f64 = 1e-6;

/// The same for an integer or a decimal, which the engine may compare as floats: a power of two.
const TOLERANCE_BITS: u32 = 48;

/// How a column is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// The column's text begins with the constant.
    Start,
}

/// The value that a column is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// An integer or a decimal.
    Number {
        /// Its digits.
        unscaled: i128,
        /// How many of them stand behind the point.
        scale: i8,
    },
    /// A timestamp without a time zone.
    Timestamp {
        /// Microseconds since 1970.
        micros: i64,
    },
    /// A text.
    Text(String),
}

/// A comparison of a column with a constant, which holds for every row that a scan is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The column's name.
    pub column: String,
    /// The comparison.
    pub operator: Operator,
    /// The constant, on the right of the operator.
    pub constant: Constant,
}

/// Between which values, both included, the rows lie for which a predicate may hold.
type Limits = (Option<Bound>, Option<Bound>);

impl Predicate {
    /// Whether it may hold for a row of a column with these statistics.
    pub(crate) fn may_hold(&self, kind: &DataType, statistics: &ColumnStatistics) -> bool {
        let Some(((low, high), (least, most))) = self.limits(kind).zip(statistics.bounds.as_ref()) else {
            return true;
        };
        low.is_none_or(|low| most.reaches(&low)) && high.is_none_or(|high| high.reaches(least))
    }

    /// The rows of a sorted column for which it may hold.
    pub(crate) fn sorted_rows(&self, column: &dyn Array) -> Range<usize> {
        let all = 0..column.len();
        let Some((low, high)) = self.limits(column.data_type()) else { return all };
        let bounds = |row| ColumnStatistics::of(&column.slice(row, 1)).bounds;
        let start = low.map_or(0, |low| {
            first(all.clone(), |row| bounds(row).is_none_or(|(_, most)| most.reaches(&low)))
        });
        let end = high.map_or(all.end, |high| {
            first(start..all.end, |row| bounds(row).is_some_and(|(least, _)| !high.reaches(&least)))
        });
        start..end
    }

    fn limits(&self, kind: &DataType) -> Option<Limits> {
        match &self.constant {
            Constant::Number { unscaled, scale } => self.of_number(kind, *unscaled, *scale),
            Constant::Timestamp { micros } => self.of_timestamp(kind, (*micros).into()),
            Constant::Text(text) => self.of_text(kind, text),
        }
    }

    /// Takes from a constant's surroundings the sides that the operator limits.
    fn between(&self, low: Bound, high: Bound) -> Option<Limits> {
        match self.operator {
            Operator::Equal => Some((Some(low), Some(high))),
            Operator::Less | Operator::LessOrEqual => Some((None, Some(high))),
            Operator::Greater | Operator::GreaterOrEqual => Some((Some(low), None)),
            Operator::Start => None,
        }
    }

    fn of_number(&self, kind: &DataType, unscaled: i128, scale: i8) -> Option<Limits> {
        use DataType::{Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        match *kind {
            Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => {
                self.of_digits(unscaled, scale, 0)
            }
            DataType::Decimal32(_, of) | DataType::Decimal64(_, of) | DataType::Decimal128(_, of) => {
                self.of_digits(unscaled, scale, of)
            }
            DataType::Float32 => {
                self.of_float(unscaled, scale, f32::MIN_POSITIVE.into(), f64::from(f32::MAX) / 2.0)
            }
            DataType::Float64 => self.of_float(unscaled, scale, 1e-300, f64::MAX / 2.0),
            _ => None,
        }
    }

    /// Compares the stored numbers of a column with so many digits behind the point.
    fn of_digits(&self, unscaled: i128, scale: i8, of: i8) -> Option<Limits> {
        let (mut low, mut high) = rescale(unscaled, i32::from(of) - i32::from(scale))?;
        let tolerance = (low.unsigned_abs().max(high.unsigned_abs()) >> TOLERANCE_BITS).cast_signed();
        if low == high && tolerance == 0 {
            high = high.checked_sub(i128::from(self.operator == Operator::Less))?;
            low = low.checked_add(i128::from(self.operator == Operator::Greater))?;
        }
        self.between(Bound::Int(low.saturating_sub(tolerance)), Bound::Int(high.saturating_add(tolerance)))
    }

    fn of_float(&self, unscaled: i128, scale: i8, tiniest: f64, greatest: f64) -> Option<Limits> {
        let value: f64 = format!("{unscaled}e{}", -i32::from(scale)).parse().ok()?;
        if value.abs() >= greatest {
            return None;
        }
        let tolerance = (value.abs() * TOLERANCE).max(tiniest);
        self.between(Bound::float(value - tolerance), Bound::float(value + tolerance))
    }

    fn of_timestamp(&self, kind: &DataType, micros: i128) -> Option<Limits> {
        let seconds = micros.div_euclid(MICROS);
        let days = micros.div_euclid(DAY_MILLIS * 1000);
        let (low, high) = match kind {
            DataType::Date32 => (days - 1, days + 1),
            DataType::Date64 => ((days - 1) * DAY_MILLIS, (days + 2) * DAY_MILLIS - 1),
            DataType::Timestamp(unit, None) => {
                let parts = i128::from(per_second(*unit));
                ((seconds - SECONDS) * parts, (seconds + 1 + SECONDS) * parts)
            }
            // What a time zone makes of the constant, only the engine's session knows.
            _ => return None,
        };
        self.between(Bound::Int(low), Bound::Int(high))
    }

    fn of_text(&self, kind: &DataType, text: &str) -> Option<Limits> {
        if !matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return None;
        }
        let bound = |is_cut| Bound::Text { bytes: text.as_bytes().to_vec(), is_cut };
        match self.operator {
            Operator::Start => Some((Some(bound(false)), Some(bound(true)))),
            _ => self.between(bound(false), bound(false)),
        }
    }
}

/// The next numbers below and above `unscaled` times this power of ten, or itself twice.
fn rescale(unscaled: i128, power: i32) -> Option<(i128, i128)> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return unscaled.checked_mul(factor).map(|exact| (exact, exact));
    }
    let below = unscaled.div_euclid(factor);
    Some((below, below + i128::from(unscaled.rem_euclid(factor) != 0)))
}

/// The first row from which on something is so, or the end.
pub(crate) fn first(rows: Range<usize>, is_so: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = rows;
    while start < end {
        let middle = start.midpoint(end);
        if is_so(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use arrow_array::*;

    use super::*;
    use crate::statistics::random;

    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Start};

    const OPERATORS: [Operator; 5] = [Equal, Less, LessOrEqual, Greater, GreaterOrEqual];

    fn holds(operator: Operator, order: Ordering) -> bool {
        match operator {
            Equal | Start => order.is_eq(),
            Less => order.is_lt(),
            LessOrEqual => order.is_le(),
            Greater => order.is_gt(),
            GreaterOrEqual => order.is_ge(),
        }
    }

    fn predicate(operator: Operator, constant: Constant) -> Predicate {
        Predicate { column: "a".into(), operator, constant }
    }

    fn number(operator: Operator, unscaled: i128, scale: i8) -> Predicate {
        predicate(operator, Constant::Number { unscaled, scale })
    }

    fn text(operator: Operator, text: &str) -> Predicate {
        predicate(operator, Constant::Text(text.into()))
    }

    /// The rows of a sorted column; and tests that the whole of it may hold if one of them may.
    fn rows(column: &dyn Array, predicate: &Predicate) -> Range<usize> {
        let rows = predicate.sorted_rows(column);
        let statistics = ColumnStatistics::of(column);
        assert!(statistics.is_sorted || column.is_empty());
        assert!(rows.is_empty() || predicate.may_hold(column.data_type(), &statistics));
        rows
    }

    #[test]
    fn integers_are_compared_exactly() {
        let column = Int64Array::from(vec![i64::MIN, 1, 1, 2, 4, 4]);
        assert_eq!(rows(&column, &number(Equal, 1, 0)), 1..3);
        assert_eq!(rows(&column, &number(Equal, 3, 0)), 4..4);
        assert_eq!(rows(&column, &number(Less, 1, 0)), 0..1);
        assert_eq!(rows(&column, &number(LessOrEqual, 1, 0)), 0..3);
        assert_eq!(rows(&column, &number(Greater, 1, 0)), 3..6);
        assert_eq!(rows(&column, &number(GreaterOrEqual, 1, 0)), 1..6);
        assert_eq!(rows(&column, &number(Greater, 4, 0)), 6..6);
        assert_eq!(rows(&column, &number(Equal, i64::MIN.into(), 0)), 0..1);
        assert_eq!(rows(&column, &number(Less, i128::MIN, 0)), 0..0);
        assert_eq!(rows(&column.slice(2, 3), &number(Greater, 1, 0)), 1..3);
        assert_eq!(rows(&column.slice(2, 0), &number(Greater, 1, 0)), 0..0);
        assert_eq!(rows(&BooleanArray::from(vec![false, true]), &number(Equal, 1, 0)), 1..2);
        let statistics = ColumnStatistics::of(&column.slice(1, 5));
        let may_hold =
            |operator, unscaled| number(operator, unscaled, 0).may_hold(&DataType::Int64, &statistics);
        assert_eq!(
            [0, 1, 3, 4, 5].map(|constant| may_hold(Equal, constant)),
            [false, true, true, true, false]
        );
        assert_eq!([1, 2].map(|constant| may_hold(Less, constant)), [false, true]);
        assert_eq!([3, 4].map(|constant| may_hold(Greater, constant)), [true, false]);
        assert_eq!([0, 1].map(|constant| may_hold(LessOrEqual, constant)), [false, true]);
        assert_eq!([4, 5].map(|constant| may_hold(GreaterOrEqual, constant)), [true, false]);
    }

    #[test]
    fn constants_that_may_be_rounded_take_both_neighbours() {
        let column = Int32Array::from(vec![-3, -2, -1, 0, 1, 2, 3]);
        assert_eq!(rows(&column, &number(Equal, 15, 1)), 4..6);
        assert_eq!(rows(&column, &number(Equal, -15, 1)), 1..3);
        assert_eq!(rows(&column, &number(Less, 15, 1)), 0..6);
        assert_eq!(rows(&column, &number(Greater, -15, 1)), 1..7);
        assert_eq!(rows(&column, &number(Equal, -20, 1)), 1..2);
        assert_eq!(rows(&column, &number(Equal, 1, -1)), 7..7);
        assert_eq!(rows(&column, &number(Equal, -1, 38)), 2..4);
        assert_eq!(rows(&column, &number(Equal, -1, 100)), 0..7);
        assert_eq!(rows(&column, &number(Equal, 1, -100)), 0..7);
        let column = Decimal128Array::from(vec![122, 123, 124]).with_precision_and_scale(15, 2).unwrap();
        assert_eq!(rows(&column, &number(Equal, 123, 2)), 1..2);
        assert_eq!(rows(&column, &number(Equal, 1235, 3)), 1..3);
        assert_eq!(rows(&column, &number(Less, 123, 2)), 0..1);
        assert_eq!(rows(&column, &number(Greater, 1, 0)), 0..3);
        // The engine may compare them as floats, which do not tell these apart.
        let near = 10_i64.pow(18);
        let column = Int64Array::from(vec![0, near - 1, near, near + 1, i64::MAX]);
        assert_eq!(rows(&column, &number(Less, near.into(), 0)), 0..4);
        assert_eq!(rows(&column, &number(Equal, near.into(), 0)), 1..4);
    }

    #[test]
    fn floats_have_a_tolerance() {
        let column =
            Float64Array::from(vec![f64::NEG_INFINITY, -1.0, -0.0, 0.1, 0.100_000_01, 0.2, f64::INFINITY]);
        assert_eq!(rows(&column, &number(Equal, 1, 1)), 3..5);
        assert_eq!(rows(&column, &number(Less, 1, 1)), 0..5);
        assert_eq!(rows(&column, &number(Greater, 1, 1)), 3..7);
        assert_eq!(rows(&column, &number(Equal, 0, 0)), 2..3);
        assert_eq!(rows(&Float32Array::from(vec![0.1, 0.2]), &number(Equal, 2, 1)), 1..2);
        assert_eq!(rows(&Float32Array::from(vec![0.1, 0.2]), &number(Equal, 3, -38)), 0..2);
        let with_nan = ColumnStatistics::of(&Float64Array::from(vec![0.0, f64::NAN]));
        assert!(number(Greater, 5, 0).may_hold(&DataType::Float64, &with_nan));
    }

    #[test]
    fn timestamps_have_a_tolerance_and_no_zone() {
        let timestamp = |operator, micros| predicate(operator, Constant::Timestamp { micros });
        let seconds: Vec<i64> = (-5..=5).collect();
        let column = TimestampSecondArray::from(seconds.clone());
        assert_eq!(rows(&column, &timestamp(Equal, -1)), 3..7);
        assert_eq!(rows(&column, &timestamp(Less, 0)), 0..8);
        assert_eq!(rows(&column, &timestamp(GreaterOrEqual, 0)), 4..11);
        let column =
            TimestampNanosecondArray::from_iter_values(seconds.iter().map(|second| second * 1_000_000_000));
        assert_eq!(rows(&column, &timestamp(Equal, 0)), 4..8);
        assert_eq!(rows(&column, &timestamp(Equal, i64::MAX)), 11..11);
        assert_eq!(rows(&column.clone().with_timezone("UTC"), &timestamp(Equal, i64::MAX)), 0..11);
        let day = 86_400_000_000;
        assert_eq!(rows(&Date32Array::from(vec![-3, -2, -1, 0, 1]), &timestamp(Equal, -1)), 1..4);
        assert_eq!(rows(&Date32Array::from(vec![1, 2, 3, 4]), &timestamp(Greater, 3 * day + 1)), 1..4);
        let column = Date64Array::from_iter_values((-3..=1).map(|days| days * 86_400_000));
        assert_eq!(rows(&column, &timestamp(Equal, -1)), 1..4);
        assert_eq!(rows(&Int64Array::from(vec![1, 2]), &timestamp(Equal, 7 * day)), 0..2);
    }

    #[test]
    fn texts_are_compared_by_their_bytes() {
        let (long, longer) = ("m".repeat(32), "m".repeat(33));
        let column = StringArray::from(vec!["", "ab", "abc", "abd", "b", &long, &longer, "ÿ"]);
        assert_eq!(rows(&column, &text(Equal, "abc")), 2..3);
        assert_eq!(rows(&column, &text(Equal, "")), 0..1);
        assert_eq!(rows(&column, &text(Start, "ab")), 1..4);
        assert_eq!(rows(&column, &text(Start, "")), 0..8);
        assert_eq!(rows(&column, &text(Start, "\u{10ffff}")), 8..8);
        assert_eq!(rows(&column, &text(GreaterOrEqual, "abd")), 3..8);
        assert_eq!(rows(&column, &text(Less, "b")), 0..5);
        assert_eq!(rows(&column, &text(Equal, &long)), 5..7);
        assert_eq!(rows(&column, &text(Equal, &longer)), 6..7);
        assert_eq!(rows(&column, &text(Equal, &format!("{long}z"))), 6..7);
        assert_eq!(rows(&column, &text(Start, &"m".repeat(40))), 6..7);
        let may_hold = |predicate: &Predicate, column: &dyn Array| {
            predicate.may_hold(column.data_type(), &ColumnStatistics::of(column))
        };
        let column = StringViewArray::from(vec!["b", &longer]);
        assert!(may_hold(&text(Equal, &format!("{longer}z")), &column));
        assert!(!may_hold(&text(Equal, "n"), &column));
        assert!(!may_hold(&text(Start, "a"), &column));
        assert!(may_hold(&text(Start, "mmm"), &column));
    }

    #[test]
    fn what_is_not_understood_may_hold() {
        let all =
            |predicate: Predicate, column: &dyn Array| assert_eq!(rows(column, &predicate), 0..column.len());
        all(number(Equal, 9, 0), &StringArray::from(vec!["1", "2"]));
        all(text(Equal, "9"), &Int64Array::from(vec![1, 2]));
        all(text(Equal, "9"), &BinaryArray::from(vec![&b"1"[..], b"2"]));
        all(number(Start, 9, 0), &Int64Array::from(vec![1, 2]));
        all(number(Equal, 9, 0), &Date32Array::from(vec![1, 2]));
        all(predicate(Equal, Constant::Timestamp { micros: 0 }), &Time64MicrosecondArray::from(vec![1, 2]));
        let unknown = ColumnStatistics { nulls: 2, bounds: None, is_sorted: false };
        assert!(number(Equal, 9, 0).may_hold(&DataType::Int64, &unknown));
    }

    /// No row is left out for which the predicate holds; and of integers and short texts, all of the others.
    #[test]
    fn no_row_that_counts_is_left_out() {
        let mut below = random(11);
        let alphabet = ["a", "b", "\u{ff}", "\0"];
        for _ in 0..2_000 {
            let mut numbers: Vec<i64> = (0..below(9)).map(|_| below(400).cast_signed() - 200).collect();
            numbers.sort_unstable();
            let scale = i8::try_from(below(4)).unwrap();
            let constant = below(4_000).cast_signed() - 2_000;
            let operator = OPERATORS[usize::try_from(below(5)).unwrap()];
            let predicate = number(operator, constant.into(), scale);
            let ten = 10_i64.pow(scale.unsigned_abs().into());
            let decimals = Decimal128Array::from_iter_values(numbers.iter().map(|value| i128::from(*value)));
            let floats = numbers.iter().map(|value| f64::from(i32::try_from(*value).unwrap()) / 10.0);
            // The column's digits behind the point, and whether nothing else may be left.
            let columns: [(i64, bool, ArrayRef); 3] = [
                (1, constant % ten == 0, Arc::new(Int64Array::from(numbers.clone()))),
                (10, constant * 10 % ten == 0, Arc::new(decimals.with_precision_and_scale(9, 1).unwrap())),
                (10, false, Arc::new(Float64Array::from_iter_values(floats))),
            ];
            for (parts, is_exact, column) in columns {
                let found = rows(&column, &predicate);
                for (row, value) in numbers.iter().enumerate() {
                    let counts = holds(operator, (value * ten).cmp(&(constant * parts)));
                    assert!(!counts || found.contains(&row), "{predicate:?} {column:?}");
                    assert!(!is_exact || counts == found.contains(&row), "{predicate:?} {column:?}");
                }
            }
            let word = |below: &mut dyn FnMut(u64) -> u64, most| -> String {
                let start = if below(2) == 0 { "a".repeat(30) } else { String::new() };
                let end = (0..below(most)).map(|_| alphabet[usize::try_from(below(4)).unwrap()]);
                start + &end.collect::<String>()
            };
            let mut texts: Vec<String> = (0..below(9)).map(|_| word(&mut below, 6)).collect();
            texts.sort_unstable();
            let constant = word(&mut below, 5);
            let column = StringArray::from(texts.clone());
            for operator in [Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Start] {
                let found = rows(&column, &text(operator, &constant));
                for (row, value) in texts.iter().enumerate() {
                    let is_prefix = operator == Start && value.starts_with(&constant);
                    let counts = is_prefix || operator != Start && holds(operator, value.cmp(&constant));
                    assert!(!counts || found.contains(&row), "{operator:?} {constant:?} {texts:?}");
                    let is_exact = value.len() <= 32 && matches!(operator, Equal | Start);
                    assert!(
                        !is_exact || counts == found.contains(&row),
                        "{operator:?} {constant:?} {texts:?}"
                    );
                }
            }
        }
    }
}
