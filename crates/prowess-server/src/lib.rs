//! Prowess over HTTP: a REST service with OpenAPI, for agents in any language.
//!
//! A [`Server`] translates requests into calls of the engine and of the stores. It has no rule of
//! its own about skills; what it adds is who may ask, and how much.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::result_large_err, reason = "a problem becomes an answer, and is moved once")]

mod app;
mod auth;
mod buckets;
mod condition;
mod counter;
mod extract;
mod guard;
mod heavy;
mod identity;
mod jwt;
mod last_loads;
mod origin;
mod parameters;
mod patient;
mod places;
mod prepared;
mod problem;
mod room;
mod routes;
mod server;
mod settings;
#[cfg(feature = "otlp")]
pub mod telemetry;
mod trace;
mod wake;

pub use identity::Identity;
pub use jwt::{InvalidJwtSettings, JwtSettings, TokenAlgorithm};
pub use problem::Problem;
pub use routes::openapi;
pub use routes::transfer::Imports;
pub use server::{Bound, Ended, Server, ServerBuilder, ServerError};
pub use settings::{InvalidServerSettings, ServerSettings};
pub use wake::SessionEvents;
