//! The table that rows go into: found, created, emptied or dropped.

use std::borrow::Cow;

use arrow_schema::{DataType, Field};
use longshore_core::{EXTENSION, Error, IfExists, Kind, Load, Result, TableName};
use longshore_source::Nested;
use longshore_source::table::{Naming, TableColumn, no_type, value_type};
use longshore_values::is_nested;

use crate::dialect::{DIALECT, literal, quoted_name};
use crate::write::Statements;

pub(super) const NAMING: Naming = Naming {
    dialect: DIALECT,
    is_same: |a, b| a.eq_ignore_ascii_case(b),
    type_quotes: &[('\'', '\''), ('"', '"'), ('`', '`'), ('[', ']')],
    missing_table: "42P01",
    existing_table: "42P07",
    missing_column: "42703",
};

/// A table that is there.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    /// `table`, `view`, `virtual` or `shadow`.
    kind: String,
    has_rowid: bool,
    is_strict: bool,
}

/// A column of it.
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type as CREATE TABLE declares it.
    pub(super) declared: String,
    pub(super) not_null: bool,
    /// Whether it is another name of the rowid, where NULL becomes the next number.
    pub(super) is_rowid: bool,
    pub(super) is_strict: bool,
    is_generated: bool,
    is_key: bool,
}

impl TableColumn for Column {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_generated(&self) -> bool {
        self.is_generated
    }
}

impl Table {
    /// The table that `name` means; `None` where none does.
    pub(super) fn find(session: &impl Statements, name: &TableName) -> Result<Option<Self>> {
        let within =
            name.schema.as_ref().map(|schema| format!(" AND t.schema = {} COLLATE NOCASE", literal(schema)));
        // As SQLite itself looks for a table: among the temporary ones, in `main`, and then as they were attached.
        let text = format!(
            "SELECT t.schema, t.name, t.type, t.wr, t.strict FROM pragma_table_list AS t \
             JOIN pragma_database_list AS d ON d.name = t.schema \
             WHERE t.name = {} COLLATE NOCASE{} ORDER BY d.name <> 'temp', d.seq LIMIT 1",
            literal(&name.table),
            within.unwrap_or_default()
        );
        let mut found = session.ask(&text, |row| Self {
            schema: row.text(0),
            name: row.text(1),
            kind: row.text(2),
            has_rowid: !row.is_true(3),
            is_strict: row.is_true(4),
        })?;
        Ok(found.pop())
    }

    /// The table that `name` means, where rows can go into it.
    pub(super) fn expect(session: &impl Statements, name: &TableName) -> Result<Self> {
        let Some(table) = Self::find(session, name)? else {
            return Err(NAMING.no_table(name));
        };
        if table.kind == "view" {
            return Err(
                Error::programming(format!("{name} is a view")).with_hint("write into the table behind it")
            );
        }
        Ok(table)
    }

    /// Its name in a statement.
    pub(super) fn quoted_name(&self) -> String {
        format!("{}.{}", quoted_name(&self.schema), quoted_name(&self.name))
    }

    /// Its name and schema as the arguments of a pragma's function.
    fn arguments(&self) -> String {
        format!("{}, {}", literal(&self.name), literal(&self.schema))
    }

    pub(super) fn columns(&self, session: &impl Statements) -> Result<Vec<Column>> {
        let text = format!(
            "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo({}) WHERE hidden <> 1",
            self.arguments()
        );
        let mut columns = session.ask(&text, |row| Column {
            name: row.text(0),
            declared: row.text(1),
            not_null: row.is_true(2),
            is_key: row.is_true(3),
            is_generated: row.is_true(4),
            is_rowid: false,
            is_strict: self.is_strict,
        })?;
        let mut keys = columns.iter_mut().filter(|column| column.is_key);
        if let (Some(key), None) = (keys.next(), keys.next()) {
            key.is_rowid =
                self.has_rowid && self.kind == "table" && key.declared.eq_ignore_ascii_case("INTEGER");
        }
        Ok(columns)
    }

    /// The columns of its primary key, and of each unique index over all rows.
    pub(super) fn keys(&self, session: &impl Statements, columns: &[Column]) -> Result<Vec<Vec<String>>> {
        let primary = columns.iter().filter(|column| column.is_key).map(|column| column.name.clone());
        let mut keys = vec![primary.collect::<Vec<_>>()];
        let arguments = self.arguments();
        let text = format!(
            "SELECT name FROM pragma_index_list({arguments}) WHERE \"unique\" AND NOT partial AND origin <> 'pk'"
        );
        for index in session.ask(&text, |row| row.text(0))? {
            let text =
                format!("SELECT name FROM pragma_index_info({}, {})", literal(&index), literal(&self.schema));
            keys.push(session.ask(&text, |row| row.text(0))?);
        }
        keys.retain(|names| !names.is_empty());
        Ok(keys)
    }

    /// Tables whose foreign keys point at this one, and what happens to their rows when its rows go.
    pub(super) fn pointing(&self, session: &impl Statements) -> Result<Vec<(String, String)>> {
        let text = format!(
            "SELECT m.name, f.on_delete FROM {}.sqlite_schema AS m, pragma_foreign_key_list(m.name, {}) AS f \
             WHERE m.type = 'table' AND f.\"table\" = {} COLLATE NOCASE AND m.name <> f.\"table\" COLLATE NOCASE",
            quoted_name(&self.schema),
            literal(&self.schema),
            literal(&self.name)
        );
        session.ask(&text, |row| (row.text(0), row.text(1)))
    }

