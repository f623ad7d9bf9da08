//! The types of which `ClickHouse`'s Arrow says less: integers, texts and times under others, told apart by the type's name.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal256Type, Float32Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    TimestampSecondType, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, StringArray, make_array};
use arrow_buffer::{IntervalMonthDayNano, i256};
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use longshore_values::CellFault;

use crate::error::{Reason, internal, unrepresentable};
use crate::result::ValueOptions;
use crate::text::Text;
use crate::types::{Plan, Step, UTC, arrow_plan};

/// The key of the type's name in a field's metadata.
pub(crate) const TYPE: &str = "CLICKHOUSE:type";

const WIDE: Reason = (
    "the integer has 77 digits, one more than Arrow's decimal of 256 bits",
    "read it as text with toString(\"<column>\")",
);

const LONG: Reason = (
    "the interval is beyond what Arrow counts in months, days and nanoseconds",
    "read it as a number with toInt64(\"<column>\")",
);

/// Makes a whole array another one.
pub(crate) type Convert = fn(&ArrayRef) -> Result<ArrayRef, CellFault>;

/// The plan of a field whose type `ClickHouse` calls `native`.
pub(crate) fn plan(field: &Field, native: &str, options: ValueOptions) -> Plan {
    use DataType as T;
    let native = bare(native);
    let (name, arguments) = native
        .split_once('(')
        .map_or((native, ""), |(name, rest)| (name, rest.strip_suffix(')').unwrap_or(rest)));
    let mut metadata = field.metadata().clone();
    metadata.remove(TYPE);
    let field = field.clone().with_metadata(metadata);
    let becomes = |kind: T, step| Plan { field: Arc::new(field.clone().with_data_type(kind)), step };
    let convert = |kind: T, convert: Convert| becomes(kind, Step::Convert(convert));
    let as_text = |text: Text| becomes(T::Utf8, Step::Texts(text));
    if let (Some(interval), T::Int64) = (interval(name), field.data_type()) {
        return convert(T::Interval(IntervalUnit::MonthDayNano), interval);
    }
    match (name, field.data_type()) {
        ("Int128", T::FixedSizeBinary(16)) => becomes(T::Decimal128(38, 0), Step::Integers { signed: true }),
        ("UInt128", T::FixedSizeBinary(16)) => {
            becomes(T::Decimal128(38, 0), Step::Integers { signed: false })
        }
        ("Int256", T::FixedSizeBinary(32)) => convert(T::Decimal256(76, 0), |array| wide(array, true)),
        ("UInt256", T::FixedSizeBinary(32)) => convert(T::Decimal256(76, 0), |array| wide(array, false)),
        ("BFloat16", T::Binary) => convert(T::Float32, brain_floats),
        ("IPv4", T::UInt32) => convert(T::Utf8, ipv4),
        ("IPv6", T::FixedSizeBinary(16)) => as_text(ipv6),
        ("Date", T::UInt16) => {
            convert(T::Date32, |array| Ok(Arc::new(widen::<UInt16Type, Date32Type>(array)?)))
        }
        ("DateTime", T::UInt32) => convert(T::Timestamp(TimeUnit::Second, Some(UTC.into())), |array| {
            Ok(Arc::new(widen::<UInt32Type, TimestampSecondType>(array)?.with_timezone(UTC)))
        }),
        ("DateTime64", T::Timestamp(unit, Some(_))) => {
            becomes(T::Timestamp(*unit, Some(UTC.into())), Step::Retyped)
        }
        ("Time" | "Time64", T::Time32(TimeUnit::Second)) => {
            convert(T::Time64(TimeUnit::Microsecond), |array| times::<Time32SecondType>(array, 1_000_000))
        }
        ("Time64", T::Time32(TimeUnit::Millisecond)) => {
            convert(T::Time64(TimeUnit::Microsecond), |array| times::<Time32MillisecondType>(array, 1_000))
        }
        ("Enum8" | "Enum16", T::Int8 | T::Int16) => {
            let labels = Labels::of(arguments);
            becomes(T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8)), Step::Labels(Arc::new(labels)))
        }
        ("Array", T::List(item)) => {
            arrow_plan(&field.clone().with_data_type(T::List(with_type(item, arguments))), options)
        }
        ("Nested", T::List(item)) => arrow_plan(
            &field.clone().with_data_type(T::List(with_type(item, &format!("Tuple({arguments})")))),
            options,
        ),
        ("Tuple", T::Struct(fields)) => {
            arrow_plan(&field.clone().with_data_type(T::Struct(with_types(fields, arguments))), options)
        }
        ("Map", T::Map(entries, sorted)) => {
            let T::Struct(fields) = entries.data_type() else { return arrow_plan(&field, options) };
            let entries = entries.as_ref().clone().with_data_type(T::Struct(with_types(fields, arguments)));
            arrow_plan(&field.clone().with_data_type(T::Map(Arc::new(entries), *sorted)), options)
        }
        _ => arrow_plan(&field, options),
    }
}

