//! Columns of dictionaries of strings: codes into one list of labels for the whole result.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, DictionaryArray, downcast_integer};
use arrow_buffer::ArrowNativeType;
use longshore_core::memory::{OutOfMemory, try_reserve};
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::column::Column;
use crate::columns::Accumulator;
use crate::memory::number_array;
use crate::numbers::no_array_of;
use crate::objects::Texts;

/// The code of a NULL.
const NULL: i32 = -1;

/// Gives the dictionaries of all batches one numbering.
#[derive(Default)]
pub(crate) struct Dictionary {
    labels: Vec<String>,
    numbers: HashMap<String, i32>,
    codes: Codes,
    /// The last batch's dictionary and what its codes become: most sources send one dictionary throughout.
    last: Option<(ArrayRef, Vec<i32>)>,
}

/// Codes in the narrowest signed type that counts the labels, as pandas has them.
enum Codes {
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Word(Vec<i32>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::Byte(Vec::new())
    }
}

impl Accumulator for Dictionary {
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return Err(no_array_of("dictionary")) };
        self.learn(dictionary)?;
        self.codes.fit(self.labels.len())?;
        self.codes.try_reserve(array.len())?;
        let Some((_, meaning)) = &self.last else { return Ok(()) };
        append(&mut self.codes, dictionary, meaning)
    }

    fn bytes(&self) -> usize {
        self.codes.bytes() + self.labels.iter().map(|label| 2 * label.len() + 64).sum::<usize>()
    }

    fn finish(self: Box<Self>, py: Python<'_>) -> PyResult<Column> {
        let codes = match self.codes {
            Codes::Byte(codes) => number_array(py, codes, "int8"),
            Codes::Short(codes) => number_array(py, codes, "int16"),
            Codes::Word(codes) => number_array(py, codes, "int32"),
        };
        let mut column = Column::new("dictionary", codes?);
        column.labels = Some(PyList::new(py, self.labels)?.into_any().unbind());
        Ok(column)
    }
}

impl Dictionary {
    /// Numbers the labels of this batch's dictionary, unless it is the last batch's.
    fn learn(&mut self, dictionary: &dyn AnyDictionaryArray) -> Result<(), Fault> {
        let values = dictionary.values();
        if self.last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, values)) {
            return Ok(());
        }
        let texts = Texts::of(values)?;
        let mut meaning = Vec::with_capacity(values.len());
        for index in 0..values.len() {
            meaning.push(if values.is_null(index) { NULL } else { self.number(texts.get(index))? });
        }
        self.last = Some((values.clone(), meaning));
        Ok(())
    }

    fn number(&mut self, label: &str) -> Result<i32, Fault> {
        if let Some(number) = self.numbers.get(label) {
            return Ok(*number);
        }
        let number = i32::try_from(self.labels.len())
            .map_err(|_| Fault::data(0, "the column has more than 2,147,483,647 distinct labels"))?;
        self.labels.push(label.to_owned());
        self.numbers.insert(label.to_owned(), number);
        Ok(number)
    }
}

/// Appends the codes of `dictionary`, renumbered by `meaning`.
fn append(codes: &mut Codes, dictionary: &dyn AnyDictionaryArray, meaning: &[i32]) -> Result<(), Fault> {
    macro_rules! typed {
        ($key:ty) => {
            append_typed::<$key>(codes, dictionary.as_any().downcast_ref(), meaning)
        };
    }
    downcast_integer! {
        dictionary.keys().data_type() => (typed),
        _ => Err(no_array_of("integers as keys")),
    }
}

fn append_typed<K: ArrowDictionaryKeyType>(
    codes: &mut Codes,
    dictionary: Option<&DictionaryArray<K>>,
    meaning: &[i32],
) -> Result<(), Fault> {
    let Some(dictionary) = dictionary else { return Err(no_array_of("dictionary of its key type")) };
    let keys = dictionary.keys();
    // A key under a NULL may be anything; a key that is not a NULL was checked when the array was made.
    let known = |key: K::Native| meaning.get(key.as_usize()).copied().unwrap_or(NULL);
    if keys.null_count() == 0 {
        codes.extend(keys.values().iter().map(|key| known(*key)));
    } else {
        codes.extend(keys.iter().map(|key| key.map_or(NULL, known)));
    }
    Ok(())
}

impl Codes {
    /// Widens the codes so that they count `labels` labels.
    fn fit(&mut self, labels: usize) -> Result<(), OutOfMemory> {
        match self {
            Self::Byte(codes) if labels > 1 << 15 => *self = Self::Word(widen(codes)?),
            Self::Byte(codes) if labels > 1 << 7 => *self = Self::Short(widen(codes)?),
            Self::Short(codes) if labels > 1 << 15 => *self = Self::Word(widen(codes)?),
            _ => {}
        }
        Ok(())
    }

    fn try_reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        match self {
            Self::Byte(codes) => try_reserve(codes, more),
            Self::Short(codes) => try_reserve(codes, more),
            Self::Word(codes) => try_reserve(codes, more),
        }
    }

    /// Appends `codes`, each of which [`Codes::fit`] has made room for.
    #[allow(clippy::cast_possible_truncation, reason = "no code is beyond the labels that fit() counted")]
    fn extend(&mut self, codes: impl Iterator<Item = i32>) {
        match self {
            Self::Byte(all) => all.extend(codes.map(|code| code as i8)),
            Self::Short(all) => all.extend(codes.map(|code| code as i16)),
            Self::Word(all) => all.extend(codes),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Byte(codes) => size_of_val(codes.as_slice()),
            Self::Short(codes) => size_of_val(codes.as_slice()),
            Self::Word(codes) => size_of_val(codes.as_slice()),
        }
    }
}

fn widen<Narrow: Copy, Wide: From<Narrow>>(codes: &[Narrow]) -> Result<Vec<Wide>, OutOfMemory> {
    let mut wide = Vec::new();
    try_reserve(&mut wide, codes.len())?;
    wide.extend(codes.iter().map(|code| Wide::from(*code)));
    Ok(wide)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;

    use super::*;

    #[test]
    fn dictionaries_of_several_batches_share_one_numbering() {
        let mut dictionary = Dictionary::default();
        let first: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
        let second: DictionaryArray<Int32Type> = vec![Some("c"), Some("b")].into_iter().collect();
        dictionary.absorb(&first).unwrap();
        dictionary.absorb(&second).unwrap();
        assert_eq!(dictionary.labels, ["a", "b", "c"]);
        let Codes::Byte(codes) = &dictionary.codes else { panic!("too wide") };
        assert_eq!(codes, &[0, -1, 1, 2, 1]);
    }

    #[test]
    fn codes_widen_with_the_labels() {
        let labels: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let mut dictionary = Dictionary::default();
        for half in labels.chunks(100) {
            let array: DictionaryArray<Int32Type> = half.iter().map(|label| Some(label.as_str())).collect();
            dictionary.absorb(&array).unwrap();
        }
        let Codes::Short(codes) = &dictionary.codes else { panic!("not widened") };
        assert_eq!(
            codes.iter().map(|code| i32::from(*code)).collect::<Vec<_>>(),
            (0..200).collect::<Vec<_>>()
        );
    }
}
