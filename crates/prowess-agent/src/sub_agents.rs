//! `task`: work that is handed to a sub-agent.

use std::sync::Arc;

use prowess_runtime::{
    Invocation, LoadedSkill, Message, Narrowing, RuntimeBuilder, Tool, ToolDeclaration, ToolFuture,
    ToolOutcome, TurnRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::Agent;
use crate::hub::SameAgent;
use crate::middleware::Middleware;
use crate::model::ChatModel;
use crate::run::Run;
use crate::spawn::{Spawn, SpawnError};

/// Which skills a sub-agent has: some of those that its parent sees ([`SubAgent::of`] has its own),
/// and loaded only what its parent has loaded. What it loads itself, its parent does not see.
///
/// ```
/// use prowess_agent::SubAgentSkills;
///
/// let read = |json| serde_json::from_str::<SubAgentSkills>(json).unwrap();
/// assert_eq!(read(r#""inherit""#), SubAgentSkills::Inherit);
/// assert_eq!(read(r#"["sql"]"#), SubAgentSkills::only(["sql"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum SubAgentSkills {
    /// It sees what its parent sees, and has loaded nothing.
    #[default]
    #[serde(with = "isolated")]
    Isolated,
    /// It sees what its parent sees, and begins with what its parent has loaded.
    #[serde(with = "inherit")]
    Inherit,
    /// It sees only these, and has loaded nothing.
    List(Vec<String>),
}

macro_rules! word {
    ($module:ident, $word:literal) => {
        mod $module {
            #[derive(serde::Serialize, serde::Deserialize)]
            enum Word {
                #[serde(rename = $word)]
                It,
            }

            pub(super) fn serialize<S: serde::Serializer>(to: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&Word::It, to)
            }

            pub(super) fn deserialize<'de, D>(from: D) -> Result<(), D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                let Word::It = serde::Deserialize::deserialize(from)?;
                Ok(())
            }
        }
    };
}
word!(isolated, "isolated");
word!(inherit, "inherit");

impl SubAgentSkills {
    /// Only these.
    pub fn only(skills: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(skills.into_iter().map(Into::into).collect())
    }
}

/// A kind of sub-agent that work can be handed to.
#[derive(Clone, Debug)]
pub struct SubAgent {
    name: String,
    description: String,
    system: Option<String>,
    model: Option<Arc<dyn ChatModel>>,
    tools: Option<Vec<String>>,
    skills: SubAgentSkills,
    agent: Option<Agent>,
}

impl SubAgent {
    /// One like its parent, with a conversation of its own.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            system: None,
            model: None,
            tools: None,
            skills: SubAgentSkills::default(),
            agent: None,
        }
    }

    /// Another agent, with what is changed here. It has its own skills and, unless it shares them,
    /// its own sessions; it inherits nothing that is loaded.
    pub fn of(name: impl Into<String>, description: impl Into<String>, agent: Agent) -> Self {
        Self { agent: Some(agent), ..Self::new(name, description) }
    }

    /// Is told something else first than its parent.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Asks another model than its parent.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// Has only these of its parent's tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Which skills it has.
    pub fn skills(mut self, skills: SubAgentSkills) -> Self {
        self.skills = skills;
        self
    }

    /// It, as a child of this agent, or as the agent that it is.
    fn child_of(&self, parent: Agent) -> Agent {
        let mut child = self.agent.clone().unwrap_or(parent);
        if let Some(system) = &self.system {
            child = child.with_system(system);
        }
        if let Some(model) = &self.model {
            child = child.with_model(Arc::clone(model));
        }
        let mut narrowing = Narrowing::new();
        if let Some(tools) = &self.tools {
            narrowing = narrowing.with_tools(tools);
        }
        if let SubAgentSkills::List(skills) = &self.skills {
            narrowing = narrowing.with_skills(skills);
        }
        match narrowing == Narrowing::new() {
            true => child,
            false => child.narrowed(&narrowing),
        }
    }

    /// What it begins with of what its parent has loaded.
    fn inherited<'s>(&self, loaded: &'s [LoadedSkill]) -> &'s [LoadedSkill] {
        match self.skills {
            SubAgentSkills::Inherit if self.agent.is_none() => loaded,
            _ => &[],
        }
    }
}

/// Gives a model the tool `task`, by which it hands work to sub-agents. Each has a conversation and
/// loaded skills of its own; its last words are what comes back.
///
/// ```
/// use prowess_agent::{SubAgent, SubAgentMiddleware, SubAgentSkills};
///
/// let middleware = SubAgentMiddleware::new()
///     .with(SubAgent::new("researcher", "Finds sources.").tools(["search"]))
///     .general_purpose(SubAgentSkills::Inherit);
/// # let _ = middleware;
/// ```
#[derive(Clone, Debug)]
pub struct SubAgentMiddleware {
    sub_agents: Vec<SubAgent>,
}

