//! What happens in a session, as Server-Sent Events.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use prowess_runtime::{Event, SessionKey};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Place, existing};
use crate::app::App;
use crate::extract::{Flag, Path, Query, Whole};
use crate::identity::Identity;
use crate::places::Taken;
use crate::problem::Problem;
use crate::wake::Subscription;

/// So many events are read at once.
const PAGE: usize = 256;
/// So often something is said, if nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Nothing is told to a listener of whom it was not known so shortly before that they may hear it.
const ALLOWED_FOR: Duration = Duration::from_secs(1);

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only events behind this place. The header `Last-Event-ID` counts before it.
    after: Option<Whole>,
    /// Whether to wait for more; `true` without it.
    #[param(value_type = Option<bool>)]
    follow: Option<Flag>,
}

/// An event as it is sent: one of these at a time.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is written as text")]
struct EventSent {
    /// Its place in the session, from 1 on.
    id: Option<String>,
    /// What kind of thing happened.
    event: Option<String>,
    /// The event, in JSON.
    data: Option<String>,
}

/// What happened in a session and what happens, as Server-Sent Events. The id of an event is its
/// place, from 1 on; whoever comes again with the last id gets what follows it, nothing twice and
/// nothing left out.
#[utoipa::path(
    get, path = "/sessions/{session_id}/events", operation_id = "follow_events", tag = "sessions",
    params(
        ("session_id" = String, Path), Place, Wanted,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$", description = "The place of the last event that came"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = EventSent),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
        (status = 429, body = Problem, content_type = "application/problem+json", description = "There are too many streams"),
    )
)]
pub(super) async fn follow(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = place.key(&session, &identity)?;
    let after = match headers.get("last-event-id") {
        Some(id) => {
            let id = id.to_str().ok().filter(|text| (1..=18).contains(&text.len()));
            let id = id.and_then(|text| text.parse().ok());
            id.ok_or_else(|| {
                Problem::invalid(&["header", "Last-Event-ID"], "it must be the id of an event")
            })?
        }
        None => wanted.after.unwrap_or_default().0,
    };
    let taken = app.streams().take(Arc::clone(&identity.actor.0));
    let taken = taken.ok_or_else(|| too_many(app.settings().max_streams))?;
    existing(&app, &key).await?;
    let follower = Follower {
        _taken: taken,
        subscription: app.events().subscribe(&key),
        app,
        identity,
        key,
        place: after,
        is_following: wanted.follow.is_none_or(|Flag(is_following)| is_following),
        has_begun: false,
        said: Instant::now(),
        allowed: Instant::now(),
    };
    let chunks = stream::unfold(follower, |mut follower| async move {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Somebody who hears what happens.
struct Follower {
    app: App,
    identity: Identity,
    key: SessionKey,
    /// The place of the last event that was told.
    place: u64,
    is_following: bool,
    has_begun: bool,
    subscription: Subscription,
    said: Instant,
    /// When they were known to be allowed.
    allowed: Instant,
    _taken: Taken<Arc<str>>,
}

fn too_many(most: usize) -> Problem {
    let message = format!("you have {most} streams of events already (max_streams); end one first");
    Problem::new(429, "too_many_streams", message).retry_after(1)
}

impl Follower {
    /// What is sent next; nothing when it is over.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.has_begun {
            self.has_begun = true;
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        // However much there is to tell.
        if self.identity.has_ended() {
            return None;
        }
        let notify = Arc::clone(&self.subscription.notify);
        let ending = self.app.ending().clone();
        loop {
            // Whatever is committed after this wakes us, also while we read.
            let mut woken = pin!(notify.notified());
            woken.as_mut().enable();
            let sessions = self.app.runtime().sessions();
            match sessions.events(&self.key, self.place, PAGE).await {
                Ok(events) if !events.is_empty() => {
                    let is_known = self.allowed.elapsed() < ALLOWED_FOR;
                    return (is_known || self.may_go_on().await).then(|| self.told(&events));
                }
                Ok(_) if !self.is_following => return None,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(target: "prowess::server", "events of {}: {error}", self.key);
                    return None;
                }
            }
            tokio::select! {
                () = woken => {}
                () = ending.cancelled() => return None,
                () = tokio::time::sleep(self.app.events().look_every()) => {
                    if !self.may_go_on().await {
                        return None;
                    }
                    if self.said.elapsed() >= KEEP_ALIVE {
                        self.said = Instant::now();
                        return Some(Bytes::from_static(b": nothing new\n\n"));
                    }
                }
            }
        }
    }

    /// Whether the session is still there, and its listener still allowed.
    async fn may_go_on(&mut self) -> bool {
        let now = Instant::now();
        let found = self.app.runtime().sessions().get(&self.key).await;
        let may = !matches!(found, Ok(None)) && self.app.doorman().may_stay(&self.identity).await;
        if may {
            self.allowed = now;
        }
        may
    }

    fn told(&mut self, events: &[Event]) -> Bytes {
        let mut text = String::new();
        for event in events {
            self.place += 1;
            let data = serde_json::to_string(event).unwrap_or_default();
            let kind = serde_json::to_value(event.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or("message");
            text.push_str(&format!("id: {}\nevent: {kind}\ndata: {data}\n\n", self.place));
        }
        self.said = Instant::now();
        text.into()
    }
}
