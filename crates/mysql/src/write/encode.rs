//! The encoder of each column: values -> cells of a table's column, exactly or with an error.

use arrow_schema::{FieldRef, TimeUnit};
use longshore_cells::{Item, Odd, json, push_period, uuid};
use longshore_core::{Error, Kind, Load, Nested, Place, Result};

use super::load::{Form, Page};
use super::number;
use super::table::{Column, Length, Name, Native, Otherwise};
use super::temporal::{self, Moment};

/// A column of the table that values go into.
#[derive(Debug)]
pub(super) struct Encoder {
    /// The column in the data, and in the table.
    pub(super) field: FieldRef,
    pub(super) column: Column,
    pub(super) nested: Nested,
    pub(super) moments: Moments,
    /// Whether it tells rows apart.
    pub(super) is_key: bool,
}

/// What becomes of moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// Microseconds that the session's time zone is east of UTC, if that is fixed.
    pub(super) offset: Option<i64>,
    /// Whether the caller has chosen DATETIME for instants, which is UTC then.
    pub(super) as_utc: bool,
}

impl Encoder {
    /// Appends `item`, which is in `row` of the data.
    #[inline]
    pub(super) fn put(&self, item: &Item<'_>, row: u64, page: &mut Page, room: &mut String) -> Result<()> {
        match self.cell(item, page, room) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.placed(error, row)),
        }
    }

    #[cold]
    fn placed(&self, error: Error, row: u64) -> Error {
        error.at(Place {
            column: Some(self.field.name().clone()),
            row: Some(row),
            native_type: Some(self.column.words.clone()),
        })
    }

    fn cell(&self, item: &Item<'_>, page: &mut Page, room: &mut String) -> Result<()> {
        if matches!(item, Item::Null) {
            return self.null(page);
        }
        match &self.column.native {
            Native::Integer(least, most) => number::integer(item, *least, *most, page),
            Native::Decimal { precision, scale, signed } => {
                number::decimal(item, *precision, *scale, *signed, page, room)
            }
            Native::Float { scale, signed } => number::float(item, true, *scale, *signed, page, room),
            Native::Double { scale, signed } => number::float(item, false, *scale, *signed, page, room),
            Native::Bit(bits) => {
                let most = u64::MAX >> (64 - u32::from((*bits).clamp(1, 64)));
                number::integer(item, 0, most.into(), page)
            }
            Native::Year => number::year(item, page),
            Native::Date => temporal::put(item, Moment::Date, self.moments, page, room),
            Native::DateTime(digits) => {
                temporal::put(item, Moment::DateTime(*digits), self.moments, page, room)
            }
            Native::Timestamp(digits) => {
                temporal::put(item, Moment::Timestamp(*digits), self.moments, page, room)
            }
            Native::Time(digits) => temporal::put(item, Moment::Time(*digits), self.moments, page, room),
            Native::Text(length) => self.text(item, Some(*length), page, room),
            Native::Char(most) => fixed_text(item, self.as_text(item, room)?, *most, page),
            Native::Parsed => self.text(item, None, page, room),
            Native::Bytes(most) => bytes(item, 0, *most, page),
            Native::Binary(length) => bytes(item, *length, *length, page),
            Native::Geometry => bytes(item, 0, u64::MAX, page),
            Native::Enum(labels) => label(item, labels, page),
            Native::Set(labels) => members(item, labels, page),
            Native::Json => self.json(item, page, room),
            Native::Uuid => uuid_cell(item, page),
        }
    }

    fn null(&self, page: &mut Page) -> Result<()> {
        if self.is_key {
            return Err(Error::data("NULL in a column of the key, which tells rows apart"));
        }
        // The server would take another value for it without a word, as a loaded file's NULL.
        if !self.column.nullable {
            return Err(
                Error::new(Kind::Integrity, "NULL in a column that is NOT NULL").with_sqlstate("23000")
            );
        }
        page.null();
        Ok(())
    }

    fn text(
        &self,
        item: &Item<'_>,
        length: Option<Length>,
        page: &mut Page,
        room: &mut String,
    ) -> Result<()> {
        let text = self.as_text(item, room)?;
        match length {
            Some(Length::Characters(most)) if longer(text, most) => return Err(too_long(item, most)),
            // Of another character set, the server counts the bytes.
            Some(Length::Bytes(most)) if self.is_utf8() && text.len() as u64 > most => {
                return Err(Error::data(format!("{} has more than {most} bytes", item.shown())));
            }
            _ => {}
        }
        page.text(text);
        Ok(())
    }

    /// Text, and what text says exactly.
    fn as_text<'a>(&self, item: &'a Item<'_>, room: &'a mut String) -> Result<&'a str> {
        match item {
            Item::Text(text) => return Ok(text),
            Item::Uuid(bytes) => *room = uuid(bytes),
            Item::Int(_) | Item::UInt(_) | Item::Decimal(..) | Item::WideDecimal(..) => {
                number::digits(item, room);
            }
            Item::Interval(months, days, nanoseconds) => {
                room.clear();
                push_period(room, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
            }
            Item::List(_) | Item::Row(..) if self.nested == Nested::Json => {
                *room = json(item, &self.field).map_err(no_document)?;
            }
            _ => return Err(refused(item)),
        }
        Ok(room)
    }

    fn json(&self, item: &Item<'_>, page: &mut Page, room: &mut String) -> Result<()> {
        let (Item::Text(_) | Item::List(_) | Item::Row(..)) = item else { return Err(refused(item)) };
        page.text(self.as_text(item, room)?);
        Ok(())
    }

    fn is_utf8(&self) -> bool {
        self.column.collation.as_ref().is_none_or(|collation| collation.starts_with("utf8"))
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

/// The error of a value whose like the column does not take.
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
fn no_document(odd: Odd) -> Error {
    match odd {
        Odd::Null => Error::data("it cannot be JSON"),
        Odd::Fault(fault) => {
            let error = Error::data(format!("it cannot be JSON: {}", fault.0));
            fault.1.into_iter().fold(error, Error::with_hint)
        }
    }
}

fn longer(text: &str, most: u64) -> bool {
    text.len() as u64 > most && text.chars().count() as u64 > most
}

fn fixed_text(item: &Item<'_>, text: &str, most: u64, page: &mut Page) -> Result<()> {
    if longer(text, most) {
        return Err(too_long(item, most));
    }
    if text.ends_with(' ') {
        return Err(Error::data(format!("{} ends with a space, which CHAR loses", item.shown()))
            .with_hint("make the column a VARCHAR, or strip the text"));
    }
    page.text(text);
    Ok(())
}

#[cold]
fn too_long(item: &Item<'_>, most: u64) -> Error {
    let error = Error::data(format!("{} has more than {most} characters", item.shown()));
    error.with_hint("make the column longer, such as types={\"<column>\": \"varchar(500)\"} for a new table")
}

fn bytes(item: &Item<'_>, least: u64, most: u64, page: &mut Page) -> Result<()> {
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
    page.raw(bytes);
    Ok(())
}

fn label(item: &Item<'_>, labels: &[String], page: &mut Page) -> Result<()> {
    let Item::Text(text) = item else { return Err(refused(item)) };
    // The server would take a label that its collation finds equal, or a label's number.
    if !labels.iter().any(|label| label == text) {
        return Err(no_label(item, labels));
    }
    page.text(text);
    Ok(())
}

fn members(item: &Item<'_>, labels: &[String], page: &mut Page) -> Result<()> {
    let Item::Text(text) = item else { return Err(refused(item)) };
    let is_known = |member: &str| labels.iter().any(|label| label == member);
    if !text.is_empty() && !text.split(',').all(is_known) {
        return Err(no_label(item, labels));
    }
    page.text(text);
    Ok(())
}

#[cold]
fn no_label(item: &Item<'_>, labels: &[String]) -> Error {
    Error::data(format!("{} is not one of the column's labels", item.shown()))
        .with_hint(format!("they are {}", labels.join(", ")))
}

fn uuid_cell(item: &Item<'_>, page: &mut Page) -> Result<()> {
    match item {
        Item::Uuid(bytes) => page.plain(&uuid(bytes)),
        Item::Bytes(bytes) => {
            let bytes: &[u8; 16] = (*bytes).try_into().map_err(|_| refused(item))?;
            page.plain(&uuid(bytes));
        }
        Item::Text(text) if is_uuid(text) => page.plain(text),
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

/// The column of the table for each of the data's.
pub(super) fn encoders(
    load: &Load,
    name: &Name,
    columns: &[Column],
    offset: Option<i64>,
) -> Result<Vec<Encoder>> {
    let fields = load.schema.fields();
    let found: Vec<Option<&Column>> = fields.iter().map(|field| find(columns, field.name())).collect();
    check_known(load, name, columns, &found)?;
    let encoder = |(field, column): (&arrow_schema::FieldRef, Option<&Column>)| {
        let column = column?.clone();
        let is_chosen = load.types.iter().any(|(chosen, _)| chosen == field.name());
        let as_utc = is_chosen && matches!(column.native, Native::DateTime(_));
        Some(Encoder {
            field: field.clone(),
            nested: load.nested,
            is_key: load.key.contains(field.name()),
            moments: Moments { offset, as_utc },
            column,
        })
    };
    Ok(fields.iter().zip(found).filter_map(encoder).collect())
}

/// Exactly, or without its case, for a table has no two such columns.
fn find<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    let exact = columns.iter().find(|column| column.name == name);
    exact.or_else(|| columns.iter().find(|column| column.name.to_lowercase() == name.to_lowercase()))
}

fn check_known(load: &Load, name: &Name, columns: &[Column], found: &[Option<&Column>]) -> Result<()> {
    let fields = load.schema.fields();
    let listed = |names: Vec<&str>| names.join(", ");
    let extra: Vec<&str> = fields
        .iter()
        .zip(found)
        .filter(|(_, column)| column.is_none())
        .map(|(field, _)| field.name().as_str())
        .collect();
    if !extra.is_empty() {
        let known = listed(columns.iter().map(|column| column.name.as_str()).collect());
        return Err(Error::programming(format!("{} has no columns {}", name.shown(), listed(extra)))
            .with_sqlstate("42S22")
            .with_hint(format!("it has {known}; leave the others out, or rename them")));
    }
    let generated: Vec<&str> = found
        .iter()
        .flatten()
        .filter(|it| it.otherwise == Otherwise::Generated)
        .map(|it| it.name.as_str())
        .collect();
    if !generated.is_empty() {
        return Err(Error::programming(format!(
            "{} generates these columns itself: {}",
            name.shown(),
            listed(generated)
        ))
        .with_hint("leave them out of the data"));
    }
    for (index, column) in found.iter().flatten().enumerate() {
        if found[..index].iter().flatten().any(|earlier| earlier.name == column.name) {
            return Err(Error::programming(format!(
                "two columns of the data are the table's {}",
                column.name
            ))
            .with_hint("MySQL's columns have one name, in whatever case: rename one, or leave it out"));
        }
    }
    // A file that is loaded would put zeros there.
    let is_given = |column: &Column| found.iter().flatten().any(|known| known.name == column.name);
    let missing: Vec<&str> = columns
        .iter()
        .filter(|column| !column.is_optional() && !is_given(column))
        .map(|column| column.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("{} needs these columns, which have no default: {}", name.shown(), listed(missing));
    Err(Error::new(Kind::Integrity, text)
        .with_sqlstate("23000")
        .with_hint("give the data these columns, or the columns a default"))
}
