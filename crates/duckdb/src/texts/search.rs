//! The rows whose text is, begins with, ends with or contains a piece of text.

use std::ops::Range;

use arrow_array::{Array, ArrayAccessor, ArrayRef, BooleanArray, GenericBinaryArray, OffsetSizeTrait};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, MutableBuffer, bit_util};
use longshore_core::run_jobs;
use memchr::memmem::Finder;

use super::Texts;

/// Rows that a thread takes at a time: a multiple of eight, so that their bits are bytes of their own.
const CHUNK: usize = 1 << 17;

/// Where in a text the piece has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// It is the whole text.
    Whole,
    /// At its beginning.
    Start,
    /// At its end.
    End,
    /// Anywhere.
    Anywhere,
}

/// Tells for each row of `arrays`, one after another, whether its text has `piece` in its place; a NULL has not.
///
/// `None` where an array is not of texts.
pub fn search(
    arrays: &[ArrayRef],
    piece: &[u8],
    position: Position,
    threads: Option<usize>,
) -> Option<BooleanArray> {
    let texts: Vec<Texts> = arrays.iter().map(Texts::of).collect::<Option<_>>()?;
    let chunks: Vec<_> = arrays.iter().zip(&texts).flat_map(|(array, texts)| chunks(array, texts)).collect();
    let wanted = Wanted { finder: Finder::new(piece), position };
    let found = run_jobs(
        chunks.len(),
        threads,
        || true,
        |number| {
            let (array, texts, rows) = &chunks[number];
            let found = wanted.rows(texts, rows.clone());
            match array.nulls() {
                Some(nulls) => &found & &nulls.inner().slice(rows.start, rows.len()),
                None => found,
            }
        },
    );
    let mut all = BooleanBufferBuilder::new(arrays.iter().map(Array::len).sum());
    for found in &found {
        all.append_buffer(found);
    }
    Some(BooleanArray::new(all.finish(), None))
}

fn chunks<'a>(
    array: &'a ArrayRef,
    texts: &'a Texts,
) -> impl Iterator<Item = (&'a ArrayRef, &'a Texts, Range<usize>)> {
    let starts = (0..array.len()).step_by(CHUNK);
    starts.map(move |start| (array, texts, start..array.len().min(start + CHUNK)))
}

struct Wanted<'a> {
    finder: Finder<'a>,
    position: Position,
}

impl Wanted<'_> {
    fn rows(&self, texts: &Texts, rows: Range<usize>) -> BooleanBuffer {
        match (texts, self.position) {
            (Texts::Short(array), Position::Anywhere) => self.across(array, rows),
            (Texts::Long(array), Position::Anywhere) => self.across(array, rows),
            (Texts::Short(array), _) => self.each(&array, rows),
            (Texts::Long(array), _) => self.each(&array, rows),
            (Texts::Views(array), _) => self.each(&array, rows),
        }
    }

    /// Text by text.
    fn each<'a>(&self, array: &impl ArrayAccessor<Item = &'a [u8]>, rows: Range<usize>) -> BooleanBuffer {
        let piece = self.finder.needle();
        let (first, last) = (piece.first(), piece.last());
        // One byte tells most texts apart, without a call.
        let starts = |text: &[u8]| first.is_none_or(|_| text.first() == first) && text.starts_with(piece);
        let ends = |text: &[u8]| last.is_none_or(|_| text.last() == last) && text.ends_with(piece);
        BooleanBuffer::collect_bool(rows.len(), |row| {
            let text = array.value(rows.start + row);
            match self.position {
                Position::Whole => text.len() == piece.len() && ends(text),
                Position::Start => starts(text),
                Position::End => ends(text),
                Position::Anywhere => self.finder.find(text).is_some(),
            }
        })
    }

    /// Over all texts at once, which lie one behind the other: most of them are short, and most have no such piece.
    fn across<O: OffsetSizeTrait>(&self, array: &GenericBinaryArray<O>, rows: Range<usize>) -> BooleanBuffer {
        let piece = self.finder.needle().len();
        if piece == 0 {
            return BooleanBuffer::new_set(rows.len());
        }
        let ends = &array.value_offsets()[rows.start + 1..=rows.end];
        let mut at = array.value_offsets()[rows.start].as_usize();
        let bytes = &array.value_data()[..ends.last().map_or(at, |end| end.as_usize())];
        let mut found = MutableBuffer::from_len_zeroed(rows.len().div_ceil(8));
        let mut row = 0;
        while let Some(hit) = self.finder.find(&bytes[at..]).map(|place| at + place) {
            row = first_after(ends, row, hit);
            let end = ends[row].as_usize();
            // One that reaches into the next text is none, and all behind it in this text reach further.
            if hit + piece <= end {
                bit_util::set_bit(&mut found, row);
            }
            at = end;
        }
        BooleanBuffer::new(found.into(), 0, rows.len())
    }
}

