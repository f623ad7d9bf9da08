//! An allocator with a reserve: a small ask that fails is served from it, and the error is raised soon after.
//!
//! Large buffers are asked for fallibly. But maps, strings and much of arrow-rs end the process where they get no memory,
//! so that the error itself could not be said. The reserve is given back at the first failure; [`checkpoint`], which every
//! read passes again and again, then takes it again or fails.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::fallible::{OutOfMemory, check_available};
use super::pages::{map, unmap};

/// Untouched, it costs address space and no memory; to free so much is to give it back to the system.
const SIZE: usize = 32 << 20;

/// The memory that the end of something needs: a few frames of the interpreter, a few small objects.
const LITTLE: usize = 1 << 20;

/// The reserve; null before the first read, and after it was given back.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Whether an ask has failed since the reserve was taken.
static IS_SPENT: AtomicBool = AtomicBool::new(false);

/// The system's allocator, which asks again once the reserve is given back.
#[derive(Debug)]
pub struct Reserving;

impl Reserving {
    /// Asks again where the reserve may be of help.
    #[cold]
    fn again(size: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
        if size >= SIZE {
            // Who asks for so much can do without, or has asked for room before.
            return null_mut();
        }
        give_back();
        ask()
    }
}

// SAFETY: every call goes to the system's allocator as it is, once or twice; nothing here unwinds.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's allocator wants.
        let ask = || unsafe { System.alloc(layout) };
        let start = ask();
        if start.is_null() { Self::again(layout.size(), ask) } else { start }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let ask = || unsafe { System.alloc_zeroed(layout) };
        let start = ask();
        if start.is_null() { Self::again(layout.size(), ask) } else { start }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; where it fails, the old memory is as it was.
        let ask = || unsafe { System.realloc(start, layout, size) };
        let moved = ask();
        if moved.is_null() { Self::again(size, ask) } else { moved }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[allow(unsafe_code)]
fn give_back() {
    let reserve = RESERVE.swap(null_mut(), Ordering::SeqCst);
    // After the swap: whoever sees the flag down finds the reserve, or finds it missing and takes it.
    IS_SPENT.store(true, Ordering::SeqCst);
    if let Some(reserve) = NonNull::new(reserve) {
        // SAFETY: `take` mapped it with this size, and nothing else has it after the swap.
        unsafe { unmap(reserve, SIZE) }
    }
}

/// Gives the reserve back where there is next to no memory: before what has to be done even so.
pub fn release_reserve() {
    if check_available(LITTLE).is_err() {
        give_back();
    }
}

/// Takes the reserve where it is not there.
#[allow(unsafe_code)]
fn take() -> Result<(), OutOfMemory> {
    if !RESERVE.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let reserve = map(SIZE).ok_or(OutOfMemory)?;
    if RESERVE.compare_exchange(null_mut(), reserve.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: it was mapped above with this size; another thread's is kept in its place.
        unsafe { unmap(reserve, SIZE) }
    }
    Ok(())
}

/// Begins a call that may run out of memory; fails where there is not enough to say so.
pub fn begin() -> Result<(), OutOfMemory> {
    // Before the look at the reserve: another thread that spends it meanwhile puts the flag up again.
    IS_SPENT.store(false, Ordering::SeqCst);
    take().inspect_err(|_| IS_SPENT.store(true, Ordering::SeqCst))
}

/// Fails after an ask that only the reserve could serve, unless there is memory again.
#[inline]
pub(super) fn checkpoint() -> Result<(), OutOfMemory> {
    if IS_SPENT.load(Ordering::Relaxed) { begin() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn a_failed_ask_spends_the_reserve_and_a_checkpoint_takes_it_again() {
        begin().unwrap();
        assert!(!RESERVE.load(Ordering::Relaxed).is_null());
        assert!(Reserving::again(SIZE, null_mut).is_null());
        assert!(!IS_SPENT.load(Ordering::Relaxed), "a large ask does not touch it");
        let start = Reserving::again(100, || {
            assert!(RESERVE.load(Ordering::Relaxed).is_null());
            null_mut()
        });
        assert!(start.is_null() && IS_SPENT.load(Ordering::Relaxed));
        checkpoint().unwrap();
        release_reserve();
        assert!(!RESERVE.load(Ordering::Relaxed).is_null() && !IS_SPENT.load(Ordering::Relaxed));
        give_back();
    }
}
