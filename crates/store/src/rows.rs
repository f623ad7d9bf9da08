//! The changes of a table's rows: chunks that are added, marked, folded and written again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::take_record_batch;
use longshore_core::memory::rows_size;
use longshore_core::{Error, Kind, Place, Result};

use crate::catalogue::fold;
use crate::chunk::{Chunk, ChunkFile, Mapped, field_id};
use crate::key::Keys;
use crate::loader::{FULL, Loader};
use crate::statistics::overlap;
use crate::table::{Table, Wanted};
use crate::transaction::{Operation, Transaction, internal};

/// The most bytes of a chunk.
const FULLEST: u64 = 1 << 30;

/// A table has chunks of a part of its bytes, so that it has few of them.
const SHARE: u64 = 64;

/// So many chunks next to each other of about one size become one.
const FOLDED: usize = 8;

/// From so many chunks on, those next to each other are folded whatever their sizes.
const MANY: usize = 128;

/// How far the places of chunks are apart, so that several may stand in the place of one.
const GAP: i64 = 1 << 20;

/// The bytes of a chunk below which rows are marked until half of them are: to write it again costs more than it saves.
const SMALL: u64 = 1 << 20;

type Rows<'a> = dyn Iterator<Item = Result<RecordBatch>> + 'a;

impl Transaction {
    /// Adds rows, whose columns have the table's names and types; those that are missing are NULL. Gives their number.
    pub fn append(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        rows: &mut Rows<'_>,
        operation: Operation,
    ) -> Result<u64> {
        self.begin_append(name, schema)?;
        for batch in rows {
            self.push(&batch?)?;
        }
        self.end_append(operation)
    }

    /// Replaces the rows of the same keys, and adds the others. Of rows with one key, the last counts. Gives the rows' number.
    pub fn upsert(
        &mut self,
        name: &str,
        key: &[String],
        schema: &SchemaRef,
        rows: &mut Rows<'_>,
    ) -> Result<u64> {
        let mut table = self.edited(name)?;
        let wanted: HashSet<String> = key.iter().map(|name| fold(name)).collect();
        if wanted.is_empty() || wanted != table.key.iter().map(|name| fold(name)).collect() {
            return Err(Error::programming(format!(
                "the table {name:?} has no primary key on {}",
                key.join(", ")
            ))
            .with_sqlstate("42P10")
            .with_hint(format!("its primary key is ({})", table.key.join(", "))));
        }
        let mut count = 0;
        let mut waiting: Vec<RecordBatch> = Vec::new();
        let columns = Columns::of(&table, schema)?;
        loop {
            let batch = rows.next().transpose()?;
            let is_last = batch.is_none();
            if let Some(batch) = batch {
                self.deadline.check()?;
                waiting.push(columns.of_batch(&batch, count)?);
                count += batch.num_rows() as u64;
            }
            if is_last || waiting.iter().map(rows_size).sum::<usize>() > FULL {
                for batch in together(&table.schema, std::mem::take(&mut waiting))? {
                    self.put(&mut table, &batch)?;
                }
            }
            if is_last {
                break;
            }
        }
        self.fold_chunks(&mut table)?;
        self.change(table, "upsert", count);
        Ok(count)
    }

    fn put(&mut self, table: &mut Table, batch: &RecordBatch) -> Result<()> {
        let keys = Keys::of(&key_columns(table, batch)?)?;
        let last = UInt32Array::from(keys.last_rows());
        let found = self.find(table, &keys, None)?.into_iter().map(|(chunk, row, _)| (chunk, row)).collect();
        self.mark_deleted(table, found)?;
        let batch = if last.len() < batch.num_rows() {
            take_record_batch(batch, &last).map_err(internal)?
        } else {
            batch.clone()
        };
        let files = self.write(&table.schema, full(table), &mut std::iter::once(Ok(batch)))?;
        add_files(table, files);
        Ok(())
    }

