//! Models: what they are asked, what they answer, and how that fails.

mod error;
#[cfg(feature = "providers")]
mod provider;
mod request;
mod response;
mod retry;
#[cfg(any(feature = "providers", feature = "rig"))]
pub(crate) mod status;

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::{StreamExt, stream};

pub use error::ModelError;
#[cfg(feature = "providers")]
pub use provider::{ApiKey, ModelName, Provider, ProviderModel, ProviderSettings};
pub use request::{Cache, ModelOptions, ModelRequest, ReasoningEffort, ToolChoice};
pub use response::{FinishReason, Fold, ModelEvent, ModelResponse, arguments_of};
pub use retry::{RetryPolicy, RetryingModel};

/// A future that a model returns.
pub type ModelFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ModelResponse, ModelError>> + Send + 'a>>;

/// What a model says, bit by bit. Ends with [`ModelEvent::Finished`] or with an error.
pub type ModelStream<'a> = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send + 'a>>;

/// Something that answers a conversation.
///
/// Both ways answer alike: the events of [`ChatModel::stream`] fold into the response that
/// [`ChatModel::complete`] would have given. Both end with [`ModelError::Cancelled`] soon after
/// [`ModelRequest::cancel`] is cancelled.
///
/// ```
/// use prowess_agent::{ChatModel, ModelRequest, ScriptedModel, Reply};
/// use prowess_runtime::Message;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([Reply::text("Forty-two.")]);
/// let request = ModelRequest::new([Message::user("How many?")]);
/// let response = model.complete(&request).await?;
/// assert_eq!(response.message.text(), "Forty-two.");
/// # Ok::<(), prowess_agent::ModelError>(())
/// # }).unwrap();
/// ```
pub trait ChatModel: Send + Sync + 'static {
    /// What it is called, such as `openai:gpt-5`.
    fn name(&self) -> &str;

    /// Answers at once.
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a>;

    /// Answers bit by bit; by itself, all that [`ChatModel::complete`] says.
    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let answer = self.complete(request);
        Box::pin(stream::once(answer).flat_map(|answer| {
            let events = match answer {
                Ok(response) => response.into_events().into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(events)
        }))
    }
}

impl std::fmt::Debug for dyn ChatModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("ChatModel").field(&self.name()).finish()
    }
}

impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        (**self).complete(request)
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        (**self).stream(request)
    }
}
