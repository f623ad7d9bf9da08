//! Memory that what clients hold shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes for all who share them.
pub(crate) struct Room {
    most: usize,
    used: AtomicUsize,
}

impl Room {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0) })
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Those who ask at the same time may each get what is left.
    pub(crate) fn has(&self, size: usize) -> bool {
        self.used_bytes() + size <= self.most
    }

    pub(crate) fn take(&self, size: usize) {
        self.used.fetch_add(size, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, size: usize) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }
}

/// Bytes of a room, which are given back once this is dropped.
pub(crate) struct Reserved {
    room: Arc<Room>,
    size: usize,
}

impl Reserved {
    pub(crate) fn nothing(room: Arc<Room>) -> Self {
        Self { room, size: 0 }
    }

    /// Takes so many more; whether there are as many.
    pub(crate) fn grow(&mut self, size: usize) -> bool {
        let grown = |used: usize| used.checked_add(size).filter(|used| *used <= self.room.most);
        let is_there = self.room.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok();
        self.size += if is_there { size } else { 0 };
        is_there
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.room.give_back(self.size);
    }
}
