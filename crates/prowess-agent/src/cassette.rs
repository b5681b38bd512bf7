//! Recorded answers: a model once asked, and its answers given again without a network.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt, stream};
use prowess_format::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cassette_request::{asked, digest_of, first_difference};
use crate::model::{
    ChatModel, Fold, ModelError, ModelEvent, ModelFuture, ModelRequest, ModelResponse, ModelStream,
};

/// The version of the form of cassettes.
const VERSION: u32 = 1;

/// What was asked, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Take {
    digest: Digest,
    request: Value,
    #[serde(flatten)]
    answer: Recorded,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Recorded {
    Response(ModelResponse),
    Error(ModelError),
    /// A stream, as it came.
    Stream {
        events: Vec<ModelEvent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ModelError>,
    },
}

impl Recorded {
    fn events(self) -> Vec<Result<ModelEvent, ModelError>> {
        match self {
            Self::Response(response) => response.into_events().into_iter().map(Ok).collect(),
            Self::Error(error) => vec![Err(error)],
            Self::Stream { events, error } => {
                events.into_iter().map(Ok).chain(error.map(Err)).collect()
            }
        }
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// It cannot be read or written.
    #[error("{path}: {cause}")]
    Unavailable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// It is no cassette.
    #[error("{path} is no cassette: {cause}")]
    Malformed {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// It is of another version.
    #[error("{path} is a cassette of version {version}; only version {VERSION} can be played")]
    Version {
        /// Where it is.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

impl CassetteError {
    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "cassette_unavailable",
            Self::Malformed { .. } => "cassette_malformed",
            Self::Version { .. } => "cassette_version",
        }
    }
}

/// What was asked of a model, and what it answered. Keys are no part of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    version: u32,
    model: String,
    takes: Vec<Take>,
}

impl Cassette {
    fn new(model: &str) -> Self {
        Self { version: VERSION, model: model.to_owned(), takes: Vec::new() }
    }

    /// The cassette in a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let path = path.as_ref();
        let malformed = |cause| CassetteError::Malformed { path: path.to_owned(), cause };
        let text = fs::read_to_string(path)
            .map_err(|cause| CassetteError::Unavailable { path: path.to_owned(), cause })?;
        let Versioned { version } = serde_json::from_str(&text).map_err(malformed)?;
        if version != VERSION {
            return Err(CassetteError::Version { path: path.to_owned(), version });
        }
        let cassette: Self = serde_json::from_str(&text).map_err(malformed)?;
        let changed = |take: &Take| digest_of(&take.request) != take.digest;
        if let Some(at) = cassette.takes.iter().position(changed) {
            let cause = format!("the digest of request {} is not its own", at + 1);
            return Err(malformed(serde::de::Error::custom(cause)));
        }
        Ok(cassette)
    }

    /// Writes it; who reads the file sees the old or the new one.
    fn write(&self, path: &Path) -> Result<(), CassetteError> {
        let malformed = |cause| CassetteError::Malformed { path: path.to_owned(), cause };
        let unavailable = |cause| CassetteError::Unavailable { path: path.to_owned(), cause };
        let mut text = serde_json::to_string_pretty(self).map_err(malformed)?;
        text.push('\n');
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        fs::write(&beside, text).map_err(unavailable)?;
        fs::rename(&beside, path).map_err(unavailable)
    }

    /// How many requests it knows.
    pub fn len(&self) -> usize {
        self.takes.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.takes.is_empty()
    }
}

/// A model that writes down what another one says.
///
/// The file is written after every answer; what it held before is gone.
#[derive(Debug)]
pub struct RecordingModel<M> {
    model: M,
    path: PathBuf,
    cassette: Mutex<Cassette>,
}

impl<M: ChatModel> RecordingModel<M> {
    /// Records this model into this file, which is written at once.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let cassette = Cassette::new(model.name());
        cassette.write(&path)?;
        Ok(Self { model, path, cassette: Mutex::new(cassette) })
    }

    /// What was recorded.
    pub fn cassette(&self) -> Cassette {
        locked(&self.cassette).clone()
    }

    fn record(&self, request: &ModelRequest, answer: Recorded) -> Result<(), ModelError> {
        let request = asked(request);
        let mut cassette = locked(&self.cassette);
        cassette.takes.push(Take { digest: digest_of(&request), request, answer });
        // Whoever records wants a record: without it there is no answer.
        cassette
            .write(&self.path)
            .map_err(|error| ModelError::Unscripted { message: error.to_string() })
    }
}

