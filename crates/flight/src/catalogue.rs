//! The contents of a server's databases, as the rows of catalogue queries: Flight SQL has a command for each.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UnionArray};
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, ProstMessageExt, SqlInfo,
};
use arrow_schema::{Field, Schema};
use longshore_core::{
    COLUMN, CONSTRAINT, CatalogueQueries, Kind, NATIVE_TYPE, PLACE, Query, Result, catalogue_batch, type_name,
};
use longshore_flight_protocol::CATALOGUE;

use crate::error::protocol_error;
use crate::messages::declared_schema;
use crate::results::{Rows, choices};
use crate::session::FlightSession;

/// How the queries begin that only this module answers: no table's name does.
const OURS: &str = "TABLE longshore_";

/// How a statement begins that is an option of the session.
const USE_SCHEMA: &str = "SET longshore_schema TO ";

/// The kind of tables that are the system's own, and not listed.
const SYSTEM: &str = "SYSTEM TABLE";

const REMARKS: &str = "ARROW:FLIGHT:SQL:REMARKS";
const AUTO_INCREMENT: &str = "ARROW:FLIGHT:SQL:IS_AUTO_INCREMENT";

type Row = Vec<Option<String>>;

/// The queries, each of which [`FlightSession::catalogue`] knows.
pub(crate) fn queries(session: &FlightSession) -> CatalogueQueries {
    let own = CatalogueQueries {
        current: Cow::Borrowed("TABLE longshore_current"),
        use_schema: Cow::Owned(format!("{USE_SCHEMA}{{}}")),
        ..CatalogueQueries::default()
    };
    // Our own server's tell what Flight SQL has no command for: defaults, checks, statistics.
    if let Ok(Some(told)) = session.numbered_info(CATALOGUE) {
        let told = told.texts();
        let entries = told.chunks_exact(2).map(|entry| (entry[0].clone(), entry[1].clone()));
        // Those with parameters have the places of the source behind it.
        let CatalogueQueries { schemas, tables, columns, constraints, statistics, table_types, .. } =
            CatalogueQueries::of(entries.collect());
        return CatalogueQueries { schemas, tables, columns, constraints, statistics, table_types, ..own };
    }
    let types = session.table_types().unwrap_or_else(|_| vec!["TABLE".into(), "VIEW".into()]);
    CatalogueQueries {
        schemas: Cow::Borrowed("TABLE longshore_schemas"),
        tables: Cow::Borrowed("TABLE longshore_tables"),
        columns: Cow::Borrowed("TABLE longshore_columns"),
        constraints: Cow::Borrowed("TABLE longshore_constraints"),
        table_types: types.join(", ").into(),
        ..own
    }
}

impl FlightSession {
    /// The schema that a statement chooses, where it does.
    pub(crate) fn chosen_schema(query: &Query) -> Option<String> {
        let name = query.text.strip_prefix(USE_SCHEMA)?;
        Some(name.strip_prefix('"')?.strip_suffix('"')?.replace("\"\"", "\""))
    }

    /// The rows of a query of the catalogue; `None` for another.
    pub(crate) fn catalogue(&self, query: &Query) -> Result<Option<RecordBatch>> {
        let Some(name) = query.text.strip_prefix(OURS) else { return Ok(None) };
        let of = |names: &[&'static str]| [&PLACE[..], names].concat();
        let (names, rows) = match name {
            "current" => {
                (vec![PLACE[0], PLACE[1], "vendor_name", "vendor_version"], vec![self.current_row()?])
            }
            "schemas" => {
                let command = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: None };
                (PLACE[..2].to_vec(), self.texts(&command, &PLACE[..2])?)
            }
            "tables" => (of(&["table_type"]), self.tables()?),
            "columns" => (of(&COLUMN), self.columns()?),
            "constraints" => (of(&CONSTRAINT), self.constraints()?),
            _ => return Ok(None),
        };
        catalogue_batch(&names, &rows).map(Some)
    }

