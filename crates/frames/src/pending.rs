//! The rows of a statement that its cursor has not fetched: batches read ahead, those still to come, and the rest of them as
//! a result of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use longshore_core::memory::rows_size;
use longshore_core::{Batches, Error, Finalised, Finaliser, Kind, Result, Session, Warnings};
use longshore_retype::{double_batch, double_schema};

use crate::streamed::{narrow_batch, narrow_schema, streamed_batch, streamed_schema};

/// The bytes of a result that may be a short one.
const SHORT: usize = 1 << 20;

/// Batches that were read ahead, and those that are still to come.
pub struct Pending {
    batches: VecDeque<RecordBatch>,
    /// `None` once all has come.
    live: Option<Box<dyn Batches>>,
    finaliser: Option<Arc<dyn Finaliser>>,
    schema: SchemaRef,
    /// A result that has failed has no proper end.
    has_failed: bool,
    /// Why it has failed while it was read ahead: whoever fetches hears of it.
    failure: Option<Error>,
}

impl Pending {
    /// The rows of a result.
    #[must_use]
    pub fn new(live: Box<dyn Batches>) -> Self {
        let (schema, finaliser) = (live.schema(), live.finaliser());
        Self { live: Some(live), finaliser, ..Self::empty(schema) }
    }

    /// None, for all have come.
    #[must_use]
    pub fn empty(schema: SchemaRef) -> Self {
        Self {
            batches: VecDeque::new(),
            live: None,
            finaliser: None,
            schema,
            has_failed: false,
            failure: None,
        }
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.batches.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.receive(),
        }
    }

    /// The next batch as it came and as objects are made of it; `before` rows went before it.
    pub fn next_objects(&mut self, before: u64) -> Result<Option<(RecordBatch, RecordBatch)>> {
        let Some(batch) = self.next()? else { return Ok(None) };
        let Some(finaliser) = &self.finaliser else { return Ok(Some((batch.clone(), batch))) };
        let objects = finaliser.objects(&self.schema, batch.clone()).map_err(|error| later(error, before))?;
        Ok(Some((batch, objects)))
    }

    /// The next batch from the server.
    fn receive(&mut self) -> Result<Option<RecordBatch>> {
        let Some(live) = &mut self.live else {
            return match self.failure.take() {
                Some(failure) => Err(failure),
                None if self.has_failed => Err(failed_result()),
                None => Ok(None),
            };
        };
        let next = live.next().transpose();
        if !matches!(next, Ok(Some(_))) {
            self.has_failed = next.is_err();
            self.live = None;
        }
        next
    }

    /// Whether the server has sent all.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.live.is_none()
    }

    /// Whether the transaction of the statement fails if it is stopped.
    #[must_use]
    pub fn fails_transaction(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.fails_transaction())
    }

    /// How many rows wait.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }

    /// Takes all of them, unless the result has failed: then it is told why.
    pub fn take(&mut self) -> Result<Self> {
        if self.has_failed {
            return Err(self.failure.take().unwrap_or_else(failed_result));
        }
        let ended = Self::empty(self.schema.clone());
        Ok(std::mem::replace(self, ended))
    }

    /// Ends the result, which has no rows any more; gives what is still to come.
    pub fn fail(&mut self) -> Option<Box<dyn Batches>> {
        self.has_failed = true;
        self.batches.clear();
        self.live.take()
    }

    /// Reads on to the first `rows`, or some of them where they are wide, or to the end: a short result leaves nothing to
    /// stop. Without `rows`, it is to the end.
    pub fn start(&mut self, rows: Option<usize>) -> Result<()> {
        let (mut come, mut bytes) = (0, 0);
        while self.live.is_some() && rows.is_none_or(|rows| come < rows && bytes < SHORT) {
            if let Some(batch) = self.receive()? {
                come += batch.num_rows();
                bytes += rows_size(&batch);
                self.batches.push_back(batch);
            }
        }
        Ok(())
    }

    /// Reads on until the result has ended, or so many bytes wait to be fetched; whether it has ended.
    pub fn fill(&mut self, most: usize) -> Result<bool> {
        let mut bytes: usize = self.batches.iter().map(rows_size).sum();
        while self.live.is_some() && bytes <= most {
            match self.receive() {
                Ok(Some(batch)) => {
                    bytes += rows_size(&batch);
                    self.batches.push_back(batch);
                }
                Ok(None) => {}
                Err(error) if error.kind() == Kind::Interrupted => return Err(error),
                Err(error) => self.failure = Some(error),
            }
        }
        Ok(self.live.is_none())
    }

    /// `batch`, with the types that hold its own values where only a whole result has types.
    fn finalise(&self, batch: RecordBatch, before: u64) -> Result<RecordBatch> {
        let Some(finaliser) = &self.finaliser else { return Ok(batch) };
        let whole = finaliser.finalise(&self.schema, vec![batch]);
        let (_, mut batches) = whole.map_err(|error| later(error, before))?;
        batches.pop().ok_or_else(|| Error::internal("a batch has gone while it got its types"))
    }
}

