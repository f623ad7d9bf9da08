//! What the values of a column are, and the type that holds them all.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use longshore_cells::CellFault;
use longshore_cells::calendar::DAY;
use longshore_core::Kind;

use crate::cell::{Cell, exact_double};
use crate::decimals;
use crate::moment::{self, Moment};
use crate::store::walk;
use crate::types::Class;

/// The kinds of values in a column.
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    rows: usize,
    integers: bool,
    reals: bool,
    /// The first row with text.
    text: Option<usize>,
    /// The first row with bytes.
    blob: Option<usize>,
    /// Whether an integer has no exact double.
    has_inexact: bool,
    has_negative: bool,
    /// Whether an integer is neither 0 nor 1.
    has_beyond_bit: bool,
    /// Whether a text is no decimal of the class.
    has_no_decimal: bool,
    /// Values that are no day, no moment without a zone, no instant, no time of day.
    not: Misfits,
    /// Texts with a zone, and without.
    has_zone: bool,
    has_no_zone: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Misfits {
    date: bool,
    moment: bool,
    time: bool,
}

impl Kinds {
    /// Looks at `array`, which a store of `class` gave.
    pub(crate) fn add(&mut self, array: &ArrayRef, class: Class) {
        let before = self.rows;
        self.rows += array.len();
        if array.null_count() == array.len() {
            return;
        }
        // Where the form itself tells, no value is looked at.
        match array.data_type() {
            DataType::Int64 if !is_temporal(class) => {
                array.as_primitive::<Int64Type>().iter().flatten().for_each(|value| self.integer(value));
            }
            DataType::Float64 if !is_temporal(class) && !is_number(class) => {
                self.reals = true;
            }
            DataType::Float64 if !is_temporal(class) => {
                // What is whole was an integer: see `Store`.
                let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
                for value in array.as_primitive::<Float64Type>().iter().flatten() {
                    if is_whole(&value) { self.integers = true } else { self.reals = true }
                }
            }
            DataType::Utf8 if !is_temporal(class) => {
                let first = (0..array.len()).find(|row| array.is_valid(*row)).unwrap_or_default();
                self.text.get_or_insert(before + first);
                self.has_no_decimal = self.has_no_decimal || !decimals::fit(array, class);
            }
            DataType::Binary => {
                let first = (0..array.len()).find(|row| array.is_valid(*row)).unwrap_or_default();
                self.blob.get_or_insert(before + first);
                self.not = Misfits { date: true, moment: true, time: true };
            }
            DataType::Date32 => {
                self.text.get_or_insert(before);
                self.has_no_zone = true;
                self.not.time = true;
            }
            DataType::Timestamp(..) => {
                self.text.get_or_insert(before);
                self.has_no_zone = true;
                self.not.date = true;
                self.not.time = true;
            }
            DataType::Time64(_) => {
                self.text.get_or_insert(before);
                self.not.date = true;
                self.not.moment = true;
            }
            _ => walk(array, class, |row, cell| self.cell(before + row, cell, class)),
        }
    }

    fn integer(&mut self, value: i64) {
        self.integers = true;
        self.has_negative |= value < 0;
        self.has_beyond_bit |= !(0..=1).contains(&value);
        self.has_inexact |= exact_double(value).is_none();
    }

    fn cell(&mut self, row: usize, cell: Cell<'_>, class: Class) {
        match cell {
            Cell::Null => return,
            Cell::Integer(value) => self.integer(value),
            Cell::Real(_) => self.reals = true,
            Cell::Text(text) => {
                self.text.get_or_insert(row);
                self.has_no_decimal |= !decimals::is_one(text, class);
            }
            Cell::Blob(_) => drop(self.blob.get_or_insert(row)),
        }
        if is_temporal(class) {
            self.moment(cell);
        }
    }

    fn moment(&mut self, cell: Cell<'_>) {
        let number = match cell {
            Cell::Integer(value) => moment::unix(value),
            Cell::Real(value) => moment::julian(value),
            Cell::Text(text) => {
                match moment::parse(text) {
                    Some(Moment::Date(_)) => {
                        self.has_no_zone = true;
                        self.not.time = true;
                    }
                    Some(Moment::Naive(_)) => {
                        self.has_no_zone = true;
                        self.not.date = true;
                        self.not.time = true;
                    }
                    Some(Moment::Instant(_)) => {
                        self.has_zone = true;
                        self.not.date = true;
                        self.not.time = true;
                    }
                    Some(Moment::Time(_)) => {
                        self.not.date = true;
                        self.not.moment = true;
                    }
                    None => self.not = Misfits { date: true, moment: true, time: true },
                }
                return;
            }
            Cell::Null | Cell::Blob(_) => None,
        };
        match number {
            Some(at) => {
                self.not.date |= at % DAY != 0;
                self.not.time = true;
            }
            None => self.not = Misfits { date: true, moment: true, time: true },
        }
    }

    /// The narrowest type that holds every value of a column of `class` as it is.
    pub(crate) fn decide(&self, class: Class) -> Result<DataType, CellFault> {
        let numbers = self.integers || self.reals;
        if let Some(blob) = self.blob {
            return match self.text {
                None if !numbers => Ok(DataType::Binary),
                None => Err(mixed(blob, "BLOB", "numbers")),
                Some(text) if text < blob => Err(mixed(blob, "BLOB", "TEXT")),
                Some(text) => Err(mixed(text, "TEXT", "BLOB")),
            };
        }
        if !numbers && self.text.is_none() {
            return Ok(class.arrow());
        }
        if is_temporal(class) {
            return Ok(self.temporal(class));
        }
        if self.text.is_some() {
            let is_decimal = !numbers && !self.has_no_decimal && decimals::is_decimal(class);
            return Ok(if is_decimal { class.arrow() } else { DataType::Utf8 });
        }
        Ok(self.number(class))
    }

    fn temporal(&self, class: Class) -> DataType {
        let naive = DataType::Timestamp(TimeUnit::Microsecond, None);
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        // Only where instants are declared, a text without a zone is one.
        let is_mixed = self.has_zone && self.has_no_zone && class != Class::Instant;
        match class {
            Class::Time if !self.not.time => DataType::Time64(TimeUnit::Microsecond),
            Class::Time => DataType::Utf8,
            Class::Date if !self.not.date => DataType::Date32,
            _ if self.not.moment || is_mixed => DataType::Utf8,
            _ if self.has_zone || class == Class::Instant => instant,
            _ => naive,
        }
    }

    fn number(&self, class: Class) -> DataType {
        match class {
            Class::Text => DataType::Utf8,
            _ if self.reals => {
                if self.integers && self.has_inexact {
                    DataType::Utf8
                } else {
                    DataType::Float64
                }
            }
            Class::Bool if !self.has_beyond_bit => DataType::Boolean,
            Class::UInt if !self.has_negative => DataType::UInt64,
            Class::Float | Class::Fraction if !self.has_inexact => DataType::Float64,
            _ => DataType::Int64,
        }
    }
}

pub(crate) fn is_temporal(class: Class) -> bool {
    matches!(class, Class::Date | Class::Timestamp | Class::Instant | Class::Time)
}

fn is_number(class: Class) -> bool {
    matches!(class, Class::Fraction | Class::Number)
}

#[cold]
fn mixed(row: usize, class: &str, others: &str) -> CellFault {
    CellFault {
        row,
        what: format!("a {class} in a column with {others}: no type holds both as they are").into(),
        hint: Some(
            "ask for bytes or for text: schema={\"<column>\": \"binary\"} or schema={\"<column>\": \"string\"}".into(),
        ),
        kind: Kind::Data,
    }
}
