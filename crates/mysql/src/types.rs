//! THE TABLE: the types of MySQL and MariaDB, and what each becomes in Arrow.
//!
//! Adding a type is one arm of [`class_of`], and one of [`decode`](crate::decode) where its class is new.

use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::{
    Decimals, Error, Place, Protocol, ReadOptions, Result, Unrepresentable, Uuids, native_field,
};

use crate::message::Definition;
use crate::options::{is_tinyint1_bool, zero_date};

/// The meaning of a type's cells, by which a decoder is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `tinyint(1)` with a sign, which many use for booleans.
    Tiny1,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float,
    Double,
    /// All digits, and those behind the point.
    Decimal(u8, u8),
    /// Bits as the bytes of a number, the first of them the highest.
    Bit,
    Year,
    Date,
    DateTime,
    /// A timestamp with time zone: TIMESTAMP, which the server writes in the session's time zone.
    Timestamp,
    /// A duration, negative ones and those beyond a day included.
    Time,
    Text,
    Json,
    Uuid,
    Bytes,
}

/// The length of a cell in a binary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Fixed(u8),
    /// In the byte before the cell.
    Byte,
    /// In one to nine bytes before the cell.
    Counted,
}

impl Class {
    /// The length of a cell in a binary row (MySQL Internals, "Binary Protocol Value").
    pub(crate) fn width(self) -> Width {
        match self {
            Self::Tiny1 | Self::Int8 | Self::UInt8 => Width::Fixed(1),
            Self::Int16 | Self::UInt16 | Self::Year => Width::Fixed(2),
            Self::Int32 | Self::UInt32 | Self::Float => Width::Fixed(4),
            Self::Int64 | Self::UInt64 | Self::Double => Width::Fixed(8),
            Self::Date | Self::DateTime | Self::Timestamp | Self::Time => Width::Byte,
            Self::Decimal(..) | Self::Bit | Self::Text | Self::Json | Self::Uuid | Self::Bytes => {
                Width::Counted
            }
        }
    }
}

/// A type as one query's column has it.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) class: Class,
    /// MySQL's own name, with its modifiers.
    pub(crate) label: String,
    pub(crate) not_null: bool,
}

/// Flags of columns.
mod flag {
    pub(super) const NOT_NULL: u16 = 1;
    pub(super) const UNSIGNED: u16 = 32;
    pub(super) const ENUM: u16 = 256;
    pub(super) const SET: u16 = 2048;
}

/// The character set of bytes that are not text.
const BINARY: u16 = 63;

/// The most bytes of a character: lengths of texts are in bytes of utf8mb4.
const PER_CHARACTER: u32 = 4;

impl Type {
    /// The type of a column.
    pub(crate) fn of(column: &Definition) -> Self {
        let (class, name) = class_of(column);
        Self { class, label: label(column, class, name), not_null: column.flags & flag::NOT_NULL != 0 }
    }

    /// The Arrow field of a column of this type.
    pub(crate) fn field(&self, name: &str, nullable: bool, options: &ReadOptions) -> Result<Field> {
        let extension = match self.class {
            Class::Json => Some("arrow.json"),
            Class::Uuid if options.uuid == Uuids::Arrow => Some("arrow.uuid"),
            _ => None,
        };
        let data_type = self.arrow(options).map_err(|error| error.at(self.place(name)))?;
        Ok(native_field(name, data_type, nullable, &self.label, extension))
    }

    /// The column `name` as errors name it.
    pub(crate) fn place(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), row: None, native_type: Some(self.label.clone()) }
    }

    /// Whether the caller's options turn some of the type's values into NULL.
    pub(crate) fn turns_null(&self, options: &ReadOptions) -> bool {
        matches!(self.class, Class::Date | Class::DateTime | Class::Timestamp)
            && zero_date(options) == Unrepresentable::Null
    }

    /// The Arrow type, by the type policy and the caller's options.
    fn arrow(&self, options: &ReadOptions) -> Result<DataType> {
        Ok(match self.class {
            Class::Tiny1 if is_tinyint1_bool(options) => DataType::Boolean,
            Class::Tiny1 | Class::Int8 => DataType::Int8,
            Class::Int16 | Class::Year => DataType::Int16,
            Class::Int32 => DataType::Int32,
            Class::Int64 => DataType::Int64,
            Class::UInt8 => DataType::UInt8,
            Class::UInt16 => DataType::UInt16,
            Class::UInt32 => DataType::UInt32,
            Class::UInt64 | Class::Bit => DataType::UInt64,
            Class::Float if options.protocol == Protocol::Text => return Err(rounded_float()),
            Class::Float => DataType::Float32,
            Class::Double => DataType::Float64,
            Class::Decimal(..) if options.decimals == Decimals::Float64 => DataType::Float64,
            Class::Decimal(precision, scale) => decimal(precision, scale, options),
            Class::Date => DataType::Date32,
            Class::DateTime => DataType::Timestamp(TimeUnit::Microsecond, None),
            Class::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Class::Time => DataType::Duration(TimeUnit::Microsecond),
            Class::Uuid if options.uuid == Uuids::Arrow => DataType::FixedSizeBinary(16),
            Class::Text | Class::Json | Class::Uuid => DataType::Utf8,
            Class::Bytes => DataType::Binary,
        })
    }
}

