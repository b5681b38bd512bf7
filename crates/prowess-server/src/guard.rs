//! The one function that every request passes: Host, Origin, credentials, limits, time, headers.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::{Body as _, Incoming};
use tower_service::Service;
use tracing::Instrument;

use crate::app::App;
use crate::buckets::{Buckets, neighbour};
use crate::extract::too_large;
use crate::identity::{Identity, Shown};
use crate::origin::{Names, Site};
use crate::parameters::Parameters;
use crate::problem::{PROBLEM_JSON, Problem};
use crate::routes::openapi;
use crate::settings::ServerSettings;
use crate::trace::{self, Routes};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// What another site's page may send, and see.
const ALLOWED_HEADERS: &str =
    "authorization, content-type, if-match, if-none-match, last-event-id, x-api-key, x-request-id";
const EXPOSED_HEADERS: &str = "etag, location, retry-after, x-request-id";
const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// What the pages of the documentation may use: what this server gives, and nothing inline that runs.
const DOCS_POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

/// Lets requests through, or refuses them.
pub(crate) struct Guard {
    app: App,
    router: Router,
    names: Names,
    routes: Routes,
    parameters: Parameters,
    rate: Option<Buckets<Who>>,
    run: u32,
    count: AtomicU64,
}

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Key(Arc<str>),
    Token(Arc<str>),
    Address(IpAddr),
}

impl Guard {
    pub(crate) fn new(app: App, router: Router, bound: SocketAddr) -> Self {
        let settings = app.settings();
        let names = Names::new(bound.ip(), &settings.allowed_hosts, &settings.allowed_origins);
        let rate = settings.requests_per_second(bound.ip());
        let rate = rate.map(|most| Buckets::new(most, Duration::from_secs(1)));
        // Ids of two runs of a server differ.
        let run = uuid::Uuid::now_v7().as_fields().1 as u32 ^ std::process::id().rotate_left(16);
        let description = openapi();
        let parameters = Parameters::new(&description);
        let routes = Routes::new(description.paths.paths.into_keys());
        Self { app, router, names, routes, parameters, rate, run, count: AtomicU64::new(0) }
    }

    /// What was set.
    pub(crate) fn settings(&self) -> &ServerSettings {
        self.app.settings()
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Response<Body> {
        let started = Instant::now();
        let id = self.request_id(request.headers());
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut site = Site::Own;
        let mut actor = None;
        let span = trace::request(&self.routes, &request);
        let passing = self.pass(request, peer.ip(), &mut site, &mut actor);
        let answered = passing.instrument(span.clone()).await;
        let mut response = answered.unwrap_or_else(IntoResponse::into_response);
        if response.status().is_client_error() || response.status().is_server_error() {
            response = as_problem(response);
        }
        self.dress(response.headers_mut(), &site, &path, &id);
        trace::answered(&span, response.status());
        tracing::info!(
            target: "prowess::server",
            %method, path, status = response.status().as_u16(), id = id.to_str().unwrap_or_default(),
            actor = actor.as_deref(), elapsed_us = started.elapsed().as_micros() as u64, "request"
        );
        response
    }

    async fn pass(
        &self,
        mut request: Request<Incoming>,
        address: IpAddr,
        site: &mut Site,
        actor: &mut Option<Arc<str>>,
    ) -> Result<Response<Body>, Problem> {
        let (method, headers) = (request.method(), request.headers());
        let authority = self.names.host(request.uri(), headers)?;
        *site = self.names.site(&authority, method, headers)?;
        if method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return Ok(preflight(site));
        }
        let path = request.uri().path();
        let is_open = is_open(path);
        let identified = match is_open {
            true => None,
            false => Some(self.app.doorman().identify(headers, address).await),
        };
        // Those who are nobody, or not yet, are counted by where they are.
        let who = match &identified {
            Some(Ok(Identity { shown: Shown::Key(key), .. })) => Who::Key(Arc::clone(key)),
            Some(Ok(Identity { shown: Shown::Token(_), user, .. })) => Who::Token(Arc::clone(user)),
            _ => Who::Address(neighbour(address)),
        };
        if let Some(rate) = &self.rate {
            rate.take(who, Instant::now()).map_err(too_often)?;
        }
        let settings = self.app.settings();
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length = length.and_then(|text| text.parse::<u64>().ok());
        let is_call = is_call(path);
        // Which skills a session loads is not known here.
        let may_load =
            is_in_session(path) && !matches!(*request.method(), Method::GET | Method::HEAD);
        let time = match is_call || is_import(path) {
            true => settings.call_time(),
            false => settings.request_time(),
        };
        if let Some(identified) = identified {
            let identity = identified?;
            *actor = Some(Arc::clone(&identity.actor.0));
            request.extensions_mut().insert(identity);
        }
        if length.is_some_and(|length| length > settings.max_body_bytes as u64) {
            return Err(too_large(settings));
        }
        if let Some(query) = request.uri().query() {
            let (method, path) = (request.method(), request.uri().path());
            self.parameters.check(&self.routes, method, path, query)?;
        }
        // What is sent takes room until it is answered.
        let room = (!request.body().is_end_stream()).then(|| self.app.bodies().room());
        if let Some(room) = &room {
            request.extensions_mut().insert(room.clone());
        }
        let answer = self.router.clone().call(request);
        let answered = tokio::time::timeout(time, unbroken(answer)).await;
        drop(room);
        if may_load {
            self.app.last_loads().forget();
        }
        match answered {
            Ok(Some(Ok(response))) => Ok(response),
            Ok(Some(Err(never))) => match never {},
            Ok(None) => Err(Problem::new(500, "internal", "something broke; the log says more")),
            Err(_) => {
                let seconds = time.as_secs();
                Err(Problem::new(503, "timeout", timeout(is_call, seconds)).retry_after(1))
            }
        }
    }

