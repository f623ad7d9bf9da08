//! The changes of a table's rows: chunks that are added, marked, folded and written again.

use std::collections::HashSet;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use longshore_core::{Error, Frame, Kind, Place, Result};

use crate::catalogue::fold;
use crate::chunk::{Chunk, ChunkFile, Mapped};
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

/// Batches with a column of [`crate::POSITION`].
type Positions<'a> = dyn Iterator<Item = Result<RecordBatch>> + 'a;

impl Transaction {
    /// Adds rows, whose columns have the table's names and types; those that are missing are NULL. Gives their number.
    pub fn append(&mut self, name: &str, rows: Frame, operation: Operation) -> Result<u64> {
        self.begin_append(name, &rows.schema)?;
        self.push_all(rows)?;
        self.end_append(operation)
    }

    /// Replaces the rows of the same keys, and adds the others. Of rows with one key, the last counts. Gives the rows' number.
    pub fn upsert(&mut self, name: &str, key: &[String], rows: Frame) -> Result<u64> {
        let table = self.edit(name)?;
        let wanted: HashSet<String> = key.iter().map(|name| fold(name)).collect();
        if wanted.is_empty() || wanted != table.key.iter().map(|name| fold(name)).collect() {
            return Err(Error::programming(format!(
                "the table {name:?} has no primary key on {}",
                key.join(", ")
            ))
            .with_sqlstate("42P10")
            .with_hint(format!("its primary key is ({})", table.key.join(", "))));
        }
        self.start_adding(table, &rows.schema, true)?;
        self.push_all(rows)?;
        let (table, count) = self.end_adding()?;
        self.change(table, "upsert", count);
        Ok(count)
    }

    /// Deletes the rows at these positions, which a scan of this transaction has given. Gives how many.
    pub fn delete(&mut self, name: &str, positions: &mut Positions<'_>) -> Result<u64> {
        let mut table = self.edit(name)?;
        let count = self.remove(&mut table, positions)?;
        self.change(table, "delete", count);
        Ok(count)
    }

    /// Replaces the rows at these positions by others. Gives how many were there.
    pub fn update(&mut self, name: &str, positions: &mut Positions<'_>, rows: Frame) -> Result<u64> {
        let mut table = self.edit(name)?;
        let count = self.remove(&mut table, positions)?;
        self.start_adding(table, &rows.schema, false)?;
        self.push_all(rows)?;
        let (table, _) = self.end_adding()?;
        self.change(table, "update", count);
        Ok(count)
    }

    /// Deletes all rows. Gives how many.
    pub fn truncate(&mut self, name: &str) -> Result<u64> {
        let mut table = self.edit(name)?;
        let count = table.rows();
        table.chunks.clear();
        self.change(table, "truncate", count);
        Ok(count)
    }

    /// Writes a table's rows again, in few files without deleted rows.
    pub fn compact(&mut self, name: &str) -> Result<()> {
        let mut table = self.edit(name)?;
        let all = 0..table.chunks.len();
        let is_compact = all.len() < 2
            && table.chunks.iter().all(|chunk| chunk.deleted.is_empty())
            && table.files_are_current(&self.shared.data)?;
        if !is_compact {
            let full = full(&table);
            self.rewrite(&mut table, all, full)?;
            self.change(table, "compact", 0);
        }
        Ok(())
    }

    /// Begins to add rows that come bit by bit, with `push` and `end_append`: they go into as few files as if they came at once.
    pub fn begin_append(&mut self, name: &str, schema: &SchemaRef) -> Result<()> {
        let table = self.edit(name)?;
        self.start_adding(table, schema, false)
    }

    fn start_adding(&mut self, table: Table, schema: &SchemaRef, replaces: bool) -> Result<()> {
        let loader = self.loader(&table.schema, full(&table))?;
        let (places, keys) = (places(&table, schema)?, vec![Vec::new(); table.key.len()]);
        self.appending = Some(Adding { table, places, replaces, loader, keys, count: 0 });
        Ok(())
    }

