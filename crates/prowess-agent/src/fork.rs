//! Skills that run in a sub-agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use prowess_catalog::CatalogSkill;
use prowess_runtime::{
    BoxError, ContextMode, Fork, ForkContent, Forker, Message, ToolFuture, ToolOutcome, ToolResult,
    TurnRequest,
};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::hub::{AgentHub, AgentHubOptions, ModelHub};
use crate::model::ChatModel;
use crate::run::Run;
use crate::spawn::{Spawn, SpawnError};

/// A skill that is to run in a sub-agent, for whoever decides what that begins with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgentInput {
    /// The skill.
    pub skill: CatalogSkill,
    /// What the sub-agent sees of the conversation.
    pub mode: ContextMode,
    /// The arguments of the call as JSON.
    pub raw_arguments: String,
    /// The text of the skill, as a model that loads it is given it.
    pub skill_content: String,
    /// The conversation up to the call; empty under [`ContextMode::Fork`].
    pub history: Vec<Message>,
    /// The call; empty under [`ContextMode::Fork`].
    pub tool_call_id: String,
}

/// What a sub-agent has done, for whoever decides what is told of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgentOutput {
    /// The skill.
    pub skill: CatalogSkill,
    /// What the sub-agent has seen of the conversation.
    pub mode: ContextMode,
    /// The arguments of the call as JSON.
    pub raw_arguments: String,
    /// Everything that it said and was answered, in order.
    pub messages: Vec<Message>,
    /// What it said, message by message, without calls and results.
    pub results: Vec<String>,
}

pub(crate) type BuildForkMessages =
    Arc<dyn Fn(SubAgentInput) -> BoxFuture<'static, Result<Vec<Message>, BoxError>> + Send + Sync>;
pub(crate) type FormatForkResult =
    Arc<dyn Fn(SubAgentOutput) -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

/// Runs skills in agents of a hub.
#[derive(Clone)]
pub(crate) struct HubForker {
    pub(crate) agents: Arc<dyn AgentHub>,
    pub(crate) models: Option<Arc<dyn ModelHub>>,
    pub(crate) build_messages: Option<BuildForkMessages>,
    pub(crate) format_result: Option<FormatForkResult>,
}

impl Forker for HubForker {
    fn fork<'a>(&'a self, fork: Fork<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(fork).await.unwrap_or_else(|failure| failure) })
    }
}

/// Something fails for a skill.
fn failed(code: &'static str, skill: &str, cause: &dyn std::fmt::Display) -> ToolOutcome {
    ToolOutcome::failed(code, json!({"skill": skill, "cause": cause.to_string()}))
}

impl HubForker {
    /// The order of the steps is the order in which their failures count.
    async fn run(&self, fork: Fork<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let name = fork.name().to_owned();
        let run = fork.invocation().caller::<Run>().ok_or_else(|| {
            failed("fork_failed", &name, &"only an agent can run a skill in a sub-agent")
        })?;
        let model = self.model(&fork, &name).await?;
        let agent = self.agent(&fork, &name, run, model).await?;
        let content = fork.content().await?;
        let messages = self.messages(&fork, &name, &content).await?;
        let mut loaded = content.loaded;
        // It is what the sub-agent is there for, however long skills stay elsewhere.
        loaded.pinned = true;
        let mut turn = TurnRequest::new().with_inherited(loaded);
        turn.messages = messages;
        let call_id = &fork.invocation().call.id;
        let spawned = Spawn { run, call_id, agent, label: &name, turn }.run().await;
        let spawned = spawned.map_err(|error| match error {
            SpawnError::TooDeep { limit } => {
                ToolOutcome::failed("fork_too_deep", json!({"skill": name, "limit": limit}))
            }
            SpawnError::Interrupted(_) => failed("fork_interrupted", &name, &error),
            SpawnError::Failed(_) | SpawnError::Name(_) => failed("fork_failed", &name, &error),
        })?;
        let results = spawned.results();
        let data = json!({"skill": name, "results": results, "agent": spawned.name.as_str()});
        let outcome = ToolOutcome::coded("forked", data);
        let Some(format) = &self.format_result else { return Ok(outcome) };
        let output = SubAgentOutput {
            skill: fork.skill().clone(),
            mode: fork.mode,
            raw_arguments: raw_arguments(&fork),
            messages: spawned.messages,
            results,
        };
        let text = format(output).await;
        let text = text.map_err(|cause| failed("fork_result_failed", &name, &cause))?;
        let mut formatted = ToolOutcome::text(text);
        (formatted.code, formatted.data) = (outcome.code, outcome.data);
        Ok(formatted)
    }

