//! What a host puts in the place of our words: the name of the load tool, what a model is told, and
//! what a skill becomes when it is loaded.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use prowess_catalog::CatalogSkill;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

/// Why a function of a host did not do what it is for.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A function of a host: it may take its time, and it may fail.
type Hook<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, Result<O, BoxError>> + Send + Sync>;

/// A skill with its text, for whoever makes something else of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkillContent {
    /// The skill.
    pub skill: CatalogSkill,
    /// What stands below its frontmatter, with arguments put in.
    pub content: String,
    /// The folder that it is in; absolute if it is on this machine.
    pub base_directory: String,
}

/// What a host puts in the place of our words. Every function may fail and takes its time; what
/// fails is told, and nothing goes on as if it had not.
///
/// ```
/// use prowess_runtime::Customisation;
///
/// let customisation = Customisation::new()
///     .skill_tool_name("use_skill")
///     .custom_system_prompt(|tool| async move { Ok(format!("Skills are read with {tool}.")) })
///     .build_content(|skill, _arguments| async move { Ok(skill.content.to_uppercase()) });
/// # let _ = customisation;
/// ```
#[derive(Clone, Default)]
pub struct Customisation {
    pub(crate) skill_tool_name: Option<String>,
    system_prompt: Option<Hook<String, String>>,
    tool_description: Option<Hook<Vec<CatalogSkill>, String>>,
    tool_params: Option<Hook<Map<String, Value>, Map<String, Value>>>,
    content: Option<Hook<(SkillContent, String), String>>,
}

/// A function of a host has failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {point}: {cause}")]
pub struct CustomisationError {
    /// What it was for.
    pub point: CustomisationPoint,
    /// Why.
    pub cause: BoxError,
}

/// What a function of a host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CustomisationPoint {
    /// [`Customisation::custom_system_prompt`]
    SystemPrompt,
    /// [`Customisation::custom_tool_description`]
    ToolDescription,
    /// [`Customisation::custom_tool_params`]
    ToolParams,
    /// [`Customisation::build_content`]
    Content,
}

impl std::fmt::Display for CustomisationPoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::SystemPrompt => "build skill system prompt",
            Self::ToolDescription => "build skill tool description",
            Self::ToolParams => "build skill tool params",
            Self::Content => "build skill result",
        })
    }
}

fn hook<I: 'static, O: 'static, F, Fut>(function: F) -> Hook<I, O>
where
    F: Fn(I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, BoxError>> + Send + 'static,
{
    Arc::new(move |input| Box::pin(function(input)))
}

impl Customisation {
    /// Nothing is different.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another name of the tool that loads a skill.
    pub fn skill_tool_name(mut self, name: impl Into<String>) -> Self {
        self.skill_tool_name = Some(name.into());
        self
    }

    /// What a model is told about using skills, from the name of the tool that loads one. Asked
    /// once; the answer stays.
    pub fn custom_system_prompt<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.system_prompt = Some(hook(function));
        self
    }

    /// The whole description of the tool that loads a skill, from the skills that a model may know
    /// of. It takes the place of the listing, wherever that would stand, and is frozen like it.
    pub fn custom_tool_description<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(Vec<CatalogSkill>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.tool_description = Some(hook(function));
        self
    }

    /// The parameters of the tool that loads a skill, from those that it has: JSON Schemas by name.
    /// None are those that it has. The one that names the skill is always there, and required.
    /// Asked once; the answer stays.
    pub fn custom_tool_params<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(Map<String, Value>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Map<String, Value>, BoxError>> + Send + 'static,
    {
        self.tool_params = Some(hook(function));
        self
    }

    /// What a model is given of a skill that it loads, from the skill and the arguments of the call
    /// as JSON.
    pub fn build_content<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(SkillContent, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.content = Some(hook(move |(skill, arguments)| function(skill, arguments)));
        self
    }

    /// Whether the listing is the host's own, in the description of the load tool.
    pub(crate) fn lists(&self) -> bool {
        self.tool_description.is_some()
    }

    /// Whether the parameters of the load tool are the host's own.
    pub(crate) fn has_parameters(&self) -> bool {
        self.tool_params.is_some()
    }

    /// Whether a host makes something of arguments that mean nothing to us.
    pub(crate) fn reads_arguments(&self) -> bool {
        self.content.is_some()
    }

    /// The host's own listing of these skills.
    pub(crate) async fn listing(
        &self,
        skills: impl FnOnce() -> Vec<CatalogSkill>,
    ) -> Option<Result<String, CustomisationError>> {
        let hook = self.tool_description.as_ref()?;
        Some(failing(CustomisationPoint::ToolDescription, hook(skills()).await))
    }

    /// What the host makes of a skill.
    pub(crate) async fn content(
        &self,
        skill: impl FnOnce() -> SkillContent,
        arguments: &Value,
    ) -> Option<Result<String, CustomisationError>> {
        let hook = self.content.as_ref()?;
        let built = hook((skill(), arguments.to_string())).await;
        Some(failing(CustomisationPoint::Content, built))
    }
}

fn failing<T>(
    point: CustomisationPoint,
    result: Result<T, BoxError>,
) -> Result<T, CustomisationError> {
    result.map_err(|cause| CustomisationError { point, cause })
}

/// What a host was asked once.
#[derive(Default)]
pub(crate) struct Asked {
    guidance: OnceCell<String>,
    parameters: OnceCell<Value>,
}

impl Asked {
    /// What a model is told about using skills, if the host says so.
    pub(crate) async fn guidance(
        &self,
        customisation: &Customisation,
        tool: &str,
    ) -> Option<Result<&String, CustomisationError>> {
        let hook = customisation.system_prompt.as_ref()?;
        let ask =
            || async { failing(CustomisationPoint::SystemPrompt, hook(tool.to_owned()).await) };
        Some(self.guidance.get_or_try_init(ask).await)
    }

    /// The schema of the load tool's arguments, if the host says so.
    pub(crate) async fn parameters(
        &self,
        customisation: &Customisation,
        own: &Value,
        skill: &str,
    ) -> Option<Result<&Value, CustomisationError>> {
        let hook = customisation.tool_params.as_ref()?;
        let ask = || async {
            let defaults = own["properties"].as_object().cloned().unwrap_or_default();
            let asked = hook(defaults.clone()).await;
            let mut properties = failing(CustomisationPoint::ToolParams, asked)?;
            if properties.is_empty() {
                return Ok(own.clone());
            }
            if properties.get(skill).is_none_or(|schema| !schema.is_object()) {
                let default = defaults.get(skill).cloned();
                properties.insert(skill.to_owned(), default.unwrap_or_else(|| json!({})));
            }
            Ok(json!({"type": "object", "properties": properties, "required": [skill]}))
        };
        Some(self.parameters.get_or_try_init(ask).await)
    }
}
