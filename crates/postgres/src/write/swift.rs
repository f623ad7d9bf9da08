//! Columns without NULLs whose values all have a cell of the binary format: nothing is left to be decided for each.

use arrow_array::{Array, GenericStringArray, LargeStringArray, OffsetSizeTrait, StringArray};
use longshore_cells::{Items, Odd, Uniform};

use super::binary::{bytes, days, fixed};
use super::{fit, numeric};
use crate::types::{Class, Kind, Type};

/// The values of a column in one batch.
pub(super) enum Swift<'a> {
    Int4(&'a [i32]),
    Int8(&'a [i64]),
    Float8(&'a [f64]),
    Date(&'a [i32]),
    Numeric(&'a [i128], i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
}

impl<'a> Swift<'a> {
    /// The values of `items` where a column of `native` takes them all; a numeric's are still looked at one by one.
    pub(super) fn of(items: &Items<'a>, native: &Type) -> Option<Self> {
        let Kind::Plain(class) = native.kind else { return None };
        match (class, items.uniform()?) {
            (Class::Int4, Uniform::Int32(values)) => Some(Self::Int4(values)),
            (Class::Int8, Uniform::Int(values)) => Some(Self::Int8(values)),
            (Class::Float8, Uniform::Double(values)) => Some(Self::Float8(values)),
            (Class::Date, Uniform::Date(values)) => {
                values.iter().all(|value| days(*value).is_some()).then_some(Self::Date(values))
            }
            (Class::Numeric, Uniform::Decimal(values, scale)) => Some(Self::Numeric(values, scale)),
            (Class::Text, Uniform::Text(array)) => fit(native, array).then_some(Self::Text(array)),
            (Class::Text, Uniform::LargeText(array)) => fit(native, array).then_some(Self::LargeText(array)),
            _ => None,
        }
    }

    /// Appends the cell of `row`.
    #[inline]
    pub(super) fn put(&self, row: usize, native: &Type, out: &mut Vec<u8>) -> Result<(), Odd> {
        match self {
            Self::Int4(values) => fixed(values[row].to_be_bytes(), out),
            Self::Int8(values) => fixed(values[row].to_be_bytes(), out),
            Self::Float8(values) => fixed(values[row].to_be_bytes(), out),
            Self::Date(values) => fixed(days(values[row]).unwrap_or_default().to_be_bytes(), out),
            Self::Numeric(values, scale) => return numeric::put(native, values[row], *scale, out),
            Self::Text(array) => return bytes(&[], array.value(row).as_bytes(), out),
            Self::LargeText(array) => return bytes(&[], array.value(row).as_bytes(), out),
        }
        Ok(())
    }
}

/// Whether a column of `native` takes each text as it is. All of them are looked at as one.
fn fit<Offset: OffsetSizeTrait>(native: &Type, array: &GenericStringArray<Offset>) -> bool {
    let offsets = array.value_offsets();
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    let used = array.value_data().get(at(0)..at(array.len()));
    let longest = offsets.windows(2).map(|pair| (pair[1] - pair[0]).as_usize()).max().unwrap_or_default();
    let most = fit::most_characters(native).unwrap_or(usize::MAX);
    // As many bytes or fewer are as many characters or fewer.
    longest <= most && used.is_some_and(|used| !used.contains(&0))
}
