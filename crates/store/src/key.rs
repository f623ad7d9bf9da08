//! Rows by their key: which are doubled, and which rows of another batch have the same.

use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::iterator::ArrayIter;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayAccessor, ArrayRef};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cmp::{DynComparator, make_comparator};
use arrow_schema::{DataType, SortOptions};
use arrow_select::take::take;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use longshore_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::predicate::first;
use crate::statistics::{ColumnStatistics, with_texts};
use crate::transaction::internal;

/// Rows that are hashed at a time: their hashes stay in the processor's nearest cache.
const BLOCK: usize = 1024;

/// Digits of pi and of e: numbers without a pattern.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0xb7e1_5162_8aed_2a6b;

/// Rows that are hashed in the time in which one is looked for in a sorted column, at the least.
const SEARCH: usize = 64;

/// Characters of a key in an error.
const SHOWN: usize = 80;

/// The keys of some rows.
pub(crate) struct Keys {
    rows: Rows,
    /// The hashes of keys, each with the last row that has it.
    slots: HashTable<(u64, u32)>,
    /// A bit for what the hashes that are in `slots` begin with: it tells most others apart without a look there.
    filter: Vec<u64>,
    /// The rows whose key a later row has too.
    replaced: Vec<u32>,
    doubled: Option<(usize, usize)>,
}

impl Keys {
    /// Takes rows by their key columns. A row with a NULL among them has no key, and equals none.
    pub(crate) fn of(columns: &[ArrayRef]) -> Result<Self> {
        let rows = Rows::of(columns)?;
        let slots = HashTable::with_capacity(rows.count);
        let filter = vec![0; (rows.count / 2).next_power_of_two().clamp(1 << 10, 1 << 17)];
        let mut keys = Self { rows, slots, filter, replaced: Vec::new(), doubled: None };
        let comparators = keys.rows.comparators(&keys.rows)?;
        let mut hashes = [0; BLOCK];
        for block in blocks(0..keys.rows.count) {
            for (hash, row) in keys.rows.hash(&block, &mut hashes).iter().zip(block) {
                if keys.rows.has_key(row) {
                    keys.insert(*hash, row, &comparators);
                }
            }
        }
        Ok(keys)
    }

    fn insert(&mut self, hash: u64, row: usize, comparators: &[DynComparator]) {
        let (word, bit) = bit_of(hash, self.filter.len());
        self.filter[word] |= bit;
        match self.slots.entry(hash, has_key_of(hash, row, comparators), |(hash, _)| *hash) {
            Entry::Occupied(mut known) => {
                let before = mem::replace(&mut known.get_mut().1, narrow(row));
                self.replaced.push(before);
                self.doubled.get_or_insert((before as usize, row));
            }
            Entry::Vacant(new) => drop(new.insert((hash, narrow(row)))),
        }
    }

    /// Two rows with one key.
    pub(crate) fn doubled_rows(&self) -> Option<(usize, usize)> {
        self.doubled
    }

    /// The rows whose key a later row has, too.
    pub(crate) fn replaced_rows(&self) -> &[u32] {
        &self.replaced
    }

    /// The rows of other columns that have one of these keys, in order, each with the last of our rows with that key.
    /// One of the columns may be `sorted`.
    pub(crate) fn find(&self, columns: &[ArrayRef], sorted: Option<usize>) -> Result<Vec<(u32, u32)>> {
        let others = Rows::of(columns)?;
        let comparators = self.rows.comparators(&others)?;
        let sorted =
            sorted.and_then(|at| comparators.get(at)).filter(|_| self.rows.count * SEARCH < others.count);
        let candidates = match sorted {
            Some(compare) => self.candidates(&others, compare),
            None => iter::once(0..others.count).collect(),
        };
        let mut found = Vec::new();
        let mut hashes = [0; BLOCK];
        for block in candidates.into_iter().flat_map(blocks) {
            for (&hash, row) in others.hash(&block, &mut hashes).iter().zip(block) {
                let (word, bit) = bit_of(hash, self.filter.len());
                if self.filter[word] & bit != 0
                    && others.has_key(row)
                    && let Some((_, ours)) = self.slots.find(hash, has_key_of(hash, row, &comparators))
                {
                    found.push((narrow(row), *ours));
                }
            }
        }
        Ok(found)
    }

