//! The skill `xlsx` and its tools.

#![cfg(feature = "xlsx")]

#[path = "xlsx/again.rs"]
mod again;
#[path = "xlsx/attacks.rs"]
mod attacks;
#[path = "xlsx/create.rs"]
mod create;
#[path = "xlsx/edges.rs"]
mod edges;
#[path = "xlsx/edit.rs"]
mod edit;
#[path = "xlsx/guard.rs"]
mod guard;
#[path = "xlsx/read.rs"]
mod read;
#[path = "xlsx/recalc.rs"]
mod recalc;
#[path = "xlsx/support.rs"]
mod support;
#[path = "xlsx/untrusted.rs"]
mod untrusted;
