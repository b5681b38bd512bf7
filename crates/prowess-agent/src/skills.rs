//! The engine as middleware.

use std::sync::Arc;

use prowess_catalog::Catalog;
use prowess_runtime::{Dialect, RuntimeBuilder, Settings};

use crate::error::AgentError;
use crate::middleware::{Middleware, ModelCall};
use crate::model::ChatModel;
use crate::run::Run;

/// Models by name, for skills that ask for another one than the agent's own.
pub trait ModelHub: Send + Sync + 'static {
    /// The model of this name.
    fn get(&self, name: &str) -> Option<Arc<dyn ChatModel>>;
}

impl<F: Fn(&str) -> Option<Arc<dyn ChatModel>> + Send + Sync + 'static> ModelHub for F {
    fn get(&self, name: &str) -> Option<Arc<dyn ChatModel>> {
        self(name)
    }
}

/// The engine as middleware: the listing, the conversation with the text of loaded skills, the
/// tools of the moment, and the model that a loaded skill asks for.
///
/// It decides about tools and messages of a request; a middleware that changes those is added
/// behind it.
///
/// ```
/// use std::sync::Arc;
/// use prowess_agent::{Agent, Reply, RunRequest, ScriptedModel, SkillsMiddleware};
/// use prowess_catalog::{Catalog, MemorySource};
/// use prowess_runtime::ToolCall;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let text = "---\nname: greet\ndescription: Greets people.\n---\nSay: good day.\n";
/// let source = MemorySource::new("built-in").with_skill("greet", text);
/// let model = Arc::new(ScriptedModel::new([
///     Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "greet"}))]),
///     Reply::text("Good day."),
/// ]));
/// let agent = Agent::builder(model.clone())
///     .middleware(SkillsMiddleware::new(Catalog::builder().source(source).build()))
///     .build()?;
/// agent.run(RunRequest::new("demo".parse()?, "Hello!")).await?;
/// let requests = model.requests();
/// assert!(requests[0].system.contains("- greet: Greets people."));
/// assert_eq!(requests[1].messages[2].tool_results().next().unwrap().content, "Say: good day.");
/// # Ok::<(), prowess_agent::AgentError>(())
/// # }).unwrap();
/// ```
pub struct SkillsMiddleware {
    catalog: Catalog,
    dialect: Option<Dialect>,
    settings: Option<Settings>,
    models: Option<Arc<dyn ModelHub>>,
}

impl SkillsMiddleware {
    /// The skills of a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog, dialect: None, settings: None, models: None }
    }

    /// Speaks to the model in another dialect.
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Other settings than those of the dialect.
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Models for skills that ask for one.
    pub fn with_models(mut self, models: impl ModelHub) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// The model that a loaded skill asks for.
    async fn model(&self, run: &Run) -> Result<Option<Arc<dyn ChatModel>>, AgentError> {
        let Some(wanted) = run.state().await?.model else { return Ok(None) };
        let found = self.models.as_ref().and_then(|models| models.get(&wanted.model));
        if found.is_none() {
            let (skill, model) = (&wanted.skill, &wanted.model);
            let message = format!(
                "skill '{skill}' asks for the model '{model}', which is not there; the agent's \
                 own goes on"
            );
            run.problem(message).await;
        }
        Ok(found)
    }
}

impl Middleware for SkillsMiddleware {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        let mut engine = engine.catalog(self.catalog.clone());
        if let Some(dialect) = &self.dialect {
            engine = engine.dialect(dialect.clone());
        }
        if let Some(settings) = &self.settings {
            engine = engine.settings(settings.clone());
        }
        engine
    }

    async fn before_model(&self, run: &Run, call: &mut ModelCall) -> Result<(), AgentError> {
        let prompt = {
            let mut conversation = run.conversation.lock().await;
            let system = Some(call.request.system.as_str());
            run.runtime.next_request(&mut conversation, system).await?
        };
        for message in prompt.problems {
            run.problem(message).await;
        }
        call.request.system = prompt.system;
        call.request.tools = prompt.tools;
        call.request.messages = prompt.messages;
        if let Some(model) = self.model(run).await? {
            call.model = model;
        }
        Ok(())
    }
}

impl std::fmt::Debug for SkillsMiddleware {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SkillsMiddleware")
            .field("catalog", &self.catalog)
            .finish_non_exhaustive()
    }
}
