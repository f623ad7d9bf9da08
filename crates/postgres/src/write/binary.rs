//! Encoders of Arrow columns into cells of the binary format, where a column's Arrow type and its native type are of one
//! kind.

use std::fmt::Display;

use arrow_array::{Array, GenericStringArray, LargeStringArray, OffsetSizeTrait, StringArray};
use arrow_schema::{DataType, Field, TimeUnit};
use longshore_core::EXTENSION;
use longshore_source::fit;
use longshore_source::table::value_type;
use longshore_values::decimal::short_mantissa;
use longshore_values::{Item, Items, Misfit, Uniform};

use super::exact;
use crate::types::{Class, Kind, Type};
use crate::{geometry, hstore, vector};

/// Days from 1970-01-01 to 2000-01-01, from which the server counts.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH: i64 = 10_957 * DAY;
const DAY: i64 = 86_400_000_000;

/// A function that appends the length and the bytes of a cell that is not NULL.
pub(super) type Encode = fn(&Type, &Item<'_>, &mut Vec<u8>) -> Result<(), Misfit>;

/// THE TABLE: what encodes every value of `field` for a column of `native`; `None` where they go as texts.
pub(super) fn encode(field: &Field, native: &Type) -> Option<Encode> {
    use DataType as D;
    let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid");
    let data_type = value_type(field.data_type());
    let is_integer = data_type.is_integer();
    let is_text = data_type.is_string();
    let class = match &native.kind {
        _ if *data_type == D::Null => return Some(|_, _, _| Err(wrong_type())),
        Kind::Plain(class) => *class,
        Kind::Enum(_) if is_text => return Some(label),
        Kind::Enum(_) | Kind::Array { .. } | Kind::Composite(_) | Kind::Range(_) => return None,
    };
    Some(match (class, data_type) {
        (Class::Bool, D::Boolean) => |_, item, out| match item {
            Item::Bool(value) => fixed_bytes([u8::from(*value)], out),
            _ => Err(wrong_type()),
        },
        (Class::Int2, _) if is_integer => {
            |_, item, out| fixed_bytes(integer(item, i16::MIN, i16::MAX)?.to_be_bytes(), out)
        }
        (Class::Int4, _) if is_integer => {
            |_, item, out| fixed_bytes(integer(item, i32::MIN, i32::MAX)?.to_be_bytes(), out)
        }
        (Class::Int8, _) if is_integer => {
            |_, item, out| fixed_bytes(integer(item, i64::MIN, i64::MAX)?.to_be_bytes(), out)
        }
        (Class::Unsigned, _) if is_integer => {
            |_, item, out| fixed_bytes(integer(item, u32::MIN, u32::MAX)?.to_be_bytes(), out)
        }
        (Class::Float4, _) if data_type.is_floating() => |_, item, out| match item {
            Item::Float(value) => fixed_bytes(value.to_be_bytes(), out),
            Item::Double(value) => fixed_bytes(fit::float32(*value)?.to_be_bytes(), out),
            _ => Err(wrong_type()),
        },
        (Class::Float8, _) if data_type.is_floating() => |_, item, out| match item {
            Item::Float(value) => fixed_bytes(f64::from(*value).to_be_bytes(), out),
            Item::Double(value) => fixed_bytes(value.to_be_bytes(), out),
            _ => Err(wrong_type()),
        },
        (Class::Numeric, _) if data_type.is_numeric() => numeric,
        (Class::Text, _) if is_text => |native, item, out| {
            exact::length(native, text(item)?)?;
            bytes(&[], text(item)?.as_bytes(), out)
        },
        (Class::Json, _) if is_text => |_, item, out| bytes(&[], text(item)?.as_bytes(), out),
        // jsonb's version.
        (Class::Jsonb, _) if is_text => |_, item, out| bytes(&[1], text(item)?.as_bytes(), out),
        (Class::Uuid, D::FixedSizeBinary(_)) if is_uuid => |_, item, out| match item {
            Item::Uuid(value) => fixed_bytes(**value, out),
            _ => Err(wrong_type()),
        },
        (Class::Vector | Class::HalfVector, _) if data_type.is_list() => vector::put,
        (Class::Hstore, D::Map(..)) => |_, item, out| hstore::put(item, out),
        (Class::Geometry, D::Binary | D::LargeBinary | D::BinaryView) => |native, item, out| match item {
            Item::Bytes(value) => bytes(&[], &geometry::ewkb(native, value)?, out),
            _ => Err(wrong_type()),
        },
        (Class::Bytes, D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_)) if !is_uuid => {
            |_, item, out| match item {
                Item::Bytes(value) => bytes(&[], value, out),
                _ => Err(wrong_type()),
            }
        }
        (Class::Date, D::Date32 | D::Timestamp(_, None)) => |_, item, out| match item {
            Item::Date(value) => fixed_bytes(days(*value).ok_or_else(beyond)?.to_be_bytes(), out),
            Item::Timestamp(value, unit) => fixed_bytes(day(*value, *unit)?.to_be_bytes(), out),
            _ => Err(wrong_type()),
        },
        (Class::Time, D::Time32(_) | D::Time64(_)) => |native, item, out| match item {
            Item::Time(value, unit) => {
                fixed_bytes(exact::whole_microseconds(native, *value, *unit)?.to_be_bytes(), out)
            }
            _ => Err(wrong_type()),
        },
        (Class::Timestamp, D::Timestamp(_, None)) | (Class::Timestamptz, D::Timestamp(_, Some(_))) => {
            timestamp
        }
        (Class::Interval, D::Interval(_) | D::Duration(_)) => interval,
        _ => return None,
    })
}

