//! Connections to PostgreSQL that lead nowhere any more, and servers that do not answer.

mod support;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prowess_runtime::SessionStore;
use prowess_store::{PostgresSettings, PostgresStore};
use support::postgres_server::{PostgresServer, Sync};
use support::{key, say};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

/// Short, so that a test is.
fn settings() -> PostgresSettings {
    let mut settings = PostgresSettings::default();
    settings.connect_time = Duration::from_secs(1);
    settings.statement_time = Duration::from_secs(2);
    settings
}

/// A way to a server that can be cut: whoever is connected then hears nothing any more, and is not
/// told.
struct Way {
    address: SocketAddr,
    cut: watch::Sender<()>,
}

impl Way {
    async fn to(server: &PostgresServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, socket) = (listener.local_addr().unwrap(), server.socket());
        let (cut, is_cut) = watch::channel(());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (socket, mut is_cut) = (socket.clone(), is_cut.clone());
                is_cut.mark_unchanged();
                tokio::spawn(async move {
                    let mut server = UnixStream::connect(socket).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = is_cut.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, cut }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_one_connection_that_leads_nowhere_the_others_are_not_tried() {
    let test = "after_one_connection_that_leads_nowhere_the_others_are_not_tried";
    let Some(server) = PostgresServer::start(test, Sync::None) else { return };
    let way = Way::to(&server).await;
    let url = format!("postgres://prowess@{}/postgres", way.address);
    let store = PostgresStore::open_with(&url, settings()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let sessions = store.sessions();
        tasks.spawn(async move { say(&sessions, &key(&format!("s{number}")), 0, "x").await });
    }
    for said in tasks.join_all().await {
        said.unwrap();
    }
    way.cut.send(()).unwrap();
    let lost = store.sessions().get(&key("s0")).await.unwrap_err();
    assert_eq!(lost.code(), "store_unavailable", "{lost}");
    let found = store.sessions().get(&key("s0")).await.unwrap();
    assert!(found.is_some());
}

/// A server that takes connections and says nothing; how many.
fn silent_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
    let asked = Arc::clone(&count);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        loop {
            match listener.accept() {
                Ok(connection) => kept.push(connection),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            asked.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_that_wrote_last_is_asked_first() {
    let test = "the_server_that_wrote_last_is_asked_first";
    let Some(server) = PostgresServer::start(test, Sync::None) else { return };
    let (silent, asked) = silent_server();
    let url = format!("postgres://prowess@{silent}/postgres,{}", server.url("postgres"));
    let store = PostgresStore::open_with(&url, settings()).await.unwrap();
    say(&store.sessions(), &key("a"), 0, "x").await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    assert!(before > 0, "the control");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let sessions = store.sessions();
        tasks.spawn(async move { say(&sessions, &key(&format!("s{number}")), 0, "x").await });
    }
    for said in tasks.join_all().await {
        said.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), before);
}
