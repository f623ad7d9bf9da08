//! The table of types: from a declared type to what the column becomes.

use arrow_schema::{DataType, TimeUnit};

/// What a declared type promises of a column's values. SQLite itself enforces none of it (sqlite.org/datatype3.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Whole numbers.
    Int,
    /// Whole numbers from zero.
    UInt,
    /// 0 and 1.
    Bool,
    /// Doubles.
    Float,
    /// Decimals with digits after the point, which SQLite keeps as integers or the nearest doubles.
    Fraction,
    /// Numbers without a declared scale.
    Number,
    /// Decimals of so many digits, so many of them after the point, which are kept as texts.
    Decimal(u8, i8),
    /// The same, read as the nearest doubles.
    Rounded(u8, i8),
    /// Text.
    Text,
    /// Bytes.
    Blob,
    /// A day.
    Date,
    /// A day and a time.
    Timestamp,
    /// A day and a time in UTC.
    Instant,
    /// A time of day.
    Time,
    /// Whatever the values are.
    Any,
}

const MICROSECONDS: TimeUnit = TimeUnit::Microsecond;

impl Class {
    /// The class of a type as CREATE TABLE declares it.
    pub(crate) fn of(declared: &str) -> Self {
        let name = declared.to_ascii_uppercase();
        let has = |part: &str| name.contains(part);
        let base = name.split('(').next().unwrap_or_default().trim();
        // The first that fits. Temporal names and UINT come before SQLite's own rules, as "UNSIGNED BIG INT" and
        // "DATETIME" would be something else there.
        match () {
            () if has("UNSIGNED") || has("UINT") => Self::UInt,
            () if base.starts_with("BOOL") => Self::Bool,
            () if base.starts_with("TIMESTAMP") || base.starts_with("DATETIME") => {
                if has("TZ") || has("WITH TIME ZONE") || has("OFFSET") {
                    Self::Instant
                } else {
                    Self::Timestamp
                }
            }
            () if base == "DATE" => Self::Date,
            () if base == "TIME" => Self::Time,
            () if base == "INTERVAL" => Self::Any,
            () if base == "DECIMAL_TEXT" => decimal(&name),
            () if has("INT") => Self::Int,
            () if has("CHAR") || has("CLOB") || has("TEXT") || has("STRING") || has("JSON") => Self::Text,
            () if has("BLOB") || has("BINARY") || base == "BYTEA" => Self::Blob,
            () if has("REAL") || has("FLOA") || has("DOUB") => Self::Float,
            () if has("DEC") || base.starts_with("NUM") => numeric(&name),
            () => Self::Any,
        }
    }

    /// The type of an empty column.
    pub(crate) fn arrow(self) -> DataType {
        match self {
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Bool => DataType::Boolean,
            Self::Float | Self::Fraction | Self::Number | Self::Rounded(..) => DataType::Float64,
            Self::Decimal(digits @ ..=38, scale) => DataType::Decimal128(digits, scale),
            Self::Decimal(digits, scale) => DataType::Decimal256(digits, scale),
            Self::Text | Self::Any => DataType::Utf8,
            Self::Blob => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(MICROSECONDS, None),
            Self::Instant => DataType::Timestamp(MICROSECONDS, Some("UTC".into())),
            Self::Time => DataType::Time64(MICROSECONDS),
        }
    }
}

/// `DECIMAL_TEXT(p, s)`, with digits and a scale that Arrow has.
fn decimal(name: &str) -> Class {
    let arguments = name.split_once('(').and_then(|(_, arguments)| arguments.trim_end().strip_suffix(')'));
    let both = arguments.and_then(|arguments| arguments.split_once(','));
    let told = both
        .and_then(|(digits, scale)| Some((digits.trim().parse::<u8>().ok()?, scale.trim().parse().ok()?)));
    match told {
        Some((digits @ 1..=76, scale)) if scale <= digits.cast_signed() => Class::Decimal(digits, scale),
        _ => Class::Text,
    }
}

/// `NUMERIC`, `DECIMAL(p)` or `DECIMAL(p, s)`.
fn numeric(name: &str) -> Class {
    let Some((_, arguments)) = name.split_once('(') else { return Class::Number };
    let scale = arguments.trim_end().trim_end_matches(')').split_once(',').map(|(_, scale)| scale.trim());
    match scale.map(str::parse::<i32>) {
        None | Some(Ok(..=0)) => Class::Int,
        Some(Ok(_)) => Class::Fraction,
        Some(Err(_)) => Class::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_have_a_class() {
        for (declared, class) in [
            ("INTEGER", Class::Int),
            ("bigint", Class::Int),
            ("TINYINT(1)", Class::Int),
            ("UNSIGNED BIG INT", Class::UInt),
            ("uint32", Class::UInt),
            ("Boolean", Class::Bool),
            ("DOUBLE PRECISION", Class::Float),
            ("REAL", Class::Float),
            ("DECIMAL(15,2)", Class::Fraction),
            ("numeric(10, 0)", Class::Int),
            ("NUMERIC(10)", Class::Int),
            ("NUMERIC", Class::Number),
            ("DECIMAL_TEXT(15,2)", Class::Decimal(15, 2)),
            ("decimal_text( 76 , -3 )", Class::Decimal(76, -3)),
            ("DECIMAL_TEXT(77,2)", Class::Text),
            ("DECIMAL_TEXT(2,3)", Class::Text),
            ("DECIMAL_TEXT", Class::Text),
            ("VARCHAR(10)", Class::Text),
            ("nvarchar", Class::Text),
            ("JSON", Class::Text),
            ("BLOB", Class::Blob),
            ("VARBINARY(3)", Class::Blob),
            ("date", Class::Date),
            ("DATETIME", Class::Timestamp),
            ("TIMESTAMP(6)", Class::Timestamp),
            ("TIMESTAMP WITH TIME ZONE", Class::Instant),
            ("timestamptz", Class::Instant),
            ("TIMESTAMP WITHOUT TIME ZONE", Class::Timestamp),
            ("TIME", Class::Time),
            ("UUID", Class::Any),
            ("POINT", Class::Int),
            ("", Class::Any),
            ("ANY", Class::Any),
        ] {
            assert_eq!(Class::of(declared), class, "{declared}");
        }
    }
}
