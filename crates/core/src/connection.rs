//! A session that its owner keeps between reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::partitions::SnapshotLease;
use crate::remedy::with_remedy;
use crate::session::{ENDING, ParameterSets};
use crate::source::{Direct, Lease, Reservation, SessionFactory, Source};
use crate::{CancelHandle, Deadline, Error, Kind, Params, Query, Result, Session, Transaction, lock};

/// One session for many statements, one at a time.
pub struct Connection {
    slot: Mutex<Slot>,
    factory: Arc<Direct>,
    autocommit: AtomicBool,
    /// The sessions that keep snapshots for the readers of partitions; `None` once it is closed.
    leases: Mutex<Option<Vec<SnapshotLease>>>,
}

enum Slot {
    Free(Box<dyn Session>),
    /// A statement or a read has it, which the handle stops.
    Leased(CancelHandle),
    /// It is closed, or was lost.
    Closed,
}

impl Connection {
    /// Opens a session of `source`. Without `autocommit`, the first statement begins a transaction.
    pub fn open(source: Arc<Direct>, autocommit: bool, deadline: &Deadline) -> Result<Arc<Self>> {
        let session = source.open(deadline)?;
        Ok(Arc::new(Self {
            slot: Mutex::new(Slot::Free(session)),
            factory: source,
            autocommit: autocommit.into(),
            leases: Mutex::new(Some(Vec::new())),
        }))
    }

    /// Opens another session to the same place.
    pub fn another(&self, deadline: &Deadline) -> Result<Arc<Self>> {
        Self::open(self.factory.clone(), self.commits_each(), deadline)
    }

    /// The factory that opens further sessions.
    pub(crate) fn factory(&self) -> &Arc<Direct> {
        &self.factory
    }

    /// The first of the schemes that name the source.
    pub(crate) fn scheme(&self) -> String {
        self.factory.scheme()
    }

    /// Keeps the session of a snapshot until this connection is closed; ends it where that has happened meanwhile.
    pub(crate) fn keep(&self, lease: SnapshotLease) -> Result<()> {
        let mut kept = lock(&self.leases);
        let Some(leases) = kept.as_mut() else {
            drop(kept);
            return Err(closed_error());
        };
        leases.retain(|lease| !lease.is_over());
        leases.push(lease);
        Ok(())
    }

    /// Whether each statement is a transaction of its own.
    pub fn commits_each(&self) -> bool {
        self.autocommit.load(Ordering::Relaxed)
    }

    /// Has each statement be a transaction of its own, or not. An error where a transaction is open.
    pub fn set_autocommit(&self, autocommit: bool) -> Result<()> {
        match self.transaction() {
            Some(Transaction::None) => {
                self.autocommit.store(autocommit, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Error::programming("autocommit cannot be changed while a transaction is open")
                .with_hint("commit or roll back first")),
        }
    }

    fn lease(self: &Arc<Self>, deadline: &Deadline) -> Result<(Box<dyn Session>, ConnectionLease)> {
        let mut slot = lock(&self.slot);
        match std::mem::replace(&mut *slot, Slot::Leased(deadline.cancel_handle())) {
            Slot::Free(mut session) => {
                session.set_deadline(deadline);
                Ok((session, ConnectionLease { connection: self.clone(), is_over: AtomicBool::new(false) }))
            }
            leased @ Slot::Leased(_) => {
                *slot = leased;
                Err(in_use())
            }
            Slot::Closed => {
                *slot = Slot::Closed;
                Err(closed_error())
            }
        }
    }

    /// Does `work` on the session, which stays wherever it can be used on.
    fn with<T>(
        self: &Arc<Self>,
        deadline: &Deadline,
        work: impl FnOnce(&mut dyn Session) -> Result<T>,
    ) -> Result<T> {
        let (mut session, lease) = self.lease(deadline)?;
        let done = work(session.as_mut());
        lease.release(session);
        done
    }

    /// Runs a statement; see [`Session::execute`].
    pub fn execute(self: &Arc<Self>, query: &Query, deadline: &Deadline) -> Result<Option<u64>> {
        self.with(deadline, |session| {
            let begins = !self.commits_each() && session.begins_for(&query.text);
            if begins && session.transaction() == Transaction::None {
                session.begin()?;
            }
            session
                .execute(query)
                .map_err(|error| with_remedy(error, std::slice::from_ref(query), session.placeholders()))
        })
    }

    /// Runs the statements of a script; see [`crate::Scripting::run_script`].
    pub fn run_script(self: &Arc<Self>, script: &str, deadline: &Deadline) -> Result<()> {
        self.with(deadline, |session| {
            let scripting = session.scripting().ok_or_else(|| {
                Error::not_supported("this source runs one statement at a time")
                    .with_hint("run the statements one by one")
            })?;
            scripting.run_script(script, !self.commits_each())
        })
    }

    /// Begins a transaction, where none is open.
    pub fn begin(self: &Arc<Self>, deadline: &Deadline) -> Result<()> {
        self.with(deadline, |session| session.begin())
    }

    /// Ends the transaction.
    pub fn commit(self: &Arc<Self>, deadline: &Deadline) -> Result<()> {
        self.with(deadline, |session| session.commit())
    }

    /// Undoes the transaction.
    pub fn rollback(self: &Arc<Self>, deadline: &Deadline) -> Result<()> {
        self.with(deadline, |session| session.rollback())
    }

    /// Undoes the transaction of a call that has failed, whatever has stopped that.
    pub fn undo(self: &Arc<Self>) -> Result<()> {
        self.rollback(&Deadline::never().at_most(ENDING))
    }

    /// Closes the session, and undoes first what its transaction did. A read that has it goes on; its end closes it. The
    /// snapshots of partitions end, too. Fails where the source has kept what its transaction did.
    pub fn close(&self) -> Result<()> {
        let leases = lock(&self.leases).take();
        drop(leases);
        let closed = std::mem::replace(&mut *lock(&self.slot), Slot::Closed);
        let Slot::Free(mut session) = closed else { return Ok(()) };
        session.set_deadline(&Deadline::never().at_most(ENDING));
        match session.rollback() {
            Err(error) if error.kind() == Kind::NotSupported => Err(error),
            // The transaction of a session that is lost ends with it.
            _ => Ok(()),
        }
    }

    /// Ends the session with `work`, after which no one has it. `None` where it is in use.
    pub fn end_with(
        &self,
        deadline: &Deadline,
        work: impl FnOnce(&mut dyn Session) -> Result<()>,
    ) -> Option<Result<()>> {
        let mut slot = lock(&self.slot);
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Free(mut session) => {
                drop(slot);
                session.set_deadline(deadline);
                Some(work(session.as_mut()))
            }
            leased @ Slot::Leased(_) => {
                *slot = leased;
                None
            }
            Slot::Closed => Some(Err(closed_error())),
        }
    }

