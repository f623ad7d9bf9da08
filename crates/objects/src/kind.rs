//! The one type of a column's objects, and what it is in Arrow.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use longshore_core::EXTENSION;

/// What all objects of a place are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Int64,
    UInt64,
    Float64,
    /// At most 76 digits, so many of them after the point.
    Decimal(u8, i8),
    /// More than 2 GiB in all if `large`.
    Text {
        large: bool,
    },
    Bytes {
        large: bool,
    },
    Date,
    /// An instant if `utc`, else without a zone.
    Timestamp {
        utc: bool,
    },
    Time,
    Duration,
    Uuid,
    Interval,
    List(Box<Kind>),
    Struct(Vec<(String, Kind)>),
    /// The JSON of each.
    Json,
    /// What Python's `str` says of each.
    Shown,
}

/// The most digits of Arrow's decimals of 128 bits.
pub(crate) const NARROW: u8 = 38;

/// The most digits of Arrow's decimals of 256 bits.
pub(crate) const WIDE: u8 = 76;

impl Kind {
    /// The Arrow field of this kind.
    pub(crate) fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        match self.extension() {
            Some(extension) => field.with_metadata([(EXTENSION.to_owned(), extension.to_owned())]),
            None => field,
        }
    }

    fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Uuid => Some("arrow.uuid"),
            Self::Json => Some("arrow.json"),
            _ => None,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Bool => DataType::Boolean,
            Self::Int64 => DataType::Int64,
            Self::UInt64 => DataType::UInt64,
            Self::Float64 => DataType::Float64,
            Self::Decimal(precision, scale) if *precision <= NARROW => {
                DataType::Decimal128(*precision, *scale)
            }
            Self::Decimal(precision, scale) => DataType::Decimal256(*precision, *scale),
            Self::Text { large: false } => DataType::Utf8,
            // How long the texts will be is not known before they are made.
            Self::Text { large: true } | Self::Json | Self::Shown => DataType::LargeUtf8,
            Self::Bytes { large: false } => DataType::Binary,
            Self::Bytes { large: true } => DataType::LargeBinary,
            Self::Date => DataType::Date32,
            Self::Timestamp { utc } => {
                DataType::Timestamp(TimeUnit::Microsecond, utc.then(|| Arc::from("UTC")))
            }
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Duration => DataType::Duration(TimeUnit::Microsecond),
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::List(item) => DataType::List(Arc::new(item.field("item"))),
            Self::Struct(fields) => DataType::Struct(struct_fields(fields)),
        }
    }
}

/// The Arrow fields of a struct's.
pub(crate) fn struct_fields(fields: &[(String, Kind)]) -> Fields {
    fields.iter().map(|(name, kind)| kind.field(name)).collect()
}
