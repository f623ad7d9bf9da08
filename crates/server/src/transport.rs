//! Sockets: where the server listens, TLS, and how many connections there are.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use longshore_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::CompressionEncoding;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::{Connected, Router, TcpConnectInfo};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};

use crate::body::Direct;
use crate::service::Service;
use crate::shared::Shared;
use crate::{Limits, Place, Tls};

/// The bytes that HTTP/2 begins with; those of a TLS connection's begin have a time of their own.
const GREETING: usize = 24;
/// The bytes that are on their way to a client of one stream, and of all of one connection's.
const WINDOW: u32 = 4 << 20;

/// The most bytes of a question after the server's health, which a stranger may ask.
const QUESTION: usize = 1 << 10;

/// Fails for a place that strangers could reach without TLS and users.
pub(crate) fn check(place: &Place) -> Result<()> {
    let is_loopback =
        place.host == "localhost" || place.host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    if is_loopback || place.insecure || (place.tls.is_some() && place.users.is_some()) {
        return Ok(());
    }
    Err(Error::interface(format!(
        "others than this machine could connect to {} without TLS and a password",
        place.host
    ))
    .with_hint("give tls and users, listen on 127.0.0.1, or say that it may be insecure"))
}

/// Listens at a place.
pub(crate) async fn listener(place: &Place) -> Result<TcpListener> {
    let (host, port) = (place.host.as_str(), place.port);
    TcpListener::bind((host, port)).await.map_err(|error| {
        Error::operational(format!("the server cannot listen on {host}:{port}: {error}"))
            .with_hint("another server may have the port: give another one, or 0 for any that is free")
    })
}

fn pem(path: &std::path::Path, what: &str) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| Error::operational(format!("the {what} {} cannot be read: {error}", path.display())))
}

fn tls(files: &Tls, greeting: Duration) -> Result<ServerTlsConfig> {
    let identity = Identity::from_pem(pem(&files.certificate, "certificate")?, pem(&files.key, "key")?);
    let config = ServerTlsConfig::new().identity(identity).timeout(greeting);
    Ok(match &files.client_authority {
        Some(authority) => config.client_ca_root(Certificate::from_pem(pem(authority, "authority")?)),
        None => config,
    })
}

/// The router of the calls of clients.
pub(crate) fn router(
    place: &Place,
    message: usize,
    shared: &Arc<Shared>,
    runtime: &Runtime,
) -> Result<Router> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let health = health.max_decoding_message_size(QUESTION);
    runtime.block_on(reporter.set_serving::<FlightServiceServer<Service>>());
    let flight = FlightServiceServer::new(Service(shared.clone()))
        .max_decoding_message_size(message)
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    // A client that is there has answered a ping before it has been silent for too long.
    let silence = shared.limits.silence;
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(silence / 2))
        .http2_keepalive_timeout(Some(silence / 3))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if let Some(files) = &place.tls {
        server = server.tls_config(tls(files, shared.limits.greeting)?).map_err(|error| {
            Error::interface(format!("the certificate and its key cannot be used: {error}"))
                .with_hint("give PEM files, the server's certificate first in its chain, and its own key")
        })?;
    }
    Ok(server
        .add_service(health)
        .add_service(InterceptedService::new(Direct(flight), authenticate(shared.clone()))))
}

/// Finds out who calls before any of the message is read: a stranger's could be large.
fn authenticate(shared: Arc<Shared>) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |mut request| {
        let find = || shared.context(request.metadata(), request.remote_addr());
        // A password takes a while to be checked.
        let found = if shared.users.is_some() { tokio::task::block_in_place(find) } else { find() };
        let context = found.inspect_err(|_| shared.log.log_refusal(request.remote_addr()))?;
        request.extensions_mut().insert(context);
        Ok(request)
    }
}

/// Serves the connections of `listener`, at most so many at once, until it is to stop and the last call has ended.
pub(crate) async fn serve(
    router: Router,
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error> {
    let (sender, incoming) = mpsc::channel(1);
    let until = stopping.clone();
    tokio::spawn(accept(listener, shared, sender, until));
    let end = async move { wait_for_stop(&mut stopping).await };
    router.serve_with_incoming_shutdown(ReceiverStream::new(incoming), end).await
}

/// Waits until the server is to stop.
pub(crate) async fn wait_for_stop(stopping: &mut watch::Receiver<bool>) {
    // One whose owner is gone has stopped, too.
    drop(stopping.wait_for(|stop| *stop).await);
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    sender: mpsc::Sender<std::io::Result<Counted>>,
    mut stopping: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        // One that is too many waits in the system's queue.
        let next = async {
            let permit = room.clone().acquire_owned().await.map_err(std::io::Error::other)?;
            let (stream, peer) = listener.accept().await?;
            stream.set_nodelay(true)?;
            std::io::Result::Ok(Counted::new(stream, peer, shared.clone(), permit))
        };
        tokio::select! {
            () = wait_for_stop(&mut stopping) => return,
            accepted = next => {
                // A client that is gone before it was served is not an error of the server's.
                let Ok(connection) = accepted else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                if sender.send(Ok(connection)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A connection, which counts for as long as it lives; with it end the transactions that came by it.
pub(crate) struct Counted {
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
    /// The bytes of its greeting that have not come, when it was last heard of, and when to look again.
    greeting: usize,
    heard: Instant,
    looking: Pin<Box<Sleep>>,
}

impl Counted {
    fn new(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, permit: OwnedSemaphorePermit) -> Self {
        let looking = Box::pin(sleep(shared.limits.greeting));
        Self { stream, peer, shared, _permit: permit, greeting: GREETING, heard: Instant::now(), looking }
    }

    /// Ends where a client has been silent for too long: it has one of the few places.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while self.looking.as_mut().poll(cx).is_ready() {
            let Limits { greeting, silence, .. } = self.shared.limits;
            let until = self.heard + if self.greeting > 0 { greeting } else { silence };
            if until <= Instant::now() {
                return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
            }
            self.looking.as_mut().reset(until);
        }
        Poll::Pending
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let (shared, peer) = (self.shared.clone(), self.peer);
        // Without a runtime the server ends, and with it all that is held.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || shared.disconnect(peer));
        }
    }
}

impl Connected for Counted {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let (this, before) = (self.get_mut(), buf.filled().len());
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Ready(read) => {
                this.greeting = this.greeting.saturating_sub(buf.filled().len() - before);
                if this.greeting == 0 {
                    this.heard = Instant::now();
                }
                Poll::Ready(read)
            }
            Poll::Pending => this.poll_silence(cx),
        }
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
