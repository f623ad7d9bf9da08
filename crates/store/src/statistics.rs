//! The facts of a chunk's column without reading it: its NULLs, its least and greatest value, its order.

use arrow_arith::aggregate::{max, min};
use arrow_array::cast::AsArray;
use arrow_array::iterator::ArrayIter;
use arrow_array::types::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef, ArrowNumericType, PrimitiveArray, UInt8Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use serde::{Deserialize, Serialize};

/// The bytes of a text that are kept.
const PREFIX: usize = 32;

/// The least or the greatest value of a column. A text that is cut comes after its beginning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Bound {
    /// The stored number of an integer, a boolean, a time or a decimal, and the place of a float among all floats.
    Int(i128),
    /// A text or a binary value, of which the beginning may be all that is kept.
    Text { bytes: Vec<u8>, is_cut: bool },
}

impl Bound {
    fn text(bytes: &[u8]) -> Self {
        let kept = &bytes[..bytes.len().min(PREFIX)];
        Self::Text { bytes: kept.to_vec(), is_cut: kept.len() < bytes.len() }
    }

    /// Of a float; never NaN. Its bits are in order but for those below zero, which are in reverse.
    pub(crate) fn float(value: f64) -> Self {
        // There is one zero.
        let bits = (value + 0.0).to_bits().cast_signed();
        Self::Int(if bits < 0 { bits ^ i64::MAX } else { bits }.into())
    }

    /// Whether values up to this one may include `least` or more: surely so where the two cannot be compared.
    pub(crate) fn reaches(&self, least: &Self) -> bool {
        match (self, least) {
            (Self::Int(most), Self::Int(least)) => most >= least,
            (Self::Text { bytes: most, is_cut }, Self::Text { bytes: least, .. }) => {
                let compared = if *is_cut { least.len().min(most.len()) } else { least.len() };
                most.as_slice() >= &least[..compared]
            }
            _ => true,
        }
    }
}

/// Has a function work with a column of texts or binary values, however they lie; something else of a column of another type.
macro_rules! with_texts {
    ($column:expr, $work:expr, $otherwise:expr) => {
        match $column.data_type() {
            DataType::Utf8 => $work($column.as_string::<i32>()),
            DataType::LargeUtf8 => $work($column.as_string::<i64>()),
            DataType::Utf8View => $work($column.as_string_view()),
            DataType::Binary => $work($column.as_binary::<i32>()),
            DataType::LargeBinary => $work($column.as_binary::<i64>()),
            DataType::BinaryView => $work($column.as_binary_view()),
            DataType::FixedSizeBinary(_) => $work($column.as_fixed_size_binary()),
            _ => $otherwise,
        }
    };
}
pub(crate) use with_texts;

/// The facts of one column of a chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnStatistics {
    /// How many rows are NULL.
    pub(crate) nulls: u64,
    /// The least and the greatest value; none where all are NULL, one is NaN, or the type has no order here.
    pub(crate) bounds: Option<(Bound, Bound)>,
    /// Whether no row is NULL or less than the one before it.
    pub(crate) is_sorted: bool,
}

impl ColumnStatistics {
    /// Looks at every value of a column in parts, none of which is empty.
    pub(crate) fn of_parts(parts: &[ArrayRef]) -> Self {
        let facts: Vec<Self> = parts.iter().map(|part| Self::of(part)).collect();
        // The last row of a part, and the first of the next.
        let meet = |pair: &[ArrayRef]| concat(&[&pair[0].slice(pair[0].len() - 1, 1), &pair[1].slice(0, 1)]);
        let is_sorted = facts.iter().all(|facts| facts.is_sorted)
            && parts.windows(2).all(|pair| meet(pair).is_ok_and(|rows| Self::of(&rows).is_sorted));
        // A part of NULLs has no bounds, nor needs them.
        let known = facts.iter().zip(parts).filter(|(facts, part)| facts.nulls < part.len() as u64);
        let known: Option<Vec<_>> = known.map(|(facts, _)| facts.bounds.clone()).collect();
        let bounds = known.and_then(|known| {
            let (least, most): (Vec<Bound>, Vec<Bound>) = known.into_iter().unzip();
            least.into_iter().min().zip(most.into_iter().max())
        });
        Self { nulls: facts.iter().map(|facts| facts.nulls).sum(), bounds, is_sorted }
    }