    /// The model that the skill names.
    async fn model(
        &self,
        fork: &Fork<'_>,
        name: &str,
    ) -> Result<Option<Arc<dyn ChatModel>>, ToolOutcome> {
        let named = fork.skill().found().frontmatter.model();
        let Some(model) = named.filter(|model| *model != "inherit") else { return Ok(None) };
        let Some(models) = &self.models else {
            let data = json!({"skill": name, "model": model});
            return Err(ToolOutcome::failed("model_hub_missing", data));
        };
        let found = models.get(model).await;
        found.map(Some).map_err(|cause| model_unavailable(name, model, &cause))
    }

    async fn agent(
        &self,
        fork: &Fork<'_>,
        name: &str,
        run: &Run,
        model: Option<Arc<dyn ChatModel>>,
    ) -> Result<Agent, ToolOutcome> {
        let wanted = fork.skill().found().frontmatter.agent().unwrap_or_default();
        let options = AgentHubOptions { model, current: run.as_agent() };
        self.agents.get(wanted, options).await.map_err(|cause| {
            let data = json!({"skill": name, "agent": wanted, "cause": cause.to_string()});
            ToolOutcome::failed("agent_unavailable", data)
        })
    }

    /// What the sub-agent begins with.
    async fn messages(
        &self,
        fork: &Fork<'_>,
        name: &str,
        content: &ForkContent,
    ) -> Result<Vec<Message>, ToolOutcome> {
        let call = fork.invocation().call;
        let (history, tool_call_id) = match fork.mode {
            ContextMode::Fork => (Vec::new(), String::new()),
            ContextMode::ForkWithContext => (fork.history().await?, call.id.clone()),
        };
        let mut messages = match &self.build_messages {
            Some(build) => {
                let input = SubAgentInput {
                    skill: fork.skill().clone(),
                    mode: fork.mode,
                    raw_arguments: raw_arguments(fork),
                    skill_content: content.text.clone(),
                    history,
                    tool_call_id,
                };
                let built = build(input).await;
                built.map_err(|cause| failed("fork_messages_failed", name, &cause))?
            }
            None => {
                let text = &content.text;
                let given = match fork.mode {
                    ContextMode::Fork => Message::user(text),
                    ContextMode::ForkWithContext => {
                        Message::answering(ToolResult::new(tool_call_id, &call.name, text))
                    }
                };
                history.into_iter().chain([given]).collect()
            }
        };
        // Where the text of the skill is in there, nobody need give it again.
        let holds = |message: &Message| {
            message.text().contains(&content.text)
                || message.tool_results().any(|it| it.content.contains(&content.text))
        };
        if let Some(at) = messages.iter().rposition(holds) {
            let given = messages.remove(at).giving(&content.loaded.name, 1);
            messages.insert(at, given);
        }
        Ok(messages)
    }
}

fn raw_arguments(fork: &Fork<'_>) -> String {
    match &fork.invocation().call.arguments {
        Value::Null => "{}".to_owned(),
        arguments => arguments.to_string(),
    }
}

/// A skill names a model that is not there.
pub(crate) fn model_unavailable(skill: &str, model: &str, cause: &BoxError) -> ToolOutcome {
    let data = json!({"skill": skill, "model": model, "cause": cause.to_string()});
    ToolOutcome::failed("model_unavailable", data)
}
