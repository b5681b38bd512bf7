//! The attacks on the sandbox, on containers.

#[path = "sandbox_attacks.rs"]
mod attacks;
