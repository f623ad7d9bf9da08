//! The columns of one result, growing batch by batch.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use longshore_core::memory::check_available;
use longshore_core::{Error, Place, Result, Warnings};
use longshore_retype::{by_column, double_batch, double_schema};
use longshore_values::Fault;
use pyo3::prelude::*;

use crate::chunks::Chunks;
use crate::column::Column;
use crate::dictionary::Dictionary;
use crate::numbers;
use crate::objects::Objects;
use crate::shape::{Backend, Choices, Shape};

/// Takes a column's arrays in, without the interpreter's lock unless it makes Python objects.
pub(crate) trait Accumulator: Send {
    /// Adds the rows of `array`.
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault>;

    /// The memory held.
    fn bytes(&self) -> usize;

    /// Hands the memory over, as a column without a name.
    fn finish(self: Box<Self>, py: Python<'_>) -> PyResult<Column>;
}

/// The memory that has to be free on top of that of the next objects.
const HEADROOM: usize = 16 << 20;

/// The columns of one result. Made before the first batch, fed with every batch, taken at the end.
pub struct Columns {
    schema: SchemaRef,
    /// The columns' names in the frame.
    names: Vec<String>,
    slots: Vec<Box<dyn Accumulator>>,
    /// The number of columns of Python objects.
    objects: usize,
    /// Rows of the result that went before: errors count them.
    before: u64,
    rows: u64,
    /// Until the columns hold so much, the interpreter has memory for their objects.
    checked: usize,
}

impl Columns {
    /// Empty columns of `schema` in the forms that `choices` give them.
    pub fn new(schema: SchemaRef, choices: &Choices) -> Result<Self> {
        let slots = schema.fields().iter().map(|field| slot(field, *choices)).collect::<Result<_>>()?;
        let is_objects = |field: &&FieldRef| matches!(Shape::of(field, choices), Shape::Objects { .. });
        let objects = schema.fields().iter().filter(is_objects).count();
        let names = names(&schema, choices.backend);
        Ok(Self { names, schema, slots, objects, before: 0, rows: 0, checked: 0 })
    }

    /// The columns of one `batch`, which has `before` rows of the result before it. Decimals become doubles, save in the columns
    /// of the names `exact`; `None` for all of them.
    pub fn of_batch(
        mut batch: RecordBatch,
        before: u64,
        choices: Choices,
        exact: Option<&[String]>,
        warnings: &Arc<Warnings>,
    ) -> Result<Self> {
        if let Some(exact) = exact {
            let schema = double_schema(&batch.schema(), exact);
            batch = double_batch(&batch, &schema, before, warnings)?;
        }
        let mut columns = Self::new(batch.schema(), &choices)?.after(before);
        columns.push(&batch)?;
        Ok(columns)
    }

    /// The same columns, `rows` of the result after its start.
    #[must_use]
    pub fn after(self, rows: u64) -> Self {
        Self { before: rows, ..self }
    }

    /// Adds the rows of `batch`. Call it without the interpreter's lock: it is taken only while objects are
    /// made.
    ///
    /// A batch without rows is welcome: it brings a dictionary's labels.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        self.try_reserve(batch)?;
        let before = self.before + self.rows;
        // Column by column: who else waits for the interpreter need not wait for them all.
        let columns = self.slots.iter_mut().zip(batch.columns()).zip(self.schema.fields()).collect();
        let absorbed = by_column(batch.num_rows(), columns, |((slot, array), field)| {
            slot.absorb(array).map_err(|fault| locate(fault, field, before))
        });
        absorbed.into_iter().collect::<Result<()>>()?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Fails where the interpreter would have no memory for the objects of `batch`: most of what makes them panics then.
    fn try_reserve(&mut self, batch: &RecordBatch) -> Result<()> {
        let (objects, held) = (self.objects, self.bytes());
        // A double of its own for each value, and what an object adds to it.
        let wanted = objects * batch.num_rows() * 128 + 2 * batch.get_array_memory_size();
        if objects == 0 || held + wanted <= self.checked {
            return Ok(());
        }
        check_available(wanted + HEADROOM)?;
        self.checked = held + wanted + HEADROOM / 2;
        Ok(())
    }

