//! How far a read has come.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what all sessions of one read have received; looked at from any thread.
#[derive(Debug, Default)]
pub struct Meter {
    rows: AtomicU64,
    bytes: AtomicU64,
    expected: AtomicU64,
}

impl Meter {
    /// `rows` more have been decoded.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// `bytes` more of the server's rows have been decoded.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What has been counted will be read once more.
    pub(crate) fn begin_again(&self) {
        self.rows.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// The source estimates `rows` in all.
    pub fn expect(&self, rows: u64) {
        self.expected.store(rows, Ordering::Relaxed);
    }

    /// The rows decoded so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The bytes of these rows, as they came from the server.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The source's estimate of all rows; `None` where it has none.
    #[must_use]
    pub fn expected(&self) -> Option<u64> {
        Some(self.expected.load(Ordering::Relaxed)).filter(|rows| *rows > 0)
    }
}
