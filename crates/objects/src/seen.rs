//! What a walk has seen at one place of a column: its rows, a key of its dicts, or the values of its lists.

use crate::names::Names;
use crate::read::Extent;

/// What a value is, of the kinds that Arrow tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Decimal,
    Date,
    Naive,
    Instant,
    Time,
    Duration,
    Uuid,
    Interval,
    List,
    Dict,
}

impl What {
    pub(crate) const ALL: [Self; 15] = [
        Self::Bool,
        Self::Int,
        Self::Float,
        Self::Text,
        Self::Bytes,
        Self::Decimal,
        Self::Date,
        Self::Naive,
        Self::Instant,
        Self::Time,
        Self::Duration,
        Self::Uuid,
        Self::Interval,
        Self::List,
        Self::Dict,
    ];

    /// How an error names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Int => "an int",
            Self::Float => "a float",
            Self::Text => "a str",
            Self::Bytes => "bytes",
            Self::Decimal => "a Decimal",
            Self::Date => "a date",
            Self::Naive => "a datetime without a time zone",
            Self::Instant => "a datetime with a time zone",
            Self::Time => "a time",
            Self::Duration => "a timedelta",
            Self::Uuid => "a UUID",
            Self::Interval => "an Interval",
            Self::List => "a list",
            Self::Dict => "a dict",
        }
    }

    /// Whether JSON has it, and does not show it as something else.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Float | Self::Text | Self::List | Self::Dict)
    }
}

/// What has been seen at one place.
#[derive(Default)]
pub(crate) struct Seen {
    kinds: u16,
    /// The row of the first value of each kind.
    firsts: [usize; What::ALL.len()],
    pub(crate) integers: Integers,
    pub(crate) decimals: Decimals,
    /// The row of the first NaN or infinite float.
    pub(crate) infinite: Option<usize>,
    /// The bytes of all texts, and of all bytes.
    pub(crate) size: u64,
    pub(crate) items: Option<Box<Self>>,
    pub(crate) fields: Option<Box<Members>>,
}

impl Seen {
    #[inline]
    pub(crate) fn mark(&mut self, what: What, row: usize) {
        let bit = 1 << what as u8;
        if self.kinds & bit == 0 {
            self.kinds |= bit;
            self.firsts[what as usize] = row;
        }
    }

    pub(crate) fn has(&self, what: What) -> bool {
        self.kinds & 1 << what as u8 != 0
    }

    /// The kinds of values and the row of the first of each, in the order of these rows.
    pub(crate) fn kinds(&self) -> Vec<(What, usize)> {
        let all = What::ALL.into_iter().filter(|what| self.has(*what));
        let mut kinds: Vec<_> = all.map(|what| (what, self.firsts[what as usize])).collect();
        kinds.sort_by_key(|(_, row)| *row);
        kinds
    }
}

/// The integers of one place.
#[derive(Default)]
pub(crate) struct Integers {
    pub(crate) least: i128,
    pub(crate) most: i128,
    /// The row of the first that 128 bits do not hold.
    pub(crate) beyond: Option<usize>,
    /// The row of the first that is no double.
    pub(crate) inexact: Option<usize>,
}

/// The decimals of one place.
#[derive(Default)]
pub(crate) struct Decimals {
    pub(crate) extent: Extent,
    /// The row of the first NaN or infinite one.
    pub(crate) infinite: Option<usize>,
    /// The row of the one with which there were too many digits first.
    pub(crate) beyond: Option<usize>,
}

/// The most keys that make a struct, whose every row takes room for each of them.
const MOST: usize = 1000;

/// What has been seen under each key of a place's dicts.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) names: Names,
    seen: Vec<Seen>,
    /// Under all keys after the first thousand.
    pub(crate) rest: Option<Box<Seen>>,
}

impl Members {
    /// The number of the new key `name`.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        if self.seen.len() == MOST {
            self.rest.get_or_insert_default();
            return MOST;
        }
        self.seen.push(Seen::default());
        self.names.add(name)
    }

    pub(crate) fn at(&mut self, number: usize) -> &mut Seen {
        match self.seen.get_mut(number) {
            Some(seen) => seen,
            None => self.rest.get_or_insert_default(),
        }
    }

    /// The keys that have a number of their own, and what was seen under each.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &Seen)> {
        self.names.texts().iter().map(String::as_str).zip(&self.seen)
    }
}
