//! What is known of a chunk's column without reading it: its NULLs, its least and greatest value, its order.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, BooleanArray, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_schema::DataType;
use longshore_core::{Error, Result};
use serde_json::{Map, Value, json};

/// The bytes of a text that are kept.
const PREFIX: usize = 32;

/// Values that are compared side by side.
const LANES: usize = 8;

/// The least or the greatest value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    /// The stored number of an integer, a boolean, a time or a decimal.
    Int(i128),
    /// A float; never NaN.
    Float(f64),
    /// A text or a binary value, of which the beginning may be all that is kept.
    Text { bytes: Vec<u8>, is_whole: bool },
}

impl Bound {
    fn text(bytes: &[u8]) -> Self {
        let kept = &bytes[..bytes.len().min(PREFIX)];
        Self::Text { bytes: kept.to_vec(), is_whole: kept.len() == bytes.len() }
    }

    /// Whether values up to this one may include `least` or more: surely so where the two cannot be compared.
    pub(crate) fn reaches(&self, least: &Self) -> bool {
        match (self, least) {
            (Self::Int(most), Self::Int(least)) => most >= least,
            (Self::Float(most), Self::Float(least)) => most >= least,
            (Self::Text { bytes: most, is_whole }, Self::Text { bytes: least, .. }) => {
                let compared = if *is_whole { least.len() } else { least.len().min(most.len()) };
                most.as_slice() >= &least[..compared]
            }
            _ => true,
        }
    }
}

/// What is known of one column of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnStatistics {
    /// How many rows are NULL.
    pub(crate) nulls: u64,
    /// The least and the greatest value; none where all are NULL, one is NaN, or the type has no order here.
    pub(crate) bounds: Option<(Bound, Bound)>,
    /// Whether no row is NULL or less than the one before it.
    pub(crate) is_sorted: bool,
}

impl ColumnStatistics {
    /// Looks at every value of a column.
    pub(crate) fn of(column: &dyn Array) -> Self {
        let int32 = |value: i32| Bound::Int(value.into());
        let int64 = |value: i64| Bound::Int(value.into());
        let (bounds, is_sorted) = match column.data_type() {
            DataType::Boolean => of_booleans(column.as_boolean()),
            DataType::Int8 => of_numbers(column, |value: i8| Bound::Int(value.into())),
            DataType::Int16 => of_numbers(column, |value: i16| Bound::Int(value.into())),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => {
                of_numbers(column, int32)
            }
            DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Decimal64(..) => {
                of_numbers(column, int64)
            }
            DataType::Timestamp(..) | DataType::Duration(_) => of_numbers(column, int64),
            DataType::UInt8 => of_numbers(column, |value: u8| Bound::Int(value.into())),
            DataType::UInt16 => of_numbers(column, |value: u16| Bound::Int(value.into())),
            DataType::UInt32 => of_numbers(column, |value: u32| Bound::Int(value.into())),
            DataType::UInt64 => of_numbers(column, |value: u64| Bound::Int(value.into())),
            DataType::Decimal128(..) => of_numbers(column, Bound::Int),
            DataType::Float32 => of_numbers(column, |value: f32| Bound::Float(value.into())),
            DataType::Float64 => of_numbers(column, Bound::Float),
            DataType::Utf8 => of_texts(column.as_string::<i32>()),
            DataType::LargeUtf8 => of_texts(column.as_string::<i64>()),
            DataType::Utf8View => of_texts(column.as_string_view()),
            DataType::Binary => of_texts(column.as_binary::<i32>()),
            DataType::LargeBinary => of_texts(column.as_binary::<i64>()),
            DataType::BinaryView => of_texts(column.as_binary_view()),
            DataType::FixedSizeBinary(_) => of_texts(column.as_fixed_size_binary()),
            _ => (None, false),
        };
        Self { nulls: column.logical_null_count() as u64, bounds, is_sorted }
    }
}

/// Whether two columns may have a value in common.
pub(crate) fn overlap(left: &ColumnStatistics, right: &ColumnStatistics) -> bool {
    let (Some((left_least, left_most)), Some((right_least, right_most))) = (&left.bounds, &right.bounds)
    else {
        return true;
    };
    left_most.reaches(right_least) && right_most.reaches(left_least)
}

/// The bounds of a column, and whether it is sorted.
type Extent = (Option<(Bound, Bound)>, bool);

