//! Work on a batch's columns, on several threads where it has many rows.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread::available_parallelism;

use longshore_core::{lock, run_jobs};

/// The rows from which on threads save more than they cost: a table's in memory comes in such batches, and a network's does not.
const MANY: usize = 1 << 17;

/// Copying is the memory's work: more threads do not make it faster.
const MOST_THREADS: usize = 4;

/// The results of `work` for each column of so many rows, in their order.
pub fn by_column<T: Send, R: Send>(rows: usize, columns: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = if rows < MANY { 1 } else { available_parallelism().map_or(1, NonZero::get) };
    let columns: Vec<_> = columns.into_iter().map(|column| Mutex::new(Some(column))).collect();
    let made = run_jobs(
        columns.len(),
        Some(cores.min(MOST_THREADS)),
        || true,
        |at| lock(&columns[at]).take().map(&work),
    );
    made.into_iter().flatten().collect()
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
