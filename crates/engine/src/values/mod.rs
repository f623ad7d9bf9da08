//! The values of types that Arrow's consumers would not read as the engine means them.

pub(crate) mod bignum;
pub(crate) mod bits;
pub(crate) mod booleans;
pub(crate) mod clocks;
pub(crate) mod integers;
pub(crate) mod moments;
pub(crate) mod texts;
pub(crate) mod uuids;
