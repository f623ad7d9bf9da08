//! Names for frames that cannot hold the same name twice.

use std::collections::HashSet;

/// The names with `_1`, `_2`, ... added to every repetition. A name that is there already is never taken.
#[must_use]
pub fn distinct_names(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen = HashSet::new();
    let mut distinct = Vec::with_capacity(names.len());
    for name in names {
        if seen.insert(*name) {
            distinct.push((*name).to_owned());
            continue;
        }
        let mut number = 1_u64;
        let mut candidate = format!("{name}_{number}");
        while !taken.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        distinct.push(candidate);
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_ever_taken_twice() {
        assert_eq!(distinct_names(&["a", "b", "a", "a"]), ["a", "b", "a_1", "a_2"]);
        assert_eq!(distinct_names(&["a", "a", "a_1"]), ["a", "a_2", "a_1"]);
        assert_eq!(distinct_names(&["a_1", "a", "a", "a_1"]), ["a_1", "a", "a_2", "a_1_1"]);
        assert_eq!(distinct_names(&["", ""]), ["", "_1"]);
    }
}