    /// The rows that have in a sorted column what one of our keys has there.
    fn candidates(&self, others: &Rows, compare: &DynComparator) -> Vec<Range<usize>> {
        let range = |ours: usize| {
            let start = first(0..others.count, |row| compare(ours, row).is_le());
            start..first(start..others.count, |row| compare(ours, row).is_lt())
        };
        let mut ranges: Vec<_> = (0..self.rows.count)
            .filter(|ours| self.rows.has_key(*ours))
            .map(range)
            .filter(|rows| !rows.is_empty())
            .collect();
        // Keys that are equal there have the same rows, and others have others.
        ranges.sort_unstable_by_key(|rows| rows.start);
        ranges.dedup();
        ranges
    }

    /// The facts of a key column, to compare with those of a chunk's.
    pub(crate) fn bounds(&self, column: usize) -> ColumnStatistics {
        ColumnStatistics::of(&self.rows.columns[column])
    }

    /// A row's key for an error's text.
    pub(crate) fn display(&self, row: usize) -> Result<String> {
        let values: Vec<_> =
            self.rows.columns.iter().map(|column| show(column, row)).collect::<Result<_>>()?;
        let text = format!("({})", values.join(", "));
        let is_long = text.chars().nth(SHOWN).is_some();
        Ok(if is_long { text.chars().take(SHOWN - 1).chain(['…']).collect() } else { text })
    }
}

/// Whether one of our rows has the key of a row that is compared with ours.
fn has_key_of(hash: u64, row: usize, comparators: &[DynComparator]) -> impl Fn(&(u64, u32)) -> bool {
    move |(known, ours)| {
        *known == hash && comparators.iter().all(|compare| compare(*ours as usize, row).is_eq())
    }
}

/// Key columns in a form that is quick to hash and to compare.
struct Rows {
    columns: Vec<ArrayRef>,
    cells: Vec<Cells>,
    /// The rows without a key.
    nulls: Option<NullBuffer>,
    count: usize,
}

impl Rows {
    fn of(columns: &[ArrayRef]) -> Result<Self> {
        let columns = columns.iter().map(plain).collect::<Result<Vec<_>>>()?;
        let count = columns.first().map_or(0, Array::len);
        if columns.is_empty() || columns.iter().any(|column| column.len() != count) {
            return Err(Error::internal("a key's columns have no rows in common"));
        }
        if u32::try_from(count).is_err() {
            return Err(Error::not_supported(format!("keys of {count} rows at once")));
        }
        let cells = columns.iter().map(Cells::of).collect::<Result<_>>()?;
        let nulls =
            columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.nulls()));
        Ok(Self { columns, cells, nulls, count })
    }

    /// The comparators of each of our columns with another's.
    fn comparators(&self, others: &Self) -> Result<Vec<DynComparator>> {
        let columns = self.columns.iter().zip(&others.columns);
        let comparator =
            |(ours, other): (&ArrayRef, &ArrayRef)| make_comparator(ours, other, SortOptions::default());
        columns.map(comparator).collect::<Result<_, _>>().map_err(internal)
    }

    fn has_key(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    /// The hashes of a block's rows.
    fn hash<'a>(&self, block: &Range<usize>, hashes: &'a mut [u64; BLOCK]) -> &'a [u64] {
        let hashes = &mut hashes[..block.len()];
        hashes.fill(SEED);
        self.cells.iter().for_each(|cells| cells.mix_into(block.start, hashes));
        hashes
    }
}

/// A column by its bits: equal values have equal ones.
enum Cells {
    /// Values of so many bytes each.
    Fixed(Buffer, usize),
    Texts(ArrayRef),
}

impl Cells {
    fn of(column: &ArrayRef) -> Result<Self> {
        let kind = column.data_type();
        let is_known = !matches!(kind, DataType::Interval(_) | DataType::Float16);
        match kind.primitive_width() {
            Some(width) if is_known => {
                let data = column.to_data();
                let start = data.offset() * width;
                Ok(Self::Fixed(data.buffers()[0].slice_with_length(start, data.len() * width), width))
            }
            _ if kind == &DataType::Boolean => {
                let bytes: Vec<u8> = column.as_boolean().values().iter().map(u8::from).collect();
                Ok(Self::Fixed(bytes.into(), 1))
            }
            _ if with_texts!(column, |_| true, false) => Ok(Self::Texts(column.clone())),
            _ => Err(Error::not_supported(format!("a key of the type {kind}"))),
        }
    }

    fn mix_into(&self, start: usize, hashes: &mut [u64]) {
        match self {
            Self::Fixed(values, 1) => mix_all(&values[start..], hashes),
            Self::Fixed(values, 2) => mix_all(&values.typed_data::<u16>()[start..], hashes),
            Self::Fixed(values, 4) => mix_all(&values.typed_data::<u32>()[start..], hashes),
            Self::Fixed(values, 8) => mix_all(&values.typed_data::<u64>()[start..], hashes),
            Self::Fixed(values, width) => {
                let words = values.typed_data::<u64>().chunks_exact(width / 8).skip(start);
                for (hash, words) in hashes.iter_mut().zip(words) {
                    *hash = words.iter().fold(*hash, |hash, word| mix(hash, *word));
                }
            }
            Self::Texts(texts) => {
                let texts = texts.slice(start, hashes.len());
                with_texts!(texts, |texts| mix_texts(texts, hashes), ());
            }
        }
    }
}

