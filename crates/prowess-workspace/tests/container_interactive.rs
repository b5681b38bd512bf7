//! Runs that somebody talks to, in containers.

#[path = "interactive.rs"]
mod interactive;
