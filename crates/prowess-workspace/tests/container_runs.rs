//! What a run in a container is given, and what is said about it.

#[path = "sandbox.rs"]
mod runs;
