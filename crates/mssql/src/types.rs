//! THE TABLE: the types of SQL Server, and what each becomes in Arrow.
//!
//! Adding a type is one arm of [`class_of`], and one of [`decode`](crate::decode) where its class is new.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::{Decimals, Error, Place, ReadOptions, Result, Uuids, native_field};
use mssql_tds::datatypes::sqldatatypes::TdsDataType;
use mssql_tds::query::metadata::ColumnMetadata;
use mssql_tds::token::tokens::SqlCollation;

use crate::text::Encoding;

/// The meaning of a type's cells, by which a decoder is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Class {
    Bit,
    UInt8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    /// All digits, and those behind the point; money has four.
    Decimal(u8, u8),
    Date,
    /// Digits behind the second.
    Time(u8),
    /// Dates with a time of so many digits behind the second: `smalldatetime` has none, `datetime` three.
    DateTime(u8),
    /// The same in UTC, with the offset that they were written with.
    DateTimeOffset(u8),
    /// Text in UTF-16 or in a code page.
    Text(Encoding),
    Xml,
    Json,
    Uuid,
    Bytes,
    /// Numbers of a vector.
    Vector(u16),
    /// A value that has its type with it.
    Variant,
}

/// A column as the server describes it, in a result's head or by `sp_describe_first_result_set`.
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) tds: TdsDataType,
    /// The bytes of its longest value; [`UNBOUNDED`] of `(max)`.
    pub(crate) length: usize,
    pub(crate) precision: u8,
    pub(crate) scale: u8,
    pub(crate) collation: Option<SqlCollation>,
    pub(crate) nullable: bool,
    /// Whether it is a `rowversion`.
    pub(crate) is_rowversion: bool,
    /// Whether the table gives its rows numbers there, and whether it computes the values.
    pub(crate) is_identity: bool,
    pub(crate) is_generated: bool,
    /// The name of a type that is the CLR's.
    pub(crate) udt: Option<String>,
}

/// The length of types without one.
pub(crate) const UNBOUNDED: usize = 0xffff;

/// The user type of `timestamp`, which is `rowversion`'s other name.
pub(crate) const ROWVERSION: u32 = 80;

impl Described {
    /// A column of a result that is about to come.
    pub(crate) fn of(column: &ColumnMetadata) -> Self {
        let udt = column.type_info.udt_info().map(|udt| udt.type_name().to_owned());
        Self {
            name: column.column_name.clone(),
            tds: column.data_type,
            length: if column.is_plp() { UNBOUNDED } else { column.type_info.length },
            precision: column.get_precision().unwrap_or_default(),
            scale: column.get_scale().unwrap_or_default(),
            collation: column.get_collation(),
            nullable: column.is_nullable(),
            is_rowversion: column.user_type == ROWVERSION,
            is_identity: column.is_identity(),
            is_generated: column.is_computed(),
            udt,
        }
    }
}

/// A type as one query's column has it.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) class: Class,
    /// SQL Server's own name, with its modifiers.
    pub(crate) label: String,
}

impl Type {
    /// The type of a column; an error where its code page cannot be decoded.
    pub(crate) fn of(column: &Described) -> Result<Self> {
        let (class, label) = class_of(column).map_err(|error| {
            let native_type = Some(format!("{:?}", column.tds).to_ascii_lowercase());
            error.at(Place { column: Some(column.name.clone()), row: None, native_type })
        })?;
        Ok(Self { class, label })
    }

    /// Whether each value has its type with it.
    pub(crate) fn is_variant(&self) -> bool {
        self.class == Class::Variant
    }

    /// The Arrow field of a column of this type.
    pub(crate) fn field(&self, name: &str, nullable: bool, options: &ReadOptions) -> Field {
        let extension = match self.class {
            Class::Json => Some("arrow.json"),
            Class::Uuid if options.uuid == Uuids::Arrow => Some("arrow.uuid"),
            _ => None,
        };
        native_field(name, self.arrow(options), nullable, &self.label, extension)
    }

