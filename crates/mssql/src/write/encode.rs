//! Values -> cells of a table's columns, or why one does not fit: what the server would round, cut or replace is refused.

use arrow_schema::{Field, TimeUnit};
use longshore_core::{Error, Load, Place, Result, Unrepresentable};
use longshore_source::Nested;
use longshore_source::fit::{self, Decimals};
use longshore_values::decimal::DecimalType;
use longshore_values::{Item, Misfit, calendar, per_second, push_number, text, uuid};
use mssql_tds::datatypes::column_values::{
    ColumnValues, SqlDate, SqlDateTime, SqlDateTime2, SqlDateTimeOffset, SqlMoney, SqlSmallDateTime,
    SqlSmallMoney, SqlTime, SqlXml,
};
use mssql_tds::datatypes::decoder::DecimalParts;
use mssql_tds::datatypes::sql_json::SqlJson;
use mssql_tds::datatypes::sql_string::SqlString;
use uuid::Uuid;

use super::table::Column;
use crate::temporal::{self, DAY, FROM_1900, FROM_YEAR_1, SECOND};
use crate::text::Encoding;
use crate::types::{Class, UNBOUNDED};

/// How a column takes values.
pub(super) struct Encoder {
    place: Place,
    class: Class,
    label: String,
    /// The bytes of its longest value.
    length: usize,
    nullable: bool,
    is_key: bool,
    field: Field,
    nested: Nested,
}

impl Encoder {
    pub(super) fn new(field: &Field, column: &Column, is_key: bool, load: &Load) -> Result<Self> {
        let label = column.native.label.clone();
        let place = Place { column: Some(field.name().clone()), row: None, native_type: Some(label.clone()) };
        let class = column.native.class;
        if matches!(class, Class::Variant | Class::Vector(_)) {
            return Err(Error::not_supported(format!("a column of {label} cannot be written"))
                .with_hint("write into a column of another type, and convert it there")
                .at(place));
        }
        Ok(Self {
            place,
            class,
            label,
            length: column.described.length,
            nullable: column.described.nullable,
            is_key,
            field: field.clone(),
            nested: Nested::of(load),
        })
    }

    /// The value that is sent for `item`.
    pub(super) fn cell(&self, item: &Item<'_>) -> Result<ColumnValues, Misfit> {
        if matches!(item, Item::Null) {
            return match () {
                () if self.is_key => Err(fit::null_key()),
                () if !self.nullable => Err(Misfit::Null),
                () => Ok(ColumnValues::Null),
            };
        }
        Ok(match self.class {
            Class::Bit => ColumnValues::Bit(integer(item, 0, 1)? == 1),
            Class::UInt8 => ColumnValues::TinyInt(narrow(integer(item, 0, 255)?)?),
            Class::Int16 => ColumnValues::SmallInt(narrow(integer(item, i16::MIN.into(), i16::MAX.into())?)?),
            Class::Int32 => ColumnValues::Int(narrow(integer(item, i32::MIN.into(), i32::MAX.into())?)?),
            Class::Int64 => ColumnValues::BigInt(narrow(integer(item, i64::MIN.into(), i64::MAX.into())?)?),
            Class::Float => ColumnValues::Real(fit::float32(double(item, true)?)?),
            Class::Double => ColumnValues::Float(double(item, false)?),
            Class::Decimal(precision, scale) => self.decimal(item, precision, scale)?,
            Class::Date => ColumnValues::Date(day(item)?),
            Class::Time(scale) => ColumnValues::Time(sql_time(time(item)?, scale)?),
            Class::DateTime(scale) => self.datetime(timestamp(item, false)?, scale)?,
            Class::DateTimeOffset(scale) => {
                let datetime2 = datetime2(timestamp(item, true)?, scale)?;
                ColumnValues::DateTimeOffset(SqlDateTimeOffset { datetime2, offset: 0 })
            }
            Class::Text(encoding) => self.text(item, encoding)?,
            Class::Xml => ColumnValues::Xml(SqlXml::from(string(item)?.to_owned())),
            Class::Json => match item {
                Item::List(_) | Item::Row(..) => ColumnValues::Json(SqlJson::new(
                    fit::document(item, &self.field, self.nested)?.into_bytes(),
                )),
                _ => ColumnValues::Json(SqlJson::new(string(item)?.as_bytes().to_vec())),
            },
            Class::Uuid => ColumnValues::Uuid(match item {
                Item::Uuid(bytes) => Uuid::from_bytes(**bytes),
                _ => Uuid::from_bytes(text::uuid(string(item)?.as_bytes())?),
            }),
            Class::Bytes => self.bytes(item)?,
            Class::Variant | Class::Vector(_) => return Err(fit::wrong_type(item)),
        })
    }