    /// Looks at every value of a column.
    pub(crate) fn of(column: &dyn Array) -> Self {
        if let Some(dictionary) = column.as_any_dictionary_opt() {
            // Values that no row has make the bounds wider, no more.
            let (keys, values) = (Self::of(dictionary.keys()), Self::of(dictionary.values()));
            let nulls = column.logical_null_count() as u64;
            return Self { nulls, bounds: values.bounds, is_sorted: keys.is_sorted && values.is_sorted };
        }
        let (bounds, is_sorted) = match column.data_type() {
            DataType::Boolean => {
                let numbers = column.as_boolean().iter().map(|value| value.map(u8::from));
                of_integers::<UInt8Type>(&numbers.collect::<UInt8Array>())
            }
            DataType::Int8 => of_integers::<Int8Type>(column),
            DataType::Int16 => of_integers::<Int16Type>(column),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => {
                of_integers::<Int32Type>(column)
            }
            DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Decimal64(..) => {
                of_integers::<Int64Type>(column)
            }
            DataType::Timestamp(..) | DataType::Duration(_) => of_integers::<Int64Type>(column),
            DataType::UInt8 => of_integers::<UInt8Type>(column),
            DataType::UInt16 => of_integers::<UInt16Type>(column),
            DataType::UInt32 => of_integers::<UInt32Type>(column),
            DataType::UInt64 => of_integers::<UInt64Type>(column),
            DataType::Decimal128(..) => of_integers::<Decimal128Type>(column),
            DataType::Float32 => of_numbers::<Float32Type>(column, |value| Bound::float(value.into())),
            DataType::Float64 => of_numbers::<Float64Type>(column, Bound::float),
            _ => with_texts!(column, of_texts, (None, false)),
        };
        Self { nulls: column.logical_null_count() as u64, bounds, is_sorted }
    }
}

/// Whether two columns may have a value in common.
pub(crate) fn overlap(left: &ColumnStatistics, right: &ColumnStatistics) -> bool {
    let bounds = left.bounds.as_ref().zip(right.bounds.as_ref());
    bounds.is_none_or(|((least, most), (other_least, other_most))| {
        most.reaches(other_least) && other_most.reaches(least)
    })
}

/// The bounds of a column, and whether it is sorted.
type Extent = (Option<(Bound, Bound)>, bool);

fn of_integers<T: ArrowNumericType<Native: Into<i128>>>(column: &dyn Array) -> Extent {
    of_numbers::<T>(column, |value| Bound::Int(value.into()))
}

/// The extent of a column whose numbers are stored as a type's.
fn of_numbers<T: ArrowNumericType>(column: &dyn Array, bound: impl Fn(T::Native) -> Bound) -> Extent {
    let data = column.to_data();
    let values = ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
    let values = PrimitiveArray::<T>::new(values, column.nulls().cloned());
    let is_sorted = column.null_count() == 0 && values.values().is_sorted();
    // A NaN lies at one end of the order, and is not equal to itself.
    let is_number = |value: &T::Native| value.partial_cmp(value).is_some();
    let ends = min(&values).filter(is_number).zip(max(&values).filter(is_number));
    (ends.map(|(least, most)| (bound(least), bound(most))), ends.is_some() && is_sorted)
}

fn of_texts<T: AsRef<[u8]> + Copy + Ord>(column: impl ArrayAccessor<Item = T> + Copy) -> Extent {
    let texts = || ArrayIter::new(column).flatten();
    let is_sorted = !column.is_empty() && column.null_count() == 0 && texts().is_sorted();
    // Their beginnings as numbers spare most of them a comparison.
    let mut ends: Option<[(u64, T); 2]> = None;
    for text in texts() {
        let text = (beginning(text.as_ref()), text);
        let [least, most] = ends.get_or_insert([text, text]);
        *least = text.min(*least);
        *most = text.max(*most);
    }
    (ends.map(|ends| ends.map(|(_, text)| Bound::text(text.as_ref())).into()), is_sorted)
}

/// The first bytes of a text as a number of the same order.
fn beginning(text: &[u8]) -> u64 {
    let (mut bytes, length) = ([0; 8], text.len().min(8));
    bytes[..length].copy_from_slice(&text[..length]);
    u64::from_be_bytes(bytes)
}

