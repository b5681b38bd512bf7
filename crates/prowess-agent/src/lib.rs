//! Agents of Prowess: models, and those that answer in a model's place.
//!
//! [`ChatModel`] is the one trait. [`ScriptedModel`] plays what it was told, a [`RecordingModel`]
//! writes down what another model says, and a [`CassetteModel`] says it again without a network.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cassette;
mod cassette_request;
mod model;
mod scripted;

pub use cassette::{Cassette, CassetteError, CassetteModel, RecordingModel};
#[cfg(feature = "providers")]
pub use model::{ApiKey, ModelName, Provider, ProviderModel, ProviderSettings};
pub use model::{
    Cache, ChatModel, FinishReason, Fold, ModelError, ModelEvent, ModelFuture, ModelOptions,
    ModelRequest, ModelResponse, ModelStream, ReasoningEffort, RetryPolicy, RetryingModel,
    ToolChoice, arguments_of,
};
pub use scripted::{Reply, ScriptedModel};
pub use tokio_util::sync::CancellationToken;
