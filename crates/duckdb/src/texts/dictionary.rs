//! Texts of which there are few as Arrow's dictionaries: the engine then compares each of them once a batch.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::RandomState;
use arrow_array::types::Int16Type;
use arrow_array::{Array, ArrayAccessor, ArrayRef, DictionaryArray, Int16Array, StringArray};
use arrow_buffer::NullBuffer;
use hashbrown::HashTable;
use longshore_core::run_jobs;

use super::Texts;

/// Stretches of rows that are looked at first, and the rows of each.
const STRETCHES: usize = 32;
const STRETCH: usize = 128;

/// The texts of `arrays` as dictionaries, one an array, each with `most` texts at most; by so many threads.
///
/// `None` where an array is not of texts, or has more of them, or one that is not UTF-8. A look at a few thousand rows comes first,
/// and is content with half as many texts.
pub fn dictionaries(arrays: &[ArrayRef], most: u16, threads: Option<usize>) -> Option<Vec<ArrayRef>> {
    let texts: Vec<Texts> = arrays.iter().map(Texts::of).collect::<Option<_>>()?;
    let most = usize::from(most).min(i16::MAX.unsigned_abs().into());
    if !are_few(arrays, &texts, most / 2) {
        return None;
    }
    let is_lost = AtomicBool::new(false);
    let goes_on = || !is_lost.load(Ordering::Relaxed);
    let coded = run_jobs(arrays.len(), threads, goes_on, |number| {
        let coded = encode(&arrays[number], &texts[number], most);
        if coded.is_none() {
            is_lost.store(true, Ordering::Relaxed);
        }
        coded
    });
    let coded: Vec<_> = coded.into_iter().collect::<Option<_>>()?;
    (coded.len() == arrays.len()).then_some(coded)
}

/// Whether stretches of rows all over the arrays have `most` texts at most, together.
fn are_few(arrays: &[ArrayRef], texts: &[Texts], most: usize) -> bool {
    let mut known = Known::new(most);
    let every = arrays.len().div_ceil(STRETCHES).max(1);
    // As many in each as make up for arrays that are few.
    let each = STRETCHES.div_ceil(arrays.len().max(1));
    arrays.iter().zip(texts).step_by(every).all(|(array, texts)| {
        let apart = (array.len() / each).max(STRETCH);
        (0..array.len()).step_by(apart).all(|start| {
            let stretch = start..array.len().min(start + STRETCH);
            known.keys(texts, array.nulls(), stretch).is_some()
        })
    })
}

fn encode(array: &ArrayRef, texts: &Texts, most: usize) -> Option<ArrayRef> {
    let mut known = Known::new(most);
    let keys = known.keys(texts, array.nulls(), 0..array.len())?;
    let keys = Int16Array::new(keys.into(), array.nulls().cloned());
    let coded = DictionaryArray::<Int16Type>::try_new(keys, Arc::new(known.dictionary())).ok()?;
    Some(Arc::new(coded))
}

/// The texts that were met, in the order in which they were.
struct Known {
    texts: Vec<String>,
    places: HashTable<i16>,
    state: RandomState,
    most: usize,
    /// Short texts and their places, by a part of what identifies them: most texts are found here.
    near: Box<[(Short, i16)]>,
}

/// The bytes of a text of at most 16, and its length.
type Short = (u64, u64, usize);

/// Places of `near`: a power of two.
const NEAR: usize = 1 << 12;
const LONGEST: usize = 16;

/// A length that no text has.
const NONE: (Short, i16) = ((0, 0, usize::MAX), 0);

impl Known {
    fn new(most: usize) -> Self {
        let near = vec![NONE; NEAR].into_boxed_slice();
        Self { texts: Vec::new(), places: HashTable::new(), state: RandomState::new(), most, near }
    }

    /// The place of each row's text; `None` where there are too many, or one is not UTF-8.
    fn keys(&mut self, texts: &Texts, nulls: Option<&NullBuffer>, rows: Range<usize>) -> Option<Vec<i16>> {
        match texts {
            Texts::Short(array) => self.each(&array, nulls, rows),
            Texts::Long(array) => self.each(&array, nulls, rows),
            Texts::Views(array) => self.each(&array, nulls, rows),
        }
    }

    fn each<'a>(
        &mut self,
        array: &impl ArrayAccessor<Item = &'a [u8]>,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
    ) -> Option<Vec<i16>> {
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            keys.push(if is_null { 0 } else { self.key(array.value(row))? });
        }
        Some(keys)
    }

    #[inline]
    fn key(&mut self, text: &[u8]) -> Option<i16> {
        if text.len() > LONGEST {
            return self.far(text);
        }
        let short = short(text);
        let at = slot(short);
        if self.near[at].0 == short {
            return Some(self.near[at].1);
        }
        let place = self.far(text)?;
        self.near[at] = (short, place);
        Some(place)
    }

    fn far(&mut self, text: &[u8]) -> Option<i16> {
        let hash = self.state.hash_one(text);
        let is_it = |place: &i16| self.texts[usize::try_from(*place).unwrap_or(0)].as_bytes() == text;
        match self.places.find(hash, is_it) {
            Some(place) => Some(*place),
            None => self.met(text, hash),
        }
    }

    #[cold]
    fn met(&mut self, text: &[u8], hash: u64) -> Option<i16> {
        if self.texts.len() >= self.most {
            return None;
        }
        let place = i16::try_from(self.texts.len()).ok()?;
        self.texts.push(String::from_utf8(text.to_vec()).ok()?);
        let Self { texts, places, state, .. } = self;
        places.insert_unique(hash, place, |place| {
            state.hash_one(texts[usize::try_from(*place).unwrap_or(0)].as_bytes())
        });
        Some(place)
    }

    /// One text at least, to which the keys of NULLs point.
    fn dictionary(mut self) -> StringArray {
        if self.texts.is_empty() {
            self.texts.push(String::new());
        }
        StringArray::from_iter_values(self.texts)
    }
}

