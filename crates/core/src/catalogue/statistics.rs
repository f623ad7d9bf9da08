//! How many rows tables have, and what else is known of their values.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int16Array, Int64Array, RecordBatch, UInt64Array,
    UnionArray,
};
use arrow_schema::{DataType, Field, UnionFields};

use super::objects::{batch, list, mandatory, optional, structs, texts};
use super::{ObjectFilter, Reader, Row, on_catalogue, text};
use crate::{Deadline, Error, Result, Source, TableName};

/// The statistics, each with its key in ADBC 1.1.0.
pub const STATISTIC_NAMES: [(&str, i16); 7] = [
    ("adbc.statistic.byte_width", 0),
    ("adbc.statistic.distinct_count", 1),
    ("adbc.statistic.max_byte_width", 2),
    ("adbc.statistic.max_value", 3),
    ("adbc.statistic.min_value", 4),
    ("adbc.statistic.null_count", 5),
    ("adbc.statistic.row_count", 6),
];

const ROW_COUNT: i16 = 6;

/// One number.
struct Statistic {
    table: [Option<String>; 3],
    column: Option<String>,
    key: i16,
    value: Value,
}

enum Value {
    /// Counted.
    Exact(i64),
    /// As the server has last estimated.
    Estimated(f64),
}

/// The statistics of the tables that `filter` wants: `GetStatistics` of ADBC 1.1.0. Unless it may be `approximate`, the
/// rows of each table are counted, as they are where the server keeps no statistics.
pub fn statistics(
    source: &dyn Source,
    filter: &ObjectFilter,
    approximate: bool,
    deadline: &Deadline,
) -> Result<RecordBatch> {
    on_catalogue(source, deadline, |reader| {
        let statistics = if approximate && !reader.queries.statistics.is_empty() {
            estimates(reader, filter)?
        } else {
            counts(reader, filter)?
        };
        nest(&statistics)
    })
}

fn estimates(reader: &mut Reader, filter: &ObjectFilter) -> Result<Vec<Statistic>> {
    let query = reader.queries.statistics.clone();
    let rows = reader.rows(&query)?;
    let statistic = |row: Row| {
        let number = |at| {
            let number = text(&row, at)?;
            number
                .parse::<f64>()
                .map_err(|_| Error::internal(format!("{number:?} of the catalogue is not a number")))
        };
        let key =
            text(&row, 4)?.parse().map_err(|_| Error::internal("a statistic of the catalogue has no key"))?;
        let value = Value::Estimated(number(5)?);
        let [catalog, schema, table, column] = std::array::from_fn(|at| row.get(at).cloned().flatten());
        Ok(Statistic { table: [catalog, schema, table], column, key, value })
    };
    rows.into_iter().filter(|row| filter.has_table(row)).map(statistic).collect()
}

/// The rows of each table of the session's own catalog, counted.
fn counts(reader: &mut Reader, filter: &ObjectFilter) -> Result<Vec<Statistic>> {
    let (own, query) = (reader.current()?.catalog, reader.queries.tables.clone());
    let rows = reader.rows(&query)?;
    let wanted = |row: &Row| {
        let is_table = row.get(3).and_then(Option::as_deref) == Some("table");
        is_table && row.first() == Some(&own) && filter.has_table(row)
    };
    let count = |row: Row| {
        let [catalog, schema, table] = std::array::from_fn(|at| row.get(at).cloned().flatten());
        let name = TableName { schema: schema.clone(), table: text(&row, 2)?.to_owned() };
        let value = Value::Exact(reader.count(&name)?);
        Ok(Statistic { table: [catalog, schema, table], column: None, key: ROW_COUNT, value })
    };
    rows.into_iter().filter(wanted).map(count).collect()
}

fn nest(statistics: &[Statistic]) -> Result<RecordBatch> {
    let mut ordered: Vec<&Statistic> = statistics.iter().collect();
    ordered.sort_by(|one, other| one.table[..2].cmp(&other.table[..2]));
    let (mut schemas, mut in_schema) = (Vec::<&[Option<String>]>::new(), Vec::<usize>::new());
    let (mut catalogs, mut in_catalog) = (Vec::<&Option<String>>::new(), Vec::<usize>::new());
    for statistic in &ordered {
        let schema = &statistic.table[..2];
        if schemas.last() != Some(&schema) {
            if catalogs.last() != Some(&&schema[0]) {
                catalogs.push(&schema[0]);
                in_catalog.push(0);
            }
            *in_catalog.last_mut().expect("one was pushed") += 1;
            schemas.push(schema);
            in_schema.push(0);
        }
        *in_schema.last_mut().expect("one was pushed") += 1;
    }
    let estimated = ordered.iter().map(|one| Some(matches!(one.value, Value::Estimated(_))));
    let each = structs(vec![
        mandatory("table_name", texts(ordered.iter().map(|one| one.table[2].as_deref()))),
        optional("column_name", texts(ordered.iter().map(|one| one.column.as_deref()))),
        mandatory("statistic_key", Arc::new(ordered.iter().map(|one| Some(one.key)).collect::<Int16Array>())),
        mandatory("statistic_value", values(&ordered)?),
        mandatory("statistic_is_approximate", Arc::new(estimated.collect::<BooleanArray>())),
    ]);
    let schema = structs(vec![
        optional("db_schema_name", texts(schemas.iter().map(|schema| schema[1].as_deref()))),
        list("db_schema_statistics", false, in_schema, true, each),
    ]);
    batch(vec![
        optional("catalog_name", texts(catalogs.iter().map(|catalog| catalog.as_deref()))),
        list("catalog_db_schemas", false, in_catalog, true, schema),
    ])
}

/// The numbers as ADBC's union of integers, doubles and bytes.
fn values(statistics: &[&Statistic]) -> Result<ArrayRef> {
    let (mut kinds, mut places) = (Vec::new(), Vec::new());
    let (mut exact, mut estimated) = (Vec::new(), Vec::new());
    for statistic in statistics {
        let place = match statistic.value {
            Value::Exact(count) => {
                kinds.push(0_i8);
                exact.push(count);
                exact.len()
            }
            Value::Estimated(number) => {
                kinds.push(2);
                estimated.push(number);
                estimated.len()
            }
        };
        places.push(
            i32::try_from(place - 1)
                .map_err(|_| Error::data("there are too many statistics for one answer"))?,
        );
    }
    let fields = [
        Field::new("int64", DataType::Int64, true),
        Field::new("uint64", DataType::UInt64, true),
        Field::new("float64", DataType::Float64, true),
        Field::new("binary", DataType::Binary, true),
    ];
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(exact)),
        Arc::new(UInt64Array::from(Vec::<u64>::new())),
        Arc::new(Float64Array::from(estimated)),
        Arc::new(BinaryArray::from(Vec::<&[u8]>::new())),
    ];
    let union = UnionFields::try_new(0..4, fields)
        .and_then(|fields| UnionArray::try_new(fields, kinds.into(), Some(places.into()), children));
    union.map(|union| Arc::new(union) as ArrayRef).map_err(|error| Error::internal(error.to_string()))
}
