//! Rows as the messages of a call that sends them.
//!
//! Arrow's own encoder of Flight can turn any type into any other on its way, of which dictionaries alone are wanted here, and the
//! ADBC driver would have all of it; see `docs/design/flight.md`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_flight::{FlightData, FlightDescriptor, SchemaAsIpc};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use longshore_core::{Error, Result};

/// The bytes of a message, about: servers refuse those of more than 4 MiB by default.
const MESSAGE: usize = 2 << 20;

/// Encodes batches of one schema. Not all servers know dictionaries: their values are sent.
pub(crate) struct Encoder {
    schema: SchemaRef,
    options: IpcWriteOptions,
    dictionaries: DictionaryTracker,
    context: IpcWriteContext,
}

impl Encoder {
    /// The encoder, and the call's first message.
    pub(crate) fn begin(schema: &Schema, descriptor: FlightDescriptor) -> (Self, FlightData) {
        let fields = schema.fields().iter().map(plain_field).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let options = IpcWriteOptions::default();
        let first = FlightData::from(SchemaAsIpc::new(&schema, &options)).with_descriptor(descriptor);
        let dictionaries = DictionaryTracker::new(true);
        let mut context = IpcWriteContext::default();
        context.set_reserve_scratch(true);
        (Self { schema, options, dictionaries, context }, first)
    }

    /// The messages of a batch.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<FlightData>> {
        self.messages(batch).map_err(|error| Error::internal(format!("rows that cannot be sent: {error}")))
    }

    fn messages(&mut self, batch: &RecordBatch) -> Result<Vec<FlightData>, ArrowError> {
        let columns = batch.columns().iter().map(|column| {
            if has_dictionary(column.data_type()) {
                plain(&column.to_data()).map(make_array)
            } else {
                Ok(column.clone())
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let bytes = columns
            .iter()
            .map(|column| column.to_data().get_slice_memory_size())
            .sum::<Result<usize, _>>()?;
        let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &count)?;
        let rows = batch.num_rows();
        let most = (rows / bytes.div_ceil(MESSAGE).max(1)).max(1);
        let mut messages = Vec::new();
        for start in (0..rows).step_by(most) {
            let part = batch.slice(start, most.min(rows - start));
            let (_, message) = IpcDataGenerator::default().encode(
                &part,
                &mut self.dictionaries,
                &self.options,
                &mut self.context,
            )?;
            messages.push(message.into());
        }
        Ok(messages)
    }
}

fn has_dictionary(data_type: &DataType) -> bool {
    plain_type(data_type) != *data_type
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())))
}

/// The type without dictionaries.
fn plain_type(data_type: &DataType) -> DataType {
    use DataType as T;
    match data_type {
        T::Dictionary(_, values) => plain_type(values),
        T::List(items) => T::List(plain_field(items)),
        T::LargeList(items) => T::LargeList(plain_field(items)),
        T::ListView(items) => T::ListView(plain_field(items)),
        T::LargeListView(items) => T::LargeListView(plain_field(items)),
        T::FixedSizeList(items, size) => T::FixedSizeList(plain_field(items), *size),
        T::Map(entries, is_sorted) => T::Map(plain_field(entries), *is_sorted),
        T::Struct(fields) => T::Struct(fields.iter().map(plain_field).collect()),
        T::Union(fields, mode) => {
            T::Union(fields.iter().map(|(id, field)| (id, plain_field(field))).collect(), *mode)
        }
        T::RunEndEncoded(ends, values) => T::RunEndEncoded(ends.clone(), plain_field(values)),
        other => other.clone(),
    }
}

/// The array with its dictionaries' values in their places.
fn plain(data: &ArrayData) -> Result<ArrayData, ArrowError> {
    let children = data.child_data().iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    if let (DataType::Dictionary(..), [values]) = (data.data_type(), &*children) {
        return look_up(data, values);
    }
    let plain_type = plain_type(data.data_type());
    ArrayDataBuilder::from(data.clone()).data_type(plain_type).child_data(children).build()
}

