//! The contents of a database, out of its own catalogue, in the form that ADBC gives it: objects, statistics, names.

mod objects;
mod statistics;
mod xdbc;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::source::Reservation;
use crate::{
    Connection, Deadline, Error, Failed, Params, Query, ReadOptions, Result, Session, Source, TableName,
    Transaction, Value, batch_of,
};

pub use statistics::{STATISTIC_NAMES, statistics};

/// The place of a table in each of the queries.
pub const PLACE: [&str; 3] = ["catalog_name", "db_schema_name", "table_name"];

/// The fields that the query of the columns tells of each, after its table's place.
pub const COLUMN: [&str; 8] = [
    "column_name",
    "ordinal_position",
    "type_name",
    "is_nullable",
    "column_default",
    "remarks",
    "is_autoincrement",
    "is_generated",
];

/// The fields that the query of the constraints tells of each column of one, after its table's place.
pub const CONSTRAINT: [&str; 8] = [
    "constraint_key",
    "constraint_name",
    "constraint_type",
    "column_name",
    "fk_catalog",
    "fk_db_schema",
    "fk_table",
    "fk_column_name",
];

/// The queries of a database's catalogue, without what is the system's own. Their columns are texts in the order that is told
/// here; what is true is YES, and what is false NO. A catalogue of whose catalogs only one can be seen into has the others
/// without schemas.
#[derive(Clone, Debug, Default)]
pub struct CatalogueQueries {
    /// The session: `catalog_name`, `db_schema_name`, `vendor_name`, `vendor_version`.
    pub current: Cow<'static, str>,
    /// The schemas: `catalog_name`, `db_schema_name`.
    pub schemas: Cow<'static, str>,
    /// The tables and views: `catalog_name`, `db_schema_name`, `table_name`, `table_type`.
    pub tables: Cow<'static, str>,
    /// A row where there is a table or view that a statement finds by the two parameters: a schema or NULL, and a name. Empty
    /// where names are found as they are listed.
    pub found: Cow<'static, str>,
    /// Their columns: [`PLACE`] and [`COLUMN`].
    pub columns: Cow<'static, str>,
    /// Their constraints, a row for each column: [`PLACE`] and [`CONSTRAINT`], whose `constraint_key` tells them apart.
    pub constraints: Cow<'static, str>,
    /// The query of the server's estimates: `catalog_name`, `db_schema_name`, `table_name`, `column_name`, the key of
    /// [`STATISTIC_NAMES`], and a number. Empty where it keeps no statistics.
    pub statistics: Cow<'static, str>,
    /// The values of `table_type`, with commas between.
    pub table_types: Cow<'static, str>,
    /// A row where there is a schema of the parameter's name, which may be used. Empty where `use_schema` fails by itself for
    /// one that is not there.
    pub found_schema: Cow<'static, str>,
    /// Makes the schema {} the one of names without one; empty where none does.
    pub use_schema: Cow<'static, str>,
    /// The schema by whose name temporary tables are made; empty where none is.
    pub temporary: Cow<'static, str>,
}

impl CatalogueQueries {
    /// The queries by their names.
    #[must_use]
    pub fn entries(&mut self) -> [(&'static str, &mut Cow<'static, str>); 11] {
        [
            ("current", &mut self.current),
            ("schemas", &mut self.schemas),
            ("tables", &mut self.tables),
            ("found", &mut self.found),
            ("columns", &mut self.columns),
            ("constraints", &mut self.constraints),
            ("statistics", &mut self.statistics),
            ("table_types", &mut self.table_types),
            ("found_schema", &mut self.found_schema),
            ("use_schema", &mut self.use_schema),
            ("temporary", &mut self.temporary),
        ]
    }

    /// Queries of the names of [`CatalogueQueries::entries`].
    #[must_use]
    pub fn of(mut entries: BTreeMap<String, String>) -> Self {
        let mut queries = Self::default();
        for (name, query) in queries.entries() {
            *query = entries.remove(name).unwrap_or_default().into();
        }
        queries
    }
}

/// How far down objects are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Catalogs alone.
    Catalogs,
    /// And their schemas.
    Schemas,
    /// And their tables.
    Tables,
    /// And their columns and constraints.
    #[default]
    Columns,
}

