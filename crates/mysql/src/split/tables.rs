//! The tables and functions that a query names, and what the server's catalogue says of them.

use longshore_source::NotSplit;

use super::statement::{Reading, Statement};
use crate::dialect::{literal, quoted_name};
use crate::session::MySqlSession;

/// A table's name: its database, if it is named, and its own.
pub(super) type Name = (Option<String>, String);

/// A table of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: String,
    name: String,
    /// About so many bytes.
    bytes: u64,
}

impl Table {
    /// The name that means this table whatever the session's database.
    pub(super) fn qualified_name(&self) -> String {
        format!("{}.{}", quoted_name(&self.schema), quoted_name(&self.name))
    }

    /// A condition on the catalogue's columns that names this table.
    pub(super) fn condition(&self) -> String {
        format!("table_schema = {} AND table_name = {}", literal(&self.schema), literal(&self.name))
    }
}

/// All that the query's names mean.
#[derive(Debug)]
pub(super) struct Catalogue {
    database: Option<String>,
    pub(super) tables: Vec<Table>,
}

impl Catalogue {
    /// The table that `name` means.
    pub(super) fn find(&self, name: &Name) -> Option<&Table> {
        let schema = name.0.as_ref().or(self.database.as_ref())?;
        self.tables.iter().find(|table| table.schema == *schema && table.name == name.1)
    }

    /// About so many bytes that its tables have.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// The settings of the session that decide what a statement means.
pub(super) struct SessionModes {
    pub(super) database: Option<String>,
    pub(super) reading: Reading,
    /// Whether `group_concat_max_len` is that of further sessions.
    has_common_length: bool,
}

impl SessionModes {
    /// Asks the session; refuses what further sessions would do otherwise.
    pub(super) fn of(session: &mut MySqlSession) -> Result<Self, NotSplit> {
        let rows = session.connection.rows(
            "SELECT DATABASE(), @@session.sql_mode = @@global.sql_mode, @@session.autocommit, @@session.sql_mode, \
             @@session.sql_select_limit = 18446744073709551615, \
             @@session.group_concat_max_len = @@global.group_concat_max_len",
        )?;
        let Some([database, is_common, autocommit, modes, is_unlimited, has_common_length]) =
            rows.first().map(Vec::as_slice)
        else {
            return Err(NotSplit::because("the session says nothing of itself"));
        };
        let is_on = |flag: &Option<String>| flag.as_deref() == Some("1");
        let modes = modes.as_deref().unwrap_or_default();
        let reasons = [
            (
                database.as_deref() == session.connection.database(),
                "the session uses another database than its URL names",
            ),
            (is_on(is_common), "the session has a sql_mode of its own"),
            (is_on(autocommit), "the session has autocommit off"),
            (is_on(is_unlimited), "sql_select_limit would hold for each part"),
            (!modes.contains("ORACLE"), "sql_mode=ORACLE"),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(is_fine, _)| !is_fine) {
            return Err(NotSplit::because(reason));
        }
        let has_mode = |name: &str| modes.split(',').any(|mode| mode == name);
        Ok(Self {
            database: database.clone(),
            reading: Reading { escapes: session.connection.escapes(), ansi: has_mode("ANSI_QUOTES") },
            has_common_length: is_on(has_common_length),
        })
    }
}

/// Looks up what `statements` read, which has to be in the reach of a shared snapshot.
pub(super) fn look_up(
    session: &mut MySqlSession,
    modes: &SessionModes,
    statements: &[Statement],
) -> Result<Catalogue, NotSplit> {
    let mut found = Catalogue { database: modes.database.clone(), tables: Vec::new() };
    for name in statements.iter().flat_map(|statement| &statement.tables) {
        if found.find(name).is_none() {
            let schema = name.0.as_ref().or(modes.database.as_ref());
            let schema = schema.ok_or_else(|| NotSplit::because("a table without a database"))?.clone();
            found.tables.push(table(session, schema, name.1.clone())?);
        }
    }
    let calls: Vec<String> = statements.iter().flat_map(|statement| &statement.calls).cloned().collect();
    if calls.iter().any(|call| call == "group_concat") && !modes.has_common_length {
        return Err(NotSplit::because("the session has a group_concat_max_len of its own"));
    }
    check_calls(session, calls)?;
    Ok(found)
}

fn table(session: &mut MySqlSession, schema: String, name: String) -> Result<Table, NotSplit> {
    let mut table = Table { schema, name, bytes: 0 };
    let name = table.qualified_name();
    // A temporary table, which only this session has, hides another of its name.
    let definition = session.connection.rows(&format!("SHOW CREATE TABLE {name}"))?;
    let text = definition.first().and_then(|row| row.get(1)?.as_deref());
    if text.is_some_and(|text| text.starts_with("CREATE TEMPORARY")) {
        return Err(NotSplit::because("a temporary table"));
    }
    let rows = session.connection.rows(&format!(
        "SELECT table_type, engine, data_length FROM information_schema.tables WHERE {}",
        table.condition()
    ))?;
    let Some([kind, engine, bytes]) = rows.first().map(Vec::as_slice) else {
        return Err(NotSplit::because(format!("the catalogue has no table {name}")));
    };
    match (kind.as_deref(), engine.as_deref()) {
        (Some("BASE TABLE"), Some("InnoDB")) => {}
        (Some("BASE TABLE"), engine) => {
            let engine = engine.unwrap_or("unknown");
            return Err(NotSplit::because(format!("{name} has the engine {engine}, which has no snapshots")));
        }
        (Some("VIEW"), _) => return Err(NotSplit::because(format!("{name} is a view"))),
        _ => return Err(NotSplit::because(format!("{name} is not a table"))),
    }
    table.bytes = bytes.as_deref().and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    Ok(table)
}

/// Refuses a user's functions, which may differ from part to part.
fn check_calls(session: &mut MySqlSession, mut names: Vec<String>) -> Result<(), NotSplit> {
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
    let found = session.connection.value(&format!(
        "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' \
         AND LOWER(routine_name) IN ({}) LIMIT 1",
        names.join(", ")
    ))?;
    match found {
        Some(name) => Err(NotSplit::because(format!("{name}() may differ from part to part"))),
        None => Ok(()),
    }
}