/// The first text from `row` on that ends behind `place`, which is before the last one's end.
fn first_after<O: OffsetSizeTrait>(ends: &[O], mut row: usize, place: usize) -> usize {
    // It is near where there are many, and far where there are few.
    let mut step = 1;
    while let Some(end) = ends.get(row + step)
        && end.as_usize() <= place
    {
        row += step;
        step *= 2;
    }
    let most = ends.len().min(row + step + 1);
    row + ends[row..most].partition_point(|end| end.as_usize() <= place)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, LargeStringArray, StringArray, StringViewArray};

    use super::*;

    const POSITIONS: [Position; 4] = [Position::Whole, Position::Start, Position::End, Position::Anywhere];

    fn forms(texts: &[Option<&str>]) -> [ArrayRef; 3] {
        [
            Arc::new(StringArray::from(texts.to_vec())),
            Arc::new(LargeStringArray::from(texts.to_vec())),
            Arc::new(StringViewArray::from(texts.to_vec())),
        ]
    }

    fn has(text: &str, piece: &str, position: Position) -> bool {
        match position {
            Position::Whole => text == piece,
            Position::Start => text.starts_with(piece),
            Position::End => text.ends_with(piece),
            Position::Anywhere => text.contains(piece),
        }
    }

    fn check(texts: &[Option<&str>], piece: &str) {
        for place in POSITIONS {
            let wanted: Vec<bool> =
                texts.iter().map(|text| text.is_some_and(|text| has(text, piece, place))).collect();
            for array in forms(texts) {
                for split in [0, 1.min(texts.len()), texts.len() / 2, texts.len()] {
                    let arrays = [array.slice(0, split), array.slice(split, texts.len() - split)];
                    let found = search(&arrays, piece.as_bytes(), place, Some(2)).unwrap();
                    let found: Vec<bool> = found.values().iter().collect();
                    assert_eq!(found, wanted, "{piece:?} {place:?} {:?} {split}", array.data_type());
                }
            }
        }
    }

    #[test]
    fn pieces_are_found_within_texts_and_not_across_them() {
        let texts = [
            Some("tug"),
            None,
            Some(""),
            Some("tu"),
            Some("g"),
            Some("ttug tug"),
            Some("a tug that is longer than a view"),
            Some("t"),
            Some("ug"),
            Some(""),
            None,
            Some("tugtug"),
            Some("gut"),
            Some("tutu"),
            Some("tug"),
        ];
        for piece in ["tug", "t", "", "ug", "tt", "tugt", "é", "a tug that is longer than a view"] {
            check(&texts, piece);
        }
        check(&[], "tug");
        check(&[None, None], "t");
        check(&[Some("aaa"), Some("aa"), Some("aaaa")], "aaa");
        check(&[Some("xaa"), Some("aax"), Some("aaa"), Some("a"), Some("aa")], "aa");
        check(&[Some("abé"), Some("é"), Some("\0é\0")], "é");
    }

    #[test]
    fn chunks_join_without_a_gap() {
        let texts: Vec<String> = (0..3 * CHUNK + 5).map(|row| format!("{}", row % 977)).collect();
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(&texts));
        for piece in ["77", "976", "1"] {
            for start in [0, 3] {
                let found = search(
                    &[array.slice(start, texts.len() - start)],
                    piece.as_bytes(),
                    Position::Anywhere,
                    None,
                );
                let found = found.unwrap();
                assert!(
                    found.values().iter().eq(texts[start..].iter().map(|text| text.contains(piece))),
                    "{piece}"
                );
            }
        }
    }

    #[test]
    fn a_null_has_no_text_even_where_it_hides_one() {
        let hidden = StringArray::new(
            arrow_buffer::OffsetBuffer::from_lengths([3, 3]),
            arrow_buffer::Buffer::from(b"tugtug"),
            Some(vec![false, true].into()),
        );
        let found = search(&[Arc::new(hidden)], b"tug", Position::Anywhere, None).unwrap();
        assert_eq!(found, BooleanArray::from(vec![false, true]));
    }

    #[test]
    fn numbers_are_not_texts() {
        assert!(search(&[Arc::new(Int32Array::from(vec![1]))], b"1", Position::Whole, None).is_none());
    }
}
