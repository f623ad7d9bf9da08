//! The columns of a statement, by what their binary form is.

/// One column of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// PostgreSQL's name of its type, where that is one of its own; else nothing.
    pub native: &'static str,
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
    /// Whether it may be a NULL without a type: the server describes that as text.
    pub(crate) fn may_be_untyped(self) -> bool {
        matches!(self.native, "text" | "unknown")
    }

    pub(crate) fn class(self) -> Class {
        if !self.binary {
            return Class::Text;
        }
        match self.native {
            "bool" => Class::Bool,
            // "char" may hold a byte that is no text.
            "bytea" | "char" => Class::Bytes,
            "int2" => Class::Int2,
            "int4" => Class::Int4,
            "int8" => Class::Int8,
            "name" | "text" | "json" | "xml" | "unknown" | "bpchar" | "varchar" => Class::Text,
            "oid" | "xid" | "cid" | "regproc" | "regprocedure" | "regoper" | "regoperator" | "regclass"
            | "regtype" | "regconfig" | "regdictionary" | "regnamespace" | "regrole" | "regcollation" => {
                Class::Unsigned4
            }
            "pg_lsn" | "xid8" => Class::Unsigned8,
            "float4" => Class::Float4,
            "float8" => Class::Float8,
            "tid" => Class::Tid,
            "point" => Class::Doubles(2),
            "line" | "circle" => Class::Doubles(3),
            "lseg" | "box" => Class::Doubles(4),
            "date" => Class::Date,
            "time" => Class::Time,
            "timetz" => Class::TimeTz,
            "timestamp" | "timestamptz" => Class::Timestamp,
            "interval" => Class::Interval,
            "bit" | "varbit" => Class::Bits,
            "uuid" => Class::Uuid,
            "jsonb" => Class::Jsonb,
            _ => Class::Opaque,
        }
    }
}
