//! Memory of the system itself: what glibc keeps for itself is of no use to other allocators, nor to its own threads.

use std::ptr::NonNull;

/// Maps `size` bytes, which take no memory until they are written; `None` where the system gives none.
#[cfg(unix)]
#[allow(unsafe_code)]
pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
    // SAFETY: new private memory at an address that the system chooses (mmap(2)).
    let start = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0)
    };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Gives back what [`map`] has mapped.
///
/// # Safety
/// It is of this size, and used by none any more.
#[cfg(unix)]
#[allow(unsafe_code)]
pub(super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(start.as_ptr().cast(), size) };
}

#[cfg(not(unix))]
#[allow(unsafe_code)]
pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
    let layout = std::alloc::Layout::from_size_align(size, 16).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout's size is not 0.
    NonNull::new(unsafe { std::alloc::GlobalAlloc::alloc(&std::alloc::System, layout) })
}

/// As on Unix.
#[cfg(not(unix))]
#[allow(unsafe_code)]
pub(super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
    let Ok(layout) = std::alloc::Layout::from_size_align(size, 16) else { return };
    // SAFETY: the caller's promise.
    unsafe { std::alloc::GlobalAlloc::dealloc(&std::alloc::System, start.as_ptr(), layout) };
}

/// As much as this may lie idle before it is worth a walk over the free lists, which takes milliseconds.
const WORTH_IT: usize = 128 << 20;

/// Counts what is freed, and gives it back when it is worth it: glibc keeps it where batches of several threads lie between
/// each other, and a frame read in parts would peak at 1.4 times its size (measured with 8 parts; 1.1 times with this).
#[derive(Clone, Debug, Default)]
pub struct Trim {
    freed: usize,
}

impl Trim {
    /// `bytes` have been freed.
    pub fn count(&mut self, bytes: usize) {
        self.freed += bytes;
        if self.freed >= WORTH_IT {
            self.freed = 0;
            give_back();
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn give_back() {
    // SAFETY: `malloc_trim` (malloc_trim(3)) takes no pointer, is thread-safe, and touches free memory only.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