/// A type without what says that it may be NULL, or how it is kept.
fn bare(native: &str) -> &str {
    let inner = |prefix| native.strip_prefix(prefix).and_then(|rest: &str| rest.strip_suffix(')'));
    if let Some(inner) = inner("Nullable(").or_else(|| inner("LowCardinality(")) {
        return bare(inner);
    }
    match inner("SimpleAggregateFunction(").map(|inner| parts(inner)) {
        Some(parts) if parts.len() > 1 => bare(parts[parts.len() - 1]),
        _ => native,
    }
}

/// A field within another, with its type's name.
fn with_type(field: &FieldRef, native: &str) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.insert(TYPE.to_owned(), native.to_owned());
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// The fields of a tuple or of a map's entries, each of which may have a name before its type.
fn with_types(fields: &Fields, arguments: &str) -> Fields {
    let parts = parts(arguments);
    if parts.len() != fields.len() {
        return fields.clone();
    }
    fields.iter().zip(parts).map(|(field, part)| with_type(field, strip_name(part))).collect()
}

/// An element's type, after a name that may be in quotes.
fn strip_name(part: &str) -> &str {
    let end = scan(part, |at, byte, depth| depth == 0 && byte == b' ' && at > 0);
    end.map_or(part, |end| part[end..].trim_start())
}

/// The texts that stand between the commas, in no parentheses and quotes.
fn parts(arguments: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), arguments);
    while let Some(end) = scan(rest, |_, byte, depth| depth == 0 && byte == b',') {
        found.push(rest[..end].trim());
        rest = &rest[end + 1..];
    }
    found.push(rest.trim());
    found
}

