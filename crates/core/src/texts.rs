//! Whether texts are texts: Arrow's interfaces hand bytes over without a look at them.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use simdutf8::basic::from_utf8;

/// The bits of a byte that is not the first of its character.
const CONTINUING: u8 = 0b1000_0000;
const CONTINUING_MASK: u8 = 0b1100_0000;

/// The first row of `array` that holds bytes of a text, at any depth, which are not UTF-8.
#[must_use]
pub fn misencoded_row(array: &dyn Array) -> Option<usize> {
    let are_characters = match array.data_type() {
        DataType::Utf8 => are_characters::<Utf8Type>(array.as_bytes()),
        DataType::LargeUtf8 => are_characters::<LargeUtf8Type>(array.as_bytes()),
        DataType::Dictionary(..) => misencoded_row(array.as_any_dictionary().values()).is_none(),
        _ => false,
    };
    // Some of the bytes may be those of no value.
    if are_characters { None } else { first_non_text(array, 0..array.len()) }
}

/// Whether all texts of `array`, looked at together, are UTF-8, those of no value included.
fn are_characters<T: ByteArrayType>(array: &GenericByteArray<T>) -> bool {
    let offsets = array.value_offsets();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return true };
    let bytes = &array.value_data()[first.as_usize()..last.as_usize()];
    if bytes.is_ascii() {
        return true;
    }
    let byte = |offset: &T::Offset| bytes.get(offset.as_usize() - first.as_usize());
    // Two values may share a character of a buffer that is a text.
    let is_shared = |offset| byte(offset).is_some_and(|byte| byte & CONTINUING_MASK == CONTINUING);
    from_utf8(bytes).is_ok() && !offsets.iter().any(is_shared)
}

/// The first of `rows` with a value that holds what is not a text.
fn first_non_text(array: &dyn Array, mut rows: Range<usize>) -> Option<usize> {
    match array.data_type() {
        DataType::Utf8 => strange_characters::<Utf8Type>(array.as_bytes(), rows),
        DataType::LargeUtf8 => strange_characters::<LargeUtf8Type>(array.as_bytes(), rows),
        DataType::Utf8View => {
            let array = array.as_string_view().clone().to_binary_view();
            rows.find(|row| array.is_valid(*row) && from_utf8(array.value(*row)).is_err())
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            strange_items(array, list.values(), rows, |row| span(list.value_offsets(), row))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            strange_items(array, list.values(), rows, |row| span(list.value_offsets(), row))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let start = |row| list.value_offset_at(row);
            strange_items(array, list.values(), rows, |row| start(row)..start(row + 1))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            strange_items(array, map.entries(), rows, |row| span(map.value_offsets(), row))
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns();
            let is_not_text = |row| fields.iter().any(|field| first_non_text(field, row..row + 1).is_some());
            rows.find(|row| array.is_valid(*row) && is_not_text(*row))
        }
        DataType::Dictionary(..) => {
            let part = array.slice(rows.start, rows.len());
            let dictionary = part.as_any_dictionary();
            let keys = dictionary.normalized_keys();
            let start = rows.start;
            strange_items(array, dictionary.values(), rows, |row| keys[row - start]..keys[row - start] + 1)
        }
        _ => None,
    }
}

fn strange_characters<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    mut rows: Range<usize>,
) -> Option<usize> {
    let bytes = |row| &array.value_data()[span(array.value_offsets(), row)];
    rows.find(|row| array.is_valid(*row) && from_utf8(bytes(*row)).is_err())
}

/// The first of `rows` with a strange one among its `items`, which lie where `span` says.
fn strange_items(
    array: &dyn Array,
    items: &dyn Array,
    mut rows: Range<usize>,
    span: impl Fn(usize) -> Range<usize>,
) -> Option<usize> {
    rows.find(|row| array.is_valid(*row) && first_non_text(items, span(*row)).is_some())
}

fn span<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Range<usize> {
    offsets[row].as_usize()..offsets[row + 1].as_usize()
}
