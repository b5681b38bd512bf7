//! A server: how it is put together, how it begins and how it ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prowess_catalog::Catalog;
use prowess_runtime::Runtime;
use prowess_store::{KeyError, KeyStore, Listener, Notice, Notices, Registry, UsageStore};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Inner};
use crate::auth::{Doorman, Needed};
use crate::buckets::neighbour;
use crate::counter::Counter;
use crate::guard::Guard;
use crate::jwt::{InvalidJwtSettings, Tokens};
use crate::last_loads::LastLoads;
use crate::patient::Patient;
use crate::places::Places;
use crate::prepared::Shelf;
use crate::room::Bodies;
use crate::routes;
use crate::routes::transfer::Imports;
use crate::settings::ServerSettings;
use crate::wake::SessionEvents;

/// So often it is looked what other processes have changed.
const LOOK: Duration = Duration::from_secs(1);

/// Prowess over HTTP.
#[derive(Debug)]
pub struct Server {}

/// Puts a server together.
#[must_use]
pub struct ServerBuilder {
    runtime: Runtime,
    registry: Arc<Registry>,
    usage: Arc<dyn UsageStore>,
    keys: Arc<dyn KeyStore>,
    settings: ServerSettings,
    events: SessionEvents,
    imports: Option<Imports>,
    catalog: Option<Catalog>,
    notices: Notices,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Others could come, and nobody has a key.
    #[error(
        "{0} is reached from other machines, and there is no key: make one with `prowess keys create NAME --role admin`, accept tokens ([server.jwt]), or listen at 127.0.0.1"
    )]
    NoKeys(IpAddr),
    /// Somebody else listens there.
    #[error("{0} is in use: choose another --port, or 0 for any that is free")]
    InUse(SocketAddr),
    /// The address is not this machine's, or not allowed.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// Tokens cannot be accepted as they are set.
    #[error(transparent)]
    Jwt(#[from] InvalidJwtSettings),
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
}

impl ServerError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoKeys(_) => "keys_required",
            Self::InUse(_) => "address_in_use",
            Self::Listen { .. } => "cannot_listen",
            Self::Jwt(error) => error.code(),
            Self::Keys(error) => error.code(),
        }
    }
}

impl Server {
    /// Begins a server over an engine, a registry of versions, counters and keys.
    pub fn builder(
        runtime: Runtime,
        registry: Arc<Registry>,
        usage: Arc<dyn UsageStore>,
        keys: Arc<dyn KeyStore>,
    ) -> ServerBuilder {
        ServerBuilder {
            runtime,
            registry,
            usage,
            keys,
            settings: ServerSettings::default(),
            events: SessionEvents::default(),
            catalog: None,
            imports: None,
            notices: Notices::default(),
        }
    }
}

impl ServerBuilder {
    /// Other settings than the defaults.
    pub fn settings(mut self, settings: ServerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// What hears of the engine's events, so that streams are woken at once. Without it they look
    /// every second; with it every five seconds, for what other processes do.
    pub fn events(mut self, events: SessionEvents) -> Self {
        self.events = events;
        self
    }

    /// What tells of changes that other processes make: they are seen at once then. Without it, and
    /// while whoever carries notices is away, they are seen within a second.
    pub fn notices(mut self, notices: Notices) -> Self {
        self.notices = notices;
        self
    }

    /// The engine's catalog, if the registry is one of its sources: what is changed in the registry,
    /// by this process or by others, is seen by the next load.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// How skills are fetched that are imported by URL. Without it none are.
    pub fn imports(mut self, imports: Imports) -> Self {
        self.imports = Some(imports);
        self
    }

    /// Listens where the settings say.
    pub async fn bind_as_set(self) -> Result<Bound, ServerError> {
        let address = SocketAddr::new(self.settings.host, self.settings.port);
        self.bind(address).await
    }

    /// Listens at an address. One that others can reach needs a key in the store, or tokens that
    /// are accepted.
    pub async fn bind(self, address: SocketAddr) -> Result<Bound, ServerError> {
        let is_local = address.ip().is_loopback();
        let tokens = self.settings.jwt.as_ref().map(Tokens::new).transpose()?;
        if !is_local && tokens.is_none() && self.keys.usable().await? == 0 {
            return Err(ServerError::NoKeys(address.ip()));
        }
        let waiting = self.settings.max_connections;
        let listener = listen(address, waiting).map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => ServerError::InUse(address),
            _ => ServerError::Listen { address, cause },
        })?;
        let local_addr =
            listener.local_addr().map_err(|cause| ServerError::Listen { address, cause })?;
        // Whoever comes first finds the skills. If they cannot be read now, it is tried again.
        if let Err(error) = self.registry.refresh().await {
            tracing::error!(target: "prowess::server", "the registry cannot be read: {error}");
        }
        let needed = if is_local { Needed::IfThereAreAny } else { Needed::Always };
        let failures = self.settings.max_failed_logins_per_minute;
        let app = App::new(Inner {
            doorman: Doorman::new(Arc::clone(&self.keys), tokens, needed, failures),
            runtime: self.runtime,
            registry: self.registry,
            catalog: self.catalog,
            cataloged: AtomicU64::new(0),
            counter: Counter::start(Arc::clone(&self.usage)),
            bodies: Bodies::new(self.settings.max_bodies_bytes),
            streams: Places::new(self.settings.max_streams),
            shelf: Shelf::new(self.settings.ready_bytes),
            last_loads: LastLoads::default(),
            imports: self.imports,
            usage: self.usage,
            keys: self.keys,
            settings: self.settings,
            events: self.events,
            ending: CancellationToken::new(),
            begun: TaskTracker::new(),
            started: Instant::now(),
        });
        Ok(Bound { local_addr, listener, app, notices: self.notices })
    }
}

