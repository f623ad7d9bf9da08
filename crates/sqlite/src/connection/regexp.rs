//! `text REGEXP pattern`, for which SQLite has the operator and no function (`sqlite.org/lang_expr.html`).

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use libsqlite3_sys as ffi;
use regex::bytes::Regex;

/// Gives a connection the function `regexp(pattern, text)`.
///
/// # Safety
///
/// `connection` is open.
pub(super) unsafe fn install(connection: *mut ffi::sqlite3) {
    let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    // SAFETY: the caller's promise; the name ends with a zero byte, and the function needs no data.
    unsafe {
        ffi::sqlite3_create_function_v2(
            connection,
            c"regexp".as_ptr(),
            2,
            flags,
            ptr::null_mut(),
            Some(regexp),
            None,
            None,
            None,
        );
    }
}

unsafe extern "C" fn regexp(
    context: *mut ffi::sqlite3_context,
    _count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite calls with the two values that the function was made for, which live for the call, and with its context.
    unsafe {
        let (pattern, text) = (*values, *values.add(1));
        let Some((pattern, text)) = bytes(pattern).zip(bytes(text)) else {
            return ffi::sqlite3_result_null(context);
        };
        match catch_unwind(AssertUnwindSafe(|| {
            compile(context, pattern).map(|regex| (*regex).is_match(text))
        })) {
            Ok(Ok(is_match)) => ffi::sqlite3_result_int(context, c_int::from(is_match)),
            Ok(Err(error)) => fail(context, &error),
            Err(_) => fail(context, "the pattern cannot be searched for"),
        }
    }
}

/// A value's text, or the bytes of a blob; `None` for NULL.
///
/// # Safety
///
/// `value` is one of a call, in which the bytes are used.
unsafe fn bytes<'a>(value: *mut ffi::sqlite3_value) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise. The length is asked for after the text, which may change it.
    unsafe {
        if ffi::sqlite3_value_type(value) == ffi::SQLITE_NULL {
            return None;
        }
        let is_blob = ffi::sqlite3_value_type(value) == ffi::SQLITE_BLOB;
        let start = if is_blob {
            ffi::sqlite3_value_blob(value).cast::<u8>()
        } else {
            ffi::sqlite3_value_text(value)
        };
        let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
        // An empty blob has no address.
        Some(if start.is_null() { &[] } else { slice::from_raw_parts(start, length) })
    }
}

/// The pattern, which SQLite keeps for the next row where all rows have the same.
///
/// # Safety
///
/// `context` is that of a call, whose first value is the pattern.
unsafe fn compile(context: *mut ffi::sqlite3_context, pattern: &[u8]) -> Result<*const Regex, String> {
    // SAFETY: what is kept under 0 is a box of a `Regex`, which SQLite drops at a call's end at the earliest, where it had no room
    // for it: it is asked for again.
    unsafe {
        let kept = ffi::sqlite3_get_auxdata(context, 0).cast::<Regex>();
        if !kept.is_null() {
            return Ok(kept);
        }
        let pattern = std::str::from_utf8(pattern).map_err(|_| "the pattern is not UTF-8".to_owned())?;
        let regex = Regex::new(pattern)
            .map_err(|error| format!("the pattern of REGEXP is not one of Rust's regex: {error}"))?;
        ffi::sqlite3_set_auxdata(context, 0, Box::into_raw(Box::new(regex)).cast(), Some(drop_regex));
        let kept = ffi::sqlite3_get_auxdata(context, 0).cast::<Regex>();
        if kept.is_null() { Err("out of memory".to_owned()) } else { Ok(kept) }
    }
}

unsafe extern "C" fn drop_regex(regex: *mut c_void) {
    // SAFETY: it came out of a box of this type, and SQLite gives it back once.
    drop(unsafe { Box::from_raw(regex.cast::<Regex>()) });
}

/// # Safety
///
/// `context` is that of a call.
unsafe fn fail(context: *mut ffi::sqlite3_context, message: &str) {
    let length = c_int::try_from(message.len()).unwrap_or(0);
    // SAFETY: the caller's promise; SQLite copies so many bytes of the message.
    unsafe { ffi::sqlite3_result_error(context, message.as_ptr().cast(), length) }
}
