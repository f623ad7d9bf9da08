//! Pages that the system gives many at a time.
#![allow(unsafe_code)]

/// From so many bytes on a call costs less than the faults that it spares.
const WORTH_IT: usize = 256 << 10;

/// The size of a page. Where it is a larger one, the system refuses.
const PAGE: usize = 4 << 10;

/// Has the system give the memory of the next `more` values, for which there is room, at once: a fault for each page takes half as long
/// again. What it does not give comes with the faults.
pub(crate) fn populate<T>(values: &mut Vec<T>, more: usize) {
    let spare = values.spare_capacity_mut();
    let bytes = size_of_val(&spare[..more.min(spare.len())]);
    if bytes < WORTH_IT {
        return;
    }
    let start = spare.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    #[cfg(target_os = "linux")]
    // SAFETY: these whole pages are the vector's own, and whatever lies in them stays (madvise(2)).
    unsafe {
        libc::madvise(
            start.add(skipped).cast(),
            bytes.saturating_sub(skipped) / PAGE * PAGE,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_stay_what_they_are() {
        let mut values: Vec<u64> = Vec::with_capacity(1 << 17);
        values.extend(0..1 << 16);
        for more in [0, 1, 1 << 15, 1 << 16, usize::MAX] {
            populate(&mut values, more);
        }
        values.extend(1 << 16..1 << 17);
        assert!(values.iter().copied().eq(0..1 << 17));
    }
}