fn integer<To>(item: &Item<'_>, least: To, most: To) -> Result<To, Misfit>
where
    To: TryFrom<i64> + TryFrom<u64> + Display,
{
    let value = match item {
        Item::Int(value) => To::try_from(*value).ok(),
        Item::UInt(value) => To::try_from(*value).ok(),
        _ => return Err(wrong_type()),
    };
    value.ok_or_else(|| fit::not_within(least, most))
}

fn numeric(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    match item {
        Item::Decimal(value, scale) => put_numeric(native, *value, *scale, out),
        Item::Int(value) => put_numeric(native, (*value).into(), 0, out),
        Item::UInt(value) => put_numeric(native, (*value).into(), 0, out),
        Item::WideDecimal(..) => put_digits(native, item, out),
        Item::Double(value) => put_double(native, *value, out),
        Item::Float(value) => put_float(native, (*value).into(), &value.to_string(), out),
        _ => Err(wrong_type()),
    }
}

fn text<'a>(item: &Item<'a>) -> Result<&'a str, Misfit> {
    match item {
        Item::Text(value) => Ok(value),
        _ => Err(wrong_type()),
    }
}

fn timestamp(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let (Item::Timestamp(value, unit) | Item::TimestampTz(value, unit)) = item else {
        return Err(wrong_type());
    };
    let at = exact::whole_microseconds(native, *value, *unit)?.checked_sub(EPOCH);
    fixed_bytes(at.filter(|at| *at != i64::MIN).ok_or_else(beyond)?.to_be_bytes(), out)
}

fn interval(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    exact::check(item, native)?;
    let (months, days, microseconds) = match item {
        Item::Duration(value, unit) => (0, 0, exact::whole_microseconds(native, *value, *unit)?),
        Item::Interval(months, days, nanoseconds) => {
            (*months, *days, exact::whole_microseconds(native, *nanoseconds, TimeUnit::Nanosecond)?)
        }
        _ => return Err(wrong_type()),
    };
    out.extend_from_slice(&16_i32.to_be_bytes());
    out.extend_from_slice(&microseconds.to_be_bytes());
    out.extend_from_slice(&days.to_be_bytes());
    out.extend_from_slice(&months.to_be_bytes());
    Ok(())
}

