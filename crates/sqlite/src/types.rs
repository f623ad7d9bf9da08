//! The table of types: from a declared type to the column that is read.

use std::collections::HashMap;

use arrow_buffer::i256;
use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::{
    Column, DEFERRED, Decimals, Error, NATIVE_TYPE, Place, ReadOptions, Result, Unrepresentable,
};
use longshore_values::decimal::DecimalType;

use crate::decode::overrides;

/// The promise of a declared type for a column's values. SQLite itself enforces none of it (sqlite.org/datatype3.html).
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
    /// Dates.
    Date,
    /// Timestamps without a time zone.
    Timestamp,
    /// Timestamps with a time zone.
    TimestampTz,
    /// Times of day.
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
                    Self::TimestampTz
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
            Self::TimestampTz => DataType::Timestamp(MICROSECONDS, Some("UTC".into())),
            Self::Time => DataType::Time64(MICROSECONDS),
        }
    }

    pub(crate) fn is_temporal(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::TimestampTz | Self::Time)
    }

    /// Whether its values are whole numbers.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Int | Self::UInt | Self::Bool)
    }

    /// Whether its values are stored as numbers.
    pub(crate) fn is_numeric(self) -> bool {
        self.is_whole() || self.is_number() || self == Self::Float
    }

    /// Whether integers and reals are kept together.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Fraction | Self::Number)
    }

    /// The decimals that are kept as texts; `None` for any other class.
    pub(crate) fn decimal(self) -> Option<DecimalType> {
        let (Self::Decimal(precision, scale) | Self::Rounded(precision, scale)) = self else { return None };
        Some(DecimalType { precision, scale, numeric_nan: Unrepresentable::Error })
    }

    /// Whether `text` is a decimal of the class.
    pub(crate) fn holds_decimal(self, text: &[u8]) -> bool {
        self.decimal().is_some_and(|decimal| match decimal.precision {
            ..=38 => decimal.text::<i128>(text).is_ok(),
            _ => decimal.text::<i256>(text).is_ok(),
        })
    }
}

/// `DECIMAL_TEXT(p, s)`, with digits and a scale that Arrow has.
fn decimal(name: &str) -> Class {
    let arguments = name.split_once('(').and_then(|(_, arguments)| arguments.trim_end().strip_suffix(')'));
    let both = arguments.and_then(|arguments| arguments.split_once(','));
    let found = both
        .and_then(|(digits, scale)| Some((digits.trim().parse::<u8>().ok()?, scale.trim().parse().ok()?)));
    match found {
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

/// The facts of a column of a result.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The type that CREATE TABLE declares; `None` for an expression.
    pub declared: Option<String>,
    /// Whether it may hold NULL.
    pub nullable: bool,
    /// Whether SQLite enforces the declared type.
    pub is_enforced: bool,
}

/// A column of a result, as it will be read.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) field: Field,
    pub(crate) class: Class,
    pub(crate) read_as: ReadAs,
}

/// The type that a column becomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadAs {
    /// The type that all values of the whole result need.
    Inferred,
    /// The type that the values of the first batch need.
    InferredFromFirstBatch,
    /// This type.
    Declared(DataType),
    /// The type that the caller asks for.
    Override(DataType),
}

impl Plan {
    /// The class of a column whose type is final only with the whole result.
    pub(crate) fn deferred_class(&self) -> Option<Class> {
        (self.read_as == ReadAs::Inferred).then_some(self.class)
    }

    /// Whether its type is known only with the first rows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.read_as == ReadAs::InferredFromFirstBatch
    }

    /// The column as the core describes it.
    #[must_use]
    pub fn column(&self) -> Column {
        let native_type = self.field.metadata().get(NATIVE_TYPE).cloned().unwrap_or_default();
        Column { field: self.field.clone(), native_type }
    }
}

/// Plans the columns of a result.
///
/// Fails for a `schema=` that names another column, or a type that no value of SQLite becomes.
pub fn plan(facts: Vec<Facts>, options: &ReadOptions) -> Result<Vec<Plan>> {
    options.check_names(facts.iter().map(|column| column.name.as_str()))?;
    facts.into_iter().map(|column| one(column, options)).collect()
}

fn one(facts: Facts, options: &ReadOptions) -> Result<Plan> {
    let declared = facts.declared.as_deref().unwrap_or_default();
    let class = match Class::of(declared) {
        _ if options.own.has("sqlite_types", "stored") => Class::Any,
        Class::Decimal(digits, scale) if options.decimals == Decimals::Float64 => {
            Class::Rounded(digits, scale)
        }
        Class::Decimal(digits, _) if digits > options.decimal_digits => Class::Text,
        class => class,
    };
    let mut metadata = HashMap::new();
    if !declared.is_empty() {
        metadata.insert(NATIVE_TYPE.to_owned(), declared.to_owned());
    }
    let is_streamed = options.decimals == Decimals::Streamed;
    let read_as = match options.wanted_type(&facts.name) {
        Some(wanted) => ReadAs::Override(check_supported(&facts, wanted, class, options)?),
        None if facts.is_enforced && class != Class::Any => ReadAs::Declared(class.arrow()),
        None if !is_streamed => ReadAs::Inferred,
        None if class == Class::Any => ReadAs::InferredFromFirstBatch,
        None => ReadAs::Declared(class.arrow()),
    };
    let makes_null =
        options.infinity == Unrepresentable::Null || options.numeric_nan == Unrepresentable::Null;
    let (data_type, nullable) = match &read_as {
        ReadAs::Override(wanted) => (wanted.clone(), facts.nullable || makes_null),
        ReadAs::Inferred => {
            metadata.insert(DEFERRED.to_owned(), String::new());
            (class.arrow(), facts.nullable)
        }
        _ => (class.arrow(), facts.nullable),
    };
    let field = Field::new(facts.name, data_type, nullable).with_metadata(metadata);
    Ok(Plan { field, class, read_as })
}

fn check_supported(
    facts: &Facts,
    wanted: &DataType,
    class: Class,
    options: &ReadOptions,
) -> Result<DataType> {
    let too_wide = matches!(wanted, DataType::Decimal256(digits, _) if *digits > options.decimal_digits);
    if !too_wide && overrides::reader(wanted, class, options).is_some() {
        return Ok(wanted.clone());
    }
    let place = Place { column: Some(facts.name.clone()), row: None, native_type: facts.declared.clone() };
    Err(Error::not_supported(format!("cannot be read as {wanted}"))
        .with_hint("leave it out of schema=, or ask for \"string\"")
        .at(place))
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
            ("TIMESTAMP WITH TIME ZONE", Class::TimestampTz),
            ("timestamptz", Class::TimestampTz),
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
