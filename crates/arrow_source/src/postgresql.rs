//! Rows of PostgreSQL's over another client's connection, in the bytes that the server has sent: the types, the catalogue and the
//! decoders are those of our own sessions.
//!
//! Such a session has, besides what every driver's has, `prepare` (a statement's description and its parameters' types), `ask`
//! (a question to the catalogue), `open` and `fetch` (the rows, a page at a time), and `finish` or `abandon`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::memory::try_reserve;
use longshore_core::{
    Batches, Column, Deadline, Failed, Finaliser, Meter, Protocol, Query, ReadOptions, Result, Session,
};
use longshore_interpreter::raise;
use longshore_postgres::{Answers, Arrival, HEADER, RowSink, TypeCache, TypeLookup};
use longshore_source::sql::{Numbered, POSTGRESQL, positional};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::session::ArrowSession;

/// How long the end of a result may take whose reader no longer waits for it.
const ENDING: Duration = Duration::from_secs(2);

/// The columns that a statement would have.
pub(crate) fn describe(session: &ArrowSession, query: &Query, options: &ReadOptions) -> Result<Vec<Column>> {
    let numbered = positional(&POSTGRESQL, &query.text, &query.params)?;
    let columns = prepare(session, &numbered, options).and_then(|lookup| lookup.columns());
    abandon(session);
    columns
}

/// The rows of a query.
pub(crate) fn read(
    session: Box<ArrowSession>,
    query: &Query,
    options: &ReadOptions,
) -> Result<Box<dyn Batches>, Failed> {
    match open(&session, query, options) {
        Ok(arrival) => Ok(Box::new(WireBatches {
            schema: arrival.schema(),
            finaliser: arrival.finaliser(),
            arrival: Some(arrival),
            ready: VecDeque::new(),
            session: Some(session),
            meter: options.meter.clone(),
        })),
        Err(error) => {
            abandon(&session);
            Err(Failed { error, session: session.left() })
        }
    }
}

fn open(session: &ArrowSession, query: &Query, options: &ReadOptions) -> Result<Arrival> {
    let numbered = positional(&POSTGRESQL, &query.text, &query.params)?;
    let mut lookup = prepare(session, &numbered, options)?;
    let values = lookup.bound(&numbered.values)?;
    let is_binary = lookup.in_one_format()?;
    learn(session, &mut lookup)?;
    let arrival = lookup.arrival()?;
    let text = numbered.text.clone();
    session.call(move |client| {
        let bytes = |value: Vec<u8>| PyBytes::new(client.py(), &value);
        let values: Vec<_> = values.into_iter().map(|value| value.map(bytes)).collect();
        client.call_method1("open", (text, values, is_binary)).map(drop)
    })?;
    Ok(arrival)
}

/// All that has to be known of a statement before its rows can be read.
fn prepare(session: &ArrowSession, numbered: &Numbered<'_>, options: &ReadOptions) -> Result<TypeLookup> {
    let text = numbered.text.clone();
    let prepared = session.call(move |client| client.call_method1("prepare", (text,))?.extract());
    let (description, parameters): (Option<Vec<u8>>, Vec<u32>) =
        prepared.map_err(|error| numbered.restore_position(error))?;
    let mut options = options.clone();
    if session.handle.attribute("has_binary", |has| has.extract()) == Some(false) {
        options.protocol = Protocol::Text;
    }
    let lookup = TypeLookup::new(numbered.text.clone(), options, TypeCache::default());
    let mut lookup = lookup.with_parameters(parameters);
    lookup.describe(description.as_deref())?;
    learn(session, &mut lookup)?;
    Ok(lookup)
}

fn learn(session: &ArrowSession, lookup: &mut TypeLookup) -> Result<()> {
    while let Some(question) = lookup.question()? {
        let rows = session.call(move |client| {
            let result = client.call_method1("ask", (question,))?;
            messages(&result, 0, result.getattr("ntuples")?.extract()?)
        })?;
        let mut answers = Answers::default();
        each(&rows, |message| answers.push(message));
        lookup.answer(answers)?;
    }
    Ok(())
}

