//! The one type of a column's objects, inferred from their profile, and what it is in Arrow.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use longshore_core::EXTENSION;

use crate::profile::{FieldProfiles, Integers, Profile, ValueKind};
use crate::read::Extent;
use longshore_values::Fault;

/// The kind of all objects of a place.
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
    /// With a time zone, UTC, if `utc`.
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
    /// The text that Python's `str` gives of each.
    Str,
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

    pub(crate) fn data_type(&self) -> DataType {
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
            Self::Text { large: true } | Self::Json | Self::Str => DataType::LargeUtf8,
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

/// The most bytes that Arrow's plain texts have in an array.
const PLAIN: u64 = i32::MAX as u64;

/// The type of all rows of a column. Scalars must be of one; with dicts or lists among them JSON does as well, unless
/// `as_text` has another form for what is not of one type.
pub(crate) fn infer(profile: &Profile, as_text: bool) -> Result<Kind, Fault> {
    one(profile)?.or_else(|clash| {
        let is_nested = profile.has(ValueKind::List) || profile.has(ValueKind::Dict);
        if is_nested && !as_text { json(profile) } else { Err(clash) }
    })
}

/// The type of what lies in dicts and lists.
fn inner(profile: &Profile) -> Result<Kind, Fault> {
    one(profile)?.or_else(|_| json(profile))
}

/// The one type of all values, or why there is none. What lies below them may have none at all.
fn one(profile: &Profile) -> Result<Result<Kind, Fault>, Fault> {
    let kinds = profile.kinds();
    let found: Vec<ValueKind> = kinds.iter().map(|(kind, _)| *kind).collect();
    let large = profile.size > PLAIN;
    Ok(Ok(match found.as_slice() {
        [] => Kind::Null,
        [ValueKind::Bool] => Kind::Bool,
        [ValueKind::Int] => return Ok(integers(&profile.integers)),
        [ValueKind::Float] => Kind::Float64,
        [ValueKind::Int, ValueKind::Float] | [ValueKind::Float, ValueKind::Int] => {
            return Ok(floats(profile));
        }
        [ValueKind::Decimal]
        | [ValueKind::Int, ValueKind::Decimal]
        | [ValueKind::Decimal, ValueKind::Int] => {
            return Ok(decimals(profile));
        }
        [ValueKind::Text] => Kind::Text { large },
        [ValueKind::Bytes] => Kind::Bytes { large },
        [ValueKind::Date] => Kind::Date,
        [ValueKind::Timestamp] => Kind::Timestamp { utc: false },
        [ValueKind::TimestampTz] => Kind::Timestamp { utc: true },
        [ValueKind::Time] => Kind::Time,
        [ValueKind::Duration] => Kind::Duration,
        [ValueKind::Uuid] => Kind::Uuid,
        [ValueKind::Interval] => Kind::Interval,
        [ValueKind::List] => Kind::List(Box::new(items(profile)?)),
        [ValueKind::Dict] => return members(profile).map(Ok),
        [first, .., _] => return Ok(Err(clash(&kinds, *first))),
    }))
}

#[cold]
fn clash(kinds: &[(ValueKind, usize)], first: ValueKind) -> Fault {
    let (kind, row) = kinds[1];
    let message = format!(
        "it is {}, while row {} is {}: the objects are not of one type",
        kind.name(),
        kinds[0].1,
        first.name()
    );
    Fault::data(row, message)
        .with_hint("convert the column, or take the text of each with options={\"objects\": \"text\"}")
}

fn integers(integers: &Integers) -> Result<Kind, Fault> {
    let bound = 10_i128.pow(u32::from(NARROW));
    if i64::try_from(integers.least).is_ok()
        && i64::try_from(integers.most).is_ok()
        && integers.beyond.is_none()
    {
        return Ok(Kind::Int64);
    }
    if let Some(row) = integers.beyond {
        return Err(too_long(row));
    }
    if integers.least >= 0 && u64::try_from(integers.most).is_ok() {
        return Ok(Kind::UInt64);
    }
    if -bound < integers.least && integers.most < bound {
        return Ok(Kind::Decimal(NARROW, 0));
    }
    Ok(Kind::Decimal(WIDE, 0))
}

#[cold]
fn too_long(row: usize) -> Fault {
    Fault::data(row, "the integer has more than 128 bits")
        .with_hint("convert the column to text, or to float where that is near enough")
}

fn floats(profile: &Profile) -> Result<Kind, Fault> {
    let Some(row) = profile.integers.inexact else { return Ok(Kind::Float64) };
    Err(Fault::data(row, "the column also holds floats, and no float of 64 bits equals this integer")
        .with_hint("make Decimals of the column, or convert it to float where that is near enough"))
}

fn decimals(profile: &Profile) -> Result<Kind, Fault> {
    if let Some(row) = profile.decimals.infinite {
        return Err(Fault::data(row, "NaN and infinity have no exact decimal")
            .with_hint("replace them by None, or convert the column to float"));
    }
    if let Some(row) = profile.integers.beyond {
        return Err(too_long(row));
    }
    let mut extent = profile.decimals.extent;
    extent.merge(Extent { whole: digits(&profile.integers), scale: 0 });
    let precision = extent.whole.saturating_add(extent.scale).max(1);
    match (u8::try_from(precision), i8::try_from(extent.scale)) {
        (Ok(precision), Ok(scale)) if precision <= WIDE => Ok(Kind::Decimal(precision, scale)),
        _ => {
            let row = profile.decimals.beyond.or_else(|| profile.kinds().last().map(|(_, row)| *row));
            Err(Fault::data(
                row.unwrap_or(0),
                "the decimals have more than 76 digits before and after the point",
            )
            .with_hint("round them, or convert the column to text"))
        }
    }
}

/// The digits of the longest integer.
fn digits(integers: &Integers) -> u32 {
    let longest = integers.least.unsigned_abs().max(integers.most.unsigned_abs());
    longest.checked_ilog10().map_or(0, |log| log + 1)
}

fn items(profile: &Profile) -> Result<Kind, Fault> {
    profile.items.as_deref().map_or(Ok(Kind::Null), |items| inner(items).map_err(Fault::in_list))
}

/// A struct of all keys; JSON where its fields could not be told apart or named.
fn members(profile: &Profile) -> Result<Kind, Fault> {
    let Some(members) = profile.fields.as_deref().filter(|members| is_struct(members)) else {
        return json(profile);
    };
    let fields = members.each().map(|(name, profile)| {
        let kind = inner(profile).map_err(|fault| fault.under(name))?;
        Ok((name.to_owned(), kind))
    });
    fields.collect::<Result<_, _>>().map(Kind::Struct)
}

/// SQL takes fields whose names differ in case alone for one, and has none without a name. Dicts of very many keys are
/// tables of their own, of which a struct would be nearly empty.
fn is_struct(members: &FieldProfiles) -> bool {
    if members.rest.is_some() {
        return false;
    }
    let names = members.names.texts();
    let folded: HashSet<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    !names.is_empty() && folded.len() == names.len() && !folded.contains("")
}

/// JSON, if it has all that was profile, at any depth.
fn json(profile: &Profile) -> Result<Kind, Fault> {
    if let Some((kind, row)) = profile.kinds().into_iter().find(|(kind, _)| !kind.is_json()) {
        return Err(Fault::data(
            row,
            format!("{} has no form in JSON, which the column's other values need", kind.name()),
        )
        .with_hint("convert these values to one type, or to text"));
    }
    if let Some(row) = profile.infinite {
        return Err(Fault::data(
            row,
            "JSON has no NaN and no infinity, and the column's other values need JSON",
        )
        .with_hint("replace them by None, or convert these values to one type"));
    }
    if let Some(items) = &profile.items {
        json(items).map_err(Fault::in_list)?;
    }
    if let Some(members) = &profile.fields {
        for (name, profile) in members.each() {
            json(profile).map_err(|fault| fault.under(name))?;
        }
        if let Some(rest) = &members.rest {
            json(rest).map_err(|fault| fault.under("*"))?;
        }
    }
    Ok(Kind::Json)
}
