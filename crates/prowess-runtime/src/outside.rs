//! What a skill gives outside of any session, and whether an engine can use it at all.

use prowess_catalog::CatalogSkill;
use prowess_format::Diagnostic;
use serde_json::{Value, json};

use crate::bind::Quarantined;
use crate::disclose::refused;
use crate::engine::Engine;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::runtime::Runtime;
use crate::session::{AgentName, SessionKey, SessionState};
use crate::tool::Invocation;
use crate::tools::{DETAIL, LOAD, detail_text};

/// The skill need not be one of the catalog: whoever keeps skills asks about those that it keeps.
impl Runtime {
    /// What keeps this engine from using a skill (errors, as in [`Runtime::quarantined`]), and what
    /// of its declarations does not count here (warnings).
    pub async fn findings(&self, skill: &CatalogSkill) -> Vec<Diagnostic> {
        self.inner.findings(skill).await
    }

    /// Whether something of the text that loading a skill gives is made when it is loaded.
    pub fn has_opening(&self, skill: &CatalogSkill) -> bool {
        self.inner.opening(skill).is_some()
    }

    /// The text that loading a skill gives: its body, below what the host says above it. Places for
    /// arguments stay as they are. No session knows of it, whoever it is for, and nothing is kept.
    pub async fn skill_text(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        skill: &CatalogSkill,
    ) -> ToolOutcome {
        let call = ToolCall::new("", LOAD, json!({"skill": skill.name()}));
        self.outside(session, agent, skill, &call, async |invocation| {
            invocation.engine.text_as_written(invocation.snapshot, skill).await
        })
        .await
    }

    /// The text of a resource as `load_skill_detail` gives it: made now, written in the
    /// frontmatter, or in a file. No session knows of it, whoever it is for.
    pub async fn resource_text(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        skill: &CatalogSkill,
        resource: &str,
    ) -> ToolOutcome {
        let arguments = json!({"skill": skill.name(), "resource": resource});
        let call = ToolCall::new("", DETAIL, arguments);
        self.outside(session, agent, skill, &call, async |invocation| {
            detail_text(invocation, skill.name(), skill, resource, &Value::Null).await
        })
        .await
    }

    /// Reads something of a skill that can be used, for an agent that has loaded nothing.
    async fn outside<'a>(
        &'a self,
        session: &'a SessionKey,
        agent: &'a AgentName,
        skill: &'a CatalogSkill,
        call: &'a ToolCall,
        read: impl AsyncFnOnce(Invocation<'_>) -> Result<String, ToolOutcome>,
    ) -> ToolOutcome {
        let given = match self.inner.bound(skill).await {
            Err(diagnostics) => Err(refused(&Quarantined { skill: skill.clone(), diagnostics })),
            Ok(()) => {
                let view = self.inner.skills_of(session, agent).await.1;
                let engine = &Engine::new(&self.inner, session, agent, &view);
                let (state, snapshot) = (&SessionState::default(), &view.snapshot);
                read(Invocation { session, agent, state, snapshot, call, engine }).await
            }
        };
        let mut outcome = given.map_or_else(|failure| failure, ToolOutcome::text);
        self.inner.dialect.render(&mut outcome);
        outcome.about(skill.name())
    }
}