    /// Deletes the rows at these positions, which a scan of this transaction has given. Gives how many.
    pub fn delete(&mut self, name: &str, positions: &mut Rows<'_>) -> Result<u64> {
        let mut table = self.edited(name)?;
        let count = self.remove(&mut table, positions)?;
        self.change(table, "delete", count);
        Ok(count)
    }

    /// Replaces the rows at these positions by others. Gives how many were there.
    pub fn update(
        &mut self,
        name: &str,
        positions: &mut Rows<'_>,
        schema: &SchemaRef,
        rows: &mut Rows<'_>,
    ) -> Result<u64> {
        let mut table = self.edited(name)?;
        let count = self.remove(&mut table, positions)?;
        self.start_adding(table, schema)?;
        for batch in rows {
            self.push(&batch?)?;
        }
        let (table, _) = self.end_adding()?;
        self.change(table, "update", count);
        Ok(count)
    }

    /// Deletes all rows. Gives how many.
    pub fn truncate(&mut self, name: &str) -> Result<u64> {
        let mut table = self.edited(name)?;
        let count = table.rows();
        table.chunks.clear();
        self.change(table, "truncate", count);
        Ok(count)
    }

    /// Writes a table's rows again, in few files without deleted rows.
    pub fn compact(&mut self, name: &str) -> Result<()> {
        let mut table = self.edited(name)?;
        let all = 0..table.chunks.len();
        let is_compact = all.len() < 2
            && table.files().all(|(_, is_whole)| is_whole)
            && table.files_are_current(self.shared.data())?;
        if !is_compact {
            let full = full(&table);
            self.rewrite(&mut table, all, full)?;
            self.change(table, "compact", 0);
        }
        Ok(())
    }

    /// Begins to add rows that come bit by bit, with `push` and `end_append`: they go into as few files as if they came at once.
    pub fn begin_append(&mut self, name: &str, schema: &SchemaRef) -> Result<()> {
        let table = self.edited(name)?;
        self.start_adding(table, schema)
    }

    fn start_adding(&mut self, table: Table, schema: &SchemaRef) -> Result<()> {
        let loader = self.loader(&table.schema, full(&table))?;
        let (columns, keys) = (Columns::of(&table, schema)?, vec![Vec::new(); table.key.len()]);
        self.appending = Some(Adding { table, columns, loader, keys, count: 0 });
        Ok(())
    }

