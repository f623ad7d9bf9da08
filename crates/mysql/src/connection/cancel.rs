//! The end of a running statement: `KILL QUERY` over another connection, and the state of the session afterwards.

use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Result, Watch};

use super::{Connection, Exchange, STOPPING, command};
use crate::message;
use crate::packet::VIOLATION;
use crate::settings::Settings;

/// The error of a statement that somebody has stopped.
const INTERRUPTED: u16 = 1317;

impl Connection {
    /// Stops what runs on the server, if anything does; tells whether the server waits for the next command.
    pub(crate) fn stop(&mut self) -> bool {
        if self.cut || self.is_ours().is_err() {
            return false;
        }
        if self.exchange != Exchange::Idle || self.uncertain {
            // The caller's own deadline may be over: that is why it stops.
            let watch = std::mem::replace(&mut self.watch, Watch::never().at_most(STOPPING));
            let was_open = self.is_in_transaction();
            if self.exchange == Exchange::File {
                self.cut |= self.end_of_file().is_err();
            }
            self.interrupt();
            self.check_session(was_open);
            self.watch = watch;
        }
        self.is_usable()
    }

    /// A request that comes before the server has begun to execute is lost without a word, so it is repeated until
    /// the answer's end is there.
    fn interrupt(&mut self) {
        let canceller = self.canceller();
        let mut asked = false;
        for milliseconds in [10, 20, 50, 100, 200, 500, 1000] {
            if self.exchange == Exchange::Idle || self.cut {
                break;
            }
            if canceller.cancel().is_err() {
                break;
            }
            asked = true;
            self.watch = Watch::never().at_most(Duration::from_millis(milliseconds));
            self.drain();
        }
        // What could not be stopped now will not be stopped by another attempt.
        self.cut |= self.exchange != Exchange::Idle;
        if asked && !self.cut {
            self.watch = Watch::never().at_most(STOPPING);
            self.absorb();
        }
    }

    /// Reads on to the end of the answer, whatever it is.
    fn drain(&mut self) {
        if let Err(error) = self.finish() {
            self.cut |= error.sqlstate() == Some(VIOLATION);
        }
    }

    /// A request to stop may have come when nothing ran any more: it must not hit the next statement.
    fn absorb(&mut self) {
        for _ in 0..3 {
            match self.run("DO 0") {
                Ok(()) => return,
                Err(error) if message::code(&error) == Some(INTERRUPTED) => {}
                Err(_) => break,
            }
        }
        self.cut = true;
    }

    /// After an error: asks where the session stands, and whether a transaction is lost.
    fn check_session(&mut self, was_open: bool) {
        if self.uncertain && self.exchange == Exchange::Idle && !self.cut {
            self.watch = Watch::never().at_most(STOPPING);
            let told = self.send(command::PING, &[], Exchange::Answer).and_then(|()| self.finish());
            self.cut |= told.is_err();
        }
        self.lost |= was_open && !self.is_in_transaction() && !self.cut;
    }
}

/// How long delivering a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to the server, and the session's number there.
pub(crate) struct Canceller {
    pub(crate) settings: Arc<Settings>,
    pub(crate) thread: u32,
}

impl Canceller {
    /// Asks the server to stop; returns when the request has been delivered.
    pub(crate) fn cancel(&self) -> Result<()> {
        // The caller's own deadline may be over: that is why it cancels.
        let watch = Watch::never().at_most(PATIENCE);
        let mut connection = Connection::open_bare(&self.settings, &watch)?;
        // Answered once the session has been told: later, it could hit the session's next statement.
        connection.run(&format!("KILL QUERY {}", self.thread))
    }
}
