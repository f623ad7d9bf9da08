//! Inferred types: what the values of a column are, the one type that holds them all, and a whole result brought to it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema, TimeUnit};
use longshore_core::{DEFERRED, Error, Finalised, Finaliser, Place, ReadOptions, Result, finalise_columns};
use longshore_values::calendar::Temporal;
use longshore_values::{CellFault, Losses};

use super::buffer::for_each;
use super::convert::{convert, midnight, own_values, temporal};
use crate::cell::{Cell, exact_double};
use crate::types::{Class, Plan};

/// The kinds of values in a column.
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
#[derive(Default)]
pub(crate) struct ValueKinds {
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
    /// Whether a text is not a decimal of the class.
    has_other_than_decimal: bool,
    /// Whether a value is not a date, not a timestamp, not a time of day.
    has_other_than_date: bool,
    has_other_than_timestamp: bool,
    has_other_than_time: bool,
    /// Texts with a zone, and without.
    has_zone: bool,
    has_no_zone: bool,
}

impl ValueKinds {
    /// Looks at `array`, as a buffer of `class` gave it.
    pub(crate) fn add(&mut self, array: &ArrayRef, class: Class) {
        let before = self.rows;
        self.rows += array.len();
        let Some(first) = (0..array.len()).find(|row| array.is_valid(*row)) else { return };
        let first = before + first;
        // Where the form itself tells, no value is looked at.
        match array.data_type() {
            DataType::Date32 => self.text(first, Temporal::Date(0)),
            DataType::Timestamp(..) => self.text(first, Temporal::Timestamp(0)),
            DataType::Time64(_) => self.text(first, Temporal::Time(0)),
            _ if class.is_temporal() => {
                for_each(array, class, |row, cell| self.cell(before + row, cell, class));
            }
            DataType::Int64 => {
                array.as_primitive::<Int64Type>().iter().flatten().for_each(|value| self.integer(value));
            }
            DataType::Float64 if class.is_number() => {
                // What is whole was an integer: see `ColumnBuffer`.
                let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
                for value in array.as_primitive::<Float64Type>().iter().flatten() {
                    if is_whole(&value) { self.integers = true } else { self.reals = true }
                }
            }
            DataType::Float64 => self.reals = true,
            DataType::Utf8 => {
                self.text.get_or_insert(first);
                let is_decimal = |text: &str| class.holds_decimal(text.as_bytes());
                self.has_other_than_decimal =
                    self.has_other_than_decimal || !array.as_string::<i32>().iter().flatten().all(is_decimal);
            }
            DataType::Binary => drop(self.blob.get_or_insert(first)),
            _ => for_each(array, class, |row, cell| self.cell(before + row, cell, class)),
        }
    }

    fn integer(&mut self, value: i64) {
        self.integers = true;
        self.has_negative |= value < 0;
        self.has_beyond_bit |= !(0..=1).contains(&value);
        self.has_inexact |= exact_double(value).is_none();
    }

    fn text(&mut self, row: usize, value: Temporal) {
        self.text.get_or_insert(row);
        self.temporal(Some(value), true);
    }

    fn cell(&mut self, row: usize, cell: Cell<'_>, class: Class) {
        match cell {
            Cell::Null => return,
            Cell::Integer(value) => self.integer(value),
            Cell::Real(_) => self.reals = true,
            Cell::Text(text) => {
                self.text.get_or_insert(row);
                self.has_other_than_decimal |= !class.holds_decimal(text);
            }
            Cell::Blob(_) => drop(self.blob.get_or_insert(row)),
        }
        if class.is_temporal() {
            self.temporal(temporal(cell), matches!(cell, Cell::Text(_)));
        }
    }

    /// Notes a value of a temporal column. A number at midnight is a date, and says nothing of zones.
    fn temporal(&mut self, value: Option<Temporal>, is_text: bool) {
        use Temporal as T;
        let is_date = match value {
            Some(T::Timestamp(_)) if is_text => false,
            _ => value.and_then(midnight).is_some(),
        };
        let is_naive = matches!(value, Some(T::Date(_) | T::Timestamp(_)));
        let has_zone = matches!(value, Some(T::TimestampTz(_)));
        self.has_other_than_date |= !is_date;
        self.has_other_than_timestamp |= !is_naive && !has_zone;
        self.has_other_than_time |= !matches!(value, Some(T::Time(_)));
        self.has_zone |= has_zone;
        self.has_no_zone |= is_naive && is_text;
    }

    /// The narrowest type that holds every value of a column of `class` as it is.
    pub(crate) fn decide(&self, class: Class) -> Result<DataType, CellFault> {
        let numbers = self.integers || self.reals;
        match (self.blob, self.text) {
            (Some(_), None) if !numbers => Ok(DataType::Binary),
            (Some(blob), None) => Err(mixture(blob, "BLOB", "numbers")),
            (Some(blob), Some(text)) if text < blob => Err(mixture(blob, "BLOB", "TEXT")),
            (Some(_), Some(text)) => Err(mixture(text, "TEXT", "BLOB")),
            (None, None) if !numbers => Ok(class.arrow()),
            _ if class.is_temporal() => Ok(self.temporal_type(class)),
            (None, Some(_)) if !numbers && !self.has_other_than_decimal => Ok(class.arrow()),
            (None, Some(_)) => Ok(DataType::Utf8),
            (None, None) => Ok(self.number_type(class)),
        }
    }

