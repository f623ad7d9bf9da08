//! Waits for futures on the caller's own thread, which looks at its deadline between slices.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use longshore_core::{Deadline, Result};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The output of `future`. Where the deadline ends first, the future is dropped, which cancels its call.
pub fn wait<T>(deadline: &Deadline, future: impl Future<Output = T>) -> Result<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        deadline.check()?;
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Ok(done);
        }
        thread::park_timeout(deadline.slice());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use longshore_core::{Kind, Never};

    use super::*;

    #[test]
    fn a_wait_ends_with_its_future_or_its_deadline() {
        assert_eq!(wait(&Deadline::never(), std::future::ready(1)).unwrap(), 1);
        let (sender, receiver) = futures::channel::oneshot::channel();
        let sending = thread::spawn(move || sender.send(2));
        assert_eq!(wait(&Deadline::never(), receiver).unwrap(), Ok(2));
        sending.join().unwrap().unwrap();
        let deadline = Deadline::new(Arc::new(Never), Some(Duration::from_millis(20)));
        let since = Instant::now();
        let error = wait(&deadline, std::future::pending::<()>()).unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout);
        assert!(since.elapsed() < Duration::from_secs(5));
    }
}
