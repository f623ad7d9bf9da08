//! The fields of a NumPy dtype.

/// One field of a structured dtype.
#[derive(Clone, Debug)]
pub struct Field {
    /// What the field holds.
    pub form: Form,
    /// Where it begins within a record.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// What a field holds, by NumPy's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `b`
    Bool,
    /// `i`
    Signed,
    /// `u`
    Unsigned,
    /// `f`
    Float,
    /// `M`
    Instant(Unit),
    /// `m`
    Duration(Unit),
    /// `S`
    Bytes,
    /// `U`
    Characters,
    /// `V`: its parts, none where it is raw memory
    Void(Vec<Leaf>),
    /// `O`
    Object,
    /// Any other.
    Other,
}

/// The unit of a `datetime64` or `timedelta64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// NumPy's word for it: `us`
    pub name: String,
    /// How many of it are one step: 25 in `[25us]`
    pub multiple: i64,
}

/// A number within a field that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// NumPy's kind.
    pub kind: char,
    /// Its bytes.
    pub size: usize,
    /// Where it begins within the field.
    pub offset: usize,
}