/// A column whose equal values have equal bits: a dictionary's row by row, floats with one zero and one NaN.
fn plain(column: &ArrayRef) -> Result<ArrayRef> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        return plain(&take(dictionary.values(), dictionary.keys(), None).map_err(internal)?);
    }
    if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
        return Ok(Arc::new(
            floats.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value + 0.0 }),
        ));
    }
    if let Some(floats) = column.as_primitive_opt::<Float32Type>() {
        return Ok(Arc::new(
            floats.unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value + 0.0 }),
        ));
    }
    Ok(column.clone())
}

/// The rows of a range, in blocks.
fn blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(BLOCK).map(move |start| start..end.min(start + BLOCK))
}

fn mix_all<T: Copy + Into<u64>>(values: &[T], hashes: &mut [u64]) {
    for (hash, value) in hashes.iter_mut().zip(values) {
        *hash = mix(*hash, (*value).into());
    }
}

fn mix_texts(texts: impl ArrayAccessor<Item: AsRef<[u8]>>, hashes: &mut [u64]) {
    for (hash, text) in hashes.iter_mut().zip(ArrayIter::new(texts)) {
        *hash = text.map_or(0, |text| mix(*hash, xxh3_64(text.as_ref())));
    }
}

/// The halves of a product of 128 bits, folded: every bit of the input is in the first bits of it.
#[expect(clippy::cast_possible_truncation, reason = "half of the bits")]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value) * u128::from(FACTOR);
    product as u64 ^ (product >> 64) as u64
}

/// The word of a filter of so many, a power of two, and the bit in it: by the first bits of a hash.
#[expect(clippy::cast_possible_truncation, reason = "fewer than the bits of a filter")]
fn bit_of(hash: u64, words: usize) -> (usize, u64) {
    let position = (hash >> (64 - (words * 64).ilog2())) as usize;
    (position / 64, 1 << (position % 64))
}

#[expect(clippy::cast_possible_truncation, reason = "`Rows::of` refuses more rows")]
fn narrow(row: usize) -> u32 {
    row as u32
}

