//! Columns of texts on their way into the engine, where this side has less to do than the engine would.

mod dictionary;
mod search;

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use longshore_core::run_jobs;

pub use dictionary::dictionaries;
pub use search::{Position, search};

/// An array of texts, not yet checked for UTF-8.
enum Texts {
    Short(BinaryArray),
    Long(LargeBinaryArray),
    Views(BinaryViewArray),
}

impl Texts {
    /// `None` for an array of anything else.
    fn of(array: &ArrayRef) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Short(array.as_string::<i32>().clone().into())),
            DataType::LargeUtf8 => Some(Self::Long(array.as_string::<i64>().clone().into())),
            DataType::Utf8View => Some(Self::Views(array.as_string_view().clone().to_binary_view())),
            _ => None,
        }
    }
}

/// The texts of `rows`, which ascend and are those of all `arrays` one after another, in arrays of `piece` rows, as large UTF-8; by so
/// many threads.
///
/// `None` where an array is not of texts, one of these texts is not UTF-8, or there is no such row.
pub fn take(
    arrays: &[ArrayRef],
    rows: &[u64],
    piece: usize,
    threads: Option<usize>,
) -> Option<Vec<ArrayRef>> {
    let texts: Vec<Texts> = arrays.iter().map(Texts::of).collect::<Option<_>>()?;
    let mut parts = Vec::with_capacity(arrays.len());
    let mut end = 0;
    for (array, texts) in arrays.iter().zip(&texts) {
        let start = end;
        end += array.len() as u64;
        parts.push(Part { rows: start..end, texts, nulls: array.nulls() });
    }
    let pieces: Vec<&[u64]> = rows.chunks(piece.max(1)).collect();
    let arrays = run_jobs(pieces.len(), threads, || true, |number| large(&parts, pieces[number]));
    arrays.into_iter().collect()
}

/// Rows that are looked at before the first of them is copied: they lie far apart, and wait for memory together so.
const AT_ONCE: usize = 256;

struct Part<'a> {
    /// The numbers of its rows.
    rows: Range<u64>,
    texts: &'a Texts,
    nulls: Option<&'a NullBuffer>,
}

fn large(parts: &[Part<'_>], mut rows: &[u64]) -> Option<ArrayRef> {
    let mut builder = LargeBinaryBuilder::with_capacity(rows.len(), 0);
    while let Some(first) = rows.first() {
        let part = &parts[parts.partition_point(|part| part.rows.end <= *first)..].first()?;
        let (here, others) = rows.split_at(rows.partition_point(|row| *row < part.rows.end));
        match part.texts {
            Texts::Short(array) => part.push(&array, here, &mut builder),
            Texts::Long(array) => part.push(&array, here, &mut builder),
            Texts::Views(array) => part.push(&array, here, &mut builder),
        }?;
        rows = others;
    }
    let texts = LargeStringArray::try_from_binary(builder.finish()).ok()?;
    Some(Arc::new(texts))
}

impl Part<'_> {
    fn push<'a>(
        &self,
        array: &impl ArrayAccessor<Item = &'a [u8]>,
        rows: &[u64],
        builder: &mut LargeBinaryBuilder,
    ) -> Option<()> {
        for rows in rows.chunks(AT_ONCE) {
            let mut texts = [None; AT_ONCE];
            for (text, row) in texts.iter_mut().zip(rows) {
                let row = usize::try_from(row.checked_sub(self.rows.start)?).ok()?;
                let is_null = self.nulls.is_some_and(|nulls| nulls.is_null(row));
                *text = (!is_null).then(|| array.value(row));
            }
            let texts = &texts[..rows.len()];
            black_box(
                texts.iter().flatten().filter_map(|text| text.first()).fold(0, |all, first| all ^ first),
            );
            for text in texts {
                builder.append_option(*text);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn rows_are_taken_from_all_arrays_in_their_order() {
        let texts: Vec<Option<String>> =
            (0..100).map(|row| (row % 5 != 2).then(|| format!("é{row} ").repeat(row % 9))).collect();
        let forms: [ArrayRef; 3] = [
            Arc::new(StringArray::from(texts.clone())),
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(StringViewArray::from_iter(&texts)),
        ];
        for array in forms {
            let arrays = [array.slice(0, 7), array.slice(7, 0), array.slice(7, 40), array.slice(47, 53)];
            for rows in [vec![], vec![6], vec![0, 6, 7, 8, 46, 47, 99], (0..100).collect()] {
                for piece in [1, 3, 1000] {
                    let pieces = take(&arrays, &rows, piece, Some(2)).unwrap();
                    assert!(pieces.iter().all(|array| array.len() <= piece));
                    let found = pieces.iter().flat_map(|array| array.as_string::<i64>().iter());
                    let wanted = rows.iter().map(|row| texts[usize::try_from(*row).unwrap()].as_deref());
                    assert!(found.eq(wanted), "{rows:?} {piece} {:?}", array.data_type());
                }
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        assert!(take(std::slice::from_ref(&texts), &[2], 9, None).is_none());
        // Rows that do not ascend.
        assert!(take(&[texts.clone(), texts], &[3, 0], 9, None).is_none());
        assert!(take(&[Arc::new(Int32Array::from(vec![1]))], &[0], 9, None).is_none());
    }
}