    /// Refuses a batch of another schema, whose arrays would not be what the accumulators expect, and a NULL
    /// where the source promised none.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.slots.len() {
            return Err(Error::internal("a batch has another number of columns than its schema"));
        }
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            if array.data_type() != field.data_type() {
                let message =
                    format!("a batch holds {} in a column of {}", array.data_type(), field.data_type());
                return Err(Error::internal(message).at(Place::of(field, None)));
            }
            if !field.is_nullable() && array.null_count() > 0 {
                let row = array.nulls().map_or(0, |nulls| nulls.iter().take_while(|valid| *valid).count());
                return Err(locate(broken_promise(row), field, self.before + self.rows));
            }
        }
        Ok(())
    }

    /// The number of rows so far, without those before.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The memory held so far, objects estimated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.bytes()).sum()
    }

    /// Hands every column over.
    pub fn finish(self, py: Python<'_>) -> PyResult<Vec<Column>> {
        let columns = self.slots.into_iter().zip(self.names).zip(self.schema.fields());
        let finished = columns.map(|((slot, name), field)| {
            let mut column = slot.finish(py)?;
            column.name = name;
            column.ordered = field.dict_is_ordered().unwrap_or(false);
            if let DataType::Timestamp(_, zone) = field.data_type() {
                column.timezone = zone.as_deref().map(str::to_owned);
            }
            Ok(column)
        });
        finished.collect()
    }
}

/// pandas keeps names that repeat; a dict cannot.
fn names(schema: &Schema, backend: Backend) -> Vec<String> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    match backend {
        Backend::Masked => distinct_names(&names),
        _ => names.into_iter().map(str::to_owned).collect(),
    }
}

fn slot(field: &Field, choices: Choices) -> Result<Box<dyn Accumulator>> {
    Ok(match Shape::of(field, &choices) {
        Shape::Numbers { nulls, dates } => numbers::accumulator(field.data_type(), nulls, dates)
            .ok_or_else(|| Error::internal("a shape without an accumulator").at(Place::of(field, None)))?,
        Shape::Objects { masked, json } => {
            let objects = Objects::new(field, masked, json);
            Box::new(objects.map_err(|error| error.at(Place::of(field, None)))?)
        }
        Shape::Dictionary => Box::<Dictionary>::default(),
        Shape::Chunks { wide } => Box::new(Chunks::new(field, wide)),
    })
}

fn broken_promise(row: usize) -> Fault {
    Fault::data(row, "NULL, although the source declares the column NOT NULL")
        .with_hint("read it with dtype_backend=\"numpy_nullable\", and report this as a defect")
}

pub(crate) fn locate(fault: Fault, field: &Field, rows: u64) -> Error {
    let row = rows + fault.row() as u64;
    fault.into_error(Place::of(field, Some(row)))
}

/// The names with `_1`, `_2`, ... added to every repetition. A name that is there already is never taken.
#[must_use]
pub fn distinct_names(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen = HashSet::new();
    let mut distinct = Vec::with_capacity(names.len());
    for name in names {
        if seen.insert(*name) {
            distinct.push((*name).to_owned());
            continue;
        }
        let mut number = 1_u64;
        let mut candidate = format!("{name}_{number}");
        while !taken.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        distinct.push(candidate);
    }
    distinct
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float64Array};
    use longshore_core::Kind;

    use super::*;

    fn batch(values: Vec<Option<f64>>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("a", DataType::Float64, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Float64Array::from(values)) as ArrayRef])
            .unwrap()
    }

    #[test]
    fn a_broken_promise_is_told_with_its_row_in_the_whole_result() {
        let promised = Schema::new(vec![Field::new("a", DataType::Float64, false)]);
        let mut columns = Columns::new(Arc::new(promised), &Choices::default()).unwrap();
        columns.push(&batch(vec![Some(1.0), Some(2.0)])).unwrap();
        let error = columns.push(&batch(vec![Some(3.0), None])).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (Kind::Data, Some(3)));
        assert_eq!((columns.rows(), columns.bytes()), (2, 16));
        let error = columns.after(100).push(&batch(vec![None])).unwrap_err();
        assert_eq!(error.place().row, Some(102));
    }

    #[test]
    fn a_batch_of_another_schema_is_refused() {
        let other = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let mut columns = Columns::new(Arc::new(other), &Choices::default()).unwrap();
        assert_eq!(columns.push(&batch(vec![])).unwrap_err().kind(), Kind::Internal);
    }

    #[test]
    fn no_name_is_ever_taken_twice() {
        assert_eq!(distinct_names(&["a", "b", "a", "a"]), ["a", "b", "a_1", "a_2"]);
        assert_eq!(distinct_names(&["a", "a", "a_1"]), ["a", "a_2", "a_1"]);
        assert_eq!(distinct_names(&["a_1", "a", "a", "a_1"]), ["a_1", "a", "a_2", "a_1_1"]);
        assert_eq!(distinct_names(&["", ""]), ["", "_1"]);
    }
}