const GENERAL: &str = "For any task of several steps whose details need not stand here: it can \
                       do what you can do.";

impl Default for SubAgentMiddleware {
    fn default() -> Self {
        Self::new()
    }
}

impl SubAgentMiddleware {
    /// With the sub-agent `general-purpose`, which is like its parent.
    pub fn new() -> Self {
        Self { sub_agents: vec![SubAgent::new(SameAgent::NAME, GENERAL)] }
    }

    /// Without any; some are to be added.
    pub fn empty() -> Self {
        Self { sub_agents: Vec::new() }
    }

    /// Adds a kind of sub-agent; it takes the place of one of the same name.
    pub fn with(mut self, sub_agent: SubAgent) -> Self {
        self.sub_agents.retain(|known| known.name != sub_agent.name);
        self.sub_agents.push(sub_agent);
        self
    }

    /// Which skills the sub-agent `general-purpose` has.
    pub fn general_purpose(self, skills: SubAgentSkills) -> Self {
        self.with(SubAgent::new(SameAgent::NAME, GENERAL).skills(skills))
    }
}

impl Middleware for SubAgentMiddleware {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        engine.tool(Arc::new(TaskTool::new(self.sub_agents.clone())))
    }
}

struct TaskTool {
    declaration: ToolDeclaration,
    sub_agents: Vec<SubAgent>,
}

#[derive(Deserialize)]
struct Task {
    description: String,
    subagent_type: String,
}

impl TaskTool {
    fn new(sub_agents: Vec<SubAgent>) -> Self {
        let mut description = "Hand a task to a sub-agent. It sees nothing of this conversation, \
                               so say all that it needs; its last message is the result. \
                               Independent tasks can be handed out at once. Sub-agents:"
            .to_owned();
        for SubAgent { name, description: what, .. } in &sub_agents {
            description.push_str(&format!("\n- {name}: {what}"));
        }
        let names: Vec<&str> = sub_agents.iter().map(|it| it.name.as_str()).collect();
        let parameters = json!({
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "What is to be done, and what is to be reported."},
                "subagent_type": {"type": "string", "enum": names},
            },
            "required": ["description", "subagent_type"],
        });
        Self { declaration: ToolDeclaration::new("task", description, parameters), sub_agents }
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let arguments = invocation.call.arguments.clone();
        let task: Task = serde_json::from_value(arguments)
            .map_err(|error| invocation.invalid_arguments(error.to_string()))?;
        let sub_agent = self.find(&task.subagent_type)?;
        let run = invocation.caller::<Run>().ok_or_else(|| {
            let message = "Error: Only an agent can hand a task to a sub-agent.";
            ToolOutcome::error("subagent_failed", message)
        })?;
        let mut turn = TurnRequest::new().with_message(Message::user(task.description));
        turn.inherited = sub_agent.inherited(&invocation.state.loaded).to_vec();
        let agent = sub_agent.child_of(run.as_agent());
        let (call_id, label) = (&invocation.call.id, &sub_agent.name);
        let spawned = Spawn { run, call_id, agent, label, turn }.run().await;
        let spawned = spawned.map_err(|error| {
            let code = match error {
                SpawnError::TooDeep { .. } => "subagent_too_deep",
                SpawnError::Interrupted(_) => "subagent_interrupted",
                SpawnError::Failed(_) | SpawnError::Name(_) => "subagent_failed",
            };
            let message = format!("Error: The sub-agent '{label}' did not finish: {error}");
            ToolOutcome::error(code, message).with_hint("Try again, or do it without a sub-agent.")
        })?;
        let text = spawned.outcome.text();
        let said = if text.is_empty() { "(The sub-agent said nothing.)" } else { &text };
        let mut outcome = ToolOutcome::text(said);
        outcome.data = json!({
            "subagent_type": label,
            "agent": spawned.name.as_str(),
            "steps": spawned.outcome.steps,
        });
        Ok(outcome)
    }

    fn find(&self, name: &str) -> Result<&SubAgent, ToolOutcome> {
        self.sub_agents.iter().find(|it| it.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.sub_agents.iter().map(|it| it.name.as_str()).collect();
            let known = names.join(", ");
            let message = format!("Error: There is no sub-agent '{name}'. Sub-agents: {known}");
            ToolOutcome::error("unknown_subagent", message).with_hint("Hand it to one of them.")
        })
    }
}

impl Tool for TaskTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|failure| failure) })
    }
}
