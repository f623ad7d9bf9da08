//! Whether a server is what `target_session_attrs` wants: primary or standby, for reading or for writing.

use std::collections::BTreeMap;

use longshore_core::{Result, Watch};
use longshore_wire::{Inbox, Socket};

use crate::message::{HEADER, Reader, broken, receive, server_error, unexpected};
use crate::settings::Role;

/// A session that is ready for a query.
pub(crate) struct Ready<'a> {
    pub(crate) socket: &'a mut Socket,
    pub(crate) inbox: &'a mut Inbox,
    pub(crate) parameters: &'a BTreeMap<String, String>,
    pub(crate) watch: &'a Watch,
}

impl Ready<'_> {
    /// What the server is instead of what `role` wants; `None` where it is right.
    pub(crate) fn mismatch(mut self, role: Role) -> Result<Option<&'static str>> {
        Ok(match role {
            Role::Any => None,
            Role::ReadWrite => self.is_read_only()?.then_some("is read-only"),
            Role::ReadOnly => (!self.is_read_only()?).then_some("is not read-only"),
            Role::Primary => self.is_standby()?.then_some("is a standby"),
            Role::Standby | Role::PreferStandby => (!self.is_standby()?).then_some("is not a standby"),
        })
    }

    /// Since version 14 the server reports both; before, and elsewhere, it has to be asked.
    fn is_read_only(&mut self) -> Result<bool> {
        match (self.reported("default_transaction_read_only"), self.reported("in_hot_standby")) {
            (Some(read_only), Some(standby)) => Ok(read_only || standby),
            _ => Ok(self.ask("SHOW transaction_read_only")? == "on"),
        }
    }

    fn is_standby(&mut self) -> Result<bool> {
        match self.reported("in_hot_standby") {
            Some(standby) => Ok(standby),
            None => Ok(self.ask("SELECT pg_catalog.pg_is_in_recovery()")? == "t"),
        }
    }

    fn reported(&self, parameter: &str) -> Option<bool> {
        self.parameters.get(parameter).map(|value| value == "on")
    }

    /// The first value of the only row that `statement` returns.
    fn ask(&mut self, statement: &str) -> Result<String> {
        let length = u32::try_from(4 + statement.len() + 1).map_err(|_| broken("an endless statement"))?;
        let query = [b"Q", &length.to_be_bytes()[..], statement.as_bytes(), b"\0"].concat();
        self.socket.write_all(&query, self.watch)?;
        let (mut answer, mut failure) = (None, None);
        loop {
            let frame = receive(self.inbox, self.socket, self.watch)?;
            let body = self.inbox.bytes().get(HEADER..frame.length).unwrap_or_default();
            match frame.tag {
                b'D' => answer = Some(first_value(body)?),
                b'E' => failure = Some(server_error(body)),
                b'T' | b'C' | b'N' | b'S' | b'A' | b'Z' => {}
                other => return Err(unexpected(other, "a question about the server's role")),
            }
            self.inbox.consume(frame.length);
            if frame.tag == b'Z' {
                break;
            }
        }
        match failure {
            Some(error) => Err(error),
            None => answer.ok_or_else(|| broken("no row in answer to a question that has one")),
        }
    }
}

/// The first cell of a `DataRow`.
fn first_value(body: &[u8]) -> Result<String> {
    let mut reader = Reader::new(body);
    reader.i16()?;
    let length = usize::try_from(reader.i32()?).map_err(|_| broken("NULL where there is none"))?;
    Ok(String::from_utf8_lossy(reader.bytes(length)?).into_owned())
}
