//! The profile of a column: what its objects are at each place, found by one look at all of them.

use std::collections::HashMap;

use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::class::Class;
use crate::kind::WIDE;
use crate::read::{
    Extent, ReadError, Reader, Temporal, decimal_text, extent, float, integer, interval, is_exact, temporal,
    text, time, timedelta, uuid, with_bytes,
};

/// The kind of a value, of those that Arrow tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ValueKind {
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Decimal,
    Date,
    Timestamp,
    TimestampTz,
    Time,
    Duration,
    Uuid,
    Interval,
    List,
    Dict,
}

/// Each kind, in its order, and how an error names it.
const KINDS: [(ValueKind, &str); 15] = [
    (ValueKind::Bool, "a bool"),
    (ValueKind::Int, "an int"),
    (ValueKind::Float, "a float"),
    (ValueKind::Text, "a str"),
    (ValueKind::Bytes, "bytes"),
    (ValueKind::Decimal, "a Decimal"),
    (ValueKind::Date, "a date"),
    (ValueKind::Timestamp, "a datetime without a time zone"),
    (ValueKind::TimestampTz, "a datetime with a time zone"),
    (ValueKind::Time, "a time"),
    (ValueKind::Duration, "a timedelta"),
    (ValueKind::Uuid, "a UUID"),
    (ValueKind::Interval, "an Interval"),
    (ValueKind::List, "a list"),
    (ValueKind::Dict, "a dict"),
];

impl ValueKind {
    /// How an error names it.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Whether JSON has it, and does not show it as something else.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Bool | Self::Int | Self::Float | Self::Text | Self::List | Self::Dict)
    }
}

/// The values of one place: the rows, a key of their dicts, or the values of their lists.
#[derive(Default)]
pub(crate) struct Profile {
    kinds: u16,
    /// The row of the first value of each kind.
    firsts: [usize; KINDS.len()],
    pub(crate) integers: Integers,
    pub(crate) decimals: Decimals,
    /// The row of the first NaN or infinite float.
    pub(crate) infinite: Option<usize>,
    /// The length of all texts and of all bytes.
    pub(crate) size: u64,
    pub(crate) items: Option<Box<Self>>,
    pub(crate) fields: Option<Box<FieldProfiles>>,
}

impl Profile {
    #[inline]
    pub(crate) fn mark(&mut self, kind: ValueKind, row: usize) {
        let bit = 1 << kind as u8;
        if self.kinds & bit == 0 {
            self.kinds |= bit;
            self.firsts[kind as usize] = row;
        }
    }

    pub(crate) fn has(&self, kind: ValueKind) -> bool {
        self.kinds & 1 << kind as u8 != 0
    }

    /// The kinds of values and the row of the first of each, in the order of these rows.
    pub(crate) fn kinds(&self) -> Vec<(ValueKind, usize)> {
        let all = KINDS.into_iter().filter(|(kind, _)| self.has(*kind));
        let mut kinds: Vec<_> = all.map(|(kind, _)| (kind, self.firsts[kind as usize])).collect();
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
    /// The row of the first that no double equals.
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

/// The most keys that make a struct, whose every row takes memory for each of them.
const MOST: usize = 1000;

/// The profile of each key of a place's dicts.
#[derive(Default)]
pub(crate) struct FieldProfiles {
    pub(crate) names: Names,
    profiles: Vec<Profile>,
    /// Under all keys after the first thousand.
    pub(crate) rest: Option<Box<Profile>>,
}

impl FieldProfiles {
    /// The number of the field that `key` names; `likely` is looked at first.
    fn index(&mut self, reader: &Reader<'_>, likely: usize, key: &Bound<'_, PyAny>) -> Result<usize, Fault> {
        if self.names.is_object(likely, key) {
            return Ok(likely);
        }
        let Ok(key) = key.cast::<PyString>() else {
            let class = key.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            let message = format!("a key of the dict is not a str, but of type {class}");
            return Err(Fault::data(reader.row, message)
                .with_hint("make texts of the keys, or a list of pairs of the dict"));
        };
        let name = text(key).map_err(|error| reader.fault(error))?;
        if let Some(index) = self.names.index(likely, key, name) {
            return Ok(index);
        }
        // Arrow's names end at a zero byte.
        if name.contains('\0') {
            return Err(Fault::data(reader.row, format!("the key {name:?} has a zero byte"))
                .with_hint("rename it, or make JSON text of the dict"));
        }
        if self.profiles.len() == MOST {
            return Ok(MOST);
        }
        self.profiles.push(Profile::default());
        Ok(self.names.add(name))
    }

    fn at(&mut self, index: usize) -> &mut Profile {
        match self.profiles.get_mut(index) {
            Some(profile) => profile,
            None => self.rest.get_or_insert_default(),
        }
    }

    /// The keys that have a number of their own, and the profile of each.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &Profile)> {
        self.names.texts().iter().map(String::as_str).zip(&self.profiles)
    }
}

impl Profile {
    /// Looks at `item`, which is at the reader's row.
    pub(crate) fn add<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
    ) -> Result<(), Fault> {
        let class = reader.class(item)?;
        match class {
            Class::Null => Ok(()),
            Class::List | Class::Tuple | Class::Array => {
                self.mark(ValueKind::List, reader.row);
                let items = self.items.get_or_insert_default();
                reader.items(item, class, |reader, item| items.add(reader, item)).map(drop)
            }
            Class::Dict => {
                self.mark(ValueKind::Dict, reader.row);
                let fields = self.fields.get_or_insert_default();
                reader.entries(item, |reader, likely, key, value| {
                    let at = fields.index(reader, likely, key)?;
                    fields.at(at).add(reader, value).map_err(|fault| fault.under(&key.to_string()))
                })
            }
            Class::Enum => {
                let value = reader.value(item)?;
                self.add(reader, &value)
            }
            _ => self.add_scalar(reader.row, item, class).map_err(|error| reader.fault(error)),
        }
    }

