//! Reads in parts: the server runs a query once, and parts its result.

use arrow_flight::FlightEndpoint;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use longshore_core::{
    Error, Leasing, NOT_SPLIT, Parts, Query, ReadOptions, Result, Session, Split, SplitPlan, Splitting, Value,
};
use prost::Message;

use crate::session::FlightSession;

/// Why a column does not divide a result.
const AS_IT_COMES: &str = "the server parts a result as it comes, not by a column's values";

/// The text that stands for the snapshot of partitions: the execution is the server's, and each ticket names it.
const EXECUTION: &str = "one execution";

impl Splitting for FlightSession {
    fn split(&mut self, queries: &[Query], split: &Split, _options: &ReadOptions) -> Result<SplitPlan> {
        if let Some((Value::Int(low), Value::Int(high))) = &split.range
            && low > high
        {
            return Err(Split::falling_range());
        }
        if queries.len() > 1 {
            return Ok(match split.number {
                None => SplitPlan::Whole,
                Some(_) => SplitPlan::Serial(NOT_SPLIT.into()),
            });
        }
        if split.on.is_some() {
            return Ok(SplitPlan::Serial(AS_IT_COMES.into()));
        }
        self.parts = split.number.filter(|_| !split.automatic);
        Ok(SplitPlan::Whole)
    }

    fn join_snapshot(&mut self, _snapshot: &str, _sessions: usize) -> Result<()> {
        Err(Error::internal("a snapshot of Flight SQL's that is joined"))
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.begin_unsplit()
    }

    fn begin_reading(&mut self, _query: &Query) -> Result<()> {
        Err(Error::not_supported("Flight SQL has no transactions that only read").with_sqlstate("0A000"))
    }

    fn is_setting(&self, _statement: &str) -> bool {
        // One session reads all of it.
        true
    }
}

/// The partitions of a query are the endpoints of one execution: their bytes are a ticket and its locations.
impl Leasing for FlightSession {
    fn private_state(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    fn lease(&mut self, query: &Query, split: &Split, _options: &ReadOptions) -> Result<SplitPlan> {
        if split.on.is_some() {
            return Ok(SplitPlan::Serial(AS_IT_COMES.into()));
        }
        self.parts = split.number;
        let info = self.info(&query.text)?;
        let part = |endpoint: &FlightEndpoint| Query::new(STANDARD_NO_PAD.encode(endpoint.encode_to_vec()));
        let queries: Vec<Query> = info.endpoint.iter().map(part).collect();
        let sessions = queries.len();
        self.leased = Some(info);
        Ok(SplitPlan::Parts(Parts { queries, sessions, snapshot: Some(EXECUTION.into()) }))
    }

    fn join_lease(&mut self, _snapshot: &str, query: &Query) -> Result<()> {
        let bytes = STANDARD_NO_PAD.decode(&query.text).ok();
        let endpoint = bytes.and_then(|bytes| FlightEndpoint::decode(bytes.as_slice()).ok());
        let endpoint = endpoint.ok_or_else(|| {
            Error::interface("these bytes are not a partition of a Flight SQL server's")
                .with_hint("give those of adbc_execute_partitions as they are")
        })?;
        self.joined = Some(endpoint);
        Ok(())
    }
}
