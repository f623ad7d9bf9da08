//! Rows that several sessions copy into a table beside the target, and how they get home: in one transaction, which owns
//! that table all the while.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{Error, Failed, IfExists, Kind, Load, Result, Session, Stage, TableName};

use super::beside::{self, Beside};
use super::replace::{self, Replacement};
use super::rows::refuse_fewer;
use super::target::{self, Target};
use super::upsert::{self, Upsert};
use super::{create, names_fit, quoted, undo, undone};
use crate::connection::pipeline::Step;
use crate::dialect::quoted_name;
use crate::session::PostgresSession;

/// The transaction sees what the others have committed, and may be idle while they copy.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0";

/// What a name stands for: its schema, its kind, and whether rules follow an INSERT.
const PLACE: &str = "\
SELECT n.nspname, c.relkind, \
EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type = '3') \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";

/// A write of several sessions on its way.
struct CopyStage {
    session: PostgresSession,
    plan: Plan,
}

/// What the others do, and what comes then.
struct Plan {
    /// What each of the others writes.
    load: Load,
    beside: Beside,
    way: Way,
}

/// How the rows get home.
enum Way {
    /// The table beside becomes the target.
    Rename(Replacement),
    /// They are inserted, into an emptied table where there is a statement that empties it.
    Insert {
        before: Option<String>,
        insert: String,
    },
    Upsert(Upsert),
}

/// What stands under the target's name.
struct Place {
    schema: String,
    /// The name for a statement, with the schema.
    name: String,
    has_rules: bool,
}

/// Makes the table beside the target.
pub(crate) fn open(
    mut session: PostgresSession,
    load: &Load,
    helper: &mut dyn Session,
) -> Result<Box<dyn Stage>, Failed> {
    session.used = true;
    match begin(&mut session, load, helper) {
        Ok(plan) => Ok(Box::new(CopyStage { session, plan })),
        Err(error) => Err(Failed { error, session: undone(session, true) }),
    }
}

fn begin(session: &mut PostgresSession, load: &Load, helper: &mut dyn Session) -> Result<Plan> {
    names_fit(load)?;
    session.connection.simple(BEGIN)?;
    target::must_be_postgresql(session)?;
    let place = place(session, &quoted(&load.table))?;
    match (place, load.if_exists) {
        (_, IfExists::Fail) => new_table(session, load, None, helper),
        (place, IfExists::Replace) => new_table(session, load, place, helper),
        (None, _) => Err(target::missing(load)),
        (Some(place), IfExists::Upsert) => upserted(session, load, &place, helper),
        (Some(place), IfExists::Append | IfExists::Truncate) => inserted(session, load, &place, helper),
    }
}

/// What `name`, a quoted one, stands for; `None` for nothing.
fn place(session: &mut PostgresSession, name: &str) -> Result<Option<Place>> {
    let answers = session.connection.flight(&[Step::run(PLACE).bind(name)])?;
    let Some(answer) = answers.first().filter(|answer| !answer.rows.is_empty()) else { return Ok(None) };
    let (schema, kind) = (answer.cell(0, 0).to_owned(), answer.cell(0, 1));
    if !["r", "p"].contains(&kind) {
        return Err(Error::new(Kind::NotSupported, format!("{name} is not an ordinary table"))
            .with_hint("leave parallel out, or name a table"));
    }
    Ok(Some(Place { name: name.to_owned(), has_rules: answer.cell(0, 2) == "t", schema }))
}

/// A new table, in the place of `old` where there is one.
fn new_table(
    session: &mut PostgresSession,
    load: &Load,
    old: Option<Place>,
    helper: &mut dyn Session,
) -> Result<Plan> {
    if let Some(old) = &old {
        replace::refuse_dependents(session, load, &old.name)?;
    }
    let takes_place = old.is_some();
    let schema = match old {
        Some(old) => old.schema,
        None => free_place(session, load)?,
    };
    let beside = Beside::claim(session, &schema, &load.table.table)?;
    beside.clear(&load.table.table, helper)?;
    beside.make_new(load, helper)?;
    let replacement = Replacement::new(load, &quoted_name(&schema), &beside.quoted, takes_place);
    Ok(Plan { load: others(load, load.schema.clone(), &beside), beside, way: Way::Rename(replacement) })
}

/// The schema that a new table goes into; an error where it has one of that name.
fn free_place(session: &mut PostgresSession, load: &Load) -> Result<String> {
    let schema = if let Some(schema) = &load.table.schema {
        schema.clone()
    } else {
        let answers = session.connection.flight(&[Step::run("SELECT current_schema()")])?;
        answers.first().map(|answer| answer.cell(0, 0).to_owned()).unwrap_or_default()
    };
    if schema.is_empty() {
        return Err(Error::programming(format!("there is no schema for the table {}", load.table))
            .with_sqlstate("3F000")
            .with_hint("name it: \"schema.table\""));
    }
    let name = quoted(&TableName { schema: Some(schema.clone()), ..load.table.clone() });
    if target::exists(session, &name)? {
        let error = Error::programming(format!("relation {:?} already exists", load.table.table));
        return Err(create::taken(error.with_sqlstate("42P07")));
    }
    Ok(schema)
}

