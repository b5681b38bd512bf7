//! The SQL tools without a skill around them.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prowess_catalog::Catalog;
use prowess_runtime::{AgentName, Runtime, Tool, ToolCall, ToolOutcome, Toolkit};
use prowess_toolkits::{Layers, SqlConnectionSettings, SqlSettings, SqlToolkit};
use serde_json::{Value, json};

struct Bare(SqlToolkit);

impl Toolkit for Bare {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.bare_tools()
    }
}

/// An engine with the tools.
pub(crate) struct Tools {
    pub(crate) toolkit: SqlToolkit,
    pub(crate) runtime: Runtime,
}

impl Tools {
    pub(crate) fn new(toolkit: SqlToolkit) -> Self {
        let catalog = Catalog::builder().build();
        let runtime = Runtime::builder(catalog).toolkit(Arc::new(Bare(toolkit.clone()))).build();
        Self { toolkit, runtime: runtime.unwrap() }
    }

    /// One connection, as its settings say.
    pub(crate) fn on(connection: SqlConnectionSettings) -> Self {
        Self::with(connection, Layers::ALL)
    }

    pub(crate) fn with(connection: SqlConnectionSettings, layers: Layers) -> Self {
        let settings = SqlSettings::default().with_connection("main", connection);
        let toolkit = SqlToolkit::with_layers(settings, Path::new("/nowhere"), layers).unwrap();
        Self::new(toolkit)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.call_as("test", tool, arguments).await
    }

    pub(crate) async fn call_as(&self, session: &str, tool: &str, arguments: Value) -> ToolOutcome {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let id = format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let call = ToolCall::new(id, tool, arguments);
        let (session, agent) = (session.parse().unwrap(), AgentName::default());
        self.runtime.dispatch(&session, &agent, call).await.unwrap()
    }

    pub(crate) async fn query(&self, sql: &str) -> ToolOutcome {
        self.call("sql_query", json!({"query": sql})).await
    }

    pub(crate) async fn ok(&self, sql: &str) -> ToolOutcome {
        let outcome = self.query(sql).await;
        assert!(!outcome.is_error, "{sql}: {} {}", outcome.code, outcome.content);
        outcome
    }
}