/// The numbers of a column as they are stored; below a NULL there is anything.
pub(crate) fn stored<T: ArrowNativeType>(column: &dyn Array) -> ScalarBuffer<T> {
    let data = column.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// Visits the runs of rows that are not NULL.
fn for_each_run(column: &dyn Array, mut visit: impl FnMut(Range<usize>)) {
    match column.nulls() {
        Some(nulls) => nulls.valid_slices().for_each(|(start, end)| visit(start..end)),
        None if column.is_empty() => {}
        None => visit(0..column.len()),
    }
}

fn of_booleans(column: &BooleanArray) -> Extent {
    let valid = column.len() - column.null_count();
    if valid == 0 {
        return (None, false);
    }
    let trues = column.true_count();
    let is_sorted = column.null_count() == 0 && column.slice(0, valid - trues).true_count() == 0;
    let bounds = (Bound::Int(i128::from(trues == valid)), Bound::Int(i128::from(trues > 0)));
    (Some(bounds), is_sorted)
}

fn of_numbers<T: ArrowNativeType>(column: &dyn Array, bound: impl Fn(T) -> Bound) -> Extent {
    let values = stored::<T>(column);
    // Of a sorted column the ends are the bounds; of another, this ends soon.
    if column.null_count() == 0 && values.is_sorted() && values.first().is_some_and(is_number) {
        return (Some((bound(values[0]), bound(values[values.len() - 1]))), true);
    }
    let mut extent: Option<(T, T)> = None;
    let mut has_nan = false;
    for_each_run(column, |run| match (extent_of(&values[run]), extent) {
        (Some(of_run), None) => extent = Some(of_run),
        (Some((low, high)), Some((least, most))) => extent = Some((lesser(low, least), greater(high, most))),
        (None, _) => has_nan = true,
    });
    let bounds = extent.filter(|_| !has_nan).map(|(least, most)| (bound(least), bound(most)));
    (bounds, false)
}

#[expect(clippy::eq_op, reason = "a NaN is not equal to itself")]
fn is_number<T: PartialOrd>(value: &T) -> bool {
    value == value
}

fn lesser<T: PartialOrd>(left: T, right: T) -> T {
    if left < right { left } else { right }
}

fn greater<T: PartialOrd>(left: T, right: T) -> T {
    if left > right { left } else { right }
}

/// The least and the greatest of some numbers; none where there is none, or a NaN.
fn extent_of<T: Copy + PartialOrd>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    let mut are_numbers = true;
    let (mut low, mut high) = ([first; LANES], [first; LANES]);
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            are_numbers &= is_number(&block[lane]);
            low[lane] = lesser(block[lane], low[lane]);
            high[lane] = greater(block[lane], high[lane]);
        }
    }
    are_numbers &= rest.iter().all(is_number);
    let least = low.iter().chain(rest).copied().fold(first, lesser);
    let most = high.iter().chain(rest).copied().fold(first, greater);
    are_numbers.then_some((least, most))
}

/// A column of texts or binary values.
pub(crate) trait Texts {
    /// The text of a row; anything of one that is NULL.
    fn bytes(&self, row: usize) -> &[u8];

    /// What orders most texts.
    fn rank(&self, row: usize) -> Rank {
        Rank::of(self.bytes(row))
    }
}

/// The first bytes of a text as a big-endian number, and whether it has more: all of a short text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u128);

impl Rank {
    /// The last byte says how many there are.
    const MOST: usize = size_of::<u128>() - 1;
    const OPEN: u128 = Self::MOST as u128 + 1;

    fn of(bytes: &[u8]) -> Self {
        let padded = bytes.first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; size_of::<u128>()];
            padded[..bytes.len()].copy_from_slice(bytes);
            padded
        });
        Self::of_padded(padded, bytes.len())
    }

    /// Takes the first bytes of a text of this length, with any others behind them.
    fn of_padded(bytes: [u8; size_of::<u128>()], length: usize) -> Self {
        Self(u128::from_be_bytes(bytes) & KEPT[length.min(Self::MOST)] | length.min(Self::MOST + 1) as u128)
    }

    /// The next one, for a text that differs from others of its rank further on, or else itself.
    fn end(self) -> u128 {
        self.0 + u128::from(self.0 & 0xff == Self::OPEN)
    }
}

/// The bits of so many bytes.
const KEPT: [u128; Rank::MOST + 1] = {
    let mut kept = [0; Rank::MOST + 1];
    let mut bytes = 1;
    while bytes < kept.len() {
        kept[bytes] = !(u128::MAX >> (8 * bytes));
        bytes += 1;
    }
    kept
};

impl<T: ByteArrayType> Texts for GenericByteArray<T> {
    fn bytes(&self, row: usize) -> &[u8] {
        self.value(row).as_ref()
    }

