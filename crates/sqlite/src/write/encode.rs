//! A value -> what SQLite stores of it, by the column that it goes into.

use arrow_schema::FieldRef;
use longshore_core::{Error, Place};
use longshore_source::{Nested, fit};
use longshore_values::{Item, Misfit, Uniform};

use crate::cell::{Cell, exact_double, real_text};
use crate::types::Class;
use crate::write::table::Column;
use crate::write::texts;

/// The conversion of the values that go into a column.
pub(super) struct Encoder {
    place: Place,
    class: Class,
    affinity: Affinity,
    nulls: Nulls,
    field: FieldRef,
    nested: Nested,
}

/// The treatment of NULL in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    Stored,
    /// Against its NOT NULL.
    Refused,
    /// No key that another row could have.
    NoKey,
    /// SQLite would put the next number in its place.
    Numbered,
}

pub(super) type Encoded<'a> = Result<Cell<'a>, Misfit>;

impl Encoder {
    /// The encoder of `column`; `is_key` where its value tells the rows of an upsert apart.
    pub(super) fn new(column: &Column, field: &FieldRef, nested: Nested, is_key: bool) -> Self {
        let affinity = Affinity::of(&column.declared, column.is_strict);
        let class = match Class::of(&column.declared) {
            // What the name says is not what the column does.
            class if class.is_numeric() && affinity == Affinity::Text => Class::Text,
            Class::Decimal(..) | Class::Rounded(..) => Class::Text,
            class => class,
        };
        let nulls = match () {
            () if is_key => Nulls::NoKey,
            () if column.is_rowid => Nulls::Numbered,
            () if column.not_null => Nulls::Refused,
            () => Nulls::Stored,
        };
        let native_type = (!column.declared.is_empty()).then(|| column.declared.clone());
        let place = Place { column: Some(field.name().clone()), row: None, native_type };
        Self { place, class, affinity, nulls, field: field.clone(), nested }
    }

    /// The value that is stored of `item`, with a text of its own in `text`.
    #[inline]
    pub(super) fn cell<'a>(&self, item: &Item<'a>, text: &'a mut String) -> Encoded<'a> {
        if matches!(item, Item::Null) {
            return if self.nulls == Nulls::Stored { Ok(Cell::Null) } else { self.null() };
        }
        match self.class {
            class if class.is_numeric() => self.number(item),
            Class::Text | Class::Decimal(..) | Class::Rounded(..) => match item {
                Item::Text(value) => self.text_cell(value),
                _ => self.format(item, text),
            },
            Class::Blob => match item {
                Item::Bytes(value) => Ok(Cell::Blob(value)),
                Item::Uuid(value) => Ok(Cell::Blob(*value)),
                _ => Err(fit::wrong_type(item)),
            },
            Class::Date | Class::Timestamp | Class::TimestampTz | Class::Time => {
                texts::temporal(self.class, item, text)
            }
            _ => self.any(item, text),
        }
    }

    /// Whether what is stored of `values`, none of them NaN, is each as it is.
    pub(super) fn stores_as_is(&self, values: Uniform<'_>) -> bool {
        match values {
            Uniform::Int32(_) | Uniform::Decimal(..) | Uniform::Date(_) => false,
            Uniform::Int(_) => {
                matches!(self.class, Class::Int | Class::Float | Class::Fraction | Class::Number | Class::Any)
                    && self.affinity != Affinity::Real
            }
            Uniform::Double(_) => {
                matches!(self.class, Class::Float | Class::Fraction | Class::Number | Class::Any)
            }
            Uniform::Text(_) | Uniform::LargeText(_) => {
                matches!(self.class, Class::Text | Class::Any)
                    && matches!(self.affinity, Affinity::Text | Affinity::None)
            }
        }
    }

    /// The error of `item` in `row` of the whole input.
    #[cold]
    pub(super) fn error(&self, item: &Item<'_>, misfit: Misfit, row: u64) -> Error {
        let place = Place { row: Some(row), ..self.place.clone() };
        if matches!(item, Item::Null) && self.nulls == Nulls::Refused {
            return fit::not_null("23502", place);
        }
        fit::misfit(item, misfit, place)
    }

    #[cold]
    fn null<'a>(&self) -> Encoded<'a> {
        Err(match self.nulls {
            Nulls::NoKey => fit::null_key(),
            Nulls::Numbered => Misfit::with_hint(
                "it would become a number: SQLite numbers the column itself",
                "leave the column out of the data, or give every row a number",
            ),
            _ => Misfit::Null,
        })
    }