/// The objects that are wanted. Names are patterns of LIKE, in which `%` is any text and `_` one character; an empty one
/// is of what has no name.
#[derive(Clone, Debug, Default)]
pub struct ObjectFilter {
    /// How far down.
    pub depth: Depth,
    /// The catalogs.
    pub catalog: Option<String>,
    /// The schemas.
    pub schema: Option<String>,
    /// The tables.
    pub table: Option<String>,
    /// The types of tables, in any case; `None` is all.
    pub table_types: Option<Vec<String>>,
    /// The columns.
    pub column: Option<String>,
}

impl ObjectFilter {
    fn has_schema(&self, row: &Row) -> bool {
        is_like(self.catalog.as_deref(), row.first()) && is_like(self.schema.as_deref(), row.get(1))
    }

    fn has_table(&self, row: &Row) -> bool {
        self.has_schema(row) && is_like(self.table.as_deref(), row.get(2))
    }

    fn has_type(&self, table_type: &str) -> bool {
        let wanted = self.table_types.as_ref();
        wanted.is_none_or(|wanted| wanted.iter().any(|one| one.eq_ignore_ascii_case(table_type)))
    }
}

/// Where a session is, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The current catalog.
    pub catalog: Option<String>,
    /// The schema of names without one.
    pub schema: Option<String>,
    /// The database's name.
    pub vendor: String,
    /// Its version.
    pub version: String,
}

/// The catalogs, schemas, tables, columns and constraints of `source` that `filter` wants: `GetObjects` of ADBC 1.1.0.
pub fn objects(source: &dyn Source, filter: &ObjectFilter, deadline: &Deadline) -> Result<RecordBatch> {
    on_catalogue(source, deadline, |reader| {
        let queries = reader.queries.clone();
        let mut rows = |query: &str, depth| {
            if filter.depth < depth { Ok(Vec::new()) } else { reader.rows(query) }
        };
        let schemas = rows(&queries.schemas, Depth::Catalogs)?;
        let tables = rows(&queries.tables, Depth::Tables)?;
        let columns = rows(&queries.columns, Depth::Columns)?;
        let constraints = rows(&queries.constraints, Depth::Columns)?;
        objects::nest(filter, schemas, tables, columns, constraints)
    })
}

/// The queries of the catalogue of `source`.
pub fn catalogue_queries(source: &dyn Source, deadline: &Deadline) -> Result<CatalogueQueries> {
    on_catalogue(source, deadline, |reader| Ok(reader.queries.clone()))
}

/// Where a session of `source` is, and whose it is.
pub fn current(source: &dyn Source, deadline: &Deadline) -> Result<Current> {
    on_catalogue(source, deadline, Reader::current)
}

/// Whether a statement of `source` finds a table or view by this name.
pub fn has_table(source: &dyn Source, table: &TableName, deadline: &Deadline) -> Result<bool> {
    on_catalogue(source, deadline, |reader| match reader.finds(table)? {
        Some(found) => Ok(found),
        None => reader.lists(table),
    })
}

/// Whether `source` would fail for a table or view that is not there; false where only the statement itself can tell.
pub fn lacks_table(source: &dyn Source, table: &TableName, deadline: &Deadline) -> Result<bool> {
    on_catalogue(source, deadline, |reader| Ok(reader.finds(table)? == Some(false)))
}

/// The types of tables that `source` has.
pub fn table_types(source: &dyn Source, deadline: &Deadline) -> Result<Vec<String>> {
    on_catalogue(source, deadline, |reader| {
        Ok(reader.queries.table_types.split(", ").map(str::to_owned).collect())
    })
}

/// The schema in which a table that `source` is to write is temporary.
pub fn temporary_schema(source: &dyn Source, deadline: &Deadline) -> Result<String> {
    on_catalogue(source, deadline, |reader| {
        let schema = reader.queries.temporary.as_ref();
        if schema.is_empty() {
            return Err(Error::not_supported("this source makes no temporary table for rows")
                .with_hint("make it by CREATE TEMPORARY TABLE, and append to it"));
        }
        Ok(schema.to_owned())
    })
}

/// Has names without a schema be of this one. Where no transaction was open, that outlasts the next one's end.
pub fn use_schema(connection: &Arc<Connection>, schema: &str, deadline: &Deadline) -> Result<()> {
    let was_free = connection.transaction() == Some(Transaction::None);
    let used = schema_statement(connection, schema, deadline)
        .and_then(|statement| connection.execute(&Query::new(statement), deadline));
    let ended = match &used {
        _ if !was_free => Ok(()),
        Ok(_) => connection.commit(deadline),
        Err(_) => connection.undo(),
    };
    used.and(ended)
}