    /// Adds some of them; after an error, the transaction can only be undone.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut adding = self.appending.take().ok_or_else(not_begun)?;
        self.deadline.check()?;
        let batch = adding.columns.of_batch(batch, adding.count)?;
        adding.count += batch.num_rows() as u64;
        for (key, column) in adding.keys.iter_mut().zip(key_columns(&adding.table, &batch)?) {
            key.push(column);
        }
        adding.loader.push(&batch, &mut self.new_files)?;
        self.appending = Some(adding);
        Ok(())
    }

    /// Ends it. Gives the rows' number.
    pub fn end_append(&mut self, operation: Operation) -> Result<u64> {
        let (table, count) = self.end_adding()?;
        if count > 0 {
            self.change(table, operation, count);
        }
        Ok(count)
    }

    fn end_adding(&mut self) -> Result<(Table, u64)> {
        let Adding { mut table, loader, keys, count, .. } = self.appending.take().ok_or_else(not_begun)?;
        let files = loader.finish(&mut self.new_files)?;
        if !table.key.is_empty() && count > 0 {
            self.refuse_doubled(&table, &keys)?;
        }
        add_files(&mut table, files);
        self.fold_chunks(&mut table)?;
        Ok((table, count))
    }

    /// Refuses rows with a key that another of them has, or one of the table's.
    fn refuse_doubled(&self, table: &Table, columns: &[Vec<ArrayRef>]) -> Result<()> {
        let joined = |parts: &Vec<ArrayRef>| {
            concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()).map_err(internal)
        };
        let keys = Keys::of(&columns.iter().map(joined).collect::<Result<Vec<_>>>()?)?;
        let doubled = match keys.doubled() {
            Some((_, row)) => Some(row),
            None => self.find(table, &keys, Some(1))?.first().map(|(_, _, row)| *row as usize),
        };
        let Some(row) = doubled else { return Ok(()) };
        let named = format!("({})", table.key.join(", "));
        Err(Error::new(
            Kind::Integrity,
            format!("the table {:?} has the key {named} = {} already", table.name, keys.display(row)),
        )
        .with_sqlstate("23505")
        .with_hint("if_exists=\"upsert\" replaces the rows of a key")
        .at(Place { row: Some(row as u64), ..Place::default() }))
    }

    /// Refuses a key that several of the table's own rows have.
    pub(crate) fn refuse_doubled_rows(&self, table: &Table) -> Result<()> {
        if table.key.is_empty() {
            return Ok(());
        }
        let wanted = Wanted { columns: Some(table.key.clone()), ..Wanted::default() };
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); table.key.len()];
        for batch in table.scan(self.shared.data(), None, &wanted)? {
            columns.iter_mut().zip(batch?.columns()).for_each(|(column, part)| column.push(part.clone()));
        }
        let empty = Table { chunks: Vec::new(), ..table.clone() };
        if columns[0].is_empty() { Ok(()) } else { self.refuse_doubled(&empty, &columns) }
    }

    /// Where the table has these keys: the chunk, its row, and a row of `keys`.
    fn find(&self, table: &Table, keys: &Keys, most: Option<usize>) -> Result<Vec<(usize, u32, u32)>> {
        let places: Vec<usize> = table.key.iter().map(|name| table.position(name)).collect::<Result<_>>()?;
        let schema = Arc::new(table.schema.project(&places).map_err(internal)?);
        let bounds: Vec<_> = (0..places.len()).map(|column| keys.bounds(column)).collect();
        let mut found = Vec::new();
        for (at, chunk) in table.chunks.iter().enumerate() {
            if most.is_some_and(|most| found.len() >= most) {
                break;
            }
            self.deadline.check()?;
            let (mut may_have, mut sorted) = (true, None);
            for (at, (field, bounds)) in schema.fields().iter().zip(&bounds).enumerate() {
                let statistics = field_id(field).map(|id| chunk.file.statistics(id)).transpose()?.flatten();
                may_have &= statistics.is_none_or(|statistics| overlap(statistics, bounds));
                sorted = sorted.or_else(|| statistics.filter(|known| known.is_sorted).map(|_| at));
            }
            if may_have {
                let mapped = Mapped::open(self.shared.data(), &chunk.file, false)?;
                let batch = mapped.batch(&schema)?;
                batch.columns().iter().try_for_each(|column| mapped.validate_column(column))?;
                let rows = keys.find(batch.columns(), sorted)?.into_iter();
                found.extend(
                    rows.filter(|(row, _)| chunk.deleted.binary_search(row).is_err())
                        .map(|(row, key)| (at, row, key)),
                );
            }
        }
        Ok(found)
    }

    fn remove(&mut self, table: &mut Table, positions: &mut Rows<'_>) -> Result<u64> {
        let places: HashMap<u32, usize> =
            table.chunks.iter().enumerate().map(|(at, chunk)| (chunk.number, at)).collect();
        let mut found = Vec::new();
        for batch in positions {
            let batch = batch?;
            let column =
                batch.columns().first().and_then(|column| column.as_any().downcast_ref::<UInt64Array>());
            let column = column
                .filter(|column| column.null_count() == 0)
                .ok_or_else(|| Error::internal("positions are uint64"))?;
            for position in column.values() {
                #[expect(clippy::cast_possible_truncation, reason = "the two halves of a position")]
                let (number, row) = ((position >> 32) as u32, *position as u32);
                let chunk =
                    places.get(&number).copied().ok_or_else(|| Error::internal("a position of no chunk"))?;
                found.push((chunk, row));
            }
        }
        self.mark_deleted(table, found)
    }

    /// Marks rows as deleted; chunks with many such are written again. Gives how many were not marked before.
    fn mark_deleted(&mut self, table: &mut Table, rows: Vec<(usize, u32)>) -> Result<u64> {
        let mut by_chunk: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (chunk, row) in rows {
            by_chunk.entry(chunk).or_default().push(row);
        }
        let mut count = 0;
        for (at, rows) in by_chunk {
            let chunk = &mut table.chunks[at];
            if rows.iter().any(|row| *row >= chunk.file.rows) {
                return Err(Error::internal("a position beyond its chunk"));
            }
            let before = chunk.deleted.len();
            let mut deleted: Vec<u32> = chunk.deleted.iter().copied().chain(rows).collect();
            deleted.sort_unstable();
            deleted.dedup();
            count += (deleted.len() - before) as u64;
            chunk.deleted = deleted.into();
        }
        for at in (0..table.chunks.len()).rev() {
            let chunk = &table.chunks[at];
            let most = chunk.file.rows as usize / if chunk.file.bytes < SMALL { 2 } else { 16 };
            if chunk.rows() > 0 && chunk.deleted.len() > most {
                self.rewrite(table, at..at + 1, u64::MAX)?;
            }
        }
        table.chunks.retain(|chunk| chunk.rows() > 0);
        Ok(count)
    }

    /// Has few chunks of a table that has got many: the last ones become one once there are so many that are no larger than the
    /// very last, so that a row is written again a few times at most.
    fn fold_chunks(&mut self, table: &mut Table) -> Result<()> {
        loop {
            let sizes: Vec<u64> = table.chunks.iter().map(|chunk| chunk.file.bytes).collect();
            let Some(last) = sizes.last() else { return Ok(()) };
            let run = sizes.iter().rev().take_while(|bytes| tier(**bytes) <= tier(*last)).count();
            let start = sizes.len() - run;
            // Dictionaries that have too many values together do not become one: they are not tried again each time.
            let is_full = run.is_multiple_of(FOLDED);
            if is_full && sizes[start..].iter().sum::<u64>() <= full(table) {
                self.rewrite(table, start..sizes.len(), u64::MAX)?;
            } else if sizes.len() > MANY && sizes.len().is_multiple_of(FOLDED) {
                let runs = sizes.windows(FOLDED).map(|run| run.iter().sum::<u64>()).zip(0..);
                let Some((_, start)) = runs.min().filter(|(bytes, _)| *bytes <= FULLEST) else {
                    return Ok(());
                };
                self.rewrite(table, start..start + FOLDED, u64::MAX)?;
            }
            if table.chunks.len() >= sizes.len() {
                return Ok(());
            }
        }
    }

    /// Writes chunks that follow each other again, in chunks of about `full` bytes.
    fn rewrite(&mut self, table: &mut Table, chunks: Range<usize>, full: u64) -> Result<()> {
        let order = table.chunks[chunks.start].order;
        let part = Table { chunks: table.chunks[chunks.clone()].to_vec(), ..table.clone() };
        let wanted = Wanted { verified: true, ..Wanted::default() };
        let files = self.write(&table.schema, full, &mut part.scan(self.shared.data(), None, &wanted)?)?;
        // The last ones have all the room that there is.
        let step = if chunks.end == table.chunks.len() { GAP } else { 1 };
        let new: Vec<Chunk> = files
            .into_iter()
            .zip(next_number(table)..)
            .zip((0_i64..).map(|at| order + at * step))
            .map(|((file, number), order)| Chunk { id: None, number, order, file, deleted: Arc::default() })
            .collect();
        table.chunks.splice(chunks, new);
        Ok(())
    }

    /// New files of about `full` bytes.
    fn write(&mut self, schema: &SchemaRef, full: u64, rows: &mut Rows<'_>) -> Result<Vec<Arc<ChunkFile>>> {
        let mut loader = self.loader(schema, full)?;
        for batch in rows {
            loader.push(&batch?, &mut self.new_files)?;
            self.deadline.check()?;
        }
        loader.finish(&mut self.new_files)
    }

    fn loader(&mut self, schema: &SchemaRef, full: u64) -> Result<Loader> {
        if self.writing.is_none() {
            self.writing = Some(self.shared.locks.writing(&self.deadline)?);
        }
        let full = usize::try_from(full).unwrap_or(usize::MAX);
        Ok(Loader::new(self.shared.data(), schema.clone(), full))
    }
}

