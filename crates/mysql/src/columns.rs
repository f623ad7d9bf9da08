//! The columns of a result, as they will be read under the type policy.

use arrow_schema::{DataType, Field};
use longshore_core::{Protocol, ReadOptions, Result, native_field};
use longshore_values::ReadColumn;

use crate::decode::{Context, Format, decoder};
use crate::dialect;
use crate::message::Definition;
use crate::temporal::{Zone, unknown_zone};
use crate::types::{Class, Type, check_readable};

/// A column of a result.
pub(crate) struct ColumnPlan {
    pub(crate) native: Type,
    pub(crate) field: Field,
    /// The type that it has by the type policy, if it has any.
    default: Option<DataType>,
}

impl ColumnPlan {
    pub(crate) fn read(&self, format: Format, context: &Context) -> Result<ReadColumn> {
        let (name, arrow) = (self.field.name(), self.field.data_type());
        let decoder = decoder(name, &self.native, format, arrow, self.default.as_ref(), context)?;
        Ok(ReadColumn { native_type: self.native.label.clone(), nullable: self.field.is_nullable(), decoder })
    }
}

/// The columns that the server has told of the statement `text`, in a session of this time zone.
pub(crate) fn plan(
    columns: &[Definition],
    text: &str,
    zone: Zone,
    format: Format,
    options: &ReadOptions,
) -> Result<Vec<ColumnPlan>> {
    let mut options = options.clone();
    options.protocol = if format == Format::Text { Protocol::Text } else { Protocol::Binary };
    options.check_names(columns.iter().map(|column| column.name.as_str()))?;
    let types: Vec<Type> = columns.iter().map(Type::of).collect();
    let is_plain = types.iter().any(|native| native.not_null) && dialect::is_plain(text);
    let columns = columns.iter().zip(types);
    columns.map(|(column, native)| plan_column(column, native, is_plain, zone, &options)).collect()
}

fn plan_column(
    column: &Definition,
    native: Type,
    is_plain: bool,
    zone: Zone,
    options: &ReadOptions,
) -> Result<ColumnPlan> {
    let name = &column.name;
    let wanted = options.wanted_type(name);
    // A column that comes from a table unchanged: an expression's promise may be wrong.
    let is_promised = is_plain && native.not_null && !column.original.is_empty();
    let nullable = !is_promised || native.turns_null(options);
    let is_text = wanted.is_some_and(DataType::is_string);
    if native.class == Class::Timestamp && !is_text && zone.offset().is_none() {
        return Err(unknown_zone().at(native.place(name)));
    }
    let default = native.field(name, nullable, options);
    let Some(wanted) = wanted else {
        let field = default?;
        return Ok(ColumnPlan { default: Some(field.data_type().clone()), native, field });
    };
    check_readable(name, &native, wanted, options)?;
    let default_type = default.as_ref().ok().map(|field| field.data_type().clone());
    let field = match default {
        Ok(field) if field.data_type() == wanted => field,
        _ => native_field(name, wanted.clone(), nullable, &native.label, None),
    };
    Ok(ColumnPlan { default: default_type, native, field })
}