/// The statement after which names without a schema are of this one. Fails for one that is not there, where the statement
/// does not.
fn schema_statement(source: &dyn Source, schema: &str, deadline: &Deadline) -> Result<String> {
    on_catalogue(source, deadline, |reader| {
        if reader.queries.use_schema.is_empty() {
            return Err(Error::not_supported("this source has no current schema to change")
                .with_hint("write the schema before the table's name"));
        }
        if !reader.has_schema(schema)? {
            return Err(Error::programming(format!("there is no schema {schema:?}")).with_sqlstate("3F000"));
        }
        let name = reader.qualified_name(&TableName { schema: None, table: schema.into() })?;
        Ok(reader.queries.use_schema.replace("{}", &name))
    })
}

/// One row of a query of the catalogue.
type Row = Vec<Option<String>>;

/// The rows of a catalogue's query, in columns of texts by these names.
pub fn catalogue_batch(names: &[&str], rows: &[Vec<Option<String>>]) -> Result<RecordBatch> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let column = |at: usize| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row[at].as_deref()).collect::<StringArray>())
    };
    batch_of(&Arc::new(Schema::new(fields)), (0..names.len()).map(column).collect(), rows.len())
}

/// The text in a column of `row` that always has one.
fn text(row: &Row, at: usize) -> Result<&str> {
    row.get(at)
        .and_then(Option::as_deref)
        .ok_or_else(|| Error::internal(format!("column {at} of the catalogue is NULL")))
}

/// A session that reads its catalogue.
struct Reader {
    /// `None` where it was lost.
    session: Option<Box<dyn Session>>,
    queries: CatalogueQueries,
}

/// Does `work` on a session of `source`, and gives that back. As other reads do, it is a part of the owner's transaction.
fn on_catalogue<T>(
    source: &dyn Source,
    deadline: &Deadline,
    work: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<T> {
    let Reservation { mut first, lease, factory, begins, .. } = source.reserve(1, deadline)?;
    factory.keep_only(1);
    let queries = queries_of(first.as_ref());
    let begun = queries.and_then(|queries| {
        if begins && first.transaction() == Transaction::None {
            first.begin()?;
        }
        Ok(queries)
    });
    let (done, session) = match begun {
        Ok(queries) => {
            let mut reader = Reader { session: Some(first), queries };
            (work(&mut reader), reader.session)
        }
        Err(error) => (Err(error), Some(first)),
    };
    if let Some(session) = session {
        lease.release(session);
    }
    done
}

/// The queries of the catalogue, or the error of a source that lists no tables.
pub(crate) fn queries_of(session: &dyn Session) -> Result<CatalogueQueries> {
    session.catalogue_queries().ok_or_else(|| {
        Error::not_supported("this source does not list its tables")
            .with_hint("read the catalogue by a query of the database's own")
    })
}

impl Reader {
    fn qualified_name(&self, table: &TableName) -> Result<String> {
        let session = self.session.as_ref().ok_or_else(lost_connection)?;
        Ok(session.qualified_name(table))
    }

    fn read(&mut self, query: &str) -> Result<Vec<RecordBatch>> {
        self.run(&Query::new(query))
    }

    fn run(&mut self, query: &Query) -> Result<Vec<RecordBatch>> {
        let session = self.session.take().ok_or_else(lost_connection)?;
        let mut batches = match session.read(query, &ReadOptions::default()) {
            Ok(batches) => batches,
            Err(Failed { error, session }) => {
                self.session = session;
                return Err(error);
            }
        };
        let (schema, finaliser) = (batches.schema(), batches.finaliser());
        let read: Result<Vec<_>> = batches.by_ref().collect();
        self.session = batches.into_session();
        match finaliser {
            Some(finaliser) => Ok(finaliser.finalise(&schema, read?)?.1),
            None => read,
        }
    }

    /// Whether a statement finds a table by this name, where there is a query that tells.
    fn finds(&mut self, table: &TableName) -> Result<Option<bool>> {
        if self.queries.found.is_empty() {
            return Ok(None);
        }
        let schema = table.schema.clone().map_or(Value::Null, Value::Text);
        self.has_row(self.queries.found.to_string(), vec![schema, Value::Text(table.table.clone())]).map(Some)
    }

    /// Whether there is a schema of this name, or nothing tells before it is used.
    fn has_schema(&mut self, schema: &str) -> Result<bool> {
        let query = self.queries.found_schema.to_string();
        Ok(query.is_empty() || self.has_row(query, vec![Value::Text(schema.into())])?)
    }

    fn has_row(&mut self, text: String, params: Vec<Value>) -> Result<bool> {
        let batches = self.run(&Query { text, params: Params::Positional(params) })?;
        Ok(batches.iter().any(|batch| batch.num_rows() > 0))
    }

    /// Whether a table is listed, in the current schema where it is named without one. `DuckDB`'s names, and MySQL's on some
    /// systems, are the same in either case.
    fn lists(&mut self, table: &TableName) -> Result<bool> {
        let query = self.queries.tables.clone();
        let Current { catalog, schema, .. } = self.current()?;
        let (place, name) = ([catalog, table.schema.clone().or(schema)], table.table.to_lowercase());
        let is_it = |row: &Row| {
            row.starts_with(&place) && text(row, 2).is_ok_and(|found| found.to_lowercase() == name)
        };
        Ok(self.rows(&query)?.iter().any(is_it))
    }

    /// The rows of a query of the catalogue.
    fn rows(&mut self, query: &str) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for batch in self.read(query)? {
            let columns = batch.columns().iter().map(texts).collect::<Result<Vec<_>>>()?;
            let row = |at: usize| columns.iter().map(|column| column[at].map(str::to_owned)).collect();
            rows.extend((0..batch.num_rows()).map(row));
        }
        Ok(rows)
    }

    fn current(&mut self) -> Result<Current> {
        let query = self.queries.current.clone();
        let rows = self.rows(&query)?;
        let row =
            rows.first().ok_or_else(|| Error::internal("the catalogue does not say where the session is"))?;
        let optional = |at: usize| row.get(at).cloned().flatten();
        Ok(Current {
            catalog: optional(0),
            schema: optional(1),
            vendor: text(row, 2)?.into(),
            version: text(row, 3)?.into(),
        })
    }

    /// How many rows a table has, counted.
    fn count(&mut self, table: &TableName) -> Result<i64> {
        let name = self.qualified_name(table)?;
        let counts = self.read(&format!("SELECT count(*) AS n FROM {name}"))?;
        let count =
            counts.iter().filter(|batch| batch.num_rows() == 1).find_map(|batch| integer(batch.column(0)));
        count.ok_or_else(|| Error::internal("a count is not one integer"))
    }
}

