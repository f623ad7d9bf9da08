//! Arrow types by name, as a caller writes them in `schema={"column": "decimal128(20, 4)"}`.
//!
//! The names are those that pyarrow prints: `int64`, `string`, `timestamp[us, tz=UTC]`, `list<int32>`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};

use crate::{Error, Result};

/// Nested deeper than this, a type's name is refused rather than followed.
const DEPTH: usize = 32;

/// The Arrow type called `name`, which no error shows: it may be another argument's, and a secret.
pub fn parse_type(name: &str) -> Result<DataType> {
    parse(name.trim(), 0).ok_or_else(|| {
        Error::interface("its type in schema= is not an Arrow type").with_hint(
            "write it as pyarrow prints it: int64, float64, string, decimal128(20, 4), timestamp[us, tz=UTC], \
             list<int32>",
        )
    })
}

/// The name of `data_type`, as [`parse_type`] reads it and pyarrow prints it.
#[must_use]
pub fn type_name(data_type: &DataType) -> String {
    let list = |head: &str, item: &Field| format!("{head}<{}>", type_name(item.data_type()));
    if let Some((_, names)) = SIMPLE.iter().find(|(simple, _)| simple == data_type) {
        return names[0].into();
    }
    match data_type {
        DataType::Utf8View => "string_view".into(),
        DataType::BinaryView => "binary_view".into(),
        DataType::FixedSizeBinary(size) => format!("fixed_size_binary[{size}]"),
        DataType::Date64 => "date64[ms]".into(),
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", unit_name(*unit)),
        DataType::Time32(unit) => format!("time32[{}]", unit_name(*unit)),
        DataType::Time64(unit) => format!("time64[{}]", unit_name(*unit)),
        DataType::Duration(unit) => format!("duration[{}]", unit_name(*unit)),
        DataType::Interval(IntervalUnit::MonthDayNano) => "month_day_nano_interval".into(),
        DataType::Interval(_) => "interval".into(),
        DataType::List(item) => list("list", item),
        DataType::LargeList(item) => list("large_list", item),
        DataType::ListView(item) => list("list_view", item),
        DataType::LargeListView(item) => list("large_list_view", item),
        DataType::FixedSizeList(item, size) => format!("{}[{size}]", list("fixed_size_list", item)),
        DataType::Struct(fields) => {
            let member = |field: &Arc<Field>| format!("{}: {}", field.name(), type_name(field.data_type()));
            format!("struct<{}>", fields.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let names: Vec<_> = fields.iter().map(|field| type_name(field.data_type())).collect();
                format!("map<{}>", names.join(", "))
            }
            other => format!("map<{}>", type_name(other)),
        },
        DataType::Dictionary(_, values) => format!("dictionary<{}>", type_name(values)),
        DataType::RunEndEncoded(_, values) => list("run_end_encoded", values),
        DataType::Union(..) => "union".into(),
        // Its name and its numbers, as pyarrow has them.
        other => other.to_string().to_ascii_lowercase(),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn parse(name: &str, depth: usize) -> Option<DataType> {
    if depth > DEPTH {
        return None;
    }
    if let Some(simple) = simple(name) {
        return Some(simple);
    }
    let open = name.find(['(', '[', '<'])?;
    let (head, rest) = name.split_at(open);
    let inner = rest.strip_prefix(['(', '[', '<'])?.strip_suffix([')', ']', '>'])?.trim();
    match head.trim().to_ascii_lowercase().as_str() {
        "decimal128" | "decimal" | "numeric" => decimal(inner, 38, DataType::Decimal128),
        "decimal256" => decimal(inner, 76, DataType::Decimal256),
        "timestamp" => timestamp(inner),
        "duration" => Some(DataType::Duration(unit(inner)?)),
        "time64" => Some(DataType::Time64(unit(inner)?)),
        "time32" => Some(DataType::Time32(unit(inner)?)),
        "list" => Some(DataType::List(item(inner, depth)?)),
        "large_list" => Some(DataType::LargeList(item(inner, depth)?)),
        "struct" => structure(inner, depth),
        "fixed_size_list" => {
            let (inner, size) = inner.rsplit_once(">[")?;
            let size = size.parse().ok().filter(|size| *size > 0)?;
            Some(DataType::FixedSizeList(item(inner.trim(), depth)?, size))
        }
        "fixed_size_binary" => inner.parse().ok().filter(|size| *size >= 0).map(DataType::FixedSizeBinary),
        _ => None,
    }
}

/// Types without parameters: the name that pyarrow prints, and further ones.
const SIMPLE: [(DataType, &[&str]); 19] = [
    (DataType::Boolean, &["bool", "boolean"]),
    (DataType::Int8, &["int8"]),
    (DataType::Int16, &["int16"]),
    (DataType::Int32, &["int32"]),
    (DataType::Int64, &["int64", "int"]),
    (DataType::UInt8, &["uint8"]),
    (DataType::UInt16, &["uint16"]),
    (DataType::UInt32, &["uint32"]),
    (DataType::UInt64, &["uint64"]),
    (DataType::Float16, &["halffloat", "float16"]),
    (DataType::Float32, &["float", "float32"]),
    (DataType::Float64, &["double", "float64"]),
    (DataType::Utf8, &["string", "utf8", "str", "text"]),
    (DataType::LargeUtf8, &["large_string", "large_utf8"]),
    (DataType::Binary, &["binary", "bytes"]),
    (DataType::LargeBinary, &["large_binary"]),
    (DataType::Date32, &["date32[day]", "date32", "date"]),
    (DataType::Time64(TimeUnit::Microsecond), &["time64[us]", "time"]),
    (DataType::Timestamp(TimeUnit::Microsecond, None), &["timestamp[us]", "datetime"]),
];

fn simple(name: &str) -> Option<DataType> {
    let is_it = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    SIMPLE.iter().find(|(_, names)| is_it(names)).map(|(data_type, _)| data_type.clone())
}

fn unit(name: &str) -> Option<TimeUnit> {
    Some(match name.trim() {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

fn decimal(inner: &str, digits: u8, make: fn(u8, i8) -> DataType) -> Option<DataType> {
    let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
    let precision: u8 = precision.trim().parse().ok()?;
    let scale: i8 = scale.trim().parse().ok()?;
    let fits = (1..=digits).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    fits.then(|| make(precision, scale))
}

fn timestamp(inner: &str) -> Option<DataType> {
    let Some((unit_name, zone)) = inner.split_once(',') else {
        return Some(DataType::Timestamp(unit(inner)?, None));
    };
    let zone = zone.trim();
    let zone = zone.strip_prefix("tz=").unwrap_or(zone);
    (!zone.is_empty()).then_some(DataType::Timestamp(unit(unit_name)?, Some(zone.into())))
}

fn item(inner: &str, depth: usize) -> Option<Arc<Field>> {
    let inner = inner.strip_prefix("item:").or_else(|| inner.strip_prefix("element:")).unwrap_or(inner);
    Some(Arc::new(Field::new_list_field(parse(inner.trim(), depth + 1)?, true)))
}

fn structure(inner: &str, depth: usize) -> Option<DataType> {
    let fields: Option<Fields> = split_top(inner)
        .into_iter()
        .map(|part| {
            let (name, kind) = part.split_once(':')?;
            Some(Field::new(name.trim(), parse(kind.trim(), depth + 1)?, true))
        })
        .collect();
    fields.map(DataType::Struct)
}

/// Splits at the commas that stand in no bracket.
fn split_top(text: &str) -> Vec<&str> {
    let (mut parts, mut level, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => level += 1,
            '>' | ')' | ']' => level = level.saturating_sub(1),
            ',' if level == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_names_that_pyarrow_prints() {
        assert_eq!(parse_type("decimal128(20, 4)").unwrap(), DataType::Decimal128(20, 4));
        assert_eq!(
            parse_type("timestamp[us, tz=UTC]").unwrap(),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        );
        let nested = parse_type("list<item: struct<a: int32, b: list<string>>>").unwrap();
        let DataType::List(item) = nested else { panic!("no list") };
        let DataType::Struct(fields) = item.data_type() else { panic!("no struct") };
        assert_eq!(fields.iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn names_are_read_as_the_same_type() {
        for name in [
            "bool",
            "int64",
            "uint8",
            "double",
            "large_string",
            "date32[day]",
            "decimal128(20, 4)",
            "timestamp[us, tz=UTC]",
            "duration[ns]",
            "fixed_size_list<list<halffloat>>[3]",
            "struct<a: int32, b: list<struct<c: large_binary>>>",
        ] {
            assert_eq!(type_name(&parse_type(name).unwrap()), name);
        }
        let entries = parse_type("struct<key: string, value: float>").unwrap();
        let map = DataType::Map(Arc::new(Field::new("entries", entries, false)), false);
        assert_eq!(type_name(&map), "map<string, float>");
        assert_eq!(type_name(&DataType::Null), "null");
    }

    #[test]
    fn refuses_what_is_no_type() {
        for name in ["", "int65", "decimal128(39, 2)", "decimal128(3, 4)", "list<>", "list<int32", "(", "a]"]
        {
            assert!(parse_type(name).is_err(), "{name}");
        }
        assert!(parse_type(&"list<".repeat(100_000)).is_err());
    }
}
