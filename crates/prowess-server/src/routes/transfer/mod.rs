//! Skills as files: export and import.

mod export;
mod import;
mod receive;

use prowess_catalog::{Reach, RemoteCache, RemoteLimits};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export::export)).routes(routes!(import::import))
}

/// How skills are fetched that are imported by URL.
#[derive(Clone, Debug)]
pub struct Imports {
    cache: RemoteCache,
    reach: Reach,
    limits: RemoteLimits,
}

impl Imports {
    /// What is fetched is kept in this cache; private addresses are not connected to.
    pub fn new(cache: RemoteCache) -> Self {
        Self { cache, reach: Reach::default(), limits: RemoteLimits::default() }
    }

    /// Which addresses are connected to.
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// How much is fetched and unpacked.
    pub fn with_limits(mut self, limits: RemoteLimits) -> Self {
        self.limits = limits;
        self
    }
}
