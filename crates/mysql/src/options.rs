//! The keys of `options=` that are MySQL's own.

use longshore_core::{ReadOptions, SourceOption, Unrepresentable};

/// Each key, its words and what it does.
pub(crate) fn declared() -> Vec<SourceOption> {
    let option = |name: &'static str, words: [&'static str; 2], sentence: &'static str| SourceOption {
        name: name.into(),
        words: words.map(Into::into).into(),
        sentence: sentence.into(),
    };
    vec![
        option("zero_date", ["null", "error"], "Zero dates: NULL with a warning, or an error."),
        option("tinyint1", ["int8", "bool"], "tinyint(1): a number, or a boolean."),
        option("lock", ["false", "true"], "Whether tables may be locked briefly to take a snapshot."),
    ]
}

/// What becomes of zero dates.
pub(crate) fn zero_date(options: &ReadOptions) -> Unrepresentable {
    if options.is_own("zero_date", "error") { Unrepresentable::Error } else { Unrepresentable::Null }
}

/// Whether `tinyint(1)` is a boolean; a value but 0 and 1 is an error then.
pub(crate) fn is_tinyint1_bool(options: &ReadOptions) -> bool {
    options.is_own("tinyint1", "bool")
}

/// Whether tables may be locked while the snapshots begin.
pub(crate) fn may_lock(options: &ReadOptions) -> bool {
    options.is_own("lock", "true")
}
