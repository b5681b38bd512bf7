//! A model of rig as a model of ours.

use std::collections::VecDeque;

use futures_util::{StreamExt, stream};
use rig_core::DynModel;
use rig_core::operation::Completion;
use rig_core::streaming::{CompletionStream, Item};

use super::answer::{Answer, ending, response_of};
use super::{ask, failure};
use crate::model::{ChatModel, ModelError, ModelEvent, ModelFuture, ModelRequest, ModelStream};

/// A completion model of rig, of whatever provider, as a [`ChatModel`].
///
/// What a provider wants to see again beside an answer, such as signatures of thoughts, is kept in
/// the message and goes back to it. Pictures that a model makes are kept so too; a message of ours
/// has no place to show them.
///
/// ```
/// use std::sync::Arc;
/// use prowess_agent::{Agent, RunRequest, rig::RigModel};
/// use rig_core::test_utils::{MockCompletionModel, MockStreamEvent};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = MockCompletionModel::from_stream_turns([[
///     MockStreamEvent::text("Forty-two."),
///     MockStreamEvent::final_response_with_default_usage(),
/// ]]);
/// let agent = Agent::builder(Arc::new(RigModel::new(model))).build()?;
/// let outcome = agent.run(RunRequest::new("demo".parse()?, "How many?")).await?;
/// assert_eq!(outcome.text(), "Forty-two.");
/// # Ok::<(), prowess_agent::AgentError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct RigModel {
    model: DynModel<Completion>,
    name: String,
}

impl RigModel {
    /// A model of rig, as it is or erased.
    pub fn new(model: impl Into<DynModel<Completion>>) -> Self {
        let model = model.into();
        let name = match model.id() {
            Some(id) => format!("{}:{id}", model.name()),
            None => model.name().to_owned(),
        };
        Self { model, name }
    }
}

impl ChatModel for RigModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let asked = ask::completion(request, self.model.name());
            let answer = tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(ModelError::Cancelled),
                answer = self.model.call(asked) => answer,
            };
            response_of(&answer.map_err(|error| failure::named(&error))?)
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let asked = ask::completion(request, self.model.name());
        let opened = self.model.stream(asked).map_err(|error| failure::named(&error));
        let speaking = match opened {
            Ok(events) => Speaking { events: Some(events), ..Speaking::default() },
            Err(error) => Speaking { told: [Err(error)].into(), ..Speaking::default() },
        };
        Box::pin(stream::unfold(speaking, move |mut speaking| async move {
            let next = tokio::select! {
                biased;
                () = request.cancel.cancelled(), if speaking.events.is_some() => {
                    speaking = Speaking::default();
                    Some(Err(ModelError::Cancelled))
                }
                next = speaking.next() => next,
            };
            next.map(|next| (next, speaking))
        }))
    }
}

/// A stream that is read.
#[derive(Default)]
struct Speaking {
    /// What rig tells; `None` when that is over.
    events: Option<CompletionStream>,
    answer: Answer,
    /// What is to be told.
    told: VecDeque<Result<ModelEvent, ModelError>>,
}

impl Speaking {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            match self.events.as_mut()?.next().await {
                Some(Ok(Item::Event(event))) => {
                    self.told.extend(self.answer.event(event).map(Ok));
                }
                // A payload that rig does not know tells nothing.
                Some(Ok(Item::Unknown(_))) => {}
                Some(Err(error)) => {
                    self.events = None;
                    return Some(Err(failure::named(&error)));
                }
                None => {
                    let response = self.events.take()?.finish().await;
                    match response.map_err(|error| failure::named(&error)) {
                        Ok(response) => match ending(&response) {
                            Ok(events) => self.told.extend(events.into_iter().map(Ok)),
                            Err(error) => self.told.push_back(Err(error)),
                        },
                        Err(error) => self.told.push_back(Err(error)),
                    }
                }
            }
        }
    }
}
