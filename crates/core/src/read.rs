//! The options of a read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::DataType;

use crate::memory::Budget;
use crate::{Error, Meter, Result, Warnings};

/// How decimals reach the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decimals {
    /// Exact, and where the database declares no scale, the smallest that fits the whole result.
    #[default]
    Inferred,
    /// Exact, with a scale of 20 where the database declares none: a stream cannot look ahead.
    Streamed,
    /// The nearest double (pandas).
    Float64,
}

/// The treatment of a value that Arrow cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unrepresentable {
    /// An error that names column and row.
    #[default]
    Error,
    /// NULL.
    Null,
}

/// How UUIDs reach the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uuids {
    /// Sixteen bytes under Arrow's canonical extension type `arrow.uuid`.
    #[default]
    Arrow,
    /// Lower-case text with hyphens.
    Text,
}

/// A key of `options=` that is one source's own.
#[derive(Clone, Debug)]
pub struct SourceOption {
    /// The key.
    pub name: Cow<'static, str>,
    /// The words that it takes; the first is its default. Those of True and False are `true` and `false`.
    pub words: Vec<Cow<'static, str>>,
    /// One sentence for the reference.
    pub sentence: Cow<'static, str>,
}

impl SourceOption {
    /// A key of a source whose options are known when it is compiled.
    #[must_use]
    pub fn new(name: &'static str, words: &[&'static str], sentence: &'static str) -> Self {
        let words = words.iter().map(|word| Cow::Borrowed(*word)).collect();
        Self { name: name.into(), words, sentence: sentence.into() }
    }
}

/// The words of keys that are sources' own, which were checked against what those declare.
#[derive(Clone, Debug, Default)]
pub struct OwnOptions(pub BTreeMap<String, String>);

impl OwnOptions {
    /// Whether `key` has this word, which is not its default.
    #[must_use]
    pub fn has(&self, key: &str, word: &str) -> bool {
        self.0.get(key).is_some_and(|chosen| chosen == word)
    }
}

/// Which of the database's two encodings carries the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Binary where a type has a known binary form.
    #[default]
    Binary,
    /// Text for every type.
    Text,
}

/// The choices of one read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Rows per batch at most.
    pub batch_rows: usize,
    /// A batch of about this many bytes is closed before it has all its rows.
    pub batch_bytes: usize,
    /// How decimals reach the frame.
    pub decimals: Decimals,
    /// The widest decimal the frame can hold, in digits: 76, or 38 (polars).
    pub decimal_digits: u8,
    /// Whether the frame can hold intervals of months, days and nanoseconds.
    pub intervals: bool,
    /// NaN and infinity in decimals.
    pub numeric_nan: Unrepresentable,
    /// Infinite dates and timestamps, and those out of Arrow's range.
    pub infinity: Unrepresentable,
    /// The time 24:00.
    pub time_24: Unrepresentable,
    /// How UUIDs reach the frame.
    pub uuid: Uuids,
    /// Whether all parts and queries of one read see one snapshot of the database.
    pub snapshot: bool,
    /// The choices that are one source's own (see [`crate::Driver::options`]).
    pub own: OwnOptions,
    /// Binary or text results.
    pub protocol: Protocol,
    /// Whether a statement without rows is run, too: its batches are none, and [`crate::Batches::effect`] tells what it did.
    pub any_statement: bool,
    /// Arrow types by column name that replace the type policy's.
    pub schema: Vec<(String, DataType)>,
    /// The most memory that the result may hold, over all sessions of the read.
    pub budget: Arc<Budget>,
    /// Counts what comes, over all sessions of the read.
    pub meter: Arc<Meter>,
    /// The warnings for the caller, told once the read has ended well.
    pub warnings: Arc<Warnings>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            batch_rows: 65_536,
            batch_bytes: 32 << 20,
            decimals: Decimals::default(),
            decimal_digits: 76,
            intervals: true,
            numeric_nan: Unrepresentable::default(),
            infinity: Unrepresentable::default(),
            time_24: Unrepresentable::default(),
            uuid: Uuids::default(),
            snapshot: true,
            own: OwnOptions::default(),
            protocol: Protocol::default(),
            any_statement: false,
            schema: Vec::new(),
            budget: Arc::default(),
            meter: Arc::default(),
            warnings: Arc::default(),
        }
    }
}

impl ReadOptions {
    /// Refuses a type for a column that is not one of `names`.
    pub fn check_names<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<()> {
        if self.schema.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> = names.collect();
        match self.schema.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(Error::unknown_column("schema=", name, &known)),
            None => Ok(()),
        }
    }

    /// The type that the caller asks for in `column`, if any.
    #[must_use]
    pub fn wanted_type(&self, column: &str) -> Option<&DataType> {
        self.schema.iter().find(|(name, _)| name == column).map(|(_, data_type)| data_type)
    }
}