    fn current_row(&self) -> Result<Row> {
        let mut row = crate::options::current(&self.servers.home, &self.deadline)?.to_vec();
        for info in [SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerVersion] {
            row.push(Some(self.sql_info(info)?.and_then(Info::text).unwrap_or_default()));
        }
        Ok(row)
    }

    /// The information that the server says of itself; `None` where it says nothing of that.
    pub(crate) fn sql_info(&self, info: SqlInfo) -> Result<Option<Info>> {
        self.numbered_info(u32::try_from(i32::from(info)).unwrap_or_default())
    }

    /// The same by its number: those from 10,000 are servers' own.
    pub(crate) fn numbered_info(&self, number: u32) -> Result<Option<Info>> {
        let command = CommandGetSqlInfo { info: vec![number] };
        let batches = match self.batches(&command) {
            Ok(batches) => batches,
            Err(error) if matches!(error.kind(), Kind::NotSupported | Kind::Programming) => return Ok(None),
            Err(error) => return Err(error),
        };
        for batch in batches {
            let [names, values] = batch.columns() else { continue };
            let (Some(names), Some(values)) =
                (names.as_primitive_opt::<UInt32Type>(), values.as_any().downcast_ref::<UnionArray>())
            else {
                return Err(protocol_error("what the server says of itself is not as Flight SQL has it"));
            };
            let found = names.iter().position(|name| name == Some(number));
            if let Some(row) = found {
                return Ok(Some(Info(values.value(row))));
            }
        }
        Ok(None)
    }

    fn table_types(&self) -> Result<Vec<String>> {
        let rows = self.texts(&CommandGetTableTypes {}, &["table_type"])?;
        Ok(rows.into_iter().flatten().flatten().filter(|name| name != SYSTEM).collect())
    }

    fn tables(&self) -> Result<Vec<Row>> {
        let mut rows = self.texts(&all_tables(false), &[PLACE[0], PLACE[1], PLACE[2], "table_type"])?;
        rows.retain(|row| row[3].as_deref() != Some(SYSTEM));
        Ok(rows)
    }

    fn columns(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for batch in self.batches(&all_tables(true))? {
            let names = [PLACE[0], PLACE[1], PLACE[2], "table_type"];
            let places = text_rows(&batch, &names)?;
            let schemas =
                batch.column_by_name("table_schema").and_then(|column| column.as_binary_opt::<i32>());
            let schemas = schemas.ok_or_else(|| protocol_error("tables come without their schemas"))?;
            for (row, place) in places.iter().enumerate() {
                if place[3].as_deref() == Some(SYSTEM) || schemas.is_null(row) {
                    continue;
                }
                let schema = declared_schema(schemas.value(row))?;
                for (at, field) in schema.iter().flat_map(|schema| schema.fields()).enumerate() {
                    rows.push([&place[..3], &column(at, field)].concat());
                }
            }
        }
        Ok(rows)
    }

    /// The primary and the foreign keys, as far as the server tells them.
    fn constraints(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let tables = self.tables()?;
        // Some servers list keys without the catalogue and the schema that they list tables with.
        let is_one = tables.iter().all(|table| table[..2] == tables[0][..2]);
        for table in tables {
            let [catalog, db_schema, Some(name), _] = &table[..] else { continue };
            let place = &table[..3];
            let known = |name: &Option<String>| name.clone().filter(|_| !is_one);
            let (catalog, db_schema, name) = (known(catalog), known(db_schema), name.clone());
            let primary = CommandGetPrimaryKeys {
                catalog: catalog.clone(),
                db_schema: db_schema.clone(),
                table: name.clone(),
            };
            for key in self.known_texts(&primary, &["key_name", "column_name"])? {
                let more = [
                    Some("p".to_owned()),
                    key[0].clone(),
                    Some("PRIMARY KEY".to_owned()),
                    key[1].clone(),
                    None,
                    None,
                    None,
                    None,
                ];
                rows.push([place, &more].concat());
            }
            let imported = CommandGetImportedKeys { catalog, db_schema, table: name };
            let names = [
                "fk_key_name",
                "fk_column_name",
                "pk_catalog_name",
                "pk_db_schema_name",
                "pk_table_name",
                "pk_column_name",
            ];
            for key in self.known_texts(&imported, &names)? {
                let key_of = format!(
                    "f {} {}",
                    key[0].as_deref().unwrap_or_default(),
                    key[4].as_deref().unwrap_or_default()
                );
                let more = [
                    Some(key_of),
                    key[0].clone(),
                    Some("FOREIGN KEY".to_owned()),
                    key[1].clone(),
                    key[2].clone(),
                    key[3].clone(),
                    key[4].clone(),
                    key[5].clone(),
                ];
                rows.push([place, &more].concat());
            }
        }
        Ok(rows)
    }

