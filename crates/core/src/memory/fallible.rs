//! Memory that is asked for where the answer may be no.

use std::alloc::{Layout, alloc_zeroed};
use std::io;
use std::ptr::slice_from_raw_parts_mut;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use super::pages::{map, unmap};
use super::system::free;
use crate::{Error, Kind, Result};

/// The memory that a new thread may take, with all that the system maps for it.
const STACK: usize = 16 << 20;

/// There is no memory for what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl OutOfMemory {
    /// The error's text: what happened.
    pub const MESSAGE: &'static str = "there is not enough memory for the result";
    /// The error's remedy.
    pub const HINT: &'static str = "use return_type=\"arrow_stream\", which holds a few batches at a time, select \
                                    fewer columns or rows, or bound results earlier with \
                                    options={\"memory_limit\": ...}";
}

impl From<OutOfMemory> for Error {
    #[cold]
    fn from(_: OutOfMemory) -> Self {
        Self::new(Kind::Memory, OutOfMemory::MESSAGE).with_hint(OutOfMemory::HINT)
    }
}

/// Has `values` take `more` without growing again.
#[inline]
pub fn try_reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    // Twice the memory, or where there is not as much, what is needed now.
    values.try_reserve(more).or_else(|_| values.try_reserve_exact(more)).map_err(|_| OutOfMemory)
}

/// Fails where the system does not give `bytes` more: before a library that ends the process where it gets none.
#[allow(unsafe_code)]
pub fn check_available(bytes: usize) -> Result<(), OutOfMemory> {
    if bytes == 0 {
        return Ok(());
    }
    let start = map(bytes).ok_or(OutOfMemory)?;
    // SAFETY: it was mapped with this size, and nothing else has its address.
    unsafe { unmap(start, bytes) };
    Ok(())
}

/// `size` zeros: the system's own, which take no memory until they are written.
#[allow(unsafe_code)]
pub fn zeros(size: usize) -> Result<Vec<u8>, OutOfMemory> {
    let layout = Layout::array::<u8>(size).map_err(|_| OutOfMemory)?;
    if size == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout's size is not 0.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(OutOfMemory);
    }
    // SAFETY: the global allocator gave `start` for this very layout, and all of its bytes are zeros.
    Ok(unsafe { Box::from_raw(slice_from_raw_parts_mut(start, size)) }.into_vec())
}

/// Starts a thread, or fails.
pub fn spawn<T: Send + 'static>(
    thread: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    check_available_for_thread()?;
    thread.spawn(work).map_err(thread_error)
}

/// The same within a scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    thread: Builder,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    check_available_for_thread()?;
    thread.spawn_scoped(scope, work).map_err(thread_error)
}

/// Fails where a new thread might find no memory for its own variables: glibc asks for them when it first needs them, and
/// ends the process.
pub fn check_available_for_thread() -> Result<(), OutOfMemory> {
    check_available(STACK)
}

/// The error of a thread that could not be started.
#[cold]
fn thread_error(error: io::Error) -> Error {
    // The system has one code for both.
    let failed = if free().is_some_and(|free| free.bytes < STACK as u64) {
        Error::from(OutOfMemory).within("no thread can be started")
    } else {
        Error::operational("no thread can be started")
            .with_hint("raise the limit on the number of processes: ulimit -u, or pids.max of the container")
    };
    failed.with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let mut values: Vec<u64> = vec![1];
        assert_eq!(try_reserve(&mut values, usize::MAX / 16), Err(OutOfMemory));
        assert_eq!(try_reserve(&mut values, 100), Ok(()));
        assert!(values.capacity() > 100 && values == [1]);
        assert_eq!(check_available(usize::MAX / 2), Err(OutOfMemory));
        // More than the address space of any process.
        assert_eq!(check_available(1 << 60), Err(OutOfMemory));
        assert_eq!(zeros(usize::MAX), Err(OutOfMemory));
        assert_eq!(zeros(3), Ok(vec![0; 3]));
        let error = Error::from(OutOfMemory);
        assert!(
            error.kind() == Kind::Memory && error.hint().is_some_and(|hint| hint.contains("arrow_stream"))
        );
    }
}
