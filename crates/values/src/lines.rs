//! Rows as the lines of text files, CSV and JSON, in which each value is written whole.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use longshore_core::memory::{check_available, try_reserve};
use longshore_core::{EXTENSION, Error, Place, Result};
use serde::de::IgnoredAny;

use crate::calendar::civil_from_days;
use crate::text::hex;
use crate::{Item, Items, element, per_second, push_date, push_number, push_period, push_time, uuid};

const FINITE: &str = "read it as NULL (NULLIF in the query), or write another format";
const AS_TEXT: &str = "cast the column to text in the query";
/// Bytes of a text for whose copies there is surely room.
const SHORT: usize = 1 << 20;

/// The lines of a batch as CSV: NULL is a field without text, and the empty text is in quotes. `before` rows went before.
pub fn csv_lines(batch: &RecordBatch, delimiter: char, before: u64) -> Result<Vec<u8>> {
    let columns = columns(batch)?;
    let (mut lines, mut cell) = (Vec::new(), String::new());
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            cell.clear();
            let is_value = column.push_text(row, &mut cell).map_err(|error| column.at(error, row, before))?;
            try_reserve(&mut lines, 2 * cell.len() + 4)?;
            if at > 0 {
                lines.extend_from_slice(delimiter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            if is_value {
                push_field(&mut lines, &cell, delimiter);
            }
        }
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The lines of a batch as JSON, an object each; `before` rows went before.
pub fn json_lines(batch: &RecordBatch, before: u64) -> Result<Vec<u8>> {
    refuse_twins(batch.schema_ref().fields())?;
    let columns = columns(batch)?;
    let (mut lines, mut line) = (Vec::new(), String::new());
    for row in 0..batch.num_rows() {
        line.clear();
        for (at, column) in columns.iter().enumerate() {
            column.push_member(at, row, &mut line).map_err(|error| column.at(error, row, before))?;
        }
        try_reserve(&mut lines, line.len() + 3)?;
        lines.push(b'{');
        lines.extend_from_slice(line.as_bytes());
        lines.extend_from_slice(b"}\n");
    }
    Ok(lines)
}

/// Each column's texts, as CSV or JSON has them; `None` for NULL in CSV.
pub fn texts(batch: &RecordBatch, as_json: bool) -> Result<Vec<Vec<Option<String>>>> {
    let text = |column: &Column<'_>, row: usize| -> Result<Option<String>> {
        let mut text = String::new();
        if as_json {
            return column.push_json(row, &mut text).map(|()| Some(text));
        }
        Ok(column.push_text(row, &mut text)?.then_some(text))
    };
    let each = |column: &Column<'_>| {
        (0..batch.num_rows()).map(|row| text(column, row).map_err(|error| column.at(error, row, 0))).collect()
    };
    columns(batch)?.iter().map(each).collect()
}

fn columns(batch: &RecordBatch) -> Result<Vec<Column<'_>>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(array, field)| Column::new(array, field)).collect()
}

/// Refuses two fields of one name, which an object cannot tell apart.
fn refuse_twins(fields: &Fields) -> Result<()> {
    let twin = |at: usize| fields[..at].iter().any(|other| other.name() == fields[at].name());
    match (0..fields.len()).find(|at| twin(*at)) {
        Some(at) => Err(Error::not_supported(format!(
            "two columns are called {:?}, which JSON cannot tell apart",
            fields[at].name()
        ))
        .with_hint("give each column a name of its own: SELECT a AS one, b AS two")
        .at(place(&fields[at]))),
        None => Ok(()),
    }
}

fn place(field: &Field) -> Place {
    Place { column: Some(field.name().clone()), ..Place::default() }
}