    fn batches(&self, command: &impl ProstMessageExt) -> Result<Vec<RecordBatch>> {
        let info = self.servers.home.flight_info(command, &[], &self.deadline)?;
        let mut rows = Rows::open(&self.servers, &info, &self.deadline)?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next(&self.deadline)? {
            batches.push(batch);
        }
        Ok(batches)
    }

    fn texts(&self, command: &impl ProstMessageExt, names: &[&str]) -> Result<Vec<Row>> {
        let batches = self.batches(command)?;
        batches.iter().try_fold(Vec::new(), |mut rows, batch| {
            rows.extend(text_rows(batch, names)?);
            Ok(rows)
        })
    }

    /// The same; none where the server does not know the command.
    fn known_texts(&self, command: &impl ProstMessageExt, names: &[&str]) -> Result<Vec<Row>> {
        match self.texts(command, names) {
            Err(error) if error.kind() == Kind::NotSupported => Ok(Vec::new()),
            rows => rows,
        }
    }
}

/// One thing that a server says of itself.
pub(crate) struct Info(ArrayRef);

impl Info {
    pub(crate) fn text(self) -> Option<String> {
        let texts = self.0.as_string_opt::<i32>()?;
        texts.is_valid(0).then(|| texts.value(0).to_owned())
    }

    fn texts(&self) -> Vec<String> {
        let lists = self.0.as_list_opt::<i32>().filter(|lists| lists.is_valid(0)).map(|lists| lists.value(0));
        let texts = lists.as_ref().and_then(|list| list.as_string_opt::<i32>());
        texts.iter().flat_map(|texts| texts.iter().flatten()).map(str::to_owned).collect()
    }

    pub(crate) fn flag(&self) -> bool {
        self.0.as_boolean_opt().is_some_and(|flags| flags.is_valid(0) && flags.value(0))
    }
}

fn all_tables(include_schema: bool) -> CommandGetTables {
    CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: None,
        table_types: Vec::new(),
        include_schema,
    }
}

fn column(at: usize, field: &Field) -> [Option<String>; 8] {
    let yes_or_no = |is: bool| Some(if is { "YES" } else { "NO" }.to_owned());
    let native = choices(&Schema::new(vec![field.clone()]), &longshore_core::ReadOptions::default())
        .ok()
        .and_then(|(exact, _)| exact.schema().field(0).metadata().get(NATIVE_TYPE).cloned());
    [
        Some(field.name().clone()),
        Some((at + 1).to_string()),
        Some(native.unwrap_or_else(|| type_name(field.data_type()))),
        yes_or_no(field.is_nullable()),
        None,
        field.metadata().get(REMARKS).filter(|remarks| !remarks.is_empty()).cloned(),
        yes_or_no(field.metadata().get(AUTO_INCREMENT).is_some_and(|is| is == "1")),
        Some("NO".to_owned()),
    ]
}

fn text_rows(batch: &RecordBatch, names: &[&str]) -> Result<Vec<Row>> {
    let columns = names.iter().map(|name| {
        let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
        column.ok_or_else(|| protocol_error(format_args!("a catalogue without the texts {name}")))
    });
    let columns = columns.collect::<Result<Vec<&StringArray>>>()?;
    let row = |row: usize| {
        columns.iter().map(move |texts| texts.is_valid(row).then(|| texts.value(row).to_owned()))
    };
    Ok((0..batch.num_rows()).map(|at| row(at).collect()).collect())
}
