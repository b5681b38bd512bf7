//! Agents and models by name, for skills that ask for another one than those that are at work.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prowess_runtime::BoxError;

use crate::agent::Agent;
use crate::model::ChatModel;

/// Models by name. A skill names one with `model`.
///
/// A map of models is a hub, and so is a function that finds one.
pub trait ModelHub: Send + Sync + 'static {
    /// The model of this name.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn ChatModel>, BoxError>>;
}

/// There is nothing of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is none")]
pub struct NotInHub;

impl<F> ModelHub for F
where
    F: Fn(&str) -> Option<Arc<dyn ChatModel>> + Send + Sync + 'static,
{
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn ChatModel>, BoxError>> {
        let found = self(name).ok_or_else(|| NotInHub.into());
        Box::pin(std::future::ready(found))
    }
}

impl ModelHub for HashMap<String, Arc<dyn ChatModel>> {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn ChatModel>, BoxError>> {
        let found = HashMap::get(self, name).cloned().ok_or_else(|| NotInHub.into());
        Box::pin(std::future::ready(found))
    }
}

/// What an [`AgentHub`] may want to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentHubOptions {
    /// The model that the skill names; `None`: the agent asks its own.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The agent that is at work.
    pub current: Agent,
}

/// Agents by name, for skills that run in one of their own (`context: fork`). A skill names one
/// with `agent`; the empty name means the default one.
///
/// A map of agents is a hub, and so is a function that finds one.
pub trait AgentHub: Send + Sync + 'static {
    /// The agent of this name.
    fn get<'a>(
        &'a self,
        name: &'a str,
        options: AgentHubOptions,
    ) -> BoxFuture<'a, Result<Agent, BoxError>>;
}

impl<F> AgentHub for F
where
    F: Fn(&str, AgentHubOptions) -> Result<Agent, BoxError> + Send + Sync + 'static,
{
    fn get<'a>(
        &'a self,
        name: &'a str,
        options: AgentHubOptions,
    ) -> BoxFuture<'a, Result<Agent, BoxError>> {
        Box::pin(std::future::ready(self(name, options)))
    }
}

impl AgentHub for HashMap<String, Agent> {
    fn get<'a>(
        &'a self,
        name: &'a str,
        options: AgentHubOptions,
    ) -> BoxFuture<'a, Result<Agent, BoxError>> {
        let found = HashMap::get(self, name).cloned().ok_or_else(|| NotInHub.into());
        let found = found.map(|agent| agent.with_model_of(&options));
        Box::pin(std::future::ready(found))
    }
}

/// The agent that is at work, as the only one in its hub: a skill that runs in an agent of its own
/// gets one like it, with a conversation and loaded skills of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SameAgent;

impl SameAgent {
    /// What skills call it, besides nothing.
    pub const NAME: &str = "general-purpose";
}

impl AgentHub for SameAgent {
    fn get<'a>(
        &'a self,
        name: &'a str,
        options: AgentHubOptions,
    ) -> BoxFuture<'a, Result<Agent, BoxError>> {
        let found = match name {
            "" | Self::NAME => Ok(options.current.with_model_of(&options)),
            _ => Err(NotInHub.into()),
        };
        Box::pin(std::future::ready(found))
    }
}

impl Agent {
    /// The same agent with the model that a skill names, if it names one.
    fn with_model_of(&self, options: &AgentHubOptions) -> Self {
        match &options.model {
            Some(model) => self.clone().with_model(Arc::clone(model)),
            None => self.clone(),
        }
    }
}
