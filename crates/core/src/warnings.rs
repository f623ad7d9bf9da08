//! The warnings that come with a result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::lock;

/// The findings in values on their way, over all sessions of a read: counted, or told of once.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<String, u64>,
    subjects: BTreeSet<String>,
    texts: Vec<String>,
}

impl Warnings {
    /// Counts `count` more values of which `what` is to be told.
    pub fn add(&self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let mut found = lock(&self.0);
        match found.counts.get_mut(what) {
            Some(counted) => *counted += count,
            None => drop(found.counts.insert(what.to_owned(), count)),
        }
    }

    /// Has `text` told, unless a text of the same `subject` was found before.
    pub fn tell(&self, subject: &str, text: String) {
        let mut found = lock(&self.0);
        if found.subjects.insert(subject.to_owned()) {
            found.texts.push(text);
        }
    }

    /// The texts of what was found, which is now forgotten; of no subject there will be another.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        let mut found = lock(&self.0);
        let counts = std::mem::take(&mut found.counts).into_iter();
        let counted = counts.map(|(what, count)| format!("{what} ({count} of them)"));
        let texts = std::mem::take(&mut found.texts);
        counted.chain(texts).collect()
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
        assert_eq!(warnings.take(), ["a (5 of them)"]);
        assert!(warnings.take().is_empty());
    }

    #[test]
    fn tells_of_each_subject_once() {
        let warnings = Warnings::default();
        warnings.tell("a", "first".into());
        warnings.tell("a", "second".into());
        warnings.tell("b", "third".into());
        assert_eq!(warnings.take(), ["first", "third"]);
        warnings.tell("a", "fourth".into());
        assert!(warnings.take().is_empty());
    }
}
