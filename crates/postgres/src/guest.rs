//! Results over a connection of somebody else's, who sends what is asked for here and hands back what comes.
//!
//! A statement's description comes first, then the answers to an [`Inquiry`], and then the rows of an [`Arrival`]; the
//! table of types, the catalogue and the decoders are those of a session.

mod arrival;
mod description;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_schema::Schema;
use longshore_core::{Error, Kind, ReadOptions, Result};

pub use arrival::{Answers, Arrival};
pub use description::substitute;

use crate::catalogue::{Catalogue, Needs, Question};
use crate::columns::{Planned, plan};
use crate::connection::message::{HEADER, Reader};
use crate::connection::{Described, TextRow, row_description};
use crate::session::no_result;
use crate::types::Format;

/// Whether text has every digit of a float: since version 12 at 1, before it at 3.
const EXACT_FLOATS: &str = "\
SELECT pg_catalog.current_setting('extra_float_digits')::int4 >= \
CASE WHEN pg_catalog.current_setting('server_version_num')::int4 >= 120000 THEN 1 ELSE 3 END";

/// What a connection has been told of the catalogue, for all its statements.
#[derive(Clone, Debug, Default)]
pub struct Knowledge(Arc<Mutex<Catalogue>>);

impl Knowledge {
    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets it: it may be so no more.
    pub fn forget(&self) {
        self.catalogue().forget_all();
    }
}

/// What has to be known before a statement's rows can be read.
#[derive(Debug)]
pub struct Inquiry {
    statement: String,
    options: ReadOptions,
    knowledge: Knowledge,
    columns: Vec<Described>,
    needs: Needs,
    asked: Option<Asked>,
    floats: Floats,
}

#[derive(Debug)]
enum Asked {
    Catalogue(Question),
    Floats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floats {
    Unknown,
    Exact,
    Rounded,
}

impl Inquiry {
    /// About `statement`.
    #[must_use]
    pub fn new(statement: String, options: ReadOptions, knowledge: Knowledge) -> Self {
        let needs = Needs::of(&[], &[]);
        Self {
            statement,
            options,
            knowledge,
            columns: Vec::new(),
            needs,
            asked: None,
            floats: Floats::Unknown,
        }
    }

    /// The server has described the statement with a whole `RowDescription`, or with none; the last one counts.
    pub fn describe(&mut self, description: Option<&[u8]>) -> Result<()> {
        let Some(description) = description else { return Err(no_result()) };
        self.columns = row_description(Reader::new(description.get(HEADER..).unwrap_or_default()))?;
        self.needs = Needs::of(&self.columns, &[]);
        Ok(())
    }

    /// The next statement to run, all of whose columns are wanted as text; `None` once all is known.
    pub fn question(&mut self) -> Result<Option<String>> {
        if let Some(question) = self.knowledge.catalogue().question(&mut self.needs, &self.columns) {
            let literal = format!("'{}'::oid[]", question.parameter());
            let text = question.text().replace("$1::oid[]", &literal);
            self.asked = Some(Asked::Catalogue(question));
            return Ok(Some(text));
        }
        let is_present = self.knowledge.catalogue().is_present();
        if !is_present || !self.plan()?.iter().any(Planned::prints_floats) {
            return Ok(None);
        }
        match self.floats {
            Floats::Unknown => {
                self.asked = Some(Asked::Floats);
                Ok(Some(EXACT_FLOATS.to_owned()))
            }
            Floats::Exact => Ok(None),
            Floats::Rounded => Err(rounded()),
        }
    }

    /// Files the rows that the last question was answered with.
    pub fn answer(&mut self, answers: Answers) -> Result<()> {
        let rows: Vec<TextRow> = answers.rows()?;
        match self.asked.take() {
            Some(Asked::Catalogue(question)) => {
                self.knowledge.catalogue().answer(&mut self.needs, question, rows);
            }
            Some(Asked::Floats) => {
                let is_exact = rows.first().and_then(|row| row.first()?.as_deref()) == Some("t");
                self.floats = if is_exact { Floats::Exact } else { Floats::Rounded };
            }
            None => return Err(Error::internal("an answer to nothing that was asked")),
        }
        Ok(())
    }

    /// The server does not understand the questions: it only speaks PostgreSQL's wire.
    pub fn give_up(&self) {
        self.knowledge.catalogue().give_up();
    }

    /// Which columns are wanted in binary; the others as text.
    pub fn binary(&self) -> Result<Vec<bool>> {
        Ok(self.plan()?.iter().map(|planned| planned.format == Format::Binary).collect())
    }

    /// What takes the rows, once every column comes as it is wanted.
    pub fn arrival(&self) -> Result<Arrival> {
        let planned = self.plan()?;
        let readers =
            planned.iter().map(|planned| planned.reader(&self.options)).collect::<Result<Vec<_>>>()?;
        let formats = planned.iter().map(|planned| planned.format).collect();
        let schema = Schema::new(planned.into_iter().map(|planned| planned.field).collect::<Vec<_>>());
        Ok(Arrival::new(Arc::new(schema), readers, formats, &self.options))
    }

    fn plan(&self) -> Result<Vec<Planned>> {
        plan(&self.knowledge.catalogue(), &self.columns, &self.statement, &self.options)
    }
}

fn rounded() -> Error {
    Error::new(Kind::NotSupported, "the session's extra_float_digits rounds the floats in a column's text")
        .with_hint("SET extra_float_digits TO 3")
}
