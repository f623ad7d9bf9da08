//! The tables and views that a query reads, as the server's catalogue has them.

use longshore_source::sql::Kind;
use sqlparser::ast::Query as Parsed;

use super::halt::Halt;
use super::statement::{Reading, Statement, Tree};
use super::walk::Name;
use crate::dialect::{literal, quoted_name, tokens};
use crate::session::MySqlSession;

/// A table of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: String,
    name: String,
    /// About so many bytes.
    pub(super) bytes: u64,
    /// The names of its columns, where somebody asks for them.
    pub(super) columns: Vec<String>,
}

impl Table {
    /// The name that means this table whatever the session's database.
    pub(super) fn qualified(&self) -> String {
        qualified(&self.schema, &self.name)
    }

    /// A condition on the catalogue's columns that names this table.
    pub(super) fn condition(&self) -> String {
        format!("table_schema = {} AND table_name = {}", literal(&self.schema), literal(&self.name))
    }
}

/// A view of the query.
#[derive(Debug)]
pub(super) struct View {
    pub(super) schema: String,
    name: String,
    /// What has made it.
    pub(super) definition: String,
    /// The names of its columns, where they are not those of its query.
    pub(super) columns: Vec<String>,
    pub(super) tree: Box<Parsed>,
}

impl View {
    /// The name that means this view whatever the session's database.
    pub(super) fn qualified(&self) -> String {
        qualified(&self.schema, &self.name)
    }
}

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted_name(schema), quoted_name(name))
}

/// What a name in a FROM means.
pub(super) enum Relation<'a> {
    Table(&'a Table),
    View(&'a View),
}

/// All that the query's names mean.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) database: Option<String>,
    pub(super) tables: Vec<Table>,
    pub(super) views: Vec<View>,
    /// Whether the server refuses groups whose values are not settled (`ONLY_FULL_GROUP_BY`).
    pub(super) has_full_groups: bool,
}

impl Catalogue {
    /// What `name` means where `schema` is the database of names that have none.
    pub(super) fn find(&self, name: &Name, schema: Option<&str>) -> Option<Relation<'_>> {
        let schema = name.0.as_deref().or(schema)?;
        let is_it = |its_schema: &str, its_name: &str| its_schema == schema && its_name == name.1;
        let table = self.tables.iter().find(|table| is_it(&table.schema, &table.name));
        let view = || self.views.iter().find(|view| is_it(&view.schema, &view.name));
        table.map(Relation::Table).or_else(|| view().map(Relation::View))
    }

    /// About so many bytes that its tables have.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// What the session has of its own, and a further one has not.
pub(super) struct Own {
    pub(super) database: Option<String>,
    pub(super) reading: Reading,
    has_full_groups: bool,
    /// Whether the session cuts `GROUP_CONCAT()` as others do.
    has_common_length: bool,
}

impl Own {
    /// Asks the session; refuses what further sessions would do otherwise.
    pub(super) fn of(session: &mut MySqlSession) -> Result<Self, Halt> {
        let rows = session.connection.rows(
            "SELECT DATABASE(), @@session.sql_mode = @@global.sql_mode, @@session.autocommit, @@session.sql_mode, \
             @@session.sql_select_limit = 18446744073709551615, \
             @@session.group_concat_max_len = @@global.group_concat_max_len",
        )?;
        let Some([database, is_common, autocommit, modes, is_unlimited, has_common_length]) =
            rows.first().map(Vec::as_slice)
        else {
            return Err(Halt::serial("the session says nothing of itself"));
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
            return Err(Halt::serial(reason));
        }
        let has_mode = |name: &str| modes.split(',').any(|mode| mode == name);
        Ok(Self {
            database: database.clone(),
            reading: Reading { escapes: session.connection.escapes(), ansi: has_mode("ANSI_QUOTES") },
            has_full_groups: has_mode("ONLY_FULL_GROUP_BY"),
            has_common_length: is_on(has_common_length),
        })
    }
}

/// Looks up what `statements` read, which must be what several sessions can read at one moment; `is_divided` where one
/// query becomes several.
pub(super) fn look_up(
    session: &mut MySqlSession,
    own: &Own,
    statements: &[Statement],
    is_divided: bool,
) -> Result<Catalogue, Halt> {
    let mut found = Catalogue {
        database: own.database.clone(),
        has_full_groups: own.has_full_groups,
        ..Catalogue::default()
    };
    let mut calls: Vec<String> = Vec::new();
    let mut names: Vec<(Option<String>, Name)> = Vec::new();
    for tree in statements.iter().map(|statement| &statement.tree) {
        calls.extend(tree.calls.iter().cloned());
        names.extend(tree.tables.iter().map(|name| (own.database.clone(), name.clone())));
    }
    while let Some((schema, name)) = names.pop() {
        if found.find(&name, schema.as_deref()).is_some() {
            continue;
        }
        let Some(schema) = name.0.or(schema) else { return Err(Halt::serial("a table without a database")) };
        let definition = definition(session, &qualified(&schema, &name.1))?;
        if is_view(&definition) {
            let (view, tree) = view(&definition, schema, name.1, own.reading, is_divided)?;
            calls.extend(tree.0);
            names.extend(tree.1.into_iter().map(|name| (Some(view.schema.clone()), name)));
            found.views.push(view);
        } else {
            found.tables.push(table(session, schema, name.1)?);
        }
    }
    if calls.iter().any(|call| call == "group_concat") && !own.has_common_length {
        return Err(Halt::serial("the session has a group_concat_max_len of its own"));
    }
    check_calls(session, calls)?;
    Ok(found)
}