/// A server that listens, and answers as soon as it serves.
pub struct Bound {
    /// Where it listens.
    pub local_addr: SocketAddr,
    listener: TcpListener,
    app: App,
    notices: Notices,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Bound")
            .field("local_addr", &self.local_addr)
            .finish_non_exhaustive()
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was begun is finished.
    Finished,
    /// Something took longer than it may, and was broken off.
    BrokenOff,
}

impl Bound {
    /// Where it is, for people.
    pub fn url(&self) -> String {
        format!("http://{}", self.local_addr)
    }

    /// Answers until `shutdown` comes. Then nothing new is accepted, streams end, and what was
    /// begun is finished, as far as that does not take longer than it may.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Ended {
        let Self { local_addr, listener, app, notices } = self;
        let settings = app.settings().clone();
        let guard = Arc::new(Guard::new(app.clone(), routes::router(app.clone()), local_addr));
        let places = Arc::new(Semaphore::new(settings.max_connections));
        let of_address = Places::new(settings.max_connections_per_address);
        let (connections, breaking_off) = (TaskTracker::new(), CancellationToken::new());
        let accepting = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let (stream, peer) = accept(&listener).await;
                // It is closed at once: nobody takes the places of others.
                let Some(own_place) = of_address.take(neighbour(peer.ip())) else {
                    tracing::debug!(target: "prowess::server", %peer, "it has too many connections");
                    continue;
                };
                let connection = connection(stream, peer, Arc::clone(&guard), app.ending().clone());
                let breaking_off = breaking_off.clone();
                connections.spawn(async move {
                    breaking_off.run_until_cancelled(connection).await;
                    drop((place, own_place));
                });
            }
        };
        tokio::select! {
            () = shutdown => {}
            () = accepting => {}
            () = keep_up(&app, notices.listen()) => {}
        }
        drop(listener);
        app.ending().cancel();
        connections.close();
        app.begun().close();
        let all = async {
            connections.wait().await;
            app.begun().wait().await;
        };
        let patience = Duration::from_secs(settings.shutdown_seconds);
        match tokio::time::timeout(patience, all).await {
            Ok(()) => Ended::Finished,
            Err(_) => {
                breaking_off.cancel();
                connections.wait().await;
                Ended::BrokenOff
            }
        }
    }
}

/// Takes over what other processes change, for ever: when there is a notice of it, and now and then
/// by itself.
async fn keep_up(app: &App, mut listener: Listener) {
    loop {
        if let Err(error) = app.refresh().await {
            tracing::error!(target: "prowess::server", "the registry cannot be read: {error}");
        }
        app.catch_up().await;
        let next = tokio::time::Instant::now() + LOOK;
        while let Ok(notice) = tokio::time::timeout_at(next, listener.next()).await {
            match notice {
                Notice::Session(session) => app.events().wake(&session),
                Notice::Skills => break,
                _ => {
                    app.events().wake_all();
                    break;
                }
            }
        }
    }
}

/// Listens at an address, where as many may wait as there may be connections: what comes at once and
/// has no place there is dropped or reset by the system, and nobody is told why.
fn listen(address: SocketAddr, waiting: usize) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(u32::from(u16::try_from(waiting.max(1)).unwrap_or(u16::MAX)))
}

/// The next connection. Where there are no more descriptors, it waits for some.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(target: "prowess::server", "cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    guard: Arc<Guard>,
    ending: CancellationToken,
) {
    // Answers are small and whole: waiting for more of them helps nobody.
    let _ = stream.set_nodelay(true);
    let settings = guard.settings();
    let head_time = Duration::from_secs(settings.header_seconds);
    let stream = Patient::new(stream, settings.request_time());
    let service = service_fn(|request| {
        let guard = Arc::clone(&guard);
        async move { Ok::<_, std::convert::Infallible>(guard.answer(request, peer).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_time);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(target: "prowess::server", %peer, "a connection ended: {error}");
    }
}
