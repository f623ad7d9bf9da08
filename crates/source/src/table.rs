//! The table that rows go into: its names, its columns and its keys, as the data calls them.

use std::fmt::Display;

use arrow_schema::{DataType, Field};
use longshore_core::{Error, Load, Place, Quotes, Result, TableName, check_type, type_name};

use crate::sql::Dialect;

/// How a database names its tables and columns, and says that it has one or has it not.
#[derive(Clone, Copy)]
pub struct Naming {
    /// The quotes of a name.
    pub dialect: Dialect,
    /// Whether two names are of one column.
    pub is_same: fn(&str, &str) -> bool,
    /// The quotes that a type of the caller's may hold.
    pub type_quotes: &'static [Quotes],
    /// The SQLSTATE of a table that is not there.
    pub missing_table: &'static str,
    /// The SQLSTATE of a table that is there already.
    pub existing_table: &'static str,
    /// The SQLSTATE of a column that is not there.
    pub missing_column: &'static str,
}

/// A column of a table, as far as a write looks at it before any value.
pub trait TableColumn {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether the database computes its values.
    fn is_generated(&self) -> bool;
}

impl Naming {
    /// A table's name for a statement.
    #[must_use]
    pub fn table(&self, name: &TableName) -> String {
        self.dialect.qualified_name(name)
    }

    /// The names of columns for a statement.
    pub fn list<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> String {
        let quoted = names.into_iter().map(|name| self.dialect.quoted_name(name.as_ref()));
        quoted.collect::<Vec<_>>().join(", ")
    }

    /// The column of `name`, if there is one.
    pub fn find<'a, C: TableColumn>(&self, columns: &'a [C], name: &str) -> Option<&'a C> {
        let exact = columns.iter().find(|column| column.name() == name);
        exact.or_else(|| columns.iter().find(|column| (self.is_same)(column.name(), name)))
    }

    /// The columns of `table` that those of the load go into, in the load's order.
    pub fn mapping<'a, C: TableColumn>(
        &self,
        load: &Load,
        table: &dyn Display,
        columns: &'a [C],
    ) -> Result<Vec<&'a C>> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for field in load.schema.fields() {
            match self.find(columns, field.name()) {
                Some(column) => found.push(column),
                None => missing.push(field.name().as_str()),
            }
        }
        if !missing.is_empty() {
            let known: Vec<&str> = columns.iter().map(TableColumn::name).collect();
            return Err(Error::programming(format!("{table} has no column {}", quote_names(&missing)))
                .with_sqlstate(self.missing_column)
                .with_hint(format!(
                    "its columns are {}; leave the others out, or rename them",
                    known.join(", ")
                )));
        }
        let generated: Vec<&str> =
            found.iter().filter(|column| column.is_generated()).map(|column| column.name()).collect();
        if !generated.is_empty() {
            return Err(Error::programming(format!("{table} generates {} itself", quote_names(&generated)))
                .with_hint("leave them out of the data"));
        }
        let is_twice =
            |index: &usize| found[..*index].iter().any(|earlier| earlier.name() == found[*index].name());
        match (0..found.len()).find(is_twice) {
            None => Ok(found),
            Some(index) => Err(Error::programming(format!(
                "two columns of the data go into column {:?} of {table}",
                found[index].name()
            ))
            .with_hint("capital letters do not tell its columns apart: rename one, or leave it out")),
        }
    }

    /// Refuses the key of an upsert that no unique index of `table` is over, without a column more or less.
    pub fn check_key(&self, load: &Load, table: &dyn Display, indexes: &[Vec<String>]) -> Result<()> {
        let has = |names: &[String], name: &String| names.iter().any(|it| (self.is_same)(it, name));
        let is_key = |index: &&Vec<String>| {
            index.iter().all(|name| has(&load.key, name)) && load.key.iter().all(|name| has(index, name))
        };
        if indexes.iter().any(|index| is_key(&index)) {
            return Ok(());
        }
        let known: Vec<String> = indexes.iter().map(|index| format!("({})", index.join(", "))).collect();
        let known =
            if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
        Err(Error::programming(format!(
            "{table} has no unique index over just the columns of the key ({})",
            load.key.join(", ")
        ))
        .with_sqlstate("42P10")
        .with_hint(format!(
            "an upsert needs a primary key or a unique index over them, without a condition; {known}"
        )))
    }

    /// The type of a new table's column: the caller's own, or else the `native` one.
    pub fn column_type(
        &self,
        load: &Load,
        field: &Field,
        native: impl FnOnce() -> Result<String>,
    ) -> Result<String> {
        let Some((column, own)) = load.types.iter().find(|(column, _)| column == field.name()) else {
            return native();
        };
        check_type(column, own, self.type_quotes)?;
        Ok(own.clone())
    }

    /// The constraint that makes the load's key the primary key, if it has one.
    #[must_use]
    pub fn primary_key(&self, load: &Load) -> Option<String> {
        (!load.key.is_empty()).then(|| format!("PRIMARY KEY ({})", self.list(&load.key)))
    }

    /// The error of a table that is not there.
    #[cold]
    pub fn no_table(&self, table: &dyn Display) -> Error {
        Error::programming(format!("there is no table {table}"))
            .with_sqlstate(self.missing_table)
            .with_hint("check its name, case and schema; if_exists=\"fail\" or \"replace\" makes a new one")
    }

    /// The error of a new table whose name another has.
    #[cold]
    pub fn already_exists(&self, table: &dyn Display) -> Error {
        Error::programming(format!("{table} is there already"))
            .with_sqlstate(self.existing_table)
            .with_hint(EXISTS_HINT)
    }
}

