//! The calls of Flight, over one connection.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::ProstMessageExt;
use arrow_flight::{
    Action, BasicAuth, CancelFlightInfoRequest, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use bytes::Bytes;
use futures::Stream;
use http::Uri;
use longshore_core::{Deadline, Error, Result, Secret};
use longshore_flight_protocol::{CALL, wait};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use crate::credentials::{Credentials, Login, basic};
use crate::error::{error_of, lost_connection, protocol_error};
use crate::link::{Address, Link, origin};
use crate::messages::{self, Messages};
use crate::settings::Settings;

/// The server is told a little more time than the caller has, so that it is the caller's own deadline that ends a call.
const GRACE: Duration = Duration::from_secs(1);

/// How long a server may take to give up a result.
const CANCELLING: Duration = Duration::from_millis(500);

/// The most answers of one action.
const MOST_ANSWERS: usize = 1 << 16;

type Calls = FlightServiceClient<Link>;

/// The state that all connections of a session share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) credentials: Credentials,
    /// Whether the server knows the action that cancels, as far as is known.
    pub(crate) cancels: AtomicBool,
}

/// One server, and how it is called.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
    pub(crate) address: Address,
    origin: Uri,
}

impl Client {
    /// Connects to `address`, and proves nothing yet.
    pub(crate) fn open(shared: Arc<Shared>, address: Address, deadline: &Deadline) -> Result<Self> {
        let authority = shared.settings.authority.clone().unwrap_or_else(|| address.authority());
        let origin = origin(address.tls.is_some(), &authority)?;
        let link = match shared.settings.connect_timeout {
            Some(timeout) => Link::open(&address, &deadline.at_most(timeout)),
            None => Link::open(&address, deadline),
        }?;
        Ok(Self { shared, link, address, origin })
    }

    fn calls(&self) -> Calls {
        let settings = &self.shared.settings;
        let calls = FlightServiceClient::with_origin(self.link.clone(), self.origin.clone())
            .max_decoding_message_size(settings.max_message_size)
            .accept_compressed(CompressionEncoding::Zstd)
            .accept_compressed(CompressionEncoding::Gzip);
        match settings.compression {
            Some(encoding) => calls.send_compressed(encoding),
            None => calls,
        }
    }

    fn request<T>(&self, message: T, deadline: Option<&Deadline>) -> Request<T> {
        let mut request = Request::new(message);
        self.shared.credentials.apply(request.metadata_mut());
        if let Some(left) = deadline.and_then(Deadline::remaining) {
            request.set_timeout(left + GRACE);
        }
        request
    }

    /// Limits a call by the settings, too.
    fn limit(&self, deadline: &Deadline) -> Deadline {
        self.shared.settings.call_timeout.map_or_else(|| deadline.clone(), |limit| deadline.at_most(limit))
    }

    /// The error of a failed call.
    pub(crate) fn failure(&self, status: &Status) -> Error {
        if std::error::Error::source(status).is_some() || !self.link.is_open() {
            return lost_connection(status, &self.address.show());
        }
        error_of(status)
    }