/// What makes a table or a view; a temporary table, which only this session has, hides another of its name.
fn definition(session: &mut MySqlSession, name: &str) -> Result<String, Halt> {
    let rows = session.connection.rows(&format!("SHOW CREATE TABLE {name}"))?;
    let text = rows.first().and_then(|row| row.get(1)?.clone()).unwrap_or_default();
    if text.starts_with("CREATE TEMPORARY") {
        return Err(Halt::serial("a temporary table"));
    }
    Ok(text)
}

fn is_view(definition: &str) -> bool {
    !definition.starts_with("CREATE TABLE")
}

/// The calls and the tables of a view's query.
type Uses = (Vec<String>, Vec<Name>);

/// A view, and what it uses.
fn view(
    definition: &str,
    schema: String,
    name: String,
    reading: Reading,
    is_divided: bool,
) -> Result<(View, Uses), Halt> {
    let unknown = || Halt::Serial(format!("the view {name} cannot be taken apart"));
    // It is written in one way and read in another where nothing escapes.
    if definition.contains('\\') {
        return Err(unknown());
    }
    let found = tokens(definition, true);
    let head = found.iter().position(|token| token.is_word("as")).ok_or_else(unknown)?;
    let columns =
        found[..head].iter().rposition(|token| token.is_mark("(")).map_or(&[][..], |open| &found[open..head]);
    let columns = columns
        .iter()
        .filter(|token| token.kind == Kind::Quoted || token.text.starts_with('"'))
        .map(|token| super::refusal::unquoted(token.text))
        .collect();
    let text = without_check(definition.get(found[head].end()..).unwrap_or_default());
    let tree = Tree::of(text.trim(), reading, is_divided).map_err(|halt| match halt {
        Halt::Serial(reason) => Halt::Serial(format!("{reason}, in the view {name}")),
        other => other,
    })?;
    let Tree { root, tables, calls } = tree;
    Ok((View { schema, name, definition: definition.to_owned(), columns, tree: root }, (calls, tables)))
}

/// A view's query without WITH CHECK OPTION.
fn without_check(text: &str) -> &str {
    let found = tokens(text, true);
    let is_tail =
        matches!(found.as_slice(), [.., check, option] if check.is_word("check") && option.is_word("option"));
    let with = found.iter().rposition(|token| token.is_word("with")).filter(|_| is_tail);
    with.map_or(text, |at| &text[..found[at].start])
}

fn table(session: &mut MySqlSession, schema: String, name: String) -> Result<Table, Halt> {
    let mut table = Table { schema, name, bytes: 0, columns: Vec::new() };
    let name = table.qualified();
    let rows = session.connection.rows(&format!(
        "SELECT table_type, engine, data_length FROM information_schema.tables WHERE {}",
        table.condition()
    ))?;
    let Some([kind, engine, bytes]) = rows.first().map(Vec::as_slice) else {
        return Err(Halt::serial(format!("the catalogue has no table {name}")));
    };
    if kind.as_deref() != Some("BASE TABLE") {
        return Err(Halt::serial(format!("{name} is not a table")));
    }
    match engine.as_deref() {
        Some("InnoDB") => {}
        other => {
            let engine = other.unwrap_or("unknown");
            return Err(Halt::serial(format!("{name} has the engine {engine}, which has no snapshots")));
        }
    }
    table.bytes = bytes.as_deref().and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    Ok(table)
}

/// Learns the names of the tables' columns.
pub(super) fn learn_columns(session: &mut MySqlSession, catalogue: &mut Catalogue) -> Result<(), Halt> {
    for table in &mut catalogue.tables {
        let rows = session.connection.rows(&format!(
            "SELECT column_name FROM information_schema.columns WHERE {}",
            table.condition()
        ))?;
        table.columns = rows.into_iter().filter_map(|mut row| row.pop().flatten()).collect();
    }
    Ok(())
}

/// A function that somebody has made may be another in each part.
fn check_calls(session: &mut MySqlSession, mut names: Vec<String>) -> Result<(), Halt> {
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
    let found = session.connection.rows(&format!(
        "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' \
         AND LOWER(routine_name) IN ({}) LIMIT 1",
        names.join(", ")
    ))?;
    match found.first().and_then(|row| row.first()?.as_deref()) {
        Some(name) => Err(Halt::serial(format!("{name}() may differ from part to part"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Reading = Reading { escapes: true, ansi: false };

    fn read(definition: &str) -> Result<(View, Uses), Halt> {
        view(definition, "s".into(), "v".into(), PLAIN, true)
    }

    #[test]
    fn a_view_is_its_query() {
        let (view, (calls, tables)) = read(
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` (`x`,`y`) AS select \
             (`a`.`i` + 1) AS `i+1`,count(0) AS `c` from `a` where (`a`.`i` > 3) WITH CASCADED CHECK OPTION",
        )
        .unwrap();
        assert_eq!(view.columns, ["x", "y"]);
        assert!(calls.contains(&"count".to_owned()));
        assert_eq!(tables, [(None, "a".to_owned())]);
        assert!(!view.tree.to_string().contains("CHECK"));
    }

    #[test]
    fn a_view_is_refused_for_what_it_holds() {
        for query in
            ["select rand() AS `r`", "select `a`.`i` AS `i` from `a` limit 3", "select 'a\\\\' AS `x`"]
        {
            let definition = format!("CREATE VIEW `v` AS {query}");
            assert!(matches!(read(&definition), Err(Halt::Serial(_))), "{query}");
        }
    }
}
