//! The nested form of a catalogue's rows: catalogs of schemas of tables of columns and constraints.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields, Schema};

use super::xdbc::XdbcType;
use super::{Depth, ObjectFilter, Row, is_like, text};
use crate::{Error, Result};

/// A field of a struct and its values.
pub(super) type Part = (Field, ArrayRef);

type SchemaKey = [Option<String>; 2];

/// Rows by what they belong to.
type Groups<const N: usize> = HashMap<[Option<String>; N], Vec<Row>>;

fn group<const N: usize>(rows: Vec<Row>, is_wanted: impl Fn(&Row) -> bool) -> Groups<N> {
    let mut groups = Groups::new();
    for row in rows.into_iter().filter(is_wanted) {
        groups.entry(key(&row)).or_insert_with(Vec::new).push(row);
    }
    groups
}

fn key<const N: usize>(row: &Row) -> [Option<String>; N] {
    std::array::from_fn(|at| row.get(at).cloned().flatten())
}

/// The objects that `filter` wants, of the rows of the catalogue's queries.
pub(super) fn nest(
    filter: &ObjectFilter,
    schemas: Vec<Row>,
    tables: Vec<Row>,
    columns: Vec<Row>,
    constraints: Vec<Row>,
) -> Result<RecordBatch> {
    let has_type = |row: &Row| row[3].as_deref().is_some_and(|kind| filter.has_type(kind));
    let mut tables_of: Groups<2> = group(tables, |row| filter.has_table(row) && has_type(row));
    let mut columns_of: Groups<3> =
        group(columns, |row| filter.has_table(row) && is_like(filter.column.as_deref(), row.get(3)));
    let mut constraints_of: Groups<3> = group(constraints, |row| filter.has_table(row));
    let (catalogs, schemas) = by_catalog(schemas, filter);
    let (mut schema_rows, mut in_catalog) = (Vec::new(), Vec::new());
    let (mut table_rows, mut in_schema) = (Vec::new(), Vec::new());
    let (mut column_rows, mut columns_in) = (Vec::new(), Vec::new());
    let (mut constraint_rows, mut constraints_in) = (Vec::new(), Vec::new());
    for found in schemas {
        in_catalog.push(found.len());
        for schema in found {
            let tables = tables_of.remove(&schema).unwrap_or_default();
            in_schema.push(tables.len());
            for row in &tables {
                let columns = columns_of.remove(&key(row)).unwrap_or_default();
                columns_in.push(columns.len());
                column_rows.extend(columns);
                let constraints = together(constraints_of.remove(&key(row)).unwrap_or_default());
                constraints_in.push(constraints.len());
                constraint_rows.extend(constraints);
            }
            table_rows.extend(tables);
            schema_rows.push(schema);
        }
    }
    let depth = filter.depth;
    let columns =
        list("table_columns", true, columns_in, depth >= Depth::Columns, columns_of_rows(&column_rows)?);
    let constraints = list(
        "table_constraints",
        true,
        constraints_in,
        depth >= Depth::Columns,
        constraints_of_rows(&constraint_rows)?,
    );
    let table = structs(vec![
        mandatory("table_name", texts(table_rows.iter().map(|row| row[2].as_deref()))),
        mandatory("table_type", texts(table_rows.iter().map(|row| row[3].as_deref()))),
        columns,
        constraints,
    ]);
    let schema = structs(vec![
        optional("db_schema_name", texts(schema_rows.iter().map(|[_, schema]| schema.as_deref()))),
        list("db_schema_tables", true, in_schema, depth >= Depth::Tables, table),
    ]);
    batch(vec![
        optional("catalog_name", texts(catalogs.iter().map(Option::as_deref))),
        list("catalog_db_schemas", true, in_catalog, depth >= Depth::Schemas, schema),
    ])
}

/// The catalogs, and the schemas of each that are wanted.
fn by_catalog(rows: Vec<Row>, filter: &ObjectFilter) -> (Vec<Option<String>>, Vec<Vec<SchemaKey>>) {
    let (mut catalogs, mut schemas) = (Vec::new(), Vec::<Vec<SchemaKey>>::new());
    for row in rows {
        let schema: SchemaKey = key(&row);
        if !is_like(filter.catalog.as_deref(), row.first()) {
            continue;
        }
        let at = catalogs.iter().position(|catalog| *catalog == schema[0]).unwrap_or_else(|| {
            catalogs.push(schema[0].clone());
            schemas.push(Vec::new());
            catalogs.len() - 1
        });
        // One that cannot be seen into comes without a schema.
        if filter.depth >= Depth::Schemas && schema[1].is_some() && filter.has_schema(&row) {
            schemas[at].push(schema);
        }
    }
    (catalogs, schemas)
}

/// The rows of each constraint together, in the order of their first ones.
fn together(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut constraints: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let is_same = |other: &Vec<Row>| other[0][3] == row[3] && other[0][5] == row[5];
        match constraints.iter_mut().find(|other| is_same(other)) {
            Some(other) => other.push(row),
            None => constraints.push(vec![row]),
        }
    }
    constraints
}