    /// Adds some of them; after an error, the transaction can only be undone.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut adding = self.appending.take().ok_or_else(not_begun)?;
        self.deadline.check()?;
        let batch = adding.columns_of(batch)?;
        adding.count += batch.num_rows() as u64;
        for (key, name) in adding.keys.iter_mut().zip(&adding.table.key) {
            key.push(batch.column(adding.table.position(name)?).clone());
        }
        adding.loader.push(&batch, &mut self.new_files)?;
        if adding.replaces && adding.loader.has_files() {
            self.add(&mut adding)?;
        }
        self.appending = Some(adding);
        Ok(())
    }

    fn push_all(&mut self, rows: Frame) -> Result<()> {
        for batch in rows.batches {
            self.push(&batch?)?;
        }
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
        let mut adding = self.appending.take().ok_or_else(not_begun)?;
        self.add(&mut adding)?;
        self.fold_chunks(&mut adding.table)?;
        Ok((adding.table, adding.count))
    }

    /// Makes chunks of the rows that have come. A key that is there already is refused, or replaced.
    fn add(&mut self, adding: &mut Adding) -> Result<()> {
        let Adding { table, loader, keys, .. } = adding;
        let new = chunks_of(table, loader.finish(&mut self.new_files)?, end(table), GAP);
        let mut replaced = Vec::new();
        if !new.is_empty() && !table.key.is_empty() {
            let keys = keys_of(&keys.iter_mut().map(mem::take).collect::<Vec<_>>())?;
            let found = self.find(table, &keys)?;
            if !adding.replaces {
                refuse_doubled(table, &keys, &found)?;
            }
            replaced.extend(found.into_iter().map(|(position, _)| position));
            let start = |end: &mut u32, chunk: &Chunk| Some(mem::replace(end, *end + chunk.file.rows));
            let starts: Vec<u32> = new.iter().scan(0, start).collect();
            replaced.extend(keys.replaced_rows().iter().map(|row| {
                let at = starts.partition_point(|start| start <= row) - 1;
                position(&new[at], row - starts[at])
            }));
        }
        table.chunks.extend(new);
        self.mark_deleted(table, replaced).map(drop)
    }

    /// Refuses a key that several of the table's own rows have.
    pub(crate) fn refuse_doubled_rows(&self, table: &Table) -> Result<()> {
        if table.key.is_empty() {
            return Ok(());
        }
        let wanted = Wanted { columns: Some(table.key.clone()), ..Wanted::default() };
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); table.key.len()];
        for batch in table.scan(&self.shared.data, None, &wanted)? {
            columns.iter_mut().zip(batch?.columns()).for_each(|(column, part)| column.push(part.clone()));
        }
        if columns[0].is_empty() { Ok(()) } else { refuse_doubled(table, &keys_of(&columns)?, &[]) }
    }

    /// The positions at which the table has these keys, each with a row of `keys`.
    fn find(&self, table: &Table, keys: &Keys) -> Result<Vec<(u64, u32)>> {
        let places: Vec<usize> = table.key.iter().map(|name| table.position(name)).collect::<Result<_>>()?;
        let schema = Arc::new(table.schema.project(&places).map_err(internal)?);
        let bounds: Vec<_> = (0..places.len()).map(|column| keys.bounds(column)).collect();
        let mut found = Vec::new();
        for chunk in &table.chunks {
            self.deadline.check()?;
            let (mut may_have, mut sorted) = (true, None);
            for (at, (field, bounds)) in schema.fields().iter().zip(&bounds).enumerate() {
                let statistics = chunk.file.statistics(field)?;
                may_have &= statistics.is_none_or(|statistics| overlap(statistics, bounds));
                sorted = sorted.or_else(|| statistics.filter(|known| known.is_sorted).map(|_| at));
            }
            if may_have {
                let mapped = Mapped::open(&self.shared.data, &chunk.file, false)?;
                let batch = mapped.batch(&schema)?;
                batch.columns().iter().try_for_each(|column| mapped.validate_column(column))?;
                let rows = keys.find(batch.columns(), sorted)?.into_iter();
                let rows = rows.filter(|(row, _)| chunk.deleted.binary_search(row).is_err());
                found.extend(rows.map(|(row, key)| (position(chunk, row), key)));
            }
        }
        Ok(found)
    }

    fn remove(&mut self, table: &mut Table, batches: &mut Positions<'_>) -> Result<u64> {
        let mut positions = Vec::new();
        for batch in batches {
            let batch = batch?;
            let column = batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
            let column = column.filter(|column| column.null_count() == 0);
            positions.extend(column.ok_or_else(|| Error::internal("positions are uint64"))?.values());
        }
        self.mark_deleted(table, positions)
    }

    /// Marks rows as deleted; chunks with many such are written again. Gives how many were not marked before.
    fn mark_deleted(&mut self, table: &mut Table, mut positions: Vec<u64>) -> Result<u64> {
        positions.sort_unstable();
        positions.dedup();
        let (mut known, mut count) = (0, 0);
        for chunk in &mut table.chunks {
            let place = |row| positions.partition_point(|known| *known < position(chunk, 0) + u64::from(row));
            let rows = &positions[place(0)..place(chunk.file.rows)];
            if rows.is_empty() {
                continue;
            }
            known += rows.len();
            let before = chunk.deleted.len();
            #[expect(clippy::cast_possible_truncation, reason = "the second half of a position")]
            let rows = rows.iter().map(|position| *position as u32);
            let mut deleted: Vec<u32> = chunk.deleted.iter().copied().chain(rows).collect();
            deleted.sort_unstable();
            deleted.dedup();
            count += (deleted.len() - before) as u64;
            chunk.deleted = deleted.into();
        }
        if known < positions.len() {
            return Err(Error::internal("a position of no row"));
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
        let mut loader = self.loader(&table.schema, full)?;
        for batch in part.scan(&self.shared.data, None, &wanted)? {
            loader.push(&batch?, &mut self.new_files)?;
            self.deadline.check()?;
        }
        let files = loader.finish(&mut self.new_files)?;
        // The last ones have all the room that there is.
        let step = if chunks.end == table.chunks.len() { GAP } else { 1 };
        let new = chunks_of(table, files, order, step);
        table.chunks.splice(chunks, new);
        Ok(())
    }

    fn loader(&mut self, schema: &SchemaRef, full: u64) -> Result<Loader> {
        if self.writing.is_none() {
            self.writing = Some(self.shared.locks.writing(&self.deadline)?);
        }
        let full = usize::try_from(full).unwrap_or(usize::MAX);
        Ok(Loader::new(&self.shared.data, schema.clone(), full))
    }
}

