//! Values that databases have and Arrow has not, and what the caller wants of them.

use longshore_core::{ReadOptions, Unrepresentable};

use crate::Misfit;

/// The caller's choices for such values.
#[derive(Clone, Copy, Debug)]
pub struct ValuePolicies {
    /// NaN and infinity in decimals.
    pub numeric_nan: Unrepresentable,
    /// Infinite dates and timestamps, and those out of Arrow's range.
    pub infinity: Unrepresentable,
    /// The time 24:00.
    pub time_24: Unrepresentable,
}

impl From<&ReadOptions> for ValuePolicies {
    fn from(options: &ReadOptions) -> Self {
        Self { numeric_nan: options.numeric_nan, infinity: options.infinity, time_24: options.time_24 }
    }
}

#[cold]
fn misfit(policy: Unrepresentable, what: &'static str, hint: &'static str) -> Misfit {
    match policy {
        Unrepresentable::Null => Misfit::Null,
        Unrepresentable::Error => Misfit::with_hint(what, hint),
    }
}

/// An infinite date, timestamp or interval.
#[cold]
#[must_use]
pub fn infinite(policy: Unrepresentable) -> Misfit {
    misfit(
        policy,
        "infinity has no Arrow value",
        "read it as NULL with options={\"infinity\": \"null\"}, or as text with schema={\"<column>\": \"string\"}",
    )
}

/// A timestamp or span beyond Arrow's 64 bits.
#[cold]
#[must_use]
pub fn out_of_range(policy: Unrepresentable) -> Misfit {
    misfit(
        policy,
        "the value is beyond what Arrow's type holds",
        "read it as NULL with options={\"infinity\": \"null\"}, or as text with schema={\"<column>\": \"string\"}",
    )
}

/// The time 24:00.
#[cold]
#[must_use]
pub fn time_24(policy: Unrepresentable) -> Misfit {
    misfit(
        policy,
        "24:00 has no Arrow value; consumers would read it as 00:00",
        "read it as NULL with options={\"time_24\": \"null\"}, or as text with schema={\"<column>\": \"string\"}",
    )
}
