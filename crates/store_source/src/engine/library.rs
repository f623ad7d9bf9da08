//! The functions of a libduckdb that the caller names: `DuckDB`'s C API (duckdb.org/docs/api/c), so far as it is used.

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use longshore_core::{Error, Kind, Result};

/// An object of the engine's.
pub(crate) type Handle = *mut c_void;
/// The function that the engine calls to free what it was given.
pub(crate) type Delete = unsafe extern "C" fn(*mut c_void);
/// A callback of a table function.
pub(crate) type Callback = unsafe extern "C" fn(Handle);
/// The callback that fills a chunk.
pub(crate) type Fill = unsafe extern "C" fn(Handle, Handle);

/// `duckdb_result`, of which only the engine knows the inside.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawResult {
    deprecated: [u64; 3],
    columns: Handle,
    message: *mut c_char,
    data: Handle,
}

impl RawResult {
    pub(crate) fn none() -> Self {
        Self {
            deprecated: [0; 3],
            columns: std::ptr::null_mut(),
            message: std::ptr::null_mut(),
            data: std::ptr::null_mut(),
        }
    }
}

/// `duckdb_hugeint`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HugeInt {
    lower: u64,
    upper: i64,
}

impl From<i128> for HugeInt {
    fn from(value: i128) -> Self {
        // The halves of it.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Self { lower: value as u64, upper: (value >> 64) as i64 }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        #[allow(missing_docs)]
        pub(crate) struct Library {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Never unloaded: its threads may outlast their database.
            _kept: std::mem::ManuallyDrop<libloading::Library>,
        }

        impl Library {
            #[allow(unsafe_code)]
            fn load(path: &Path) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the caller names the library, whose initialisers run, and answers for it as for the driver itself.
                let library = unsafe { libloading::Library::new(path) }?;
                // SAFETY: the types are those of the header.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!("duckdb_", stringify!($name), "\0").as_bytes())?,)*
                        _kept: std::mem::ManuallyDrop::new(library),
                    })
                }
            }
        }
    };
}