/// Rows on their way into a table.
pub(crate) struct Adding {
    table: Table,
    columns: Columns,
    loader: Loader,
    /// Of each column of the key, its parts.
    keys: Vec<Vec<ArrayRef>>,
    count: u64,
}

fn not_begun() -> Error {
    Error::internal("rows are pushed to no table")
}

/// How the columns of rows become those of a table.
struct Columns {
    schema: SchemaRef,
    places: Vec<Option<usize>>,
}

impl Columns {
    fn of(table: &Table, given: &SchemaRef) -> Result<Self> {
        let mut places = vec![None; table.schema.fields().len()];
        for (place, field) in given.fields().iter().enumerate() {
            let at = table.position(field.name())?;
            let known = table.schema.field(at);
            if known.data_type() != field.data_type() {
                let message =
                    format!("the column is {}, and the rows have {}", known.data_type(), field.data_type());
                let native_type = Some(known.data_type().to_string());
                return Err(Error::data(message)
                    .with_hint("cast the rows' column, or replace the table")
                    .at(Place { column: Some(known.name().clone()), row: None, native_type }));
            }
            if places[at].replace(place).is_some() {
                return Err(Error::programming(format!(
                    "two columns of the rows are {:?} of the table",
                    known.name()
                )));
            }
        }
        Ok(Self { schema: table.schema.clone(), places })
    }

