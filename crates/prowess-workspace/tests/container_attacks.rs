//! The same attacks on containers.

mod attacks;
mod support;
