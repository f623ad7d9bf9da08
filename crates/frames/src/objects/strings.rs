//! Strings, the most common objects by far, and JSON.

use arrow_array::cast::AsArray;
use arrow_array::{Array, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;
use longshore_values::Fault;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::scalars::each_row;
use super::{Maker, python_fault};
use crate::numbers::no_array_of;

/// Strings longer than this are never remembered: they seldom repeat, and a [`Key`] is four words.
const SHORT: usize = 32;

const SLOTS: usize = 512;

/// How many strings of a batch are looked up before the cache is judged.
const TRIAL: u32 = 1024;

/// The bytes that the interpreter's compact strings take next to their characters.
const HEADER: usize = 49;

/// Remembers short strings, so that the rows of a column of few values share their objects.
///
/// Direct-mapped: a string has one slot and takes it from whatever was there. In a batch whose strings do not
/// repeat it stops after a trial.
#[derive(Default)]
struct Cache {
    slots: Vec<Option<(Key, Py<PyAny>)>>,
    looked: u32,
    found: u32,
    /// The memory of all objects made so far.
    bytes: usize,
}

impl Cache {
    /// Begins a new batch, and with it a new trial.
    fn restart(&mut self) {
        (self.looked, self.found) = (0, 0);
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
    }

    fn is_worthwhile(&self) -> bool {
        self.looked < TRIAL || self.found >= self.looked / 8
    }

    fn object(&mut self, py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
        if text.len() > SHORT || !self.is_worthwhile() {
            return self.string(py, text);
        }
        self.looked = self.looked.wrapping_add(1);
        let key = Key::of(text.as_bytes());
        let at = key.slot();
        match &self.slots[at] {
            Some((known, object)) if *known == key => {
                self.found += 1;
                return Ok(object.clone_ref(py));
            }
            _ => {}
        }
        let object = self.string(py, text)?;
        self.slots[at] = Some((key, object.clone_ref(py)));
        Ok(object)
    }

    fn string(&mut self, py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
        self.bytes += HEADER + text.len();
        // The same as `new`, which panics without memory.
        PyString::from_bytes(py, text.as_bytes()).map(|string| string.into_any().unbind())
    }
}

/// A string of up to 32 bytes in full: its length and words that together cover every byte.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    length: usize,
    words: [u64; 4],
}

impl Key {
    fn of(bytes: &[u8]) -> Self {
        let length = bytes.len();
        let words = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                // Words that the last one covers are left out.
                let inner = |from: usize| {
                    let word = if length > from + 8 { bytes[from..].first_chunk::<8>() } else { None };
                    word.map_or(0, |word| u64::from_le_bytes(*word))
                };
                [u64::from_le_bytes(*first), inner(8), inner(16), u64::from_le_bytes(*last)]
            }
            _ => [Self::short(bytes), 0, 0, 0],
        };
        Self { length, words }
    }

    /// The bytes of a string shorter than a word.
    fn short(bytes: &[u8]) -> u64 {
        if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
        }
        bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    fn slot(&self) -> usize {
        let [first, second, third, last] = self.words;
        let inner = second.rotate_left(21) ^ third.rotate_left(11);
        let mixed = first ^ inner ^ last.rotate_left(42) ^ self.length as u64;
        // Fibonacci hashing: the product's upper bits depend on every bit below them.
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        usize::try_from(hash).unwrap_or(0) % SLOTS
    }
}

/// `str` objects.
#[derive(Default)]
pub(super) struct Strings {
    cache: Cache,
}

impl Maker for Strings {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        self.cache.restart();
        let texts = Texts::of(array)?;
        each_row(py, array, objects, |row| {
            self.cache
                .object(py, texts.get(row))
                .map_err(|error| python_fault(row, "a string cannot be made", error))
        })
    }

    fn bytes(&self, _rows: usize) -> usize {
        self.cache.bytes
    }
}

/// JSON parsed by `json.loads`.
#[derive(Default)]
pub(super) struct Json {
    loads: Option<Py<PyAny>>,
}

impl Maker for Json {
    fn make(&mut self, py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
        if self.loads.is_none() {
            let loads = py.import("json").and_then(|json| json.getattr(intern!(py, "loads")));
            self.loads =
                Some(loads.map_err(|error| python_fault(0, "json.loads is missing", error))?.unbind());
        }
        let Some(loads) = &self.loads else { return Ok(()) };
        let texts = Texts::of(array)?;
        each_row(py, array, objects, |row| {
            loads.call1(py, (texts.get(row),)).map_err(|error| {
                python_fault(row, "Python cannot parse this JSON", error)
                    .with_hint("read it as text: leave json=\"object\" out of the options")
            })
        })
    }

    fn bytes(&self, rows: usize) -> usize {
        256 * rows
    }
}

/// The strings of an array, whichever of Arrow's layouts they have.
pub(crate) enum Texts<'a> {
    Narrow(&'a StringArray),
    Wide(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    pub(crate) fn of(array: &'a dyn Array) -> Result<Self, Fault> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Narrow(array.as_string())),
            DataType::LargeUtf8 => Ok(Self::Wide(array.as_string())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view())),
            _ => Err(no_array_of("strings")),
        }
    }

    pub(crate) fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Narrow(array) => array.value(row),
            Self::Wide(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_whole_string() {
        let text = b"abcdefghijklmnopqrstuvwxyz012345";
        for length in 0..=SHORT {
            let key = Key::of(&text[..length]);
            assert!(key == Key::of(&text[..length]));
            for at in 0..length {
                let mut other = text[..length].to_vec();
                other[at] ^= 1;
                assert!(key != Key::of(&other), "{length} {at}");
            }
            assert!(length == 0 || key != Key::of(&text[..length - 1]));
        }
        assert!(Key::of(b"\0") != Key::of(b"\0\0"));
    }
}