    fn any<'a>(&self, item: &Item<'a>, text: &'a mut String) -> Encoded<'a> {
        match item {
            Item::Bool(_) | Item::Int(_) | Item::UInt(_) | Item::Float(_) | Item::Double(_) => {
                self.number(item)
            }
            Item::Text(value) => self.text_cell(value),
            Item::Bytes(value) => Ok(Cell::Blob(value)),
            _ => self.format(item, text),
        }
    }

    /// A text that stays the text that it is.
    #[inline]
    fn text_cell<'a>(&self, text: &'a str) -> Encoded<'a> {
        if self.affinity.changes(text) {
            return Err(Misfit::with_hint(
                "the text would become a number there",
                "give numbers, or write into a column with TEXT in its type",
            ));
        }
        Ok(Cell::Text(text.as_bytes()))
    }

    fn format<'a>(&self, item: &Item<'_>, text: &'a mut String) -> Encoded<'a> {
        match item {
            Item::List(_) | Item::Row(..) => *text = fit::document(item, &self.field, self.nested)?,
            _ => texts::write(item, text)?,
        }
        self.text_cell(text)
    }

    #[inline]
    fn number<'a>(&self, item: &Item<'_>) -> Encoded<'a> {
        match item {
            Item::Bool(value) if self.class != Class::Float => Ok(Cell::Integer(i64::from(*value))),
            Item::Int(value) => self.integer(*value),
            Item::UInt(value) => match i64::try_from(*value) {
                Ok(value) => self.integer(value),
                Err(_) => {
                    Err(Misfit::with_hint("it is beyond SQLite's integers", "write it into a column of TEXT"))
                }
            },
            Item::Float(value) => self.real(f64::from(*value)),
            Item::Double(value) => self.real(*value),
            Item::Decimal(digits, scale) => self.decimal(*digits, *scale),
            Item::WideDecimal(..) => too_long(),
            Item::Text(text) => self.number_in(text),
            _ => Err(fit::wrong_type(item)),
        }
    }

    #[inline]
    fn integer<'a>(&self, value: i64) -> Encoded<'a> {
        match self.class {
            Class::UInt if value < 0 => Err(fit::below_zero()),
            Class::Bool if !(0..=1).contains(&value) => Err(fit::not_within(0, 1)),
            _ if self.affinity == Affinity::Real => match exact_double(value) {
                Some(value) => Ok(Cell::Real(value)),
                None => {
                    Err(Misfit::with_hint("a double would round it", "write it into a column of INTEGER"))
                }
            },
            _ => Ok(Cell::Integer(value)),
        }
    }

    #[inline]
    fn real<'a>(&self, value: f64) -> Encoded<'a> {
        if value.is_nan() {
            return Err(fit::not_finite("SQLite"));
        }
        if !self.class.is_whole() {
            return Ok(Cell::Real(value));
        }
        match fit::whole_double(value).and_then(|value| i64::try_from(value).ok()) {
            Some(value) => self.integer(value),
            None => Err(fit::not_within(i64::MIN, i64::MAX)),
        }
    }

    /// A decimal, as an integer or as a real that reads back as the same digits.
    fn decimal<'a>(&self, mut digits: i128, mut scale: i8) -> Encoded<'a> {
        const MOST: u128 = 1_000_000_000_000_000;
        let whole = fit::whole_decimal(digits, scale);
        if let Some(value) = whole.and_then(|value| i64::try_from(value).ok()) {
            return self.integer(value);
        }
        if self.class.is_whole() {
            return Err(fit::not_within(i64::MIN, i64::MAX));
        }
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        // Fifteen digits survive the way into a double and back; both operands are exact, so that the quotient is the
        // double next to the decimal.
        if !(0..=22).contains(&scale) || digits.unsigned_abs() >= MOST {
            return too_long();
        }
        #[allow(clippy::cast_precision_loss)] // below 2^53
        Ok(Cell::Real(digits as f64 / 10_f64.powi(i32::from(scale))))
    }

    /// A number that is written as it is printed.
    fn number_in<'a>(&self, text: &str) -> Encoded<'a> {
        if let Ok(value) = text.parse::<i64>()
            && value.to_string() == text
        {
            return self.integer(value);
        }
        if !self.class.is_whole()
            && let Ok(value) = text.parse::<f64>()
            && value.is_finite()
            && (value.to_string() == text || real_text(value) == text)
        {
            return Ok(Cell::Real(value));
        }
        Err(Misfit::with_hint(
            "the text is not a number that would be kept as it is written",
            "give numbers, or write into a column of TEXT",
        ))
    }
}