/// Rows that are added, to others or to none.
fn inserted(
    session: &mut PostgresSession,
    load: &Load,
    place: &Place,
    helper: &mut dyn Session,
) -> Result<Plan> {
    if place.has_rules {
        return Err(Error::new(
            Kind::NotSupported,
            format!("{} has rules, which a COPY does not follow, and an INSERT does", load.table),
        )
        .with_hint("leave parallel out"));
    }
    let name = &place.name;
    let before = (load.if_exists == IfExists::Truncate).then(|| format!("TRUNCATE {name}"));
    // Its columns are to stay as they are until the rows are there. Who empties it lets nobody else begin to.
    let mode = if before.is_some() { "SHARE UPDATE EXCLUSIVE" } else { "ROW EXCLUSIVE" };
    session.connection.simple(&format!("LOCK TABLE {name} IN {mode} MODE"))?;
    let target = Target::describe(session, load, name)?;
    // A trigger may yet give a row what a check wants.
    let is_plain = !upsert::is_guarded(session, name)?;
    let mut lines = beside::columns(session, load, name, is_plain)?;
    if is_plain {
        lines.extend(beside::checks(session, load, name)?);
    }
    let beside = Beside::claim(session, &place.schema, &load.table.table)?;
    beside.clear(&load.table.table, helper)?;
    beside.make_waiting(&lines, helper)?;
    let names = target.names();
    let overriding = if target.has_identity { "OVERRIDING SYSTEM VALUE " } else { "" };
    let insert = format!("INSERT INTO {name} ({names}) {overriding}SELECT {names} FROM {}", beside.quoted);
    Ok(Plan { load: others(load, load.schema.clone(), &beside), beside, way: Way::Insert { before, insert } })
}

/// Rows that take the place of those with the same key. Their numbers tell which of equal keys is the last.
fn upserted(
    session: &mut PostgresSession,
    load: &Load,
    place: &Place,
    helper: &mut dyn Session,
) -> Result<Plan> {
    let name = &place.name;
    session.connection.simple(&format!("LOCK TABLE {name} IN ROW EXCLUSIVE MODE"))?;
    let target = Target::describe(session, load, name)?;
    upsert::must_be_unique(session, load, name)?;
    let row = Field::new(beside::row_column(load), DataType::Int64, false);
    let order = quoted_name(row.name());
    let mut lines = beside::columns(session, load, name, false)?;
    lines.push(format!("{order} bigint NOT NULL"));
    let beside = Beside::claim(session, &place.schema, &load.table.table)?;
    let stage = upsert::Stage { name: &beside.quoted, order: &order };
    let upsert = Upsert::new(session, load, &target, name, stage)?;
    beside.clear(&load.table.table, helper)?;
    beside.make_waiting(&lines, helper)?;
    let fields: Vec<_> = load.schema.fields().iter().cloned().chain([Arc::new(row)]).collect();
    let load = others(load, Arc::new(Schema::new(fields)), &beside);
    Ok(Plan { load, beside, way: Way::Upsert(upsert) })
}

/// What each of the other sessions writes.
fn others(load: &Load, schema: Arc<Schema>, beside: &Beside) -> Load {
    let table = TableName { schema: Some(beside.schema.clone()), table: beside.table.clone() };
    Load { table, schema, if_exists: IfExists::Append, ..load.clone() }
}

impl CopyStage {
    fn end(&mut self, rows: u64) -> Result<()> {
        let (session, beside) = (&mut self.session, &self.plan.beside);
        match &self.plan.way {
            Way::Rename(replacement) => {
                session.connection.simple(&beside.unmark())?;
                replacement.end(session).map_err(create::taken)?;
            }
            Way::Insert { before, insert } => {
                if let Some(before) = before {
                    session.connection.simple(before)?;
                }
                let taken = session.connection.count(insert)?;
                refuse_fewer(&rows.to_string(), taken)?;
                session.connection.simple(&format!("DROP TABLE {}", beside.quoted))?;
            }
            Way::Upsert(upsert) => upsert.end(session)?,
        }
        session.connection.simple("COMMIT")
    }
}

impl Stage for CopyStage {
    fn load(&self) -> &Load {
        &self.plan.load
    }

    fn keep(&mut self) -> Result<()> {
        self.session.connection.simple("SELECT")
    }

    fn commit(mut self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        match self.end(rows) {
            Ok(()) => {
                self.session.catalogue.forget_all();
                Ok(Box::new(self.session))
            }
            Err(error) => Err(Failed { error, session: self.abort() }),
        }
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        if !undo(&mut self.session, true) {
            return None;
        }
        let cleared = self.session.connection.undo(&self.plan.beside.undo());
        cleared.is_ok().then(|| Box::new(self.session) as Box<dyn Session>)
    }

    fn undo(&self) -> String {
        self.plan.beside.undo()
    }
}
