//! Stops what a session runs, over a connection of its own: `KILL QUERY`.

use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Result, Watch};

use crate::connection::Connection;
use crate::settings::Settings;

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
