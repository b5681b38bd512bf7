//! One file per command.

pub(crate) mod artifacts;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod info;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod prompt;
pub(crate) mod properties;
pub(crate) mod read;
pub(crate) mod read_properties;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod session;
pub(crate) mod source;
pub(crate) mod to_prompt;
pub(crate) mod tokens;
pub(crate) mod validate;
