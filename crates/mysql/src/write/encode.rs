//! The encoder of each column: values -> cells of a table's column, exactly or with an error.

use arrow_schema::{FieldRef, TimeUnit};
use longshore_core::{Error, Kind, Load, Place, Result, TableName};
use longshore_source::Nested;
use longshore_values::{Item, Odd, json, push_period, uuid};

use super::load::{Form, LoadBuffer};
use super::table::{Column, Length, NAMING, Native};
use super::{number, temporal};

/// Appends a value other than NULL as a cell.
type Encode = Box<dyn FnMut(&Item<'_>, &mut LoadBuffer) -> Result<()> + Send>;

/// A column of the table, and how the values of a column of the data become its cells.
pub(super) struct Encoder {
    pub(super) field: FieldRef,
    pub(super) column: Column,
    /// Whether it tells rows apart.
    pub(super) is_key: bool,
    encode: Encode,
}

impl Encoder {
    /// The encoder of `field` into `column`. The session's time zone is `offset` microseconds east of UTC, if that is fixed.
    fn new(field: &FieldRef, column: &Column, load: &Load, offset: Option<i64>) -> Self {
        Self {
            field: field.clone(),
            is_key: load.key.contains(field.name()),
            encode: encode(field, column, load, offset),
            column: column.clone(),
        }
    }

    /// Appends `item`, which is in `row` of the data.
    #[inline]
    pub(super) fn put(&mut self, item: &Item<'_>, row: u64, buffer: &mut LoadBuffer) -> Result<()> {
        let appended = match item {
            Item::Null => self.null(buffer),
            item => (self.encode)(item, buffer),
        };
        appended.map_err(|error| error.at(self.place(Some(row))))
    }

    /// The column, and the row of the data, as errors name them.
    pub(super) fn place(&self, row: Option<u64>) -> Place {
        Place { column: Some(self.field.name().clone()), row, native_type: Some(self.column.words.clone()) }
    }

    fn null(&self, buffer: &mut LoadBuffer) -> Result<()> {
        if self.is_key {
            return Err(Error::data("NULL in a column of the key, which tells rows apart"));
        }
        // The server would take another value for it without a word, as a loaded file's NULL.
        if !self.column.nullable {
            return Err(
                Error::new(Kind::Integrity, "NULL in a column that is NOT NULL").with_sqlstate("23000")
            );
        }
        buffer.null();
        Ok(())
    }

    /// What the column takes from a file's bytes in `variable`; `None` where it takes the bytes themselves.
    pub(super) fn conversion(&self, variable: &str, form: Form) -> Option<String> {
        let is_text = matches!(
            self.column.native,
            Native::Text(_) | Native::Char(_) | Native::Enum(_) | Native::Set(_)
        );
        let takes_utf8 =
            self.column.collation.as_ref().is_some_and(|collation| collation.starts_with("utf8mb4"));
        match self.column.native {
            _ if form == Form::Literals => None,
            Native::Bit(_) => Some(format!("CAST({variable} AS UNSIGNED)")),
            Native::Json | Native::Uuid | Native::Parsed => {
                Some(format!("CONVERT({variable} USING utf8mb4)"))
            }
            _ if is_text && !takes_utf8 => Some(format!("CONVERT({variable} USING utf8mb4)")),
            _ => None,
        }
    }
}

/// The function that appends the values of `field` to cells of `column`.
fn encode(field: &FieldRef, column: &Column, load: &Load, offset: Option<i64>) -> Encode {
    let (field, nested, mut scratch) = (field.clone(), Nested::of(load), String::new());
    let is_utf8 = column.collation.as_ref().is_none_or(|collation| collation.starts_with("utf8"));
    // DATETIME for timestamps with time zone, where the caller wants it, is UTC.
    let as_utc = load.types.iter().any(|(name, _)| name == field.name());
    match column.native.clone() {
        Native::Integer(least, most) => {
            Box::new(move |item, buffer| number::integer(item, least, most, buffer))
        }
        Native::Bit(bits) => {
            let most = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
            Box::new(move |item, buffer| number::integer(item, 0, most.into(), buffer))
        }
        Native::Decimal { precision, scale, signed } => Box::new(move |item, buffer| {
            number::decimal(item, precision, scale, signed, buffer, &mut scratch)
        }),
        Native::Float { single, scale, signed } => {
            Box::new(move |item, buffer| number::float(item, single, scale, signed, buffer, &mut scratch))
        }
        Native::Year => Box::new(number::year),
        Native::Date => Box::new(move |item, buffer| temporal::date(item, buffer, &mut scratch)),
        Native::DateTime(digits) => {
            Box::new(move |item, buffer| temporal::datetime(item, digits, as_utc, buffer, &mut scratch))
        }
        Native::Timestamp(digits) => {
            Box::new(move |item, buffer| temporal::timestamp(item, digits, offset, buffer, &mut scratch))
        }
        Native::Time(digits) => {
            Box::new(move |item, buffer| temporal::time(item, digits, buffer, &mut scratch))
        }
        Native::Text(length) => Box::new(move |item, buffer| {
            let text = as_text(item, &field, nested, &mut scratch)?;
            match length {
                Length::Characters(most) if is_longer(text, most) => return Err(too_long(item, most)),
                // Of another character set, the server counts the bytes.
                Length::Bytes(most) if is_utf8 && text.len() as u64 > most => {
                    return Err(Error::data(format!("{} has more than {most} bytes", item.shown())));
                }
                _ => {}
            }
            buffer.text(text);
            Ok(())
        }),
        Native::Char(most) => Box::new(move |item, buffer| {
            let text = as_text(item, &field, nested, &mut scratch)?;
            if is_longer(text, most) {
                return Err(too_long(item, most));
            }
            if text.ends_with(' ') {
                return Err(Error::data(format!("{} ends with a space, which CHAR loses", item.shown()))
                    .with_hint("make the column a VARCHAR, or strip the text"));
            }
            buffer.text(text);
            Ok(())
        }),
        Native::Json => Box::new(move |item, buffer| {
            let (Item::Text(_) | Item::List(_) | Item::Row(..)) = item else { return Err(refused(item)) };
            buffer.text(as_text(item, &field, nested, &mut scratch)?);
            Ok(())
        }),
        Native::Parsed => Box::new(move |item, buffer| {
            buffer.text(as_text(item, &field, nested, &mut scratch)?);
            Ok(())
        }),
        Native::Bytes(most) => Box::new(move |item, buffer| bytes(item, 0, most, buffer)),
        Native::Binary(length) => Box::new(move |item, buffer| bytes(item, length, length, buffer)),
        // The server would take a label that its collation finds equal, or a label's number.
        Native::Enum(labels) => Box::new(move |item, buffer| {
            label(item, &labels, |text| labels.iter().any(|it| it == text), buffer)
        }),
        Native::Set(labels) => Box::new(move |item, buffer| {
            let is_member = |text: &str| labels.iter().any(|label| label == text);
            let are_members = |text: &str| text.is_empty() || text.split(',').all(is_member);
            label(item, &labels, are_members, buffer)
        }),
        Native::Uuid => Box::new(uuid_cell),
    }
}

/// Text, and the text of what text holds exactly.
fn as_text<'a>(
    item: &'a Item<'_>,
    field: &FieldRef,
    nested: Nested,
    scratch: &'a mut String,
) -> Result<&'a str> {
    match item {
        Item::Text(text) => return Ok(text),
        Item::Uuid(bytes) => *scratch = uuid(bytes),
        Item::Int(_) | Item::UInt(_) | Item::Decimal(..) | Item::WideDecimal(..) => {
            number::digits(item, scratch);
        }
        Item::Interval(months, days, nanoseconds) => {
            scratch.clear();
            push_period(scratch, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
        }
        Item::List(_) | Item::Row(..) if nested == Nested::Json => {
            *scratch = json(item, field).map_err(not_json)?;
        }
        _ => return Err(refused(item)),
    }
    Ok(scratch)
}