/// The server prints a FLOAT with six digits, of which another float may come back.
pub(crate) fn rounded_float() -> Error {
    Error::not_supported("the server rounds FLOAT to six digits in its text protocol").with_hint(
        "read it with options={\"protocol\": \"binary\"} over a URL, select it as \"<column>\" + 0e0, or take the rounded \
         text with schema={\"<column>\": \"string\"}",
    )
}

fn decimal(precision: u8, scale: u8, options: &ReadOptions) -> DataType {
    let arrow_scale = i8::try_from(scale).unwrap_or(i8::MAX);
    // A frame of 38 digits holds most values of a wider type, such as a sum; the others are errors.
    if precision <= 38 || (options.decimal_digits < precision && scale <= 38) {
        DataType::Decimal128(precision.min(38), arrow_scale)
    } else {
        DataType::Decimal256(precision, arrow_scale)
    }
}

/// The class and the name of a column's type, by its code (MySQL Internals, "Column Types").
fn class_of(column: &Definition) -> (Class, &'static str) {
    let unsigned = column.flags & flag::UNSIGNED != 0;
    let sign = |signed: Class, without: Class| if unsigned { without } else { signed };
    match column.code {
        1 if column.length == 1 && !unsigned => (Class::Tiny1, "tinyint(1)"),
        1 => (sign(Class::Int8, Class::UInt8), "tinyint"),
        2 => (sign(Class::Int16, Class::UInt16), "smallint"),
        9 => (sign(Class::Int32, Class::UInt32), "mediumint"),
        3 => (sign(Class::Int32, Class::UInt32), "int"),
        8 => (sign(Class::Int64, Class::UInt64), "bigint"),
        4 => (Class::Float, "float"),
        5 => (Class::Double, "double"),
        0 | 246 => (declared_decimal(column, unsigned), "decimal"),
        16 => (Class::Bit, "bit"),
        13 => (Class::Year, "year"),
        10 | 14 => (Class::Date, "date"),
        12 => (Class::DateTime, "datetime"),
        7 => (Class::Timestamp, "timestamp"),
        11 => (Class::Time, "time"),
        245 => (Class::Json, "json"),
        6 => (Class::Text, "null"),
        255 => (Class::Bytes, "geometry"),
        242 => (Class::Bytes, "vector"),
        _ => text_or_bytes(column),
    }
}

fn text_or_bytes(column: &Definition) -> (Class, &'static str) {
    match (column.extended.as_str(), column.format.as_str()) {
        ("uuid", _) => return (Class::Uuid, "uuid"),
        ("inet6", _) => return (Class::Text, "inet6"),
        ("inet4", _) => return (Class::Text, "inet4"),
        ("", "json") => return (Class::Json, "json"),
        _ => {}
    }
    let is_binary = column.charset == BINARY;
    let name = match (column.code, is_binary) {
        (247, _) => "enum",
        (248, _) => "set",
        _ if column.flags & flag::ENUM != 0 => "enum",
        _ if column.flags & flag::SET != 0 => "set",
        // TINYBLOB, MEDIUMBLOB, LONGBLOB and BLOB.
        (249..=252, true) => "blob",
        (249..=252, false) => "text",
        (254, true) => "binary",
        (254, false) => "char",
        (_, true) => "varbinary",
        (_, false) => "varchar",
    };
    (if is_binary { Class::Bytes } else { Class::Text }, name)
}

/// A decimal's digits: its declared length includes a sign and the point.
fn declared_decimal(column: &Definition, unsigned: bool) -> Class {
    let scale = column.decimals.min(38);
    let extra = u32::from(scale > 0) + u32::from(!unsigned);
    let precision = u8::try_from(column.length.saturating_sub(extra)).unwrap_or(u8::MAX);
    // 65 digits are the most that a table's column has; an expression of so many may have more, and says 65.
    let most = if column.original.is_empty() && precision >= 65 { 76 } else { 65 };
    let precision = if most == 76 { most } else { precision };
    Class::Decimal(precision.clamp(scale.max(1), most), scale)
}

