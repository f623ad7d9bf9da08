//! Texts and bytes as views over the memory that they lie in: a length, the first bytes, and a place.

#![allow(unsafe_code)] // Checked views would read every text once more, which was checked when it was made.

use arrow_array::builder::make_view;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, GenericByteArray, GenericByteViewArray};
use arrow_buffer::ArrowNativeType;

/// The bytes that a view has room for besides its length.
const INLINE: usize = 12;

/// `array` as views over its own bytes; where a place would not fit into a view, over a copy.
pub(crate) fn views<F, V>(array: &GenericByteArray<F>) -> GenericByteViewArray<V>
where
    F: ByteArrayType,
    V: ByteViewType<Native = F::Native>,
{
    let bytes = array.values().as_slice();
    if i32::try_from(bytes.len()).is_err() {
        return array.iter().collect();
    }
    let spans = array.value_offsets().windows(2);
    let views = spans.map(|span| view(bytes, span[0].as_usize(), span[1].as_usize())).collect::<Vec<u128>>();
    let buffers = [array.values().clone()].into();
    // SAFETY: an array's offsets ascend within its bytes, and its values are of the type's form. Each view is of one value, over
    // the one buffer. There are as many views as rows, and so as the nulls are of.
    unsafe { GenericByteViewArray::new_unchecked(views.into(), buffers, array.nulls().cloned()) }
}

/// The view of `bytes` from `start` to `end`, which fit into 31 bits.
#[allow(clippy::cast_possible_truncation)] // as they fit
fn view(bytes: &[u8], start: usize, end: usize) -> u128 {
    let (length, place) = (end - start, start as u32);
    // One look at sixteen bytes takes half the time of as many as there are.
    let Some(head) = bytes.get(start..start + 16).and_then(|head| head.try_into().ok()) else {
        return make_view(&bytes[start..end], 0, place);
    };
    let head = u128::from_le_bytes(head);
    let rest = if length <= INLINE {
        head & ((1 << (8 * length)) - 1)
    } else {
        (head & u128::from(u32::MAX)) | u128::from(place) << 64
    };
    length as u128 | rest << 32
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{BinaryViewType, StringViewType};
    use arrow_array::{BinaryViewArray, LargeBinaryArray, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn views_are_the_values() {
        let text =
            |length: usize| "äbcdefghijklmnopqrstuvwxyz".chars().cycle().take(length).collect::<String>();
        let values: Vec<_> = (0..40).map(|length| (length % 7 != 3).then(|| text(length))).collect();
        let array = StringArray::from(values);
        for (from, length) in [(0, 40), (5, 30), (38, 2), (40, 0)] {
            let slice = array.slice(from, length);
            let made: StringViewArray = views::<_, StringViewType>(&slice);
            made.to_data().validate_full().unwrap();
            assert_eq!(made, slice.iter().collect::<StringViewArray>());
        }
    }

    #[test]
    fn bytes_need_not_be_text() {
        let array = LargeBinaryArray::from_iter([Some(&b"\xff\x00"[..]), None, Some(&[0xfe; 17][..])]);
        let made: BinaryViewArray = views::<_, BinaryViewType>(&array);
        made.to_data().validate_full().unwrap();
        assert_eq!(made, array.iter().collect::<BinaryViewArray>());
    }
}
