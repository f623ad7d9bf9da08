//! Rows on their way into files.

use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, Builder};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use longshore_core::memory::{rows_size, spawn_scoped, values_size};
use longshore_core::{Error, Result};
use longshore_parts::Parts;

use crate::chunk::{self, ChunkFile, encoded_name, field_id};
use crate::encoding::{SMALLEST, encode_columns};
use crate::statistics::ColumnStatistics;

/// The bytes of a full chunk: few enough to hold and to copy, enough that a table of many gigabytes has few of them.
pub(crate) const FULL: usize = 64 << 20;

/// The most rows of a chunk, whose positions are numbers of 32 bits.
const MOST_ROWS: usize = 1 << 26;

/// A slice that begins at a multiple of these needs no bit of its NULLs moved.
const ALIGNED: usize = 1 << 10;

/// Batches, gathered into files of about `full` bytes each.
pub(crate) struct Loader {
    directory: PathBuf,
    /// With the fields' numbers.
    schema: SchemaRef,
    full: usize,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    files: Vec<Arc<ChunkFile>>,
}

impl Loader {
    pub(crate) fn new(directory: &Path, schema: SchemaRef, full: usize) -> Self {
        let directory = directory.to_owned();
        Self { directory, schema, full, batches: Vec::new(), rows: 0, bytes: 0, files: Vec::new() }
    }

    /// Adds rows, whose columns are the schema's; the names of files that are begun go to `new_files`.
    pub(crate) fn push(&mut self, batch: &RecordBatch, new_files: &mut Vec<String>) -> Result<()> {
        let mut batch = batch.clone();
        while batch.num_rows() > 0 {
            let (rows, bytes) = (batch.num_rows(), rows_size(&batch).max(1));
            let most = self.rows_left(rows, bytes);
            if most == 0 {
                self.flush(new_files)?;
                continue;
            }
            self.rows += most.min(rows);
            self.bytes += bytes / rows * most.min(rows);
            self.batches.push(batch.slice(0, most.min(rows)));
            batch = batch.slice(most.min(rows), rows - most.min(rows));
        }
        Ok(())
    }

    /// How many rows of such a batch the chunk still takes: all of a chunk's, or a multiple of what keeps bits in place.
    fn rows_left(&self, rows: usize, bytes: usize) -> usize {
        let wide = (bytes / rows).max(1);
        let left = (self.full.saturating_sub(self.bytes) / wide).min(MOST_ROWS - self.rows);
        if left >= rows {
            return rows;
        }
        let aligned = left / ALIGNED * ALIGNED;
        // A row may be longer than a chunk.
        if aligned == 0 && self.rows == 0 { left.max(1) } else { aligned }
    }

    fn flush(&mut self, new_files: &mut Vec<String>) -> Result<()> {
        let batches = mem::take(&mut self.batches);
        (self.rows, self.bytes) = (0, 0);
        if batches.is_empty() {
            return Ok(());
        }
        for rows in together(&self.schema, &batches)? {
            let name = format!("{:032x}.arrow", unique()?);
            new_files.extend([encoded_name(&name), name.clone()]);
            self.files.push(Arc::new(write(&self.directory, name, &rows)?));
        }
        Ok(())
    }

    /// Whether a file is full.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// The files of all rows so far, which have reached the disk.
    pub(crate) fn finish(&mut self, new_files: &mut Vec<String>) -> Result<Vec<Arc<ChunkFile>>> {
        self.flush(new_files)?;
        Ok(mem::take(&mut self.files))
    }
}

/// Writes the file of a chunk, and meanwhile that of its encoded columns.
fn write(directory: &Path, name: String, rows: &Parts) -> Result<ChunkFile> {
    let count = u32::try_from(rows.rows()).map_err(|_| Error::internal("a chunk of too many rows"))?;
    let (written, statistics, encoded) = thread::scope(|scope| {
        let aside = spawn_scoped(Builder::new().name("longshore-encode".into()), scope, || {
            // Fewer rows are encoded in no time, whenever they are read.
            let bytes: usize = rows.columns.iter().flatten().map(values_size).sum();
            let encoded = if bytes < SMALLEST { None } else { encode_columns(rows) };
            let path = directory.join(encoded_name(&name));
            (describe(rows, encoded.as_ref()), encoded.map(|rows| chunk::write(&path, &rows)).transpose())
        })?;
        let written = chunk::write(&directory.join(&name), rows)?;
        let (statistics, encoded) =
            aside.join().map_err(|_| Error::internal("a column cannot be described"))?;
        Ok::<_, Error>((written, statistics, encoded?))
    })?;
    Ok(ChunkFile::new(name, count, written, encoded, statistics?))
}

/// The facts of each column's values, by its field's number: they are soonest looked at where they are encoded.
fn describe(rows: &Parts, encoded: Option<&Parts>) -> Result<String> {
    let mut columns: BTreeMap<i32, &[ArrayRef]> = BTreeMap::new();
    for rows in [Some(rows), encoded].into_iter().flatten() {
        let fields = rows.schema.fields().iter().zip(&rows.columns);
        columns.extend(fields.filter_map(|(field, parts)| Some((field_id(field)?, parts.as_slice()))));
    }
    let known: BTreeMap<i32, _> =
        columns.into_iter().map(|(id, parts)| (id, ColumnStatistics::of_parts(parts))).collect();
    serde_json::to_string(&known).map_err(|error| Error::internal(error.to_string()))
}

/// The rows of one file; those of each batch where their dictionaries or texts are too many together.
fn together(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<Parts>> {
    let one = |batches: &[RecordBatch]| Parts::of(schema.clone(), batches);
    let all = match one(batches) {
        Err(ArrowError::DictionaryKeyOverflowError | ArrowError::OffsetOverflowError(_)) => {
            batches.chunks(1).map(one).collect()
        }
        all => all.map(|rows| vec![rows]),
    };
    all.map_err(|error| Error::internal(format!("a chunk of the store: {error}")))
}

/// A number that nothing else has.
pub(crate) fn unique() -> Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::operational(format!("no random numbers: {error}")))?;
    Ok(u128::from_ne_bytes(bytes))
}