fn lost_connection() -> Error {
    Error::operational("the connection was lost while its catalogue was read")
}

/// The one integer of a column, which may be a text of it.
fn integer(column: &ArrayRef) -> Option<i64> {
    match column.as_primitive_opt::<Int64Type>() {
        Some(numbers) => Some(numbers.value(0)),
        None => texts(column).ok()?.first().copied().flatten()?.parse().ok(),
    }
}

/// The texts of a column; a source without types of its own has any type for a column without values.
fn texts(column: &ArrayRef) -> Result<Vec<Option<&str>>> {
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Ok(column.as_string_view().iter().collect()),
        _ if column.logical_null_count() == column.len() => Ok(vec![None; column.len()]),
        other => Err(Error::internal(format!("a column of the catalogue is {other} instead of a text"))),
    }
}

/// Whether a name has the pattern; one without a pattern has.
fn is_like(pattern: Option<&str>, name: Option<&Option<String>>) -> bool {
    let name = name.and_then(Option::as_deref).unwrap_or_default();
    pattern
        .is_none_or(|pattern| like(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>()))
}

fn like(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut here) = (0, 0);
    // Where the last % stands, and what it has taken so far.
    let mut any: Option<(usize, usize)> = None;
    while here < name.len() {
        match pattern.get(at) {
            Some('%') => {
                any = Some((at, here));
                at += 1;
            }
            Some(&one) if one == '_' || one == name[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((percent, taken)) = any else { return false };
                any = Some((percent, taken + 1));
                (at, here) = (percent + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_like() {
        let name = |name: &str| Some(name.to_owned());
        for (pattern, yes, no) in [
            ("boats", "boats", "boats2"),
            ("b%s", "bs", "bsx"),
            ("%a_s%", "boats", "bas"),
            ("_", "ä", ""),
            ("%%", "", "\0"),
            ("a%b%c", "a1b2b3c", "a1c2b"),
        ] {
            assert!(is_like(Some(pattern), Some(&name(yes))), "{pattern} {yes}");
            assert!(pattern == "%%" || !is_like(Some(pattern), Some(&name(no))), "{pattern} {no}");
        }
        assert!(is_like(None, Some(&name("any"))) && is_like(Some(""), Some(&None)));
        assert!(!is_like(Some("main"), Some(&None)) && !is_like(Some(""), Some(&name("main"))));
    }
}
