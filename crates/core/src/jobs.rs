//! Pieces of work in memory that several threads do at once, and what they share.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

use crate::memory::spawn_scoped;

/// The value that `of` guards, whatever a thread that had it has met.
pub fn lock<T: ?Sized>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results of `work` for the numbers from 0 up to `count`, in their order, by so many threads or by as many as there are
/// processors, this one among them.
///
/// Once `goes_on` is false no more are begun: the first so many are done then, and none of those is left out.
pub fn run_jobs<T: Send>(
    count: usize,
    threads: Option<usize>,
    goes_on: impl Fn() -> bool + Sync,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let threads = threads.or_else(|| available_parallelism().ok().map(NonZero::get)).unwrap_or(1);
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(count));
    let run = || {
        // Asked before a number is taken: whoever has one does it.
        while goes_on() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let piece = work(number);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((number, piece));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            // Without it the others do its part.
            let _ = spawn_scoped(thread::Builder::new().name("longshore-job".into()), scope, run);
        }
        run();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, piece)| piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_and_in_order() {
        for threads in [1, 2, 7] {
            let made = run_jobs(100, Some(threads), || true, |number| number * number);
            assert_eq!(made, (0..100).map(|number| number * number).collect::<Vec<_>>());
        }
        assert_eq!(run_jobs(0, None, || true, |number| number), []);
    }

    #[test]
    fn the_first_pieces_are_done_without_a_gap_where_it_does_not_go_on() {
        for threads in [1, 2, 7] {
            let begun = AtomicUsize::new(0);
            let goes_on = || begun.load(Ordering::Relaxed) < 20;
            let made = run_jobs(1000, Some(threads), goes_on, |number| {
                begun.fetch_add(1, Ordering::Relaxed);
                number
            });
            assert!((20..20 + threads).contains(&made.len()), "{}", made.len());
            assert_eq!(made, (0..made.len()).collect::<Vec<_>>());
        }
    }
}
