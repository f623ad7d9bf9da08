//! How far a read has come, and who hears of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::{Result, lock};

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

    /// Forgets what has been counted, which will be read once more.
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
    pub fn expected_rows(&self) -> Option<u64> {
        Some(self.expected.load(Ordering::Relaxed)).filter(|rows| *rows > 0)
    }
}

/// Often enough for the eye.
const EVERY: Duration = Duration::from_millis(100);

/// Hears how far a read has come.
pub trait Listener: Send + Sync {
    /// Hears the figures so far, and whether the result has ended. An error stops the read.
    fn report(&self, figures: &Meter, ended: bool) -> Result<()>;
}

/// Reports of one read's progress, ten times a second.
pub struct Progress {
    /// `None` where no one listens, and after the last report: a session outlives its read.
    listener: Mutex<Option<(Arc<dyn Listener>, Instant)>>,
    meter: Arc<Meter>,
}

impl Progress {
    /// Reports of `meter` to `listener`.
    pub fn new(listener: Option<Arc<dyn Listener>>, meter: Arc<Meter>) -> Arc<Self> {
        let listener = listener.map(|listener| (listener, Instant::now()));
        Arc::new(Self { listener: Mutex::new(listener), meter })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Option<(Arc<dyn Listener>, Instant)>) -> T) -> T {
        work(&mut lock(&self.listener))
    }

    /// Reports if the last report is a while ago.
    pub fn tick(&self) -> Result<()> {
        // Not called under the mutex: the listener may take as long as it likes.
        let due = self.with(|listener| {
            let (listener, last) = listener.as_mut().filter(|(_, last)| last.elapsed() >= EVERY)?;
            *last = Instant::now();
            Some(listener.clone())
        });
        due.map_or(Ok(()), |listener| listener.report(&self.meter, false))
    }

    /// Reports that all has come, whatever the time. Nothing is reported after it.
    pub fn finish(&self) -> Result<()> {
        self.with(Option::take).map_or(Ok(()), |(listener, _)| listener.report(&self.meter, true))
    }

    /// Reports no more, and lets the listener go.
    pub fn end(&self) {
        let listener = self.with(Option::take);
        drop(listener);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log(Mutex<Vec<(u64, bool)>>);

    impl Listener for Log {
        fn report(&self, figures: &Meter, ended: bool) -> Result<()> {
            self.0.lock().unwrap().push((figures.rows(), ended));
            Ok(())
        }
    }

    #[test]
    fn reports_are_rare_and_the_last_one_comes_once() {
        let (meter, log) = (Arc::new(Meter::default()), Arc::new(Log(Mutex::default())));
        let progress = Progress::new(Some(log.clone()), meter.clone());
        progress.tick().unwrap();
        meter.add_rows(3);
        std::thread::sleep(EVERY);
        progress.tick().unwrap();
        progress.tick().unwrap();
        meter.add_rows(4);
        progress.finish().unwrap();
        progress.finish().unwrap();
        progress.tick().unwrap();
        assert_eq!(*log.0.lock().unwrap(), [(3, false), (7, true)]);
    }

    #[test]
    fn an_ended_report_lets_its_listener_go() {
        let log = Arc::new(Log(Mutex::default()));
        let progress = Progress::new(Some(log.clone()), Arc::default());
        progress.end();
        progress.finish().unwrap();
        assert_eq!(Arc::strong_count(&log), 1);
        assert!(log.0.lock().unwrap().is_empty());
    }
}
