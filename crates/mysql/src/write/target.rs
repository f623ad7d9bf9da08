//! A table as it is: its columns, its indexes, and what keeps rows in it.

use longshore_core::{Error, Kind, Result, TableName};

use super::native::Native;
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name};
use crate::message;

/// The error of a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;

/// Engines whose rows a transaction can take back.
const TRANSACTIONAL: &[&str] = &["InnoDB", "ROCKSDB", "ndbcluster", "TokuDB"];

/// A table's name with its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) database: String,
    pub(super) table: String,
}

impl Name {
    /// The name that `table` has in the session's own database, unless it says another.
    pub(super) fn resolve(connection: &mut Connection, table: &TableName) -> Result<Self> {
        let database = match &table.schema {
            Some(schema) => Some(schema.clone()),
            None => connection.rows("SELECT DATABASE()")?.into_iter().flatten().next().flatten(),
        };
        let database = database.ok_or_else(|| {
            Error::programming(format!("the table {table} is in no database"))
                .with_hint("name the database in the URL, or before the table: \"database.table\"")
        })?;
        Ok(Self { database, table: table.table.clone() })
    }

    /// Another table of the same database.
    pub(super) fn beside(&self, table: String) -> Self {
        Self { database: self.database.clone(), table }
    }

    /// For statements.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quoted_name(&self.database), quoted_name(&self.table))
    }

    /// For messages.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.database, self.table)
    }

    /// A condition on two columns of the catalogue.
    pub(super) fn is(&self, schema: &str, table: &str) -> String {
        format!("{schema} = {} AND {table} = {}", literal(&self.database), literal(&self.table))
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// A table, with its engine.
    Table(String),
    /// A table that only this session has.
    Temporary(String),
    /// A view, or something else that is no table.
    Other,
}

/// What is there under the name; `None` for nothing.
pub(super) fn existing(connection: &mut Connection, name: &Name) -> Result<Option<Existing>> {
    let shown = connection.table(&format!("SHOW CREATE TABLE {}", name.quoted()));
    let (names, rows) = match shown {
        Ok(shown) => shown,
        Err(error) if message::code(&error) == Some(NO_SUCH_TABLE) => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = rows.first().and_then(|row| row.get(1)?.as_deref()).unwrap_or_default();
    if names.first().is_none_or(|name| name != "Table") || text.starts_with("CREATE SEQUENCE") {
        return Ok(Some(Existing::Other));
    }
    // The options of the table follow its last column or index.
    let options = text.rsplit_once("\n)").map_or(text, |(_, options)| options);
    let engine = options.split_once("ENGINE=").map_or("", |(_, rest)| rest);
    let end = engine.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(engine.len());
    let engine = engine[..end].to_owned();
    Ok(Some(if text.starts_with("CREATE TEMPORARY") {
        Existing::Temporary(engine)
    } else {
        Existing::Table(engine)
    }))
}

/// Refuses what no rows can be added to so that they can be taken back.
pub(super) fn check(name: &Name, existing: Option<&Existing>) -> Result<()> {
    let shown = name.shown();
    match existing {
        None => Err(Error::programming(format!("there is no table {shown}"))
            .with_sqlstate("42S02")
            .with_hint("check its name and the database; if_exists=\"fail\" or \"replace\" makes a new one")),
        Some(Existing::Other) => Err(Error::new(Kind::NotSupported, format!("{shown} is not a table"))
            .with_hint("name the table that a view shows, or another name")),
        Some(Existing::Table(engine) | Existing::Temporary(engine)) if !is_transactional(engine) => {
            Err(Error::new(
                Kind::NotSupported,
                format!("{shown} has the engine {engine}, which takes no row back"),
            )
            .with_hint(
                "a failure would leave some of the rows: ALTER TABLE ... ENGINE=InnoDB first, or use \
                            if_exists=\"replace\"",
            ))
        }
        Some(_) => Ok(()),
    }
}

fn is_transactional(engine: &str) -> bool {
    TRANSACTIONAL.iter().any(|known| known.eq_ignore_ascii_case(engine))
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type in the server's words.
    pub(super) words: String,
    pub(super) native: Native,
    pub(super) collation: Option<String>,
    pub(super) nullable: bool,
    pub(super) otherwise: Otherwise,
}

/// What a column has in a row that does not give it a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// NULL, where it may be, or else nothing.
    Nothing,
    Default,
    /// The next number.
    Counted,
    /// What the server makes of other columns, whatever a row gives.
    Generated,
}

impl Column {
    /// Whether a row need not give it a value.
    pub(super) fn is_optional(&self) -> bool {
        self.nullable || self.otherwise != Otherwise::Nothing
    }
}

/// The columns of the table, in its own order.
pub(super) fn columns(connection: &mut Connection, name: &Name) -> Result<Vec<Column>> {
    let (names, rows) = connection.table(&format!("SHOW FULL COLUMNS FROM {}", name.quoted()))?;
    let at = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    let places = ["Field", "Type", "Collation", "Null", "Default", "Extra"].map(at);
    let column = |row: Vec<Option<String>>| {
        let [name, words, collation, null, default, extra] =
            places.map(|place| place.and_then(|place| row.get(place).cloned().flatten()));
        let (words, extra) = (words.unwrap_or_default(), extra.unwrap_or_default().to_ascii_uppercase());
        let nullable = null.is_none_or(|null| null.eq_ignore_ascii_case("yes"));
        let is_generated = ["VIRTUAL", "STORED", "PERSISTENT"].iter().any(|word| extra.contains(word));
        let otherwise = match default {
            _ if is_generated => Otherwise::Generated,
            _ if extra.contains("AUTO_INCREMENT") => Otherwise::Counted,
            Some(_) => Otherwise::Default,
            None => Otherwise::Nothing,
        };
        Column {
            name: name.unwrap_or_default(),
            native: Native::of(&words),
            words,
            collation,
            nullable,
            otherwise,
        }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// A unique index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// Whether it looks at the whole of its columns, and at nothing else.
    pub(super) is_whole: bool,
}

/// The unique indexes of the table.
pub(super) fn unique_indexes(connection: &mut Connection, name: &Name) -> Result<Vec<Index>> {
    let (names, rows) = connection.table(&format!("SHOW INDEX FROM {}", name.quoted()))?;
    let at = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    let places = ["Non_unique", "Key_name", "Column_name", "Sub_part"].map(at);
    let mut indexes: Vec<Index> = Vec::new();
    for row in rows {
        let [other, name, column, part] =
            places.map(|place| place.and_then(|place| row.get(place).cloned().flatten()));
        if other.as_deref() != Some("0") {
            continue;
        }
        let name = name.unwrap_or_default();
        if indexes.last().is_none_or(|last| last.name != name) {
            indexes.push(Index { name, columns: Vec::new(), is_whole: true });
        }
        let Some(index) = indexes.last_mut() else { continue };
        index.is_whole &= part.is_none() && column.is_some();
        index.columns.extend(column);
    }
    Ok(indexes)
}
