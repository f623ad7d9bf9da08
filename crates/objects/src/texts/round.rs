//! Chunks of a column that several threads make at once.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::rows::{Odd, Rows};
use super::views::Views;

/// Bytes after which no more chunks are begun, so that signals are looked at.
const BYTES: usize = 1 << 28;

/// Makes some of `chunks` from the first on, one at least, by so many threads. This one has the interpreter's lock meanwhile.
pub(super) fn made(rows: Rows<'_>, chunks: &[Range<usize>], threads: usize) -> Vec<Result<Views, Odd>> {
    let next = AtomicUsize::new(0);
    let bytes = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(chunks.len()));
    let work = || {
        while bytes.load(Ordering::Relaxed) < BYTES {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(number) else { break };
            let views = rows.views(chunk.clone());
            bytes.fetch_add(views.as_ref().map_or(0, Views::size), Ordering::Relaxed);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((number, views));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(chunks.len()) {
            // Without it the others do its part.
            let _ = thread::Builder::new().name("longshore-texts".into()).spawn_scoped(scope, work);
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, views)| views).collect()
}
