//! The keys of dicts, as the numbers of a struct's fields.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Keys in the order in which they were first seen.
#[derive(Default)]
pub(crate) struct Names {
    texts: Vec<String>,
    /// The object that a key was last. Most keys come again as the same object, at the same place.
    objects: Vec<Option<Py<PyString>>>,
    places: HashMap<String, usize>,
}

impl Names {
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether `key` is the object that the name at `at` was last.
    #[inline]
    pub(crate) fn is_object(&self, at: usize, key: &Bound<'_, PyAny>) -> bool {
        self.objects.get(at).and_then(Option::as_ref).is_some_and(|object| object.as_ptr() == key.as_ptr())
    }

    /// The number of the name `text`; `likely` is looked at first.
    #[inline]
    pub(crate) fn place(&mut self, likely: usize, key: &Bound<'_, PyString>, text: &str) -> Option<usize> {
        let at = match self.texts.get(likely) {
            Some(name) if name == text => likely,
            _ => *self.places.get(text)?,
        };
        self.objects[at] = Some(key.clone().unbind());
        Some(at)
    }

    /// Adds the name `text`, which is new, and gives its number.
    pub(crate) fn add(&mut self, text: &str) -> usize {
        let at = self.texts.len();
        self.texts.push(text.to_owned());
        self.objects.push(None);
        self.places.insert(text.to_owned(), at);
        at
    }
}
