//! Freed memory goes back to the system: glibc keeps it where batches of several threads lie between each other, and a
//! frame read in parts would peak at 1.4 times its size (measured with 8 parts; 1.1 times with this).

/// As much as this may lie idle before it is worth a walk over the free lists, which takes milliseconds.
const WORTH_IT: usize = 128 << 20;

/// Counts what is freed, and gives it back when it is worth it.
#[derive(Clone, Debug, Default)]
pub struct Trim {
    freed: usize,
}

impl Trim {
    /// `bytes` have been freed.
    pub fn freed(&mut self, bytes: usize) {
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