/// Where the first byte is, outside of quotes, that `stops` takes at its depth of parentheses.
fn scan(text: &str, stops: impl Fn(usize, u8, i32) -> bool) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if byte == b'\\' => is_escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if stops(at, byte, depth) => return Some(at),
            None => match byte {
                b'\'' | b'`' | b'"' => quote = Some(byte),
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>, CellFault> {
    array.as_primitive_opt::<T>().ok_or_else(|| internal("numbers of another type than the schema's"))
}

fn widen<F, T>(array: &ArrayRef) -> Result<PrimitiveArray<T>, CellFault>
where
    F: ArrowPrimitiveType,
    T: ArrowPrimitiveType,
    T::Native: From<F::Native>,
{
    Ok(primitive::<F>(array)?.unary(T::Native::from))
}

/// The same values under the type of the field.
pub(crate) fn retype(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, CellFault> {
    let data = array.to_data().into_builder().data_type(kind.clone()).build();
    Ok(make_array(data.map_err(|error| internal(&error))?))
}

fn wide(array: &ArrayRef, signed: bool) -> Result<ArrayRef, CellFault> {
    let Some(bytes) = array.as_fixed_size_binary_opt() else {
        return Err(internal("integers that are not 32 bytes"));
    };
    let limit = i256::from_i128(10).wrapping_pow(76);
    let mut values = Vec::with_capacity(bytes.len());
    for row in 0..bytes.len() {
        let value = bytes.value(row).try_into().map(i256::from_le_bytes);
        let value = value.map_err(|_| internal("integers that are not 32 bytes"))?;
        let fits = value < limit && value > -limit && (signed || !value.is_negative());
        if !fits && bytes.is_valid(row) {
            return Err(unrepresentable(WIDE, row));
        }
        values.push(if fits { value } else { i256::ZERO });
    }
    let decimals = PrimitiveArray::<Decimal256Type>::new(values.into(), bytes.nulls().cloned());
    let decimals = decimals.with_precision_and_scale(76, 0).map_err(|error| internal(&error))?;
    Ok(Arc::new(decimals))
}

/// The upper half of a float of 32 bits.
fn brain_floats(array: &ArrayRef) -> Result<ArrayRef, CellFault> {
    let Some(bytes) = array.as_binary_opt::<i32>() else { return Err(internal("floats that are not bytes")) };
    let mut values = Vec::with_capacity(bytes.len());
    for row in 0..bytes.len() {
        values.push(match bytes.value(row) {
            &[low, high] => f32::from_bits(u32::from(u16::from_le_bytes([low, high])) << 16),
            _ if bytes.is_null(row) => 0.0,
            _ => return Err(internal("floats that are not two bytes")),
        });
    }
    Ok(Arc::new(PrimitiveArray::<Float32Type>::new(values.into(), bytes.nulls().cloned())))
}

fn ipv4(array: &ArrayRef) -> Result<ArrayRef, CellFault> {
    let addresses = primitive::<UInt32Type>(array)?.iter();
    Ok(Arc::new(
        addresses.map(|bits| bits.map(|bits| Ipv4Addr::from(bits).to_string())).collect::<StringArray>(),
    ))
}

fn ipv6(bytes: &[u8]) -> Result<String, CellFault> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| internal("an address that is not sixteen bytes"))?;
    Ok(Ipv6Addr::from(bytes).to_string())
}

fn times<T>(array: &ArrayRef, micros: i64) -> Result<ArrayRef, CellFault>
where
    T: ArrowPrimitiveType<Native = i32>,
{
    let times = primitive::<T>(array)?;
    Ok(Arc::new(times.unary::<_, Time64MicrosecondType>(|count| i64::from(count) * micros)))
}

/// The conversion that makes an interval of so many of a unit; `None` for a type that is not an interval.
fn interval(name: &str) -> Option<Convert> {
    let unit = name.strip_prefix("Interval")?;
    Some(match unit {
        "Nanosecond" => |array| intervals(array, |count| nanoseconds(count, 1)),
        "Microsecond" => |array| intervals(array, |count| nanoseconds(count, 1_000)),
        "Millisecond" => |array| intervals(array, |count| nanoseconds(count, 1_000_000)),
        "Second" => |array| intervals(array, |count| nanoseconds(count, 1_000_000_000)),
        "Minute" => |array| intervals(array, |count| nanoseconds(count, 60_000_000_000)),
        "Hour" => |array| intervals(array, |count| nanoseconds(count, 3_600_000_000_000)),
        "Day" => |array| intervals(array, |count| days(count, 1)),
        "Week" => |array| intervals(array, |count| days(count, 7)),
        "Month" => |array| intervals(array, |count| months(count, 1)),
        "Quarter" => |array| intervals(array, |count| months(count, 3)),
        "Year" => |array| intervals(array, |count| months(count, 12)),
        _ => return None,
    })
}

fn months(count: i64, each: i64) -> Option<IntervalMonthDayNano> {
    Some(IntervalMonthDayNano::new(i32::try_from(count.checked_mul(each)?).ok()?, 0, 0))
}

fn days(count: i64, each: i64) -> Option<IntervalMonthDayNano> {
    Some(IntervalMonthDayNano::new(0, i32::try_from(count.checked_mul(each)?).ok()?, 0))
}

fn nanoseconds(count: i64, each: i64) -> Option<IntervalMonthDayNano> {
    Some(IntervalMonthDayNano::new(0, 0, count.checked_mul(each)?))
}

