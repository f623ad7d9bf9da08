//! A Flight SQL server in front of any source: its sessions run the statements, and its batches go to the socket as they come.
//!
//! What is served is two [`Direct`]s: one whose sessions change rows, and one whose sessions only read.

mod actions;
mod auth;
mod cursor;
mod engine;
mod expiring;
mod log;
mod metadata;
mod parts;
mod reading;
mod results;
mod service;
mod status;
mod transport;
mod uploads;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_core::{Direct, Error, Process, Result, locked};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

pub use crate::auth::{hashed, line_of};
pub use crate::reading::read_only;
use crate::service::Shared;

/// How long what runs may go on once the server is to end.
const ENDING: Duration = Duration::from_secs(5);

/// Where a server listens, and for whom.
pub struct Place {
    /// The address.
    pub host: String,
    /// The port; zero is any that is free.
    pub port: u16,
    /// The files of the server's certificate and its key, and of the authority of its clients' ones.
    pub tls: Option<Tls>,
    /// The file of the users; without one everybody may write.
    pub users: Option<std::path::PathBuf>,
    /// Whether others than this machine may connect without TLS and users.
    pub insecure: bool,
}

/// PEM files.
pub struct Tls {
    /// The certificate.
    pub certificate: std::path::PathBuf,
    /// Its key.
    pub key: std::path::PathBuf,
    /// The authority that a client's certificate has to be of.
    pub client_authority: Option<std::path::PathBuf>,
}

/// What no client has more of.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections of clients.
    pub connections: usize,
    /// Sessions of what is served.
    pub sessions: usize,
    /// How long a statement may take, its rows included.
    pub statement_time: Option<Duration>,
    /// How many rows a result may have.
    pub rows: Option<u64>,
    /// How long a result, a transaction or a session waits for its client.
    pub idle: Duration,
    /// The bytes of a message from a client.
    pub message: usize,
    /// The bytes that the parts of one result may take in memory, and on the disk.
    pub part_memory: usize,
    /// See `part_memory`.
    pub part_disk: u64,
}

/// A server that runs, on threads of its own.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    stopped: Mutex<std::sync::mpsc::Receiver<()>>,
    shared: Arc<Shared>,
    runtime: Mutex<Option<Runtime>>,
    process: Process,
}

impl Server {
    /// Starts to serve.
    pub fn start(
        writers: Arc<Direct>,
        readers: Arc<Direct>,
        place: &Place,
        limits: Limits,
        logs: bool,
    ) -> Result<Self> {
        let users = place.users.as_deref().map(auth::Users::read).transpose()?;
        transport::check(place)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(limits.connections.saturating_mul(4).max(64))
            .thread_name("longshore-server")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| {
                Error::operational(format!("the server's threads cannot be started: {error}"))
            })?;
        let connections = limits.connections;
        let message = limits.message;
        let shared = Arc::new(Shared::new(writers, readers, users, limits, logs));
        let listener = runtime.block_on(transport::listener(place))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::operational(format!("the server has no address: {error}")))?;
        let (stop, stopping) = watch::channel(false);
        let (ended, stopped) = std::sync::mpsc::channel();
        let router = transport::router(place, message, &shared, &runtime)?;
        runtime.spawn(service::sweep(shared.clone(), stopping.clone()));
        let log = shared.log;
        runtime.spawn(async move {
            let served = transport::serve(router, listener, connections, stopping).await;
            if let Err(error) = served {
                log.failed(&error.to_string());
            }
            let _ = ended.send(());
        });
        shared.log.started(address);
        Ok(Self {
            address,
            stop,
            stopped: Mutex::new(stopped),
            shared,
            runtime: Mutex::new(Some(runtime)),
            process: Process::current(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections, and how many results, transactions, prepared statements and sessions it has.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.held()
    }

    /// Takes no more connections, and waits for what runs; what does not end in time is cancelled.
    pub fn stop(&self) {
        let Some(runtime) = locked(&self.runtime).take() else { return };
        if !self.process.is_current() {
            // A forked child has none of its threads.
            std::mem::forget(runtime);
            return;
        }
        self.stop.send_replace(true);
        if locked(&self.stopped).recv_timeout(ENDING).is_err() {
            self.shared.cancel_all();
        }
        self.shared.close();
        runtime.shutdown_timeout(ENDING);
        self.shared.log.stopped();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