/// The error of a value that the column does not hold exactly.
#[cold]
pub(super) fn misfit(item: &Item<'_>) -> Error {
    Error::data(format!("{} does not fit", item.shown()))
}

/// The error of a value of a type that the column does not take.
#[cold]
pub(super) fn refused(item: &Item<'_>) -> Error {
    let error = Error::data(format!("{} cannot be written into this type", item.shown()));
    match item {
        Item::List(_) | Item::Row(..) => {
            error.with_hint("options={\"nested\": \"json\"} writes \"<column>\" as JSON into a column of JSON or text")
        }
        Item::Timestamp(..) => error.with_hint(
            "TIMESTAMP holds instants: give \"<column>\" a time zone, or make the column a DATETIME",
        ),
        Item::Instant(..) => error.with_hint(
            "DATETIME has no time zone: take it away from \"<column>\" (as UTC, say), or make the column a TIMESTAMP",
        ),
        _ => error.with_hint("convert \"<column>\" to the table's type first"),
    }
}

#[cold]
fn not_json(odd: Odd) -> Error {
    match odd {
        Odd::Null => Error::data("it cannot be JSON"),
        Odd::Fault(fault) => {
            let error = Error::data(format!("it cannot be JSON: {}", fault.0));
            fault.1.into_iter().fold(error, Error::with_hint)
        }
    }
}