/// An error in a batch that has `before` rows of the result before it.
fn later(error: Error, before: u64) -> Error {
    let mut place = error.place().clone();
    place.row = place.row.map(|row| row + before);
    error.at(place)
}

/// The error of rows that a result has no more.
#[must_use]
pub fn failed_result() -> Error {
    Error::interface("the result has failed: its rows cannot be fetched")
        .with_hint("execute the statement again")
}

/// The rows that were not fetched, as a result of their own.
pub struct Remainder {
    first: VecDeque<RecordBatch>,
    source: Pending,
    /// Rows of the result before the next batch.
    before: u64,
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    /// The change of each batch.
    change: Change,
    warnings: Arc<Warnings>,
}

/// Whose types the rest of a result has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Those of the whole result.
    Arrow,
    /// The same with doubles for decimals.
    Pandas,
    /// The same with decimals of 38 digits.
    Polars,
    /// Those of a stream, where only the whole would tell them.
    Stream,
}

#[derive(Clone, Copy)]
enum Change {
    Nothing,
    /// Decimals are what the frame has.
    Decimals(Decimals),
    /// Columns without a type have that of the first batch.
    Streamed,
}

impl Remainder {
    /// The result of what `partly` has of its batch, and of `source`; `before` rows went before.
    pub fn new(
        partly: Option<RecordBatch>,
        source: Pending,
        before: u64,
        form: Form,
        warnings: Arc<Warnings>,
    ) -> Result<Self> {
        let (schema, finaliser) = (source.schema.clone(), source.finaliser.clone());
        let first = partly.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        let change = Change::Nothing;
        let mut rest = Self { first, source, before, schema, finaliser, change, warnings };
        match (form, rest.finaliser.take()) {
            (Form::Pandas | Form::Polars, finaliser) => {
                let decimals = if form == Form::Pandas { Decimals::Doubles } else { Decimals::Narrow };
                if let Some(finaliser) = finaliser {
                    let warnings = rest.warnings.clone();
                    rest.finaliser = Some(Arc::new(Final { finaliser, decimals, warnings }));
                } else {
                    rest.schema = decimals.schema(&rest.schema);
                    rest.change = Change::Decimals(decimals);
                }
            }
            (Form::Stream, Some(finaliser)) => {
                let batch = rest.raw()?;
                let (first, _) = finaliser.finalise(&rest.schema, batch.iter().cloned().collect())?;
                rest.schema = streamed_schema(&rest.schema, &first);
                rest.first.extend(batch);
                rest.change = Change::Streamed;
            }
            (Form::Arrow | Form::Stream, finaliser) => rest.finaliser = finaliser,
        }
        Ok(rest)
    }

    fn raw(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.first.pop_front() { Ok(Some(batch)) } else { self.source.next() }
    }

    fn change_next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.raw()? else { return Ok(None) };
        let before = self.before;
        self.before += batch.num_rows() as u64;
        Ok(Some(match self.change {
            Change::Nothing => batch,
            Change::Decimals(decimals) => decimals.batch(&batch, &self.schema, before, &self.warnings)?,
            Change::Streamed => streamed_batch(&self.source.finalise(batch, before)?, &self.schema, before)?,
        }))
    }
}

impl Iterator for Remainder {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.change_next().transpose()
    }
}

impl Batches for Remainder {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// The type that a frame has for decimals.
#[derive(Clone, Copy)]
enum Decimals {
    /// Doubles, in pandas.
    Doubles,
    /// Decimals of 38 digits, in polars.
    Narrow,
}

impl Decimals {
    fn schema(self, schema: &Schema) -> SchemaRef {
        match self {
            Self::Doubles => double_schema(schema, &[]),
            Self::Narrow => narrow_schema(schema),
        }
    }

