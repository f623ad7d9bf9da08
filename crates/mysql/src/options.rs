//! The keys of `options=` that are MySQL's own.

use longshore_core::{ReadOptions, SourceOption, Unrepresentable};
use longshore_source::Nested;

/// Each key, its words and what it does.
pub(crate) fn own_options() -> Vec<SourceOption> {
    vec![
        SourceOption::new(
            "zero_date",
            &["null", "error"],
            "MySQL's zero dates: NULL with a warning, or an error.",
        ),
        SourceOption::new("tinyint1", &["int8", "bool"], "MySQL's `tinyint(1)`: a number, or a boolean."),
        SourceOption::new(
            "lock",
            &["false", "true"],
            "Whether MySQL and SQL Server may lock tables briefly, where connections cannot share a snapshot otherwise.",
        ),
        Nested::option(),
    ]
}

/// The treatment of zero dates.
pub(crate) fn zero_date(options: &ReadOptions) -> Unrepresentable {
    if options.own.has("zero_date", "error") { Unrepresentable::Error } else { Unrepresentable::Null }
}

/// Whether `tinyint(1)` is a boolean; a value but 0 and 1 is an error then.
pub(crate) fn is_tinyint1_bool(options: &ReadOptions) -> bool {
    options.own.has("tinyint1", "bool")
}

/// Whether tables may be locked while the snapshots begin.
pub(crate) fn may_lock(options: &ReadOptions) -> bool {
    options.own.has("lock", "true")
}
