//! A table in one version: its columns, its chunks, and a scan of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use longshore_core::{Batches, Error, Result, Session, batch_of};

use crate::cache::Cache;
use crate::catalogue::fold;
use crate::chunk::{Chunk, ChunkFile, Mapped, field_id, without_ids};
use crate::encoding::encoded_type;
use crate::predicate::Predicate;
use crate::transaction::internal;

/// The column of a scan that says where each row is.
pub const POSITION: &str = "longshore_position";

/// Rows between two that are deleted, on average, from which on they are left out by slices rather than by a copy.
const APART: usize = 1 << 11;

/// A table in one version.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) id: i64,
    /// Its name.
    pub name: String,
    /// With the fields' numbers.
    pub(crate) schema: SchemaRef,
    /// The columns of its primary key.
    pub key: Vec<String>,
    /// The text that its creator keeps with it.
    pub definition: Option<String>,
    /// The number of the next new field.
    pub(crate) next_field: i32,
    pub(crate) chunks: Vec<Chunk>,
}

/// The part of a table to be read.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The columns' names; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Chunks and rows for which one of these surely does not hold are left out.
    pub predicates: Vec<Predicate>,
    /// Whether a last column, [`POSITION`], says where each row is.
    pub positions: bool,
    /// In which form columns come.
    pub form: Form,
    /// Whether each file is compared with its checksum, as one whose rows are written again has to be.
    pub verified: bool,
    /// Whether each value is looked at.
    pub validated: bool,
}

/// In which form columns come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As the files have them.
    #[default]
    Stored,
    /// In memory that may be written to, which changes neither the file nor another scan.
    Writable,
    /// As the SQL engine computes with them, those that have such a form; the files of the newest version stay mapped for its next
    /// statement.
    Encoded,
}

impl Table {
    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        without_ids(&self.schema)
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(Chunk::rows).sum()
    }

    /// How many files it has.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Whether each file has the table's columns, as none has that is older than a change of them.
    pub(crate) fn files_are_current(&self, directory: &Path) -> Result<bool> {
        let files = self.chunks.iter().map(|chunk| Mapped::open(directory, &chunk.file, false));
        let files = files.collect::<Result<Vec<_>>>()?;
        Ok(files.iter().all(|file| file.schema.fields() == self.schema.fields()))
    }

    /// Whether a catalogue would say the same of both but for their chunks.
    pub(crate) fn describes_as(&self, other: &Self) -> bool {
        (&self.name, &self.schema, &self.key, &self.definition, self.next_field)
            == (&other.name, &other.schema, &other.key, &other.definition, other.next_field)
    }

    /// The numbers of its primary key's columns.
    pub(crate) fn key_ids(&self) -> Vec<Option<i32>> {
        let field = |name: &String| self.position(name).ok().and_then(|at| field_id(self.schema.field(at)));
        self.key.iter().map(field).collect()
    }

    /// The position of a column.
    pub(crate) fn position(&self, name: &str) -> Result<usize> {
        let folded = fold(name);
        let found = self.schema.fields().iter().position(|field| fold(field.name()) == folded);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
            Error::programming(format!("the table {:?} has no column {name:?}", self.name))
                .with_sqlstate("42703")
                .with_hint(format!("it has {}", names.join(", ")))
        })
    }

    /// Maps what is wanted, but for what is kept. Afterwards, the files may be removed.
    pub(crate) fn scan(&self, directory: &Path, cache: Option<&Cache>, wanted: &Wanted) -> Result<Scan> {
        let columns: Vec<usize> = match &wanted.columns {
            None => (0..self.schema.fields().len()).collect(),
            Some(names) => names.iter().map(|name| self.position(name)).collect::<Result<_>>()?,
        };
        let given = Arc::new(self.schema.project(&columns).map_err(internal)?);
        let mut read = columns.clone();
        let mut tests = Vec::new();
        for predicate in &wanted.predicates {
            let at = self.position(&predicate.column)?;
            let place = read.iter().position(|each| *each == at).unwrap_or_else(|| {
                read.push(at);
                read.len() - 1
            });
            tests.push((predicate, self.schema.field(at), place));
        }
        let read = Arc::new(self.schema.project(&read).map_err(internal)?);
        let open = |file: &ChunkFile| match cache {
            Some(cache) => cache.open(directory, file),
            None => Mapped::open(directory, file, wanted.form == Form::Writable).map(Arc::new),
        };
        let mut pieces = VecDeque::new();
        for chunk in &self.chunks {
            let Some(mut piece) = piece(chunk, &read, &tests, &open, wanted)? else { continue };
            piece.columns.truncate(columns.len());
            pieces.push_back(piece);
        }
        let schema = if wanted.form == Form::Encoded { encode(&given, &mut pieces, &open)? } else { given };
        let mut schema = without_ids(&schema);
        if wanted.positions {
            let position = Arc::new(Field::new(POSITION, DataType::UInt64, false));
            let fields: Vec<_> = schema.fields().iter().cloned().chain([position]).collect();
            schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        }
        let rows = pieces.iter().map(|piece| (piece.rows.len() - piece.deleted.len()) as u64).sum();
        Ok(Scan { schema, positions: wanted.positions, chunks: pieces.len(), rows, pieces })
    }
}

