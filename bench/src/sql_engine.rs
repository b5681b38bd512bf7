//! An engine with the SQL tools and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use prowess_catalog::Catalog;
use prowess_runtime::{AgentName, Runtime, SessionKey, Tool, ToolCall, ToolOutcome, Toolkit};
use prowess_toolkits::SqlToolkit;
use serde_json::Value;

struct Bare(SqlToolkit);

impl Toolkit for Bare {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.bare_tools()
    }
}

/// An engine with the tools, and a place for its tasks.
pub(crate) struct Engine {
    runtime: Runtime,
    tasks: tokio::runtime::Runtime,
    session: SessionKey,
    agent: AgentName,
    calls: AtomicUsize,
}

impl Engine {
    pub(crate) fn new(toolkit: SqlToolkit) -> Result<Self> {
        let catalog = Catalog::builder().build();
        Ok(Self {
            runtime: Runtime::builder(catalog).toolkit(Arc::new(Bare(toolkit))).build()?,
            tasks: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            session: SessionKey::new("bench", "bench", "sql")?,
            agent: AgentName::default(),
            calls: AtomicUsize::new(0),
        })
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutcome> {
        let id = format!("call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let call = ToolCall::new(id, tool, arguments);
        Ok(self.tasks.block_on(self.runtime.dispatch(&self.session, &self.agent, call))?)
    }
}
