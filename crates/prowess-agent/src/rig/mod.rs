//! rig: skills for its agents, and its models for ours (feature `rig`).
//!
//! [`RigSkills`] gives skills to an agent of rig that somebody already has; [`RigModel`] is any
//! completion model of rig as a [`crate::ChatModel`]; [`rig_tool`] is a tool of rig as one of the
//! engine.
//!
//! It is made for exactly one release of rig, whose types are in these signatures: add
//! `rig-agent = "=0.44.0"` and `rig-core = "=0.44.0"` beside it.

mod answer;
mod ask;
mod failure;
mod model;
mod request;
mod session;
mod skills;
mod tools;

pub use model::RigModel;
pub use session::{PROBLEM, RigSession};
pub use skills::{RigSkills, RigSkillsError};
pub use tools::rig_tool;