/// Two words cover what is longer than one; where both have a byte, they agree.
#[inline]
fn short(text: &[u8]) -> Short {
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last), text.len())
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into(), text.len())
    } else {
        (text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0, text.len())
    }
}

/// A place of `near`: the upper bits of a product with an odd number depend on every bit below them.
#[inline]
fn slot((first, last, length): Short) -> usize {
    let mixed = (first ^ last.rotate_left(29) ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (u64::BITS - NEAR.trailing_zeros())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Int32Array, LargeStringArray, StringViewArray};
    use arrow_schema::DataType;

    use super::*;

    fn read(array: &ArrayRef) -> Vec<Option<String>> {
        array.to_data().validate_full().unwrap();
        let coded = array.as_dictionary::<Int16Type>();
        let texts = coded.downcast_dict::<StringArray>().unwrap();
        (0..coded.len()).map(|row| coded.is_valid(row).then(|| texts.value(row).to_owned())).collect()
    }

    #[test]
    fn dictionaries_read_as_what_they_were_made_of() {
        let texts: Vec<Option<String>> = (0..5000)
            .map(|row| match row % 11 {
                0 => None,
                1 => Some(String::new()),
                other => Some("é long text, or not".chars().cycle().skip(row % 7).take(other * 3).collect()),
            })
            .collect();
        let forms: [ArrayRef; 3] = [
            Arc::new(StringArray::from(texts.clone())),
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(StringViewArray::from_iter(&texts)),
        ];
        for array in forms {
            let arrays = [array.slice(0, 1), array.slice(1, 0), array.slice(1, 4999)];
            let coded = dictionaries(&arrays, 200, Some(2)).unwrap();
            assert_eq!(coded.iter().flat_map(read).collect::<Vec<_>>(), texts, "{:?}", array.data_type());
        }
    }

    #[test]
    fn texts_that_differ_anywhere_have_keys_of_their_own() {
        let texts: Vec<String> = (0..20)
            .flat_map(|length| {
                let same = "aaaaaaaaaaaaaaaaaaaa"[..length].to_owned();
                let others = (0..length).map({
                    let same = same.clone();
                    move |at| format!("{}b{}", &same[..at], &same[at + 1..])
                });
                others.chain([same.clone()]).collect::<Vec<_>>()
            })
            .collect();
        let twice = texts.iter().chain(&texts).map(String::as_str);
        let coded =
            dictionaries(&[Arc::new(StringArray::from_iter_values(twice.clone()))], 1000, None).unwrap();
        assert!(read(&coded[0]).iter().map(Option::as_deref).eq(twice.map(Some)));
        assert_eq!(coded[0].as_dictionary::<Int16Type>().values().len(), texts.len());
    }

    #[test]
    fn nothing_but_nulls_has_a_dictionary() {
        let coded = dictionaries(&[Arc::new(StringArray::new_null(9))], 100, None).unwrap();
        assert_eq!(read(&coded[0]), vec![None; 9]);
    }

    #[test]
    fn many_texts_are_left_as_they_are() {
        let many: ArrayRef = Arc::new(StringArray::from_iter_values((0..200).map(|row| row.to_string())));
        assert!(dictionaries(std::slice::from_ref(&many), 100, None).is_none());
        assert_eq!(dictionaries(&[many], 400, None).unwrap()[0].len(), 200);
        // The first look misses them.
        let rare = (0..1_000_000).map(|row| if row % 7919 == 7918 { row.to_string() } else { String::new() });
        let rare: ArrayRef = Arc::new(StringArray::from_iter_values(rare));
        assert!(dictionaries(&[rare], 100, None).is_none());
    }

    #[test]
    fn what_is_not_text_is_left_as_it_is() {
        assert!(dictionaries(&[Arc::new(Int32Array::from(vec![1]))], 100, None).is_none());
        let broken = arrow_array::BinaryArray::from_vec(vec![b"\xff"]).into_data();
        // SAFETY: it is not, which is what is tried; nothing here takes its bytes for a text.
        #[allow(unsafe_code)]
        let broken = unsafe { broken.into_builder().data_type(DataType::Utf8).build_unchecked() };
        assert!(dictionaries(&[arrow_array::make_array(broken)], 100, None).is_none());
    }
}
