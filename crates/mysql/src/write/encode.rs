//! The encoder of each column: values -> cells of a table's column, exactly or with an error.

use arrow_schema::{DataType, FieldRef, TimeUnit};
use longshore_core::{Error, Kind, Load, Place, Result, TableName};
use longshore_source::table::value_type;
use longshore_source::{Nested, fit};
use longshore_values::{Item, Misfit, push_number, push_period, uuid};

use super::load::{Form, LoadBuffer};
use super::table::{Column, Length, NAMING, Native};
use super::{number, temporal};
use crate::temporal::unknown_zone;

/// Appends a value other than NULL as a cell.
type Encode = Box<dyn FnMut(&Item<'_>, &mut LoadBuffer) -> Result<(), Misfit> + Send>;

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
    fn new(field: &FieldRef, column: &Column, load: &Load, offset: Option<i64>) -> Result<Self> {
        let encoder = Self {
            field: field.clone(),
            is_key: load.key.contains(field.name()),
            encode: encode(field, column, load, offset.unwrap_or_default()),
            column: column.clone(),
        };
        let is_instant = matches!(value_type(field.data_type()), DataType::Timestamp(_, Some(_)));
        if offset.is_none() && is_instant && matches!(column.native, Native::Timestamp(_)) {
            return Err(unknown_zone().at(encoder.place(None)));
        }
        Ok(encoder)
    }

    /// Appends `item`, which is in `row` of the data.
    #[inline]
    pub(super) fn put(&mut self, item: &Item<'_>, row: u64, buffer: &mut LoadBuffer) -> Result<()> {
        match item {
            Item::Null => self.null(row, buffer),
            item => {
                (self.encode)(item, buffer).map_err(|misfit| fit::misfit(item, misfit, self.place(Some(row))))
            }
        }
    }

    /// The column, and the row of the data, as errors name them.
    pub(super) fn place(&self, row: Option<u64>) -> Place {
        Place { column: Some(self.field.name().clone()), row, native_type: Some(self.column.words.clone()) }
    }

    fn null(&self, row: u64, buffer: &mut LoadBuffer) -> Result<()> {
        if self.is_key {
            return Err(fit::misfit(&Item::Null, fit::null_key(), self.place(Some(row))));
        }
        // The server would take another value for it without a word, as a loaded file's NULL.
        if !self.column.nullable {
            return Err(fit::not_null("23000", self.place(Some(row))));
        }
        buffer.null();
        Ok(())
    }

    /// The value that the column takes from a file's bytes in `variable`; `None` where it takes the bytes themselves.
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
fn encode(field: &FieldRef, column: &Column, load: &Load, offset: i64) -> Encode {
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
        Native::Decimal(decimals) => {
            Box::new(move |item, buffer| number::decimal(item, decimals, buffer, &mut scratch))
        }
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
                Length::Characters(most) => fit::characters(text, most)?,
                // Of another character set, the server counts the bytes.
                Length::Bytes(most) if is_utf8 => fit::bytes(text.len(), most)?,
                Length::Bytes(_) => {}
            }
            buffer.text(text);
            Ok(())
        }),
        Native::Char(most) => Box::new(move |item, buffer| {
            let text = as_text(item, &field, nested, &mut scratch)?;
            fit::characters(text, most)?;
            if text.ends_with(' ') {
                let hint = "make the column a VARCHAR, or strip the text";
                return Err(Misfit::with_hint("the column would lose the space at its end", hint));
            }
            buffer.text(text);
            Ok(())
        }),
        Native::Json => Box::new(move |item, buffer| {
            let (Item::Text(_) | Item::List(_) | Item::Row(..)) = item else {
                return Err(fit::wrong_type(item));
            };
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
) -> Result<&'a str, Misfit> {
    match item {
        Item::Text(text) => return Ok(text),
        Item::Uuid(bytes) => *scratch = uuid(bytes),
        Item::Interval(months, days, nanoseconds) => {
            scratch.clear();
            push_period(scratch, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
        }
        Item::List(_) | Item::Row(..) => *scratch = fit::document(item, field, nested)?,
        _ => {
            scratch.clear();
            if !push_number(scratch, item) {
                return Err(fit::wrong_type(item));
            }
        }
    }
    Ok(scratch)
}

fn bytes(item: &Item<'_>, least: usize, most: usize, buffer: &mut LoadBuffer) -> Result<(), Misfit> {
    let bytes: &[u8] = match item {
        Item::Bytes(bytes) => bytes,
        Item::Uuid(bytes) => bytes.as_slice(),
        _ => return Err(fit::wrong_type(item)),
    };
    fit::bytes(bytes.len(), most)?;
    if bytes.len() < least {
        let what = format!("the column would fill it up to {least} bytes");
        return Err(Misfit::with_hint(what, "make the column a VARBINARY"));
    }
    buffer.raw(bytes);
    Ok(())
}

fn label(
    item: &Item<'_>,
    labels: &[String],
    is_known: impl Fn(&str) -> bool,
    buffer: &mut LoadBuffer,
) -> Result<(), Misfit> {
    match item {
        Item::Text(text) if is_known(text) => {
            buffer.text(text);
            Ok(())
        }
        Item::Text(_) => Err(fit::no_label(labels)),
        _ => Err(fit::wrong_type(item)),
    }
}

fn uuid_cell(item: &Item<'_>, buffer: &mut LoadBuffer) -> Result<(), Misfit> {
    match item {
        Item::Uuid(bytes) => buffer.plain(&uuid(bytes)),
        Item::Bytes(bytes) => {
            let bytes: &[u8; 16] = (*bytes).try_into().map_err(|_| fit::wrong_type(item))?;
            buffer.plain(&uuid(bytes));
        }
        Item::Text(text) if is_uuid(text) => buffer.plain(text),
        _ => return Err(fit::wrong_type(item)),
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
    pairs.map(|(field, column)| Encoder::new(field, column, load, offset)).collect()
}
