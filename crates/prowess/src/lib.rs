//! The runtime for Agent Skills: folders with a `SKILL.md` that teach an agent how to do a job.
//!
//! This crate holds nothing of its own but [`blocking`]; it gathers the others:
//!
//! - [`format`](mod@format): `SKILL.md` texts, diagnostics, lint profiles;
//! - [`catalog`]: sources of skills, snapshots, resources;
//! - [`runtime`]: the engine: sessions, listing, load tools, gate, policy, dialects, events;
//! - [`agent`]: models, middleware, the loop, runners;
//! - [`store`]: sessions, versions of skills, what they are used for, keys, on SQLite;
//! - `server`, with the feature of that name: all of it over HTTP;
//! - `telemetry`, with the feature `otlp`: traces and metrics by OpenTelemetry;
//! - [`workspace`]: workspaces, a sandbox for commands, artifacts;
//! - [`toolkits`]: tools on top of them: `skill_run`, and files on any backend.
//!
//! ```
//! use std::sync::Arc;
//! use prowess::agent::{Reply, Runner, ScriptedModel, create_deep_agent};
//! use prowess::runtime::ToolCall;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/skills");
//! let model = Arc::new(ScriptedModel::new([
//!     Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "release-notes"}))]),
//!     Reply::text("### Added\n- Dialects."),
//! ]));
//! let agent = create_deep_agent(model, [folder]).system("You are a release manager.").build()?;
//! let outcome = Runner::new("notes", agent).run("alice", "s1", "Write the notes.").await?;
//! assert_eq!(outcome.text(), "### Added\n- Dialects.");
//! # Ok::<(), prowess::agent::AgentError>(())
//! # }).unwrap();
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod blocking;

pub use prowess_agent as agent;
pub use prowess_catalog as catalog;
pub use prowess_format as format;
pub use prowess_runtime as runtime;
#[cfg(feature = "server")]
pub use prowess_server as server;
#[cfg(feature = "otlp")]
pub use prowess_server::telemetry;
pub use prowess_store as store;
pub use prowess_toolkits as toolkits;
pub use prowess_workspace as workspace;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the document on rig compile.
#[cfg(all(doctest, feature = "rig"))]
#[doc = include_str!("../../../docs/rig.md")]
struct Rig;
