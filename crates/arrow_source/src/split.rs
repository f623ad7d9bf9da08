//! Parts of a read over a driver: those of one SELECT over one table, which its session divides.
//!
//! See `docs/design/oracle.md`.

use longshore_core::{
    Error, Kind, Params, Parts, Query, ReadOptions, Result, Session, Split, SplitPlan, Splitting, Transaction,
};
use longshore_interpreter::python_params;
use longshore_source::NotSplit;
use longshore_source::split::{key_column, most_sessions};
use longshore_source::sql::{Comments, Dialect, Markers, Names, OneTable};
use pyo3::prelude::*;
use sqlparser::dialect::OracleDialect;

use crate::session::ArrowSession;

const NOT_ONE_TABLE: &str = "it is not a plain SELECT from one table";

/// Oracle's scanner (SQL Language Reference, "Lexical Conventions"), the one source that divides. Its texts `q'[...]'` are not
/// known: before them stands a word that is not a column.
const ORACLE: Dialect = Dialect {
    name_quotes: &[(b'"', b'"')],
    text_quotes: b"'",
    prefixes: &[("n", false)],
    backslash_escapes: false,
    dollar_quotes: false,
    comments: Comments::Flat,
    markers: Markers::Questions,
    operators: b"",
    names: Names::Kept,
    blanks: &[],
};

impl Splitting for ArrowSession {
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        if self.transaction() != Transaction::None {
            return Ok(SplitPlan::Serial("an open transaction".into()));
        }
        match queries {
            [query] => divide(self, query, split, options)
                .map_or_else(NotSplit::into_plan, |parts| Ok(SplitPlan::Parts(parts))),
            _ if split.number.is_none() => Ok(SplitPlan::Whole),
            _ => Ok(SplitPlan::Serial("a list is read in one transaction".into())),
        }
    }

    /// A part names its snapshot itself.
    fn join_snapshot(&mut self, _snapshot: &str, _sessions: usize) -> Result<()> {
        Ok(())
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.tell("begin_snapshot")
    }

    fn begin_reading(&mut self, query: &Query) -> Result<()> {
        let reason = match Pieces::of(query) {
            Some(pieces) => {
                self.call(move |session| session.call_method1("not_plain", (pieces.0,))?.extract())?
            }
            None => Some(NOT_ONE_TABLE.to_owned()),
        };
        match reason {
            None => self.tell("begin_snapshot"),
            Some(reason) => Err(Error::new(
                Kind::NotSupported,
                format!("only a plain SELECT over one table surely writes nothing: {reason}"),
            )),
        }
    }

    fn is_setting(&self, _statement: &str) -> bool {
        false
    }
}

/// A SELECT over one table: its text before the table's name, that name, its alias, the condition, and all tokens but the
/// table's.
struct Pieces((String, String, String, Option<String>, Vec<String>));

impl Pieces {
    fn of(query: &Query) -> Option<Self> {
        let table = OneTable::parse(&ORACLE, &OracleDialect {}, &query.text)?;
        let words = table.outside(&ORACLE).iter().map(|token| token.text.to_owned()).collect();
        Some(Self((
            table.head().to_owned(),
            table.name().to_owned(),
            table.alias_text().to_owned(),
            table.condition().map(str::to_owned),
            words,
        )))
    }
}

fn divide(
    session: &mut ArrowSession,
    query: &Query,
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, NotSplit> {
    let queries = std::slice::from_ref(query);
    let number = most_sessions(queries, split)?;
    if let Some(on) = &split.on {
        let columns = session.describe(query, options)?;
        key_column(columns.iter().map(|column| column.field.name().as_str()), on)?;
    }
    let pieces = Pieces::of(query).ok_or_else(|| NotSplit::because(NOT_ONE_TABLE))?;
    let (on, range, sees_one) = (split.on.clone(), split.range.clone(), options.snapshot);
    let is_asked = split.number.is_some();
    let told: Told = session.call(move |session| {
        let range = match range {
            Some((low, high)) => {
                Some(python_params(session.py(), &Params::Positional(vec![low, high]))?.unbind())
            }
            None => None,
        };
        session.call_method1("split", (pieces.0, (number, is_asked, on, range, sees_one)))?.extract()
    })?;
    let texts = match told {
        Told::Reason(reason) => return Err(NotSplit::Reason(reason)),
        Told::Parts(texts) if texts.len() < 2 => return Err(NotSplit::Small),
        Told::Parts(texts) => texts,
    };
    let queries: Vec<Query> =
        texts.into_iter().map(|text| Query { text, params: query.params.clone() }).collect();
    // Each text names the snapshot, so that no session has to join it.
    Ok(Parts { sessions: number.min(queries.len()), queries, snapshot: None })
}

/// The answer of a driver's session: the parts' texts, or why there are none.
#[derive(FromPyObject)]
enum Told {
    Reason(String),
    Parts(Vec<String>),
}
