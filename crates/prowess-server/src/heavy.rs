//! Work that would keep others waiting.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::problem::Problem;

/// Work on more bytes than this is done on a thread of its own.
const LARGE: usize = 64 << 10;

/// Does some work on so many bytes. Other requests do not wait for it, however many there are.
pub(crate) async fn heavy<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= LARGE {
        return Ok(work());
    }
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work)).await.map_err(Problem::broken)
}

/// An answer in JSON that is made of so many bytes.
pub(crate) async fn json_of<T: Serialize + Send + 'static>(
    bytes: usize,
    value: T,
) -> Result<Response, Problem> {
    let written = heavy(bytes, move || serde_json::to_vec(&value)).await?;
    let json = HeaderValue::from_static("application/json");
    Ok(([(CONTENT_TYPE, json)], written.map_err(Problem::broken)?).into_response())
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::*;

    #[tokio::test]
    async fn only_work_on_much_has_a_thread_of_its_own() {
        let thread = async |bytes| -> ThreadId { heavy(bytes, || current().id()).await.unwrap() };
        assert_eq!(thread(LARGE).await, current().id());
        assert_ne!(thread(LARGE + 1).await, current().id());
        let broken = heavy(LARGE + 1, || panic!("on purpose")).await;
        assert_eq!(broken.map(|()| 200).unwrap_err().status(), 500);
    }
}
