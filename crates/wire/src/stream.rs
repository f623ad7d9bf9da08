//! The operating system's streams: TCP and Unix sockets, made in a helper thread so that waiting for them can
//! be interrupted.

use std::io::{self, Read, Write};
#[cfg(unix)]
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use longshore_core::memory::spawn;
use longshore_core::{Deadline, Error, Result};
use socket2::{SockRef, Socket, TcpKeepalive};

use crate::low_water;

/// The longest that a read or write blocks before it looks at the deadline.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// The bytes sent ahead to a server on the same machine: more leaves the processor's cache before the server reads it
/// (docs/design/wake-ups.md). Another machine gets as much as the network's delay asks for.
const AHEAD: usize = 256 << 10;

/// How the operating system finds out that the peer is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether probes are sent at all.
    pub enabled: bool,
    /// The silence before the first probe; `None` as the system has it.
    pub idle: Option<Duration>,
    /// The time between probes; `None` as the system has it.
    pub interval: Option<Duration>,
    /// The unanswered probes that end the connection; `None` as the system has it.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged; `None` as the system has it. Linux only.
    pub user_timeout: Option<Duration>,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { enabled: true, idle: None, interval: None, count: None, user_timeout: None }
    }
}

impl Keepalive {
    fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        let socket = SockRef::from(stream);
        if self.enabled {
            socket.set_keepalive(true)?;
            self.tune(&socket)?;
        }
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(self.user_timeout)?;
        Ok(())
    }

    fn tune(&self, socket: &SockRef<'_>) -> io::Result<()> {
        if (self.idle, self.interval, self.count) == (None, None, None) {
            return Ok(());
        }
        let mut probes = TcpKeepalive::new();
        if let Some(idle) = self.idle {
            probes = probes.with_time(idle);
        }
        if let Some(interval) = self.interval {
            probes = probes.with_interval(interval);
        }
        if let Some(count) = self.count {
            probes = probes.with_retries(count);
        }
        socket.set_tcp_keepalive(&probes)
    }
}

/// Where a stream leads to, after names have been resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// A connected stream whose reads and writes return `WouldBlock` after [`SLICE`].
#[derive(Debug)]
pub(crate) struct Stream(Socket);

impl Stream {
    /// Resolves `host` and connects to the first of its addresses that answers.
    pub(crate) fn tcp(
        host: &str,
        port: u16,
        keepalive: &Keepalive,
        deadline: &Deadline,
    ) -> Result<(Self, Address)> {
        let peer = peer_name(host, port);
        let name = host.to_owned();
        let resolve = move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
        Self::reach(&peer, resolve, keepalive, deadline)
    }

    /// Connects to the first address of what `resolve` gives that answers.
    fn reach<F>(peer: &str, resolve: F, keepalive: &Keepalive, deadline: &Deadline) -> Result<(Self, Address)>
    where
        F: FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    {
        let limit = deadline.remaining();
        let connect = move || connect_first(&resolve().map_err(Failure::Resolve)?, limit);
        let (stream, address) = on_thread(peer, deadline, connect)?;
        let prepared = stream.set_nodelay(true).and_then(|()| keepalive.apply(&stream));
        let prepared = prepared.and_then(|()| bound_ahead(&stream, address));
        prepared.map_err(|error| setting_error(peer, error))?;
        Ok((Self::new(peer, stream)?, Address::Tcp(address)))
    }

    fn new(peer: &str, stream: impl Into<Socket>) -> Result<Self> {
        let socket = stream.into();
        let bounded =
            socket.set_read_timeout(Some(SLICE)).and_then(|()| socket.set_write_timeout(Some(SLICE)));
        bounded.map_err(|error| setting_error(peer, error))?;
        Ok(Self(socket))
    }

    /// Connects to the address that an earlier stream has reached.
    pub(crate) fn to(
        address: &Address,
        keepalive: &Keepalive,
        deadline: &Deadline,
    ) -> Result<(Self, Address)> {
        match address {
            Address::Tcp(address) => {
                let address = *address;
                Self::reach(&address.to_string(), move || Ok(vec![address]), keepalive, deadline)
            }
            #[cfg(unix)]
            Address::Unix(path) => Self::unix(path, deadline),
        }
    }

