//! What stands around a run, its model calls and its tool calls (S06, 3).

use std::sync::{Arc, Mutex};

use prowess_agent::{
    Agent, AgentError, ChatModel, Flow, Middleware, ModelCall, ModelError, ModelResponse,
    NextModel, NextTool, Reply, Run, RunOutcome, RunRequest, ScriptedModel, SkillsMiddleware, Slot,
    StopReason,
};
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{
    AllowedToolsPolicy, Message, RuntimeBuilder, SessionKey, Settings, Tool, ToolCall,
    ToolDeclaration, ToolOutcome, tool_fn,
};
use serde_json::json;

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn tool(name: &str) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Does it.", json!({"type": "object"}));
    tool_fn(declaration, |arguments| async move { ToolOutcome::text(arguments.to_string()) })
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, json!({}))
}

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down which of its hooks is called.
struct Logging {
    name: &'static str,
    log: Log,
}

impl Logging {
    fn log(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Middleware for Logging {
    fn name(&self) -> &str {
        self.name
    }

    async fn before_agent(&self, _: &Run) -> Result<(), AgentError> {
        self.log("before_agent");
        Ok(())
    }

    async fn before_model(&self, _: &Run, call: &mut ModelCall) -> Result<(), AgentError> {
        self.log("before_model");
        call.request.system.push_str(self.name);
        Ok(())
    }

    async fn wrap_model_call(
        &self,
        _: &Run,
        call: ModelCall,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, AgentError> {
        self.log("model {");
        let response = next.run(call).await;
        self.log("} model");
        response
    }

    async fn after_model(&self, _: &Run, _: &mut ModelResponse) -> Result<Flow, AgentError> {
        self.log("after_model");
        Ok(Flow::Continue)
    }

    async fn wrap_tool_call(&self, _: &Run, call: ToolCall, next: NextTool<'_>) -> ToolOutcome {
        self.log("tool {");
        let outcome = next.run(call).await;
        self.log("} tool");
        outcome
    }

    async fn after_agent(&self, _: &Run, _: &mut RunOutcome) -> Result<(), AgentError> {
        self.log("after_agent");
        Ok(())
    }
}

#[tokio::test]
async fn the_first_one_is_the_outermost() {
    let log = Log::default();
    let logging = |name| Logging { name, log: Arc::clone(&log) };
    let replies = [Reply::calls([call("1", "work")]), Reply::text("Done.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = Agent::builder(model.clone())
        .tool(tool("work"))
        .middleware(logging("a"))
        .middleware(logging("b"))
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let asking = [
        "a before_model",
        "b before_model",
        "a model {",
        "b model {",
        "b } model",
        "a } model",
        "b after_model",
        "a after_model",
    ];
    let calling = ["a tool {", "b tool {", "b } tool", "a } tool"];
    let begin = ["a before_agent", "b before_agent"];
    let end = ["b after_agent", "a after_agent"];
    let expected: Vec<&str> =
        begin.into_iter().chain(asking).chain(calling).chain(asking).chain(end).collect();
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(model.requests()[0].system, "ab");
}

/// Asks again if the model fails, and then another model.
struct Fallback(Arc<dyn ChatModel>);

impl Middleware for Fallback {
    async fn wrap_model_call(
        &self,
        _: &Run,
        call: ModelCall,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, AgentError> {
        for _ in 0..2 {
            if let Ok(response) = next.run(call.clone()).await {
                return Ok(response);
            }
        }
        next.run(call.with_model(Arc::clone(&self.0))).await
    }
}

#[tokio::test]
async fn next_can_be_run_again_and_with_another_model() {
    let fails = || Reply::error(ModelError::Network { message: "gone".to_owned() });
    let first = Arc::new(ScriptedModel::new([fails(), Reply::text("Second try.")]));
    let second = Arc::new(ScriptedModel::new([Reply::text("The other one.")]));
    let agent = Agent::builder(first).middleware(Fallback(second.clone())).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Second try.");
    let first = Arc::new(ScriptedModel::new([fails(), fails()]));
    let agent = Agent::builder(first).middleware(Fallback(second)).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "The other one.");
}

/// Tries calls again, and then something that nobody allowed.
struct Pushy;

impl Middleware for Pushy {
    async fn wrap_tool_call(&self, _: &Run, call: ToolCall, next: NextTool<'_>) -> ToolOutcome {
        let outcome = next.run(call.clone()).await;
        match outcome.is_error {
            true => next.run(ToolCall { name: "execute".to_owned(), ..call }).await,
            false => outcome,
        }
    }
}

const SQL: &str = "---\nname: sql\ndescription: Queries.\nallowed-tools: Read\nmetadata:\n  \
                   include_tools: sql_query\n---\nWrite SQL.\n";

fn skills() -> SkillsMiddleware {
    let source = MemorySource::new("m").with_skill("sql", SQL);
    let settings = Settings::default().with_allowed_tools_policy(AllowedToolsPolicy::Restrict);
    SkillsMiddleware::new(Catalog::builder().source(source).build()).with_settings(settings)
}

fn load(id: &str) -> ToolCall {
    ToolCall::new(id, "load_skill", json!({"skill": "sql"}))
}

#[tokio::test]
async fn nothing_goes_past_gate_and_policy() {
    let replies = [
        Reply::calls([load("1")]),
        Reply::calls([call("2", "sql_query"), call("3", "write_file")]),
        Reply::text("Done."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = Agent::builder(model.clone())
        .middleware(skills())
        .middleware(Pushy)
        .tool(tool("sql_query"))
        .tool(tool("write_file"))
        .tool(tool("execute"))
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let requests = model.requests();
    let answers: Vec<_> =
        requests[2].messages.iter().flat_map(Message::tool_results).cloned().collect();
    assert!(!answers[1].is_error, "the skill has brought it");
    assert!(answers[2].content.starts_with("Tool 'execute' is not in the allowed-tools list"));
    // The answer is still the answer to the call that was made.
    assert_eq!((answers[2].call_id.as_str(), answers[2].name.as_str()), ("3", "write_file"));
}

/// Answers in a tool's place, and puts words into the model's mouth.
struct Standin;

impl Middleware for Standin {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        engine.tool(tool("brought"))
    }

    async fn wrap_tool_call(&self, _: &Run, call: ToolCall, next: NextTool<'_>) -> ToolOutcome {
        match call.name.as_str() {
            "never" => ToolOutcome::text("cached"),
            _ => next.run(call).await,
        }
    }

    async fn after_model(&self, _: &Run, response: &mut ModelResponse) -> Result<Flow, AgentError> {
        match response.message.text().contains("stop") {
            true => Ok(Flow::End),
            false => Ok(Flow::Continue),
        }
    }

    async fn after_agent(&self, _: &Run, outcome: &mut RunOutcome) -> Result<(), AgentError> {
        outcome.message = outcome.message.take().map(|it| Message::assistant(it.text() + "!"));
        Ok(())
    }
}

#[tokio::test]
async fn a_middleware_brings_tools_answers_for_them_and_ends_runs() {
    let replies = [
        Reply::calls([call("1", "never"), call("2", "brought")]),
        Reply::text_and_calls("I stop here", [call("3", "brought")]),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent =
        Agent::builder(model.clone()).tool(tool("never")).middleware(Standin).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(
        (outcome.stop.clone(), outcome.text().as_str()),
        (StopReason::Ended, "I stop here!")
    );
    let tools: Vec<String> =
        model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(tools, ["brought", "never"]);
    let stored = agent.runtime().sessions().messages(&session(), agent.name()).await.unwrap();
    assert_eq!(stored[2].tool_results().next().unwrap().content, "cached");
    let last = stored.last().unwrap();
    assert_eq!((last.text().as_str(), last.tool_calls().count()), ("I stop here", 0));
}

struct Broken;

impl Middleware for Broken {
    async fn before_agent(&self, _: &Run) -> Result<(), AgentError> {
        Err(AgentError::middleware(Middleware::name(self), "out of paper"))
    }
}

#[tokio::test]
async fn a_middleware_that_fails_ends_the_run_and_is_named() {
    let model = Arc::new(ScriptedModel::new([]));
    let agent = Agent::builder(model).middleware(Broken).build().unwrap();
    let error = agent.run(RunRequest::new(session(), "Go.")).await.unwrap_err();
    assert_eq!(error.code(), "middleware_failed");
    assert_eq!(error.to_string(), "Broken has failed: out of paper");
}

struct Count;

impl Slot for Count {
    const NAME: &'static str = "count";
    type Value = u64;
}

/// Remembers how many runs there were, and lets a tool count too.
struct Counting;

impl Middleware for Counting {
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        let declaration = ToolDeclaration::new("set", "Sets it.", json!({"type": "object"}));
        engine.tool(tool_fn(declaration, |arguments| async move {
            let change = Count::set(&arguments["to"].as_u64().unwrap_or_default());
            ToolOutcome::text("set").with_change(change.unwrap())
        }))
    }

    async fn before_agent(&self, run: &Run) -> Result<(), AgentError> {
        let count = run.slot::<Count>().await?;
        run.set_slot::<Count>(&(count + 1)).await
    }
}

#[tokio::test]
async fn a_middleware_remembers_in_the_session() {
    let set = |id: &str, to: u64| ToolCall::new(id, "set", json!({"to": to}));
    let replies = [
        Reply::text("One."),
        Reply::calls([set("1", 40), set("2", 41)]),
        Reply::text("Two."),
        Reply::text("Three."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = Agent::builder(model).middleware(Counting).build().unwrap();
    let count = async || {
        let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
        Count::get(&state).unwrap()
    };
    for expected in [1, 41, 42] {
        agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
        assert_eq!(count().await, expected, "of two in one step the last call's counts");
    }
}
