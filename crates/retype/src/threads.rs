//! Work on a batch's columns, on several threads where it has many rows.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

use longshore_core::locked;
use longshore_core::memory::spawn_scoped;

/// The rows from which on threads save more than they cost: a table's in memory comes in such batches, and a network's does not.
const MANY: usize = 1 << 17;

/// Copying is the memory's work: more threads do not make it faster.
const MOST_THREADS: usize = 4;

/// The results of `work` for each column of so many rows, in their order.
pub fn by_column<T: Send, R: Send>(rows: usize, columns: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = if rows < MANY { 1 } else { thread::available_parallelism().map_or(1, NonZero::get) };
    let threads = cores.min(columns.len()).min(MOST_THREADS);
    if threads < 2 {
        return columns.into_iter().map(work).collect();
    }
    let (waiting, done) = (Mutex::new(columns.into_iter().enumerate()), Mutex::new(Vec::new()));
    let run = || {
        loop {
            let Some((at, column)) = locked(&waiting).next() else { return };
            let made = work(column);
            locked(&done).push((at, made));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without one, the others do its work.
            let _ = spawn_scoped(thread::Builder::new(), scope, run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_in_their_order() {
        for rows in [1, MANY] {
            assert_eq!(
                by_column(rows, (0..50).collect(), |column| column * 2),
                (0..50).map(|at| at * 2).collect::<Vec<_>>()
            );
        }
    }
}
