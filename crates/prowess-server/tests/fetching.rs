//! Imports of what is at a URL.

mod support;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use prowess_catalog::{Reach, RemoteCache};
use prowess_server::Imports;
use serde_json::json;
use support::{Running, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const IMPORT: &str = "/api/v1/skills/import";

/// What a site gives, and how long it takes for it.
#[derive(Clone, Default)]
struct Site(Arc<Mutex<(String, Duration)>>);

impl Site {
    /// It gives this from now on; nothing is a failure.
    fn give(&self, text: &str, after: Duration) {
        *self.0.lock().unwrap() = (text.to_owned(), after);
    }

    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/SKILL.md", listener.local_addr().unwrap());
        let site = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (text, after) = site.0.lock().unwrap().clone();
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    tokio::time::sleep(after).await;
                    let status = if text.is_empty() { "500 No" } else { "200 OK" };
                    let answer = format!(
                        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                        text.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        url
    }
}

fn skill(body: &str) -> String {
    format!("---\nname: far\ndescription: Comes from far away, for tests.\n---\n{body}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_is_what_is_there_now_however_long_that_takes() {
    let site = Site::default();
    let url = site.start().await;
    let folder = tempfile::tempdir().unwrap();
    let cache = RemoteCache::new(folder.path().join("cache"));
    let server = Running::built(folder, |builder| {
        builder
            .imports(Imports::new(cache).with_reach(Reach::Any))
            .settings(settings(|it| it.request_seconds = 1))
    })
    .await;
    let import =
        async || server.post(&format!("{IMPORT}?conflict=version"), json!({"url": url})).await;
    site.give(&skill("First."), Duration::ZERO);
    let first = import().await;
    assert_eq!((first.status, &first.json()["skill_id"]), (201, &json!("far")), "{}", first.text());
    // Just fetched, and yet another one.
    site.give(&skill("Second."), Duration::from_millis(1500));
    let second = import().await;
    assert_eq!(second.status, 201, "{}", second.text());
    let text = server.get("/api/v1/skills/far").await.json()["core_content"].clone();
    assert_eq!(text, "Second.\n");
    // What was fetched before is not what is there.
    site.give("", Duration::ZERO);
    let failed = import().await;
    assert_eq!((failed.status, failed.code().as_str()), (422, "fetch_failed"));
    let private = Running::built(tempfile::tempdir().unwrap(), |builder| {
        builder.imports(Imports::new(RemoteCache::new(server.folder.path().join("other"))))
    })
    .await;
    let refused = private.post(IMPORT, json!({"url": url})).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid_request"));
}
