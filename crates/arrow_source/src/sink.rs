//! Rows on their way into a table, by the driver's loader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use longshore_core::{Deadline, Error, Failed, IfExists, Load, Result, Session, Sink, Written};
use longshore_interpreter::capsule::Frame;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::session::ArrowSession;

/// A write of a driver's, which its loader makes one with the table at its end, or undoes.
pub(crate) struct ArrowSink {
    /// `None` after the end.
    session: Option<Box<ArrowSession>>,
    loader: Loader,
    rows: u64,
}

/// The object that a driver's `load` gives.
pub(crate) type Loader = Arc<Py<PyAny>>;

impl ArrowSink {
    pub(crate) fn begin(session: &ArrowSession, load: &Load) -> Result<Loader> {
        let load = load.clone();
        let begin = move |session: &Bound<'_, PyAny>| {
            let py = session.py();
            let keywords = PyDict::new(py);
            keywords.set_item("schema", load.table.schema)?;
            keywords.set_item("table", load.table.table)?;
            let fields = load.schema.fields().iter();
            let required = fields.filter(|field| !field.is_nullable()).map(|field| field.name().as_str());
            keywords.set_item("required", required.collect::<Vec<_>>())?;
            keywords.set_item("columns", Py::new(py, Frame::new(load.schema.clone(), Vec::new()))?)?;
            keywords.set_item("if_exists", word(load.if_exists))?;
            keywords.set_item("key", load.key)?;
            keywords.set_item("types", load.types.into_iter().collect::<BTreeMap<_, _>>())?;
            Ok(Arc::new(session.call_method("load", (), Some(&keywords))?.unbind()))
        };
        // One that has begun too late may have made a table.
        session
            .handle
            .call_or_end(&session.deadline, begin, |py, late: Loader| _ = late.call_method0(py, "abort"))
    }

    pub(crate) fn new(session: Box<ArrowSession>, loader: Loader) -> Self {
        Self { session: Some(session), loader, rows: 0 }
    }

    fn undo(&mut self) -> Option<Box<dyn Session>> {
        let mut session = self.session.take()?;
        let loader = self.loader.clone();
        // The caller's own deadline may be why it ends.
        session.set_deadline(&Deadline::never().at_most(Duration::from_secs(2)));
        let (has_begun, begun) = (Arc::new(AtomicBool::new(false)), loader.clone());
        let begins = has_begun.clone();
        let undone = session.call(move |session| {
            begins.store(true, Ordering::Relaxed);
            begun.bind(session.py()).call_method0("abort").map(drop)
        });
        if !has_begun.load(Ordering::Relaxed) {
            // The driver has not stopped yet.
            session.handle.call_later(move |session| _ = loader.bind(session.py()).call_method0("abort"));
        }
        undone.ok().and_then(|()| session.left())
    }
}

fn word(if_exists: IfExists) -> &'static str {
    match if_exists {
        IfExists::Fail => "fail",
        IfExists::Append => "append",
        IfExists::Replace => "replace",
        IfExists::Truncate => "truncate",
        IfExists::Upsert => "upsert",
    }
}

impl Sink for ArrowSink {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (loader, frame, before) =
            (self.loader.clone(), Frame::new(batch.schema(), vec![batch.clone()]), self.rows);
        session.call(move |session| {
            let py = session.py();
            loader.bind(py).call_method1("push", (Py::new(py, frame)?, before)).map(drop)
        })?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<Written, Failed> {
        let rows = self.rows;
        let loader = self.loader.clone();
        let done = match &self.session {
            Some(session) => {
                session.call(move |session| loader.bind(session.py()).call_method0("commit").map(drop))
            }
            None => Ok(()),
        };
        match done {
            Ok(()) => match self.session.take() {
                Some(session) => Ok(Written { rows, session }),
                None => Err(Error::internal("the write has ended before").into()),
            },
            Err(error) => Err(Failed { error, session: self.undo() }),
        }
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.undo()
    }
}

impl Drop for ArrowSink {
    fn drop(&mut self) {
        drop(self.undo());
    }
}
