//! Inferred types: what the values of a column are, the one type that holds them all, and a whole result brought to it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, FieldRef, Schema, TimeUnit};
use longshore_cells::calendar::DAY;
use longshore_cells::{CellFault, Losses};
use longshore_core::{DEFERRED, Error, Kind, NATIVE_TYPE, Place, ReadOptions, Result, Settled, Settler};

use crate::cell::{Cell, exact_double};
use crate::datetime::{self, Temporal};
use crate::decode::buffer::walk;
use crate::decode::convert::convert;
use crate::decode::decimals;
use crate::types::Class;
use crate::types::Plan;

/// The kinds of values in a column.
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl ValueKinds {
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
                // What is whole was an integer: see `ColumnBuffer`.
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
            Cell::Integer(value) => datetime::unix(value),
            Cell::Real(value) => datetime::julian(value),
            Cell::Text(text) => {
                match datetime::parse(text) {
                    Some(Temporal::Date(_)) => {
                        self.has_no_zone = true;
                        self.not.time = true;
                    }
                    Some(Temporal::Timestamp(_)) => {
                        self.has_no_zone = true;
                        self.not.date = true;
                        self.not.time = true;
                    }
                    Some(Temporal::TimestampTz(_)) => {
                        self.has_zone = true;
                        self.not.date = true;
                        self.not.time = true;
                    }
                    Some(Temporal::Time(_)) => {
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
        let is_mixed = self.has_zone && self.has_no_zone && class != Class::TimestampTz;
        match class {
            Class::Time if !self.not.time => DataType::Time64(TimeUnit::Microsecond),
            Class::Time => DataType::Utf8,
            Class::Date if !self.not.date => DataType::Date32,
            _ if self.not.moment || is_mixed => DataType::Utf8,
            _ if self.has_zone || class == Class::TimestampTz => instant,
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
    matches!(class, Class::Date | Class::Timestamp | Class::TimestampTz | Class::Time)
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

/// Decides once all values are there.
pub(crate) struct InferredTypes {
    /// The classes of the columns; `None` for those that are final.
    classes: Vec<Option<(Class, Losses)>>,
}

impl InferredTypes {
    /// What settles a result of these columns; `None` where all are final.
    pub(crate) fn of(plans: &[Plan], options: &ReadOptions) -> Option<Arc<dyn Settler>> {
        let classes: Vec<_> = plans
            .iter()
            .map(|plan| Some((plan.deferred()?, Losses::of(plan.field.name(), options))))
            .collect();
        classes.iter().any(Option::is_some).then(|| Arc::new(Self { classes }) as Arc<dyn Settler>)
    }
}

impl Settler for InferredTypes {
    fn settle(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Settled> {
        let lengths: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        let mut by_column: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); self.classes.len()];
        for batch in batches {
            for (arrays, array) in by_column.iter_mut().zip(batch.columns()) {
                arrays.push(array.clone());
            }
        }
        let mut fields = Vec::with_capacity(by_column.len());
        for ((arrays, class), field) in by_column.iter_mut().zip(&self.classes).zip(schema.fields()) {
            fields.push(match class {
                Some((class, losses)) => settled(field, arrays, *class, &mut losses.clone())?,
                None => field.clone(),
            });
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut columns: Vec<_> = by_column.into_iter().map(Vec::into_iter).collect();
        let batches = lengths.into_iter().map(|rows| {
            let arrays = columns.iter_mut().filter_map(Iterator::next).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
                .map_err(|error| Error::internal(format!("the settled columns do not match: {error}")))
        });
        let batches = batches.collect::<Result<_>>()?;
        Ok((schema, batches))
    }
}

/// Brings `arrays` to one type, each freed once its values are there.
fn settled(field: &FieldRef, arrays: &mut [ArrayRef], class: Class, losses: &mut Losses) -> Result<FieldRef> {
    let mut kinds = ValueKinds::default();
    for array in arrays.iter() {
        kinds.add(array, class);
    }
    let to = kinds.decide(class).map_err(|fault| located(fault, field, 0))?;
    let mut before = 0;
    for array in arrays {
        let rows = array.len() as u64;
        let taken = std::mem::replace(array, arrow_array::new_empty_array(&to));
        *array = convert(taken, class, &to, losses).map_err(|fault| located(fault, field, before))?;
        before += rows;
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    Ok(Arc::new(field.as_ref().clone().with_data_type(to).with_metadata(metadata)))
}

/// The error of a `fault` in a batch that has `before` rows of the result before it.
pub(crate) fn located(fault: CellFault, field: &FieldRef, before: u64) -> Error {
    let place = Place {
        column: Some(field.name().clone()),
        row: Some(before + fault.row as u64),
        native_type: field.metadata().get(NATIVE_TYPE).filter(|native| !native.is_empty()).cloned(),
    };
    fault.into_error(place)
}
