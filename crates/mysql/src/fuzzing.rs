//! The functions that the fuzz targets call: every reader of bytes that a server sends. There is none in an ordinary build.

use arrow_array::Array;
use longshore_core::ReadOptions;
use longshore_values::{Cells, Span, Spans};

use crate::authentication::PublicKey;
use crate::channel::{Compression, decompress};
use crate::connection::statements::text_row;
use crate::decode::{Context, Format, decoder};
use crate::message::{Definition, answer, definition, end_of_rows, parse_done, server_error};
use crate::packet::Sequence;
use crate::rows::Layout;
use crate::startup::Greeting;
use crate::temporal::Zone;
use crate::types::{Type, Width};

/// The longest that a frame may unpack to here.
const UNPACKED: usize = 1 << 16;

/// Reads `bytes` as messages of every kind that a server sends.
pub fn messages(bytes: &[u8]) {
    let _ = Greeting::parse(bytes);
    let _ = server_error(bytes);
    let _ = PublicKey::from_pem(bytes);
    for capabilities in [0, u64::MAX] {
        let _ = (parse_done(bytes, capabilities), end_of_rows(bytes, capabilities));
        let _ = (answer(bytes, capabilities), definition(bytes, capabilities));
    }
    for columns in 0..4 {
        let _ = text_row(bytes, columns);
    }
    for compression in [Compression::Zlib, Compression::Zstd] {
        let _ = decompress(compression, bytes, UNPACKED, &mut Vec::new());
    }
}

/// Finds the cells of rows in `bytes`, in both forms. Its first byte chooses how they lie.
///
/// # Panics
/// When a cell lies outside of its row.
pub fn rows(bytes: &[u8]) {
    let Some((shape, rest)) = bytes.split_first() else { return };
    let width = |at: u8| match (shape >> at) & 3 {
        0 => Width::Fixed(8),
        1 => Width::Byte,
        _ => Width::Counted,
    };
    let widths = vec![width(0), width(2), width(4)];
    for format in [Format::Text, Format::Binary] {
        let layout = Layout::new(format, widths.clone());
        let (mut at, mut spans) = (0, Spans::new(widths.len()));
        let most = spans.capacity();
        let _ = layout.index(rest, &mut at, &mut Sequence::Unchecked, &mut spans, most);
        for column in 0..widths.len() {
            let cells = spans.column(column, rest);
            cells.iter().flatten().for_each(|cell| assert!(cell.len() <= rest.len()));
        }
    }
}

/// Decodes `bytes` as a cell. Its first bytes choose the column and the form.
///
/// # Panics
/// When a decoder makes an array that is not valid.
pub fn cells(bytes: &[u8]) {
    let Some((&[code, flags, length, form], rest)) = bytes.split_first_chunk::<4>() else { return };
    let column = Definition {
        name: "c".into(),
        code,
        flags: u16::from(flags) << 5,
        length: length.into(),
        decimals: length & 31,
        charset: if form & 1 == 0 { 63 } else { 45 },
        ..Definition::default()
    };
    let options = ReadOptions::default();
    let native = Type::of(&column);
    let Ok(field) = native.field("c", true, &options) else { return };
    let format = if form & 2 == 0 { Format::Binary } else { Format::Text };
    let wanted = if form & 4 == 0 { field.data_type().clone() } else { arrow_schema::DataType::Utf8 };
    let context = Context::new(&options, Zone::UTC);
    let decoder = decoder("c", &native, format, &wanted, Some(field.data_type()), &context);
    let Ok(mut decoder) = decoder else { return };
    let span = Span::new(0, u32::try_from(rest.len()).unwrap_or_default());
    if decoder.decode(Cells::new(rest, &[span, Span::NULL], true)).is_ok() {
        let array = decoder.finish();
        assert_eq!(array.len(), 2);
        assert!(array.to_data().validate_full().is_ok());
    }
}
