//! Room for large columns: mapped by themselves, so that they grow by moving pages and not by copying bytes.

use longshore_core::memory::{self, NoRoom};

/// From this size on a column has pages of its own.
const LARGE: usize = 1 << 20;

/// From this size on it has them as soon as it grows.
const GROWING: usize = 128 << 10;

/// More than glibc ever takes from memory that it keeps: the largest `M_MMAP_THRESHOLD` (mallopt(3)), and one.
const MAPPED: usize = (32 << 20) + 1;

/// Has `values` take `more` without a copy of those it has, if it is large.
pub(crate) fn make_room<T>(values: &mut Vec<T>, more: usize) -> Result<(), NoRoom> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    let wanted = (values.len() + more).max(values.capacity() * 2);
    if wanted * size_of::<T>() < LARGE && values.capacity() * size_of::<T>() < GROWING {
        return memory::make_room(values, more);
    }
    // Pages that are never touched are never there, but a system may have promised all that it has.
    let wanted = wanted.max(MAPPED.div_ceil(size_of::<T>()));
    values.try_reserve_exact(wanted - values.len()).or_else(|_| memory::make_room(values, more))
}

/// So many zeros, which take no memory until something else is written among them; `None` for few, or without memory.
pub(crate) fn zeros(count: usize) -> Option<Vec<u8>> {
    if count < GROWING {
        return None;
    }
    let mut zeros = memory::zeros(count.max(MAPPED)).ok()?;
    zeros.truncate(count);
    zeros.shrink_to_fit();
    Some(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_as_many_as_asked_for() {
        assert_eq!(zeros(GROWING - 1), None);
        for count in [GROWING, MAPPED + 1] {
            let zeros = zeros(count).unwrap();
            assert_eq!((zeros.len(), zeros.capacity()), (count, count));
            assert!(zeros.iter().all(|zero| *zero == 0));
        }
    }

    #[test]
    fn a_small_column_takes_no_more_than_a_vector_would() {
        let mut values = vec![1_u8; 100];
        make_room(&mut values, 1).unwrap();
        assert!(values.capacity() < 1000);
    }

    #[test]
    fn a_large_column_grows_and_keeps_its_values() {
        let mut values: Vec<u64> = Vec::new();
        for start in (0..12_u64 << 20).step_by(1 << 17) {
            make_room(&mut values, 1 << 17).unwrap();
            let room = values.capacity();
            values.extend(start..start + (1 << 17));
            assert_eq!(values.capacity(), room);
        }
        assert!(values.iter().copied().eq(0..12 << 20));
        values.shrink_to_fit();
        assert_eq!(values.capacity(), 12 << 20);
    }
}