    /// The column `name` as errors name it.
    pub(crate) fn place(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), row: None, native_type: Some(self.label.clone()) }
    }

    /// The Arrow type, by the type policy and the caller's options.
    pub(crate) fn arrow(&self, options: &ReadOptions) -> DataType {
        match self.class {
            Class::Bit => DataType::Boolean,
            Class::UInt8 => DataType::UInt8,
            Class::Int16 => DataType::Int16,
            Class::Int32 => DataType::Int32,
            Class::Int64 => DataType::Int64,
            Class::Float => DataType::Float32,
            Class::Double => DataType::Float64,
            Class::Decimal(..) if options.decimals == Decimals::Float64 => DataType::Float64,
            Class::Decimal(precision, scale) => {
                DataType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
            }
            Class::Date => DataType::Date32,
            Class::Time(scale) => DataType::Time64(unit(scale)),
            Class::DateTime(scale) => DataType::Timestamp(unit(scale), None),
            Class::DateTimeOffset(scale) => DataType::Timestamp(unit(scale), Some("UTC".into())),
            Class::Uuid if options.uuid == Uuids::Arrow => DataType::FixedSizeBinary(16),
            Class::Text(_) | Class::Xml | Class::Json | Class::Variant | Class::Uuid => DataType::Utf8,
            Class::Bytes => DataType::Binary,
            Class::Vector(size) => {
                let item = Arc::new(Field::new("item", DataType::Float32, false));
                DataType::FixedSizeList(item, size.into())
            }
        }
    }
}

/// Only the seventh digit behind the second needs nanoseconds.
fn unit(scale: u8) -> TimeUnit {
    if scale > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }
}

/// The class and the label of a column's type (MS-TDS 2.2.5.4).
fn class_of(column: &Described) -> Result<(Class, String)> {
    use TdsDataType as T;
    let Described { length, precision, scale, .. } = *column;
    let plain = |class, name: &str| Ok((class, name.to_owned()));
    let scaled = |class, name: &str| Ok((class, format!("{name}({scale})")));
    match (column.tds, length) {
        (T::Bit | T::BitN, _) => plain(Class::Bit, "bit"),
        (T::Int1, _) | (T::IntN, 1) => plain(Class::UInt8, "tinyint"),
        (T::Int2, _) | (T::IntN, 2) => plain(Class::Int16, "smallint"),
        (T::Int4, _) | (T::IntN, 4) => plain(Class::Int32, "int"),
        (T::Int8, _) | (T::IntN, 8) => plain(Class::Int64, "bigint"),
        (T::Flt4, _) | (T::FltN, 4) => plain(Class::Float, "real"),
        (T::Flt8, _) | (T::FltN, 8) => plain(Class::Double, "float"),
        (T::Money4, _) | (T::MoneyN, 4) => plain(Class::Decimal(10, 4), "smallmoney"),
        (T::Money, _) | (T::MoneyN, 8) => plain(Class::Decimal(19, 4), "money"),
        (T::Decimal | T::DecimalN, _) => decimal("decimal", precision, scale),
        (T::Numeric | T::NumericN, _) => decimal("numeric", precision, scale),
        (T::DateN, _) => plain(Class::Date, "date"),
        (T::TimeN, _) => scaled(Class::Time(scale), "time"),
        (T::DateTim4, _) | (T::DateTimeN, 4) => plain(Class::DateTime(0), "smalldatetime"),
        (T::DateTime, _) | (T::DateTimeN, 8) => plain(Class::DateTime(3), "datetime"),
        (T::DateTime2N, _) => scaled(Class::DateTime(scale), "datetime2"),
        (T::DateTimeOffsetN, _) => scaled(Class::DateTimeOffset(scale), "datetimeoffset"),
        (T::NVarChar, _) => Ok((Class::Text(Encoding::Utf16), label("nvarchar", column, 2))),
        (T::NChar, _) => Ok((Class::Text(Encoding::Utf16), label("nchar", column, 2))),
        (T::NText, _) => plain(Class::Text(Encoding::Utf16), "ntext"),
        (T::BigVarChar | T::VarChar, _) => Ok((narrow(column)?, label("varchar", column, 1))),
        (T::BigChar | T::Char, _) => Ok((narrow(column)?, label("char", column, 1))),
        (T::Text, _) => Ok((narrow(column)?, "text".to_owned())),
        (T::BigBinary | T::BigVarBinary, _) if column.is_rowversion => plain(Class::Bytes, "rowversion"),
        (T::BigVarBinary | T::VarBinary, _) => Ok((Class::Bytes, label("varbinary", column, 1))),
        (T::BigBinary | T::Binary, _) => Ok((Class::Bytes, label("binary", column, 1))),
        (T::Image, _) => plain(Class::Bytes, "image"),
        (T::Udt, _) => plain(Class::Bytes, column.udt.as_deref().unwrap_or("udt")),
        (T::Guid, _) => plain(Class::Uuid, "uniqueidentifier"),
        (T::Xml, _) => plain(Class::Xml, "xml"),
        (T::Json, _) => plain(Class::Json, "json"),
        (T::SsVariant, _) => plain(Class::Variant, "sql_variant"),
        (T::Vector, 12..) => {
            let numbers = u16::try_from((length - VECTOR_HEAD) / 4).unwrap_or(u16::MAX);
            Ok((Class::Vector(numbers), format!("vector({numbers})")))
        }
        (other, _) => Err(Error::not_supported(format!(
            "the server sends a type that is not known here: {other:?} of {length} bytes"
        ))
        .with_hint("cast the column in the query, such as CAST(... AS nvarchar(max))")),
    }
}

