//! A Flight SQL server in front of any source: its sessions run the statements, and its batches go to the socket as they come.
//!
//! The served source is two [`Direct`]s: one whose sessions change rows, and one whose sessions only read.

mod actions;
mod auth;
mod body;
mod context;
mod cursor;
mod engine;
mod expiring;
mod handle;
mod ingest;
mod log;
mod metadata;
mod parts;
mod reading;
mod results;
mod room;
mod service;
mod shared;
mod spill;
mod status;
mod transport;
mod uploads;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_core::{Direct, Error, Process, Result, lock};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

pub use crate::auth::{hash, line_of};
pub use crate::reading::read_only;
use crate::shared::Shared;

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

/// The limits of each client.
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
    /// How long a new connection may say nothing.
    pub greeting: Duration,
    /// How long a client may say nothing at all: one that is there answers pings.
    pub silence: Duration,
    /// How many objects of a kind a user may hold.
    pub handles: usize,
    /// The bytes of a message from a client, and of the parameters that all prepared statements keep.
    pub message: usize,
    /// The bytes that the parts of all results may take in memory.
    pub part_memory: usize,
    /// The bytes that the parts of one result may take on the disk.
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
        let message = limits.message;
        let shared = Arc::new(Shared::new(writers, readers, users, limits, logs));
        let listener = runtime.block_on(transport::listener(place))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::operational(format!("the server has no address: {error}")))?;
        let (stop, stopping) = watch::channel(false);
        let (ended, stopped) = std::sync::mpsc::channel();
        let router = transport::router(place, message, &shared, &runtime)?;
        runtime.spawn(shared::sweep(shared.clone(), stopping.clone()));
        let (log, served) = (shared.log, shared.clone());
        runtime.spawn(async move {
            let served = transport::serve(router, listener, served, stopping).await;
            if let Err(error) = served {
                log.log_failure(&error.to_string());
            }
            let _ = ended.send(());
        });
        shared.log.log_start(address);
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

    /// How many calls run, and how many results, transactions, prepared statements and sessions clients hold.
    #[must_use]
    pub fn count_held(&self) -> usize {
        self.shared.count_held()
    }

    /// Takes no more connections, and waits for what runs; what does not end in time is cancelled.
    pub fn stop(&self) {
        let Some(runtime) = lock(&self.runtime).take() else { return };
        if !self.process.is_current() {
            // A forked child has none of its threads.
            std::mem::forget(runtime);
            return;
        }
        self.stop.send_replace(true);
        if lock(&self.stopped).recv_timeout(ENDING).is_err() {
            self.shared.cancel_all();
        }
        self.shared.close();
        runtime.shutdown_timeout(ENDING);
        self.shared.log.log_stop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use longshore_core::{Driver, Session, Target};
    use tonic::Code;
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    use super::*;

    struct Nothing;

    impl Driver for Nothing {
        fn schemes(&self) -> Vec<&str> {
            vec!["nothing"]
        }

        fn connect(
            &self,
            _target: &Target,
            _deadline: &longshore_core::Deadline,
        ) -> Result<Box<dyn Session>> {
            Err(Error::operational("there is nothing to connect to"))
        }
    }

    #[test]
    fn health_is_told_of_the_server_and_its_service() {
        let nothing = Direct::new(Arc::new(Nothing), Target::from_keywords("nothing", [].into()));
        let place = Place { host: "127.0.0.1".into(), port: 0, tls: None, users: None, insecure: false };
        let limits = Limits {
            connections: 4,
            sessions: 1,
            statement_time: None,
            rows: None,
            idle: Duration::from_secs(60),
            greeting: Duration::from_secs(10),
            silence: Duration::from_secs(60),
            handles: 100,
            message: 1 << 20,
            part_memory: 1 << 20,
            part_disk: 1 << 20,
        };
        let server = Server::start(nothing.clone(), nothing, &place, limits, false).unwrap();
        let url = tonic::transport::Endpoint::from_shared(format!("http://{}", server.address())).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = HealthClient::new(url.connect().await.unwrap());
            for service in ["", "arrow.flight.protocol.FlightService"] {
                let asked = HealthCheckRequest { service: service.into() };
                let told = client.check(asked).await.unwrap().into_inner();
                assert_eq!(told.status(), ServingStatus::Serving, "{service:?}");
            }
            let asked = HealthCheckRequest { service: "another".into() };
            assert_eq!(client.check(asked).await.unwrap_err().code(), Code::NotFound);
        });
        server.stop();
        runtime.block_on(async { assert!(url.connect().await.is_err()) });
    }
}
