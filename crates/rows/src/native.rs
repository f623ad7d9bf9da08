//! The columns of a statement, by what their binary form is.

/// One column of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The OID of its type.
    pub oid: u32,
    /// Whether its cells come in the type's binary form, and not in its text.
    pub binary: bool,
}

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Bool,
    Int2,
    Int4,
    Int8,
    /// oid and the like: 32 bits without a sign.
    Unsigned4,
    Unsigned8,
    Float4,
    Float8,
    Text,
    /// Text after a byte that tells the version.
    Jsonb,
    Bytes,
    Uuid,
    /// A count of bits, and the bits.
    Bits,
    Date,
    Time,
    TimeTz,
    Timestamp,
    Interval,
    /// So many doubles.
    Doubles(usize),
    Tid,
    /// What only asyncpg decodes.
    Opaque,
}

impl Column {
    pub(crate) fn class(self) -> Class {
        if !self.binary {
            return Class::Text;
        }
        match self.oid {
            16 => Class::Bool,
            // "char" may hold a byte that is no text.
            17 | 18 => Class::Bytes,
            20 => Class::Int8,
            21 => Class::Int2,
            23 => Class::Int4,
            19 | 25 | 114 | 142 | 705 | 1042 | 1043 => Class::Text,
            24 | 26 | 28 | 29 | 2202..=2206 | 3734 | 3769 | 4089 | 4096 | 4191 => Class::Unsigned4,
            27 => Class::Tid,
            600 => Class::Doubles(2),
            601 | 603 => Class::Doubles(4),
            628 | 718 => Class::Doubles(3),
            700 => Class::Float4,
            701 => Class::Float8,
            1082 => Class::Date,
            1083 => Class::Time,
            1114 | 1184 => Class::Timestamp,
            1186 => Class::Interval,
            1266 => Class::TimeTz,
            1560 | 1562 => Class::Bits,
            2950 => Class::Uuid,
            3220 | 5069 => Class::Unsigned8,
            3802 => Class::Jsonb,
            _ => Class::Opaque,
        }
    }
}
