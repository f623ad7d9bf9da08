//! The table that rows go into: found, created, emptied or dropped.

use std::borrow::Cow;

use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::{EXTENSION, Error, IfExists, Kind, Load, Query, Result, TableName};
use longshore_source::Nested;
use longshore_source::table::{Naming, TableColumn, no_type, value_type};
use longshore_values::is_nested;

use crate::connection::Connection;
use crate::describe::describe;
use crate::dialect::DIALECT;
use crate::encode::{parameter, text};
use crate::types::{Described, Type};

pub(super) const NAMING: Naming = Naming {
    dialect: DIALECT,
    is_same: |a, b| a.to_lowercase() == b.to_lowercase(),
    type_quotes: &[('\'', '\''), ('"', '"'), ('[', ']')],
    missing_table: "42S02",
    existing_table: "42S01",
    missing_column: "42S22",
};

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) described: Described,
    pub(super) native: Type,
}

impl TableColumn for Column {
    fn name(&self) -> &str {
        &self.described.name
    }

    fn is_generated(&self) -> bool {
        self.described.is_generated || self.described.is_rowversion
    }
}

/// A table that is there.
pub(super) struct Table {
    /// Its name in a statement.
    pub(super) quoted: String,
}

impl Table {
    /// The kind of `name`, and whether it is a view; `None` where nothing has the name.
    fn find(connection: &mut Connection, name: &TableName) -> Result<Option<(Self, bool)>> {
        let quoted = NAMING.table(name);
        let query = "SELECT type FROM sys.objects WHERE object_id = OBJECT_ID(@table) AND type IN ('U', 'V')";
        let rows = connection.table(query, vec![parameter("@table", text(&quoted))])?;
        let kind = rows.into_iter().flatten().flatten().next();
        Ok(kind.map(|kind| (Self { quoted }, kind.trim() == "V")))
    }

    /// The table that `name` means, where rows can go into it.
    pub(super) fn expect(connection: &mut Connection, name: &TableName) -> Result<Self> {
        match Self::find(connection, name)? {
            Some((table, false)) => Ok(table),
            Some((_, true)) => {
                Err(Error::programming(format!("{name} is a view"))
                    .with_hint("write into the table behind it"))
            }
            None => Err(NAMING.no_table(name)),
        }
    }

    pub(super) fn columns(&self, connection: &mut Connection) -> Result<Vec<Column>> {
        let columns = describe(connection, &Query::new(format!("SELECT * FROM {}", self.quoted)))?;
        let column = |described: Described| Ok(Column { native: Type::of(&described)?, described });
        columns.into_iter().map(column).collect()
    }

    /// The columns of its primary key, and of each unique index over all rows.
    pub(super) fn keys(&self, connection: &mut Connection) -> Result<Vec<Vec<String>>> {
        let query = "SELECT i.index_id, c.name FROM sys.indexes AS i JOIN sys.index_columns AS k \
             ON k.object_id = i.object_id AND k.index_id = i.index_id JOIN sys.columns AS c \
             ON c.object_id = k.object_id AND c.column_id = k.column_id WHERE i.object_id = OBJECT_ID(@table) \
             AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0 AND k.key_ordinal > 0 \
             ORDER BY i.index_id, k.key_ordinal";
        let rows = connection.table(query, vec![parameter("@table", text(&self.quoted))])?;
        let mut keys: Vec<(Option<String>, Vec<String>)> = Vec::new();
        for row in rows {
            let [index, Some(column)] = row.as_slice() else { continue };
            match keys.last_mut().filter(|(last, _)| last == index) {
                Some((_, columns)) => columns.push(column.clone()),
                None => keys.push((index.clone(), vec![column.clone()])),
            }
        }
        Ok(keys.into_iter().map(|(_, columns)| columns).collect())
    }
}

/// A new table, in the place of the one that is there or where there is none.
pub(super) fn create(connection: &mut Connection, load: &Load) -> Result<Table> {
    let name = &load.table;
    match Table::find(connection, name)? {
        Some(_) if load.if_exists == IfExists::Fail => return Err(NAMING.already_exists(name)),
        Some((_, true)) => {
            return Err(Error::programming(format!("{name} is a view"))
                .with_hint("drop it first, or choose another name"));
        }
        // Foreign keys that point at it are the server's error.
        Some((table, false)) => connection.run(&format!("DROP TABLE {}", table.quoted))?,
        None => {}
    }
    connection.run(&create_statement(load)?)?;
    Ok(Table { quoted: NAMING.table(name) })
}