/// A value for an error's text.
fn show(column: &ArrayRef, row: usize) -> Result<String> {
    let options = FormatOptions::new().with_null("NULL");
    let value = ArrayFormatter::try_new(column, &options).map_err(internal)?.value(row).to_string();
    Ok(match column.data_type() {
        _ if column.is_null(row) => value,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("'{value}'"),
        _ if with_texts!(column, |_| true, false) => format!("x'{value}'"),
        _ => value,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::*;
    use arrow_buffer::i256;

    use longshore_core::Kind;

    use super::*;
    use crate::statistics::{Bound, random};

    fn of(columns: &[ArrayRef]) -> Keys {
        Keys::of(columns).unwrap()
    }

    /// Of rows with one key the last, and all rows without a key.
    fn last_rows(keys: &Keys) -> Vec<u32> {
        (0..narrow(keys.rows.count)).filter(|row| !keys.replaced_rows().contains(row)).collect()
    }

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    fn ints(values: Vec<Option<i64>>) -> ArrayRef {
        column(Int64Array::from(values))
    }

    /// The rows of a column with a first row's key, by themselves.
    fn like_first(array: impl Array + 'static) -> Vec<u32> {
        let column = column(array);
        let found = of(&[column.slice(0, 1)]).find(&[column], None).unwrap();
        found.into_iter().map(|(row, _)| row).collect()
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let keys = of(&[ints(vec![Some(1), Some(2), None, Some(1), None, Some(2), Some(1)])]);
        assert_eq!(keys.doubled_rows(), Some((0, 3)));
        assert_eq!(last_rows(&keys), [2, 4, 5, 6]);
        let found = keys.find(&[ints(vec![Some(2), None, Some(3), Some(1), Some(2)])], None).unwrap();
        assert_eq!(found, [(0, 5), (3, 6), (4, 5)]);
    }

    #[test]
    fn a_key_is_all_of_its_columns() {
        let names = column(StringArray::from(vec![Some("a"), Some("b"), Some("a"), None]));
        let keys = of(&[ints(vec![Some(1), Some(1), Some(2), Some(1)]), names.clone()]);
        assert_eq!(keys.doubled_rows(), None);
        assert_eq!(last_rows(&keys), [0, 1, 2, 3]);
        let found = keys.find(&[ints(vec![Some(2), Some(1), None, Some(1)]), names], None).unwrap();
        assert_eq!(found, [(0, 2), (1, 1)]);
        let known = keys.bounds(0);
        assert_eq!((known.nulls, known.bounds), (0, Some((Bound::Int(1), Bound::Int(2)))));
    }

    #[test]
    fn a_sorted_column_is_searched() {
        let theirs = |count: i64| ints((0..count).map(|row| Some(row / 3 - 5)).collect());
        let numbers = |count: i64| ints((0..count).map(|row| Some(row % 3)).collect());
        // NULL has no place in it; -6 and 10 000 are before and after it, and two keys share a value.
        let first = ints(vec![Some(7), None, Some(-6), Some(-5), Some(7), Some(10_000), Some(994), Some(0)]);
        let second = ints(vec![Some(2), Some(0), Some(0), Some(0), Some(0), Some(0), Some(2), Some(9)]);
        let keys = of(&[first, second]);
        let columns = [theirs(3_000), numbers(3_000)];
        let found = keys.find(&columns, Some(0)).unwrap();
        assert_eq!(found, [(0, 3), (36, 4), (38, 0), (2999, 6)]);
        assert_eq!(found, keys.find(&columns, None).unwrap());
        // As where all rows are one value's.
        let one = of(&[ints(vec![Some(4)])]);
        let all = ints(vec![Some(4); 3 * BLOCK + 1]);
        assert_eq!(one.find(std::slice::from_ref(&all), Some(0)).unwrap().len(), all.len());
        let floats = of(&[column(Float64Array::from(vec![0.0]))]);
        let zeros: Vec<f64> = (0..200).map(|row| if row % 2 == 0 { 0.0 } else { -0.0 }).collect();
        assert_eq!(floats.find(&[column(Float64Array::from(zeros))], Some(0)).unwrap().len(), 200);
    }

    #[test]
    fn there_may_be_no_rows() {
        let keys = of(&[ints(vec![])]);
        assert_eq!((keys.doubled_rows(), last_rows(&keys)), (None, vec![]));
        assert_eq!(keys.find(&[ints(vec![Some(0), Some(1)])], None).unwrap(), []);
        assert_eq!(of(&[ints(vec![Some(0)])]).find(&[ints(vec![])], None).unwrap(), []);
    }

    #[test]
    fn keys_may_be_of_many_types() {
        let nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 1);
        assert_eq!(like_first(Float64Array::from(vec![-0.0, 1.0, 0.0, -1.0])), [0, 2]);
        assert_eq!(like_first(Float64Array::from(vec![f64::NAN, 1.0, nan])), [0, 2]);
        assert_eq!(like_first(Float32Array::from(vec![0.0, -0.0, f32::NAN])), [0, 1]);
        assert_eq!(like_first(Float32Array::from(vec![f32::NAN, -f32::NAN, 0.0])), [0, 1]);
        assert_eq!(like_first(BooleanArray::from(vec![true, false, true]).slice(1, 2)), [0]);
        assert_eq!(like_first(Int8Array::from(vec![-1, 1, -1])), [0, 2]);
        assert_eq!(like_first(UInt16Array::from(vec![7, 263, 7])), [0, 2]);
        assert_eq!(like_first(Date32Array::from(vec![5, 4, 5])), [0, 2]);
        assert_eq!(like_first(TimestampMicrosecondArray::from(vec![i64::MIN, 0, i64::MIN])), [0, 2]);
        assert_eq!(like_first(Decimal128Array::from(vec![1, 1 << 64, 1 << 64 | 1, 1])), [0, 3]);
        assert_eq!(like_first(Decimal256Array::from_iter_values([1, 2, 1].map(i256::from))), [0, 2]);
        assert_eq!(
            like_first(StringViewArray::from(vec!["a text of more bytes", "a", "a text of more bytes"])),
            [0, 2]
        );
        assert_eq!(like_first(BinaryArray::from(vec![&b""[..], b"\0", b""])), [0, 2]);
        let fixed = FixedSizeBinaryArray::try_from_iter([[1_u8, 2], [2, 1], [1, 2]].into_iter()).unwrap();
        assert_eq!(like_first(fixed), [0, 2]);
        let dictionary: DictionaryArray<Int8Type> =
            vec![Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        assert_eq!(like_first(dictionary), [0, 3]);
    }

    #[test]
    fn other_types_are_refused() {
        let refused = |column: ArrayRef| Keys::of(&[column]).err().unwrap();
        let error = refused(column(IntervalYearMonthArray::from(vec![1])));
        assert_eq!(
            (error.kind(), error.message()),
            (Kind::NotSupported, "a key of the type Interval(YearMonth)")
        );
        let list = ListArray::from_iter_primitive::<Int8Type, _, _>([Some([Some(1)])]);
        assert_eq!(refused(column(list)).kind(), Kind::NotSupported);
        assert_eq!(refused(column(NullArray::new(1))).kind(), Kind::NotSupported);
        let keys = of(&[ints(vec![Some(1)])]);
        assert_eq!(
            keys.find(&[column(UInt64Array::from(vec![1]))], None).unwrap_err().kind(),
            Kind::Internal
        );
        assert_eq!(keys.find(&[], None).unwrap_err().kind(), Kind::Internal);
        let uneven = [ints(vec![Some(1)]), ints(vec![])];
        assert_eq!(Keys::of(&uneven).err().unwrap().kind(), Kind::Internal);
    }

    #[test]
    fn keys_are_shown_in_errors() {
        let decimal = Decimal128Array::from(vec![-1250]).with_precision_and_scale(9, 2).unwrap();
        let keys = of(&[
            ints(vec![Some(7)]),
            column(StringArray::from(vec!["a"])),
            column(decimal),
            column(Date32Array::from(vec![19_000])),
            column(BooleanArray::from(vec![None])),
            column(BinaryArray::from(vec![&b"\xff\x00"[..]])),
        ]);
        assert_eq!(keys.display(0).unwrap(), "(7, 'a', -12.50, 2022-01-08, NULL, x'ff00')");
        assert_eq!(of(&[column(Float64Array::from(vec![1.5]))]).display(0).unwrap(), "(1.5)");
        let timestamp = TimestampMicrosecondArray::from(vec![1]);
        assert_eq!(of(&[column(timestamp)]).display(0).unwrap(), "(1970-01-01T00:00:00.000001)");
        let infinite =
            [column(Date32Array::from(vec![i32::MAX])), column(TimestampSecondArray::from(vec![i64::MAX]))];
        assert!(of(&infinite).display(0).unwrap().chars().count() <= SHOWN);
        let long = of(&[column(StringArray::from(vec!["ÿ".repeat(76), "ÿ".repeat(1000)]))]);
        assert_eq!(long.display(0).unwrap(), format!("('{}')", "ÿ".repeat(76)));
        assert_eq!(long.display(1).unwrap(), format!("('{}…", "ÿ".repeat(77)));
    }

    #[test]
    fn keys_are_found_as_in_a_map() {
        let mut below = random(3);
        for rows in [1, 10, 100, 1_000, 3_000] {
            let mut columns = |rows: u64| -> (Vec<Option<(i64, String)>>, [ArrayRef; 2]) {
                let numbers: Vec<_> =
                    (0..rows).map(|_| (below(9) > 0).then(|| below(rows).cast_signed() - 5)).collect();
                let texts: Vec<_> = (0..rows)
                    .map(|_| (below(9) > 0).then(|| "x".repeat(usize::try_from(below(3)).unwrap())))
                    .collect();
                let keys =
                    numbers.iter().zip(&texts).map(|(number, text)| Some((*number)?).zip(text.clone()));
                (
                    keys.skip(1).collect(),
                    [
                        ints(numbers.clone()).slice(1, numbers.len() - 1),
                        column(StringArray::from(texts.clone())).slice(1, texts.len() - 1),
                    ],
                )
            };
            let (ours, our_columns) = columns(rows + 1);
            let (others, other_columns) = columns(rows * 2);
            let keys = of(&our_columns);
            let mut last: HashMap<_, u32> = HashMap::new();
            for (key, row) in ours.iter().zip(0..) {
                key.as_ref().map(|key| last.insert(key, row));
            }
            let expected: Vec<(u32, u32)> = others
                .iter()
                .zip(0..)
                .filter_map(|(key, row)| Some((row, *last.get(key.as_ref()?)?)))
                .collect();
            assert_eq!(keys.find(&other_columns, None).unwrap(), expected);
            let expected: Vec<u32> = ours
                .iter()
                .zip(0..)
                .filter(|(key, row)| key.as_ref().is_none_or(|key| last[key] == *row))
                .map(|(_, row)| row)
                .collect();
            assert_eq!(last_rows(&keys), expected);
            assert_eq!(keys.doubled_rows().is_some(), expected.len() < ours.len());
            assert!(
                keys.doubled_rows()
                    .is_none_or(|(first, second)| ours[first].is_some() && ours[first] == ours[second])
            );
        }
    }
}