impl<M: ChatModel> ChatModel for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let answer = self.model.complete(request).await;
            let recorded = match &answer {
                Ok(response) => Recorded::Response(response.clone()),
                // Nothing came of it, so nothing is to be given again.
                Err(ModelError::Cancelled) => return answer,
                Err(error) => Recorded::Error(error.clone()),
            };
            self.record(request, recorded)?;
            answer
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let state = Some((self.model.stream(request), Vec::new()));
        Box::pin(stream::unfold(state, move |state| async move {
            let (mut events, mut came) = state?;
            let next = events.next().await?;
            match &next {
                Ok(event @ ModelEvent::Finished { .. }) => {
                    came.push(event.clone());
                    let recorded = Recorded::Stream { events: came, error: None };
                    Some((self.record(request, recorded).and(next), None))
                }
                Ok(event) => {
                    came.push(event.clone());
                    Some((next, Some((events, came))))
                }
                Err(ModelError::Cancelled) => Some((next, None)),
                Err(error) => {
                    let recorded = Recorded::Stream { events: came, error: Some(error.clone()) };
                    Some((self.record(request, recorded).and(next), None))
                }
            }
        }))
    }
}

/// A model that says again what was recorded, without a network.
///
/// A request is known by the digest of what it says: system prompt, messages, tools and options.
/// What was asked several times is answered in the order of the recording. A request that is not
/// known fails with [`ModelError::Unscripted`], which names the first difference to the request
/// that was to be expected.
///
/// ```
/// use prowess_agent::{CassetteModel, ChatModel, ModelRequest, RecordingModel, Reply, ScriptedModel};
/// use prowess_runtime::Message;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let folder = tempfile::TempDir::new().unwrap();
/// # let path = folder.path().join("hello.json");
/// let real = ScriptedModel::new([Reply::text("Hello!")]);
/// let recording = RecordingModel::new(real, &path)?;
/// let request = ModelRequest::new([Message::user("Hi")]);
/// recording.complete(&request).await?;
///
/// let model = CassetteModel::open(&path)?;
/// let other = ModelRequest::new([Message::user("Bye")]);
/// let error = model.complete(&other).await.unwrap_err();
/// assert!(error.to_string().contains("/messages/0/parts/0/text was \"Hi\", and is \"Bye\""));
/// assert_eq!(model.complete(&request).await?.message.text(), "Hello!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct CassetteModel {
    cassette: Cassette,
    played: Mutex<Played>,
}

#[derive(Debug, Default)]
struct Played {
    /// How often a request was made.
    times: BTreeMap<Digest, usize>,
    requests: usize,
}

impl Played {
    /// The first request that was not made yet.
    fn next_of<'a>(&self, takes: &'a [Take]) -> Option<&'a Take> {
        let mut left = self.times.clone();
        takes.iter().find(|take| match left.get_mut(&take.digest) {
            Some(times @ 1..) => {
                *times -= 1;
                false
            }
            _ => true,
        })
    }
}

impl CassetteModel {
    /// Plays this cassette.
    pub fn new(cassette: Cassette) -> Self {
        Self { cassette, played: Mutex::default() }
    }

    /// Plays the cassette in a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        Ok(Self::new(Cassette::read(path)?))
    }

    fn answer(&self, request: &ModelRequest) -> Result<Recorded, ModelError> {
        if request.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let request = asked(request);
        let digest = digest_of(&request);
        let mut played = locked(&self.played);
        played.requests += 1;
        let number = played.requests;
        let takes = &self.cassette.takes;
        let times = played.times.get(&digest).copied().unwrap_or_default();
        if let Some(take) = takes.iter().filter(|take| take.digest == digest).nth(times) {
            played.times.insert(digest, times + 1);
            return Ok(take.answer.clone());
        }
        let message = match played.next_of(takes) {
            _ if times > 0 => {
                format!("request {number} was recorded {times} times, and is made once more")
            }
            Some(take) => {
                let difference = first_difference(&take.request, &request);
                format!("request {number} is not the one that was recorded: {difference}")
            }
            None => format!("request {number} was not recorded, and all that were are made"),
        };
        Err(ModelError::Unscripted { message })
    }
}

impl ChatModel for CassetteModel {
    fn name(&self) -> &str {
        &self.cassette.model
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let mut fold = Fold::new();
            for event in self.answer(request)?.events() {
                fold.push(&event?);
            }
            fold.finish()
        })
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let events = async move {
            let events =
                self.answer(request).map_or_else(|error| vec![Err(error)], Recorded::events);
            stream::iter(events)
        };
        Box::pin(stream::once(events).flatten())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