fn label(column: &Definition, class: Class, name: &str) -> String {
    let fraction =
        if (1..=6).contains(&column.decimals) { format!("({})", column.decimals) } else { String::new() };
    let sign = if column.flags & flag::UNSIGNED != 0 { " unsigned" } else { "" };
    match class {
        Class::Decimal(precision, scale) => format!("{name}({precision},{scale}){sign}"),
        Class::Bit => format!("{name}({})", column.length),
        Class::DateTime | Class::Timestamp | Class::Time => format!("{name}{fraction}"),
        Class::Text if matches!(name, "char" | "varchar") => {
            format!("{name}({})", column.length / PER_CHARACTER)
        }
        Class::Bytes if matches!(name, "binary" | "varbinary") => format!("{name}({})", column.length),
        Class::Bytes if name == "geometry" && !column.extended.is_empty() => column.extended.clone(),
        Class::UInt8 | Class::UInt16 | Class::UInt32 | Class::UInt64 | Class::Float | Class::Double => {
            format!("{name}{sign}")
        }
        _ => name.to_owned(),
    }
}

/// Refuses a type of `schema=` that the column `name` cannot be read as, before anything is run; the others the decoders
/// refuse.
pub(crate) fn check_readable(
    name: &str,
    native: &Type,
    wanted: &DataType,
    options: &ReadOptions,
) -> Result<()> {
    let refused = match wanted {
        DataType::Decimal256(..) if options.decimal_digits < 76 => {
            let text = format!("this frame's decimals have {} digits at most", options.decimal_digits);
            Some(
                Error::not_supported(text)
                    .with_hint("ask for schema={\"<column>\": \"decimal128(38, <scale>)\"} or \"string\""),
            )
        }
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..)
            if native.class == Class::Float && options.protocol == Protocol::Text =>
        {
            Some(rounded_float())
        }
        _ => None,
    };
    refused.map_or(Ok(()), |error| Err(error.at(native.place(name))))
}

/// The column cannot be read as `wanted`.
pub(crate) fn unreadable(native: &Type, wanted: &DataType) -> Error {
    let error = Error::not_supported(format!("cannot be read as {wanted}"));
    error.with_hint(match (native.class, wanted) {
        (Class::Timestamp, DataType::Timestamp(_, None)) => {
            "it has a time zone: ask for \"timestamp[us, tz=UTC]\", or convert it in the query"
        }
        (Class::DateTime, DataType::Timestamp(..)) => {
            "it has no time zone: ask for \"timestamp[us]\", or convert it in the query"
        }
        _ => "leave it out of schema=, or ask for \"string\"",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(code: u8, length: u32, flags: u16, decimals: u8, charset: u16) -> Definition {
        Definition { name: "c".into(), code, length, flags, decimals, charset, ..Definition::default() }
    }

    fn arrow(column: &Definition) -> (String, DataType) {
        let native = Type::of(column);
        let field = native.field("c", true, &ReadOptions::default()).unwrap();
        (native.label, field.data_type().clone())
    }

    #[test]
    fn widths_and_signs_are_kept() {
        for (column, label, expected) in [
            (column(1, 1, 0, 0, 63), "tinyint(1)", DataType::Int8),
            (column(1, 1, 32, 0, 63), "tinyint unsigned", DataType::UInt8),
            (column(8, 20, 32, 0, 63), "bigint unsigned", DataType::UInt64),
            (column(9, 9, 0, 0, 63), "mediumint", DataType::Int32),
            (column(246, 17, 0, 2, 63), "decimal(15,2)", DataType::Decimal128(15, 2)),
            (column(246, 10, 32, 0, 63), "decimal(10,0) unsigned", DataType::Decimal128(10, 0)),
            (column(246, 67, 0, 30, 63), "decimal(76,30)", DataType::Decimal256(76, 30)),
            (column(253, 100, 0, 0, 45), "varchar(25)", DataType::Utf8),
            (column(253, 100, 0, 0, 63), "varbinary(100)", DataType::Binary),
            (column(252, 65535, 0, 0, 63), "blob", DataType::Binary),
            (column(254, 4, 256, 0, 45), "enum", DataType::Utf8),
            (column(16, 5, 32, 0, 63), "bit(5)", DataType::UInt64),
            (column(12, 26, 0, 6, 63), "datetime(6)", DataType::Timestamp(TimeUnit::Microsecond, None)),
            (column(6, 0, 0, 0, 63), "null", DataType::Utf8),
        ] {
            assert_eq!(arrow(&column), (label.to_owned(), expected));
        }
    }

    #[test]
    fn a_frame_of_few_digits_takes_what_fits_it() {
        let polars = ReadOptions { decimal_digits: 38, ..ReadOptions::default() };
        assert_eq!(decimal(60, 10, &polars), DataType::Decimal128(38, 10));
        assert_eq!(decimal(60, 10, &ReadOptions::default()), DataType::Decimal256(60, 10));
    }
}
