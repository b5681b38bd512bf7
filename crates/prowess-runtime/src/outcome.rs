//! What comes of a call.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::EventKind;
use crate::session::Change;

/// What comes of a call: a structured result, and what the model sees of it.
///
/// A failure that the model can act on is an outcome too, with `is_error`, a stable code and, where
/// there is one, a hint.
///
/// ```
/// use prowess_runtime::ToolOutcome;
///
/// let outcome = ToolOutcome::text("42 customers");
/// assert_eq!((outcome.code.as_ref(), outcome.is_error), ("ok", false));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// What the model sees.
    pub content: String,
    /// What a stored transcript keeps instead, where the content is long and can be given again.
    pub stub: Option<String>,
    /// Whether the call failed.
    pub is_error: bool,
    /// The stable name of what happened.
    pub code: Cow<'static, str>,
    /// What to do about a failure.
    pub hint: Option<String>,
    /// The structured result.
    pub data: Value,
    /// What changes in the state.
    #[serde(rename = "delta")]
    pub changes: Vec<Change>,
    /// The outputs that were kept.
    pub artifacts: Vec<ArtifactRef>,
    /// The skill that this is about.
    #[serde(skip)]
    pub(crate) skill: Option<String>,
    /// What else happened.
    #[serde(skip)]
    pub(crate) notes: Vec<(EventKind, String)>,
    /// Whether the content is still to be written in the words of the dialect.
    #[serde(skip)]
    pub(crate) is_unwritten: bool,
    /// Whether the state pins what the content holds beyond the stub: where loaded text stands in
    /// the system prompt, the stub is all that a result says.
    #[serde(skip)]
    pub(crate) is_pinned: bool,
}

/// An output that was kept: a name and a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u64,
}

impl ToolOutcome {
    fn new(code: impl Into<Cow<'static, str>>, is_error: bool, data: Value) -> Self {
        Self {
            content: String::new(),
            stub: None,
            is_error,
            code: code.into(),
            hint: None,
            data,
            changes: Vec::new(),
            artifacts: Vec::new(),
            skill: None,
            notes: Vec::new(),
            is_unwritten: false,
            is_pinned: false,
        }
    }

    /// A tool answers with text.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::new("ok", false, Value::Null) }
    }

    /// A tool answers with data; the model sees it as JSON.
    pub fn json(data: Value) -> Self {
        Self { content: data.to_string(), ..Self::new("ok", false, data) }
    }

    /// A call failed in a way that the model can act on.
    pub fn error(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { content: message.into(), ..Self::new(code, true, Value::Null) }
    }

    /// An outcome whose text is written by the dialect, from its data. A code that the dialect has
    /// no words for is written as the data.
    pub fn coded(code: &'static str, data: Value) -> Self {
        Self { is_unwritten: true, ..Self::new(code, false, data) }
    }

    /// A failure whose text is written by the dialect, as that of [`ToolOutcome::coded`].
    pub fn failed(code: &'static str, data: Value) -> Self {
        Self { is_unwritten: true, ..Self::new(code, true, data) }
    }

    /// Says what to do about a failure.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps something else in the transcript.
    pub fn with_stub(mut self, stub: impl Into<String>) -> Self {
        self.stub = Some(stub.into());
        self
    }

    /// Changes the state.
    pub fn with_change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Adds an output that was kept.
    pub fn with_artifact(mut self, artifact: ArtifactRef) -> Self {
        self.artifacts.push(artifact);
        self
    }

    /// The state pins what it says beyond the stub.
    pub(crate) fn pinned(mut self) -> Self {
        self.is_pinned = true;
        self
    }

    /// Says which skill it is about.
    pub fn about(mut self, skill: impl Into<String>) -> Self {
        self.skill = Some(skill.into());
        self
    }

    pub(crate) fn with_note(mut self, kind: EventKind, message: impl Into<String>) -> Self {
        self.notes.push((kind, message.into()));
        self
    }

    /// Adds a field to the data.
    pub fn with_data(mut self, key: &str, value: impl Into<Value>) -> Self {
        if !self.data.is_object() {
            self.data = Value::Object(Map::new());
        }
        self.data[key] = value.into();
        self
    }
}