    /// Refuses a virtual or shadow table.
    pub(super) fn expect_ordinary(&self) -> Result<()> {
        if self.kind == "table" {
            return Ok(());
        }
        Err(Error::not_supported(format!("{} is a {} table", self.name, self.kind))
            .with_hint("drop it and create it again, or use if_exists=\"append\""))
    }
}

/// The type that CREATE TABLE declares for a column of `field`. What is declared decides what the column is read as, and
/// what SQLite does to its values: texts that must stay as they are have a type with TEXT in its name.
pub(super) fn native(field: &Field, nested: Nested) -> Result<Cow<'static, str>> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    if nested == Nested::Json && is_nested(field.data_type()) {
        return Ok("JSON_TEXT".into());
    }
    of(field.data_type(), extension).ok_or_else(|| {
        no_type("SQLite", field, "options={\"nested\": \"json\"} writes lists, structs and maps as JSON")
    })
}

fn of(data_type: &DataType, extension: Option<&str>) -> Option<Cow<'static, str>> {
    Some(match value_type(data_type) {
        // Whatever comes later is kept as it is.
        DataType::Null => "".into(),
        DataType::Boolean => "BOOLEAN".into(),
        number if number.is_signed_integer() => "INTEGER".into(),
        number if number.is_unsigned_integer() => "UNSIGNED INTEGER".into(),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "REAL".into(),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("DECIMAL_TEXT({digits},{scale})").into(),
        text if text.is_string() && extension == Some("arrow.json") => "JSON_TEXT".into(),
        // Spans are texts as SQLite's own functions take them, or in the form of ISO 8601.
        DataType::Duration(_) | DataType::Interval(_) => "TEXT".into(),
        text if text.is_string() => "TEXT".into(),
        DataType::FixedSizeBinary(_) if extension == Some("arrow.uuid") => "TEXT".into(),
        bytes if bytes.is_binary() => "BLOB".into(),
        DataType::Date32 => "DATE".into(),
        DataType::Date64 | DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        _ => return None,
    })
}

/// The statement that makes the table of `load`, whose name is `quoted`.
fn create_statement(load: &Load, quoted: &str) -> Result<String> {
    let mut parts = Vec::with_capacity(load.schema.fields().len() + 1);
    for field in load.schema.fields() {
        let native =
            NAMING.column_type(load, field, || native(field, Nested::of(load)).map(Cow::into_owned))?;
        // A key of SQLite's takes NULLs unless it is told not to.
        let not_null = !field.is_nullable() || load.key.contains(field.name());
        let promise = if not_null { " NOT NULL" } else { "" };
        parts.push(format!("{} {native}{promise}", quoted_name(field.name())));
    }
    parts.extend(NAMING.primary_key(load));
    Ok(format!("CREATE TABLE {quoted} ({})", parts.join(", ")))
}

/// A new table, in the place of the one that is there or where there is none.
pub(super) fn create(session: &mut impl Statements, load: &Load) -> Result<Table> {
    let quoted = match Table::find(session, &load.table)? {
        Some(_) if load.if_exists == IfExists::Fail => {
            return Err(NAMING.already_exists(&load.table));
        }
        Some(table) => {
            drop_table(session, &table)?;
            table.quoted_name()
        }
        None => {
            let schema = load.table.schema.as_deref().unwrap_or("main");
            NAMING.table(&TableName { schema: Some(schema.to_owned()), ..load.table.clone() })
        }
    };
    session.exec(&create_statement(load, &quoted)?)?;
    Table::expect(session, &load.table)
}

/// Drops `table`. All happens in one transaction, so that no other session sees the database without the table: there is no need to fill
/// a second one and to rename it, which would fail where a view names the table.
fn drop_table(session: &mut impl Statements, table: &Table) -> Result<()> {
    table.expect_ordinary()?;
    expect_unused(table, session, |_| true)?;
    session.exec(&format!("DROP TABLE {}", table.quoted_name()))
}

/// The table without its rows.
pub(super) fn truncate(session: &mut impl Statements, name: &TableName) -> Result<Table> {
    let table = Table::expect(session, name)?;
    let enforced = session.ask("PRAGMA foreign_keys", |row| row.is_true(0))?;
    if enforced.contains(&true) {
        // Where rows that point at one that goes would be changed.
        let changed = |action: &str| !matches!(action, "NO ACTION" | "RESTRICT");
        expect_unused(&table, session, changed)?;
    }
    session.exec(&format!("DELETE FROM {}", table.quoted_name()))?;
    Ok(table)
}

/// Refuses a table that foreign keys of others point at, with such an action when its rows go.
fn expect_unused(table: &Table, session: &impl Statements, is_such: impl Fn(&str) -> bool) -> Result<()> {
    let pointing = table.pointing(session)?.into_iter().filter(|(_, action)| is_such(action));
    let mut names: Vec<String> = pointing.map(|(name, _)| name).collect();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!("foreign keys of {} point at table {}", names.join(", "), table.name);
    Err(Error::new(Kind::Integrity, message)
        .with_hint("drop those first, or change its rows with if_exists=\"upsert\""))
}
