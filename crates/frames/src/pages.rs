//! Room for large columns: mapped by themselves, so that they grow by moving pages, and in the system's large pages.
//!
//! A column of pages of four kilobytes is 250 faults a megabyte, which cost more than filling it.

/// From this size on a column has pages of its own.
const LARGE: usize = 1 << 20;

/// More than glibc ever takes from memory that it keeps: the largest `M_MMAP_THRESHOLD` (mallopt(3)).
const MAPPED: usize = 32 << 20;

/// A large page, in which a page is not said to lie but often does.
const LARGE_PAGE: usize = 2 << 20;

/// What the allocator keeps beside the values.
const HEADER: usize = 64;

/// Has `values` take `more` without a copy of those it has, if it is large.
pub(crate) fn make_room<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() >= more {
        return;
    }
    let wanted = (values.len() + more).max(values.capacity() * 2) * size_of::<T>();
    if wanted < LARGE {
        return values.reserve(more);
    }
    // Pages that are never touched are never there, but a system may have promised all that it has.
    let pages = wanted.max(MAPPED) / LARGE_PAGE + 1;
    let wanted = (pages * LARGE_PAGE - HEADER) / size_of::<T>();
    if values.try_reserve_exact(wanted - values.len()).is_err() {
        return values.reserve(more);
    }
    ask_for_large_pages(values);
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask_for_large_pages<T>(values: &mut Vec<T>) {
    const PAGE: usize = 4 << 10;
    // All pages that it lies in, whole: mappings of two kinds could not grow as one.
    let start = values.as_mut_ptr().map_addr(|start| start / PAGE * PAGE);
    let end = values.spare_capacity_mut().as_mut_ptr_range().end.addr().next_multiple_of(PAGE);
    // SAFETY: advice on how to back pages changes nothing in them, whosever they are, and may be refused (madvise(2)).
    unsafe { libc::madvise(start.cast(), end - start.addr(), libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_column_takes_no_more_than_a_vector_would() {
        let mut values = vec![1_u8; 100];
        make_room(&mut values, 1);
        assert!(values.capacity() < 1000);
    }

    #[test]
    fn a_large_column_grows_and_keeps_its_values() {
        let mut values: Vec<u64> = Vec::new();
        for start in (0..12_u64 << 20).step_by(1 << 17) {
            make_room(&mut values, 1 << 17);
            let room = values.capacity();
            values.extend(start..start + (1 << 17));
            assert_eq!(values.capacity(), room);
        }
        assert!(values.iter().copied().eq(0..12 << 20));
        values.shrink_to_fit();
        assert_eq!(values.capacity(), 12 << 20);
    }
}
