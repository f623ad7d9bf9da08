//! What a caller is told beside a result.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What was found in values on their way, counted: one text for each kind, over all sessions of a read.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<BTreeMap<String, u64>>);

impl Warnings {
    /// Counts `count` more values of which `what` is to be told.
    pub fn add(&self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(what) {
            Some(counted) => *counted += count,
            None => drop(counts.insert(what.to_owned(), count)),
        }
    }

    /// What was counted, which is now forgotten.
    #[must_use]
    pub fn take(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_kind_once() {
        let warnings = Warnings::default();
        warnings.add("a", 2);
        warnings.add("b", 0);
        warnings.add("a", 3);
        assert_eq!(warnings.take(), [("a".to_owned(), 5)]);
        assert_eq!(warnings.take(), []);
    }
}