    fn rank(&self, row: usize) -> Rank {
        let (from, to) = (self.value_offsets()[row].as_usize(), self.value_offsets()[row + 1].as_usize());
        // The next texts' bytes are cut off again: that is faster than to copy so few.
        let bytes = self.value_data().get(from..from + size_of::<u128>()).and_then(<[u8]>::first_chunk);
        bytes.map_or_else(|| Rank::of(self.bytes(row)), |bytes| Rank::of_padded(*bytes, to - from))
    }
}

impl<T: ByteViewType> Texts for GenericByteViewArray<T> {
    fn bytes(&self, row: usize) -> &[u8] {
        // The view of a NULL may point anywhere.
        if self.is_null(row) { &[] } else { self.value(row).as_ref() }
    }
}

impl Texts for FixedSizeBinaryArray {
    fn bytes(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

fn of_texts<T: Texts + Array>(column: &T) -> Extent {
    let text = |row| (column.rank(row), row);
    let is_less = |left: (Rank, usize), right: (Rank, usize)| {
        // Short texts of one rank are equal; many columns have few of them, and this is one jump for most rows.
        left.0.0 < right.0.end() && (left.0 < right.0 || column.bytes(left.1) < column.bytes(right.1))
    };
    let rows = column.len();
    if rows > 0 && column.null_count() == 0 && (1..rows).all(|row| !is_less(text(row), text(row - 1))) {
        return (Some((Bound::text(column.bytes(0)), Bound::text(column.bytes(rows - 1)))), true);
    }
    let mut extent = None;
    for_each_run(column, |run| {
        let (mut least, mut most) = extent.unwrap_or((text(run.start), text(run.start)));
        for each in run.map(text) {
            if is_less(each, least) {
                least = each;
            }
            if is_less(most, each) {
                most = each;
            }
        }
        extent = Some((least, most));
    });
    (
        extent.map(|(least, most)| (Bound::text(column.bytes(least.1)), Bound::text(column.bytes(most.1)))),
        false,
    )
}

/// Writes the statistics of a chunk's columns, by their fields' ids.
pub(crate) fn to_json(columns: &BTreeMap<i32, ColumnStatistics>) -> String {
    let entry = |(id, column): (&i32, &ColumnStatistics)| (id.to_string(), column_to_json(column));
    Value::Object(columns.iter().map(entry).collect()).to_string()
}

fn column_to_json(column: &ColumnStatistics) -> Value {
    let mut json = json!({"nulls": column.nulls, "sorted": column.is_sorted});
    if let Some((least, most)) = &column.bounds {
        json["least"] = bound_to_json(least);
        json["most"] = bound_to_json(most);
    }
    json
}

/// A bound's kind and its value as text, which JSON's numbers could not hold.
fn bound_to_json(bound: &Bound) -> Value {
    match bound {
        Bound::Int(value) => json!(["int", value.to_string()]),
        Bound::Float(value) => json!(["float", format!("{value:?}")]),
        Bound::Text { bytes, is_whole } => {
            json!([if *is_whole { "text" } else { "start" }, to_hex(bytes)])
        }
    }
}

/// Reads what `to_json` has written.
pub(crate) fn from_json(text: &str) -> Result<BTreeMap<i32, ColumnStatistics>> {
    let columns: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))?;
    columns.iter().map(column_from_json).collect()
}

fn damaged(what: &str) -> Error {
    Error::operational(format!("the catalogue is damaged: statistics of a chunk: {what}"))
}

fn column_from_json((id, json): (&String, &Value)) -> Result<(i32, ColumnStatistics)> {
    let parsed = || {
        let bounds = match (json.get("least"), json.get("most")) {
            (None, None) => None,
            (least, most) => Some((bound_from_json(least?)?, bound_from_json(most?)?)),
        };
        let nulls = json.get("nulls")?.as_u64()?;
        let is_sorted = json.get("sorted")?.as_bool()?;
        Some((id.parse().ok()?, ColumnStatistics { nulls, bounds, is_sorted }))
    };
    parsed().ok_or_else(|| damaged(&format!("field {id}")))
}

fn bound_from_json(json: &Value) -> Option<Bound> {
    let [kind, value] = json.as_array()?.as_slice() else { return None };
    let value = value.as_str()?;
    match kind.as_str()? {
        "int" => value.parse().ok().map(Bound::Int),
        "float" => value.parse().ok().filter(|value: &f64| !value.is_nan()).map(Bound::Float),
        "text" => Some(Bound::Text { bytes: from_hex(value)?, is_whole: true }),
        "start" => Some(Bound::Text { bytes: from_hex(value)?, is_whole: false }),
        _ => None,
    }
}