fn intervals(
    array: &ArrayRef,
    one: impl Fn(i64) -> Option<IntervalMonthDayNano>,
) -> Result<ArrayRef, CellFault> {
    let counts = primitive::<Int64Type>(array)?;
    let mut values = Vec::with_capacity(counts.len());
    for (row, count) in counts.iter().enumerate() {
        values.push(one(count.unwrap_or(0)).ok_or_else(|| unrepresentable(LONG, row))?);
    }
    Ok(Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::new(values.into(), counts.nulls().cloned())))
}

/// The labels of an ENUM, and where each number's is among them.
pub(crate) struct Labels {
    texts: ArrayRef,
    numbers: Vec<i16>,
}

impl Labels {
    /// Those of `'a' = 1, 'b' = 2`.
    fn of(arguments: &str) -> Self {
        let labels = parts(arguments).into_iter().filter_map(|part| {
            let (label, number) = part.rsplit_once('=')?;
            let label = label.trim().strip_prefix('\'')?.strip_suffix('\'')?;
            Some((unescape(label), number.trim().parse::<i16>().ok()?))
        });
        let (texts, numbers): (Vec<String>, Vec<i16>) = labels.unzip();
        Self { texts: Arc::new(StringArray::from(texts)), numbers }
    }

    /// The labels of `array`'s numbers.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, CellFault> {
        let numbers: PrimitiveArray<Int16Type> = match array.as_primitive_opt::<Int8Type>() {
            Some(narrow) => narrow.unary(i16::from),
            None => primitive::<Int16Type>(array)?.clone(),
        };
        let mut places = Vec::with_capacity(numbers.len());
        for number in &numbers {
            let place = number.map(|number| {
                let place = self.numbers.iter().position(|each| *each == number);
                place
                    .and_then(|place| i32::try_from(place).ok())
                    .ok_or_else(|| internal("a number without its label"))
            });
            places.push(place.transpose()?);
        }
        let keys = PrimitiveArray::<Int32Type>::from(places);
        Ok(Arc::new(DictionaryArray::try_new(keys, self.texts.clone()).map_err(|error| internal(&error))?))
    }
}

/// A label without the backslashes that `ClickHouse` writes in a type's name.
fn unescape(label: &str) -> String {
    let (mut text, mut letters) = (String::with_capacity(label.len()), label.chars());
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        text.push(match (letter, escaped) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('0')) => '\0',
            ('\\', Some('b')) => '\u{8}',
            ('\\', Some('f')) => '\u{c}',
            (_, Some(other)) | (other, None) => other,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parted_outside_of_quotes_and_parentheses() {
        assert_eq!(
            parts("`a b` Int8, Tuple(x, y), 'c,\\'d' = 1"),
            ["`a b` Int8", "Tuple(x, y)", "'c,\\'d' = 1"]
        );
        assert_eq!(strip_name("`a b` Array(Nullable(Int8))"), "Array(Nullable(Int8))");
        assert_eq!(strip_name("DateTime64(6, 'UTC')"), "DateTime64(6, 'UTC')");
        assert_eq!(bare("LowCardinality(Nullable(Enum8('a' = 1)))"), "Enum8('a' = 1)");
        assert_eq!(bare("SimpleAggregateFunction(max, Nullable(DateTime))"), "DateTime");
    }

    #[test]
    fn labels_have_any_text() {
        let labels = Labels::of(r"'a' = 1, 'b\'=\\' = -2, '' = 3");
        assert_eq!(labels.numbers, [1, -2, 3]);
        assert_eq!(labels.texts.as_string::<i32>(), &StringArray::from(vec!["a", "b'=\\", ""]));
        let array: ArrayRef = Arc::new(PrimitiveArray::<Int8Type>::from(vec![Some(-2), None, Some(3)]));
        let read = labels.apply(&array).unwrap();
        let read = read.as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [Some("b'=\\"), None, Some("")]);
        let unknown: ArrayRef = Arc::new(PrimitiveArray::<Int8Type>::from(vec![7]));
        assert!(labels.apply(&unknown).is_err());
    }
}