fn is_longer(text: &str, most: u64) -> bool {
    text.len() as u64 > most && text.chars().count() as u64 > most
}

#[cold]
fn too_long(item: &Item<'_>, most: u64) -> Error {
    let error = Error::data(format!("{} has more than {most} characters", item.shown()));
    error.with_hint("make the column longer, such as types={\"<column>\": \"varchar(500)\"} for a new table")
}

fn bytes(item: &Item<'_>, least: u64, most: u64, buffer: &mut LoadBuffer) -> Result<()> {
    let bytes: &[u8] = match item {
        Item::Bytes(bytes) => bytes,
        Item::Uuid(bytes) => bytes.as_slice(),
        _ => return Err(refused(item)),
    };
    let length = bytes.len() as u64;
    if length > most {
        return Err(Error::data(format!("{} are more than {most}", item.shown())));
    }
    if length < least {
        return Err(Error::data(format!("{}, which BINARY would fill up to {least}", item.shown()))
            .with_hint("make the column a VARBINARY"));
    }
    buffer.raw(bytes);
    Ok(())
}

fn label(
    item: &Item<'_>,
    labels: &[String],
    is_known: impl Fn(&str) -> bool,
    buffer: &mut LoadBuffer,
) -> Result<()> {
    match item {
        Item::Text(text) if is_known(text) => {
            buffer.text(text);
            Ok(())
        }
        Item::Text(_) => Err(Error::data(format!("{} is not one of the column's labels", item.shown()))
            .with_hint(format!("they are {}", labels.join(", ")))),
        _ => Err(refused(item)),
    }
}

fn uuid_cell(item: &Item<'_>, buffer: &mut LoadBuffer) -> Result<()> {
    match item {
        Item::Uuid(bytes) => buffer.plain(&uuid(bytes)),
        Item::Bytes(bytes) => {
            let bytes: &[u8; 16] = (*bytes).try_into().map_err(|_| refused(item))?;
            buffer.plain(&uuid(bytes));
        }
        Item::Text(text) if is_uuid(text) => buffer.plain(text),
        _ => return Err(refused(item)),
    }
    Ok(())
}

fn is_uuid(text: &str) -> bool {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if is_hyphen(at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// The encoder of each column of the data, which goes into the table's column of its name.
pub(super) fn encoders(
    load: &Load,
    name: &TableName,
    columns: &[Column],
    offset: Option<i64>,
) -> Result<Vec<Encoder>> {
    let found = NAMING.mapping(load, name, columns)?;
    // A file that is loaded would put zeros there.
    let is_missing =
        |column: &&Column| !column.is_optional() && found.iter().all(|known| known.name != column.name);
    let missing: Vec<&str> = columns.iter().filter(is_missing).map(|column| column.name.as_str()).collect();
    if !missing.is_empty() {
        let text = format!("{name} needs these columns, which have no default: {}", missing.join(", "));
        return Err(Error::new(Kind::Integrity, text)
            .with_sqlstate("23000")
            .with_hint("give the data these columns, or the columns a default"));
    }
    let pairs = load.schema.fields().iter().zip(found);
    Ok(pairs.map(|(field, column)| Encoder::new(field, column, load, offset)).collect())
}
