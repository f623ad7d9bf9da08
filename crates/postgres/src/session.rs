//! A session: describes and runs statements.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    Batches, Cancel, Column, Error, NATIVE_TYPE, Protocol, Query, ReadOptions, Result, Session, Target,
    Watch, has_deferred,
};

use crate::catalogue::Catalogue;
use crate::connection::{Connection, Described, Prepared};
use crate::decode::decoder;
use crate::encode;
use crate::placeholders::positional;
use crate::plain::is_plain;
use crate::rows::{ReadColumn, Rows};
use crate::types::{Class, Format, Kind, Type};
use crate::wanted::normalised;

/// One connection to PostgreSQL, or to a server that speaks its wire.
pub(crate) struct PostgresSession {
    pub(crate) connection: Connection,
    pub(crate) catalogue: Catalogue,
}

impl PostgresSession {
    pub(crate) fn open(target: &Target, watch: &Watch) -> Result<Self> {
        Ok(Self { connection: Connection::open(target, watch)?, catalogue: Catalogue::default() })
    }

    /// Parses `statement` on the server and learns what its result's types need.
    fn prepare(&mut self, statement: &str) -> Result<Prepared> {
        let prepared = self.connection.prepare(statement)?;
        let Some(columns) = &prepared.columns else { return Ok(prepared) };
        match self.catalogue.load(&mut self.connection, columns, &prepared.parameters) {
            Ok(()) => Ok(prepared),
            // The failed lookup ended the exchange, and with it the unnamed statement's plan: parse once more.
            Err(error) if error.sqlstate().is_some() && self.connection.is_usable() => {
                self.catalogue.give_up();
                self.connection.prepare(statement)
            }
            Err(error) => Err(error),
        }
    }

    fn plan(&mut self, statement: &str, options: &ReadOptions) -> Result<(Prepared, Vec<Planned>)> {
        let mut options = options.clone();
        if !self.connection.has_binary_forms() {
            options.protocol = Protocol::Text;
        }
        let prepared = self.prepare(statement)?;
        let planned = match &prepared.columns {
            Some(columns) => {
                let promised = columns.iter().any(|column| self.catalogue.facts(column).not_null);
                self.columns(columns, promised && is_plain(statement), &options)
            }
            None => Err(no_result()),
        };
        match planned {
            Ok(planned) => Ok((prepared, planned)),
            Err(error) => {
                // The statement is not run: leave the connection ready for the next.
                let _ = self.connection.sync();
                Err(error)
            }
        }
    }

    fn columns(&self, columns: &[Described], plain: bool, options: &ReadOptions) -> Result<Vec<Planned>> {
        for (name, _) in &options.schema {
            if !columns.iter().any(|column| column.name == *name) {
                let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                return Err(Error::interface(format!(
                    "schema= names {name:?}, which the query does not return"
                ))
                .with_hint(format!("it returns {}", known.join(", "))));
            }
        }
        columns.iter().map(|column| self.column(column, plain, options)).collect()
    }

    fn column(&self, column: &Described, plain: bool, options: &ReadOptions) -> Result<Planned> {
        let facts = self.catalogue.facts(column);
        let native = self.catalogue.type_of(column.oid, column.modifier).with_dimensions(facts.dimensions);
        let wanted =
            options.wanted(&column.name).map(|wanted| normalised(&column.name, &native, wanted, options));
        let wanted = wanted.transpose()?;
        let wanted = wanted.as_ref();
        let nullable = !(plain && facts.not_null) || native.turns_null(wanted, options);
        let default = native.field(&column.name, nullable, options);
        let (field, format) = match wanted {
            // A deferred field's type is only how its cells wait: nobody can want that.
            Some(wanted)
                if default
                    .as_ref()
                    .is_ok_and(|field| field.data_type() == wanted && !has_deferred(field)) =>
            {
                (default?, native.format(options.protocol))
            }
            Some(wanted) => {
                (overridden(column, &native, nullable, wanted), format_for(&native, wanted, options))
            }
            None => (default?, native.format(options.protocol)),
        };
        Ok(Planned { native, field, format })
    }
}

/// A column of a result, as it will be read.
struct Planned {
    native: Type,
    field: Field,
    format: Format,
}

fn overridden(column: &Described, native: &Type, nullable: bool, wanted: &DataType) -> Field {
    let metadata = HashMap::from([(NATIVE_TYPE.to_owned(), native.label())]);
    Field::new(&column.name, wanted.clone(), nullable).with_metadata(metadata)
}

/// Overrides are read from text, but for numerics, whose binary form reads as any decimal and as a double.
fn format_for(native: &Type, wanted: &DataType, options: &ReadOptions) -> Format {
    let numeric = matches!(native.kind, Kind::Plain(Class::Numeric));
    let number = matches!(wanted, DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Float64);
    if numeric && number && options.protocol == Protocol::Binary { Format::Binary } else { Format::Text }
}

fn no_result() -> Error {
    Error::programming("the statement returns no rows, and was not run")
        .with_hint("read_sql takes statements with a result: SELECT, VALUES, SHOW, or INSERT ... RETURNING")
}

impl Session for PostgresSession {
    fn run(&mut self, statement: &str) -> Result<()> {
        self.connection.simple(statement)
    }

    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
        let statement = positional(&query.text, &query.params)?;
        let planned = self.plan(&statement.text, options);
        let (_, planned) = planned.map_err(|error| statement.restore_position(error))?;
        self.connection.sync()?;
        let column = |planned: Planned| Column { native_type: planned.native.label(), field: planned.field };
        Ok(planned.into_iter().map(column).collect())
    }

    fn read(mut self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>> {
        let statement = positional(&query.text, &query.params)?;
        let planned = self.plan(&statement.text, options);
        let (prepared, planned) = planned.map_err(|error| statement.restore_position(error))?;
        let types: Vec<Type> =
            prepared.parameters.iter().map(|oid| self.catalogue.type_of(*oid, -1)).collect();
        let bound = encode::parameters(&statement.values, &types);
        let columns = planned.iter().map(|planned| read_column(planned, options)).collect::<Result<Vec<_>>>();
        let (bound, columns) = match (bound, columns) {
            (Ok(bound), Ok(columns)) => (bound, columns),
            (Err(error), _) | (_, Err(error)) => {
                let _ = self.connection.sync();
                return Err(error);
            }
        };
        let formats: Vec<i16> = planned.iter().map(|planned| planned.format as i16).collect();
        let prints_floats =
            planned.iter().any(|planned| planned.format == Format::Text && planned.native.prints_floats());
        self.connection.execute(&bound, &formats, prints_floats && self.catalogue.is_present())?;
        let schema = Schema::new(planned.into_iter().map(|planned| planned.field).collect::<Vec<_>>());
        Ok(Box::new(Rows::new(*self, Arc::new(schema), columns, options)))
    }

    fn begin_snapshot(&mut self) -> Result<()> {
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    }

    fn end_snapshot(&mut self) -> Result<()> {
        self.run("COMMIT")
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.connection.canceller()
    }
}

fn read_column(planned: &Planned, options: &ReadOptions) -> Result<ReadColumn> {
    let (name, data_type) = (planned.field.name(), planned.field.data_type());
    let decoder = decoder(name, &planned.native, planned.format, data_type, options)?;
    Ok(ReadColumn {
        native_type: planned.native.label(),
        nullable: planned.field.is_nullable(),
        format: planned.format,
        decoder,
    })
}
