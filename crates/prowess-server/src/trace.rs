//! The span of a request, in the words of OpenTelemetry's conventions for HTTP.

use axum::http::{Method, Request, StatusCode};
use tracing::field::Empty;
use tracing::{Level, Span};

/// What the span of a request is called.
pub(crate) const REQUEST: &str = "http.server.request";
/// Where it comes from. It is not in the log: there is a line for every request anyway.
const TARGET: &str = "prowess::http";

/// The part of an address that may have slashes: it is the last one.
const WITH_FOLDERS: &str = "/{resource_name}";

/// What there is, by templates such as `/api/v1/skills/{id}`.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    templates: Vec<String>,
}

impl Routes {
    /// Those of a description, and what it does not describe.
    pub(crate) fn new(described: impl IntoIterator<Item = String>) -> Self {
        let mut templates: Vec<String> = described.into_iter().collect();
        templates.extend(["/api/v1/openapi.json", "/docs", "/docs/{file}"].map(str::to_owned));
        // What is said in words goes before what may be anything.
        templates.sort_by_key(|template| template.matches('{').count());
        Self { templates }
    }

    /// The template that an address is like.
    pub(crate) fn of(&self, path: &str) -> Option<&str> {
        let is_like = |template: &&String| {
            let (mut wanted, mut given) = (template.split('/'), path.split('/'));
            loop {
                match (wanted.next(), given.next()) {
                    (None, None) => return true,
                    (None, Some(_)) => return template.ends_with(WITH_FOLDERS),
                    (Some(wanted), Some(given)) => {
                        let is_any = wanted.starts_with('{') && !given.is_empty();
                        if !is_any && wanted != given {
                            return false;
                        }
                    }
                    _ => return false,
                }
            }
        };
        self.templates.iter().find(is_like).map(String::as_str)
    }
}

/// The span of a request: none, unless somebody listens.
pub(crate) fn request<B>(routes: &Routes, request: &Request<B>) -> Span {
    if !tracing::span_enabled!(target: TARGET, Level::DEBUG) {
        return Span::none();
    }
    let (method, path) = (method(request.method()), request.uri().path());
    let route = routes.of(path);
    let name = match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    };
    let span = tracing::debug_span!(
        target: TARGET,
        REQUEST,
        otel.name = name,
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        url.scheme = "http",
        url.path = path,
        "error.type" = Empty,
    );
    #[cfg(feature = "otlp")]
    caused_by(&span, request.headers());
    span
}

/// Says how a request was answered.
pub(crate) fn answered(span: &Span, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", status.as_str());
    }
}

/// The methods that there are; others are not told apart.
fn method(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "_OTHER",
    }
}

/// The span is a part of the trace that the headers name: `traceparent` and `tracestate` (W3C).
#[cfg(feature = "otlp")]
fn caused_by(span: &Span, headers: &axum::http::HeaderMap) {
    use opentelemetry::propagation::{Extractor, TextMapPropagator};
    use opentelemetry::trace::TraceContextExt;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    struct Headers<'a>(&'a axum::http::HeaderMap);

    impl Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key).and_then(|value| value.to_str().ok())
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(axum::http::HeaderName::as_str).collect()
        }
    }

    let context = TraceContextPropagator::new().extract(&Headers(headers));
    if context.span().span_context().is_valid() {
        // Where nobody keeps traces there is nothing to belong to.
        let _ = span.set_parent(context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_template_that_says_most() {
        let templates = [
            "/api/v1/skills/{id}",
            "/api/v1/skills",
            "/api/v1/skills/{id}/versions/{number}",
            "/api/v1/skills/search",
            "/health",
        ];
        let routes = Routes::new(templates.map(str::to_owned));
        for (path, template) in [
            ("/api/v1/skills", Some("/api/v1/skills")),
            ("/api/v1/skills/a", Some("/api/v1/skills/{id}")),
            ("/api/v1/skills/search", Some("/api/v1/skills/search")),
            ("/api/v1/skills/a/versions/3", Some("/api/v1/skills/{id}/versions/{number}")),
            ("/api/v1/skills/", None),
            ("/api/v1/skills/a/", None),
            ("/api/v1/skills/a/b", None),
            ("/health", Some("/health")),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(routes.of(path), template, "{path}");
        }
    }

    #[test]
    fn methods_that_nobody_knows_are_one() {
        assert_eq!(method(&Method::GET), "GET");
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), "_OTHER");
    }

    #[test]
    fn there_is_no_span_where_nobody_listens() {
        let routes = Routes::default();
        assert!(request(&routes, &Request::new(())).is_disabled());
    }

    #[test]
    fn the_name_of_the_span_is_the_one_that_is_measured() {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::with_default(subscriber, || {
            let span = request(&Routes::default(), &Request::new(()));
            assert_eq!(span.metadata().unwrap().name(), REQUEST);
        });
    }
}
