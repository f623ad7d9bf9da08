//! A chunk: one Arrow IPC file with one record batch, which never changes, and which of its rows are deleted.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Arc, Mutex, Once, OnceLock};

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Footer, root_as_footer};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use longshore_core::{Error, Result, lock};
use longshore_parts::Parts;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::encoding::encode;
use crate::map;
use crate::statistics::ColumnStatistics;

/// The metadata that numbers a field: names change, and may be used again.
pub(crate) const FIELD_ID: &str = "longshore.id";

/// The end of a file: the length of the footer, and the format's name.
const TRAILER: usize = 10;

/// Bytes that are written at once: few enough that they are in the processor's cache when their checksum is taken.
const PIECE: usize = 256 << 10;

/// The bytes from which on a part of a column is written by itself.
const LARGE: usize = 64 << 10;

const DAMAGED: &str = "store.check() tells what else is damaged; restore the file from a copy of the store, or read another version";

/// A file of a table, and the rows of it that are deleted.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Its number in the catalogue; `None` for one that no commit has.
    pub(crate) id: Option<i64>,
    /// The number that tells it from the table's other chunks while a transaction lasts.
    pub(crate) number: u32,
    /// Where it stands among them.
    pub(crate) order: i64,
    pub(crate) file: Arc<ChunkFile>,
    /// The positions of deleted rows, ascending.
    pub(crate) deleted: Arc<[u32]>,
}

/// The facts of a file in the catalogue.
#[derive(Debug)]
pub(crate) struct ChunkFile {
    pub(crate) name: String,
    pub(crate) rows: u32,
    pub(crate) bytes: u64,
    pub(crate) checksum: u64,
    pub(crate) statistics: String,
    /// The file of its encoded columns, where it has some.
    pub(crate) encoded: Option<Arc<ChunkFile>>,
    parsed: OnceLock<BTreeMap<i32, ColumnStatistics>>,
}

impl Chunk {
    /// The rows that are not deleted.
    pub(crate) fn rows(&self) -> u64 {
        u64::from(self.file.rows) - self.deleted.len() as u64
    }
}

impl ChunkFile {
    /// A file with its rows, bytes and checksum, and the file of its encoded columns by bytes and checksum.
    pub(crate) fn new(
        name: String,
        rows: u32,
        (bytes, checksum): (u64, u64),
        encoded: Option<(u64, u64)>,
        statistics: String,
    ) -> Self {
        let file = |written| Arc::new(Self::new(encoded_name(&name), rows, written, None, String::new()));
        let encoded = encoded.map(file);
        Self { name, rows, bytes, checksum, statistics, encoded, parsed: OnceLock::new() }
    }

    /// Itself, and the file of its encoded columns.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.encoded.as_deref())
    }

    /// The facts of a column's values: none of one that the file lacks.
    pub(crate) fn statistics(&self, field: &Field) -> Result<Option<&ColumnStatistics>> {
        if self.parsed.get().is_none() {
            let parsed = serde_json::from_str(&self.statistics).map_err(|error| {
                Error::operational(format!("the catalogue is damaged: statistics of a chunk: {error}"))
            })?;
            let _ = self.parsed.set(parsed);
        }
        Ok(self.parsed.get().zip(field_id(field)).and_then(|(columns, id)| columns.get(&id)))
    }
}

/// The name of the file of a chunk's encoded columns.
pub(crate) fn encoded_name(name: &str) -> String {
    format!("{}.encoded.arrow", name.trim_end_matches(".arrow"))
}

/// The number of a table's field.
pub(crate) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID)?.parse().ok()
}

/// Writes a file, and returns once it has reached the disk: its length and checksum. A file that could not be written whole is removed.
pub(crate) fn write(path: &Path, rows: &Parts) -> Result<(u64, u64)> {
    write_synced(path, rows).map_err(|error| {
        // What is left of it is without an owner, and the next open removes it.
        let _ = fs::remove_file(path);
        let failed = Error::operational(format!("writing {}: {error}", path.display()))
            .with_hint("nothing was committed; mind the disk's space and permissions, and write again");
        match &error {
            ArrowError::IoError(_, cause) if cause.kind() == io::ErrorKind::StorageFull => {
                failed.with_sqlstate("53100")
            }
            _ => failed,
        }
    })
}

