//! Rows in a table's own types: exactly, or an error with the column and the row.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray, downcast_integer, make_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use longshore_core::{Error, Place, Result, batch_of};
use longshore_source::fit::float32;
use longshore_store::Table;
use longshore_values::{Item, Items, per_second};

/// The columns of rows, each of the type that the table has it in.
pub(crate) struct Conformed {
    /// The columns that the rows come as.
    pub(crate) schema: SchemaRef,
    rows: u64,
}

impl Conformed {
    /// The rows' own columns.
    pub(crate) fn own(schema: &SchemaRef) -> Self {
        Self { schema: schema.clone(), rows: 0 }
    }

    /// Those of a table, but for columns that it does not have, or has in a type that theirs is not made into.
    pub(crate) fn of(schema: &SchemaRef, table: &Table) -> Self {
        let known = table.schema();
        let field = |field: &Arc<Field>| {
            let found = known.fields().iter().find(|known| known.name().eq_ignore_ascii_case(field.name()));
            let kind = found.map_or(field.data_type(), |known| known.data_type());
            let is_made = kind != field.data_type() && is_made(field.data_type(), kind);
            if is_made {
                Arc::new(field.as_ref().clone().with_data_type(kind.clone()))
            } else {
                field.clone()
            }
        };
        let fields: Vec<_> = schema.fields().iter().map(field).collect();
        Self { schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), rows: 0 }
    }

    /// The rows of a batch.
    pub(crate) fn batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (column, field) in batch.columns().iter().zip(self.schema.fields()) {
            columns.push(convert(column, field.data_type()).map_err(|row| {
                let message = format!("a value of {} does not fit {}", column.data_type(), field.data_type());
                Error::data(message).with_hint("cast the rows' column, or replace the table").at(Place {
                    column: Some(field.name().clone()),
                    row: Some(self.rows + row as u64),
                    native_type: Some(field.data_type().to_string()),
                })
            })?);
        }
        self.rows += batch.num_rows() as u64;
        batch_of(&self.schema, columns, batch.num_rows())
    }
}

/// The kinds of types within which values are made of each other.
#[derive(PartialEq, Eq)]
enum Family {
    Text,
    Bytes,
    Integer,
    Float,
    Timestamp { is_zoned: bool },
}

fn family(kind: &DataType) -> Option<Family> {
    Some(match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Family::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Family::Bytes,
        DataType::Float32 | DataType::Float64 => Family::Float,
        DataType::Timestamp(_, zone) => Family::Timestamp { is_zoned: zone.is_some() },
        kind if kind.is_integer() => Family::Integer,
        _ => return None,
    })
}

fn is_made(from: &DataType, to: &DataType) -> bool {
    let from = if let DataType::Dictionary(_, values) = from { values } else { from };
    family(from).is_some_and(|family_of| family(to) == Some(family_of))
}

