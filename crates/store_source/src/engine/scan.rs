//! The tables of a store as a table function of the engine's: its callbacks, which read mapped rows.
//!
//! No panic leaves a callback: the engine's frames would be unwound.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, UInt32Array, new_null_array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_select::take::take;
use longshore_core::{EXTENSION, Error, Result, lock};
use longshore_store::{Scan, Scanner, Wanted};

use super::library::{Handle, Library, loaded_library, text};

/// `DUCKDB_TYPE_VARCHAR`.
const VARCHAR: u32 = 17;
/// The most digits of the engine's decimals.
const DIGITS: u8 = 38;

/// The tables that views name by their numbers.
pub(crate) struct Tables {
    /// The engine's connection, by which types and chunks are converted.
    pub(crate) connection: Connection,
    pub(crate) scanners: Mutex<Vec<Arc<Scanner>>>,
    pub(crate) verify: bool,
}

/// A connection, which the engine's threads call back with, too.
#[derive(Clone, Copy)]
pub(crate) struct Connection(pub(crate) Handle);

// SAFETY: what is done with it on other threads is to convert chunks and to interrupt, which the C API allows.
unsafe impl Send for Connection {}
// SAFETY: likewise.
unsafe impl Sync for Connection {}

/// A column's type as the engine has converted it.
struct Converted(Handle);

// SAFETY: it is only read.
unsafe impl Send for Converted {}
// SAFETY: likewise.
unsafe impl Sync for Converted {}

impl Drop for Converted {
    fn drop(&mut self) {
        if let Some(library) = loaded_library() {
            // SAFETY: it is this one's own.
            unsafe { (library.destroy_arrow_converted_schema)(&raw mut self.0) };
        }
    }
}

/// A table that a query names.
struct Bound {
    tables: Arc<Tables>,
    scanner: Arc<Scanner>,
}

/// The scan of one table, which several threads share.
struct Scanning {
    tables: Arc<Tables>,
    columns: Vec<Column>,
    rows: Mutex<Rows>,
}

/// A column that is read. The engine gets each in a chunk of its own: of a chunk, it keeps the memory with the first column alone.
struct Column {
    converted: Converted,
    schema: SchemaRef,
    /// Which of the engine's columns it is.
    place: u64,
}

struct Rows {
    scan: Scan,
    batch: Option<RecordBatch>,
}

/// The engine's error, which is freed.
pub(crate) fn check(library: &Library, mut error: Handle) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is the engine's last one, and freed once.
    unsafe {
        let failed = (library.error_data_has_error)(error);
        let message = text((library.error_data_message)(error));
        (library.destroy_error_data)(&raw mut error);
        if failed { Err(longshore_duckdb::error_of(&message)) } else { Ok(()) }
    }
}

/// Does the work of a callback; the text of its error.
fn guard(work: impl FnOnce() -> Result<()>) -> std::result::Result<(), CString> {
    let done =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("a scan has failed")));
    done.map_err(|error| {
        let hint = error.hint().map(|hint| format!("\nHint: {hint}")).unwrap_or_default();
        CString::new(format!("{}{hint}", error.message()).replace('\0', " ")).unwrap_or_default()
    })
}

/// Frees what [`into_pointer`] has given.
pub(crate) unsafe extern "C" fn delete<T>(object: *mut c_void) {
    // SAFETY: it is of this type, and the engine frees it once.
    drop(unsafe { Box::from_raw(object.cast::<T>()) });
}

/// An object for the engine to keep.
pub(crate) fn into_pointer<T>(object: T) -> *mut c_void {
    Box::into_raw(Box::new(object)).cast()
}