/// Rows on their way into a table.
pub(crate) struct Adding {
    table: Table,
    /// Of each of its columns the one of the rows, where they have it.
    places: Vec<Option<usize>>,
    /// Whether they replace the rows of the same keys.
    replaces: bool,
    loader: Loader,
    /// Of each column of the key, its parts.
    keys: Vec<Vec<ArrayRef>>,
    count: u64,
}

fn not_begun() -> Error {
    Error::internal("rows are pushed to no table")
}

/// Of each of a table's columns the one of rows, where they have it.
fn places(table: &Table, rows: &SchemaRef) -> Result<Vec<Option<usize>>> {
    let mut places = vec![None; table.schema.fields().len()];
    for (place, field) in rows.fields().iter().enumerate() {
        let at = table.position(field.name())?;
        let (name, kind) = (table.schema.field(at).name(), table.schema.field(at).data_type());
        if kind != field.data_type() {
            let message = format!("the column is {kind}, and the rows have {}", field.data_type());
            let (column, native_type) = (Some(name.clone()), Some(kind.to_string()));
            return Err(Error::data(message)
                .with_hint("cast the rows' column, or replace the table")
                .at(Place { column, row: None, native_type }));
        }
        if places[at].replace(place).is_some() {
            return Err(Error::programming(format!("two columns of the rows are {name:?} of the table")));
        }
    }
    Ok(places)
}

impl Adding {
    /// The next rows, with the table's columns.
    fn columns_of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.places.len());
        for (field, place) in self.table.schema.fields().iter().zip(&self.places) {
            let column = place.map(|at| batch.column(at).clone());
            let column = column.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()));
            if !field.is_nullable() {
                refuse_nulls(&column, field.name(), self.count)?;
            }
            columns.push(column);
        }
        RecordBatch::try_new(self.table.schema.clone(), columns).map_err(internal)
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