fn look_up(dictionary: &ArrayData, values: &ArrayData) -> Result<ArrayData, ArrowError> {
    if values.is_empty() {
        return Ok(ArrayData::new_null(values.data_type(), dictionary.len()));
    }
    let dictionary = make_array(dictionary.clone());
    let keys = dictionary.as_any_dictionary().normalized_keys();
    let mut found = MutableArrayData::new(vec![values], true, keys.len());
    for (row, key) in keys.into_iter().enumerate() {
        if dictionary.is_null(row) {
            found.try_extend_nulls(1)?;
        } else {
            found.try_extend(0, key, key + 1)?;
        }
    }
    Ok(found.freeze())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, ListArray, RunArray, StringArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::Field;
    use longshore_flight_protocol::ipc::{Decoded, Decoder};

    use super::*;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let field = |column: &ArrayRef| Field::new("c", column.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    /// The batches that a server reads, one batch for each message.
    fn send(batch: &RecordBatch) -> Vec<RecordBatch> {
        let (mut encoder, first) = Encoder::begin(&batch.schema(), FlightDescriptor::default());
        let mut decoder = Decoder::default();
        assert!(matches!(decoder.decode(&first.clone().into()), Ok(Decoded::Schema(_))));
        let messages = encoder.encode(batch).unwrap();
        assert!(messages.iter().all(|message| message.data_body.len() < 2 * MESSAGE));
        let batches = messages.iter().map(|message| match decoder.decode(&message.clone().into()) {
            Ok(Decoded::Batch(batch)) => batch,
            _ => panic!("a message is not a batch"),
        });
        batches.collect()
    }

    fn labels() -> DictionaryArray<Int32Type> {
        let keys = [Some(1), None, Some(0), Some(2), Some(1)].into_iter().collect();
        let values = StringArray::from(vec![Some("a"), Some("b"), None]);
        DictionaryArray::new(keys, Arc::new(values))
    }

    fn texts() -> StringArray {
        StringArray::from(vec![Some("b"), None, Some("a"), None, Some("b")])
    }

    #[test]
    fn dictionaries_are_sent_as_their_values() {
        let list = |items: ArrayRef| {
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([2, 0, 1, 1, 1]), items, None))
                as ArrayRef
        };
        let row = |column: ArrayRef| {
            let field = Field::new("x", column.data_type().clone(), true);
            Arc::new(StructArray::from(vec![(Arc::new(field), column)])) as ArrayRef
        };
        let (labels, texts): (ArrayRef, ArrayRef) = (Arc::new(labels()), Arc::new(texts()));
        let given = batch(vec![labels.clone(), list(labels.clone()), row(list(labels))]);
        let plain = batch(vec![texts.clone(), list(texts.clone()), row(list(texts))]);
        assert_eq!(send(&given), std::slice::from_ref(&plain));
        assert_eq!(send(&given.slice(1, 3)), [plain.slice(1, 3)]);
    }

    #[test]
    fn a_dictionary_without_values_is_nulls() {
        let none: DictionaryArray<Int8Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(send(&batch(vec![Arc::new(none)])), [batch(vec![Arc::new(StringArray::new_null(2))])]);
    }

    #[test]
    fn runs_of_labels_stay_runs() {
        let ends = arrow_array::Int32Array::from(vec![2, 3, 4, 6, 7]);
        let runs = |values: &dyn Array| Arc::new(RunArray::try_new(&ends, values).unwrap()) as ArrayRef;
        assert_eq!(send(&batch(vec![runs(&labels())])), [batch(vec![runs(&texts())])]);
    }

    #[test]
    fn a_large_batch_is_sent_in_several_messages() {
        let numbers = batch(vec![Arc::new(Int64Array::from_iter_values(0..1_000_000))]);
        let parts = send(&numbers);
        assert_eq!(parts.len(), 4);
        let mut at = 0;
        for part in parts {
            assert_eq!(part, numbers.slice(at, part.num_rows()));
            at += part.num_rows();
        }
        assert_eq!(at, 1_000_000);
        // A slice has its own size, not that of what it is a slice of.
        assert_eq!(send(&numbers.slice(5, 10)).len(), 1);
    }
}
