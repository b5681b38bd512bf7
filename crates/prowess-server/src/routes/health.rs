//! Whether the server lives, and whether it can work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready));
    routes.layer(Extension(Arc::<Probed>::default()))
}

/// So long a change may wait in a server that can work.
const PATIENCE: Duration = Duration::from_secs(3);

/// So long one answer of the store counts for all who ask.
const FRESH: Duration = Duration::from_millis(200);

/// Whether the store took a change, and when it was asked last.
#[derive(Default)]
struct Probed(Mutex<Option<(Instant, Result<(), Problem>)>>);

impl Probed {
    /// Whether the store takes changes; one asks it for all who want to know.
    async fn get(&self, app: &App) -> Result<(), Problem> {
        let mut last = self.0.lock().await;
        if let Some((asked, result)) = &*last
            && asked.elapsed() < FRESH
        {
            return result.clone();
        }
        let result = probe(app).await;
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

async fn probe(app: &App) -> Result<(), Problem> {
    let written = tokio::time::timeout(PATIENCE, app.usage().probe()).await;
    let busy = |_| {
        let message = "the store takes no changes now: it does not answer, or others write to it";
        Problem::new(503, "store_busy", message).retry_after(1)
    };
    Ok(written.map_err(busy)??)
}

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`
    #[schema(value_type = String)]
    status: &'static str,
    /// The version of the program.
    #[schema(value_type = String)]
    version: &'static str,
    /// How long it has been running.
    uptime_seconds: u64,
    /// What is wrong without keeping it from working, such as skills that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Health {
    fn of(app: &App) -> Self {
        Self {
            status: "ok",
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: app.started().elapsed().as_secs(),
            warnings: Vec::new(),
        }
    }
}

/// Whether the server lives.
#[utoipa::path(get, path = "/health", tag = "health", responses((status = 200, body = Health)))]
async fn health(State(app): State<App>) -> Json<Health> {
    Json(Health::of(&app))
}

/// Whether the server can work: its stores answer and take changes, and it is not about to end.
#[utoipa::path(get, path = "/ready", tag = "health", responses((status = 200, body = Health)))]
async fn ready(
    State(app): State<App>,
    Extension(probed): Extension<Arc<Probed>>,
) -> Result<Json<Health>, Problem> {
    if app.ending().is_cancelled() {
        return Err(Problem::new(503, "ending", "the server is about to end").retry_after(1));
    }
    app.refresh().await?;
    app.catch_up().await;
    app.keys().usable().await?;
    probed.get(&app).await?;
    let mut health = Health::of(&app);
    // Everybody may ask this: which ones they are stands in the log.
    let broken = app.registry().broken().len();
    if broken > 0 {
        health.warnings.push(format!("{broken} skills cannot be read; the log says which and why"));
    }
    Ok(Json(health))
}
