//! Reads in parts: the server runs a query once, and parts its result.

use longshore_core::{
    Division, Error, Kind, NOT_SPLIT, Query, ReadOptions, Result, Session, Split, Splitting, Value,
};

use crate::session::FlightSession;

/// The header that asks for so many endpoints: Longshore's own server has it.
pub(crate) const HEADER: &str = "longshore-parts";

/// Why a result that was asked for in parts is read over one connection.
pub(crate) const WHOLE: &str = "the server gives the result as one endpoint";

impl Splitting for FlightSession {
    fn split(&mut self, queries: &[Query], split: &Split, _options: &ReadOptions) -> Result<Division> {
        if let Some((Value::Int(low), Value::Int(high))) = &split.range
            && low > high
        {
            return Err(Split::falling_range());
        }
        if queries.len() > 1 {
            return Ok(match split.number {
                None => Division::Whole,
                Some(_) => Division::Serial(NOT_SPLIT.into()),
            });
        }
        if split.on.is_some() {
            return Ok(Division::Serial(
                "the server parts a result as it comes, not by a column's values".into(),
            ));
        }
        self.parts = split.number.filter(|_| !split.unasked);
        Ok(Division::Whole)
    }

    fn join_snapshot(&mut self, _snapshot: &str, _sessions: usize) -> Result<()> {
        Err(Error::internal("a snapshot of Flight SQL's that is joined"))
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.begin_unsplit()
    }

    fn begin_reading(&mut self, _query: &Query) -> Result<()> {
        Err(Error::new(Kind::NotSupported, "Flight SQL has no transactions that only read")
            .with_sqlstate("0A000"))
    }

    fn is_setting(&self, _statement: &str) -> bool {
        // One session reads all of it.
        true
    }
}