functions! {
    create_config: fn(*mut Handle) -> u32;
    set_config: fn(Handle, *const c_char, *const c_char) -> u32;
    destroy_config: fn(*mut Handle);
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> u32;
    close: fn(*mut Handle);
    connect: fn(Handle, *mut Handle) -> u32;
    disconnect: fn(*mut Handle);
    interrupt: fn(Handle);
    free: fn(*mut c_void);
    query: fn(Handle, *const c_char, *mut RawResult) -> u32;
    prepare: fn(Handle, *const c_char, *mut Handle) -> u32;
    prepare_error: fn(Handle) -> *const c_char;
    destroy_prepare: fn(*mut Handle);
    nparams: fn(Handle) -> u64;
    bind_value: fn(Handle, u64, Handle) -> u32;
    pending_prepared_streaming: fn(Handle, *mut Handle) -> u32;
    pending_error: fn(Handle) -> *const c_char;
    execute_pending: fn(Handle, *mut RawResult) -> u32;
    destroy_pending: fn(*mut Handle);
    result_error: fn(*mut RawResult) -> *const c_char;
    destroy_result: fn(*mut RawResult);
    column_count: fn(*mut RawResult) -> u64;
    column_name: fn(*mut RawResult, u64) -> *const c_char;
    column_logical_type: fn(*mut RawResult, u64) -> Handle;
    prepared_statement_column_count: fn(Handle) -> u64;
    prepared_statement_column_name: fn(Handle, u64) -> *const c_char;
    prepared_statement_column_logical_type: fn(Handle, u64) -> Handle;
    fetch_chunk: fn(RawResult) -> Handle;
    destroy_data_chunk: fn(*mut Handle);
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    data_chunk_set_size: fn(Handle, u64);
    vector_size: fn() -> u64;
    vector_get_column_type: fn(Handle) -> Handle;
    vector_reference_vector: fn(Handle, Handle);
    create_logical_type: fn(u32) -> Handle;
    destroy_logical_type: fn(*mut Handle);
    connection_get_arrow_options: fn(Handle, *mut Handle);
    destroy_arrow_options: fn(*mut Handle);
    to_arrow_schema: fn(Handle, *mut Handle, *const *const c_char, u64, *mut FFI_ArrowSchema) -> Handle;
    data_chunk_to_arrow: fn(Handle, Handle, *mut FFI_ArrowArray) -> Handle;
    schema_from_arrow: fn(Handle, *mut FFI_ArrowSchema, *mut Handle) -> Handle;
    data_chunk_from_arrow: fn(Handle, *mut FFI_ArrowArray, Handle, *mut Handle) -> Handle;
    destroy_arrow_converted_schema: fn(*mut Handle);
    error_data_has_error: fn(Handle) -> bool;
    error_data_message: fn(Handle) -> *const c_char;
    destroy_error_data: fn(*mut Handle);
    create_table_function: fn() -> Handle;
    destroy_table_function: fn(*mut Handle);
    table_function_set_name: fn(Handle, *const c_char);
    table_function_add_parameter: fn(Handle, Handle);
    table_function_set_extra_info: fn(Handle, *mut c_void, Delete);
    table_function_set_bind: fn(Handle, Callback);
    table_function_set_init: fn(Handle, Callback);
    table_function_set_function: fn(Handle, Fill);
    table_function_supports_projection_pushdown: fn(Handle, bool);
    register_table_function: fn(Handle, Handle) -> u32;
    bind_get_extra_info: fn(Handle) -> *mut c_void;
    bind_get_parameter: fn(Handle, u64) -> Handle;
    bind_add_result_column: fn(Handle, *const c_char, Handle);
    bind_set_bind_data: fn(Handle, *mut c_void, Delete);
    bind_set_cardinality: fn(Handle, u64, bool);
    bind_set_error: fn(Handle, *const c_char);
    init_set_max_threads: fn(Handle, u64);
    init_get_bind_data: fn(Handle) -> *mut c_void;
    init_get_column_count: fn(Handle) -> u64;
    init_get_column_index: fn(Handle, u64) -> u64;
    init_set_init_data: fn(Handle, *mut c_void, Delete);
    init_set_error: fn(Handle, *const c_char);
    function_get_init_data: fn(Handle) -> *mut c_void;
    function_set_error: fn(Handle, *const c_char);
    get_int64: fn(Handle) -> i64;
    destroy_value: fn(*mut Handle);
    create_null_value: fn() -> Handle;
    create_bool: fn(bool) -> Handle;
    create_int64: fn(i64) -> Handle;
    create_hugeint: fn(HugeInt) -> Handle;
    create_double: fn(f64) -> Handle;
    create_varchar_length: fn(*const c_char, u64) -> Handle;
    create_blob: fn(*const u8, u64) -> Handle;
    create_date: fn(i32) -> Handle;
    create_time: fn(i64) -> Handle;
    create_timestamp: fn(i64) -> Handle;
    create_timestamp_tz: fn(i64) -> Handle;
}

static LOADED: OnceLock<(PathBuf, Library)> = OnceLock::new();

/// The library at a path. A process has one: its callbacks know no other.
pub(crate) fn library(path: &Path) -> Result<&'static Library> {
    if LOADED.get().is_none() {
        let library = Library::load(path).map_err(|error| {
            Error::new(Kind::Operational, format!("the SQL engine cannot be loaded: {error}"))
                .with_hint("longshore.store.libduckdb is the path of a libduckdb of version 1.4 or newer")
        })?;
        // Another thread may have been faster.
        let _ = LOADED.set((path.to_owned(), library));
    }
    let (first, library) = LOADED.get().ok_or_else(|| Error::internal("the SQL engine is not loaded"))?;
    if first == path {
        return Ok(library);
    }
    Err(Error::interface(format!("this process has loaded the SQL engine of {} already", first.display()))
        .with_hint("name one libduckdb in all of a process"))
}

/// The library that calls back.
pub(crate) fn loaded_library() -> Option<&'static Library> {
    LOADED.get().map(|(_, library)| library)
}

/// A text of the engine's.
#[allow(unsafe_code)]
pub(crate) fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a text of the engine's ends with a zero, and lives until its owner's next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