/// A table of a version whose rows can be scanned while a transaction keeps its files.
pub struct Scanner {
    /// The table.
    pub table: Arc<Table>,
    pub(crate) directory: PathBuf,
}

impl Scanner {
    /// Its rows.
    pub fn scan(&self, wanted: &Wanted) -> Result<Scan> {
        self.table.scan(&self.directory, None, wanted)
    }
}

/// Puts encoded columns in the place of those that all pieces have encoded.
fn encode(
    schema: &SchemaRef,
    pieces: &mut VecDeque<Piece>,
    open: &impl Fn(&ChunkFile) -> Result<Arc<Mapped>>,
) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    for (at, field) in fields.iter_mut().enumerate() {
        let Some(kind) = encoded_type(field) else { continue };
        let wanted = Arc::new(field.as_ref().clone().with_data_type(kind));
        let encoded =
            pieces.iter().map(|piece| encoded_column(piece, &piece.columns[at], field, &wanted, open));
        if let Some(columns) = encoded.collect::<Result<Option<Vec<_>>>>()? {
            pieces.iter_mut().zip(columns).for_each(|(piece, column)| piece.columns[at] = column);
            *field = wanted;
        }
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

fn encoded_column(
    piece: &Piece,
    column: &ArrayRef,
    field: &Field,
    wanted: &FieldRef,
    open: &impl Fn(&ChunkFile) -> Result<Arc<Mapped>>,
) -> Result<Option<ArrayRef>> {
    let Some(id) = field_id(field) else { return Ok(None) };
    match &piece.file.encoded {
        // A column that is newer than the file is NULL in it.
        Some(file) if piece.mapped.has(id) => {
            let mapped = open(file)?;
            let batch = mapped.has(id).then(|| mapped.batch(&Arc::new(Schema::new(vec![wanted.clone()]))));
            Ok(batch.transpose()?.map(|batch| batch.column(0).clone()))
        }
        _ => Ok(piece.mapped.encode(id, field, column)),
    }
}

type Test<'a> = (&'a Predicate, &'a Field, usize);

/// The columns of a chunk, and the rows that may be wanted; `None` where none are.
fn piece(
    chunk: &Chunk,
    read: &SchemaRef,
    tests: &[Test<'_>],
    open: &impl Fn(&ChunkFile) -> Result<Arc<Mapped>>,
    wanted: &Wanted,
) -> Result<Option<Piece>> {
    let mut sorted = Vec::new();
    for (predicate, field, place) in tests {
        // A column that is newer than the file is NULL in it.
        let Some(statistics) = chunk.file.statistics(field)? else { return Ok(None) };
        let is_null = statistics.nulls == u64::from(chunk.file.rows);
        if is_null || !predicate.may_hold(field.data_type(), statistics) {
            return Ok(None);
        }
        if statistics.is_sorted {
            sorted.push((predicate, *place));
        }
    }
    let mapped = open(&chunk.file)?;
    if wanted.verified {
        mapped.verify(&chunk.file)?;
    }
    let batch = mapped.batch(read)?;
    if wanted.validated {
        batch.columns().iter().try_for_each(|column| mapped.validate_column(column))?;
    }
    let mut rows = 0..batch.num_rows();
    for (predicate, place) in sorted {
        mapped.validate_column(batch.column(place))?;
        let found = predicate.sorted_rows(batch.column(place));
        rows = rows.start.max(found.start)..rows.end.min(found.end);
    }
    let Chunk { number, file, .. } = chunk.clone();
    let deleted = chunk.deleted.iter().copied().filter(|row| rows.contains(&(*row as usize))).collect();
    let piece = Piece { number, file, mapped, columns: batch.columns().to_vec(), rows, deleted };
    if piece.is_copied() {
        // Value by value.
        piece.columns.iter().try_for_each(|column| piece.mapped.validate_column(column))?;
    }
    Ok((piece.rows.start < piece.rows.end).then_some(piece))
}

/// The rows of a scan, which share the memory of the mapped files.
pub struct Scan {
    schema: SchemaRef,
    positions: bool,
    /// How many chunks are touched.
    pub chunks: usize,
    /// How many rows it gives.
    pub rows: u64,
    pieces: VecDeque<Piece>,
}

/// The rows of one chunk that may be wanted.
struct Piece {
    number: u32,
    file: Arc<ChunkFile>,
    mapped: Arc<Mapped>,
    columns: Vec<ArrayRef>,
    rows: Range<usize>,
    /// The deleted rows among them, ascending.
    deleted: VecDeque<u32>,
}

impl Piece {
    /// Whether so many rows are deleted that the others are copied.
    fn is_copied(&self) -> bool {
        self.deleted.len() * APART > self.rows.len()
    }
}

impl Scan {
    fn batch(&self, piece: &Piece, rows: Range<usize>) -> Result<RecordBatch> {
        let slices = piece.columns.iter().map(|column| column.slice(rows.start, rows.len()));
        let mut columns: Vec<ArrayRef> = slices.collect();
        if self.positions {
            let first = u64::from(piece.number) << 32;
            columns.push(Arc::new(UInt64Array::from_iter_values(rows.clone().map(|row| first | row as u64))));
        }
        batch_of(&self.schema, columns, rows.len())
    }

    /// The rows of a piece without those that are deleted, which are many: a copy.
    fn without_deleted(&self, piece: &Piece) -> Result<RecordBatch> {
        let mut kept = BooleanBufferBuilder::new(piece.rows.len());
        kept.append_n(piece.rows.len(), true);
        for row in &piece.deleted {
            kept.set_bit(*row as usize - piece.rows.start, false);
        }
        let batch = self.batch(piece, piece.rows.clone())?;
        let kept = BooleanArray::new(kept.finish(), None);
        filter_record_batch(&batch, &kept).map_err(internal)
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut piece = self.pieces.pop_front()?;
            if piece.is_copied() {
                return Some(self.without_deleted(&piece));
            }
            let end = piece.deleted.pop_front().map_or(piece.rows.end, |row| row as usize);
            let rows = piece.rows.start..end;
            piece.rows.start = end + 1;
            let batch = (!rows.is_empty()).then(|| self.batch(&piece, rows));
            if piece.rows.start < piece.rows.end {
                self.pieces.push_front(piece);
            }
            if batch.is_some() {
                return batch;
            }
        }
    }
}

impl Batches for Scan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}
