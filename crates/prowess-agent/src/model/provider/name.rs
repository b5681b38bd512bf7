//! Names of models: `provider:model`.

use std::fmt;
use std::str::FromStr;

use crate::model::ModelError;

/// Who runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI, and whoever speaks like it.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Ollama.
    Ollama,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// How it is called in the name of a model.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where its key is looked for in the environment, in order.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Ollama => &[],
        }
    }

    /// Where it is, unless a base URL is set.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Ollama => "http://localhost:11434/",
        }
    }
}

/// The name of a model: `provider:model`.
///
/// ```
/// use prowess_agent::{ModelName, Provider};
///
/// let name: ModelName = "ollama:qwen3:8b".parse()?;
/// assert_eq!((name.provider, name.model.as_str()), (Provider::Ollama, "qwen3:8b"));
/// assert!("gpt-5".parse::<ModelName>().is_err());
/// # Ok::<(), prowess_agent::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelName {
    /// Who runs it.
    pub provider: Provider,
    /// What the provider calls it.
    pub model: String,
}

impl FromStr for ModelName {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = || Provider::ALL.map(Provider::name).join(", ");
        let invalid = |cause: String| ModelError::InvalidRequest {
            message: format!("'{text}' does not name a model: {cause}"),
        };
        let (provider, model) = text.split_once(':').ok_or_else(|| {
            invalid(format!("write provider:model, where the provider is one of {}", known()))
        })?;
        let provider = Provider::ALL
            .into_iter()
            .find(|known| known.name() == provider)
            .ok_or_else(|| invalid(format!("'{provider}' is none of {}", known())))?;
        if model.trim().is_empty() {
            return Err(invalid("there is nothing after the provider".to_owned()));
        }
        Ok(Self { provider, model: model.to_owned() })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.provider.name(), self.model)
    }
}