/// A column, and those within a struct.
struct Column<'a> {
    field: &'a Field,
    /// The text before its value in an object.
    key: String,
    items: Items<'a>,
    members: Vec<Column<'a>>,
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef, field: &'a Field) -> Result<Self> {
        let items = Items::new(array, field).map_err(|error| error.at(place(field)))?;
        let mut members = Vec::new();
        if let DataType::Struct(fields) = field.data_type() {
            refuse_twins(fields)?;
            for (array, field) in array.as_struct().columns().iter().zip(fields) {
                members.push(Column::new(array, field)?);
            }
        }
        let mut key = String::new();
        push_quoted(field.name(), &mut key)?;
        key.push(':');
        Ok(Self { field, key, items, members })
    }

    fn at(&self, error: Error, row: usize, before: u64) -> Error {
        error.at(Place { row: Some(before + row as u64), ..place(self.field) })
    }

    /// Writes the text of a value, or the JSON of one with parts; `false` for NULL, of which nothing is written.
    fn push_text(&self, row: usize, to: &mut String) -> Result<bool> {
        match self.items.get(row) {
            Item::Null => return Ok(false),
            Item::List(_) | Item::Row(..) => self.push_json(row, to)?,
            item => push_plain(&item, to)?,
        }
        Ok(true)
    }

    fn push_member(&self, at: usize, row: usize, to: &mut String) -> Result<()> {
        if at > 0 {
            to.push(',');
        }
        to.push_str(&self.key);
        self.push_json(row, to)
    }

    fn push_json(&self, row: usize, to: &mut String) -> Result<()> {
        match self.items.get(row) {
            Item::Null => to.push_str("null"),
            Item::Float(value) if !value.is_finite() => return Err(not_finite(f64::from(value))),
            Item::Double(value) if !value.is_finite() => return Err(not_finite(value)),
            Item::Text(text) if self.is_json() => push_document(text, to)?,
            Item::Text(text) => push_quoted(text, to)?,
            Item::List(values) => {
                let field = element(self.field, &values);
                let column = Column::new(&values, &field)?;
                to.push('[');
                for row in 0..values.len() {
                    if row > 0 {
                        to.push(',');
                    }
                    column.push_json(row, to)?;
                }
                to.push(']');
            }
            Item::Row(_, row) if matches!(self.field.data_type(), DataType::Struct(_)) => {
                to.push('{');
                for (at, member) in self.members.iter().enumerate() {
                    member.push_member(at, row, to)?;
                }
                to.push('}');
            }
            Item::Row(array, row) => {
                // Behind a dictionary.
                let whole: ArrayRef = Arc::new(array.clone());
                let field = Field::new(self.field.name(), array.data_type().clone(), true);
                Column::new(&whole, &field)?.push_json(row, to)?;
            }
            item if item.is_number() => push_plain(&item, to)?,
            item => {
                let mut text = String::new();
                push_plain(&item, &mut text)?;
                push_quoted(&text, to)?;
            }
        }
        Ok(())
    }

    fn is_json(&self) -> bool {
        self.field.metadata().get(EXTENSION).is_some_and(|extension| extension == "arrow.json")
    }
}

#[cold]
fn not_finite(value: f64) -> Error {
    Error::data(format!("{value} is not a JSON number")).with_hint(FINITE)
}

/// Writes a value that has no parts.
fn push_plain(item: &Item<'_>, to: &mut String) -> Result<()> {
    match item {
        Item::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
        Item::Float(value) => push_float(&format!("{value:?}"), to),
        Item::Double(value) => push_float(&format!("{value:?}"), to),
        Item::Text(text) => {
            check_room(text.len())?;
            to.push_str(text);
        }
        Item::Bytes(bytes) => {
            check_room(2 * bytes.len())?;
            to.push_str("\\x");
            to.push_str(&hex(bytes));
        }
        Item::Uuid(bytes) => to.push_str(&uuid(bytes)),
        Item::Date(days) => push_any_date(i64::from(*days), to),
        Item::Time(value, unit) => push_clock(*value, *unit, to),
        Item::Timestamp(value, unit) => push_point(*value, *unit, to),
        Item::TimestampTz(value, unit) => {
            push_point(*value, *unit, to);
            to.push('Z');
        }
        Item::Duration(value, unit) => push_span(*value, *unit, to),
        Item::Interval(months, days, nanoseconds) => {
            push_period(to, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
        }
        number => {
            push_number(to, number);
        }
    }
    Ok(())
}

/// Raises where there is no room for the copies of a long text.
fn check_room(length: usize) -> Result<()> {
    if length > SHORT {
        check_available(4 * length)?;
    }
    Ok(())
}

/// The shortest digits that give the same float.
fn push_float(text: &str, to: &mut String) {
    to.push_str(if text == "NaN" { "nan" } else { text.strip_suffix(".0").unwrap_or(text) });
}

/// A date of any year.
fn push_any_date(days: i64, to: &mut String) {
    if !push_date(to, days) {
        let (year, month, day) = civil_from_days(days);
        let sign = if year < 0 { "-" } else { "" };
        // A String takes everything.
        let _ = write!(to, "{sign}{:04}-{month:02}-{day:02}", year.abs());
    }
}

fn push_point(value: i64, unit: TimeUnit, to: &mut String) {
    let per_day = per_second(unit) * 86_400;
    push_any_date(value.div_euclid(per_day), to);
    to.push(' ');
    push_clock(value.rem_euclid(per_day), unit, to);
}

/// A time of day, with as many digits of the second's fraction as its unit has.
fn push_clock(value: i64, unit: TimeUnit, to: &mut String) {
    let per_second = per_second(unit);
    push_time(to, value.div_euclid(per_second), TimeUnit::Second);
    let digits = per_second.ilog10() as usize;
    if digits > 0 {
        let _ = write!(to, ".{:0digits$}", value.rem_euclid(per_second));
    }
}

/// Hours, of any number of digits, minutes and seconds.
fn push_span(value: i64, unit: TimeUnit, to: &mut String) {
    let per_second = per_second(unit).unsigned_abs();
    let (seconds, fraction) = (value.unsigned_abs() / per_second, value.unsigned_abs() % per_second);
    let sign = if value < 0 { "-" } else { "" };
    let _ = write!(to, "{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        let _ = write!(to, ".{fraction:0digits$}");
    }
}

/// JSON as it is, in its digits, spaces and order; a line's end can only be a space between two tokens.
fn push_document(text: &str, to: &mut String) -> Result<()> {
    check_room(text.len())?;
    // Skipped, a document may be of any depth.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(Error::data(format!("it is not JSON: {error}")).with_hint(AS_TEXT));
    }
    to.extend(text.chars().map(|letter| if matches!(letter, '\r' | '\n') { ' ' } else { letter }));
    Ok(())
}