fn write_synced(path: &Path, rows: &Parts) -> Result<(u64, u64), ArrowError> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let output = BufWriter::with_capacity(LARGE, Checked { file, hash: Xxh3::new(), bytes: 0 });
    let output = longshore_parts::write(rows, output)?;
    let checked = output.into_inner().map_err(io::IntoInnerError::into_error)?;
    // A failure is not tried again: the system may have dropped what it could not write.
    checked.file.sync_all()?;
    Ok((checked.bytes, checked.hash.digest()))
}

/// A file whose checksum is taken as it is written.
struct Checked {
    file: File,
    hash: Xxh3,
    bytes: u64,
}

impl Write for Checked {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let count = self.file.write(&data[..data.len().min(PIECE)])?;
        self.hash.update(&data[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is mapped, and whose structure is that of the catalogue.
pub(crate) struct Mapped {
    path: PathBuf,
    data: Buffer,
    /// With the fields' numbers.
    pub(crate) schema: SchemaRef,
    rows: usize,
    /// The columns that have been read of a file that stays mapped: all, and encoded ones by their fields.
    columns: OnceLock<RecordBatch>,
    encoded: Mutex<HashMap<i32, Option<ArrayRef>>>,
}

impl Mapped {
    /// Maps a file once its length is known to be right: one that was cut would end the process when it is read.
    pub(crate) fn open(directory: &Path, file: &ChunkFile, writable: bool) -> Result<Self> {
        let path = directory.join(&file.name);
        let opened = File::open(&path).map_err(|error| {
            Error::operational(format!("the store's file {}: {error}", path.display())).with_hint(DAMAGED)
        })?;
        let bytes = opened.metadata().map_err(|error| damage(&path, &error))?.len();
        if bytes != file.bytes {
            return Err(damage(&path, &format_args!("it has {bytes} bytes, of {}", file.bytes)));
        }
        let data = map::map(&opened, writable).map_err(|error| damage(&path, &error))?;
        let schema = try_fb_to_schema(
            footer(&data, &path)?.schema().ok_or_else(|| damage(&path, &"it has no schema"))?,
        );
        let schema = Arc::new(schema.map_err(|error| damage(&path, &error))?);
        let (columns, encoded) = (OnceLock::new(), Mutex::default());
        Ok(Self { path, data, schema, rows: file.rows as usize, columns, encoded })
    }

    /// Has all columns ready for whoever reads some of them, again and again.
    pub(crate) fn prepare(&self) -> Result<()> {
        let _ = self.columns.set(self.decode(None)?);
        Ok(())
    }

    /// Whether it has a column of a field.
    pub(crate) fn has(&self, field: i32) -> bool {
        self.schema.fields().iter().any(|known| field_id(known) == Some(field))
    }

    /// A column of this file, encoded here; `None` where it cannot be.
    pub(crate) fn encode(&self, id: i32, field: &Field, column: &ArrayRef) -> Option<ArrayRef> {
        lock(&self.encoded).entry(id).or_insert_with(|| encode(field, slice::from_ref(column))).clone()
    }

    /// The columns of a table's fields, NULLs for those that the file lacks.
    pub(crate) fn batch(&self, wanted: &SchemaRef) -> Result<RecordBatch> {
        let ids = self.schema.fields().iter().map(|field| field_id(field));
        let positions: BTreeMap<_, usize> = ids.zip(0..).collect();
        let place = |field: &FieldRef| positions.get(&field_id(field)).copied();
        let places: Vec<Option<usize>> = wanted.fields().iter().map(place).collect();
        let read: Vec<usize> = places.iter().copied().flatten().collect();
        let batch = match self.columns.get() {
            Some(all) => all.project(&read).map_err(|error| damage(&self.path, &error))?,
            None => self.decode(Some(read))?,
        };
        let mut read = batch.columns().iter().cloned();
        let columns = wanted.fields().iter().zip(&places).map(|(field, place)| {
            let column = place.and_then(|_| read.next());
            column.unwrap_or_else(|| new_null_array(field.data_type(), self.rows))
        });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(wanted.clone(), columns.collect(), &options)
            .map_err(|error| damage(&self.path, &error))
    }

    /// Compares the whole file with its checksum.
    pub(crate) fn verify(&self, file: &ChunkFile) -> Result<()> {
        if xxh3_64(&self.data) == file.checksum {
            Ok(())
        } else {
            Err(damage(&self.path, &"its checksum is another"))
        }
    }

    /// Looks at the values of a column, for who reads them here: offsets, texts, keys of dictionaries.
    pub(crate) fn validate_column(&self, column: &dyn Array) -> Result<()> {
        // Of numbers, any is one.
        if column.data_type().is_primitive() {
            return Ok(());
        }
        column.to_data().validate_full().map_err(|error| damage(&self.path, &error))
    }

    /// Looks at every value.
    pub(crate) fn validate(&self) -> Result<()> {
        self.decode(None)?.columns().iter().try_for_each(|column| self.validate_column(column))
    }

    fn decode(&self, columns: Option<Vec<usize>>) -> Result<RecordBatch> {
        let footer = footer(&self.data, &self.path)?;
        let decode = || -> Result<RecordBatch, ArrowError> {
            let mut decoder = map::trusting(FileDecoder::new(self.schema.clone(), footer.version()));
            if let Some(columns) = columns {
                decoder = decoder.with_projection(columns);
            }
            for block in footer.dictionaries().iter().flatten() {
                decoder.read_dictionary(block, &self.block(block))?;
            }
            let blocks = footer.recordBatches();
            let block = blocks.filter(|blocks| blocks.len() == 1).map(|blocks| blocks.get(0));
            let block = block.ok_or_else(|| ArrowError::ParseError("it has not one record batch".into()))?;
            let batch = decoder.read_record_batch(block, &self.block(block))?;
            let batch = batch.filter(|batch| batch.num_rows() == self.rows);
            batch.ok_or_else(|| ArrowError::ParseError(format!("it has not {} rows", self.rows)))
        };
        // A part that lies beyond the file, or beyond the part that it is in, makes Arrow panic, before anything is read.
        let batch = catch(decode)
            .unwrap_or_else(|| {
                Err(ArrowError::ParseError(
                    "its parts lie beyond its end, or are not those of its schema".into(),
                ))
            })
            .map_err(|error| damage(&self.path, &error))?;
        for column in batch.columns() {
            column.to_data().validate().map_err(|error| damage(&self.path, &error))?;
        }
        Ok(batch)
    }

    /// The bytes of a message and of its buffers.
    fn block(&self, block: &Block) -> Buffer {
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let length = size(block.metaDataLength().into()).saturating_add(size(block.bodyLength()));
        self.data.slice_with_length(size(block.offset()), length)
    }
}

fn footer<'a>(data: &'a Buffer, path: &Path) -> Result<Footer<'a>> {
    let read = || {
        let end = data.len().checked_sub(TRAILER)?;
        let length = read_footer_length(data[end..].try_into().ok()?).ok()?;
        root_as_footer(&data[end.checked_sub(length)?..end]).ok()
    };
    read().ok_or_else(|| damage(path, &"it does not end as an Arrow file"))
}

pub(crate) fn damage(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::operational(format!("the store's file {} is damaged: {reason}", path.display())).with_hint(DAMAGED)
}

/// A schema as its callers know it: without the numbers of fields.
pub(crate) fn without_ids(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.remove(FIELD_ID);
        field.as_ref().clone().with_metadata(metadata)
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

thread_local! {
    /// Whether a panic is an error, and not a word on the standard error.
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Does work that may panic, on what no check has found; `None` where it has.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            if !IS_EXPECTED.get() {
                otherwise(told);
            }
        }));
    });
    let before = IS_EXPECTED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    IS_EXPECTED.set(before);
    done
}
