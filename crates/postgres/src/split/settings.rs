//! The settings of the session that keeps the moment, for those that join it. What was altered since it was opened, for
//! the role, the database or the server, only sessions that are opened later have.

use std::collections::BTreeSet;

use longshore_source::NotSplit;
use longshore_source::sql::Kind;

use super::moment::Explained;
use super::volatile::text_array;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::tokens;
use crate::session::PostgresSession;

/// Settings that lead to another table or function, or that a value depends on. Those of extensions have a point in
/// their names.
const COPIED: &str = "{search_path,row_security,\
TimeZone,timezone_abbreviations,DateStyle,IntervalStyle,lc_monetary,lc_numeric,lc_time,\
bytea_output,extra_float_digits,xmlbinary,xmloption,quote_all_identifiers,\
array_nulls,transform_null_equals,standard_conforming_strings,backslash_quote,\
default_text_search_config,gin_fuzzy_search_limit}";

/// As rows of VALUES. The role is a setting, too, though the server lists it nowhere.
const LOOK: &str = "\
SELECT pg_catalog.string_agg(pg_catalog.format('(%L, %L)', s.name, s.setting), ', ') \
FROM (SELECT name, setting FROM pg_catalog.pg_settings \
      WHERE context = 'user' AND (name = ANY ($1::text[]) OR name LIKE '%.%') \
      UNION ALL SELECT 'role', pg_catalog.current_setting('role')) AS s";

/// Settings that are the users' own: no list has them. What is not set is empty, as the server has it once it was set.
const LOOK_AT: &str = "\
SELECT pg_catalog.string_agg(pg_catalog.format('(%L, %L)', name, coalesce(pg_catalog.current_setting(name, true), '')), ', ') \
FROM unnest($1::text[]) AS name WHERE name LIKE '%.%'";

/// Settings by name and value, as the server writes them into a statement.
#[derive(Debug)]
pub(super) struct Settings(String);

/// Asks what is set.
pub(super) fn look() -> Step {
    Step::run(LOOK).bind(COPIED)
}

impl Settings {
    /// Reads the answer to [`look`].
    pub(super) fn read(answer: &Answer) -> Self {
        Self(answer.cell(0, 0).to_owned())
    }

    /// Adds those that `queries` ask for by name.
    pub(super) fn add_named(
        &mut self,
        session: &mut PostgresSession,
        queries: &[Explained],
    ) -> Result<(), NotSplit> {
        let texts = queries.iter().flat_map(|query| query.bare.texts());
        let Some(asked) = texts.map(asked_for).collect::<Option<Vec<_>>>() else {
            return Err(NotSplit::because("current_setting() of a name that is computed"));
        };
        let names: BTreeSet<&str> = asked.iter().flatten().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = names.into_iter().collect();
        let answers = session.connection.flight(&[Step::run(LOOK_AT).bind(&text_array(&names))])?;
        let found = answers[0].cell(0, 0);
        if !found.is_empty() {
            self.0 = format!("{}, {found}", self.0);
        }
        Ok(())
    }

    /// What another session runs to have them until its transaction ends. What it has already is not set: the server
    /// is stricter with what is set than with what it was started with.
    pub(super) fn adopt(&self) -> String {
        format!(
            "SELECT pg_catalog.set_config(wanted.name, wanted.setting, true) \
             FROM (VALUES {}) AS wanted (name, setting) \
             WHERE coalesce(pg_catalog.current_setting(wanted.name, true), '') OPERATOR(pg_catalog.<>) wanted.setting",
            self.0
        )
    }
}

/// The settings that an expression asks for; `None` where a name is no plain text.
fn asked_for(text: &str) -> Option<Vec<String>> {
    let found = tokens(text);
    let calls = found.windows(3).filter(|call| call[0].is_word("current_setting") && call[1].is_mark("("));
    calls
        .map(|call| {
            let text = call[2].text.strip_prefix('\'')?.strip_suffix('\'')?;
            (call[2].kind == Kind::Literal && !text.contains('\'')).then(|| text.to_lowercase())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::asked_for;

    #[test]
    fn names_of_settings_are_found() {
        let text =
            "((t.k = 3) AND (current_setting('harbour.Berth'::text, true) <> current_setting('a.b'::text)))";
        assert_eq!(asked_for(text).unwrap(), ["harbour.berth", "a.b"]);
        assert_eq!(asked_for("(t.current_setting = 1)").unwrap(), [""; 0]);
        for computed in
            ["current_setting(t.name)", "current_setting(('a.'::text || t.b))", "current_setting(E'a\\b')"]
        {
            assert_eq!(asked_for(computed), None, "{computed}");
        }
    }
}
