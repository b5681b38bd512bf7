//! Trying again.

use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{ChatModel, ModelError, ModelFuture, ModelRequest, ModelStream};

/// How often, how long and how soon a failed request is made again.
///
/// ```
/// use std::time::Duration;
/// use prowess_agent::{ModelError, RetryPolicy};
///
/// let policy = RetryPolicy::default();
/// let error = ModelError::Network { message: "connection refused".into() };
/// // Between half and all of the delay, so that many clients do not return at once.
/// assert_eq!(policy.delay(1, &error, Duration::ZERO, 0.0), Some(Duration::from_millis(250)));
/// assert_eq!(policy.delay(1, &ModelError::Cancelled, Duration::ZERO, 0.0), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many attempts there are, the first one included.
    pub max_attempts: u32,
    /// How long the first wait is, in milliseconds; every further one is twice as long.
    pub first_delay_ms: u64,
    /// How long a wait becomes, in milliseconds, unless the provider asks for more.
    pub max_delay_ms: u64,
    /// When nothing more is tried, in milliseconds since the first attempt began.
    pub deadline_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 5, first_delay_ms: 500, max_delay_ms: 30_000, deadline_ms: 300_000 }
    }
}

impl RetryPolicy {
    /// One attempt, and no other.
    pub fn never() -> Self {
        Self::default().with_max_attempts(1)
    }

    /// Sets [`RetryPolicy::max_attempts`].
    pub fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets [`RetryPolicy::first_delay_ms`].
    pub fn with_first_delay_ms(mut self, first_delay_ms: u64) -> Self {
        self.first_delay_ms = first_delay_ms;
        self
    }

    /// Sets [`RetryPolicy::max_delay_ms`].
    pub fn with_max_delay_ms(mut self, max_delay_ms: u64) -> Self {
        self.max_delay_ms = max_delay_ms;
        self
    }

    /// Sets [`RetryPolicy::deadline_ms`].
    pub fn with_deadline_ms(mut self, deadline_ms: u64) -> Self {
        self.deadline_ms = deadline_ms;
        self
    }

    /// How long to wait after this many attempts; nothing if that was the last one. `jitter` is
    /// between 0 and 1.
    pub fn delay(
        &self,
        attempts: u32,
        error: &ModelError,
        elapsed: Duration,
        jitter: f64,
    ) -> Option<Duration> {
        if !error.is_retryable() || attempts >= self.max_attempts {
            return None;
        }
        let doubled = 1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX);
        let longest = self.first_delay_ms.saturating_mul(doubled).min(self.max_delay_ms);
        let half = Duration::from_millis(longest) / 2;
        let jittered = half + half.mul_f64(jitter.clamp(0.0, 1.0));
        // Never before the provider wants it.
        let delay = error.retry_after().map_or(jittered, |after| after.saturating_add(jittered));
        let deadline = Duration::from_millis(self.deadline_ms);
        (elapsed.saturating_add(delay) <= deadline).then_some(delay)
    }
}

/// A model that is asked again when it fails in a way that may pass.
///
/// A stream is begun again only while nothing has come of it.
///
/// ```
/// use prowess_agent::{
///     ChatModel, ModelError, ModelRequest, Reply, RetryPolicy, RetryingModel, ScriptedModel,
/// };
/// use prowess_runtime::Message;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let failing = ModelError::Network { message: "connection refused".into() };
/// let model = ScriptedModel::new([Reply::error(failing), Reply::text("Hello")]);
/// let model = RetryingModel::new(model, RetryPolicy::default().with_first_delay_ms(1));
/// let response = model.complete(&ModelRequest::new([Message::user("Hi")])).await?;
/// assert_eq!(response.message.text(), "Hello");
/// # Ok::<(), ModelError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct RetryingModel<M> {
    model: M,
    policy: RetryPolicy,
}

impl<M: ChatModel> RetryingModel<M> {
    /// Asks this model.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Self { model, policy }
    }

    /// Waits before the next attempt, or gives the error back.
    async fn wait(
        &self,
        attempts: u32,
        error: ModelError,
        began: Instant,
        request: &ModelRequest,
    ) -> Result<(), ModelError> {
        let Some(delay) = self.policy.delay(attempts, &error, began.elapsed(), jitter()) else {
            return Err(error);
        };
        tracing::warn!(
            model = self.model.name(),
            code = error.code(),
            attempts,
            delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            "the model has failed and is asked again"
        );
        tokio::select! {
            () = request.cancel.cancelled() => Err(ModelError::Cancelled),
            () = tokio::time::sleep(delay) => Ok(()),
        }
    }
}

/// A number between 0 and 1 that differs from call to call.
fn jitter() -> f64 {
    let random = std::collections::hash_map::RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

impl<M: ChatModel> ChatModel for RetryingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let mut attempts = 0;
            loop {
                attempts += 1;
                match self.model.complete(request).await {
                    Err(error) => self.wait(attempts, error, began, request).await?,
                    answer => return answer,
                }
            }
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let begun = async move {
            let began = Instant::now();
            let mut attempts = 0;
            loop {
                attempts += 1;
                let mut events = self.model.stream(request);
                let first = events.next().await;
                if let Some(Err(error)) = first {
                    match self.wait(attempts, error, began, request).await {
                        Ok(()) => continue,
                        Err(error) => return stream::iter(Some(Err(error))).chain(events),
                    }
                }
                return stream::iter(first).chain(events);
            }
        };
        Box::pin(stream::once(begun).flatten())
    }
}