    /// Connects to the Unix socket at `path`.
    #[cfg(unix)]
    pub(crate) fn unix(path: &std::path::Path, deadline: &Deadline) -> Result<(Self, Address)> {
        let (peer, path) = (path.display().to_string(), path.to_owned());
        let target = path.clone();
        let work = move || UnixStream::connect(target).map_err(Failure::Connect);
        Ok((Self::new(&peer, on_thread(&peer, deadline, work)?)?, Address::Unix(path)))
    }

    /// Whether a read would not wait.
    #[cfg(unix)]
    pub(crate) fn is_readable(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        self.0.recv_with_flags(&mut byte, flags).is_ok()
    }

    #[cfg(not(unix))]
    pub(crate) fn is_readable(&self) -> bool {
        false
    }

    /// Has reads wait until `bytes` are there, but no longer than `slice`.
    pub(crate) fn set_low_water(&self, bytes: usize, slice: Duration) {
        // A refusal costs speed, nothing else.
        let _ = self.0.set_read_timeout(Some(slice));
        low_water::set(self, bytes);
    }
}

#[cfg(unix)]
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // No signal where the server has gone, whatever the process does with SIGPIPE.
        #[cfg(target_os = "linux")]
        return self.0.send_with_flags(bytes, libc::MSG_NOSIGNAL);
        #[cfg(not(target_os = "linux"))]
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether `error` only means that a slice of waiting is over.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => true,
        // On Unix this is a connection whose probes went unanswered; on Windows it is the end of the slice.
        io::ErrorKind::TimedOut => cfg!(windows),
        _ => false,
    }
}

/// `host:port`, with the brackets that an IPv6 address needs.
#[must_use]
pub fn peer_name(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Why no stream came to be.
enum Failure {
    Resolve(io::Error),
    Connect(io::Error),
}

/// Runs `work` in a thread of its own and waits for it, looking at `deadline` meanwhile. Given up, the thread
/// ends by itself when the system call that it is in returns.
fn on_thread<T, W>(peer: &str, deadline: &Deadline, work: W) -> Result<T>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, Failure> + Send + 'static,
{
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || drop(sender.send(work()));
    // Room for the system\'s resolver, and little enough for the cancel request of a process that has no memory.
    let thread = thread::Builder::new().name("longshore-connect".into()).stack_size(512 << 10);
    spawn(thread, run)?;
    loop {
        match receiver.recv_timeout(deadline.slice()) {
            Ok(outcome) => return outcome.map_err(|failure| connect_error(peer, failure)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                deadline.check().map_err(|error| error.within(format!("connecting to {peer}")))?;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::internal(format!("connecting to {peer} ended without an outcome")));
            }
        }
    }
}

fn bound_ahead(stream: &TcpStream, peer: SocketAddr) -> io::Result<()> {
    if !peer.ip().is_loopback() {
        return Ok(());
    }
    SockRef::from(stream).set_send_buffer_size(AHEAD)
}

fn connect_first(
    addresses: &[SocketAddr],
    limit: Option<Duration>,
) -> Result<(TcpStream, SocketAddr), Failure> {
    let started = std::time::Instant::now();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (index, address) in addresses.iter().enumerate() {
        let connected = match limit {
            None => TcpStream::connect(address),
            Some(limit) => {
                // Each address gets its share of the time left, so that a silent one does not use up all of it.
                let waiting = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
                let share = limit.saturating_sub(started.elapsed()) / waiting;
                TcpStream::connect_timeout(address, share.max(Duration::from_millis(1)))
            }
        };
        match connected {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => last = error,
        }
    }
    Err(Failure::Connect(last))
}

fn connect_error(peer: &str, failure: Failure) -> Error {
    use io::ErrorKind as Io;
    match failure {
        Failure::Resolve(error) => Error::operational(format!("cannot find the host of {peer}: {error}"))
            .with_hint("check the host's spelling, and that this machine can resolve it")
            .with_source(error),
        Failure::Connect(error) => {
            let hint = match error.kind() {
                Io::ConnectionRefused | Io::NotFound => {
                    "check that the server is running and that it listens at this very address"
                }
                Io::PermissionDenied => "check the permissions of the socket and of its directory",
                Io::TimedOut => "check the address, and that no firewall drops connections to it",
                _ => "check the address and the network between here and there",
            };
            Error::operational(format!("cannot connect to {peer}: {error}"))
                .with_hint(hint)
                .with_source(error)
        }
    }
}

fn setting_error(peer: &str, error: io::Error) -> Error {
    Error::operational(format!("cannot set up the connection to {peer}: {error}"))
        .with_hint("check the keepalive settings, and the limits on this process's threads and open files")
        .with_source(error)
}
