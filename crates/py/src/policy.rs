//! The type policy of a read, as Python's words give it.

use std::collections::BTreeMap;

use longshore_core::{
    Decimals, Delivery, Error, OwnOptions, Protocol, ReadOptions, Result, SourceOption, Unrepresentable,
    Uuids,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use longshore_interpreter::raise;

/// The form of a result, as far as its columns' types depend on it.
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

/// The words of a key and their values; the first is the default.
type Words<T> = &'static [(&'static str, T)];

const UNREPRESENTABLE: Words<Unrepresentable> =
    &[("error", Unrepresentable::Error), ("null", Unrepresentable::Null)];
const UUID: Words<Uuids> = &[("arrow", Uuids::Arrow), ("text", Uuids::Text)];
const PROTOCOL: Words<Protocol> = &[("binary", Protocol::Binary), ("text", Protocol::Text)];
const SNAPSHOT: Words<bool> = &[("true", true), ("false", false)];

/// The keys of `options=` that a read has from every source.
fn read_options() -> [SourceOption; 6] {
    [
        option("numeric_nan", UNREPRESENTABLE, "NaN and infinity in `numeric`: an error, or NULL."),
        option(
            "infinity",
            UNREPRESENTABLE,
            "Infinite dates, timestamps and intervals, and those beyond Arrow's range: an error, or NULL.",
        ),
        option("time_24", UNREPRESENTABLE, "The time 24:00: an error, or NULL."),
        option(
            "uuid",
            UUID,
            "UUIDs: `arrow.uuid` (in pandas `uuid.UUID`), or text, which polars always has.",
        ),
        option(
            "protocol",
            PROTOCOL,
            "The form in which the server sends values: binary where a type has a known one, or text for all.",
        ),
        option(
            "snapshot",
            SNAPSHOT,
            "Whether all parts of a read, or all queries of a list, see one snapshot of the database.",
        ),
    ]
}

fn option<T>(name: &'static str, words: Words<T>, sentence: &'static str) -> SourceOption {
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    SourceOption::new(name, &words, sentence)
}

/// The choices that are sources' own, each of a word that its source declares.
pub(crate) struct Own(pub(crate) OwnOptions);

impl Own {
    fn parse(words: BTreeMap<String, String>) -> Result<Self> {
        for (key, chosen) in &words {
            let known = crate::registry::options().into_iter().find(|option| option.name == *key);
            let known = known.ok_or_else(|| Error::interface(format!("unknown option {key:?}")))?;
            if !known.words.iter().any(|word| word == chosen) {
                return Err(unknown(key, chosen, &known.words));
            }
        }
        Ok(Self(OwnOptions(words)))
    }
}

impl<'py> FromPyObject<'_, 'py> for Own {
    type Error = PyErr;

    fn extract(words: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::parse(words.extract()?).map_err(raise)
    }
}

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
        let options = ReadOptions {
            decimals: word(&mut words, "decimals", decimals)?,
            decimal_digits: if frame == Frame::Polars { 38 } else { 76 },
            intervals: frame != Frame::Polars,
            numeric_nan: word(&mut words, "numeric_nan", UNREPRESENTABLE)?,
            infinity: word(&mut words, "infinity", UNREPRESENTABLE)?,
            time_24: word(&mut words, "time_24", UNREPRESENTABLE)?,
            uuid: word(&mut words, "uuid", UUID)?,
            snapshot: word(&mut words, "snapshot", SNAPSHOT)?,
            protocol: word(&mut words, "protocol", PROTOCOL)?,
            own: Own::parse(words)?.0,
            ..ReadOptions::default()
        };
        Ok(Self { frame, options })
    }
}

impl<'py> FromPyObject<'_, 'py> for Policy {
    type Error = PyErr;

    fn extract(words: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::parse(words.extract()?).map_err(raise)
    }
}

/// The value of the word under `key`, which is taken out of `words`.
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

/// The keys of `options=` that a read has from every source, and those that are sources' own: the words of each, of which
/// the first is the default, and a sentence.
pub(crate) fn declared_options(py: Python<'_>) -> PyResult<[Bound<'_, PyDict>; 2]> {
    let dict = |options: &[SourceOption]| {
        let dict = PyDict::new(py);
        for option in options {
            dict.set_item(option.name.as_ref(), (&option.words, option.sentence.as_ref()))?;
        }
        PyResult::Ok(dict)
    };
    Ok([dict(&read_options())?, dict(&crate::registry::options())?])
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
        assert!(policy.options.own.has("tinyint1", "bool"));
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
