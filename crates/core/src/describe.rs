//! The columns that queries would return, and the parts of one; none is run. The parameters of statements, and the
//! catalogue.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::agreement::{agree, nullable};
use crate::catalogue::queries_of;
use crate::remedy::with_remedy;
use crate::source::{Reservation, Source};
use crate::split::divide;
use crate::{
    Column, Deadline, Error, Opened, Query, ReadOptions, Request, Result, Session, Split, SplitPlan,
    TableName, open_read,
};

/// The one schema of what `queries` return, told by a session of `source`.
pub fn describe(
    source: &dyn Source,
    queries: &[Query],
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<SchemaRef> {
    on_session(source, deadline, |session| schema_of(session, queries, options))
}

/// The parameters of `statement`, told by a session of `source`.
pub fn parameters(
    source: &dyn Source,
    statement: &str,
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<SchemaRef> {
    on_session(source, deadline, |session| {
        let preparing = session
            .preparing()
            .map_err(|reason| Error::not_supported(format!("parameters cannot be described: {reason}")))?;
        preparing.parameters(statement, options).map(|columns| Arc::new(schema(columns)))
    })
}

/// The columns of a table, told by a session of `source`.
pub fn table_schema(
    source: &dyn Source,
    table: &TableName,
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<SchemaRef> {
    on_session(source, deadline, |session| {
        let name = session.qualified_name(table);
        schema_of(session, &[Query::new(format!("SELECT * FROM {name}"))], options)
    })
}

/// The tables and views of `source`, as its catalogue lists them; see [`CatalogueQueries::tables`](crate::CatalogueQueries).
pub fn tables(source: &dyn Source, deadline: &Deadline) -> Result<Opened> {
    let query = on_session(source, deadline, |session| Ok(Query::new(queries_of(session)?.tables)))?;
    open_read(source, &Request::unsplit(vec![query], ReadOptions::default()), deadline)
}

/// Disjoint parts of `query`, as texts that need neither this session nor its snapshot; the query itself where it has no
/// bounds to be divided at. `split` names a column.
pub fn partition(
    source: &dyn Source,
    query: Query,
    split: &Split,
    deadline: &Deadline,
) -> Result<Vec<Query>> {
    let options = ReadOptions { snapshot: false, ..ReadOptions::default() };
    on_session(source, deadline, |session| {
        if let Some(on) = &split.on {
            check_key(&schema_of_one(session, &query, &options)?, on)?;
        }
        match divide(session, std::slice::from_ref(&query), split, &options)? {
            SplitPlan::Whole => Ok(vec![query]),
            SplitPlan::Parts(parts) => Ok(parts.queries),
            SplitPlan::Serial(reason) => Err(no_partitions(&reason)),
        }
    })
}

/// The error of a query that has no parts.
pub(crate) fn no_partitions(reason: &str) -> Error {
    Error::not_supported(format!("the query cannot be split: {reason}"))
        .with_hint("read_sql reads it over one connection")
}

/// Does `work` on a session of `source`, and gives that back.
pub(crate) fn on_session<T>(
    source: &dyn Source,
    deadline: &Deadline,
    work: impl FnOnce(&mut dyn Session) -> Result<T>,
) -> Result<T> {
    let Reservation { mut first, lease, .. } = source.reserve(1, deadline)?;
    let done = work(first.as_mut());
    lease.release(first);
    done
}

/// Fails where `schema` does not have the column that is to divide it.
pub(crate) fn check_key(schema: &Schema, on: &str) -> Result<()> {
    let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if known.contains(&on) {
        return Ok(());
    }
    Err(Error::unknown_column("partition_on", on, &known))
}

fn schema_of(session: &mut dyn Session, queries: &[Query], options: &ReadOptions) -> Result<SchemaRef> {
    let (first, others) = queries.split_first().ok_or_else(|| {
        Error::interface("the list of queries is empty").with_hint("give at least one query")
    })?;
    let schema = schema_of_one(session, first, options)?;
    for (query, number) in others.iter().zip(2..) {
        agree(&schema, &schema_of_one(session, query, options)?, &format!("query {number} of the list"))?;
    }
    Ok(if others.is_empty() { Arc::new(schema) } else { nullable(&schema) })
}

pub(crate) fn schema_of_one(
    session: &mut dyn Session,
    query: &Query,
    options: &ReadOptions,
) -> Result<Schema> {
    let described = session.describe(query, options);
    let columns =
        described.map_err(|error| with_remedy(error, std::slice::from_ref(query), session.placeholders()))?;
    Ok(schema(columns))
}

fn schema(columns: Vec<Column>) -> Schema {
    Schema::new(columns.into_iter().map(|column| column.field).collect::<Vec<_>>())
}
