//! Which model is talked with.

use prowess_agent::{
    ModelError, ModelName, Provider, ProviderModel, ProviderSettings, RetryPolicy, RunLimits,
    SubAgentSkills, SummarizationSettings,
};
use serde::Deserialize;

use super::failure::Failure;
use crate::cli::ChatArgs;

/// What the model is told first, unless somebody says something else.
const SYSTEM: &str = "You help a person at a terminal. Answer in plain text, as briefly as the \
                      question allows. Say what you did and what you could not do.";

/// Somebody waits: so often is a model asked that fails.
const ATTEMPTS: u32 = 3;

/// How a model is named.
pub(super) const EXAMPLES: &str = "\
Hint: name a model, here or as `model` in [chat] of $PROWESS_HOME/prowess.toml:
  --model anthropic:claude-sonnet-4-5    its key is in ANTHROPIC_API_KEY; also openai: and gemini:
  --model ollama:qwen3                   a model of this machine
  --model openai:NAME --base-url http://localhost:8000/v1
                                         whatever speaks like OpenAI";

/// `[chat]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChatSettings {
    model: Option<String>,
    base_url: Option<String>,
    system: Option<String>,
    /// Which skills sub-agents have.
    pub(super) subagent_skills: SubAgentSkills,
    /// When a conversation is summed up.
    pub(super) summarization: SummarizationSettings,
    /// Whether code in answers is run.
    pub(super) code_blocks: CodeBlocks,
    /// What bounds a turn.
    pub(super) limits: RunLimits,
}

/// Whether code in answers is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeBlocks {
    /// It is text.
    #[default]
    Off,
    /// Fenced `python` and `bash` blocks are run in the sandbox of the session.
    Run,
}

/// A model, where it is, and what it is told first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) name: ModelName,
    pub(super) base_url: Option<String>,
    pub(super) system: String,
}

/// What was typed counts; then what is set.
pub(super) fn choose(arguments: &ChatArgs, set: ChatSettings) -> Result<Choice, Failure> {
    let parse = |text: &str| text.parse::<ModelName>().map_err(|error| own(&error));
    let typed = arguments.model.as_deref().map(parse).transpose()?;
    let known = set.model.as_deref().map(parse).transpose()?;
    let is_other = match (&typed, &known) {
        (Some(typed), Some(known)) => typed.provider != known.provider,
        _ => false,
    };
    // Where one provider is says nothing of another, whose key must not go there.
    let base_url = arguments.base_url.clone().or(set.base_url.filter(|_| !is_other));
    let system = arguments.system.clone().or(set.system).unwrap_or_else(|| SYSTEM.to_owned());
    match typed.or(known) {
        Some(name) => Ok(Choice { name, base_url, system }),
        None => Err(Failure::new("no_model", "no model is named")),
    }
}

/// A failure of ours, before any provider was asked.
fn own(error: &ModelError) -> Failure {
    match error {
        ModelError::InvalidRequest { message } => Failure::new(error.code(), message),
        error => Failure::new(error.code(), error),
    }
}

impl Choice {
    /// The model.
    pub(super) fn open(&self) -> Result<ProviderModel, Failure> {
        let retry = RetryPolicy::default().with_max_attempts(ATTEMPTS);
        let mut settings = ProviderSettings::default().with_retry(retry);
        settings.base_url.clone_from(&self.base_url);
        ProviderModel::new(&self.name.to_string(), settings, None).map_err(|error| match error {
            ModelError::InvalidRequest { .. } => {
                own(&error).with_hint("such as --base-url http://localhost:8000/v1")
            }
            error => self.failure(&error),
        })
    }

    /// What went wrong, and what to do about it.
    pub(super) fn failure(&self, error: &ModelError) -> Failure {
        let failure = Failure::new(error.code(), error);
        match self.remedy(error) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }

    fn remedy(&self, error: &ModelError) -> Option<String> {
        let provider = self.name.provider;
        let place = self.base_url.as_deref().unwrap_or(provider.base_url());
        let keys = provider.key_variables().join(" or ");
        Some(match error {
            ModelError::Auth { .. } if keys.is_empty() => return None,
            ModelError::Auth { .. } => format!(
                "put a key that is valid into {keys}; a server of your own, at --base-url \
                 http://localhost:8000/v1, or --model ollama:qwen3 needs none"
            ),
            ModelError::Network { .. } if provider == Provider::Ollama => {
                format!("is Ollama running at {place}? `ollama serve` starts it")
            }
            ModelError::Network { .. } => {
                format!("does a server answer at {place}? --base-url says where it is")
            }
            ModelError::ContextOverflow { .. } => {
                "begin a new session, or unload skills".to_owned()
            }
            ModelError::InvalidRequest { .. } => {
                format!("does {place} have the model '{}'?", self.name.model)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn typed(words: &[&str]) -> ChatArgs {
        let all = [&["prowess", "chat"], words].concat();
        match Cli::parse_from(all).command {
            Command::Chat(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn chosen(words: &[&str], set: &str) -> String {
        match choose(&typed(words), toml::from_str(set).unwrap()) {
            Ok(Choice { name, base_url, .. }) => {
                format!("{name} at {}", base_url.as_deref().unwrap_or("home"))
            }
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn what_is_typed_counts_and_then_what_is_set() {
        let local = "model = 'openai:a'\nbase_url = 'http://here/'";
        let table: [(&[&str], &str, &str); 9] = [
            (&[], "", "no_model"),
            (&["--model", "openai:b"], "", "openai:b at home"),
            (&[], local, "openai:a at http://here/"),
            (&["--model", "openai:b"], local, "openai:b at http://here/"),
            (&["--base-url", "http://there/"], local, "openai:a at http://there/"),
            // The key of another provider does not go there.
            (&["--model", "anthropic:c"], local, "anthropic:c at home"),
            (&["--model", "ollama:q:8b"], "base_url = 'http://x/'", "ollama:q:8b at http://x/"),
            (&["--model", "gpt"], local, "invalid_request"),
            (&[], "model = 'gpt'", "invalid_request"),
        ];
        for (words, set, expected) in table {
            assert_eq!(chosen(words, set), expected, "{words:?} {set}");
        }
    }

    #[test]
    fn what_the_model_is_told_can_be_set() {
        let system = |words: &[&str], set: &str| {
            let words = [&["--model", "ollama:q"], words].concat();
            choose(&typed(&words), toml::from_str(set).unwrap()).unwrap().system
        };
        assert_eq!(system(&[], ""), SYSTEM);
        assert_eq!(system(&[], "system = 'Set.'"), "Set.");
        assert_eq!(system(&["--system", "Typed."], "system = 'Set.'"), "Typed.");
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let message = || "it says so".to_owned();
        let errors = [
            ModelError::Auth { message: message() },
            ModelError::Network { message: message() },
            ModelError::ContextOverflow { message: message() },
            ModelError::InvalidRequest { message: message() },
            ModelError::Timeout { message: message() },
        ];
        let mut out = String::new();
        for (name, base_url) in
            [("openai:gpt", None), ("ollama:q", None), ("openai:m", Some("http://here/v1"))]
        {
            let base_url = base_url.map(str::to_owned);
            let choice = Choice { name: name.parse().unwrap(), base_url, system: String::new() };
            for error in &errors {
                let Failure { code, hint, .. } = choice.failure(error);
                out += &format!("{name} {code}: {}\n", hint.unwrap_or_default());
            }
        }
        insta::assert_snapshot!(out);
    }
}
