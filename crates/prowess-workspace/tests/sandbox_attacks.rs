//! Attacks on the sandboxes of this machine.

mod attacks;
mod support;
