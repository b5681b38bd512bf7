//! The floor: a bare axum handler that answers every skill with the same bytes.

use std::io::{Read, Write};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::routing::get;
use serde_json::{Value, json};

#[derive(Clone)]
struct Same {
    content_type: HeaderValue,
    body: Bytes,
}

/// Reads `{"content_type", "body"}` from standard input, listens, and says where.
pub(crate) fn run() -> Result<()> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let input: Value = serde_json::from_str(&input)?;
    let content_type = input["content_type"].as_str().context("no content type")?;
    let body = input["body"].as_str().context("no body")?;
    let same = Same {
        content_type: HeaderValue::from_str(content_type)?,
        body: Bytes::copy_from_slice(body.as_bytes()),
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let router = Router::new().route("/api/v1/skills/{id}", get(answer)).with_state(same);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        println!("{}", json!({"url": url}));
        std::io::stdout().flush()?;
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn answer(State(same): State<Same>) -> ([(HeaderName, HeaderValue); 1], Bytes) {
    ([(CONTENT_TYPE, same.content_type)], same.body)
}
