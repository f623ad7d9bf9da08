//! The end of a running statement: `KILL QUERY` over another connection, and the state of the session afterwards.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use longshore_core::{Deadline, PasswordSource, Result};
use longshore_source::rows::VIOLATION;

use super::{Connection, Exchange, cleanup, command};
use crate::channel::Channel;
use crate::dialect::literal;
use crate::message;
use crate::settings::Settings;

/// The error of a statement that was killed.
const INTERRUPTED: u16 = 1317;

/// The longest wait for a file's rows that the server has received already: without them it would have a statement to roll back.
const FILE_END: Duration = Duration::from_millis(500);

/// The longest wait for a server that rolls a lost session's rows back.
const ROLLBACK: Duration = Duration::from_secs(300);

impl Connection {
    /// Stops what runs on the server, if anything does; tells whether the server waits for the next command.
    pub(crate) fn stop(&mut self) -> bool {
        if self.is_dead || self.check_owner().is_err() {
            return false;
        }
        if self.exchange != Exchange::Idle || self.is_status_unknown {
            let deadline = self.set_deadline(cleanup());
            let was_open = self.is_in_transaction();
            if self.exchange == Exchange::File {
                self.is_dead |= self.end_of_file().is_err();
                self.finish_within(FILE_END);
            }
            self.interrupt();
            self.update_status(was_open);
            self.deadline = deadline;
        }
        self.is_usable()
    }

    /// A request that comes before the server has begun to execute is lost without a word, so it is repeated until
    /// the answer's end is there.
    fn interrupt(&mut self) {
        let mut was_killed = false;
        for milliseconds in [10, 20, 50, 100, 200, 500, 1000] {
            if self.exchange == Exchange::Idle || self.is_dead || self.kill().is_err() {
                break;
            }
            was_killed = true;
            self.finish_within(Duration::from_millis(milliseconds));
        }
        // What could not be stopped now will not be stopped by another attempt.
        self.is_dead |= self.exchange != Exchange::Idle;
        if was_killed && !self.is_dead {
            self.deadline = cleanup();
            self.absorb_kill();
        }
    }

    /// Waits so long for the end of the answer.
    fn finish_within(&mut self, time: Duration) {
        self.deadline = Deadline::never().at_most(time);
        if let Err(error) = self.finish() {
            self.is_dead |= error.sqlstate() == Some(VIOLATION);
        }
    }

    /// Runs `statements` in place of this session, which is lost and which the server may still be rolling back: over another
    /// connection, under the lock that this one has had, and on a thread of its own where that takes longer than a clean-up may.
    pub(crate) fn undo_elsewhere(&self, statements: Vec<String>) {
        if statements.is_empty() || self.check_owner().is_err() {
            return;
        }
        let thread = self.link.greeting.thread;
        if let Channel::Client(socket) = &self.link.channel {
            let kill = format!("KILL CONNECTION {thread}");
            let _ = socket.client.run_elsewhere([vec![kill], statements].concat());
            return;
        }
        let Some(settings) = &self.settings else { return };
        // Asked for here: a thread of its own may outlive what gives the password.
        let Ok(password) = settings.password.as_ref().map(|source| source.password()).transpose() else {
            return;
        };
        let password = password.map(|secret| Arc::new(secret) as Arc<dyn PasswordSource>);
        let settings = Arc::new(Settings { password, ..Settings::clone(settings) });
        let (lost, lock) = (thread, self.table_lock.clone());
        let (done, ended) = mpsc::channel::<()>();
        let undo = move || -> Result<()> {
            let _done = done;
            let mut other = Self::open_bare(&settings, &cleanup())?;
            other.deadline = Deadline::never().at_most(ROLLBACK);
            // It may be gone already.
            let _ = other.run(&format!("KILL CONNECTION {lost}"));
            if let Some(lock) = lock {
                let locked =
                    other.value(&format!("SELECT GET_LOCK({}, {})", literal(&lock), ROLLBACK.as_secs()))?;
                if locked.as_deref() != Some("1") {
                    return Ok(());
                }
            }
            // Who waits for a table has those wait that come later.
            other.run("SET SESSION lock_wait_timeout = 5")?;
            for statement in statements {
                // One that fails had nothing to undo.
                let _ = other.run(&statement);
            }
            Ok(())
        };
        if thread::Builder::new().name("longshore-undo".to_owned()).spawn(undo).is_ok() {
            let _ = ended.recv_timeout(Duration::from_secs(2));
        }
    }

    /// Has the server stop the session's statement; returns when the request has been delivered.
    fn kill(&self) -> Result<()> {
        let kill = format!("KILL QUERY {}", self.link.greeting.thread);
        if let Channel::Client(socket) = &self.link.channel {
            return socket.client.run_elsewhere(vec![kill]);
        }
        let Some(settings) = &self.settings else { return Ok(()) };
        // Answered once the session has been told: later, it could hit the session's next statement.
        Self::open_bare(settings, &cleanup())?.run(&kill)
    }

    /// A request to stop may have come when nothing ran any more: it must not hit the next statement.
    fn absorb_kill(&mut self) {
        for _ in 0..3 {
            match self.run("DO 0") {
                Ok(()) => return,
                Err(error) if message::code(&error) == Some(INTERRUPTED) => {}
                Err(_) => break,
            }
        }
        self.is_dead = true;
    }

    /// After an error: asks for the session's status, which tells whether a transaction is lost.
    fn update_status(&mut self, was_open: bool) {
        if self.is_status_unknown && self.exchange == Exchange::Idle && !self.is_dead {
            self.deadline = cleanup();
            let answered = self.send(command::PING, &[], Exchange::Answer).and_then(|()| self.finish());
            self.is_dead |= answered.is_err();
        }
        self.is_transaction_lost |= was_open && !self.is_in_transaction() && !self.is_dead;
    }
}
