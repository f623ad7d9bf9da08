//! A connection that another client has opened, from when its socket is state until it is given back.

use std::time::Duration;

use longshore_core::{Deadline, Error, Result};
use longshore_wire::Inbox;

use super::{Connection, cleanup, command};
use crate::channel::Channel;
use crate::client::{ClientSocket, Greeted};
use crate::decode::Format;
use crate::message::{Done, capability, status};
use crate::startup::{Greeting, Link};
use crate::temporal::Zone;

const SETTINGS: &str = "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
                        @@time_zone, @@system_time_zone, DATABASE()";

/// The state of a client's session while we have its socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientState {
    /// Whether statements are parts of its owner's transaction, which may begin with the first of them.
    pub(super) is_owners: bool,
    /// Whether each statement was no transaction of its own before.
    was_chained: bool,
    /// Whether a text may be several statements.
    takes_several: bool,
    /// How statements go and rows come: as texts, nothing can be prepared.
    format: Format,
}

impl Connection {
    /// A client's connection, which waits for the next command.
    pub(crate) fn adopt(socket: ClientSocket, greeted: Greeted, deadline: &Deadline) -> Result<Self> {
        let link = Link {
            channel: Channel::Client(socket),
            inbox: Inbox::new(),
            capabilities: greeted.capabilities,
            greeting: Greeting { thread: greeted.thread, ..Greeting::default() },
            done: Done { status: greeted.status, ..Done::default() },
        };
        let mut connection = Self::over(link, None, deadline)?;
        let mut state = ClientState {
            is_owners: !greeted.is_for_us,
            was_chained: greeted.is_for_us && greeted.status & status::COMMITS_EACH == 0,
            takes_several: false,
            format: if greeted.has_texts_alone { Format::Text } else { Format::Binary },
        };
        connection.client = Some(state);
        connection.note_settings()?;
        if state.was_chained {
            connection.run("SET autocommit = 1")?;
        }
        if greeted.capabilities & capability::MULTI_STATEMENTS != 0 {
            state.takes_several = true;
            connection.client = Some(state);
            connection.take_several(false)?;
        }
        Ok(connection)
    }

    /// Learns what the session has been told, of which a client tells nothing.
    fn note_settings(&mut self) -> Result<()> {
        let row = self.rows(SETTINGS)?.into_iter().next().unwrap_or_default();
        let mut cells = row.into_iter();
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            let value = cells.next().flatten().unwrap_or_default();
            if value != "utf8mb4" {
                return Err(Error::interface(format!("the session's {name} is {value:?}")).with_hint(
                    "connect with charset=utf8mb4, in which texts are read and written, or run SET NAMES utf8mb4",
                ));
            }
        }
        let (zone, system) = (cells.next().flatten(), cells.next().flatten());
        let zone = if zone.as_deref() == Some("SYSTEM") { system } else { zone };
        self.zone = Zone::of_server(zone.as_deref().unwrap_or_default());
        self.database = cells.next().flatten();
        Ok(())
    }

    /// Whether the socket is a client's, which has one connection.
    pub(crate) fn is_clients(&self) -> bool {
        self.client.is_some()
    }

    /// Whether nothing can be prepared, and rows come as texts.
    pub(crate) fn has_texts_alone(&self) -> bool {
        self.client.is_some_and(|state| state.format == Format::Text)
    }

    /// Gives a client its socket back, on which the server waits for the next command; otherwise nothing can follow on it.
    pub(super) fn give_back(&mut self, state: ClientState) {
        self.deadline = cleanup();
        let is_usable = self.stop() && self.undo_settings(state).is_ok();
        let status = is_usable.then_some(self.status);
        if let Channel::Client(socket) = &mut self.link.channel {
            socket.client.release(status);
        }
    }

    fn undo_settings(&mut self, state: ClientState) -> Result<()> {
        if state.takes_several {
            self.take_several(true)?;
        }
        if state.was_chained {
            self.run("SET autocommit = 0")?;
        }
        let closed: Vec<_> = self.closing.drain(..).map(command::close).collect();
        if closed.is_empty() {
            return Ok(());
        }
        // The server has no answer to that.
        self.link.channel.send(&closed, &Deadline::never().at_most(Duration::from_secs(1)))
    }
}
