//! The library's own C functions: its entry points, and streams whose errors can be asked for.
//!
//! Arrow's stream interface hands on a number and a text. ADBC 1.1.0 asks the driver for more of a stream's error
//! (`ErrorFromArrayStream`), which `adbc_ffi` has not. So the streams of queries are wrapped in one of ours, whose memory has it.
#![allow(unsafe_code)]
// Names and signatures are those of `adbc.h`.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use adbc_core::constants::ADBC_STATUS_OK;
use adbc_core::error::{AdbcStatusCode, Error as AdbcError, Result, Status};
use adbc_core::options::AdbcVersion;
use adbc_ffi::{
    FFI_AdbcConnection, FFI_AdbcDriver, FFI_AdbcError, FFI_AdbcStatement, FFIDriver, export_error,
};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use longshore_core::lock;

use crate::Reader;
use crate::bind::refused_rows;
use crate::database::Driver;
use crate::error::{catch_panic, refusal};
use crate::incoming;
use crate::rows::{Failure, last_failure};

/// The entry point of the library's name.
///
/// # Safety
///
/// `driver` points to memory for an `AdbcDriver` of the version, `error` to an `AdbcError` or nowhere.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn AdbcLongshoreAdbcInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    // SAFETY: the caller's promises are those of the function that is called.
    unsafe { AdbcDriverInit(version, driver, error) }
}

/// The entry point that every manager looks for.
///
/// # Safety
///
/// As `AdbcLongshoreAdbcInit`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn AdbcDriverInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let is_known = matches!(AdbcVersion::try_from(version), Ok(AdbcVersion::V110));
    if !is_known || driver.is_null() {
        let message = format!("the driver has ADBC 1.1.0 (1001000), and not {version}");
        // SAFETY: `error` is null or points to an error, as the caller promises.
        unsafe { export_error(error, refusal(Status::NotImplemented, message)) };
        return Status::NotImplemented.into();
    }
    let exported = FFI_AdbcDriver {
        StatementBind: Some(bind),
        StatementBindStream: Some(bind_stream),
        StatementExecuteQuery: Some(execute_query),
        ConnectionReadPartition: Some(read_partition),
        ErrorFromArrayStream: Some(error_from_stream),
        ..Driver::ffi_driver()
    };
    // SAFETY: `driver` points to memory for a driver of this version, as the caller promises.
    unsafe { ptr::write_unaligned(driver.cast(), exported) };
    ADBC_STATUS_OK
}

unsafe extern "C" fn bind(
    statement: *mut FFI_AdbcStatement,
    values: *mut FFI_ArrowArray,
    schema: *mut FFI_ArrowSchema,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let rows = catch_panic(|| {
        // SAFETY: each is null or points to what the caller hands over; the array is ours from here on.
        unsafe {
            let schema = schema.as_ref().filter(|_| !values.is_null()).ok_or_else(no_data)?;
            incoming::batch(FFI_ArrowArray::from_raw(values), schema)
        }
    });
    // SAFETY: the arguments are the caller's own.
    unsafe { bind_rows(statement, rows, error) }
}

unsafe extern "C" fn bind_stream(
    statement: *mut FFI_AdbcStatement,
    stream: *mut FFI_ArrowArrayStream,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let rows = catch_panic(|| {
        let stream = stream.cast::<Stream>();
        if stream.is_null() {
            return Err(no_data());
        }
        // SAFETY: the stream is the caller's, and ours from here on.
        unsafe { incoming::stream(ptr::replace(stream, Stream::default())) }
    });
    // SAFETY: the arguments are the caller's own.
    unsafe { bind_rows(statement, rows, error) }
}

fn no_data() -> AdbcError {
    refusal(Status::InvalidArguments, "no data is given to be bound")
}

/// Binds rows. After those that are refused nothing is bound, as what was before is not what the caller wants.
unsafe fn bind_rows(
    statement: *mut FFI_AdbcStatement,
    rows: Result<Reader>,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(bind) = Driver::ffi_driver().StatementBindStream else { return Status::Internal.into() };
    let (rows, refusal) = match rows {
        Ok(rows) => (rows, None),
        Err(refusal) => (refused_rows(), Some(refusal)),
    };
    // SAFETY: the statement and the error are the caller's own.
    let status = unsafe { bind(statement, &mut FFI_ArrowArrayStream::new(rows), error) };
    let Some(refusal) = refusal.filter(|_| status == ADBC_STATUS_OK) else { return status };
    let status = refusal.status.into();
    // SAFETY: `error` is null or points to an error, as the caller promises.
    unsafe { export_error(error, refusal) };
    status
}

unsafe extern "C" fn execute_query(
    statement: *mut FFI_AdbcStatement,
    out: *mut FFI_ArrowArrayStream,
    rows: *mut i64,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    drop(last_failure());
    let Some(execute) = Driver::ffi_driver().StatementExecuteQuery else { return Status::Internal.into() };
    // SAFETY: the arguments are the caller's own.
    let status = unsafe { execute(statement, out, rows, error) };
    // SAFETY: the exporter has written a stream where it succeeded and `out` is somewhere.
    unsafe { wrap(status, out) };
    status
}