/// The bytes before a vector's numbers.
const VECTOR_HEAD: usize = 8;

fn decimal(name: &str, precision: u8, scale: u8) -> Result<(Class, String)> {
    if !(1..=38).contains(&precision) || scale > precision {
        return Err(Error::internal(format!(
            "the server sent a decimal of {precision} digits, {scale} of them decimals"
        )));
    }
    Ok((Class::Decimal(precision, scale), format!("{name}({precision},{scale})")))
}

fn narrow(column: &Described) -> Result<Class> {
    Encoding::of(column.collation).map(Class::Text)
}

/// The label of a type with a length, in characters of `width` bytes.
fn label(name: &str, column: &Described, width: usize) -> String {
    match column.length {
        UNBOUNDED => format!("{name}(max)"),
        length => format!("{name}({})", length / width),
    }
}

/// The column cannot be read as `wanted`.
pub(crate) fn unreadable(native: &Type, wanted: &DataType) -> Error {
    let error = Error::not_supported(format!("cannot be read as {wanted}"));
    error.with_hint(match (native.class, wanted) {
        (Class::DateTimeOffset(_), DataType::Timestamp(_, None)) => {
            "it is a time in UTC: ask for \"timestamp[us, tz=UTC]\", or convert it in the query"
        }
        (Class::DateTime(_), DataType::Timestamp(..)) => {
            "it has no time zone: ask for \"timestamp[us]\", or convert it in the query"
        }
        _ => "leave it out of schema=, or ask for \"string\"",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn column(tds: TdsDataType, length: usize, precision: u8, scale: u8) -> Described {
        Described {
            name: "c".into(),
            tds,
            length,
            precision,
            scale,
            collation: None,
            nullable: true,
            is_rowversion: false,
            is_identity: false,
            is_generated: false,
            udt: None,
        }
    }

    #[test]
    fn widths_digits_and_units_are_kept() {
        use TdsDataType as T;
        let microseconds = DataType::Timestamp(TimeUnit::Microsecond, None);
        for (column, label, expected) in [
            (column(T::IntN, 1, 0, 0), "tinyint", DataType::UInt8),
            (column(T::IntN, 8, 0, 0), "bigint", DataType::Int64),
            (column(T::MoneyN, 4, 10, 0), "smallmoney", DataType::Decimal128(10, 4)),
            (column(T::NumericN, 17, 38, 38), "numeric(38,38)", DataType::Decimal128(38, 38)),
            (column(T::TimeN, 0, 0, 7), "time(7)", DataType::Time64(TimeUnit::Nanosecond)),
            (column(T::DateTimeN, 8, 0, 0), "datetime", microseconds.clone()),
            (column(T::DateTime2N, 0, 0, 6), "datetime2(6)", microseconds),
            (column(T::NVarChar, 100, 0, 0), "nvarchar(50)", DataType::Utf8),
            (column(T::NVarChar, UNBOUNDED, 0, 0), "nvarchar(max)", DataType::Utf8),
            (column(T::BigVarBinary, 8, 0, 0), "varbinary(8)", DataType::Binary),
        ] {
            let native = Type::of(&column).unwrap();
            assert_eq!((native.label.as_str(), native.arrow(&ReadOptions::default())), (label, expected));
        }
        assert!(Type::of(&column(T::DecimalN, 17, 39, 0)).is_err());
        assert!(Type::of(&column(T::IntN, 3, 0, 0)).is_err());
        // Without a collation, its code page is unknown.
        assert!(Type::of(&column(T::BigVarChar, 5, 0, 0)).is_err());
    }
}