    /// Stops the statement or the read that has the session, from any thread; nothing where none has it.
    pub fn cancel(&self) {
        let cancel_handle = match &*lock(&self.slot) {
            Slot::Leased(cancel_handle) => cancel_handle.clone(),
            Slot::Free(_) | Slot::Closed => return,
        };
        // A stream that no thread reads gives the session back meanwhile.
        cancel_handle.cancel();
    }

    /// Whether the session is closed or lost.
    pub fn is_closed(&self) -> bool {
        matches!(*lock(&self.slot), Slot::Closed)
    }

    /// Whether a transaction is open; `None` while a read has the session.
    pub fn transaction(&self) -> Option<Transaction> {
        match &*lock(&self.slot) {
            Slot::Free(session) => Some(session.transaction()),
            Slot::Leased(_) => None,
            Slot::Closed => Some(Transaction::None),
        }
    }
}

/// Runs a statement over a session of `source` with each of `sets`, in pieces; returns how many rows all of them changed, where
/// the server tells it. Where no transaction is open, they are one.
pub fn execute_many(
    source: &dyn Source,
    text: &str,
    mut sets: impl Iterator<Item = Result<Vec<Params>>>,
    deadline: &Deadline,
) -> Result<Option<u64>> {
    let Reservation { mut first, lease, begins, .. } = source.reserve(1, deadline)?;
    let ran = run_many(first.as_mut(), text, &mut sets, !begins);
    lease.release(first);
    ran
}

fn run_many(
    session: &mut dyn Session,
    text: &str,
    sets: &mut ParameterSets<'_>,
    commits: bool,
) -> Result<Option<u64>> {
    let is_own = session.transaction() == Transaction::None;
    if is_own {
        session.begin()?;
    }
    let ran = session.execute_many(text, sets);
    let ran = ran.map_err(|error| with_remedy(error, &[Query::new(text)], session.placeholders()));
    match &ran {
        Ok(_) if is_own && commits => session.commit()?,
        Err(_) if is_own => {
            // The deadline may be why it has failed.
            session.set_deadline(&Deadline::never().at_most(ENDING));
            // What the error is about matters more; a session that is lost tells it to the next statement.
            let _ = session.rollback();
        }
        _ => {}
    }
    ran
}

/// The error of a connection whose session is lent.
#[must_use]
pub fn in_use() -> Error {
    Error::interface("the connection is in use by a stream or by another thread").with_hint(
        "read the stream to its end or close it first; give each thread a connection of its own, or a pool",
    )
}

fn closed_error() -> Error {
    Error::interface("the connection is closed").with_hint("connect again")
}

/// The lease of a connection's session. One that never comes back has closed the connection.
struct ConnectionLease {
    connection: Arc<Connection>,
    is_over: AtomicBool,
}

impl ConnectionLease {
    /// Puts `session` into the slot, unless that was closed meanwhile.
    fn end(&self, session: Option<Box<dyn Session>>) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut returned = session.filter(|session| session.is_usable()).map_or(Slot::Closed, Slot::Free);
        let mut slot = lock(&self.connection.slot);
        if matches!(*slot, Slot::Leased(_)) {
            std::mem::swap(&mut *slot, &mut returned);
        }
    }
}

impl Lease for ConnectionLease {
    fn release(&self, session: Box<dyn Session>) {
        self.end(Some(session));
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Source for Arc<Connection> {
    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation> {
        let (first, lease) = self.lease(deadline)?;
        Ok(Reservation {
            first,
            lease: Arc::new(lease),
            factory: self.factory.clone(),
            most: count,
            begins: !self.commits_each(),
            is_own: true,
        })
    }
}