    /// The error of `item` in `row` of the whole input.
    #[cold]
    pub(super) fn error(&self, item: &Item<'_>, misfit: Misfit, row: u64) -> Error {
        let place = Place { row: Some(row), ..self.place.clone() };
        if matches!(item, Item::Null) && !self.is_key {
            return fit::not_null("23000", place);
        }
        fit::misfit(item, misfit, place)
    }

    fn decimal(&self, item: &Item<'_>, precision: u8, scale: u8) -> Result<ColumnValues, Misfit> {
        let text = number(item)?;
        let decimals = Decimals { precision: precision.into(), scale: scale.into(), is_signed: true };
        decimals.check(&text)?;
        let to = DecimalType { precision, scale: scale.cast_signed(), numeric_nan: Unrepresentable::Error };
        let value: i128 = to.text(text.as_bytes())?;
        Ok(match self.label.as_str() {
            "money" => {
                let value: i64 = narrow(value)?;
                #[allow(clippy::cast_possible_truncation)] // the lower half, and then the upper one
                let halves = (value as i32, (value >> 32) as i32);
                ColumnValues::Money(SqlMoney::from(halves))
            }
            "smallmoney" => ColumnValues::SmallMoney(SqlSmallMoney::from(narrow::<i32>(value)?)),
            _ => ColumnValues::Decimal(DecimalParts::new(value >= 0, precision, scale, value.unsigned_abs())),
        })
    }

    fn text(&self, item: &Item<'_>, encoding: Encoding) -> Result<ColumnValues, Misfit> {
        let document;
        let value = match item {
            Item::List(_) | Item::Row(..) => {
                document = fit::document(item, &self.field, self.nested)?;
                document.as_str()
            }
            Item::Uuid(bytes) => {
                document = uuid(bytes);
                document.as_str()
            }
            _ => string(item)?,
        };
        let sent = SqlString::from_utf8_string(value.to_owned());
        let length = match encoding {
            Encoding::Utf16 => sent.bytes.len(),
            Encoding::CodePage(encoding) => {
                let (bytes, _, has_others) = encoding.encode(value);
                if has_others {
                    return Err(Misfit::with_hint(
                        format!("the column's code page, {}, has not all of its characters", encoding.name()),
                        "make the column nvarchar",
                    ));
                }
                bytes.len()
            }
        };
        // Old types without a length have room for all.
        if self.length != UNBOUNDED
            && !matches!(self.label.as_str(), "text" | "ntext")
            && length > self.length
        {
            return Err(self.too_long(length));
        }
        Ok(ColumnValues::String(sent))
    }

    fn bytes(&self, item: &Item<'_>) -> Result<ColumnValues, Misfit> {
        let bytes = match item {
            Item::Bytes(bytes) => *bytes,
            Item::Uuid(bytes) => bytes.as_slice(),
            _ => return Err(fit::wrong_type(item)),
        };
        if self.length != UNBOUNDED && self.label != "image" && bytes.len() > self.length {
            return Err(self.too_long(bytes.len()));
        }
        if self.label.starts_with("binary(") && bytes.len() < self.length {
            return Err(Misfit::with_hint(
                format!("the column would add zeros up to {} bytes", self.length),
                "make the column varbinary, or give all bytes",
            ));
        }
        Ok(ColumnValues::Bytes(bytes.to_vec()))
    }

    #[cold]
    fn too_long(&self, length: usize) -> Misfit {
        let most = self.length;
        Misfit::with_hint(
            format!("it has {length} bytes, the column {most}"),
            "widen the column, or shorten the value",
        )
    }

    fn datetime(&self, ticks: i64, scale: u8) -> Result<ColumnValues, Misfit> {
        match self.label.as_str() {
            "datetime" => {
                let days = ticks.div_euclid(DAY) + FROM_1900;
                let ms = exact(ticks.rem_euclid(DAY), 10_000, "three-hundredths of a second")?;
                let thirds = (ms * 3 + 5) / 10;
                let value = SqlDateTime { days: small(days)?, time: small(thirds)? };
                if temporal::datetime(&value) != Some(ticks) {
                    return Err(finer("three-hundredths of a second"));
                }
                Ok(ColumnValues::DateTime(value))
            }
            "smalldatetime" => {
                let minutes = exact(ticks, 60 * SECOND, "minutes")?;
                let days = small(minutes.div_euclid(1440) + FROM_1900)?;
                Ok(ColumnValues::SmallDateTime(SqlSmallDateTime {
                    days,
                    time: small(minutes.rem_euclid(1440))?,
                }))
            }
            _ => Ok(ColumnValues::DateTime2(datetime2(ticks, scale)?)),
        }
    }
}

fn integer(item: &Item<'_>, least: i128, most: i128) -> Result<i128, Misfit> {
    match fit::whole(item)? {
        Some(value) => fit::within(value, least, most),
        None => Err(fit::not_within(least, most)),
    }
}

