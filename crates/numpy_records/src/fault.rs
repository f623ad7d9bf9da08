//! The faults of a row.

use longshore_core::memory::OutOfMemory;

/// Why a cell does not become what its field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The binary form has another length than the type has.
    Length(usize),
    /// The field is too short for so many bytes, or characters.
    Short(usize),
    /// The cell has another length than its `V` field.
    Inexact(usize),
    /// The bytes end in zeros, which NumPy strips.
    TrailingZero,
    /// Infinity.
    Infinite,
    /// Beyond what the unit holds in 64 bits.
    OutOfRange,
    /// Beyond what the integer holds.
    Sign,
    /// Text, where the field takes none.
    Kind,
    /// No UTF-8.
    NotText,
    /// Another number of bits than a row before.
    BitCount(u32),
    /// An unknown version of jsonb.
    Version,
    /// The row's message is not what was described.
    Row,
    /// There is no memory for the row.
    OutOfMemory,
}

impl Fault {
    /// The text of what is wrong, and of what to do.
    #[must_use]
    pub fn text(self) -> (String, &'static str) {
        let known = |what: &str, hint| (what.to_owned(), hint);
        match self {
            Self::Length(length) => (
                format!("the server sent {length} bytes, which the type never has"),
                "ask for a field of dtype O",
            ),
            Self::Short(length) => (
                format!("a value is {length} long, and the field shorter"),
                "make the field longer, or ask for O",
            ),
            Self::Inexact(length) => {
                (format!("a value has {length} bytes, and the field has another number"), "ask for S or O")
            }
            Self::TrailingZero => known(
                "a value ends in a zero byte, which NumPy would strip, and not all values have one length",
                "ask for a field of dtype O, or for V of the length that all values have",
            ),
            Self::Infinite => known(
                "a value is infinite, for which NumPy has none",
                "leave infinity out with a condition of the query, or ask for a field of dtype O",
            ),
            Self::OutOfRange => known(
                "a value is beyond what 64 bits of that unit hold",
                "ask for a coarser unit, or for a field of dtype O",
            ),
            Self::Sign => known(
                "a value is beyond what the field holds",
                "ask for an integer with the sign of the database's type",
            ),
            Self::Kind => known(
                "a value is text, and the field takes NULL alone of it",
                "ask for U, S or O, or cast the column in the query",
            ),
            Self::NotText => known("a value is not UTF-8", "ask for a field of dtype S"),
            Self::BitCount(count) => (
                format!(
                    "a value has {count} bits, and one before another number, which the field would not tell"
                ),
                "ask for a field of dtype O",
            ),
            Self::Version => {
                known("the server sent an unknown version of jsonb", "ask for a field of dtype O")
            }
            Self::Row => known(
                "the server sent a row that is not the one it described",
                "connect again; something in between may alter bytes",
            ),
            Self::OutOfMemory => known(OutOfMemory::MESSAGE, OutOfMemory::HINT),
        }
    }
}

/// A fault, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The column; `None` where the whole row is at fault.
    pub column: Option<usize>,
    /// The row, counted from the result's first.
    pub row: u64,
    /// The fault.
    pub fault: Fault,
}
