//! The engine's stream as a result.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatch, RecordBatchReader, StringArray, make_array,
    new_empty_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use longshore_core::{Batches, Error, Place, Result, Session, Unrepresentable, batch_of, misencoded_row};
use longshore_values::CellFault;

use crate::clickhouse;
use crate::error::{Reason, stream_error, unrepresentable};
use crate::types::{Plan, is_mapped, plan, strip_mark};

/// The engine takes the texts of Arrow data as they are.
const NOT_UTF8: Reason =
    ("a text is not UTF-8", "decode the bytes before the query, or read them with encode(\"<column>\")");

/// `ClickHouse` has no other type for bytes than that of texts.
const NOT_A_TEXT: Reason = (
    "a text is not UTF-8",
    "read the bytes with hex(\"<column>\"), or all String columns as binary with the setting \
     output_format_arrow_string_as_string=0",
);

/// The treatment of values that Arrow cannot hold, and of UUIDs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueOptions {
    /// Infinite dates and timestamps, and intervals whose hours are beyond Arrow's.
    pub infinity: Unrepresentable,
    /// The time 24:00.
    pub time_24: Unrepresentable,
    /// Whether UUIDs are texts.
    pub uuid_text: bool,
}

/// Batches of one schema, made exact.
pub struct Exact {
    schema: SchemaRef,
    plans: Vec<Plan>,
    options: ValueOptions,
    rows: u64,
}

impl Exact {
    /// The plan for batches of `schema`.
    #[must_use]
    pub fn new(schema: &Schema, options: ValueOptions) -> Self {
        let plans: Vec<Plan> = schema.fields().iter().map(|field| plan(field, options)).collect();
        let fields = plans.iter().map(|plan| strip_mark(&plan.field));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, plans, options, rows: 0 }
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next batch, made exact; its texts are UTF-8.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.translate(batch, |_, _| None)
    }

    fn translate(
        &mut self,
        batch: &RecordBatch,
        check: impl Fn(&ArrayRef, &Field) -> Option<CellFault>,
    ) -> Result<RecordBatch> {
        let own = batch.schema();
        let columns =
            batch.columns().iter().zip(&self.plans).zip(own.fields()).map(|((array, plan), own)| {
                check(array, own).map_or_else(|| plan.apply(array, self.options), Err).map_err(|fault| {
                    let row = self.rows + fault.row as u64;
                    fault.into_error(Place::of(&plan.field, Some(row)))
                })
            });
        let columns = columns.collect::<Result<_>>()?;
        self.rows += batch.num_rows() as u64;
        batch_of(&self.schema, columns, batch.num_rows())
    }
}

/// A result of the engine. An empty one is one empty batch, and ends only after the engine's own end.
pub struct EngineBatches<R> {
    reader: R,
    exact: Exact,
    /// The labels of each ENUM, in the order of the types: an Arrow schema does not hold them.
    labels: Vec<Vec<String>>,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    /// No batch has come.
    New,
    Running,
    Ended,
}

/// The first text of a column that is not UTF-8: the engine takes those of Arrow data as they are.
fn find_misencoded(array: &ArrayRef, field: &Field) -> Option<CellFault> {
    if is_mapped(field) {
        return None;
    }
    let reason = if field.metadata().contains_key(clickhouse::TYPE) { NOT_A_TEXT } else { NOT_UTF8 };
    misencoded_row(array).map(|row| unrepresentable(reason, row))
}

impl<R: RecordBatchReader + Send> EngineBatches<R> {
    /// The rows of `reader`, whose types have ENUMs of these `labels`, from the first column to the last and from outside in.
    pub fn new(reader: R, options: ValueOptions, labels: Vec<Vec<String>>) -> Self {
        let exact = Exact::new(&reader.schema(), options);
        Self { reader, exact, labels, state: State::New }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        match self.reader.next() {
            Some(Ok(batch)) => self.exact.translate(&batch, find_misencoded).map(Some),
            Some(Err(error)) => Err(stream_error(&error)),
            None if self.state == State::New => self.empty().map(Some),
            None => Ok(None),
        }
    }

    fn empty(&self) -> Result<RecordBatch> {
        let mut labels = self.labels.iter();
        let columns = self.exact.schema.fields().iter().map(|field| empty(field.data_type(), &mut labels));
        let columns = columns.collect::<Result<_, _>>();
        let columns =
            columns.map_err(|error| Error::internal(format!("an empty column cannot be made: {error}")))?;
        batch_of(&self.exact.schema, columns, 0)
    }
}

impl<R: RecordBatchReader + Send> Iterator for EngineBatches<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Ended {
            return None;
        }
        let next = self.step();
        self.state = if matches!(next, Ok(Some(_))) { State::Running } else { State::Ended };
        next.transpose()
    }
}

impl<R: RecordBatchReader + Send> Batches for EngineBatches<R> {
    fn schema(&self) -> SchemaRef {
        self.exact.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// An array of no rows, whose dictionaries have the `labels` that come next.
fn empty<'a>(
    data_type: &DataType,
    labels: &mut impl Iterator<Item = &'a Vec<String>>,
) -> Result<ArrayRef, ArrowError> {
    let bare = new_empty_array(data_type);
    let children = if let DataType::Dictionary(_, values) = data_type {
        let Some(labels) = labels.next() else { return Ok(bare) };
        match **values {
            DataType::LargeUtf8 => vec![LargeStringArray::from_iter_values(labels).into_data()],
            _ => vec![StringArray::from_iter_values(labels).into_data()],
        }
    } else {
        let mut children = Vec::new();
        for child in bare.to_data().child_data() {
            children.push(empty(child.data_type(), labels)?.to_data());
        }
        children
    };
    Ok(make_array(bare.into_data().into_builder().child_data(children).build()?))
}