/// Tells the columns of the table whose number is the parameter.
pub(crate) unsafe extern "C" fn bind(info: Handle) {
    let Some(library) = loaded_library() else { return };
    // SAFETY: the information is this call's, and what was registered is an `Arc<Tables>`.
    let done = guard(|| unsafe {
        let tables = &*(library.bind_get_extra_info)(info).cast::<Arc<Tables>>();
        let mut parameter = (library.bind_get_parameter)(info, 0);
        let number = usize::try_from((library.get_int64)(parameter)).unwrap_or(usize::MAX);
        (library.destroy_value)(&raw mut parameter);
        let scanner = lock(&tables.scanners).get(number).cloned();
        let scanner =
            scanner.ok_or_else(|| Error::internal("the engine asks for a table that is not there"))?;
        add_columns(library, tables, &scanner, info)?;
        (library.bind_set_cardinality)(info, scanner.table.rows(), true);
        let bound = Bound { tables: tables.clone(), scanner };
        (library.bind_set_bind_data)(info, into_pointer(bound), delete::<Bound>);
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: as above.
        unsafe { (library.bind_set_error)(info, message.as_ptr()) };
    }
}

/// Adds a table's columns; those that the engine would change are texts until they are read, which is an error.
unsafe fn add_columns(library: &Library, tables: &Tables, scanner: &Scanner, info: Handle) -> Result<()> {
    for field in scanner.table.schema().fields() {
        let name = CString::new(field.name().as_str())
            .map_err(|_| Error::programming("a column's name holds a zero byte"))?;
        // SAFETY: the information and the connection are live; the type is freed once.
        unsafe {
            let mut kind = match refusal(field) {
                Some(_) => (library.create_logical_type)(VARCHAR),
                None => engine_type(library, tables, field)?,
            };
            (library.bind_add_result_column)(info, name.as_ptr(), kind);
            (library.destroy_logical_type)(&raw mut kind);
        }
    }
    Ok(())
}

/// The engine's type of a column: that of a chunk with one NULL.
unsafe fn engine_type(library: &Library, tables: &Tables, field: &Field) -> Result<Handle> {
    let schema = Arc::new(Schema::new(vec![plain(field).with_nullable(true)]));
    let null = new_null_array(schema.field(0).data_type(), 1);
    let column = Column { converted: convert(library, tables, &schema)?, schema, place: 0 };
    let mut chunk = into_chunk(library, tables, &column, null)?;
    // SAFETY: the chunk has one vector, and is freed once.
    unsafe {
        let kind = (library.vector_get_column_type)((library.data_chunk_get_vector)(chunk, 0));
        (library.destroy_data_chunk)(&raw mut chunk);
        Ok(kind)
    }
}

fn convert(library: &Library, tables: &Tables, schema: &Schema) -> Result<Converted> {
    let mut exported = FFI_ArrowSchema::try_from(schema).map_err(|error| internal(&error))?;
    let mut handle = ptr::null_mut();
    // SAFETY: the connection is live, and both structures live here.
    let error =
        unsafe { (library.schema_from_arrow)(tables.connection.0, &raw mut exported, &raw mut handle) };
    check(library, error)?;
    Ok(Converted(handle))
}

/// The values of a column as a chunk of the engine's, which may point into their memory and keeps it.
fn into_chunk(library: &Library, tables: &Tables, column: &Column, values: ArrayRef) -> Result<Handle> {
    let batch =
        RecordBatch::try_new(column.schema.clone(), vec![values]).map_err(|error| internal(&error))?;
    let mut exported = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
    let (connection, converted, mut chunk) = (tables.connection.0, column.converted.0, ptr::null_mut());
    // SAFETY: the array is of the converted schema; the engine takes it, and marks it as released.
    let error =
        unsafe { (library.data_chunk_from_arrow)(connection, &raw mut exported, converted, &raw mut chunk) };
    check(library, error)?;
    Ok(chunk)
}

/// Begins to scan the columns that the query reads.
pub(crate) unsafe extern "C" fn init(info: Handle) {
    let Some(library) = loaded_library() else { return };
    // SAFETY: the information is this call's, and what was bound is a `Bound`.
    let done = guard(|| unsafe {
        let Bound { tables, scanner } = &*(library.init_get_bind_data)(info).cast::<Bound>();
        let schema = scanner.table.schema();
        let (mut names, mut columns) = (Vec::new(), Vec::new());
        for place in 0..(library.init_get_column_count)(info) {
            // What is not a column is a row's number, by which rows are counted; it is not read.
            let at = usize::try_from((library.init_get_column_index)(info, place)).unwrap_or(usize::MAX);
            let Some(field) = schema.fields().get(at) else { continue };
            if let Some(reason) = refusal(field) {
                return Err(refusal_error(field, reason));
            }
            names.push(field.name().clone());
            let schema = Arc::new(Schema::new(vec![plain(field)]));
            columns.push(Column { converted: convert(library, tables, &schema)?, schema, place });
        }
        let verify = tables.verify;
        let wanted =
            Wanted { columns: Some(names), verified: verify, validated: verify, ..Wanted::default() };
        let scan = scanner.scan(&wanted)?;
        // Where the order of rows matters, the engine takes one thread.
        (library.init_set_max_threads)(info, scan.chunks.max(1) as u64);
        let rows = Mutex::new(Rows { scan, batch: None });
        let scanning = Scanning { tables: tables.clone(), columns, rows };
        (library.init_set_init_data)(info, into_pointer(scanning), delete::<Scanning>);
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: as above.
        unsafe { (library.init_set_error)(info, message.as_ptr()) };
    }
}

/// Fills a chunk with the next rows; with none at their end.
pub(crate) unsafe extern "C" fn fill(info: Handle, output: Handle) {
    let Some(library) = loaded_library() else { return };
    // SAFETY: the information and the chunk are this call's, and what was begun is a `Scanning`.
    let done = guard(|| unsafe {
        let scanning = &*(library.function_get_init_data)(info).cast::<Scanning>();
        let most = usize::try_from((library.vector_size)()).unwrap_or(1);
        let Some(batch) = next(scanning, most)? else {
            (library.data_chunk_set_size)(output, 0);
            return Ok(());
        };
        for (column, values) in scanning.columns.iter().zip(batch.columns()) {
            let values = as_read(values).map_err(|error| internal(&error))?;
            let mut chunk = into_chunk(library, &scanning.tables, column, values)?;
            let from = (library.data_chunk_get_vector)(chunk, 0);
            (library.vector_reference_vector)((library.data_chunk_get_vector)(output, column.place), from);
            (library.destroy_data_chunk)(&raw mut chunk);
        }
        (library.data_chunk_set_size)(output, batch.num_rows() as u64);
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: as above.
        unsafe { (library.function_set_error)(info, message.as_ptr()) };
    }
}

/// The next rows, at most so many.
fn next(scanning: &Scanning, most: usize) -> Result<Option<RecordBatch>> {
    let mut rows = lock(&scanning.rows);
    while rows.batch.is_none() {
        let Some(batch) = rows.scan.next().transpose()? else { return Ok(None) };
        // A chunk without rows would be the end.
        rows.batch = Some(batch).filter(|batch| batch.num_rows() > 0);
    }
    let Some(batch) = rows.batch.take() else { return Ok(None) };
    let part = batch.slice(0, most.min(batch.num_rows()));
    if batch.num_rows() > most {
        rows.batch = Some(batch.slice(most, batch.num_rows() - most));
    }
    Ok(Some(part))
}

/// A column as the engine reads it without a fault: labels as their values, and what is nested without an offset.
fn as_read(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let Some(labels) = column.as_any_dictionary_opt() {
        return take(labels.values(), labels.keys(), None);
    }
    if !column.data_type().is_nested() {
        return Ok(column.clone());
    }
    let count = u32::try_from(column.len()).unwrap_or(u32::MAX);
    take(column, &UInt32Array::from_iter_values(0..count), None)
}

/// A column's field as the engine sees it: labels are their values.
fn plain(field: &Field) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, values) => {
            Field::new(field.name(), values.as_ref().clone(), field.is_nullable())
        }
        _ => field.clone(),
    }
}