/// Two hexadecimal digits for each byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let digit = |byte: u8| char::from_digit(byte.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
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
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::*;

    use super::*;

    fn of(column: impl Array) -> ColumnStatistics {
        ColumnStatistics::of(&column)
    }

    fn known(nulls: u64, least: Bound, most: Bound, is_sorted: bool) -> ColumnStatistics {
        ColumnStatistics { nulls, bounds: Some((least, most)), is_sorted }
    }

    fn ints(nulls: u64, least: i128, most: i128, is_sorted: bool) -> ColumnStatistics {
        known(nulls, Bound::Int(least), Bound::Int(most), is_sorted)
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
        let infinite = Bound::Float(f64::INFINITY);
        assert_eq!(of(column.slice(1, 4)), known(0, Bound::Float(0.0), infinite.clone(), true));
        assert_eq!(of(column.slice(1, 5)), known(0, Bound::Float(-1.5), infinite, false));
        let hidden = Float64Array::new(vec![f64::NAN, 2.0].into(), Some(vec![false, true].into()));
        assert_eq!(of(hidden), known(1, Bound::Float(2.0), Bound::Float(2.0), false));
    }

    #[test]
    fn some_types_have_no_order() {
        assert_eq!(of(NullArray::new(2)), ColumnStatistics { nulls: 2, ..UNKNOWN });
        assert_eq!(of(Decimal256Array::from(vec![Some(1.into())])), UNKNOWN);
        let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None].into_iter().collect();
        assert_eq!(of(dictionary), ColumnStatistics { nulls: 1, ..UNKNOWN });
        assert_eq!(of(IntervalYearMonthArray::from(vec![1])), UNKNOWN);
    }

    #[test]
    fn long_texts_are_cut_off() {
        let (exact, longer) = ("x".repeat(32), "x".repeat(33));
        let column = StringArray::from(vec![longer.as_str(), exact.as_str()]);
        let start = Bound::Text { bytes: exact.clone().into_bytes(), is_whole: false };
        let whole = Bound::Text { bytes: exact.into_bytes(), is_whole: true };
        assert_eq!(of(column), known(0, whole, start, false));
        let column = BinaryArray::from(vec![&[0xff; 40][..], &[0xff; 31], b"", b"\0"]);
        let cut = Bound::Text { bytes: vec![0xff; 32], is_whole: false };
        assert_eq!(of(column), known(0, Bound::text(b""), cut, false));
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
        assert_eq!(of(column), known(0, Bound::text(&[2, 9]), Bound::text(&[3, 1]), false));
    }

    #[test]
    fn columns_overlap_unless_their_bounds_lie_apart() {
        let text = |least: &str, most: &str| {
            let (least, most) = texts(least, most);
            known(0, least, most, false)
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
            (7, known(0, Bound::Float(f64::NEG_INFINITY), Bound::Float(0.1 + 0.2), false)),
            (8, known(0, Bound::Float(5e-324), Bound::Float(f64::MAX), false)),
            (9, known(1, Bound::text(b""), Bound::text(long.as_bytes()), false)),
        ]);
        assert_eq!(from_json(&to_json(&columns)).unwrap(), columns);
        let small = BTreeMap::from([(3, known(1, Bound::text(b"\xfea"), Bound::Int(-7), true))]);
        let json = r#"{"3":{"least":["text","fe61"],"most":["int","-7"],"nulls":1,"sorted":true}}"#;
        assert_eq!(from_json(json).unwrap(), small);
        assert_eq!(to_json(&small), json);
    }

    #[test]
    fn damaged_json_is_an_error() {
        let entry =
            |bound: &str| format!(r#"{{"1":{{"nulls":0,"sorted":true,"least":{bound},"most":{bound}}}}}"#);
        assert!(from_json(&entry(r#"["int","1"]"#)).is_ok());
        let bounds = [
            "1",
            "[]",
            r#"["int"]"#,
            r#"["int",1]"#,
            r#"["int","x"]"#,
            r#"["float","NaN"]"#,
            r#"["text","a"]"#,
            r#"["text","zz"]"#,
            r#"["text","+1"]"#,
            r#"["other","1"]"#,
            r#"["text","ÿ"]"#,
        ];
        let whole = [
            "",
            "[",
            "[]",
            "null",
            r#"{"1":0}"#,
            r#"{"a":{"nulls":0,"sorted":true}}"#,
            r#"{"1":{"nulls":-1,"sorted":true}}"#,
            r#"{"1":{"nulls":0}}"#,
            r#"{"1":{"nulls":0,"sorted":true,"least":["int","1"]}}"#,
        ];
        for text in bounds.iter().map(|bound| entry(bound)).chain(whole.map(String::from)) {
            let error = from_json(&text).unwrap_err();
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
