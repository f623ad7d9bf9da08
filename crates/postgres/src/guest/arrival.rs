//! Rows that somebody else receives, on their way into record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_cells::{Assembly, ReadColumn};
use longshore_core::memory::make_room;
use longshore_core::{Batches, Error, Finaliser, ReadOptions, Result, Session};

use crate::connection::message::{HEADER, Reader};
use crate::connection::{TextRow, text_row};
use crate::rows::{batch_options, check_count, finaliser, index_row};
use crate::types::Format;

/// Bytes of rows that are decoded at once: they stay in the processor's second cache.
const CHUNK: usize = 128 << 10;

/// Rows of a page while nobody knows how wide they are.
const FIRST_PAGE: usize = 1024;

/// Bytes of a page, about.
const PAGE: usize = 8 << 20;

/// The rows of one result; the first failure is its end.
#[derive(Debug)]
pub struct Arrival {
    assembly: Assembly,
    formats: Vec<Format>,
    options: ReadOptions,
    /// Whole messages of rows that are not decoded.
    held: Vec<u8>,
    batches: Vec<RecordBatch>,
    /// The bytes of the batches.
    size: usize,
    /// Bytes of rows.
    received: usize,
    /// Rows of the pages before this one.
    paged: u64,
    failure: Option<Error>,
}

impl Arrival {
    pub(super) fn new(
        schema: SchemaRef,
        columns: Vec<ReadColumn>,
        formats: Vec<Format>,
        options: &ReadOptions,
    ) -> Self {
        let options = batch_options(&schema, options);
        let assembly = Assembly::new(schema, columns, &options);
        Self {
            assembly,
            formats,
            options,
            held: Vec::new(),
            batches: Vec::new(),
            size: 0,
            received: 0,
            paged: 0,
            failure: None,
        }
    }

    /// Takes the row of a whole message.
    pub fn push(&mut self, message: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if let Err(failure) = self.add(message) {
            self.failure = Some(failure);
            // Nobody will ask for it.
            (self.held, self.batches) = (Vec::new(), Vec::new());
        }
    }

    fn add(&mut self, message: &[u8]) -> Result<()> {
        let start = self.held.len();
        self.received += message.len();
        self.options.budget.ask(message.len())?;
        make_room(&mut self.held, message.len())?;
        self.held.extend_from_slice(message);
        let most = self.assembly.chunk_rows();
        let spans = self.assembly.spans();
        index_row(&self.held, start + HEADER, spans)?;
        if spans.rows() < most && self.held.len() < CHUNK {
            return Ok(());
        }
        self.decode()
    }

    fn decode(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.assembly.decode(&self.held)?;
        self.held.clear();
        // A long row is over.
        self.held.shrink_to(2 * CHUNK);
        if self.assembly.is_full() {
            let batch = self.assembly.batch()?;
            self.keep(batch)?;
        }
        Ok(())
    }

    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        self.size = self.size.saturating_add(batch.get_array_memory_size());
        self.options.budget.hold(self.size)?;
        self.batches.push(batch);
        Ok(())
    }

    /// How many rows the next page should have: no more than the next batch takes, nor than memory should hold at once.
    #[must_use]
    pub fn page_rows(&self) -> usize {
        let rows = usize::try_from(self.assembly.decoded()).unwrap_or(usize::MAX);
        let page = self.received.checked_div(rows).map_or(FIRST_PAGE, |width| PAGE / width.max(1));
        page.clamp(1, self.assembly.room())
    }

    /// The batches that are full, after a page of `asked` rows; and with the last page's `tag` what is left.
    pub fn page(&mut self, asked: usize, tag: Option<&str>) -> Result<Vec<RecordBatch>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.decode()?;
        let rows = self.assembly.decoded() - self.paged;
        self.paged += rows;
        match tag {
            Some(tag) => check_count(tag, rows)?,
            None => check_count(&format!("FETCH {asked}"), rows)?,
        }
        if tag.is_some()
            && let Some(batch) = self.assembly.last()?
        {
            self.batches.push(batch);
        }
        self.size = 0;
        Ok(std::mem::take(&mut self.batches))
    }

    /// The batches, once the server has told the command's `tag`.
    pub fn finish(mut self, tag: &str) -> Result<Box<dyn Batches>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.decode()?;
        check_count(tag, self.assembly.decoded())?;
        if let Some(batch) = self.assembly.last()? {
            self.keep(batch)?;
        }
        let schema = self.assembly.schema().clone();
        let finaliser = finaliser(&schema, &self.formats, &self.options);
        Ok(Box::new(Landed { schema, finaliser, batches: self.batches.into_iter() }))
    }
}

/// A whole result.
struct Landed {
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl Iterator for Landed {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(Ok)
    }
}

impl Batches for Landed {
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

/// The rows of one lookup, in text.
#[derive(Debug, Default)]
pub struct Answers(Vec<Vec<u8>>);

impl Answers {
    /// Takes the row of a whole message.
    pub fn push(&mut self, message: &[u8]) {
        self.0.push(message.get(HEADER..).unwrap_or_default().to_vec());
    }

    pub(super) fn rows(self) -> Result<Vec<TextRow>> {
        self.0.iter().map(|body| text_row(Reader::new(body))).collect()
    }
}
