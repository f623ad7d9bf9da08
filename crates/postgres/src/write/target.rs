//! The table that rows go into, as the catalogue has it.

use longshore_core::{Error, Kind, Load, Result};

use super::quoted_name;
use crate::connection::Described;
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;
use crate::types::Type;

const COLUMNS: &str = "\
SELECT a.attname, a.atttypid, a.atttypmod, a.attgenerated, a.attidentity \
FROM pg_catalog.pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY a.attnum";

/// A column that is written.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) native: Type,
}

/// The columns that a load writes, in the order of its own.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) columns: Vec<Column>,
    /// Whether one is GENERATED ALWAYS AS IDENTITY, into which INSERT writes only on request.
    pub(super) has_identity: bool,
}

impl Target {
    /// Asks for the columns of `table`, a quoted name.
    pub(super) fn describe(session: &mut PostgresSession, load: &Load, table: &str) -> Result<Self> {
        let answers = session.connection.flight(&[Step::run(COLUMNS).bind(table)])?;
        let rows: Vec<_> = answers.into_iter().flat_map(|answer| answer.rows).collect();
        if rows.is_empty() {
            return Err(missing(load));
        }
        let cell = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let known: Vec<String> = rows.iter().map(|row| cell(row, 0)).collect();
        let wanted: Vec<&String> = load.schema.fields().iter().map(|field| field.name()).collect();
        let extra: Vec<String> =
            wanted.iter().filter(|name| !known.contains(name)).map(|name| format!("{name:?}")).collect();
        if !extra.is_empty() {
            return Err(Error::programming(format!("{} has no column {}", load.table, extra.join(", ")))
                .with_hint(format!(
                    "its columns are {}; rename or drop what is too much",
                    known.join(", ")
                )));
        }
        let found: Vec<_> =
            wanted.iter().filter_map(|name| rows.iter().find(|row| cell(row, 0) == **name)).collect();
        if let Some(row) = found.iter().find(|row| !cell(row, 3).is_empty()) {
            return Err(Error::programming(format!(
                "column {:?} of {} is generated",
                cell(row, 0),
                load.table
            ))
            .with_hint("drop it from the data: the server computes it"));
        }
        let described: Vec<Described> =
            found.iter().map(|row| described(&cell(row, 0), &cell(row, 1), &cell(row, 2))).collect();
        session.load_types(&described, &[])?;
        let column = |column: &Described| Column {
            name: column.name.clone(),
            native: session.catalogue.type_of(column.oid, column.modifier),
        };
        Ok(Self {
            columns: described.iter().map(column).collect(),
            has_identity: found.iter().any(|row| cell(row, 4) == "a"),
        })
    }

    /// The columns' names, quoted, with commas.
    pub(super) fn names(&self) -> String {
        self.columns.iter().map(|column| quoted_name(&column.name)).collect::<Vec<_>>().join(", ")
    }
}

fn described(name: &str, oid: &str, modifier: &str) -> Described {
    Described {
        name: name.to_owned(),
        table: 0,
        attribute: 0,
        oid: oid.parse().unwrap_or_default(),
        modifier: modifier.parse().unwrap_or(-1),
    }
}

/// Fails where there is no `table`, a quoted name.
pub(super) fn must_exist(session: &mut PostgresSession, load: &Load, table: &str) -> Result<()> {
    if exists(session, table)? { Ok(()) } else { Err(missing(load)) }
}

/// Fails before anything is made on a server that only speaks the wire: its CREATE TABLE would not be undone.
pub(super) fn must_be_postgresql(session: &mut PostgresSession) -> Result<()> {
    let asked = session.connection.flight(&[Step::run("SELECT to_regclass('pg_catalog.pg_class')")]);
    match asked {
        Err(error) if error.sqlstate().is_some_and(|state| state == "00000" || state.starts_with("42")) => {
            Err(Error::new(
                Kind::NotSupported,
                "the server speaks PostgreSQL's protocol, but is not PostgreSQL",
            )
            .with_hint("write into it by its own client: its catalogue and its COPY are others"))
        }
        other => other.map(drop),
    }
}

/// Whether there is something of that name.
pub(super) fn exists(session: &mut PostgresSession, table: &str) -> Result<bool> {
    let answers =
        session.connection.flight(&[Step::run("SELECT to_regclass($1) IS NOT NULL").bind(table)])?;
    Ok(answers.first().is_some_and(|answer| answer.cell(0, 0) == "t"))
}

#[cold]
pub(super) fn missing(load: &Load) -> Error {
    Error::programming(format!("there is no table {}", load.table))
        .with_sqlstate("42P01")
        .with_hint("if_exists=\"fail\" makes one; the name counts with its case")
}