fn columns_of_rows(rows: &[Row]) -> Result<StructArray> {
    let positions = rows.iter().map(|row| row[4].as_deref().map(integer).transpose());
    let positions = positions.collect::<Result<Vec<_>>>()?;
    let types: Vec<XdbcType> =
        rows.iter().map(|row| row[5].as_deref().map_or_else(XdbcType::default, XdbcType::of)).collect();
    let column = |at: usize| texts(rows.iter().map(|row| row[at].as_deref()));
    let flags =
        |at: usize| Arc::new(rows.iter().map(|row| flag(row, at)).collect::<BooleanArray>()) as ArrayRef;
    let shorts =
        |of: fn(&XdbcType) -> Option<i16>| Arc::new(types.iter().map(of).collect::<Int16Array>()) as ArrayRef;
    let ints =
        |of: fn(&XdbcType) -> Option<i32>| Arc::new(types.iter().map(of).collect::<Int32Array>()) as ArrayRef;
    let nullable = rows.iter().map(|row| flag(row, 6).map(i16::from)).collect::<Int16Array>();
    let nothing = || texts(rows.iter().map(|_| None));
    Ok(structs(vec![
        mandatory("column_name", column(3)),
        optional("ordinal_position", Arc::new(Int32Array::from(positions))),
        optional("remarks", column(8)),
        optional("xdbc_data_type", shorts(|xdbc| xdbc.data_type)),
        optional("xdbc_type_name", column(5)),
        optional("xdbc_column_size", ints(|xdbc| xdbc.size)),
        optional("xdbc_decimal_digits", shorts(|xdbc| xdbc.digits)),
        optional("xdbc_num_prec_radix", shorts(|xdbc| xdbc.radix)),
        optional("xdbc_nullable", Arc::new(nullable)),
        optional("xdbc_column_def", column(7)),
        optional("xdbc_sql_data_type", shorts(|xdbc| xdbc.sql_data_type)),
        optional("xdbc_datetime_sub", shorts(|xdbc| xdbc.datetime_sub)),
        optional("xdbc_char_octet_length", ints(|xdbc| xdbc.octets)),
        optional("xdbc_is_nullable", column(6)),
        optional("xdbc_scope_catalog", nothing()),
        optional("xdbc_scope_schema", nothing()),
        optional("xdbc_scope_table", nothing()),
        optional("xdbc_is_autoincrement", flags(9)),
        optional("xdbc_is_generatedcolumn", flags(10)),
    ]))
}

fn integer(number: &str) -> Result<i32> {
    number.parse().map_err(|_| Error::internal(format!("{number:?} of the catalogue is not an integer")))
}

fn flag(row: &Row, at: usize) -> Option<bool> {
    row[at].as_deref().map(|word| word == "YES")
}

fn constraints_of_rows(constraints: &[Vec<Row>]) -> Result<StructArray> {
    let has_column = |row: &&Row| row[6].is_some();
    let columns: Vec<&Row> = constraints.iter().flatten().filter(has_column).collect();
    let columns_in: Vec<usize> =
        constraints.iter().map(|rows| rows.iter().filter(has_column).count()).collect();
    // A usage needs the names of its table and column.
    let uses = |row: &&Row| row[9].is_some() && row[10].is_some();
    let usages: Vec<&Row> = constraints.iter().flatten().filter(uses).collect();
    let usages_in: Vec<usize> = constraints.iter().map(|rows| rows.iter().filter(uses).count()).collect();
    let usage = structs(vec![
        optional("fk_catalog", texts(usages.iter().map(|row| row[7].as_deref()))),
        optional("fk_db_schema", texts(usages.iter().map(|row| row[8].as_deref()))),
        mandatory("fk_table", texts(usages.iter().map(|row| row[9].as_deref()))),
        mandatory("fk_column_name", texts(usages.iter().map(|row| row[10].as_deref()))),
    ]);
    let names = list_array(columns_in, None, texts(columns.iter().map(|row| row[6].as_deref())));
    let types = constraints.iter().map(|rows| text(&rows[0], 5).map(Some)).collect::<Result<Vec<_>>>()?;
    Ok(structs(vec![
        optional("constraint_name", texts(constraints.iter().map(|rows| rows[0][4].as_deref()))),
        mandatory("constraint_type", texts(types.into_iter())),
        mandatory("constraint_column_names", names),
        list("constraint_column_usage", true, usages_in, true, usage),
    ]))
}

pub(super) fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

pub(super) fn optional(name: &str, values: ArrayRef) -> Part {
    (Field::new(name, values.data_type().clone(), true), values)
}

pub(super) fn mandatory(name: &str, values: ArrayRef) -> Part {
    (Field::new(name, values.data_type().clone(), false), values)
}

pub(super) fn structs(parts: Vec<Part>) -> StructArray {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = parts.into_iter().unzip();
    StructArray::new(Fields::from(fields), arrays, None)
}

pub(super) fn batch(parts: Vec<Part>) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = parts.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| Error::internal(error.to_string()))
}

/// Lists of so many `values` each; NULL where that is too deep to be known.
pub(super) fn list(
    name: &str,
    nullable: bool,
    lengths: Vec<usize>,
    is_known: bool,
    values: StructArray,
) -> Part {
    let nulls = (!is_known).then(|| NullBuffer::new_null(lengths.len()));
    let lists = list_array(lengths, nulls, Arc::new(values));
    (Field::new(name, lists.data_type().clone(), nullable), lists)
}

fn list_array(lengths: Vec<usize>, nulls: Option<NullBuffer>, values: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, nulls))
}