/// A number that was looked at before.
fn narrow<T: TryFrom<i128>>(value: i128) -> Result<T, Misfit> {
    T::try_from(value).map_err(|_| Misfit::fault("it is beyond the column's numbers"))
}

fn double(item: &Item<'_>, is_single: bool) -> Result<f64, Misfit> {
    let value = match item {
        Item::Float(value) => f64::from(*value),
        Item::Double(value) => *value,
        _ => fit::double(&number(item)?, is_single)?,
    };
    if value.is_finite() { Ok(value) } else { Err(fit::not_finite("SQL Server")) }
}

/// The digits of a number.
fn number(item: &Item<'_>) -> Result<String, Misfit> {
    match item {
        Item::Bool(value) => return Ok(u8::from(*value).to_string()),
        Item::Text(text) => return Ok((*text).to_owned()),
        Item::Float(value) if !value.is_finite() => return Err(fit::not_finite("SQL Server")),
        Item::Double(value) if !value.is_finite() => return Err(fit::not_finite("SQL Server")),
        _ => {}
    }
    let mut text = String::new();
    if push_number(&mut text, item) { Ok(text) } else { Err(fit::wrong_type(item)) }
}

fn string<'a>(item: &Item<'a>) -> Result<&'a str, Misfit> {
    match item {
        Item::Text(text) => Ok(text),
        _ => Err(fit::wrong_type(item)),
    }
}

fn day(item: &Item<'_>) -> Result<SqlDate, Misfit> {
    let days = match item {
        Item::Date(days) => i64::from(*days),
        Item::Timestamp(value, unit) => fit::midnight(*value, *unit)?,
        Item::Text(text) => {
            calendar::date(text.as_bytes()).map(i64::from).ok_or_else(|| fit::not_iso(false))?
        }
        _ => return Err(fit::wrong_type(item)),
    };
    date(days)
}

fn date(days: i64) -> Result<SqlDate, Misfit> {
    let days = u32::try_from(days + FROM_YEAR_1).ok();
    days.and_then(|days| SqlDate::create(days).ok()).ok_or_else(|| fit::beyond("SQL Server"))
}

/// The ticks of a time of day.
fn time(item: &Item<'_>) -> Result<i64, Misfit> {
    let ticks = match item {
        Item::Time(value, unit) => in_ticks(*value, *unit)?,
        Item::Text(text) => temporal::parse_time(text).ok_or_else(|| fit::not_iso(false))?,
        _ => return Err(fit::wrong_type(item)),
    };
    if (0..DAY).contains(&ticks) { Ok(ticks) } else { Err(fit::beyond("SQL Server")) }
}

/// The ticks of a timestamp, in UTC where it `has_zone`.
fn timestamp(item: &Item<'_>, has_zone: bool) -> Result<i64, Misfit> {
    match item {
        Item::Timestamp(value, unit) if !has_zone => in_ticks(*value, *unit),
        Item::TimestampTz(value, unit) if has_zone => in_ticks(*value, *unit),
        Item::Date(days) if !has_zone => Ok(i64::from(*days) * DAY),
        Item::Text(text) if !has_zone => temporal::parse_datetime(text).ok_or_else(|| fit::not_iso(false)),
        _ => Err(fit::wrong_type(item)),
    }
}

fn in_ticks(value: i64, unit: TimeUnit) -> Result<i64, Misfit> {
    match unit {
        TimeUnit::Nanosecond => exact(value, 100, "100 nanoseconds"),
        _ => value.checked_mul(SECOND / per_second(unit)).ok_or_else(|| fit::beyond("SQL Server")),
    }
}

/// `value` in units of `per`, of which it is a whole number.
fn exact(value: i64, per: i64, unit: &str) -> Result<i64, Misfit> {
    if value % per == 0 { Ok(value.div_euclid(per)) } else { Err(finer(unit)) }
}

#[cold]
fn finer(unit: &str) -> Misfit {
    Misfit::with_hint(
        format!("the column counts in {unit}, and would round it"),
        "round the data, or make the column datetime2(7)",
    )
}

fn small<T: TryFrom<i64>>(value: i64) -> Result<T, Misfit> {
    T::try_from(value).map_err(|_| fit::beyond("SQL Server"))
}

fn sql_time(ticks: i64, scale: u8) -> Result<SqlTime, Misfit> {
    let per = 10_i64.pow(u32::from(7 - scale.min(7)));
    if ticks % per != 0 {
        return Err(Misfit::with_hint(
            format!("the column has {scale} digits of a second's fraction"),
            "give the column seven, or round the data",
        ));
    }
    Ok(SqlTime { time_nanoseconds: ticks.cast_unsigned(), scale })
}

fn datetime2(ticks: i64, scale: u8) -> Result<SqlDateTime2, Misfit> {
    let days = date(ticks.div_euclid(DAY))?.get_days();
    Ok(SqlDateTime2 { days, time: sql_time(ticks.rem_euclid(DAY), scale)? })
}