/// The table without its rows.
pub(super) fn empty(connection: &mut Connection, name: &TableName) -> Result<Table> {
    let table = Table::expect(connection, name)?;
    let query = "SELECT OBJECT_NAME(parent_object_id) FROM sys.foreign_keys \
         WHERE referenced_object_id = OBJECT_ID(@table) AND delete_referential_action <> 0";
    let rows = connection.table(query, vec![parameter("@table", text(&table.quoted))])?;
    let others: Vec<String> = rows.into_iter().flatten().flatten().collect();
    if !others.is_empty() {
        let message =
            format!("without the rows of {name}, foreign keys would change those of {}", others.join(", "));
        return Err(Error::new(Kind::Integrity, message)
            .with_hint("use if_exists=\"upsert\", or drop the foreign keys first"));
    }
    connection.run(&format!("DELETE FROM {}", table.quoted))?;
    Ok(table)
}

fn create_statement(load: &Load) -> Result<String> {
    let mut parts = Vec::with_capacity(load.schema.fields().len() + 1);
    for field in load.schema.fields() {
        let is_key = load.key.contains(field.name());
        let native = NAMING.column_type(load, field, || native(field, is_key, load).map(Cow::into_owned))?;
        let promise = if !field.is_nullable() || is_key { " NOT NULL" } else { " NULL" };
        parts.push(format!("{} {native}{promise}", DIALECT.quoted_name(field.name())));
    }
    parts.extend(NAMING.primary_key(load));
    Ok(format!("CREATE TABLE {} ({})", NAMING.table(&load.table), parts.join(", ")))
}

/// The type of a new table's column: of a key one that an index can be over.
fn native(field: &Field, is_key: bool, load: &Load) -> Result<Cow<'static, str>> {
    if Nested::of(load) == Nested::Json && is_nested(field.data_type()) {
        return Ok("nvarchar(max)".into());
    }
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    of(field.data_type(), extension, is_key).ok_or_else(|| {
        no_type(
            "SQL Server",
            field,
            "convert it, or write lists, structs and maps as JSON: options={\"nested\": \"json\"}",
        )
    })
}

fn of(data_type: &DataType, extension: Option<&str>, is_key: bool) -> Option<Cow<'static, str>> {
    Some(match value_type(data_type) {
        DataType::Boolean => "bit".into(),
        DataType::UInt8 => "tinyint".into(),
        DataType::Int8 | DataType::Int16 => "smallint".into(),
        DataType::UInt16 | DataType::Int32 => "int".into(),
        DataType::UInt32 | DataType::Int64 => "bigint".into(),
        DataType::UInt64 => "decimal(20,0)".into(),
        DataType::Float16 | DataType::Float32 => "real".into(),
        DataType::Float64 => "float".into(),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => decimal(*digits, *scale)?.into(),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            if is_key { "nvarchar(450)" } else { "nvarchar(max)" }.into()
        }
        DataType::FixedSizeBinary(_) if extension == Some("arrow.uuid") => "uniqueidentifier".into(),
        DataType::FixedSizeBinary(size @ 1..=8000) => format!("binary({size})").into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            if is_key { "varbinary(900)" } else { "varbinary(max)" }.into()
        }
        DataType::Date32 => "date".into(),
        DataType::Date64 => "datetime2(3)".into(),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("time({})", digits(*unit)).into(),
        DataType::Timestamp(unit, None) => format!("datetime2({})", digits(*unit)).into(),
        DataType::Timestamp(unit, Some(_)) => format!("datetimeoffset({})", digits(*unit)).into(),
        _ => return None,
    })
}

/// The digits behind the second that a unit needs, of which the server has seven.
fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 7,
    }
}

fn decimal(precision: u8, scale: i8) -> Option<String> {
    let zeros = scale.min(0).unsigned_abs();
    let (precision, scale) = (precision.checked_add(zeros)?, u8::try_from(scale.max(0)).ok()?);
    (precision.max(scale) <= 38).then(|| format!("decimal({},{scale})", precision.max(scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_columns_hold_what_the_data_can() {
        for (arrow, native) in [
            (DataType::Int8, "smallint"),
            (DataType::UInt64, "decimal(20,0)"),
            (DataType::Decimal128(10, -2), "decimal(12,0)"),
            (DataType::Decimal128(3, 5), "decimal(5,5)"),
            (DataType::Utf8, "nvarchar(max)"),
            (DataType::FixedSizeBinary(3), "binary(3)"),
            (DataType::Time64(TimeUnit::Nanosecond), "time(7)"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "datetimeoffset(6)"),
        ] {
            assert_eq!(of(&arrow, None, false).as_deref(), Some(native));
        }
        assert_eq!(of(&DataType::Utf8, None, true).as_deref(), Some("nvarchar(450)"));
        assert_eq!(of(&DataType::Decimal256(50, 0), None, false), None);
        assert_eq!(of(&DataType::Duration(TimeUnit::Second), None, false), None);
    }
}
