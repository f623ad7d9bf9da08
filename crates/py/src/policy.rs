//! The type policy of a read, as Python's words give it.

use std::collections::BTreeMap;

use longshore_core::{Decimals, Delivery, Error, Protocol, ReadOptions, Result, Unrepresentable, Uuids};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::registry;
use longshore_interpreter::raise;

/// What a result becomes, as far as its columns' types depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    Pandas,
    Numpy,
    Polars,
    Arrow,
    ArrowStream,
}

/// The frame, and the choices of its types.
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) frame: Frame,
    pub(crate) options: ReadOptions,
}

const UNREPRESENTABLE: &[(&str, Unrepresentable)] =
    &[("error", Unrepresentable::Error), ("null", Unrepresentable::Null)];

const SWITCH: &[(&str, bool)] = &[("true", true), ("false", false)];

impl Policy {
    pub(crate) fn is_stream(&self) -> bool {
        self.frame == Frame::ArrowStream
    }

    pub(crate) fn delivery(&self) -> Delivery {
        if self.is_stream() { Delivery::Interleaved } else { Delivery::Ordered }
    }

    fn parse(mut words: BTreeMap<String, String>) -> Result<Self> {
        let frames = &[
            ("pandas", Frame::Pandas),
            ("numpy", Frame::Numpy),
            ("polars", Frame::Polars),
            ("arrow", Frame::Arrow),
            ("arrow_stream", Frame::ArrowStream),
        ];
        let frame = word(&mut words, "frame", frames)?;
        let decimals = &[
            ("inferred", Decimals::Inferred),
            ("streamed", Decimals::Streamed),
            ("float64", Decimals::Float64),
        ];
        let mut options = ReadOptions {
            decimals: word(&mut words, "decimals", decimals)?,
            decimal_digits: if frame == Frame::Polars { 38 } else { 76 },
            intervals: frame != Frame::Polars,
            numeric_nan: word(&mut words, "numeric_nan", UNREPRESENTABLE)?,
            infinity: word(&mut words, "infinity", UNREPRESENTABLE)?,
            time_24: word(&mut words, "time_24", UNREPRESENTABLE)?,
            uuid: word(&mut words, "uuid", &[("arrow", Uuids::Arrow), ("text", Uuids::Text)])?,
            snapshot: word(&mut words, "snapshot", SWITCH)?,
            protocol: word(
                &mut words,
                "protocol",
                &[("binary", Protocol::Binary), ("text", Protocol::Text)],
            )?,
            ..ReadOptions::default()
        };
        for (key, chosen) in &words {
            let known = registry::options().into_iter().find(|option| option.name == *key);
            let known = known.ok_or_else(|| Error::interface(format!("unknown option {key:?}")))?;
            if !known.words.iter().any(|word| word == chosen) {
                return Err(unknown(key, chosen, &known.words));
            }
        }
        options.own = words;
        Ok(Self { frame, options })
    }
}

impl<'py> FromPyObject<'_, 'py> for Policy {
    type Error = PyErr;

    fn extract(words: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::parse(words.extract()?).map_err(raise)
    }
}

/// What the word under `key` stands for, which is taken out of `words`.
fn word<T: Copy>(words: &mut BTreeMap<String, String>, key: &str, known: &[(&str, T)]) -> Result<T> {
    let chosen = words.remove(key).unwrap_or_default();
    let found = known.iter().find(|(word, _)| *word == chosen);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        unknown(key, &chosen, &known)
    })
}

fn unknown(key: &str, chosen: &str, known: &[impl AsRef<str>]) -> Error {
    let known: Vec<_> = known.iter().map(|word| format!("{:?}", word.as_ref())).collect();
    Error::interface(format!("options[{key:?}] is one of {}, not {chosen:?}", known.join(", ")))
}

/// The keys of `options=` that are sources' own: their words, of which the first is the default, and a sentence.
pub(crate) fn source_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let options = PyDict::new(py);
    for option in registry::options() {
        options.set_item(option.name.as_ref(), (&option.words, option.sentence.as_ref()))?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
        let defaults = [
            ("frame", "pandas"),
            ("decimals", "float64"),
            ("numeric_nan", "error"),
            ("infinity", "error"),
            ("time_24", "null"),
            ("uuid", "arrow"),
            ("snapshot", "true"),
            ("protocol", "text"),
        ];
        defaults.iter().chain(changes).map(|(key, word)| ((*key).to_owned(), (*word).to_owned())).collect()
    }

    #[test]
    fn words_are_what_they_stand_for() {
        let policy = Policy::parse(words(&[("snapshot", "false"), ("tinyint1", "bool")])).ok().unwrap();
        assert!(policy.frame == Frame::Pandas && !policy.options.snapshot);
        assert_eq!(policy.options.time_24, Unrepresentable::Null);
        assert_eq!(policy.options.protocol, Protocol::Text);
        assert!(policy.options.is_own("tinyint1", "bool"));
    }

    #[test]
    fn an_unknown_word_or_key_is_an_error() {
        for (key, word) in [
            ("frame", "panda"),
            ("protocol", "Text"),
            ("snapshot", "yes"),
            ("tinyint1", "int"),
            ("zzz", "null"),
        ] {
            let error = Policy::parse(words(&[(key, word)])).err().unwrap();
            assert!(error.message().contains(key), "{error}");
        }
        assert!(Policy::parse(BTreeMap::new()).is_err());
    }
}
