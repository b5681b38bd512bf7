//! Skills that run in a sub-agent: `context: fork` and `context: fork_with_context`.

use std::collections::HashSet;

use prowess_catalog::CatalogSkill;
use prowess_format::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::disclose::folder_of;
use crate::message::{Message, Part};
use crate::outcome::ToolOutcome;
use crate::prompt::PromptRequest;
use crate::session::LoadedSkill;
use crate::tool::{Invocation, ToolFuture};
use crate::tools::Opening;

/// What the sub-agent of a skill sees of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextMode {
    /// Nothing: the text of the skill is all that it begins with.
    Fork,
    /// All of it, up to the call that loads the skill.
    ForkWithContext,
}

impl ContextMode {
    /// Where a skill runs; `None`: in the conversation itself.
    pub fn of(skill: &CatalogSkill) -> Option<Self> {
        match skill.found().frontmatter.context()? {
            Context::Fork => Some(Self::Fork),
            Context::ForkWithContext => Some(Self::ForkWithContext),
            _ => None,
        }
    }

    /// As a `SKILL.md` says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::ForkWithContext => "fork_with_context",
        }
    }
}

impl std::fmt::Display for ContextMode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Runs skills in sub-agents. The engine knows none: whoever has agents brings this.
///
/// What goes wrong is an outcome. What the sub-agent says is an outcome with the code `forked` and
/// the data `{skill, results}`; the dialect has the words.
pub trait Forker: Send + Sync + 'static {
    /// Runs a skill.
    fn fork<'a>(&'a self, fork: Fork<'a>) -> ToolFuture<'a>;
}

/// A skill that is to run in a sub-agent.
pub struct Fork<'a> {
    pub(crate) opening: Opening<'a>,
    /// What the sub-agent sees.
    pub mode: ContextMode,
}

/// What a sub-agent is given of the skill that it runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForkContent {
    /// What a model would have been given that loads the skill.
    pub text: String,
    /// What the sub-agent's state keeps of it.
    pub loaded: LoadedSkill,
}

impl<'a> Fork<'a> {
    /// The call that asks for it.
    pub fn invocation(&self) -> Invocation<'a> {
        self.opening.invocation
    }

    /// The skill.
    pub fn skill(&self) -> &'a CatalogSkill {
        self.opening.skill
    }

    /// The name that the session knows it by.
    pub fn name(&self) -> &str {
        self.opening.name
    }

    /// The folder that the skill is in; absolute if it is on this machine.
    pub fn base_directory(&self) -> String {
        folder_of(self.opening.skill)
    }

    /// The text of the skill, as a model that loads it is given it.
    pub async fn content(&self) -> Result<ForkContent, ToolOutcome> {
        let (mut opened, docs) = self.opening.open().await?;
        let mut outcome = self.opening.given(&mut opened, &docs).await?;
        self.opening.invocation.engine.inner.dialect.render(&mut outcome);
        Ok(ForkContent { text: outcome.content, loaded: opened.loaded })
    }

    /// The conversation up to the call, as the model sees it, without the system prompt. Every call
    /// in it is answered, but for this one.
    pub async fn history(&self) -> Result<Vec<Message>, ToolOutcome> {
        let Invocation { session, agent, call, engine, .. } = self.opening.invocation;
        let mut request = PromptRequest::new();
        request.transcript = engine.transcript.map(<[Message]>::to_vec);
        let prompt = engine.inner.prompt(session, agent, request).await.map_err(|error| {
            let data = json!({"skill": self.name(), "cause": error.to_string()});
            ToolOutcome::failed("history_unavailable", data)
        })?;
        let mut messages = Vec::clone(&prompt.messages);
        messages.extend(engine.said.cloned());
        let results = messages.iter().flat_map(Message::tool_results);
        let mut answered: HashSet<String> = results.map(|it| it.call_id.clone()).collect();
        answered.insert(call.id.clone());
        for message in &mut messages {
            let is_open =
                |it: &Part| matches!(it, Part::ToolCall(it) if !answered.contains(&it.id));
            message.parts.retain(|part| !is_open(part));
        }
        messages.retain(|message| !message.parts.is_empty());
        Ok(messages)
    }
}
