//! A model that says what it was told to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, future, stream};
use prowess_runtime::{Message, Part, Role, ToolCall, Usage};

use crate::model::{
    ChatModel, FinishReason, Fold, ModelError, ModelEvent, ModelFuture, ModelRequest,
    ModelResponse, ModelStream,
};

type Decide = dyn Fn(&ModelRequest) -> Reply + Send + Sync;

/// What a [`ScriptedModel`] answers to one request.
#[derive(Clone)]
pub struct Reply {
    what: What,
    delay: Duration,
}

#[derive(Clone)]
enum What {
    Response(ModelResponse),
    Error(ModelError),
    /// Exactly these events, and the error that ends them.
    Events(Vec<ModelEvent>, Option<ModelError>),
    Decide(Arc<Decide>),
}

impl Reply {
    fn of(what: What) -> Self {
        Self { what, delay: Duration::ZERO }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::response(ModelResponse::new(Message::assistant(text)))
    }

    /// Calls of tools.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::response(ModelResponse::new(Message::calling(calls)))
    }

    /// A text, and calls of tools.
    pub fn text_and_calls(
        text: impl Into<String>,
        calls: impl IntoIterator<Item = ToolCall>,
    ) -> Self {
        let mut parts = vec![Part::Text { text: text.into() }];
        parts.extend(calls.into_iter().map(Part::ToolCall));
        Self::response(ModelResponse::new(Message::new(Role::Assistant, parts)))
    }

    /// This response.
    pub fn response(response: ModelResponse) -> Self {
        Self::of(What::Response(response))
    }

    /// A failure.
    pub fn error(error: ModelError) -> Self {
        Self::of(What::Error(error))
    }

    /// Exactly these events. Without [`ModelEvent::Finished`] at the end the stream is cut.
    pub fn events(events: impl IntoIterator<Item = ModelEvent>) -> Self {
        Self::of(What::Events(events.into_iter().collect(), None))
    }

    /// These bits of text.
    pub fn chunks<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let text = |text: T| ModelEvent::Text { text: text.into() };
        let end = ModelEvent::Finished { finish: FinishReason::Stop, usage: None };
        Self::events(texts.into_iter().map(text).chain([end]))
    }

    /// These events, then a failure.
    pub fn broken(events: impl IntoIterator<Item = ModelEvent>, error: ModelError) -> Self {
        Self::of(What::Events(events.into_iter().collect(), Some(error)))
    }

    /// What the function makes of the request.
    pub fn decide(decide: impl Fn(&ModelRequest) -> Self + Send + Sync + 'static) -> Self {
        Self::of(What::Decide(Arc::new(decide)))
    }

    /// Sets what it costs.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        match &mut self.what {
            What::Response(response) => response.message.usage = Some(usage),
            What::Events(events, _) => {
                if let Some(ModelEvent::Finished { usage: known, .. }) = events.last_mut() {
                    *known = Some(usage);
                }
            }
            What::Error(_) | What::Decide(_) => {}
        }
        self
    }

    /// Waits before it answers, or until it is cancelled.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The events, and what comes instead of or after them.
    fn into_events(
        self,
        request: &ModelRequest,
    ) -> (Duration, Vec<Result<ModelEvent, ModelError>>) {
        let mut reply = self;
        let mut delay = reply.delay;
        while let What::Decide(decide) = &reply.what {
            reply = decide(request);
            delay += reply.delay;
        }
        let events = match reply.what {
            What::Response(response) => response.into_events().into_iter().map(Ok).collect(),
            What::Events(events, error) => {
                let whole = matches!(events.last(), Some(ModelEvent::Finished { .. }));
                let cut = ModelError::CutStream { message: "the script ends here".to_owned() };
                let end = error.or((!whole).then_some(cut));
                events.into_iter().map(Ok).chain(end.map(Err)).collect()
            }
            What::Error(error) => vec![Err(error)],
            What::Decide(_) => Vec::new(),
        };
        (delay, events)
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tuple = formatter.debug_tuple("Reply");
        match &self.what {
            What::Response(response) => tuple.field(response),
            What::Error(error) => tuple.field(error),
            What::Events(events, error) => tuple.field(events).field(error),
            What::Decide(_) => tuple.field(&"a function"),
        };
        tuple.finish()
    }
}

/// A model that plays a script, and remembers what it was asked.
///
/// The nth request gets the nth reply; one request too many fails with
/// [`ModelError::Unscripted`].
///
/// ```
/// use prowess_agent::{ChatModel, ModelRequest, Reply, ScriptedModel};
/// use prowess_runtime::{Message, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([
///     Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "sql"}))]),
///     Reply::decide(|request| Reply::text(format!("{} messages", request.messages.len()))),
/// ]);
/// let request = ModelRequest::new([Message::user("How many customers?")]);
/// assert_eq!(model.complete(&request).await?.message.tool_calls().count(), 1);
/// assert_eq!(model.complete(&request).await?.message.text(), "1 messages");
/// assert_eq!(model.complete(&request).await.unwrap_err().code(), "unscripted");
/// assert_eq!(model.requests().len(), 3);
/// # Ok::<(), prowess_agent::ModelError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    script: Script,
    played: Mutex<Played>,
}

#[derive(Debug)]
enum Script {
    /// One after the other.
    Replies,
    /// The same for every request.
    Always(Reply),
}

#[derive(Debug, Default)]
struct Played {
    replies: VecDeque<Reply>,
    requests: Vec<ModelRequest>,
    asked: usize,
    forgets: bool,
}

impl ScriptedModel {
    /// Plays these, one per request.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let played = Played { replies: replies.into_iter().collect(), ..Played::default() };
        Self { name: "scripted".to_owned(), script: Script::Replies, played: Mutex::new(played) }
    }

    /// Asks the function for every reply.
    pub fn deciding(decide: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        let mut model = Self::new([]);
        model.script = Script::Always(Reply::decide(decide));
        model
    }

    /// Sets what it is called.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Does not remember what it was asked.
    pub fn forgetting(self) -> Self {
        self.played().forgets = true;
        self
    }

    /// What it was asked, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.played().requests.clone()
    }

    /// How many replies were not asked for.
    pub fn remaining(&self) -> usize {
        self.played().replies.len()
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &ModelRequest) -> Reply {
        let mut played = self.played();
        played.asked += 1;
        if !played.forgets {
            played.requests.push(request.clone());
        }
        if let Script::Always(reply) = &self.script {
            return reply.clone();
        }
        let asked = played.asked;
        played.replies.pop_front().unwrap_or_else(|| {
            let message = format!("request {asked} is one more than the script has replies for");
            Reply::error(ModelError::Unscripted { message })
        })
    }
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let mut events = self.stream(request);
            let mut fold = Fold::new();
            while let Some(event) = events.next().await {
                fold.push(&event?);
            }
            fold.finish()
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let events = async move {
            if request.cancel.is_cancelled() {
                return vec![Err(ModelError::Cancelled)];
            }
            let (delay, events) = self.reply(request).into_events(request);
            if !delay.is_zero() {
                tokio::select! {
                    () = request.cancel.cancelled() => return vec![Err(ModelError::Cancelled)],
                    () = tokio::time::sleep(delay) => {}
                }
            }
            events
        };
        let events = stream::once(events).flat_map(stream::iter);
        // What was cancelled says so once, and nothing after it.
        let events = events.scan(false, |ended, event| {
            if *ended {
                return future::ready(None);
            }
            let event =
                if request.cancel.is_cancelled() { Err(ModelError::Cancelled) } else { event };
            *ended = event.is_err();
            future::ready(Some(event))
        });
        Box::pin(events)
    }
}
