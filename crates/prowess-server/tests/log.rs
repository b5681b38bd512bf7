//! What a server writes down.

mod support;

use std::io;
use std::sync::{Arc, Mutex};

use prowess_store::Role;
use support::Running;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_key_is_in_no_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let server = Running::start().await;
    let key = server.key("ci", Role::Viewer).await;
    assert_eq!(server.get_as(&key, "/api/v1/sessions").await.status, 200);
    let wrong = format!("{}x", &key[..key.len() - 1]);
    assert_eq!(server.get_as(&wrong, "/api/v1/sessions").await.status, 401);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("key:ci"), "the control: {text}");
    let secret = &key[21..key.len() - 1];
    assert!(!text.contains(secret), "{text}");
}