    /// The same for values as objects: where numbers would have to become text, or no type holds them all, each keeps its own.
    fn decide_objects(&self, class: Class) -> Result<DataType, CellFault> {
        match self.decide(class) {
            Ok(DataType::Utf8) if self.integers || self.reals => Ok(own_values()),
            Ok(DataType::Float64) if self.integers && class == Class::Any => Ok(own_values()),
            Err(_) => Ok(own_values()),
            decided => decided,
        }
    }

    fn temporal_type(&self, class: Class) -> DataType {
        // Only where timestamps with a zone are declared, a text without a zone is one.
        let is_mixed = self.has_zone && self.has_no_zone && class != Class::TimestampTz;
        match class {
            Class::Time if !self.has_other_than_time => DataType::Time64(TimeUnit::Microsecond),
            Class::Time => DataType::Utf8,
            Class::Date if !self.has_other_than_date => DataType::Date32,
            _ if self.has_other_than_timestamp || is_mixed => DataType::Utf8,
            _ if self.has_zone => Class::TimestampTz.arrow(),
            Class::Date => Class::Timestamp.arrow(),
            _ => class.arrow(),
        }
    }

    fn number_type(&self, class: Class) -> DataType {
        match class {
            Class::Text => DataType::Utf8,
            _ if self.reals && self.integers && self.has_inexact => DataType::Utf8,
            _ if self.reals => DataType::Float64,
            Class::Bool if !self.has_beyond_bit => DataType::Boolean,
            Class::UInt if !self.has_negative => DataType::UInt64,
            Class::Float | Class::Fraction if !self.has_inexact => DataType::Float64,
            _ => DataType::Int64,
        }
    }
}

#[cold]
fn mixture(row: usize, class: &str, others: &str) -> CellFault {
    CellFault::with_hint(
        row,
        format!("a {class} in a column with {others}: no type holds both as they are"),
        "ask for bytes or for text: schema={\"<column>\": \"binary\"} or schema={\"<column>\": \"string\"}",
    )
}

/// The finaliser of the types of a whole result.
pub(crate) struct InferredTypes {
    /// The classes of the columns; `None` for those whose type is final.
    classes: Vec<Option<(Class, Losses)>>,
}

impl InferredTypes {
    /// The finaliser of a result of these columns; `None` where all are final.
    pub(crate) fn of(plans: &[Plan], options: &ReadOptions) -> Option<Arc<dyn Finaliser>> {
        let class = |plan: &Plan| Some((plan.deferred_class()?, Losses::of(plan.field.name(), options)));
        let classes: Vec<_> = plans.iter().map(class).collect();
        classes.iter().any(Option::is_some).then(|| Arc::new(Self { classes }) as Arc<dyn Finaliser>)
    }
}

impl Finaliser for InferredTypes {
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised> {
        self.finalise(schema, batches, ValueKinds::decide)
    }

    fn objects(&self, schema: &Schema, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, mut batches) = self.finalise(schema, vec![batch], ValueKinds::decide_objects)?;
        batches.pop().ok_or_else(|| Error::internal("a batch has gone while it got its types"))
    }
}

/// The type of a column of a class by the kinds of its values.
type Decide = fn(&ValueKinds, Class) -> Result<DataType, CellFault>;

impl InferredTypes {
    /// The batches with the types that `decide` gives their columns.
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>, decide: Decide) -> Result<Finalised> {
        finalise_columns(schema, batches, |at, field, mut arrays| {
            let field = match &self.classes[at] {
                Some((class, losses)) => finalise(field, &mut arrays, *class, decide, &mut losses.clone())?,
                None => field.clone(),
            };
            Ok((field, arrays))
        })
    }
}

/// Brings `arrays` to one type, each freed once its values are there.
fn finalise(
    field: &FieldRef,
    arrays: &mut [ArrayRef],
    class: Class,
    decide: Decide,
    losses: &mut Losses,
) -> Result<FieldRef> {
    let mut kinds = ValueKinds::default();
    for array in arrays.iter() {
        kinds.add(array, class);
    }
    let to = decide(&kinds, class).map_err(|fault| locate(fault, field, 0))?;
    let mut before = 0;
    for array in arrays {
        *array = convert(array, class, &to, losses).map_err(|fault| locate(fault, field, before))?;
        before += array.len() as u64;
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    Ok(Arc::new(field.as_ref().clone().with_data_type(to).with_metadata(metadata)))
}

/// The error of a `fault` in a batch that has `before` rows of the result before it.
pub(crate) fn locate(fault: CellFault, field: &FieldRef, before: u64) -> Error {
    let row = before + fault.row as u64;
    fault.into_error(Place::of(field, Some(row)))
}
