//! Agents of Prowess: models, middleware, the loop, and runners.
//!
//! An [`Agent`] asks a [`ChatModel`], carries out what it calls for, and asks again. [`Middleware`]
//! stands around it; [`SkillsMiddleware`] gives it skills. A [`Runner`] runs turns of many users.
//!
//! In a model's place, [`ScriptedModel`] plays what it was told, a [`RecordingModel`]
//! writes down what another model says, and a [`CassetteModel`] says it again without a network.

#![allow(clippy::result_large_err, reason = "a failure is an outcome, and is moved once")]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent;
mod cassette;
mod cassette_request;
mod code_blocks;
mod cut;
mod deep_agent;
mod error;
mod event;
mod fork;
mod hub;
mod limits;
mod middleware;
mod model;
mod outcome;
#[cfg(feature = "rig")]
pub mod rig;
mod run;
mod runner;
mod scripted;
mod skills;
mod spans;
mod spawn;
mod stream;
mod sub_agents;
mod summarization;
mod todos;
mod turn_loop;

pub use agent::{Agent, AgentBuilder, RunRequest};

pub use cassette::{Cassette, CassetteError, CassetteModel, RecordingModel};
pub use code_blocks::{CodeBlockSettings, CodeBlocksMiddleware};
pub use deep_agent::create_deep_agent;
pub use error::AgentError;
pub use event::{AgentEvent, StopReason};
pub use fork::{SubAgentInput, SubAgentOutput};
pub use hub::{AgentHub, AgentHubOptions, ModelHub, NotInHub, SameAgent};
pub use limits::RunLimits;
pub use middleware::{Flow, Middleware, ModelCall, NextModel, NextTool};
#[cfg(feature = "providers")]
pub use model::{ApiKey, ModelName, Provider, ProviderModel, ProviderSettings};
pub use model::{
    Cache, ChatModel, FinishReason, Fold, ModelError, ModelEvent, ModelFuture, ModelOptions,
    ModelRequest, ModelResponse, ModelStream, ReasoningEffort, RetryPolicy, RetryingModel,
    ToolChoice, arguments_of,
};
pub use outcome::RunOutcome;
pub use run::{Run, Slot};
pub use runner::Runner;
pub use scripted::{Reply, ScriptedModel};
pub use skills::SkillsMiddleware;
pub use stream::RunStream;
pub use sub_agents::{SubAgent, SubAgentMiddleware, SubAgentSkills};
pub use summarization::{SummarizationMiddleware, SummarizationSettings};
pub use todos::{Todo, TodoMiddleware, TodoStatus, Todos};
pub use tokio_util::sync::CancellationToken;
