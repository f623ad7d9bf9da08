//! One statement with many sets of parameters: one after the other, or INSERTs of some hundred rows where the outcome is the
//! same.

use std::collections::HashMap;

use longshore_core::{Error, Kind, ParameterSets, Result, Session, TableName, Transaction, Value};
use longshore_source::sql::{Kind as TokenKind, PlainInsert, Token, positional_sets, unlike};
use longshore_source::staging::is_interruption;

use crate::connection::{Connection, Prepared};
use crate::dialect::{dialect, literal};
use crate::encode;
use crate::session::MySqlSession;
use crate::write::{in_catalogue, resolve, takes_rows_at_once};

/// Fewer rows are not worth the questions whether they may go at once.
const FEW: usize = 64;

/// The rows of one INSERT, and the parameters that the server lets a statement have.
const ROWS: usize = 500;
const PARAMETERS: usize = 65_535;

/// The bytes of one INSERT's rows; longer ones are worth a message each.
const ENOUGH: usize = 1 << 20;

/// Whether the session is told of the triggers of a table, and it has none.
const NO_TRIGGERS: &str = "SELECT EXISTS(SELECT 1 FROM (\
     SELECT grantee FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' UNION ALL \
     SELECT grantee FROM information_schema.schema_privileges WHERE privilege_type = 'TRIGGER' AND {SCHEMA} UNION ALL \
     SELECT grantee FROM information_schema.table_privileges WHERE privilege_type = 'TRIGGER' AND {TABLE}) AS p \
     WHERE p.grantee = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', \
     QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))) \
     AND NOT EXISTS(SELECT 1 FROM information_schema.triggers WHERE {TRIGGER})";

/// The parameters of one row.
type Row<'a> = Vec<&'a Value>;

/// Runs `text` with each set of parameters; returns how many rows all of them changed.
pub(crate) fn execute_many(
    session: &mut MySqlSession,
    text: &str,
    sets: &mut ParameterSets<'_>,
) -> Result<u64> {
    let mut many = None;
    let ran = run(session, &mut many, text, sets);
    for prepared in many.into_iter().flat_map(Many::into_prepared) {
        session.connection.close(prepared.id);
    }
    ran
}

fn run(
    session: &mut MySqlSession,
    many: &mut Option<Many>,
    text: &str,
    sets: &mut ParameterSets<'_>,
) -> Result<u64> {
    let mut count = 0;
    for sets in sets {
        let sets = sets?;
        let (statement, rows) = positional_sets(&dialect(session.connection.escapes()), text, &sets)?;
        let many = match many {
            Some(many) if many.text != statement.text => return Err(unlike()),
            Some(many) => many,
            None => many.insert(Many::new(session, statement.text, text, rows.len())?),
        };
        count += many.run(session, &rows)?;
    }
    Ok(count)
}

/// A statement for many sets.
struct Many {
    text: String,
    prepared: Prepared,
    /// The sets that have run.
    sets: usize,
    at_once: Option<AtOnce>,
}

/// The same statement for many rows.
struct AtOnce {
    head: String,
    row: String,
    /// The most rows and bytes of one.
    rows: usize,
    bytes: usize,
    /// The statements for so many rows.
    prepared: HashMap<usize, Prepared>,
}

impl Many {
    /// Prepares the `text` of a statement; `original` is the caller's.
    fn new(session: &mut MySqlSession, text: String, original: &str, rows: usize) -> Result<Self> {
        session.check_parameters(&text)?;
        let prepared = session.connection.prepare(&text);
        let prepared = prepared.map_err(|error| session.several(error, original))?;
        let mut many = Self { text, prepared, sets: 0, at_once: None };
        if rows >= FEW {
            many.at_once = match AtOnce::new(&mut session.connection, &many.text, many.prepared.parameters) {
                // What the user may not ask is not known.
                Err(error) if is_interruption(&error) || !goes_on(session) => return Err(error),
                at_once => at_once.unwrap_or_default(),
            };
        }
        Ok(many)
    }

    fn into_prepared(self) -> impl Iterator<Item = Prepared> {
        let at_once = self.at_once.into_iter().flat_map(|at_once| at_once.prepared.into_values());
        at_once.chain([self.prepared])
    }

