//! What other systems keep, as ours.

pub mod langchain_docker;
