//! Models of providers, over HTTP.

mod answer;
mod ask;
mod failure;
mod key;
mod name;
mod openai;
mod quiet;
mod settings;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};

use self::answer::{Answer, response_of};
use self::failure::Failure;
use self::quiet::Quiet;
use super::retry::RetryingModel;
use super::{ChatModel, ModelError, ModelFuture, ModelRequest, ModelStream};

pub use key::ApiKey;
pub use name::{ModelName, Provider};
pub use settings::ProviderSettings;

/// A model of OpenAI, Anthropic, Gemini, Ollama, or of whatever speaks like OpenAI.
///
/// A name is `provider:model`, such as `openai:gpt-5`, `anthropic:claude-sonnet-4-5`,
/// `gemini:gemini-2.5-pro` or `ollama:qwen3`. Keys come from `OPENAI_API_KEY`,
/// `ANTHROPIC_API_KEY`, and `GEMINI_API_KEY` or `GOOGLE_API_KEY`, unless one is given. A key is
/// sent to the provider and to nobody else; redirects are not followed.
///
/// ```
/// use prowess_agent::{ApiKey, ChatModel, ProviderModel, ProviderSettings};
///
/// let settings = ProviderSettings::default().with_base_url("http://localhost:8000/v1");
/// let model = ProviderModel::new("openai:qwen3", settings, Some(ApiKey::new("secret")))?;
/// assert_eq!(model.name(), "openai:qwen3");
/// assert!(!format!("{model:?}").contains("secret"));
/// # Ok::<(), prowess_agent::ModelError>(())
/// ```
#[derive(Debug)]
pub struct ProviderModel(RetryingModel<Once>);

impl ProviderModel {
    /// This model; the key comes from the environment unless it is given.
    pub fn new(
        name: &str,
        settings: ProviderSettings,
        key: Option<ApiKey>,
    ) -> Result<Self, ModelError> {
        let name: ModelName = name.parse()?;
        let key = key.or_else(|| ApiKey::of(name.provider));
        let retry = settings.retry.clone();
        Ok(Self(RetryingModel::new(Once::new(name, settings, key)?, retry)))
    }

    /// This model as the environment and the defaults have it.
    pub fn from_env(name: &str) -> Result<Self, ModelError> {
        Self::new(name, ProviderSettings::default(), None)
    }
}

impl ChatModel for ProviderModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        self.0.complete(request)
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        self.0.stream(request)
    }
}

/// One attempt.
struct Once {
    name: ModelName,
    shown: String,
    settings: ProviderSettings,
    key: Option<ApiKey>,
    client: Client,
    endpoint: Endpoint,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Model")
            .field("name", &self.shown)
            .field("settings", &self.settings)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Once {
    fn new(
        name: ModelName,
        settings: ProviderSettings,
        key: Option<ApiKey>,
    ) -> Result<Self, ModelError> {
        let provider = name.provider;
        let variables = provider.key_variables();
        if key.is_none() && !variables.is_empty() && settings.base_url.is_none() {
            let message = format!("{} is not set, and no key is given", variables.join(" or "));
            return Err(ModelError::Auth { message });
        }
        let endpoint = match &settings.base_url {
            Some(url) => Endpoint::from_owned(settings::base_url(url)?),
            None => Endpoint::from_static(provider.base_url()),
        };
        let client = Client::builder().with_reqwest(http_client(&settings)?).build();
        let client = client.map_err(|_| unusable("the HTTP client cannot be set up"))?;
        Ok(Self { shown: name.to_string(), name, settings, key, client, endpoint })
    }

    fn target(&self) -> ServiceTarget {
        // Whoever speaks like OpenAI on this machine mostly wants no key, but takes any.
        let key = self.key.as_ref().map_or("none", ApiKey::reveal);
        let model = ModelIden::new(adapter(self.name.provider), self.name.model.as_str());
        let auth = AuthData::from_single(key);
        ServiceTarget { endpoint: self.endpoint.clone(), auth, model }
    }

    fn options(&self, request: &ModelRequest) -> ChatOptions {
        let millis = Duration::from_millis;
        ask::options(request, self.name.provider)
            .with_stream_header_timeout(millis(self.settings.response_timeout_ms))
            .with_stream_read_timeout(millis(self.settings.idle_timeout_ms))
    }

    fn failure<'a>(&'a self) -> Failure<'a> {
        Failure { settings: &self.settings, key: self.key.as_ref() }
    }
}

impl ChatModel for Once {
    fn name(&self) -> &str {
        &self.shown
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            if request.cancel.is_cancelled() {
                return Err(ModelError::Cancelled);
            }
            let options = self.options(request).with_capture_raw_body(true);
            let chat = ask::chat(request, self.name.provider, self.settings.base_url.is_some());
            let asked = Quiet(Box::pin(self.client.exec_chat(self.target(), chat, Some(&options))));
            let limit = self.settings.response_timeout_ms;
            let answer = tokio::select! {
                () = request.cancel.cancelled() => return Err(ModelError::Cancelled),
                answer = tokio::time::timeout(Duration::from_millis(limit), asked) => answer,
            };
            let late = |_| ModelError::Timeout { message: format!("nothing came for {limit} ms") };
            response_of(self.name.provider, answer.map_err(late)?, &self.failure())
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let begun = async move {
            let options = self.options(request);
            let chat = ask::chat(request, self.name.provider, self.settings.base_url.is_some());
            let asked = self.client.exec_chat_stream(self.target(), chat, Some(&options));
            match Quiet(Box::pin(asked)).await {
                Ok(answer) => Answer::new(self.name.provider, answer.stream),
                Err(error) => Answer::failed(self.failure().of(error)),
            }
        };
        let events = stream::once(begun).flat_map(move |answer| {
            stream::unfold(answer, move |mut answer| async move {
                let failure = self.failure();
                let next = tokio::select! {
                    biased;
                    () = request.cancel.cancelled(), if !answer.is_over() => {
                        answer.end();
                        Some(Err(ModelError::Cancelled))
                    }
                    next = answer.next(&failure) => next,
                };
                next.map(|event| (event, answer))
            })
        });
        Box::pin(events)
    }
}

fn adapter(provider: Provider) -> AdapterKind {
    match provider {
        Provider::OpenAi => AdapterKind::OpenAI,
        Provider::Anthropic => AdapterKind::Anthropic,
        Provider::Gemini => AdapterKind::Gemini,
        Provider::Ollama => AdapterKind::Ollama,
    }
}

fn unusable(message: &str) -> ModelError {
    ModelError::InvalidRequest { message: message.to_owned() }
}

fn http_client(settings: &ProviderSettings) -> Result<reqwest::Client, ModelError> {
    // Whoever runs us may have chosen a provider of cryptography; otherwise it is ring.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder()
        .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
        // Keys in headers of the providers' own would follow.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|_| unusable("the HTTP client cannot be set up"))
}