    fn run(&mut self, session: &mut MySqlSession, rows: &[Row<'_>]) -> Result<u64> {
        let Some(most) = self.at_once.as_ref().map(|at_once| at_once.rows) else {
            return self.one_by_one(session, rows);
        };
        // LAST_INSERT_ID and the warnings are those of the last row.
        let (rows, last) = rows.split_at(rows.len().saturating_sub(1));
        let mut count = 0;
        for rows in rows.chunks(most) {
            count += self.insert(session, rows)?;
        }
        Ok(count + self.one_by_one(session, last)?)
    }

    /// Inserts `rows` by one statement. Where it fails, its rows are taken back and go one by one, to the same failure.
    fn insert(&mut self, session: &mut MySqlSession, rows: &[Row<'_>]) -> Result<u64> {
        let parameters = self.prepared.parameters;
        let Some(at_once) = self.at_once.as_mut().filter(|_| rows.len() >= 2) else {
            return self.one_by_one(session, rows);
        };
        // A row that has other parameters than the statement is refused by itself.
        let is_whole = rows.iter().all(|row| row.len() == parameters);
        let bound = encode::parameters(&rows.concat(), session.connection.zone());
        let Some(bound) = bound.ok().filter(|_| is_whole) else { return self.one_by_one(session, rows) };
        if bound.len() > at_once.bytes {
            let (some, others) = rows.split_at(rows.len() / 2);
            return Ok(self.insert(session, some)? + self.insert(session, others)?);
        }
        match at_once.insert(&mut session.connection, rows.len(), &bound) {
            Ok(count) => {
                self.sets += rows.len();
                Ok(count)
            }
            Err(error) if is_of_a_row(&error) && goes_on(session) => self.one_by_one(session, rows),
            Err(error) => Err(error),
        }
    }

    fn one_by_one(&mut self, session: &mut MySqlSession, rows: &[Row<'_>]) -> Result<u64> {
        let mut count = 0;
        for row in rows {
            self.sets += 1;
            let ran = self.one(session, row);
            count += ran.map_err(|error| {
                let is_of_a_row = is_of_a_row(&error);
                if is_of_a_row { error.within(format!("set {} of the parameters", self.sets)) } else { error }
            })?;
        }
        Ok(count)
    }

    fn one(&self, session: &mut MySqlSession, row: &[&Value]) -> Result<u64> {
        let bound = session.bound(&self.prepared, row)?;
        session.connection.execute(self.prepared.id, &bound)?;
        session.connection.finish()
    }
}

impl AtOnce {
    /// The way to insert many rows by one statement, where this does what one statement for each would do: in strict mode,
    /// in which a value that does not fit is an error in every row, and without triggers, which see statements.
    fn new(connection: &mut Connection, text: &str, parameters: usize) -> Result<Option<Self>> {
        let dialect = dialect(connection.escapes());
        let Some(insert) = PlainInsert::parse(&dialect, text) else { return Ok(None) };
        let bound = insert.values.iter().filter(|value| value.kind == TokenKind::Parameter).count();
        let names = |tokens: &[Token<'_>]| tokens.iter().filter_map(|token| dialect.name(token)).collect();
        let (mut table, columns): (Vec<String>, Vec<String>) = (names(&insert.table), names(&insert.columns));
        let Some(name) = table.pop().filter(|_| bound == parameters && bound > 0) else { return Ok(None) };
        let name = resolve(connection, &TableName { schema: table.pop(), table: name })?;
        let settings = connection.rows("SELECT @@SESSION.sql_mode, @@SESSION.max_allowed_packet")?;
        let Some([Some(mode), Some(packet)]) = settings.first().map(Vec::as_slice) else { return Ok(None) };
        let is_alike = mode.contains("STRICT_")
            && takes_rows_at_once(connection, &name, &columns)?
            && has_no_triggers(connection, &name)?;
        Ok(is_alike.then(|| Self {
            head: insert.head.to_owned(),
            row: insert.row.to_owned(),
            rows: ROWS.min(PARAMETERS / parameters),
            bytes: packet.parse().map_or(0, |packet: usize| ENOUGH.min(packet / 2)),
            prepared: HashMap::new(),
        }))
    }

    fn insert(&mut self, connection: &mut Connection, rows: usize, bound: &[u8]) -> Result<u64> {
        let id = if let Some(prepared) = self.prepared.get(&rows) {
            prepared.id
        } else {
            let values = vec![self.row.as_str(); rows].join(", ");
            let prepared = connection.prepare(&format!("{}VALUES {values}", self.head))?;
            self.prepared.entry(rows).or_insert(prepared).id
        };
        connection.execute(id, bound)?;
        connection.finish()
    }
}

/// Whether the table has no triggers. To ask MySQL begins the snapshot of a transaction that has none yet: another session
/// asks.
fn has_no_triggers(connection: &mut Connection, name: &TableName) -> Result<bool> {
    let question = NO_TRIGGERS
        .replace(
            "{SCHEMA}",
            &format!("table_schema = {}", literal(name.schema.as_deref().unwrap_or_default())),
        )
        .replace("{TABLE}", &in_catalogue(name, "table_schema", "table_name"))
        .replace("{TRIGGER}", &in_catalogue(name, "event_object_schema", "event_object_table"));
    let answer = if connection.is_mariadb() {
        connection.value(&question)
    } else {
        connection.another()?.value(&question)
    };
    Ok(answer?.as_deref() == Some("1"))
}

/// Whether an error tells of a row, or of the statement itself, and not of the server or the caller.
fn is_of_a_row(error: &Error) -> bool {
    matches!(error.kind(), Kind::Data | Kind::Integrity | Kind::Programming | Kind::NotSupported)
}

/// Whether the transaction goes on after an error.
fn goes_on(session: &mut MySqlSession) -> bool {
    session.connection.stop() && session.transaction() == Transaction::Open
}