unsafe extern "C" fn read_partition(
    connection: *mut FFI_AdbcConnection,
    bytes: *const u8,
    length: usize,
    out: *mut FFI_ArrowArrayStream,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    drop(last_failure());
    let Some(read) = Driver::ffi_driver().ConnectionReadPartition else { return Status::Internal.into() };
    // SAFETY: the arguments are the caller's own.
    let status = unsafe { read(connection, bytes, length, out, error) };
    // SAFETY: as in `execute_query`.
    unsafe { wrap(status, out) };
    status
}

/// `ArrowArrayStream` of Arrow's C stream interface.
#[repr(C)]
pub(crate) struct Stream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    pub(crate) release: Option<Release>,
    private_data: *mut c_void,
}

pub(crate) type Release = unsafe extern "C" fn(*mut Stream);

impl Default for Stream {
    /// One that is released.
    fn default() -> Self {
        let (get_schema, get_next, get_last_error, release) = Default::default();
        Self { get_schema, get_next, get_last_error, release, private_data: ptr::null_mut() }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream that has its function is not released yet.
            unsafe { release(self) };
        }
    }
}

/// A stream of the exporter's, and what ends it.
struct Wrapped {
    inner: Stream,
    failure: Failure,
    /// The error that was asked for, which lives as long as the stream.
    error: FFI_AdbcError,
}

/// Puts ours around the stream in `out`.
unsafe fn wrap(status: AdbcStatusCode, out: *mut FFI_ArrowArrayStream) {
    let failure = last_failure().filter(|_| status == ADBC_STATUS_OK && !out.is_null());
    let (Some(failure), out) = (failure, out.cast::<Stream>()) else { return };
    // SAFETY: `out` holds a stream, which moves into ours; what is written over is not dropped.
    unsafe {
        let wrapped = Wrapped { inner: ptr::read_unaligned(out), failure, error: FFI_AdbcError::default() };
        let stream = Stream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data: Box::into_raw(Box::new(wrapped)).cast(),
        };
        ptr::write_unaligned(out, stream);
    }
}

/// Ours within a stream that is ours.
unsafe fn own_stream<'a>(stream: *mut Stream) -> Option<&'a mut Wrapped> {
    // SAFETY: a stream that is released by our function has our memory, until it is released.
    unsafe {
        let stream = stream.as_ref()?;
        let is_ours = stream.release.is_some_and(|function| ptr::fn_addr_eq(function, release as Release));
        if is_ours { stream.private_data.cast::<Wrapped>().as_mut() } else { None }
    }
}

/// EINVAL: the stream is released.
const INVALID: c_int = 22;

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the caller asks a stream that is not released.
    unsafe {
        let Some(Wrapped { inner, .. }) = own_stream(stream) else { return INVALID };
        inner.get_schema.map_or(INVALID, |get| get(inner, out))
    }
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`.
    unsafe {
        let Some(Wrapped { inner, failure, .. }) = own_stream(stream) else { return INVALID };
        let code = inner.get_next.map_or(INVALID, |get| get(inner, out));
        if code == 0 {
            return 0;
        }
        match lock(failure).as_ref().map(|error| error.status) {
            // ECANCELED, ETIMEDOUT, EIO.
            Some(Status::Cancelled) => 125,
            Some(Status::Timeout) => 110,
            Some(Status::IO) => 5,
            _ => code,
        }
    }
}

unsafe extern "C" fn get_last_error(stream: *mut Stream) -> *const c_char {
    // SAFETY: as in `get_schema`.
    unsafe {
        let Some(Wrapped { inner, .. }) = own_stream(stream) else { return ptr::null() };
        inner.get_last_error.map_or(ptr::null(), |get| get(inner))
    }
}

unsafe extern "C" fn release(stream: *mut Stream) {
    // SAFETY: the memory is that of `wrap`, and is given back once: a released stream has no such function any more.
    unsafe {
        if own_stream(stream).is_none() {
            return;
        }
        drop(Box::from_raw((*stream).private_data.cast::<Wrapped>()));
        (*stream).private_data = ptr::null_mut();
        (*stream).release = None;
    }
}

unsafe extern "C" fn error_from_stream(
    stream: *mut FFI_ArrowArrayStream,
    status: *mut AdbcStatusCode,
) -> *const FFI_AdbcError {
    // SAFETY: the stream is not released, as the caller promises; `status` is null or points to a status.
    unsafe {
        let Some(Wrapped { failure, error: exported, .. }) = own_stream(stream.cast()) else {
            return ptr::null();
        };
        let Some(error) = lock(failure).clone() else { return ptr::null() };
        if !status.is_null() {
            ptr::write_unaligned(status, error.status.into());
        }
        export_error(exported, error);
        exported
    }
}
