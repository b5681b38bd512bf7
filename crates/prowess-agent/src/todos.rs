//! `write_todos`: a list of what is to be done.

use std::sync::Arc;

use prowess_runtime::{Invocation, RuntimeBuilder, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::middleware::Middleware;
use crate::run::Slot;

/// Something that is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Todo {
    /// What.
    pub content: String,
    /// How far it is.
    #[serde(default)]
    pub status: TodoStatus,
}

impl Todo {
    /// Something that nobody has begun.
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into(), status: TodoStatus::Pending }
    }

    /// Sets how far it is.
    pub fn with_status(mut self, status: TodoStatus) -> Self {
        self.status = status;
        self
    }
}

/// How far something is that is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nobody has begun.
    #[default]
    Pending,
    /// Somebody is at it.
    InProgress,
    /// It is done.
    Completed,
}

/// Where the list is kept: `run.slot::<Todos>()`, or [`Slot::get`] of a state.
pub struct Todos;

impl Slot for Todos {
    const NAME: &'static str = "todos";
    type Value = Vec<Todo>;
}

/// Gives a model the tool `write_todos`, by which it keeps a list of what is to be done. Every call
/// writes the whole list; of several in one step the last one counts.
#[derive(Clone, Copy, Debug)]
pub struct TodoMiddleware {
    max_todos: usize,
}

impl Default for TodoMiddleware {
    fn default() -> Self {
        Self { max_todos: 100 }
    }
}

impl TodoMiddleware {
    /// With a list of at most 100 entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many entries the list may have.
    pub fn with_max_todos(mut self, max_todos: usize) -> Self {
        self.max_todos = max_todos;
        self
    }
}

impl Middleware for TodoMiddleware {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        let parameters = json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string"},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["content", "status"],
                    },
                },
            },
            "required": ["todos"],
        });
        let description = "Write down what is to be done, for work of three steps or more: the \
                           whole list, each time that something changes. Not for simple requests.";
        let declaration = ToolDeclaration::new("write_todos", description, parameters);
        engine.tool(Arc::new(WriteTodos { declaration, max_todos: self.max_todos }))
    }
}

struct WriteTodos {
    declaration: ToolDeclaration,
    max_todos: usize,
}

#[derive(Deserialize)]
struct Arguments {
    todos: Vec<Todo>,
}

impl WriteTodos {
    fn write(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |cause: String| invocation.invalid_arguments(cause);
        let arguments = invocation.call.arguments.clone();
        let Arguments { todos } =
            serde_json::from_value(arguments).map_err(|error| invalid(error.to_string()))?;
        if todos.len() > self.max_todos {
            return Err(invalid(format!("at most {} todos are kept", self.max_todos)));
        }
        if todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err(invalid("a todo says nothing".to_owned()));
        }
        let change = Todos::set(&todos).map_err(|error| invalid(error.to_string()))?;
        let list = json!(todos);
        let mut outcome = ToolOutcome::text(format!("Updated todo list to {list}"));
        outcome.data = json!({"todos": list});
        Ok(outcome.with_change(change))
    }
}

impl Tool for WriteTodos {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        let outcome = self.write(invocation).unwrap_or_else(|refusal| refusal);
        Box::pin(std::future::ready(outcome))
    }
}