/// The hint for a table that is there already.
pub const EXISTS_HINT: &str = "if_exists=\"append\" adds to the table, \"truncate\" replaces its rows, \"replace\" \
                               the table, \"upsert\" needs a key";

/// The values' type behind dictionaries and runs.
#[must_use]
pub fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type()),
        other => other,
    }
}

/// The error of a column for which `database` has no type.
#[cold]
#[must_use]
pub fn no_type(database: &str, field: &Field, hint: &str) -> Error {
    let name = type_name(value_type(field.data_type()));
    Error::not_supported(format!("{database} has no type for {name}")).with_hint(hint).at(column_place(field))
}

/// The place of an error of a whole column.
#[must_use]
pub fn column_place(field: &Field) -> Place {
    Place { column: Some(field.name().clone()), row: None, native_type: None }
}

fn quote_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Schema;
    use longshore_core::{IfExists, OwnOptions};

    use super::*;
    use crate::sql::SQLITE;

    const NAMING: Naming = Naming {
        dialect: SQLITE,
        is_same: |a, b| a.eq_ignore_ascii_case(b),
        type_quotes: &[('\'', '\'')],
        missing_table: "42P01",
        existing_table: "42P07",
        missing_column: "42703",
    };

    struct Column(&'static str, bool);

    impl TableColumn for Column {
        fn name(&self) -> &str {
            self.0
        }

        fn is_generated(&self) -> bool {
            self.1
        }
    }

    fn load(names: &[&str], key: &[&str]) -> Load {
        let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
        Load {
            table: TableName { schema: Some("s".into()), table: "t".into() },
            schema: Arc::new(Schema::new(fields)),
            if_exists: IfExists::Upsert,
            key: key.iter().map(ToString::to_string).collect(),
            types: vec![("a".into(), "varchar(3)".into())],
            own: OwnOptions::default(),
            meter: Arc::default(),
        }
    }

    #[test]
    fn columns_are_found_by_their_own_name_first() {
        let columns = [Column("A", false), Column("a", false), Column("b", false), Column("c", true)];
        let found = |names: &[&str]| {
            let found = NAMING.mapping(&load(names, &[]), &"t", &columns);
            found.map(|found| found.iter().map(|column| column.0).collect::<Vec<_>>())
        };
        assert_eq!(found(&["B", "a"]).unwrap(), ["b", "a"]);
        for (names, text) in [
            (&["x", "b", "y"][..], "t has no column \"x\", \"y\""),
            (&["c"], "t generates \"c\" itself"),
            (&["b", "B"], "two columns of the data go into column \"b\" of t"),
        ] {
            assert_eq!(found(names).unwrap_err().message(), text);
        }
    }

    #[test]
    fn a_key_has_an_index_of_its_own() {
        let load = load(&["a", "b"], &["b", "a"]);
        let check = |indexes: &[&[&str]]| {
            let names = |index: &&[&str]| index.iter().map(ToString::to_string).collect::<Vec<_>>();
            NAMING.check_key(&load, &load.table, &indexes.iter().map(names).collect::<Vec<_>>())
        };
        assert!(check(&[&["id"], &["A", "b"]]).is_ok());
        for indexes in [&[][..], &[&["a"][..]], &[&["a", "b", "c"]]] {
            assert!(check(indexes).is_err(), "{indexes:?}");
        }
    }

    #[test]
    fn a_new_column_has_the_callers_type() {
        let load = load(&["a", "b"], &["b"]);
        let of = |name| {
            NAMING.column_type(&load, &Field::new(name, DataType::Int64, true), || Ok("int".into())).unwrap()
        };
        assert_eq!((of("a"), of("b")), ("varchar(3)".into(), "int".into()));
        assert_eq!(NAMING.primary_key(&load).unwrap(), "PRIMARY KEY (\"b\")");
        assert_eq!(NAMING.table(&load.table), "\"s\".\"t\"");
    }
}