    /// The rows with the table's columns, which are so many rows after the first.
    fn of_batch(&self, batch: &RecordBatch, before: u64) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.places.len());
        for (field, place) in self.schema.fields().iter().zip(&self.places) {
            let column = place.map_or_else(
                || arrow_array::new_null_array(field.data_type(), batch.num_rows()),
                |at| batch.column(at).clone(),
            );
            if !field.is_nullable() {
                refuse_nulls(&column, field.name(), before)?;
            }
            columns.push(column);
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(internal)
    }
}

/// Refuses the first NULL of a column, so many rows after the first.
pub(crate) fn refuse_nulls(column: &ArrayRef, name: &str, before: u64) -> Result<()> {
    // A value of a dictionary may be NULL.
    let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let first = nulls.and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row)));
    first
        .map_or(Ok(()), |row| Err(null(name, before + row as u64, "NULL in a column that must have a value")))
}

pub(crate) fn null(column: &str, row: u64, message: &str) -> Error {
    Error::new(Kind::Integrity, message).with_sqlstate("23502").at(Place {
        column: Some(column.to_owned()),
        row: Some(row),
        native_type: None,
    })
}

/// One batch of all rows; each as it is where their dictionaries or texts are too many together.
fn together(schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    match concat_batches(schema, &batches) {
        Ok(batch) => Ok(vec![batch]),
        Err(ArrowError::DictionaryKeyOverflowError | ArrowError::OffsetOverflowError(_)) => Ok(batches),
        Err(error) => Err(internal(error)),
    }
}

fn key_columns(table: &Table, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    table.key.iter().map(|name| Ok(batch.column(table.position(name)?).clone())).collect()
}

fn add_files(table: &mut Table, files: Vec<Arc<ChunkFile>>) {
    let order = table.chunks.last().map_or(0, |chunk| chunk.order + GAP);
    for ((file, number), at) in files.into_iter().zip(next_number(table)..).zip(0..) {
        table.chunks.push(Chunk { id: None, number, order: order + at * GAP, file, deleted: Arc::default() });
    }
}

/// A number that no chunk of the table has.
fn next_number(table: &Table) -> u32 {
    table.chunks.iter().map(|chunk| chunk.number + 1).max().unwrap_or(0)
}

/// The bytes of a full chunk.
fn full(table: &Table) -> u64 {
    (FULL as u64).max(table.bytes() / SHARE).min(FULLEST)
}

/// The size of a chunk as a power of eight.
fn tier(bytes: u64) -> u32 {
    (bytes >> 12).max(1).ilog2() / 3
}