#[inline]
fn fixed_bytes<const N: usize>(value: [u8; N], out: &mut Vec<u8>) -> Result<(), Misfit> {
    bytes(&[], &value, out)
}

#[inline]
fn bytes(prefix: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    let length = i32::try_from(prefix.len() + value.len())
        .map_err(|_| Misfit::fault("PostgreSQL's values have 1 GiB at most"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(prefix);
    out.extend_from_slice(value);
    Ok(())
}

/// The day of a timestamp at midnight, as the server counts it.
#[inline]
fn day(value: i64, unit: TimeUnit) -> Result<i32, Misfit> {
    i32::try_from(fit::midnight(value, unit)?).ok().and_then(days).ok_or_else(beyond)
}

/// Days as the server counts them. The least number stands for -infinity there.
#[inline]
fn days(days: i32) -> Option<i32> {
    days.checked_sub(EPOCH_DAYS).filter(|days| *days != i32::MIN)
}

fn label(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let Kind::Enum(labels) = &native.kind else { return Err(wrong_type()) };
    let value = text(item)?;
    if labels.iter().any(|label| label == value) {
        return bytes(&[], value.as_bytes(), out);
    }
    Err(fit::no_label(labels))
}

#[cold]
fn beyond() -> Misfit {
    fit::beyond("PostgreSQL")
}

#[cold]
fn wrong_type() -> Misfit {
    Misfit::fault("a column of one kind brought a value of another")
}

/// The encoder of a column's batch in the binary format. Without NULLs, and where its values all have a cell,
/// nothing is left to be decided for each.
pub(super) enum ColumnEncoder<'i, 'a> {
    Int4(&'a [i32]),
    Int8(&'a [i64]),
    Float8(&'a [f64]),
    Date(&'a [i32]),
    Numeric(&'a [i128], i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    /// Values that are looked at one by one.
    Each(&'i Items<'a>, Encode),
}

impl<'i, 'a> ColumnEncoder<'i, 'a> {
    pub(super) fn new(items: &'i Items<'a>, native: &Type, encode: Encode) -> Self {
        Self::uniform(items, native).unwrap_or(Self::Each(items, encode))
    }

    /// The encoder of values that the column takes all; a numeric's are still checked one by one.
    fn uniform(items: &Items<'a>, native: &Type) -> Option<Self> {
        let Kind::Plain(class) = native.kind else { return None };
        match (class, items.uniform()?) {
            (Class::Int4, Uniform::Int32(values)) => Some(Self::Int4(values)),
            (Class::Int8, Uniform::Int(values)) => Some(Self::Int8(values)),
            (Class::Float8, Uniform::Double(values)) => Some(Self::Float8(values)),
            (Class::Date, Uniform::Date(values)) => {
                values.iter().all(|value| days(*value).is_some()).then_some(Self::Date(values))
            }
            (Class::Numeric, Uniform::Decimal(values, scale)) => Some(Self::Numeric(values, scale)),
            (Class::Text, Uniform::Text(array)) => takes_all(native, array).then_some(Self::Text(array)),
            (Class::Text, Uniform::LargeText(array)) => {
                takes_all(native, array).then_some(Self::LargeText(array))
            }
            _ => None,
        }
    }

    /// Appends the cell of `row`.
    #[inline]
    pub(super) fn put(&self, row: usize, native: &Type, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            Self::Int4(values) => fixed_bytes(values[row].to_be_bytes(), out),
            Self::Int8(values) => fixed_bytes(values[row].to_be_bytes(), out),
            Self::Float8(values) => fixed_bytes(values[row].to_be_bytes(), out),
            Self::Date(values) => fixed_bytes(days(values[row]).unwrap_or_default().to_be_bytes(), out),
            Self::Numeric(values, scale) => put_numeric(native, values[row], *scale, out),
            Self::Text(array) => bytes(&[], array.value(row).as_bytes(), out),
            Self::LargeText(array) => bytes(&[], array.value(row).as_bytes(), out),
            Self::Each(items, encode) => match items.get(row) {
                Item::Null => {
                    out.extend_from_slice(&(-1_i32).to_be_bytes());
                    Ok(())
                }
                item => encode(native, &item, out),
            },
        }
    }
}

/// Whether a column of `native` takes each text as it is. All of them are looked at as one.
fn takes_all<Offset: OffsetSizeTrait>(native: &Type, array: &GenericStringArray<Offset>) -> bool {
    let offsets = array.value_offsets();
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    let used = array.value_data().get(at(0)..at(array.len()));
    let longest = offsets.windows(2).map(|pair| (pair[1] - pair[0]).as_usize()).max().unwrap_or_default();
    let most = exact::most_characters(native).unwrap_or(usize::MAX);
    // As many bytes or fewer are as many characters or fewer.
    longest <= most && used.is_some_and(|used| !used.contains(&0))
}

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

const GROUP: usize = 4;
const BASE: u64 = 10_000;

/// Appends a numeric (`numeric_recv`: groups of four decimal digits, and where the point is): `value` divided by ten to
/// the power of `scale`.
#[inline]
fn put_numeric(native: &Type, value: i128, scale: i8, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let places = usize::try_from(scale).unwrap_or_default();
    // The last group is filled up with zeros.
    let padding = (GROUP - places % GROUP) % GROUP;
    let power = 10_u64.pow(u32::try_from(padding).unwrap_or_default());
    let magnitude =
        u64::try_from(value.unsigned_abs()).ok().and_then(|magnitude| magnitude.checked_mul(power));
    let is_held =
        || exact::decimals(native).is_none_or(|decimals| decimals.surely_hold(value, i32::from(scale)));
    let Some(mut rest) = magnitude.filter(|_| scale >= 0 && is_held()) else {
        return put_digits(native, &Item::Decimal(value, scale), out);
    };
    let mut groups = [0_u16; 5];
    let mut count = 0;
    while rest > 0 {
        // Below 10,000.
        groups[count] = u16::try_from(rest % BASE).unwrap_or_default();
        rest /= BASE;
        count += 1;
    }
    let weight = i32::try_from(count).unwrap_or_default()
        - i32::try_from(places.div_ceil(GROUP)).unwrap_or_default()
        - 1;
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let header = Header { is_negative: value < 0, weight, scale: places };
    header.put(groups[zeros..count].iter().rev().copied(), count - zeros, out)
}

/// The same for a number of any length, in text.
fn put_digits(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    put_plain(native, &exact::digits(item).unwrap_or_default(), out)
}

/// Appends length and value of a double, by the digits that tell it from all others.
#[inline]
fn put_double(native: &Type, value: f64, out: &mut Vec<u8>) -> Result<(), Misfit> {
    // Where the column has a scale, the server gives every value the column's own.
    let scale = exact::decimals(native).and_then(|decimals| u8::try_from(decimals.scale).ok());
    match scale.and_then(|scale| short_mantissa(value, scale).zip(i8::try_from(scale).ok())) {
        Some((mantissa, scale)) => put_numeric(native, mantissa.into(), scale, out),
        None => put_float(native, value, &value.to_string(), out),
    }
}

/// Appends length and value of a float, by the digits that tell it from all others.
fn put_float(native: &Type, value: f64, plain: &str, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let special = match value {
        _ if value.is_nan() => NAN,
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => NEGATIVE_INFINITY,
        _ => return put_plain(native, plain, out),
    };
    // The server refuses infinity where the column has a precision, and before version 14.
    out.extend_from_slice(&8_i32.to_be_bytes());
    for word in [0, 0, special, 0] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    Ok(())
}

/// Appends length and value of `[-]digits[.digits]`.
fn put_plain(native: &Type, plain: &str, out: &mut Vec<u8>) -> Result<(), Misfit> {
    exact::decimal(native, plain)?;
    let (is_negative, plain) = plain.strip_prefix('-').map_or((false, plain), |rest| (true, rest));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let padded = format!(
        "{:0>whole_width$}{:0<fraction_width$}",
        whole,
        fraction,
        whole_width = whole.len().next_multiple_of(GROUP),
        fraction_width = fraction.len().next_multiple_of(GROUP),
    );
    let (groups, _) = padded.as_bytes().as_chunks::<GROUP>();
    let leading = groups.iter().take_while(|group| **group == *b"0000").count();
    let trailing = groups[leading..].iter().rev().take_while(|group| **group == *b"0000").count();
    let kept = &groups[leading..groups.len() - trailing];
    let before_point = whole.len().div_ceil(GROUP);
    let weight =
        i32::try_from(before_point).unwrap_or(i32::MAX) - 1 - i32::try_from(leading).unwrap_or(i32::MAX);
    let value =
        |group: &[u8; GROUP]| group.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    let header =
        Header { is_negative, weight: if kept.is_empty() { 0 } else { weight }, scale: fraction.len() };
    header.put(kept.iter().map(value), kept.len(), out)
}

struct Header {
    is_negative: bool,
    /// The power of 10,000 that the first group counts.
    weight: i32,
    scale: usize,
}

impl Header {
    fn put(self, groups: impl Iterator<Item = u16>, count: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let number = i16::try_from(count).map_err(|_| beyond_numeric())?;
        let weight = if count == 0 { 0 } else { i16::try_from(self.weight).map_err(|_| beyond_numeric())? };
        let scale =
            u16::try_from(self.scale).ok().filter(|scale| *scale < 1 << 14).ok_or_else(beyond_numeric)?;
        let sign = if self.is_negative && count > 0 { NEGATIVE } else { POSITIVE };
        let length = i32::from(number) * 2 + 8;
        let [l1, l2, l3, l4] = length.to_be_bytes();
        let ([n1, n2], [w1, w2]) = (number.to_be_bytes(), weight.to_be_bytes());
        let ([s1, s2], [d1, d2]) = (sign.to_be_bytes(), scale.to_be_bytes());
        out.extend_from_slice(&[l1, l2, l3, l4, n1, n2, w1, w2, s1, s2, d1, d2]);
        groups.for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
        Ok(())
    }
}

#[cold]
fn beyond_numeric() -> Misfit {
    Misfit::fault("numeric has 131,072 digits before the point and 16,383 after it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(put: impl Fn(&Type, &mut Vec<u8>)) -> Vec<i16> {
        let mut out = Vec::new();
        put(&Type::builtin(1700).unwrap(), &mut out);
        let (length, words) = out.split_at(4);
        assert_eq!(length, i32::try_from(words.len()).unwrap().to_be_bytes());
        words.as_chunks::<2>().0.iter().map(|word| i16::from_be_bytes(*word)).collect()
    }

    #[test]
    fn both_ways_give_the_same_groups() {
        let cases: [(i128, i8); 10] = [
            (0, 0),
            (0, 2),
            (1, 2),
            (-1_250, 2),
            (123_456_789, 4),
            (10_000, 0),
            (100_000_000, 2),
            (5, 7),
            (i128::from(u64::MAX), 3),
            (i128::MIN, 38),
        ];
        for (value, scale) in cases {
            let short = words(|native, out| put_numeric(native, value, scale, out).unwrap());
            let long = words(|native, out| put_digits(native, &Item::Decimal(value, scale), out).unwrap());
            assert_eq!(short, long, "{value} at {scale}");
        }
    }

    #[test]
    fn groups_are_those_of_the_server() {
        // SELECT numeric_send(-12.5): 2 groups, weight 0, negative, scale 1, 12 and 5000.
        assert_eq!(
            words(|native, out| put_numeric(native, -125, 1, out).unwrap()),
            [2, 0, 0x4000, 1, 12, 5000]
        );
        assert_eq!(words(|native, out| put_plain(native, "0.00001", out).unwrap()), [1, -2, 0, 5, 1000]);
        assert_eq!(words(|native, out| put_numeric(native, 3, -5, out).unwrap()), [1, 1, 0, 0, 30]);
    }
}