    /// Makes a call; once more where the server takes the token no longer and gives another. `deadline` is told the server
    /// unless the answer is a stream, each wait for which has its own.
    fn call<M: Clone, R, F>(
        &self,
        deadline: &Deadline,
        message: &M,
        is_stream: bool,
        call: impl Fn(Calls, Request<M>) -> F,
    ) -> Result<R>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.try_call(deadline, message, is_stream, call)?.map_err(|status| self.failure(&status))
    }

    /// The same, whose outer error is the caller's.
    fn try_call<M: Clone, R, F>(
        &self,
        deadline: &Deadline,
        message: &M,
        is_stream: bool,
        call: impl Fn(Calls, Request<M>) -> F,
    ) -> Result<Result<R, Status>>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.link.check("connection")?;
        let deadline = &self.limit(deadline);
        let told = (!is_stream).then_some(deadline);
        let name = (!is_stream).then(|| (CALL, call_name()));
        let once = || {
            let mut request = self.request(message.clone(), told);
            add(&mut request, name.as_slice());
            wait(deadline, call(self.calls(), request)).inspect_err(|_| {
                // The answer may be on its way.
                if let Some((_, name)) = &name {
                    self.cancel_call(name);
                }
            })
        };
        let mut answered = once()?;
        if matches!(&answered, Err(status) if status.code() == Code::Unauthenticated)
            && self.log_in_again(deadline)?
        {
            answered = once()?;
        }
        Ok(answered.map(|response| {
            self.shared.credentials.learn(response.metadata());
            response.into_inner()
        }))
    }

    /// Proves who calls, as the settings say.
    pub(crate) fn log_in(&self, deadline: &Deadline) -> Result<()> {
        let credentials = &self.shared.credentials;
        match &credentials.login {
            Login::None => Ok(()),
            Login::Token(token) => {
                credentials.use_token(&token.password()?);
                Ok(())
            }
            Login::Basic { user, password } => {
                let password = password.password()?;
                self.shake_hands(user, &password, deadline)
            }
        }
    }

    fn log_in_again(&self, deadline: &Deadline) -> Result<bool> {
        if matches!(self.shared.credentials.login, Login::None) {
            return Ok(false);
        }
        self.shared.credentials.forget();
        self.log_in(deadline)?;
        Ok(true)
    }

    /// Has the server give a token for a name and a password; one that gives none is told both with each call.
    fn shake_hands(&self, user: &str, password: &Secret, deadline: &Deadline) -> Result<()> {
        let credentials = &self.shared.credentials;
        let header = basic(user, password)?;
        let payload = BasicAuth { username: user.to_owned(), password: password.reveal().to_owned() };
        let hello = HandshakeRequest { protocol_version: 0, payload: payload.encode_to_vec().into() };
        let deadline = &self.limit(deadline);
        let mut request = self.request(futures::stream::iter([hello]), Some(deadline));
        request.metadata_mut().insert("authorization", header.clone());
        let mut calls = self.calls();
        let shaken = wait(deadline, async move {
            let response = calls.handshake(request).await?;
            let (head, mut answers, _) = response.into_parts();
            let mut token = Bytes::new();
            while let Some(answer) = answers.message().await? {
                token = answer.payload;
            }
            let tail = answers.trailers().await?.unwrap_or_default();
            Ok::<(MetadataMap, Bytes, MetadataMap), Status>((head, token, tail))
        })?;
        match shaken {
            Ok((head, token, tail)) => {
                credentials.learn(&head);
                credentials.learn(&tail);
                if !credentials.has_token() {
                    match String::from_utf8(token.to_vec()) {
                        Ok(token) if !token.is_empty() => credentials.use_token(&Secret::new(token)),
                        _ => credentials.use_basic(header),
                    }
                }
                Ok(())
            }
            Err(status) if status.code() == Code::Unimplemented => {
                credentials.use_basic(header);
                Ok(())
            }
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// How a statement's result is read.
    pub(crate) fn flight_info(
        &self,
        command: &impl ProstMessageExt,
        headers: &[(&'static str, String)],
        deadline: &Deadline,
    ) -> Result<FlightInfo> {
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        if self.shared.settings.polls {
            return self.poll(descriptor, headers, deadline);
        }
        self.call(deadline, &descriptor, false, |mut calls, mut request| {
            add(&mut request, headers);
            async move { calls.get_flight_info(request).await }
        })
    }

    /// The same, asked for again and again until the statement has run.
    fn poll(
        &self,
        mut descriptor: FlightDescriptor,
        headers: &[(&'static str, String)],
        deadline: &Deadline,
    ) -> Result<FlightInfo> {
        let mut known: Option<FlightInfo> = None;
        loop {
            let PollInfo { info, flight_descriptor, .. } =
                self.call(deadline, &descriptor, false, |mut calls, mut request| {
                    add(&mut request, headers);
                    async move { calls.poll_flight_info(request).await }
                })?;
            known = info.or(known);
            match flight_descriptor {
                Some(next) => descriptor = next,
                None => {
                    return known
                        .ok_or_else(|| protocol_error("a statement has run, and its result is nowhere"));
                }
            }
        }
    }

    /// The schema of a statement's result; `None` where the server does not tell it.
    pub(crate) fn schema(
        &self,
        command: &impl ProstMessageExt,
        deadline: &Deadline,
    ) -> Result<Option<Bytes>> {
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let told = self.try_call(deadline, &descriptor, false, |mut calls, request| async move {
            calls.get_schema(request).await
        })?;
        match told {
            Ok(SchemaResult { schema }) => Ok(Some(schema)),
            Err(status) if status.code() == Code::Unimplemented => Ok(None),
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// The messages behind a ticket; the inner error is the server's.
    pub(crate) fn get(&self, ticket: &Ticket, deadline: &Deadline) -> Result<Result<Messages, Status>> {
        let most = self.shared.settings.max_message_size;
        self.try_call(deadline, ticket, true, |_, request| {
            messages::get(self.link.clone(), self.origin.clone(), request, most)
        })
    }

    /// The server's answers to an action.
    pub(crate) fn act(&self, action: &Action, deadline: &Deadline) -> Result<Vec<Bytes>> {
        self.try_act(action, deadline)?.map_err(|status| self.failure(&status))
    }

    /// The same; the inner error is the server's.
    pub(crate) fn try_act(&self, action: &Action, deadline: &Deadline) -> Result<Result<Vec<Bytes>, Status>> {
        self.try_call(deadline, action, false, |mut calls, request| async move {
            let (head, mut results, extensions) = calls.do_action(request).await?.into_parts();
            let mut bodies = Vec::new();
            while let Some(result) = results.message().await? {
                if bodies.len() == MOST_ANSWERS {
                    return Err(Status::internal("an action has too many answers"));
                }
                bodies.push(result.body);
            }
            Ok(Response::from_parts(head, bodies, extensions))
        })
    }

    /// Has the server give up a result, where it can: one that cannot has seen its streams end.
    pub(crate) fn cancel(&self, request: &CancelFlightInfoRequest) {
        if !self.shared.cancels.load(Ordering::Relaxed) {
            return;
        }
        let action = Action::new("CancelFlightInfo", request.encode_to_vec());
        // The caller's own deadline may be why.
        let told = self.try_act(&action, &Deadline::never().at_most(CANCELLING));
        if matches!(told, Ok(Err(status)) if matches!(status.code(), Code::Unimplemented | Code::InvalidArgument))
        {
            self.shared.cancels.store(false, Ordering::Relaxed);
        }
    }

    /// Has Longshore's own server give up what a call has made that was left before its answer came.
    fn cancel_call(&self, call: &str) {
        let action = Action::new("CancelFlightInfo", CancelFlightInfoRequest::default().encode_to_vec());
        let mut calls = self.calls();
        let mut request = self.request(action, None);
        add(&mut request, &[(CALL, call.to_owned())]);
        // Others know of no such call.
        let _ = wait(&Deadline::never().at_most(CANCELLING), calls.do_action(request));
    }

    /// Does an action that no one waits for.
    pub(crate) fn act_unwatched(&self, action: Action) {
        let mut calls = self.calls();
        let request = self.request(action, None);
        self.link.spawn(async move {
            if let Ok(answer) = calls.do_action(request).await {
                let mut results = answer.into_inner();
                while let Ok(Some(_)) = results.message().await {}
            }
        });
    }

    /// Sends messages, and gives what the server says of them when it has taken all: not on the caller's thread, which goes on
    /// making them.
    pub(crate) fn put(
        &self,
        messages: impl Stream<Item = FlightData> + Send + 'static,
    ) -> impl Future<Output = Result<Vec<PutResult>>> + Send + 'static {
        let mut calls = self.calls();
        let request = self.request(messages, None);
        let client = self.clone();
        async move {
            let taken = async {
                let (head, mut answers, _) = calls.do_put(request).await?.into_parts();
                client.shared.credentials.learn(&head);
                let mut results = Vec::new();
                while let Some(result) = answers.message().await? {
                    // Some servers acknowledge each message.
                    if results.len() == MOST_ANSWERS {
                        results.clear();
                    }
                    results.push(result);
                }
                Ok::<_, Status>(results)
            };
            taken.await.map_err(|status| client.failure(&status))
        }
    }
}

/// A name that no other call has.
fn call_name() -> String {
    let number = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", number(), number())
}

fn add<T>(request: &mut Request<T>, headers: &[(&'static str, String)]) {
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            request.metadata_mut().insert(*name, value);
        }
    }
}