/// Leaves the connection as it was before a result that does not come.
fn abandon(session: &ArrowSession) {
    let _ = session
        .handle
        .call(&Deadline::never().at_most(ENDING), |client| client.call_method0("abandon").map(drop));
}

/// Some rows of a result of libpq's, as the messages that have brought them.
fn messages(result: &Bound<'_, PyAny>, start: usize, end: usize) -> PyResult<Vec<u8>> {
    let columns: usize = result.getattr("nfields")?.extract()?;
    let cell = result.getattr("get_value")?;
    let mut out = Vec::new();
    let append = |out: &mut Vec<u8>, bytes: &[u8]| -> PyResult<()> {
        try_reserve(out, bytes.len()).map_err(|error| raise(error.into()))?;
        out.extend_from_slice(bytes);
        Ok(())
    };
    for row in start..end {
        let at = out.len();
        append(&mut out, b"D\0\0\0\0")?;
        append(&mut out, &u16::try_from(columns)?.to_be_bytes())?;
        for column in 0..columns {
            let cell = cell.call1((row, column))?;
            if cell.is_none() {
                append(&mut out, &(-1_i32).to_be_bytes())?;
                continue;
            }
            let bytes = cell.cast::<PyBytes>()?.as_bytes();
            append(&mut out, &i32::try_from(bytes.len())?.to_be_bytes())?;
            append(&mut out, bytes)?;
        }
        let length = u32::try_from(out.len() - at - 1)?;
        out[at + 1..at + HEADER].copy_from_slice(&length.to_be_bytes());
    }
    Ok(out)
}

/// Takes messages apart.
fn each(mut messages: &[u8], mut take: impl FnMut(&[u8])) {
    while let Some([_, a, b, c, d]) = messages.first_chunk::<HEADER>() {
        let (message, rest) = messages.split_at(1 + u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        take(message);
        messages = rest;
    }
}

/// A result that the client fetches a page at a time.
struct WireBatches {
    /// `None` once it has ended.
    arrival: Option<Arrival>,
    ready: VecDeque<RecordBatch>,
    session: Option<Box<ArrowSession>>,
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    meter: Arc<Meter>,
}

impl WireBatches {
    /// Takes pages until a batch is full, or all have come.
    fn advance(&mut self) -> Result<()> {
        while self.ready.is_empty()
            && let (Some(arrival), Some(session)) = (&mut self.arrival, &self.session)
        {
            let asked = arrival.page_rows();
            let (rows, is_last) = session.call(move |client| {
                let page = client.call_method1("fetch", (asked,))?;
                let (result, start, end, is_last): (Bound<'_, PyAny>, usize, usize, bool) = page.extract()?;
                Ok((messages(&result, start, end)?, is_last))
            })?;
            let (mut sink, mut count) = (self.arrival.take(), 0_usize);
            each(&rows, |message| {
                sink.push(message);
                count += 1;
            });
            self.meter.add_bytes(rows.len() as u64);
            let tag = is_last.then(|| format!("FETCH {count}"));
            if let Some(arrival) = &mut sink {
                self.ready.extend(arrival.page(asked, tag.as_deref())?);
            }
            if is_last {
                session.call(|client| client.call_method0("finish").map(drop))?;
            } else {
                self.arrival = sink;
            }
        }
        Ok(())
    }

    /// Ends a result that has not come to its end.
    fn end(&mut self) {
        self.ready.clear();
        if self.arrival.take().is_some()
            && let Some(session) = &self.session
        {
            abandon(session);
        }
    }
}

impl Iterator for WireBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(session) = &self.session
            && let Err(error) = session.handle.check("result")
        {
            return Some(Err(error));
        }
        if let Err(error) = self.advance() {
            self.ready.clear();
            self.arrival = None;
            if let Some(session) = &self.session {
                abandon(session);
            }
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Drop for WireBatches {
    fn drop(&mut self) {
        self.end();
    }
}

impl Batches for WireBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end();
        self.session.take()?.left()
    }
}
