//! One HTTP/2 connection, which a thread of its own drives: whoever waits for an answer looks at a deadline meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::Builder;
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_core::memory::{release_reserve, spawn};
use longshore_core::{Deadline, Error, Process, Result};
use longshore_flight_protocol::wait;
use longshore_wire::Tls;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tower_service::Service;

/// The bytes that a server may send ahead on one stream, and on all of a connection: the streams that no one reads now
/// must leave the others room.
const STREAM_AHEAD: u32 = 4 << 20;
const CONNECTION_AHEAD: u32 = 64 << 20;

/// The largest frame that a server may send: fewer are fewer steps, but each has memory of its own, and from 128 KiB on
/// the allocator asks the system for it.
const FRAME: u32 = 64 << 10;

/// The bytes that are taken from the socket at once where they are encrypted: rustls asks for a record of 16 KiB at a time.
const RECORDS: usize = 128 << 10;

/// The silence after which the system asks whether the peer lives. Pings of HTTP/2 would do so, too, but common servers
/// close a connection that sends them more often than every five minutes.
const SILENCE: Duration = Duration::from_secs(60);
/// How often it asks then, and how many times until the connection is lost.
const PROBE: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Where a server listens, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `None` without encryption.
    pub(crate) tls: Option<Tls>,
    /// The name that the server's certificate has to have, where that is not the host's.
    pub(crate) tls_host: Option<String>,
}

impl Address {
    /// As errors show it.
    pub(crate) fn show(&self) -> String {
        let scheme = if self.tls.is_some() { "grpc+tls" } else { "grpc" };
        format!("{scheme}://{}", self.authority())
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }
}

/// A connection. Its thread ends with the last clone.
#[derive(Clone)]
pub(crate) struct Link {
    sender: SendRequest<tonic::body::Body>,
    driver: Arc<Driver>,
}

/// The thread that drives a connection.
struct Driver {
    handle: Handle,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    process: Process,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The thread is the parent's.
            std::mem::forget(self.stop.take());
            std::mem::forget(self.handle.clone());
        }
    }
}

impl Link {
    /// Connects to `address`.
    pub(crate) fn open(address: &Address, deadline: &Deadline) -> Result<Self> {
        deadline.check()?;
        let driver = Arc::new(Driver::start()?);
        let connecting = connect(address.clone());
        let (sender, receiver) = oneshot::channel();
        driver.handle.spawn(async move {
            // Who waited for it may have given up.
            let _ = sender.send(connecting.await);
        });
        let sender =
            wait(deadline, receiver)?.map_err(|_| Error::internal("the connection's thread ended"))??;
        Ok(Self { sender, driver })
    }

    /// Whether calls can still be made.
    pub(crate) fn is_open(&self) -> bool {
        self.driver.process.is_current() && !self.sender.is_closed()
    }

    /// Fails in a forked child, whose connection is its parent's.
    pub(crate) fn check(&self, what: &str) -> Result<()> {
        self.driver.process.check(what)
    }

    /// Does work on the connection's own thread.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.driver.handle.spawn(work);
    }
}

impl Driver {
    fn start() -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| {
            Error::operational(format!("cannot wait for a network: {error}")).with_source(error)
        })?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let drive = move || {
            release_reserve();
            // Its sender is dropped when it is to end.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        spawn(Builder::new().name("longshore-flight".into()), drive)?;
        Ok(Self { handle, stop: Some(stop), process: Process::current() })
    }
}

async fn connect(address: Address) -> Result<SendRequest<tonic::body::Body>> {
    let shown = address.show();
    let unreachable = |error: std::io::Error| {
        Error::operational(format!("cannot connect to {shown}: {error}"))
            .with_sqlstate("08001")
            .with_hint("look whether a server listens there, and whether the host and the port are right")
            .with_source(error)
    };
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    watch(&stream).map_err(unreachable)?;
    let Some(tls) = &address.tls else { return shake_hands(stream, &shown).await };
    let name = address.tls_host.as_ref().unwrap_or(&address.host).clone();
    let name = ServerName::try_from(name).map_err(|_| {
        Error::interface("the server's host is not a name that a certificate can have")
            .with_hint("give tls_host= the name that is in the certificate")
    })?;
    let connector = TlsConnector::from(Arc::new(tls.client()?));
    let stream = BufReader::with_capacity(RECORDS, stream);
    let stream = connector.connect(name, stream).await.map_err(|error| {
        Error::operational(format!("cannot encrypt the connection to {shown}: {error}"))
            .with_sqlstate("08001")
            .with_hint("tls_ca= names the file of an own authority; a server without TLS is grpc://, not grpc+tls://")
            .with_source(error)
    })?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(not_grpc(&shown, "it does not offer HTTP/2"));
    }
    shake_hands(stream, &shown).await
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shown: &str,
) -> Result<SendRequest<tonic::body::Body>> {
    let hands = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_AHEAD)
        .initial_connection_window_size(CONNECTION_AHEAD)
        .max_frame_size(FRAME)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, connection) = hands.map_err(|error| not_grpc(shown, &error.to_string()))?;
    tokio::spawn(async move {
        // Each call that it ends has the error, too.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Has the system find out that a peer is gone: one that has nothing to say, and one that does not take what it is sent.
fn watch(stream: &TcpStream) -> std::io::Result<()> {
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(SILENCE);
    #[cfg(not(windows))]
    let probes = probes.with_interval(PROBE).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(SILENCE + PROBE * PROBES))?;
    Ok(())
}

fn not_grpc(shown: &str, what: &str) -> Error {
    Error::operational(format!("{shown} does not speak gRPC: {what}")).with_sqlstate("08001").with_hint(
        "look whether the port is that of Flight SQL; a server with TLS is grpc+tls://, not grpc://",
    )
}

impl Service<Request<tonic::body::Body>> for Link {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.sender.send_request(request))
    }
}

/// The origin of requests, whose authority is the server's name.
pub(crate) fn origin(is_encrypted: bool, authority: &str) -> Result<Uri> {
    let scheme = if is_encrypted { "https" } else { "http" };
    Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build().map_err(|_| {
        Error::interface("the server's host and port are not those of a URL")
            .with_hint("write grpc://host:port, or give authority= as host:port")
    })
}