    fn add_scalar(&mut self, row: usize, item: &Bound<'_, PyAny>, class: Class) -> Result<(), ReadError> {
        let kind = match class {
            Class::Bool | Class::NumpyBool => ValueKind::Bool,
            Class::Int | Class::NumpyInt => {
                self.integers.add(row, integer(item, class)?);
                ValueKind::Int
            }
            Class::Float | Class::NumpyFloat => {
                if !float(item, class)?.is_finite() {
                    self.infinite.get_or_insert(row);
                }
                ValueKind::Float
            }
            Class::Text => {
                self.size += text(item)?.len() as u64;
                ValueKind::Text
            }
            Class::Bytes | Class::ByteArray | Class::MemoryView => {
                self.size += with_bytes(item, class, <[u8]>::len)? as u64;
                ValueKind::Bytes
            }
            Class::Decimal => {
                self.decimals.add(row, &decimal_text(item, class)?);
                ValueKind::Decimal
            }
            // What is neither text nor number is read once, so that it can be read again.
            Class::Date | Class::Datetime { .. } | Class::NumpyDatetime => match temporal(item, class)? {
                Temporal::Timestamp(_) => ValueKind::Timestamp,
                Temporal::TimestampTz(_) => ValueKind::TimestampTz,
                Temporal::Date(_) => ValueKind::Date,
                Temporal::Null => return Ok(()),
            },
            Class::Time => time(item, class).map(|_| ValueKind::Time)?,
            Class::Timedelta { .. } | Class::NumpyTimedelta => match timedelta(item, class)? {
                Some(_) => ValueKind::Duration,
                None => return Ok(()),
            },
            Class::Uuid => uuid(item, class).map(|_| ValueKind::Uuid)?,
            Class::Interval => interval(item, class).map(|_| ValueKind::Interval)?,
            _ => {
                return Err(ReadError::Unrepresentable(
                    "its Python type has no Arrow type",
                    "convert the column, or take the text of each with options={\"objects\": \"text\"}",
                ));
            }
        };
        self.mark(kind, row);
        Ok(())
    }
}

impl Integers {
    fn add(&mut self, row: usize, value: Option<i128>) {
        let Some(value) = value else {
            self.beyond.get_or_insert(row);
            self.inexact.get_or_insert(row);
            return;
        };
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        if !is_exact(value) {
            self.inexact.get_or_insert(row);
        }
    }
}

impl Decimals {
    fn add(&mut self, row: usize, text: &str) {
        let Some(extent) = extent(text) else {
            self.infinite.get_or_insert(row);
            return;
        };
        self.extent.merge(extent);
        if self.extent.whole.saturating_add(self.extent.scale) > u32::from(WIDE) {
            self.beyond.get_or_insert(row);
        }
    }
}

/// Keys in the order in which they were first seen.
#[derive(Default)]
pub(crate) struct Names {
    texts: Vec<String>,
    /// The object that a key was last. Most keys come again as the same object, at the same place.
    objects: Vec<Option<Py<PyString>>>,
    indexes: HashMap<String, usize>,
}

impl Names {
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether `key` is the object that the name at `at` was last.
    #[inline]
    pub(crate) fn is_object(&self, at: usize, key: &Bound<'_, PyAny>) -> bool {
        self.objects.get(at).and_then(Option::as_ref).is_some_and(|object| object.as_ptr() == key.as_ptr())
    }

    /// The number of the name `text`; `likely` is looked at first.
    #[inline]
    pub(crate) fn index(&mut self, likely: usize, key: &Bound<'_, PyString>, text: &str) -> Option<usize> {
        let at = match self.texts.get(likely) {
            Some(name) if name == text => likely,
            _ => *self.indexes.get(text)?,
        };
        self.objects[at] = Some(key.clone().unbind());
        Some(at)
    }

    /// Adds the name `text`, which is new, and gives its number.
    pub(crate) fn add(&mut self, text: &str) -> usize {
        let at = self.texts.len();
        self.texts.push(text.to_owned());
        self.objects.push(None);
        self.indexes.insert(text.to_owned(), at);
        at
    }
}
