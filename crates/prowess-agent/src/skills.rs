//! The engine as middleware.

use std::sync::Arc;

use prowess_catalog::Catalog;
use prowess_runtime::{
    BoxError, Change, Customisation, Dialect, Intercepted, Interceptor, InterceptorFuture, Message,
    ModelOverride, RuntimeBuilder, Settings, ToolOutcome,
};

use crate::error::AgentError;
use crate::fork::{
    BuildForkMessages, FormatForkResult, HubForker, SubAgentInput, SubAgentOutput,
    model_unavailable,
};
use crate::hub::{AgentHub, ModelHub, NotInHub};
use crate::middleware::{Middleware, ModelCall};
use crate::model::ChatModel;
use crate::run::Run;

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
    customisation: Customisation,
    agents: Option<Arc<dyn AgentHub>>,
    models: Option<Arc<dyn ModelHub>>,
    build_fork_messages: Option<BuildForkMessages>,
    format_fork_result: Option<FormatForkResult>,
}

impl SkillsMiddleware {
    /// The skills of a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            dialect: None,
            settings: None,
            customisation: Customisation::default(),
            agents: None,
            models: None,
            build_fork_messages: None,
            format_fork_result: None,
        }
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

    /// Models for skills that ask for one (`model`).
    pub fn with_models(mut self, models: impl ModelHub) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// Agents for skills that run in one of their own (`context: fork`).
    pub fn with_agents(mut self, agents: impl AgentHub) -> Self {
        self.agents = Some(Arc::new(agents));
        self
    }

    /// Other words than ours: the name and the parameters of the load tool, what a model is told,
    /// what a skill becomes when it is loaded.
    pub fn with_customisation(mut self, customisation: Customisation) -> Self {
        self.customisation = customisation;
        self
    }

    /// What a sub-agent begins with. By default the text of the skill, and before it the
    /// conversation under [`prowess_runtime::ContextMode::ForkWithContext`].
    pub fn build_fork_messages<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(SubAgentInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Message>, BoxError>> + Send + 'static,
    {
        self.build_fork_messages = Some(Arc::new(move |input| Box::pin(function(input))));
        self
    }

    /// What is told of what a sub-agent has done. By default what it said.
    pub fn format_fork_result<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(SubAgentOutput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.format_fork_result = Some(Arc::new(move |output| Box::pin(function(output))));
        self
    }

    /// The model that a loaded skill asks for.
    async fn model(&self, run: &Run) -> Result<Option<Arc<dyn ChatModel>>, AgentError> {
        let Some(wanted) = run.state().await?.model else { return Ok(None) };
        let cause = match &self.models {
            None => NotInHub.into(),
            Some(models) => match models.get(&wanted.model).await {
                Ok(model) => return Ok(Some(model)),
                Err(cause) => cause,
            },
        };
        let ModelOverride { skill, model, .. } = &wanted;
        let message = format!(
            "skill '{skill}' asks for the model '{model}', which is not there ({cause}); the \
             agent's own goes on"
        );
        run.problem(message).await;
        Ok(None)
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
        engine = engine.customise(self.customisation.clone());
        if let Some(models) = &self.models {
            engine = engine.interceptor(Arc::new(KnownModels { models: Arc::clone(models) }));
        }
        if let Some(agents) = &self.agents {
            engine = engine.forker(Arc::new(HubForker {
                agents: Arc::clone(agents),
                models: self.models.clone(),
                build_messages: self.build_fork_messages.clone(),
                format_result: self.format_fork_result.clone(),
            }));
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

/// A skill that asks for a model that is not there is not loaded.
struct KnownModels {
    models: Arc<dyn ModelHub>,
}

impl Interceptor for KnownModels {
    fn after<'a>(
        &'a self,
        _call: Intercepted<'a>,
        outcome: ToolOutcome,
    ) -> InterceptorFuture<'a, ToolOutcome> {
        Box::pin(async move {
            for change in &outcome.changes {
                if let Change::Load { skill, model: Some(model) } = change
                    && let Err(cause) = self.models.get(model).await
                {
                    return model_unavailable(&skill.name, model, &cause).about(&skill.name);
                }
            }
            outcome
        })
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