    /// The id of a request: what its sender calls it, or one of ours.
    fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let is_good = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            let is_kept =
                |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':');
            (1..=64).contains(&bytes.len()) && bytes.iter().all(is_kept)
        };
        if let Some(id) = headers.get(REQUEST_ID).filter(is_good) {
            return id.clone();
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:08x}-{count:x}", self.run);
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("-"))
    }

    /// Adds what every answer has.
    fn dress(&self, headers: &mut HeaderMap, site: &Site, path: &str, id: &HeaderValue) {
        headers.insert(REQUEST_ID, id.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_docs(path) {
            headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(DOCS_POLICY));
        }
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if let Site::Allowed(origin) = site
            && let Ok(origin) = HeaderValue::from_str(origin)
        {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.append(VARY, HeaderValue::from_static("origin"));
            let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// Whether everybody may see it: whether the server lives, and how it is spoken to.
fn is_open(path: &str) -> bool {
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    matches!(path, "/health" | "/ready" | "/openapi.json") || is_docs(path)
}

fn is_docs(path: &str) -> bool {
    path.strip_prefix("/docs").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_in_session(path: &str) -> bool {
    path.starts_with("/api/v1/sessions/")
}

/// Whether it runs tools.
fn is_call(path: &str) -> bool {
    is_in_session(path) && (path.ends_with("/calls") || path.ends_with("/turns"))
}

/// Whether it may fetch skills from elsewhere.
fn is_import(path: &str) -> bool {
    path == "/api/v1/skills/import"
}

/// What is known of a request that has not come to its end.
fn timeout(is_call: bool, seconds: u64) -> String {
    let what = match is_call {
        true => {
            "calls that were begun go on, and the same request with the same ids gives their results"
        }
        false => "a change may have been made all the same: read before you try again",
    };
    format!("there was no answer within {seconds} seconds; {what}")
}

fn too_often(seconds: u64) -> Problem {
    let message = "too many requests (requests_per_second); wait and try again";
    Problem::new(429, "too_many_requests", message).retry_after(seconds)
}

/// A browser asks what a page of another site may do.
fn preflight(site: &Site) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(ALLOWED_METHODS));
    if matches!(site, Site::Allowed(_)) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(ALLOWED_METHODS));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED_HEADERS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// A failure in the form that all of them have, also if it was not us who wrote it.
fn as_problem(response: Response<Body>) -> Response<Body> {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind.is_some_and(|kind| kind.starts_with(PROBLEM_JSON.as_bytes())) {
        return response;
    }
    let status = response.status();
    let (code, message) = match status.as_u16() {
        404 => ("not_found", "there is nothing at this address; /docs shows what there is"),
        405 => ("method_not_allowed", "this address does not take this method"),
        _ => ("failed", "the request failed"),
    };
    let mut problem = Problem::new(status.as_u16(), code, message).into_response();
    for name in [ALLOW] {
        if let Some(value) = response.headers().get(&name) {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}

/// Runs to the end; nothing comes of a panic.
async fn unbroken<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_health_and_documentation_are_open() {
        for path in ["/health", "/ready", "/api/v1/health", "/api/v1/ready", "/docs", "/docs/x.js"]
        {
            assert!(is_open(path), "{path}");
        }
        for path in [
            "/",
            "/api/v1/sessions",
            "/docsx",
            "/health/",
            "/healthx",
            "/api/v1/skills",
            "//health",
        ] {
            assert!(!is_open(path), "{path}");
        }
    }

    #[test]
    fn a_timeout_promises_results_of_calls_only() {
        assert!(timeout(true, 600).contains("gives their results"));
        let other = timeout(false, 30);
        assert!(!other.contains("gives their results"), "{other}");
        assert!(other.contains("within 30 seconds") && other.contains("read before"), "{other}");
    }

    #[tokio::test]
    async fn a_panic_comes_to_nothing() {
        assert_eq!(unbroken(async { 1 }).await, Some(1));
        assert_eq!(unbroken(async { panic!("on purpose") }).await, None::<()>);
    }
}
