//! A bound on the memory of a whole result.

use crate::{Error, Kind, Result};

/// Fails when a result that holds `held` bytes is over the caller's `limit`.
pub fn within_limit(held: usize, limit: Option<usize>) -> Result<()> {
    match limit {
        Some(limit) if held > limit => Err(Error::new(
            Kind::Memory,
            format!("the result holds more than the memory_limit of {limit} bytes"),
        )
        .with_hint("raise memory_limit, select fewer columns or rows, or use return_type=\"arrow_stream\"")),
        _ => Ok(()),
    }
}
