//! The data's columns and the table's, by name.

use longshore_core::{Error, Kind, Load, Result};

use super::encode::{Encoder, Moments};
use super::native::Native;
use super::target::{Column, Name, Otherwise};

/// The column of the table for each of the data's.
pub(super) fn encoders(
    load: &Load,
    name: &Name,
    columns: &[Column],
    offset: Option<i64>,
) -> Result<Vec<Encoder>> {
    let fields = load.schema.fields();
    let found: Vec<Option<&Column>> = fields.iter().map(|field| find(columns, field.name())).collect();
    check_known(load, name, columns, &found)?;
    let encoder = |(field, column): (&arrow_schema::FieldRef, Option<&Column>)| {
        let column = column?.clone();
        let is_chosen = load.types.iter().any(|(chosen, _)| chosen == field.name());
        let as_utc = is_chosen && matches!(column.native, Native::DateTime(_));
        Some(Encoder {
            field: field.clone(),
            nested: load.nested,
            is_key: load.key.contains(field.name()),
            moments: Moments { offset, as_utc },
            column,
        })
    };
    Ok(fields.iter().zip(found).filter_map(encoder).collect())
}

/// Exactly, or without its case, for a table has no two such columns.
fn find<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    let exact = columns.iter().find(|column| column.name == name);
    exact.or_else(|| columns.iter().find(|column| column.name.to_lowercase() == name.to_lowercase()))
}

fn check_known(load: &Load, name: &Name, columns: &[Column], found: &[Option<&Column>]) -> Result<()> {
    let fields = load.schema.fields();
    let listed = |names: Vec<&str>| names.join(", ");
    let extra: Vec<&str> = fields
        .iter()
        .zip(found)
        .filter(|(_, column)| column.is_none())
        .map(|(field, _)| field.name().as_str())
        .collect();
    if !extra.is_empty() {
        let known = listed(columns.iter().map(|column| column.name.as_str()).collect());
        return Err(Error::programming(format!("{} has no columns {}", name.shown(), listed(extra)))
            .with_sqlstate("42S22")
            .with_hint(format!("it has {known}; leave the others out, or rename them")));
    }
    let generated: Vec<&str> = found
        .iter()
        .flatten()
        .filter(|it| it.otherwise == Otherwise::Generated)
        .map(|it| it.name.as_str())
        .collect();
    if !generated.is_empty() {
        return Err(Error::programming(format!(
            "{} generates these columns itself: {}",
            name.shown(),
            listed(generated)
        ))
        .with_hint("leave them out of the data"));
    }
    for (index, column) in found.iter().flatten().enumerate() {
        if found[..index].iter().flatten().any(|earlier| earlier.name == column.name) {
            return Err(Error::programming(format!(
                "two columns of the data are the table's {}",
                column.name
            ))
            .with_hint("MySQL's columns have one name, in whatever case: rename one, or leave it out"));
        }
    }
    // A file that is loaded would put zeros there.
    let is_given = |column: &Column| found.iter().flatten().any(|known| known.name == column.name);
    let missing: Vec<&str> = columns
        .iter()
        .filter(|column| !column.is_optional() && !is_given(column))
        .map(|column| column.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("{} needs these columns, which have no default: {}", name.shown(), listed(missing));
    Err(Error::new(Kind::Integrity, text)
        .with_sqlstate("23000")
        .with_hint("give the data these columns, or the columns a default"))
}
