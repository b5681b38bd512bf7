//! What there is at which address. One file per subject.

mod describe;
mod finding;
mod health;
mod metrics;
mod prometheus;
mod sessions;
pub(crate) mod skills;
pub(crate) mod transfer;
mod versions;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use bytes::Bytes;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::app::App;
use crate::extract::Whole;
use crate::problem::Problem;

/// Where all of it is.
const API: &str = "/api/v1";
/// Where its description is.
const DESCRIPTION: &str = "/api/v1/openapi.json";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Prowess",
        description = "The runtime for Agent Skills over HTTP. Every failure is application/problem+json with a stable code."
    ),
    components(schemas(Problem, Whole)),
    tags(
        (name = "health", description = "Whether the server lives and can work"),
        (name = "skills", description = "The registry of skills"),
        (name = "versions", description = "Versions that never change, and which one is used"),
        (name = "metrics", description = "What skills are used for, and who changed what"),
        (name = "sessions", description = "The engine for agents in any language: turns, tools, calls, prompts, events"),
    )
)]
struct Description;

/// Everything below `/api/v1`.
fn api() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(skills::routes())
        .merge(versions::routes())
        .merge(transfer::routes())
        .merge(metrics::routes())
        .merge(sessions::routes())
}

fn described() -> (Router<App>, OpenApi) {
    let router = OpenApiRouter::with_openapi(Description::openapi())
        .merge(health::routes())
        .merge(prometheus::routes())
        .nest(API, api());
    let (router, mut description) = router.split_for_parts();
    describe::complete(&mut description);
    (router, description)
}

/// What the service is like: OpenAPI 3.1.
pub fn openapi() -> OpenApi {
    described().1
}

/// The router over an app.
pub(crate) fn router(app: App) -> Router {
    let (router, description) = described();
    // It is made of texts.
    let json = Bytes::from(serde_json::to_vec(&description).unwrap_or_default());
    let description = move || async move { ([(CONTENT_TYPE, "application/json")], json) };
    let docs = SwaggerUi::new("/docs").config(Config::new([DESCRIPTION]));
    // What reads a body without saying how much stops where all others do.
    let most = DefaultBodyLimit::max(app.settings().max_body_bytes);
    router.route(DESCRIPTION, get(description)).merge(docs).layer(most).with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_openapi_3_1_and_every_operation_is_named_once() {
        let description = serde_json::to_value(openapi()).unwrap();
        assert_eq!(description["openapi"], "3.1.0");
        let mut ids = Vec::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if !operation["responses"].is_object() {
                    continue;
                }
                assert!(operation["responses"]["default"].is_object(), "{method} {path}");
                assert!(operation["tags"].is_array(), "{method} {path}");
                ids.push(operation["operationId"].as_str().unwrap().to_owned());
            }
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(count - ids.len(), 2, "only health and readiness are there twice");
        assert!(description["components"]["securitySchemes"]["bearer"].is_object());
    }
}
