//! The engine of Prowess: messages and transcripts, session state, the load tools, the gate,
//! events, and the one dispatcher that every tool call takes.
//!
//! A door builds a [`Runtime`], begins turns with [`Runtime::begin_turn`] and carries out calls
//! with [`Runtime::dispatch_batch`]. It has no rule of its own.

#![allow(clippy::result_large_err, reason = "a failure is an outcome, and is moved once")]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod begin_turn;
mod bind;
mod builder;
mod command;
mod commit;
mod customise;
mod dialect;
mod disclose;
mod dispatch;
mod engine;
mod event;
mod exposure;
mod fork;
mod gate;
mod handlers;
mod in_flight;
mod interceptor;
pub mod interop;
mod invocation;
mod layer;
mod message;
mod narrow;
mod outcome;
mod outside;
mod policy;
mod prompt;
mod runtime;
mod session;
mod settings;
mod spans;
mod store;
mod tool;
mod tools;
mod transcript;
mod turn;
mod visibility;

pub use bind::Quarantined;
pub use builder::RuntimeBuilder;
pub use command::{
    CommandAnswer, CommandLanguage, CommandRequest, CommandRunner, EmbeddedCommands,
};
pub use customise::{
    BoxError, Customisation, CustomisationError, CustomisationPoint, SkillContent,
};
pub use dialect::{Dialect, DialectError, InvalidTools};
pub use dispatch::{Step, StepResult};
pub use event::{Event, EventKind, EventLevel, EventSink};
pub use exposure::Exposure;
pub use fork::{ContextMode, Fork, ForkContent, Forker};
pub use handlers::{Handler, Handlers, Parameter, Presence};
pub use interceptor::{Intercepted, Interception, Interceptor, InterceptorFuture};
pub use layer::{CallLayer, NextCall};
pub use message::{
    Expansion, Given, MAX_NESTING, Message, Part, Role, ToolCall, ToolResult, Usage,
};
pub use narrow::Narrowing;
pub use outcome::{ArtifactRef, ToolOutcome};
pub use policy::{ALWAYS_ALLOWED, AllowedToolsPolicy, AllowedToolsUnion};
pub use prompt::{
    Budget, Compactable, Conversation, InvalidBudget, ListedSkill, Listing, ListingMode,
    ListingOrder, ListingRest, ListingSlot, MAX_DESCRIPTION, MAX_WARNING, MAX_WARNINGS, ManualOnly,
    Placement, Prompt, PromptRequest, TokenCounter, estimate_tokens,
};
pub use runtime::{Blocked, Runtime};
pub use session::{
    AgentName, Applied, Caps, Change, Compaction, DocMode, DocSelection, InvalidAgentName,
    InvalidSessionKey, KnownResources, KnownSkills, LoadedSkill, ModelOverride, NamedResource,
    REMEMBERED_CALLS, Refusal, Reset, SelectedDoc, Session, SessionDelta, SessionKey, SessionState,
    Since, StateDelta, ToolRules, WhenFull,
};
pub use settings::{Guidance, InvalidSettings, ListingSettings, LoadMode, Settings};
pub use store::{
    Fence, Hold, LeaseSettings, Lifetime, MemorySessions, Revision, SessionStore, SessionSummary,
    StoreError, StoreFuture, StoredSession,
};
pub use tool::{Effect, Invocation, Tool, ToolDeclaration, ToolFuture, Toolkit, tool_fn};
pub use transcript::result_of;
pub use turn::{LoadRequest, LoadedBy, RuntimeError, Turn, TurnRequest};
pub use visibility::{Visibility, VisibilityFilter};