/// A column in another type of its family; the row of a value that does not fit.
fn convert(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, usize> {
    if column.data_type() == to {
        return Ok(column.clone());
    }
    let items = Items::new(column, &Field::new("", column.data_type().clone(), true)).map_err(|_| 0_usize)?;
    let rows = || (0..column.len()).map(|row| items.get(row));
    let texts = || rows().map(|item| if let Item::Text(text) = item { Some(text) } else { None });
    let bytes = || rows().map(|item| if let Item::Bytes(bytes) = item { Some(bytes) } else { None });
    macro_rules! integers {
        ($kind:ty) => {
            Arc::new(each::<$kind>(rows(), |item| match item {
                Item::Int(value) => (*value).try_into().ok(),
                Item::UInt(value) => (*value).try_into().ok(),
                _ => None,
            })?)
        };
    }
    Ok(downcast_integer! {
        to => (integers),
        DataType::Utf8 => Arc::new(texts().collect::<StringArray>()),
        DataType::LargeUtf8 => Arc::new(texts().collect::<LargeStringArray>()),
        DataType::Utf8View => Arc::new(texts().collect::<StringViewArray>()),
        DataType::Binary => Arc::new(bytes().collect::<BinaryArray>()),
        DataType::LargeBinary => Arc::new(bytes().collect::<LargeBinaryArray>()),
        DataType::BinaryView => Arc::new(bytes().collect::<BinaryViewArray>()),
        DataType::Float64 => Arc::new(each::<Float64Type>(rows(), |item| match item {
            Item::Float(value) => Some((*value).into()),
            _ => None,
        })?),
        DataType::Float32 => Arc::new(each::<Float32Type>(rows(), |item| match item {
            Item::Double(value) => float32(*value).ok(),
            _ => None,
        })?),
        DataType::Timestamp(unit, _) => {
            let counts = each::<Int64Type>(rows(), |item| in_unit(item, *unit))?.into_data();
            make_array(counts.into_builder().data_type(to.clone()).build().map_err(|_| 0_usize)?)
        }
        _ => return Err(0),
    })
}

/// Values as those of another type; the row of the first for which there is none.
fn each<'a, P: ArrowPrimitiveType>(
    rows: impl Iterator<Item = Item<'a>>,
    fit: impl Fn(&Item<'a>) -> Option<P::Native>,
) -> Result<PrimitiveArray<P>, usize> {
    let fitted = rows.enumerate().map(|(row, item)| match item {
        Item::Null => Ok(None),
        item => fit(&item).map(Some).ok_or(row),
    });
    fitted.collect()
}

/// A timestamp's count in another unit, where it is a whole number of them.
fn in_unit(item: &Item<'_>, unit: TimeUnit) -> Option<i64> {
    let (Item::Timestamp(count, own) | Item::TimestampTz(count, own)) = item else { return None };
    let (from, into) = (i128::from(per_second(*own)), i128::from(per_second(unit)));
    let scaled = i128::from(*count) * into;
    i64::try_from(scaled / from).ok().filter(|_| scaled % from == 0)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{TimestampMicrosecondType, UInt8Type};
    use arrow_array::{Float64Array, Int64Array, TimestampNanosecondArray, UInt8Array};

    use super::*;

    fn to(column: impl Array + 'static, kind: &DataType) -> Result<ArrayRef, usize> {
        let column: ArrayRef = Arc::new(column);
        assert!(is_made(column.data_type(), kind));
        convert(&column, kind)
    }

    #[test]
    fn values_are_the_same_in_another_type() {
        let texts = StringArray::from(vec![Some("a"), None]);
        let large = to(texts.clone(), &DataType::LargeUtf8).unwrap();
        assert_eq!(large.as_string::<i64>().iter().collect::<Vec<_>>(), [Some("a"), None]);
        assert_eq!(to(large.as_string::<i64>().clone(), &DataType::Utf8).unwrap().as_string::<i32>(), &texts);
        let numbers = to(Int64Array::from(vec![Some(255), None]), &DataType::UInt8).unwrap();
        assert_eq!(numbers.as_primitive::<UInt8Type>(), &UInt8Array::from(vec![Some(255), None]));
        let times = TimestampNanosecondArray::from(vec![Some(-1_000), None]).with_timezone("UTC");
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()));
        let micros = to(times, &kind).unwrap();
        assert_eq!(
            (micros.data_type(), micros.as_primitive::<TimestampMicrosecondType>().value(0)),
            (&kind, -1)
        );
    }

    #[test]
    fn a_value_that_would_change_tells_its_row() {
        assert_eq!(to(Int64Array::from(vec![0, 256]), &DataType::UInt8).unwrap_err(), 1);
        assert_eq!(to(Float64Array::from(vec![0.5, 0.1]), &DataType::Float32).unwrap_err(), 1);
        let times = TimestampNanosecondArray::from(vec![Some(1_000), None, Some(1)]);
        assert_eq!(to(times, &DataType::Timestamp(TimeUnit::Microsecond, None)).unwrap_err(), 2);
        for (from, kind) in [
            (DataType::Int64, DataType::Float64),
            (DataType::Utf8, DataType::Int64),
            (DataType::Utf8, DataType::Binary),
            (
                DataType::Timestamp(TimeUnit::Second, None),
                DataType::Timestamp(TimeUnit::Second, Some("UTC".into())),
            ),
        ] {
            assert!(!is_made(&from, &kind), "{from} {kind}");
        }
    }
}
