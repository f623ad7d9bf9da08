//! Panics that are expected: errors, and not a word on the standard error.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Does work that may panic, on what no check has found; `None` where it has.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            if !IS_EXPECTED.get() {
                otherwise(told);
            }
        }));
    });
    let before = IS_EXPECTED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    IS_EXPECTED.set(before);
    done
}
