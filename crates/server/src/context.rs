//! Who makes a call, and the session that it is made in.

use std::net::SocketAddr;

use longshore_core::{Deadline, Error, Result};
use longshore_flight_protocol::{CALL, PARTS};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::actions::{Options, parts_of};
use crate::auth::{Caller, Role};
use crate::expiring::Maker;
use crate::shared::Shared;

/// The cookie that names a session, as Flight's session actions have it.
pub(crate) const COOKIE: &str = "arrow_flight_session_id";

/// Who makes a call, and the session that it is made in.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) caller: Caller,
    pub(crate) session: Option<String>,
    pub(crate) options: Options,
    /// Whether that session is over, and what it had chosen forgotten.
    pub(crate) is_over: bool,
    pub(crate) peer: Option<SocketAddr>,
    /// The name of the call.
    pub(crate) call: Option<String>,
}

impl Context {
    /// The schema of names without one; an error in a session that is over, whose names would be others' by now.
    pub(crate) fn schema(&self) -> Result<Option<&str>> {
        if self.is_over {
            return Err(Error::operational("the session is over, and what it had chosen is forgotten")
                .with_sqlstate("08003")
                .with_hint("connect again, or set its options again"));
        }
        Ok(self.options.schema.as_deref())
    }

    /// The call, as the maker of what its client will hold.
    pub(crate) fn maker(&self, deadline: &Deadline) -> Maker {
        Maker { cancel: deadline.cancel_handle(), name: self.call.clone(), peer: self.peer }
    }
}

impl Shared {
    /// Who makes a call.
    pub(crate) fn context(
        &self,
        metadata: &MetadataMap,
        peer: Option<SocketAddr>,
    ) -> Result<Context, Status> {
        let caller = match &self.users {
            Some(users) => users.caller(metadata)?,
            None => Caller { user: String::new(), role: Role::Writer },
        };
        let session = cookie(metadata);
        let options =
            session.as_ref().and_then(|id| self.sessions.with_by(&caller.user, id, peer, Options::clone));
        let is_over = session.is_some() && options.is_none();
        let session = session.filter(|_| !is_over);
        let mut options = options.unwrap_or_default();
        if let Some(parts) = metadata.get(PARTS) {
            options.parts = Some(parts_of(parts.to_str().unwrap_or_default())?);
        }
        let call = metadata.get(CALL).and_then(|call| call.to_str().ok()).map(str::to_owned);
        Ok(Context { caller, session, options, is_over, peer, call })
    }
}

fn cookie(metadata: &MetadataMap) -> Option<String> {
    let cookies = metadata.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(name, _)| *name == COOKIE).map(|(_, id)| id.trim_matches('"').to_owned())
}