/// Refuses rows with a key that another of them has, or one that a table has at what was `found` there.
fn refuse_doubled(table: &Table, keys: &Keys, found: &[(u64, u32)]) -> Result<()> {
    let doubled = keys.doubled_rows().map(|(_, row)| row);
    let Some(row) = doubled.or_else(|| Some(found.first()?.1 as usize)) else { return Ok(()) };
    let (named, shown) = (table.key.join(", "), keys.display(row)?);
    let message = format!("the table {:?} has the key ({named}) = {shown} already", table.name);
    Err(Error::new(Kind::Integrity, message)
        .with_sqlstate("23505")
        .with_hint("if_exists=\"upsert\" replaces the rows of a key")
        .at(Place { row: Some(row as u64), ..Place::default() }))
}

/// Keys whose columns lie in parts.
fn keys_of(columns: &[Vec<ArrayRef>]) -> Result<Keys> {
    let joined = |parts: &Vec<ArrayRef>| {
        concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(internal)
    };
    Keys::of(&columns.iter().map(joined).collect::<Result<Vec<_>>>()?)
}

/// Files as new chunks of a table, from a place among its others on, so far apart.
fn chunks_of(table: &Table, files: Vec<Arc<ChunkFile>>, first: i64, step: i64) -> Vec<Chunk> {
    // Numbers that no chunk of the table has.
    let next = table.chunks.iter().map(|chunk| chunk.number + 1).max().unwrap_or(0);
    let chunk = |((file, number), at)| Chunk {
        id: None,
        number,
        order: first + at * step,
        file,
        deleted: Arc::default(),
    };
    files.into_iter().zip(next..).zip(0..).map(chunk).collect()
}

/// The place after a table's last chunk.
fn end(table: &Table) -> i64 {
    table.chunks.last().map_or(0, |chunk| chunk.order + GAP)
}

/// The position of a chunk's row among all of its table's.
fn position(chunk: &Chunk, row: u32) -> u64 {
    u64::from(chunk.number) << 32 | u64::from(row)
}

/// The bytes of a full chunk.
fn full(table: &Table) -> u64 {
    let bytes: u64 = table.chunks.iter().map(|chunk| chunk.file.bytes).sum();
    (bytes / SHARE).clamp(FULL as u64, FULLEST)
}

/// The size of a chunk as a power of eight.
fn tier(bytes: u64) -> u32 {
    (bytes >> 12).max(1).ilog2() / 3
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::statistics::random;
    use crate::{Access, Definition, Snapshot, Store};

    #[test]
    fn of_rows_with_one_key_the_last_counts_in_whatever_chunks_they_are() {
        let folder = std::env::temp_dir().join(format!("longshore-upsert-{}", std::process::id()));
        let store = Store::open(&folder, Access::Create).unwrap();
        let mut transaction = store.begin(Snapshot::Newest).unwrap();
        let mut below = random(9);
        let mut model = std::collections::BTreeMap::new();
        let mut batch = |rows: i64| {
            let keys: Int64Array = (0..rows).map(|_| Some(below(700).cast_signed())).collect();
            let values: Int64Array = (0..rows).map(|_| Some(below(1 << 40).cast_signed())).collect();
            model.extend(keys.values().iter().copied().zip(values.values().iter().copied()));
            let columns = [("k", Arc::new(keys) as ArrayRef), ("v", Arc::new(values) as ArrayRef)];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let schema = batch(0).schema();
        let definition = Definition { schema: schema.clone(), key: vec!["k".to_owned()], text: None };
        transaction.create("t", &definition, false).unwrap();
        for _ in 0..3 {
            let table = transaction.edit("t").unwrap();
            transaction.start_adding(table, &schema, true).unwrap();
            let adding = transaction.appending.as_mut().unwrap();
            // Chunks of few rows, some of which are full before the last row has come.
            adding.loader = Loader::new(&store.0.data, adding.table.schema.clone(), 1_000);
            for rows in [300, 20, 30, 500] {
                transaction.push(&batch(rows)).unwrap();
            }
            transaction.end_append("upsert").unwrap();
        }
        transaction.commit().unwrap();
        let mut transaction = store.begin(Snapshot::Newest).unwrap();
        let read = transaction.scan("t", &Wanted::default()).unwrap().map(Result::unwrap);
        let mut found: Vec<(i64, i64)> = Vec::new();
        for batch in read {
            let [keys, values] =
                [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().values().clone());
            found.extend(keys.iter().copied().zip(values.iter().copied()));
        }
        found.sort_unstable();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
