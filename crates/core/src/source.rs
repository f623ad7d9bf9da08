//! Where a read gets its sessions from, and where they go afterwards.

use std::sync::Arc;

use crate::pool::Hold;
use crate::{Batches, Deadline, Driver, Error, Result, Session, Target};

/// The lease of sessions, which takes them back.
pub trait Lease: Send + Sync {
    /// Keeps `session` for others, or closes it.
    fn release(&self, session: Box<dyn Session>) {
        drop(session);
    }

    /// Takes the session of a result that has ended, or is given up.
    fn end(&self, batches: Box<dyn Batches>) {
        if let Some(session) = batches.into_session() {
            self.release(session);
        }
    }
}

/// Opens the further sessions of a read.
pub trait SessionFactory: Lease {
    /// The read needs no more than `count` sessions, the first included: others may have the rest, where there is a bound.
    fn keep_only(&self, _count: usize) {}

    /// Opens one more, every wait of which looks at `deadline`.
    fn open(&self, deadline: &Deadline) -> Result<Box<dyn Session>>;
}

/// The source that a read can be given instead of a URL.
pub trait Source: Send + Sync {
    /// Sessions for one read: `count` of them, or fewer where there are never so many. All at once, so that two reads
    /// cannot wait for each other's.
    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation>;

    /// Tells that this thread keeps `sessions` of these until the end of its work, in which it may ask for further ones.
    fn hold(&self, _sessions: usize) -> Option<Hold> {
        None
    }

    /// Whether reads take parts that no one asked for.
    fn splits_automatically(&self) -> bool {
        false
    }
}

/// The sessions of one read.
pub struct Reservation {
    /// The one that is open.
    pub first: Box<dyn Session>,
    /// The lease of the first one.
    pub lease: Arc<dyn Lease>,
    /// The factory that opens the others.
    pub factory: Arc<dyn SessionFactory>,
    /// How many there can be, the first included.
    pub most: usize,
    /// Whether a read on the first session begins a transaction that its owner ends.
    pub begins: bool,
    /// Whether the first session is one that its owner keeps: others share neither its transaction nor its settings.
    pub is_own: bool,
}

/// The one session over what its owner has opened: a read gets no further ones.
pub struct OneSession<F>(pub F);

impl<F: Fn(&Deadline) -> Result<Box<dyn Session>> + Send + Sync> Source for OneSession<F> {
    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation> {
        let (first, factory) = ((self.0)(deadline)?, Arc::new(NoSessions));
        Ok(Reservation { first, lease: factory.clone(), factory, most: count, begins: false, is_own: true })
    }
}

struct NoSessions;

impl Lease for NoSessions {
    fn end(&self, batches: Box<dyn Batches>) {
        drop(batches);
    }
}

impl SessionFactory for NoSessions {
    fn open(&self, _deadline: &Deadline) -> Result<Box<dyn Session>> {
        Err(Error::internal("a connection of the caller's is one connection only"))
    }
}

/// Opens a session for each read, and closes it afterwards.
pub struct Direct {
    driver: Arc<dyn Driver>,
    target: Target,
}

impl Direct {
    /// Sessions of `driver` to `target`.
    #[must_use]
    pub fn new(driver: Arc<dyn Driver>, target: Target) -> Arc<Self> {
        Arc::new(Self { driver, target })
    }

    /// The first of the schemes that name the driver.
    pub(crate) fn scheme(&self) -> String {
        self.driver.schemes().first().copied().unwrap_or_default().to_owned()
    }
}

impl Lease for Direct {
    // A connection that is closed needs no answer to the end of its transaction.
    fn end(&self, batches: Box<dyn Batches>) {
        drop(batches);
    }
}

impl SessionFactory for Direct {
    fn open(&self, deadline: &Deadline) -> Result<Box<dyn Session>> {
        self.driver.connect(&self.target, deadline)
    }
}

impl Source for Arc<Direct> {
    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation> {
        let first = self.open(deadline)?;
        Ok(Reservation {
            first,
            lease: self.clone(),
            factory: self.clone(),
            most: count,
            begins: false,
            is_own: false,
        })
    }

    fn splits_automatically(&self) -> bool {
        self.driver.splits_automatically()
    }
}