fn push_quoted(text: &str, to: &mut String) -> Result<()> {
    check_room(text.len())?;
    let quoted = serde_json::to_string(text).map_err(|error| Error::internal(error.to_string()))?;
    to.push_str(&quoted);
    Ok(())
}

/// Writes a field, in quotes also where spaces are at an end, which some readers drop.
fn push_field(lines: &mut Vec<u8>, text: &str, delimiter: char) {
    let is_special = |letter: char| matches!(letter, '"' | '\r' | '\n') || letter == delimiter;
    let ends = [text.chars().next(), text.chars().next_back()];
    let has_space = ends.iter().any(|end| end.is_none_or(|letter| letter.is_ascii_whitespace()));
    if !has_space && !text.contains(is_special) {
        lines.extend_from_slice(text.as_bytes());
        return;
    }
    lines.push(b'"');
    lines.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    lines.push(b'"');
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BinaryArray, Date32Array, DictionaryArray, DurationMicrosecondArray, Float32Array, Float64Array,
        StringArray, StructArray, TimestampMicrosecondArray, types::Int32Type,
    };

    use super::*;

    fn lines(column: impl Array + 'static) -> String {
        let batch = RecordBatch::try_from_iter([("a", Arc::new(column) as ArrayRef)]).unwrap();
        String::from_utf8(csv_lines(&batch, ',', 0).unwrap()).unwrap()
    }

    #[test]
    fn values_of_csv_are_whole() {
        let floats = Float64Array::from(vec![4.0, -0.0, 0.1, 5e-324, 1e300, f64::NAN, f64::NEG_INFINITY]);
        assert_eq!(lines(floats), "4\n-0\n0.1\n5e-324\n1e300\nnan\n-inf\n");
        assert_eq!(lines(Float32Array::from(vec![0.1])), "0.1\n");
        assert_eq!(lines(Date32Array::from(vec![i32::MIN, i32::MAX])), "-5877641-06-23\n5881580-07-11\n");
        let points = TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX]).with_timezone("Europe/Riga");
        assert_eq!(lines(points), "-290308-12-21 19:59:05.224192Z\n294247-01-10 04:00:54.775807Z\n");
        let spans = DurationMicrosecondArray::from(vec![i64::MIN, 3_600_000_000, -90_000_500]);
        assert_eq!(lines(spans), "-2562047788:00:54.775808\n01:00:00\n-00:01:30.000500\n");
        assert_eq!(lines(BinaryArray::from_vec(vec![b"\x00\xff", b""])), "\\x00ff\n\\x\n");
        let texts = StringArray::from(vec![Some("a,\"b\"\r\n"), Some(""), None, Some(" x"), Some("ä€😀")]);
        assert_eq!(lines(texts), "\"a,\"\"b\"\"\r\n\"\n\"\"\n\n\" x\"\nä€😀\n");
    }

    #[test]
    fn structs_behind_a_dictionary_are_objects() {
        let member = Arc::new(Field::new("x", DataType::Utf8, true));
        let rows =
            StructArray::from(vec![(member, Arc::new(StringArray::from(vec!["\u{1}", "b"])) as ArrayRef)]);
        let keys = DictionaryArray::<Int32Type>::new(vec![1, 0].into(), Arc::new(rows));
        assert_eq!(lines(keys), "\"{\"\"x\"\":\"\"b\"\"}\"\n\"{\"\"x\"\":\"\"\\u0001\"\"}\"\n");
    }

    #[test]
    fn documents_of_any_depth_and_number_go_as_they_are() {
        let json = Field::new("a", DataType::Utf8, true)
            .with_metadata([(EXTENSION.to_owned(), "arrow.json".to_owned())]);
        let lines = |text: &str| {
            let schema = Arc::new(arrow_schema::Schema::new(vec![json.clone()]));
            let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
            json_lines(&RecordBatch::try_new(schema, vec![column]).unwrap(), 0)
        };
        for text in [format!("{}{}", "[".repeat(5000), "]".repeat(5000)), "[1e400,  1.10]".to_owned()] {
            assert_eq!(String::from_utf8(lines(&text).unwrap()).unwrap(), format!("{{\"a\":{text}}}\n"));
        }
        for text in ["", "[1", "[1] 2", "{\"a\" 1}", "\"\n\""] {
            assert_eq!(lines(text).unwrap_err().kind(), longshore_core::Kind::Data, "{text}");
        }
    }

    #[test]
    fn names_that_are_twice_there_are_refused() {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let batch = RecordBatch::try_from_iter([("a", column.clone()), ("a", column)]).unwrap();
        assert_eq!(json_lines(&batch, 0).unwrap_err().kind(), longshore_core::Kind::NotSupported);
        assert_eq!(csv_lines(&batch, ';', 0).unwrap(), b"a;a\n");
        assert_eq!(csv_lines(&batch, '€', 0).unwrap(), "a€a\n".as_bytes());
    }
}
