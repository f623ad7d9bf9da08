//! The functions that the fuzz targets call: every reader of bytes that a server sends. There is none in an ordinary build.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, IntervalUnit};
use longshore_core::{ReadOptions, Unrepresentable, Uuids, parse_type};
use longshore_values::{Cells, Span, Spans};

use crate::columns::requested_type;
use crate::connection::message::{HEADER, Reader, frame, server_error};
use crate::connection::{parameter_types, row_description, text_row};
use crate::decode::{decoder, finalise};
use crate::rows::index_row;
use crate::types::{Attribute, Class, Format, Kind, Type, builtin_types};

/// Reads `bytes` as messages of every kind that a server sends.
///
/// # Panics
/// When a cell lies outside of its row.
pub fn messages(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(got)) = frame(rest) {
        let (message, after) = rest.split_at(got.length);
        let body = &message[HEADER..];
        let _ = server_error(body);
        let _ = parameter_types(Reader::new(body));
        let _ = row_description(Reader::new(body));
        let _ = text_row(Reader::new(body));
        for columns in 0..4 {
            let mut spans = Spans::new(columns);
            if index_row(message, HEADER, &mut spans).is_ok() {
                for column in 0..columns {
                    spans
                        .column(column, message)
                        .iter()
                        .flatten()
                        .for_each(|cell| assert!(cell.len() <= body.len()));
                }
            }
        }
        rest = after;
    }
}

/// Decodes `bytes` as two chunks of cells. Its first bytes choose the type, the format and the caller's options.
///
/// # Panics
/// When a decoder makes an array that is not valid.
pub fn cells(bytes: &[u8]) {
    let Some((&[which, how, shape], rest)) = bytes.split_first_chunk::<3>() else { return };
    let options = options(how);
    let native = shape_type(&builtin_types(), which, shape);
    let format = if how & 1 == 0 { native.format(options.protocol) } else { Format::Text };
    let Ok(field) = native.field("column", true, &options) else { return };
    let is_default = how & 2 == 0 || format == Format::Binary;
    let wanted = if is_default {
        Ok(field.data_type().clone())
    } else {
        requested_type("column", &native, &data_type(which, shape), &options)
    };
    let Ok(wanted) = wanted else { return };
    let Ok(mut decoder) = decoder("column", &native, format, &wanted, &options) else { return };
    let (buffer, spans) = spans(rest);
    let any_null = spans.iter().any(|span| span.is_null());
    let half = spans.len() / 2;
    for chunk in [&spans[..half], &spans[half..]] {
        if decoder.decode(Cells::new(&buffer, chunk, any_null)).is_err() {
            return;
        }
    }
    let _ = decoder.size();
    let array = decoder.finish();
    valid(&array, spans.len());
    if wanted == *field.data_type()
        && let Ok((_, finalised)) = finalise(&Arc::new(field), vec![array], format, &options)
    {
        for array in &finalised {
            valid(array, spans.len());
        }
    }
}

fn valid(array: &ArrayRef, rows: usize) {
    assert_eq!(array.len(), rows);
    array.to_data().validate_full().expect("the decoder made an invalid array");
}

fn options(how: u8) -> ReadOptions {
    let policy = |bit: u8| if how & bit == 0 { Unrepresentable::Error } else { Unrepresentable::Null };
    ReadOptions {
        numeric_nan: policy(4),
        infinity: policy(8),
        time_24: policy(16),
        uuid: if how & 32 == 0 { Uuids::Arrow } else { Uuids::Text },
        ..ReadOptions::default()
    }
}

/// A type with a modifier or without, alone, in arrays or in a composite.
fn shape_type(builtins: &[Type], which: u8, shape: u8) -> Type {
    let modifiers = [-1, (10 << 16 | 2) + 4, (38 << 16) + 4, (76 << 16 | 0x26) + 4, (3 << 16 | 0x7fe) + 4];
    let modifier: i32 = modifiers[usize::from(shape >> 4) % modifiers.len()];
    let plain = builtins[usize::from(which) % builtins.len()].clone();
    let is_vector = plain.is(Class::Vector) || plain.is(Class::HalfVector);
    let plain = plain.with_modifier(if is_vector { modifier.signum() * 3 } else { modifier });
    let labels: Arc<[String]> = Arc::new(["a".to_owned(), String::new(), "größe".to_owned()]);
    let of = |kind: Kind| Type { name: "made".to_owned(), kind, modifier: -1 };
    let record = |native: Type| {
        let attribute = |name: &str| Attribute { name: name.to_owned(), oid: 7, native: native.clone() };
        of(Kind::Composite(Arc::new([attribute("a"), attribute("b")])))
    };
    match shape % 10 {
        0..=2 => plain,
        3 => Type::array_of(plain, b','),
        4 => Type::array_of(plain, b',').with_dimensions(2),
        5 => Type::array_of(Type::array_of(plain, b','), b','),
        6 => record(plain),
        7 => Type::array_of(record(plain), b','),
        8 => record(Type::array_of(plain, b';')),
        _ => Type::array_of(of(Kind::Enum(labels)), b','),
    }
}

/// An override, as `schema=` would give it.
fn data_type(which: u8, shape: u8) -> DataType {
    let strict = |data_type: DataType| Field::new("item", data_type, false);
    let dictionary = |keys: DataType| DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
    let names = "bool int8 uint64 int64 float double decimal128(38,10) decimal256(76,0) string large_string binary \
                 large_binary fixed_size_binary[16] date32 time64[us] time64[ns] timestamp[s] timestamp[ms,tz=UTC] \
                 timestamp[us] timestamp[ns,tz=UTC]";
    let names = names.split(' ').map(|name| parse_type(name).expect("it is the name of a type"));
    let others = [
        DataType::Interval(IntervalUnit::MonthDayNano),
        dictionary(DataType::Int32),
        dictionary(DataType::Int8),
    ];
    let types: Vec<DataType> = names.chain(others).collect();
    let leaf = types[usize::from(which) % types.len()].clone();
    let list = |item: DataType| DataType::List(Arc::new(strict(item)));
    let record = |item: DataType| DataType::Struct(vec![strict(item.clone()), strict(item)].into());
    // Mostly what fits the type that `shape_type` makes of the same byte.
    match shape % 10 {
        0 | 1 => leaf,
        2 | 3 | 9 => list(leaf),
        4 | 5 => list(list(leaf)),
        6 => record(leaf),
        7 => list(record(leaf)),
        _ => record(list(leaf)),
    }
}

/// Cells: a length byte before each, 255 for NULL.
fn spans(bytes: &[u8]) -> (Vec<u8>, Vec<Span>) {
    let (mut buffer, mut spans, mut rest) = (Vec::new(), Vec::new(), bytes);
    while let Some((length, after)) = rest.split_first() {
        rest = after;
        if *length == u8::MAX {
            spans.push(Span::NULL);
            continue;
        }
        let (cell, after) = rest.split_at(usize::from(*length).min(rest.len()));
        rest = after;
        // What a fuzzer gives is far below 4 GiB.
        let at = |length: usize| u32::try_from(length).unwrap_or_default();
        spans.push(Span::new(at(buffer.len()), at(cell.len())));
        buffer.extend_from_slice(cell);
    }
    (buffer, spans)
}