/// Numbers for tests: the same each time.
#[cfg(test)]
pub(crate) fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::sync::Arc;

    use arrow_array::*;

    use super::*;
    use arrow_schema::Field;

    use crate::chunk::{ChunkFile, FIELD_ID};

    fn of(column: impl Array) -> ColumnStatistics {
        ColumnStatistics::of(&column)
    }

    fn with_bounds(nulls: u64, least: Bound, most: Bound, is_sorted: bool) -> ColumnStatistics {
        ColumnStatistics { nulls, bounds: Some((least, most)), is_sorted }
    }

    fn ints(nulls: u64, least: i128, most: i128, is_sorted: bool) -> ColumnStatistics {
        with_bounds(nulls, Bound::Int(least), Bound::Int(most), is_sorted)
    }

    fn texts(least: &str, most: &str) -> (Bound, Bound) {
        (Bound::text(least.as_bytes()), Bound::text(most.as_bytes()))
    }

    const UNKNOWN: ColumnStatistics = ColumnStatistics { nulls: 0, bounds: None, is_sorted: false };

    #[test]
    fn numbers_have_bounds_without_nulls() {
        let column = Int64Array::from(vec![Some(9), None, Some(-3), Some(i64::MIN), Some(i64::MAX), None]);
        assert_eq!(of(column.slice(0, 3)), ints(1, -3, 9, false));
        assert_eq!(of(column.slice(2, 2)), ints(0, i64::MIN.into(), -3, false));
        assert_eq!(of(column.slice(3, 2)), ints(0, i64::MIN.into(), i64::MAX.into(), true));
        assert_eq!(of(column.slice(5, 1)), ColumnStatistics { nulls: 1, ..UNKNOWN });
        assert_eq!(of(column.slice(2, 0)), UNKNOWN);
        assert_eq!(of(UInt64Array::from(vec![u64::MAX, 0])), ints(0, 0, u64::MAX.into(), false));
        assert_eq!(of(Int8Array::from(vec![-128, 127, 127])), ints(0, -128, 127, true));
        assert_eq!(of(Date32Array::from(vec![3, 1, 2])), ints(0, 1, 3, false));
        let column = TimestampMicrosecondArray::from(vec![-5, 5]).with_timezone("UTC");
        assert_eq!(of(column), ints(0, -5, 5, true));
        assert_eq!(
            of(Decimal128Array::from(vec![i128::MAX, i128::MIN])),
            ints(0, i128::MIN, i128::MAX, false)
        );
    }

    #[test]
    fn every_lane_counts() {
        for at in 0..19 {
            let low = Int32Array::from_iter_values((0..19).map(|row| if row == at { -1 } else { row }));
            assert_eq!(of(low), ints(0, -1, if at == 18 { 17 } else { 18 }, at == 0));
            let nan = Float32Array::from_iter_values(
                (0..19_u8).map(|row| if i32::from(row) == at { f32::NAN } else { row.into() }),
            );
            assert_eq!(of(nan), UNKNOWN);
        }
    }

    #[test]
    fn booleans_are_zero_and_one() {
        let column = BooleanArray::from(vec![Some(true), Some(false), Some(false), Some(true), None]);
        assert_eq!(of(column.slice(0, 2)), ints(0, 0, 1, false));
        assert_eq!(of(column.slice(1, 3)), ints(0, 0, 1, true));
        assert_eq!(of(column.slice(3, 2)), ints(1, 1, 1, false));
        assert_eq!(of(column.slice(4, 1)), ColumnStatistics { nulls: 1, ..UNKNOWN });
    }

    #[test]
    fn floats_have_bounds_unless_one_is_nan() {
        let column = Float64Array::from(vec![f64::NAN, -0.0, 0.0, -0.0, f64::INFINITY, -1.5]);
        assert_eq!(of(column.clone()), UNKNOWN);
        assert_eq!(of(column.slice(0, 1)), UNKNOWN);
        let infinite = Bound::float(f64::INFINITY);
        assert_eq!(of(column.slice(1, 4)), with_bounds(0, Bound::float(0.0), infinite.clone(), true));
        assert_eq!(of(column.slice(1, 5)), with_bounds(0, Bound::float(-1.5), infinite, false));
        let hidden = Float64Array::new(vec![f64::NAN, 2.0].into(), Some(vec![false, true].into()));
        assert_eq!(of(hidden), with_bounds(1, Bound::float(2.0), Bound::float(2.0), false));
    }

    #[test]
    fn some_types_have_no_order() {
        assert_eq!(of(NullArray::new(2)), ColumnStatistics { nulls: 2, ..UNKNOWN });
        assert_eq!(of(Decimal256Array::from(vec![Some(1.into())])), UNKNOWN);
        assert_eq!(of(IntervalYearMonthArray::from(vec![1])), UNKNOWN);
    }

    #[test]
    fn dictionaries_have_the_bounds_of_their_values() {
        let of = |rows: &[Option<&str>]| of(rows.iter().copied().collect::<DictionaryArray<Int32Type>>());
        let text_bounds = |nulls, least, most, is_sorted| {
            let (least, most) = texts(least, most);
            with_bounds(nulls, least, most, is_sorted)
        };
        assert_eq!(of(&[Some("b"), Some("c"), None, Some("a")]), text_bounds(1, "a", "c", false));
        assert_eq!(of(&[Some("a"), Some("a"), Some("c")]), text_bounds(0, "a", "c", true));
        // Only the values are sorted, or only the keys.
        assert_eq!(of(&[Some("a"), Some("c"), Some("a")]), text_bounds(0, "a", "c", false));
        assert_eq!(of(&[Some("c"), Some("a")]), text_bounds(0, "a", "c", false));
        assert_eq!(of(&[None]), ColumnStatistics { nulls: 1, ..UNKNOWN });
    }

    #[test]
    fn long_texts_are_cut_off() {
        let (exact, longer) = ("x".repeat(32), "x".repeat(33));
        let column = StringArray::from(vec![longer.as_str(), exact.as_str()]);
        let start = Bound::Text { bytes: exact.clone().into_bytes(), is_cut: true };
        let whole = Bound::Text { bytes: exact.into_bytes(), is_cut: false };
        assert_eq!(of(column), with_bounds(0, whole, start, false));
        let column = BinaryArray::from(vec![&[0xff; 40][..], &[0xff; 31], b"", b"\0"]);
        let cut = Bound::Text { bytes: vec![0xff; 32], is_cut: true };
        assert_eq!(of(column), with_bounds(0, Bound::text(b""), cut, false));
    }

    #[test]
    fn parts_have_the_facts_of_the_whole() {
        let mut random = random(5);
        let mut below = |most: u32| u32::try_from(random(most.into())).unwrap();
        for round in 0..300 {
            let (rows, kinds) = (1 + below(12), 1 + below(4));
            // Sorted, as often as not.
            let mut number = |row: u32| match below(kinds) {
                0 | 1 => Some(row),
                2 => None,
                _ => Some(below(12)),
            };
            let numbers: Vec<Option<u32>> = (0..rows).map(&mut number).collect();
            let given = || numbers.iter().copied();
            // Of some only the beginning is kept, which is all of another.
            let text =
                |number: u32| "x".repeat(30 + number as usize % 6) + if number == 11 { "y" } else { "" };
            let float = |number: u32| if number == 11 { f64::NAN } else { number.into() };
            let columns: [ArrayRef; 3] = [
                Arc::new(given().collect::<UInt32Array>()),
                Arc::new(given().map(|number| number.map(text)).collect::<StringArray>()),
                Arc::new(given().map(|number| number.map(float)).collect::<Float64Array>()),
            ];
            for column in columns {
                let (first, second) = (1 + below(rows) as usize, 1 + below(rows) as usize);
                let ends = [0, first.min(second), first.max(second), column.len()];
                let parts = ends.windows(2).filter(|part| part[0] < part[1]);
                let parts: Vec<_> = parts.map(|part| column.slice(part[0], part[1] - part[0])).collect();
                assert_eq!(ColumnStatistics::of_parts(&parts), of(column), "{round}");
            }
        }
    }

    #[test]
    fn texts_of_every_kind_have_the_bounds_of_their_bytes() {
        let mut below = random(7);
        for _ in 0..300 {
            let text = |below: &mut dyn FnMut(u64) -> u64| {
                (0..below(12)).map(|_| ["a", "b", "\0", "ÿ"][usize::try_from(below(4)).unwrap()]).collect()
            };
            let rows: Vec<Option<String>> =
                (0..below(6)).map(|_| (below(4) > 0).then(|| text(&mut below))).collect();
            let present = || rows.iter().flatten().map(String::as_str);
            let bounds = present().min().zip(present().max()).map(|(least, most)| texts(least, most));
            let is_sorted = !rows.is_empty() && rows.iter().all(Option::is_some) && present().is_sorted();
            let nulls = (rows.len() - present().count()) as u64;
            let expected = ColumnStatistics { nulls, bounds, is_sorted };
            assert_eq!(of(StringArray::from(rows.clone())), expected, "{rows:?}");
            assert_eq!(of(StringViewArray::from_iter(rows.clone())), expected, "{rows:?}");
            assert_eq!(of(LargeBinaryArray::from_iter(rows.clone())), expected, "{rows:?}");
        }
        let column = FixedSizeBinaryArray::try_from_iter([[3_u8, 1], [2, 9]].into_iter()).unwrap();
        assert_eq!(of(column), with_bounds(0, Bound::text(&[2, 9]), Bound::text(&[3, 1]), false));
    }

    #[test]
    fn columns_overlap_unless_their_bounds_lie_apart() {
        let text = |least: &str, most: &str| {
            let (least, most) = texts(least, most);
            with_bounds(0, least, most, false)
        };
        assert!(overlap(&ints(0, 1, 5, true), &ints(9, 5, 6, false)));
        assert!(!overlap(&ints(0, 1, 5, true), &ints(0, 6, 9, true)));
        assert!(!overlap(&ints(0, 6, 9, true), &ints(0, 1, 5, true)));
        assert!(overlap(&ints(0, 1, 5, true), &UNKNOWN));
        assert!(overlap(&ints(0, 1, 5, true), &text("a", "b")));
        let long = "m".repeat(40);
        assert!(overlap(&text("a", &long), &text(&format!("{}z", &long[..32]), "z")));
        assert!(!overlap(&text("a", &long), &text("n", "z")));
        assert!(overlap(&text(&long, "z"), &text("a", &long[..33])));
        assert!(!overlap(&text(&long, "z"), &text("a", "l")));
    }

    #[test]
    fn statistics_outlive_json() {
        let long = "\u{ff}".repeat(40);
        let columns = BTreeMap::from([
            (-1, ints(u64::MAX, i128::MIN, i128::MAX, true)),
            (0, UNKNOWN),
            (7, with_bounds(0, Bound::float(f64::NEG_INFINITY), Bound::float(0.1 + 0.2), false)),
            (8, with_bounds(0, Bound::float(5e-324), Bound::float(f64::MAX), false)),
            (9, with_bounds(1, Bound::text(b""), Bound::text(long.as_bytes()), false)),
        ]);
        let json = serde_json::to_string(&columns).unwrap();
        assert_eq!(serde_json::from_str::<BTreeMap<i32, ColumnStatistics>>(&json).unwrap(), columns);
    }

    #[test]
    fn damaged_json_is_an_error() {
        let entry =
            |bound: &str| format!(r#"{{"1":{{"nulls":0,"bounds":[{bound},{bound}],"is_sorted":true}}}}"#);
        let field = Field::new("a", DataType::Int8, true)
            .with_metadata(HashMap::from([(FIELD_ID.to_owned(), "1".to_owned())]));
        let read = |text: String| {
            ChunkFile::new("a.arrow".into(), 1, (1, 1), None, text)
                .statistics(&field)
                .map(|known| known.is_some())
        };
        assert!(read(entry(r#"{"Int":1}"#)).unwrap());
        let bounds = [
            "1",
            "[]",
            r#""Int""#,
            r#"{"Int":"x"}"#,
            r#"{"Int":1.5}"#,
            r#"{"Text":{"bytes":[256],"is_cut":true}}"#,
            r#"{"Text":{"bytes":[1]}}"#,
            r#"{"Other":1}"#,
        ];
        let whole = [
            "",
            "[",
            "[]",
            "null",
            r#"{"1":0}"#,
            r#"{"a":{"nulls":0,"bounds":null,"is_sorted":true}}"#,
            r#"{"1":{"nulls":-1,"bounds":null,"is_sorted":true}}"#,
            r#"{"1":{"nulls":0}}"#,
            r#"{"1":{"nulls":0,"bounds":[{"Int":1}],"is_sorted":true}}"#,
        ];
        for text in bounds.iter().map(|bound| entry(bound)).chain(whole.map(String::from)) {
            let error = read(text.clone()).unwrap_err();
            assert_eq!(error.kind(), longshore_core::Kind::Operational, "{text}");
            assert!(error.message().starts_with("the catalogue is damaged: "), "{text}");
        }
    }

    #[test]
    fn dynamic_arrays_are_columns_too() {
        let column: ArrayRef = Arc::new(Int16Array::from(vec![4]));
        assert_eq!(ColumnStatistics::of(&column), ints(0, 4, 4, true));
    }
}