#[cold]
fn too_long<'a>() -> Encoded<'a> {
    Err(Misfit::with_hint(
        "it has more digits than a REAL keeps",
        "write it into a column of TEXT, such as DECIMAL_TEXT(38,10)",
    ))
}

/// A column's affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// Values stay as they are.
    None,
    /// Numbers become texts.
    Text,
    /// Texts that look like numbers become numbers, whole ones integers.
    Numeric,
    /// Texts that look like numbers, and integers, become reals.
    Real,
}

impl Affinity {
    /// The affinity of a type as CREATE TABLE declares it.
    pub(super) fn of(declared: &str, is_strict: bool) -> Self {
        let name = declared.to_ascii_uppercase();
        let has = |part: &str| name.contains(part);
        match () {
            () if is_strict && name == "ANY" => Self::None,
            () if has("INT") => Self::Numeric,
            () if has("CHAR") || has("CLOB") || has("TEXT") => Self::Text,
            () if has("BLOB") || name.trim().is_empty() => Self::None,
            () if has("REAL") || has("FLOA") || has("DOUB") => Self::Real,
            () => Self::Numeric,
        }
    }

    /// Whether `text` would become a number.
    pub(super) fn changes(self, text: &str) -> bool {
        matches!(self, Self::Numeric | Self::Real) && looks_like_number(text)
    }
}

/// Whether a text is a number to SQLite: digits with a point and an exponent, and blanks around them. More may be taken for
/// one here, less never.
fn looks_like_number(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    starts
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && {
            // A date has digits and signs as well; a sign in a number stands at its start or after the exponent's mark.
            let bytes = digits.as_bytes();
            bytes.windows(2).all(|pair| !matches!(pair[1], b'+' | b'-') || matches!(pair[0], b'e' | b'E'))
        }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longshore_core::{Deadline, Result};

    use super::*;
    use crate::connection::{Connection, Open};

    #[test]
    fn declared_types_have_an_affinity() {
        for (declared, affinity) in [
            ("INTEGER", Affinity::Numeric),
            ("CHARINT", Affinity::Numeric),
            ("VARCHAR(3)", Affinity::Text),
            ("DECIMAL_TEXT(3,1)", Affinity::Text),
            ("DECIMAL(3,1)", Affinity::Numeric),
            ("BLOB", Affinity::None),
            ("", Affinity::None),
            ("DOUBLE PRECISION", Affinity::Real),
            ("JSON", Affinity::Numeric),
            ("ANY", Affinity::Numeric),
        ] {
            assert_eq!(Affinity::of(declared, false), affinity, "{declared}");
        }
        assert_eq!(Affinity::of("ANY", true), Affinity::None);
    }

    #[test]
    fn numbers_in_text_are_seen() {
        for text in ["007", " 1.50\n", "-1e3", "+.5", "1.", "1E+05"] {
            assert!(looks_like_number(text), "{text:?}");
        }
        for text in ["", "abc", "2024-01-01", "12:00:00", "0x10", "Inf", "-", "1 2"] {
            assert!(!looks_like_number(text), "{text:?}");
        }
    }

    /// All texts of so many characters of numbers.
    fn texts(length: u32) -> impl Iterator<Item = String> {
        const LETTERS: &[u8] = b"07.e+- \tx";
        (0..LETTERS.len().pow(length)).map(move |number| {
            let letter = |place| char::from(LETTERS[number / LETTERS.len().pow(place) % LETTERS.len()]);
            (0..length).map(letter).collect()
        })
    }

    #[test]
    fn no_text_that_is_kept_becomes_a_number() -> Result<()> {
        let open = Open {
            name: ":memory:".into(),
            read_only: false,
            create: true,
            busy_timeout: Duration::ZERO,
            attach: true,
        };
        let connection = Connection::open(&open, &Deadline::never())?;
        let prepared = |text| connection.prepare(text).map(|(statement, _)| statement);
        if let Some(mut table) = prepared("CREATE TABLE t (a NUMERIC, b REAL)")? {
            table.step()?;
        }
        for text in (1..=4).flat_map(texts) {
            let insert = prepared("INSERT INTO t VALUES (?1, ?1) RETURNING a, b")?;
            let Some(mut insert) = insert else { continue };
            insert.bind(1, Cell::Text(text.as_bytes()))?;
            assert!(insert.step()?);
            let is_kept = |column| insert.cell(column) == Cell::Text(text.as_bytes());
            for (column, affinity) in [(0, Affinity::Numeric), (1, Affinity::Real)] {
                assert!(is_kept(column) || affinity.changes(&text), "{text:?}");
            }
        }
        Ok(())
    }
}
