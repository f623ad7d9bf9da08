//! Arrays and composites in their binary form, taken apart.

use longshore_values::{CellBuffer, Misfit};

use super::{Dimensions, damage};

pub(crate) fn word(bytes: &mut &[u8]) -> Option<i32> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(i32::from_be_bytes(*word))
}

/// A value behind its length word, `None` for NULL.
pub(crate) fn value<'a>(bytes: &mut &'a [u8], inside: &'static str) -> Result<Option<&'a [u8]>, Misfit> {
    let length = word(bytes).ok_or_else(|| damage(inside))?;
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| damage(inside))?;
    let (value, rest) = bytes.split_at_checked(length).ok_or_else(|| damage(inside))?;
    *bytes = rest;
    Ok(Some(value))
}

/// `array_send`'s form: dimensions, a flag, the element's OID, length and lower bound of each dimension, then
/// the elements.
pub(crate) fn split_array(cell: &[u8], into: &mut CellBuffer) -> Result<Dimensions, Misfit> {
    let mut rest = cell;
    let dimensions = header(&mut rest).ok_or_else(|| damage("array"))??;
    // An empty array has no dimensions, but int2vector and oidvector keep their one. Next to a dimension without
    // length, another could be any number of lists.
    let dimensions = if dimensions.lengths() == [0] { Dimensions::default() } else { dimensions };
    if dimensions.lengths().contains(&0) {
        return Err(damage("array"));
    }
    let elements = dimensions.elements().ok_or_else(|| damage("array"))?;
    // Each element has at least its length word: a damaged count cannot run long. No length is 0, so that none
    // is above their product.
    if elements > rest.len() / 4 {
        return Err(damage("array"));
    }
    for _ in 0..elements {
        into.push(value(&mut rest, "array")?)?;
    }
    if rest.is_empty() { Ok(dimensions) } else { Err(damage("array")) }
}

fn header(bytes: &mut &[u8]) -> Option<Result<Dimensions, Misfit>> {
    let count = u32::try_from(word(bytes)?).ok()?;
    let (_flags, _element) = (word(bytes)?, word(bytes)?);
    let mut dimensions = Dimensions::default();
    for _ in 0..count {
        let length = usize::try_from(word(bytes)?).ok()?;
        dimensions.has_bounds |= word(bytes)? != 1;
        if let Err(misfit) = dimensions.push(length) {
            return Some(Err(misfit));
        }
    }
    Some(Ok(dimensions))
}

/// `record_send`'s form: the number of fields, then OID, length and bytes of each; the OIDs are to be `expected`.
pub(crate) fn split_record(expected: &[u32], cell: &[u8], into: &mut [CellBuffer]) -> Result<(), Misfit> {
    let mut rest = cell;
    let count = word(&mut rest).and_then(|count| usize::try_from(count).ok());
    if count != Some(expected.len()) {
        return Err(changed_type());
    }
    for (oid, part) in expected.iter().zip(into) {
        let got = word(&mut rest).ok_or_else(|| damage("composite"))?;
        if got.cast_unsigned() != *oid {
            return Err(changed_type());
        }
        part.push(value(&mut rest, "composite")?)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(damage("composite")) }
}

fn changed_type() -> Misfit {
    Misfit::with_hint(
        "the composite's fields are not those of the catalogue",
        "its type was altered while the query ran: run it again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(count: i32, lengths: &[i32], elements: &[i32]) -> Result<Vec<usize>, Misfit> {
        let mut cell: Vec<u8> = [count, 0, 23].iter().flat_map(|word| word.to_be_bytes()).collect();
        cell.extend(lengths.iter().flat_map(|length| [*length, 1]).flat_map(i32::to_be_bytes));
        cell.extend(elements.iter().flat_map(|element| [4, *element]).flat_map(i32::to_be_bytes));
        let split = split_array(&cell, &mut CellBuffer::default());
        split.map(|dimensions| dimensions.lengths().to_vec())
    }

    #[test]
    fn binary_arrays_have_the_elements_that_their_lengths_promise() {
        assert_eq!(binary(0, &[], &[]), Ok(vec![]));
        assert_eq!(binary(2, &[2, 1], &[7, 8]), Ok(vec![2, 1]));
        assert!(binary(2, &[i32::MAX, 0], &[]).is_err());
        assert!(binary(2, &[0, i32::MAX], &[]).is_err());
        assert_eq!(binary(1, &[0], &[]), Ok(vec![]));
        assert!(binary(3, &[i32::MAX, i32::MAX, i32::MAX], &[]).is_err());
        assert!(binary(1, &[3], &[7, 8]).is_err() && binary(1, &[1], &[7, 8]).is_err());
        assert!(binary(1, &[-1], &[]).is_err() && binary(-1, &[], &[]).is_err());
        assert!(binary(7, &[1; 7], &[7]).is_err());
    }
}
