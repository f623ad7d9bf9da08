//! Chunks of a column that several threads make at once.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use longshore_core::turns;

use super::rows::{Odd, Rows};
use super::views::Views;

/// Bytes after which no more chunks are begun, so that signals are looked at.
const BYTES: usize = 1 << 28;

/// Makes some of `chunks` from the first on, one at least, by so many threads. This one has the interpreter's lock meanwhile.
pub(super) fn made(
    rows: Rows<'_>,
    chunks: &[Range<usize>],
    threads: Option<usize>,
) -> Vec<Result<Views, Odd>> {
    let bytes = AtomicUsize::new(0);
    let goes_on = || bytes.load(Ordering::Relaxed) < BYTES;
    turns(chunks.len(), threads, goes_on, |number| {
        let views = rows.views(chunks[number].clone());
        bytes.fetch_add(views.as_ref().map_or(0, Views::size), Ordering::Relaxed);
        views
    })
}
