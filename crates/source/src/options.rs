//! Keys of `options=` that several sources declare.

use longshore_core::{Load, SourceOption};

/// The treatment of lists, structs and maps where the database has no such types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// They are refused.
    #[default]
    Error,
    /// They are JSON documents.
    Json,
}

impl Nested {
    /// The key that chooses it.
    #[must_use]
    pub fn option() -> SourceOption {
        SourceOption::new(
            "nested",
            &["error", "json"],
            "Lists, structs and maps on their way into MySQL and SQLite, which have no types for them: an error, or JSON.",
        )
    }

    /// The choice of `load`.
    #[must_use]
    pub fn of(load: &Load) -> Self {
        if load.own.has("nested", "json") { Self::Json } else { Self::Error }
    }
}
