//! The columns of a statement, as they will be read.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};
use longshore_cells::ReadColumn;
use longshore_core::{Error, NATIVE_TYPE, Protocol, ReadOptions, Result, has_deferred};

use crate::catalogue::Catalogue;
use crate::connection::Described;
use crate::decode::decoder;
use crate::dialect::is_plain;
use crate::types::{Class, Format, Kind, Type};
use crate::wanted::normalised;

/// A column of a result, as it will be read.
pub(crate) struct Planned {
    pub(crate) native: Type,
    pub(crate) field: Field,
    pub(crate) format: Format,
}

impl Planned {
    /// What reads its cells.
    pub(crate) fn reader(&self, options: &ReadOptions) -> Result<ReadColumn> {
        let (name, data_type) = (self.field.name(), self.field.data_type());
        let decoder = decoder(name, &self.native, self.format, data_type, options)?;
        Ok(ReadColumn { native_type: self.native.label(), nullable: self.field.is_nullable(), decoder })
    }

    /// Whether the session's `extra_float_digits` would round what comes.
    pub(crate) fn prints_floats(&self) -> bool {
        self.format == Format::Text && self.native.prints_floats()
    }
}

/// The columns of `statement`, of which the catalogue has told what it knows.
pub(crate) fn plan(
    catalogue: &Catalogue,
    columns: &[Described],
    statement: &str,
    options: &ReadOptions,
) -> Result<Vec<Planned>> {
    for (name, _) in &options.schema {
        if !columns.iter().any(|column| column.name == *name) {
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            return Err(Error::interface(format!("schema= names {name:?}, which the query does not return"))
                .with_hint(format!("it returns {}", known.join(", "))));
        }
    }
    let promised = columns.iter().any(|column| catalogue.facts(column).not_null);
    let plain = promised && is_plain(statement);
    columns.iter().map(|column| planned(catalogue, column, plain, options)).collect()
}

fn planned(catalogue: &Catalogue, column: &Described, plain: bool, options: &ReadOptions) -> Result<Planned> {
    let facts = catalogue.facts(column);
    let native = catalogue.type_of(column.oid, column.modifier).with_dimensions(facts.dimensions);
    let wanted =
        options.wanted(&column.name).map(|wanted| normalised(&column.name, &native, wanted, options));
    let wanted = wanted.transpose()?;
    let wanted = wanted.as_ref();
    let nullable = !(plain && facts.not_null) || native.turns_null(wanted, options);
    let default = native.field(&column.name, nullable, options);
    let (field, format) = match wanted {
        // A deferred field's type is only how its cells wait: nobody can want that.
        Some(wanted)
            if default.as_ref().is_ok_and(|field| field.data_type() == wanted && !has_deferred(field)) =>
        {
            (default?, native.format(options.protocol))
        }
        Some(wanted) => (overridden(column, &native, nullable, wanted), format_for(&native, wanted, options)),
        None => (default?, native.format(options.protocol)),
    };
    Ok(Planned { native, field, format })
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