/// Why the engine would change values of a column, or a part of it.
fn refusal(field: &Field) -> Option<&'static str> {
    match field.metadata().get(EXTENSION).map(String::as_str) {
        None | Some("arrow.uuid" | "arrow.json") => {}
        Some(_) => return Some("the engine does not know the extension type"),
    }
    match field.data_type() {
        DataType::Dictionary(_, values) => refusal(&Field::new("", values.as_ref().clone(), true)),
        kind => refusal_of(kind),
    }
}

fn refusal_of(kind: &DataType) -> Option<&'static str> {
    match kind {
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Nanosecond, Some(_))
        | DataType::Time64(TimeUnit::Nanosecond)
        | DataType::Duration(_)
        | DataType::Interval(_) => Some("the engine has microseconds alone"),
        DataType::Date64 => Some("the engine's dates have no time of day"),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale)
            if *digits > DIGITS || *scale < 0 || i16::from(*scale) > i16::from(*digits) =>
        {
            Some("the engine's decimals have 38 digits")
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => refusal_within(item),
        DataType::Map(entries, _) => refusal_within(entries),
        DataType::Struct(fields) if fields.is_empty() => Some("the engine has no structs without fields"),
        DataType::Struct(fields) => fields.iter().find_map(|field| refusal_within(field)),
        DataType::Float16 | DataType::Decimal256(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            Some("the engine has no such type")
        }
        _ => None,
    }
}

/// Within others, labels are not taken apart.
fn refusal_within(field: &Field) -> Option<&'static str> {
    match field.data_type() {
        DataType::Dictionary(..) => Some("the engine is not given labels within others"),
        _ => refusal(field),
    }
}

fn refusal_error(field: &Field, reason: &str) -> Error {
    Error::not_supported(format!("column {:?} is {}: {reason}", field.name(), field.data_type()))
        .with_hint("read it without SQL, by SELECT of the table's columns, or leave it out")
}

fn internal(error: &ArrowError) -> Error {
    Error::internal(error.to_string())
}
