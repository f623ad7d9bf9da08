//! The drivers: those of Rust, and those of Python behind them.

use std::sync::Arc;

use longshore_core::{Driver, Error, Result, SourceOption, Target};
use longshore_registry::schemes;

/// The driver that `target`'s scheme names.
pub(crate) fn driver(target: &Target) -> Result<Arc<dyn Driver>> {
    let found = longshore_registry::driver(target.scheme());
    found.or_else(|| longshore_arrow_source::driver(target.scheme())).ok_or_else(|| {
        let known: Vec<_> = schemes().into_iter().map(|(scheme, _)| scheme).collect();
        Error::interface(format!("no driver for URLs that start with {}://", target.scheme()))
            .with_hint(format!("known are {}", known.join(", ")))
    })
}

/// Every key of `options=` that is a source's own.
pub(crate) fn options() -> Vec<SourceOption> {
    longshore_registry::options().into_iter().chain(longshore_store::options()).collect()
}