    fn batch(
        self,
        batch: &RecordBatch,
        schema: &SchemaRef,
        before: u64,
        warnings: &Arc<Warnings>,
    ) -> Result<RecordBatch> {
        match self {
            Self::Doubles => double_batch(batch, schema, before, warnings),
            Self::Narrow => narrow_batch(batch, schema, before),
        }
    }
}

/// Final types with the decimals of a frame.
struct Final {
    finaliser: Arc<dyn Finaliser>,
    decimals: Decimals,
    warnings: Arc<Warnings>,
}

impl Finaliser for Final {
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised> {
        let (exact, batches) = self.finaliser.finalise(schema, batches)?;
        let (schema, mut rows) = (self.decimals.schema(&exact), 0);
        let change = |batch: RecordBatch| {
            let before = rows;
            rows += batch.num_rows() as u64;
            self.decimals.batch(&batch, &schema, before, &self.warnings)
        };
        let batches = batches.into_iter().map(change).collect::<Result<_>>()?;
        Ok((schema, batches))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, StringArray};

    use super::*;

    fn batch(rows: usize, width: usize) -> RecordBatch {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(width); rows]));
        RecordBatch::try_from_iter([("t", texts)]).unwrap()
    }

    /// Batches of so many rows of a width, and a failure after them where there is one.
    struct Sent(std::vec::IntoIter<Result<RecordBatch>>);

    impl Iterator for Sent {
        type Item = Result<RecordBatch>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.next()
        }
    }

    impl Batches for Sent {
        fn schema(&self) -> SchemaRef {
            batch(0, 0).schema()
        }

        fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
            None
        }
    }

    fn pending(rows: &[(usize, usize)], failure: Option<Error>) -> Pending {
        let sent = rows.iter().map(|(rows, width)| Ok(batch(*rows, *width)));
        let sent: Vec<_> = sent.chain(failure.map(Err)).collect();
        Pending::new(Box::new(Sent(sent.into_iter())))
    }

    #[test]
    fn a_short_result_has_come_at_once() {
        let mut short = pending(&[(0, 0), (7, 1)], None);
        short.start(Some(10)).unwrap();
        assert_eq!((short.has_come(), short.rows()), (true, 7));
        let mut long = pending(&[(10, 1), (10, 1)], None);
        long.start(Some(10)).unwrap();
        assert_eq!((long.has_come(), long.rows()), (false, 10));
        let mut wide = pending(&[(2, SHORT), (2, SHORT)], None);
        wide.start(Some(10)).unwrap();
        assert_eq!((wide.has_come(), wide.rows()), (false, 2));
        wide.start(None).unwrap();
        assert_eq!((wide.has_come(), wide.rows()), (true, 4));
    }

    #[test]
    fn a_failure_is_told_to_whoever_fetches() {
        let told = || Error::operational("the network is gone");
        assert_eq!(
            pending(&[(1, 1)], Some(told())).start(None).unwrap_err().message(),
            "the network is gone"
        );
        let mut ahead = pending(&[(3, 1)], Some(told()));
        assert!(ahead.fill(usize::MAX).unwrap());
        let rows = ahead.next_objects(0).unwrap().map(|(batch, _)| batch.num_rows());
        assert_eq!(rows, Some(3));
        assert_eq!(ahead.next_objects(3).unwrap_err().message(), "the network is gone");
        assert_eq!(ahead.next_objects(3).unwrap_err().kind(), Kind::Interface);
        let mut whole = pending(&[(3, 1)], Some(told()));
        whole.fill(usize::MAX).unwrap();
        assert_eq!(whole.take().err().unwrap().message(), "the network is gone");
        assert_eq!(whole.take().err().unwrap().kind(), Kind::Interface);
    }

    #[test]
    fn the_rest_begins_where_the_rows_ended() {
        let mut source = pending(&[(4, 1), (2, 1)], None);
        let (first, _) = source.next_objects(0).unwrap().unwrap();
        let left = source.take().unwrap();
        let rest = Remainder::new(Some(first.slice(3, 1)), left, 3, Form::Arrow, Arc::default()).unwrap();
        assert_eq!(rest.map(|batch| batch.unwrap().num_rows()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(source.next_objects(6).unwrap().map(|(batch, _)| batch.num_rows()), None);
    }
}
