//! Rows on their way out of a store: mapped ones, or few that were made here.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{Batches, Deadline, Result, Session};
use longshore_store::{Scan, Transaction};

use crate::engine::EngineRows;
use crate::session::StoreSession;

/// The rows of a scan, at most so many in a batch, and the session that they come from.
pub(crate) struct ScanRows {
    scan: Scan,
    most: usize,
    /// The rest of a batch.
    rest: Option<RecordBatch>,
    deadline: Deadline,
    session: Box<StoreSession>,
}

impl ScanRows {
    pub(crate) fn new(scan: Scan, most: usize, session: Box<StoreSession>) -> Self {
        let deadline = session.deadline.clone();
        Self { scan, most, rest: None, deadline, session }
    }
}

impl Iterator for ScanRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.deadline.check() {
            return Some(Err(error));
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match self.scan.next()? {
                Ok(batch) => batch,
                failed => return Some(failed),
            },
        };
        if batch.num_rows() <= self.most {
            return Some(Ok(batch));
        }
        self.rest = Some(batch.slice(self.most, batch.num_rows() - self.most));
        Some(Ok(batch.slice(0, self.most)))
    }
}

impl Batches for ScanRows {
    fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        Some(self.session)
    }
}

/// The rows of the SQL engine, which reads tables until they end.
pub(crate) struct QueryRows {
    pub(crate) rows: EngineRows,
    /// The transaction whose tables it reads, where that is not the session's.
    #[expect(dead_code, reason = "it keeps the files of its version")]
    pub(crate) own: Option<Transaction>,
    pub(crate) session: Box<StoreSession>,
}

impl Iterator for QueryRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next()
    }
}

impl Batches for QueryRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        let Self { rows, session, .. } = *self;
        drop(rows);
        Some(session)
    }
}
