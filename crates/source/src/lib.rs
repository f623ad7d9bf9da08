//! The kit that a source is made of.

pub mod fit;
pub mod options;
pub mod rows;
pub mod settings;
pub mod split;
pub mod sql;
pub mod staging;
pub mod table;

pub use options::Nested;
pub use split::NotSplit;

/// A hash that is the same everywhere: FNV-1a, of 64 bits.
#[must_use]
pub fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
