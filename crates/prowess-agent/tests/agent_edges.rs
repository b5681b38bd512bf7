//! What must not break a run: slow readers, deaf models, repeated ids, many calls (S06, 4).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use prowess_agent::{
    Agent, AgentError, AgentEvent, CancellationToken, ChatModel, Flow, Middleware, ModelCall,
    ModelFuture, ModelRequest, ModelResponse, NextModel, Reply, Run, RunLimits, RunRequest, Runner,
    ScriptedModel, SkillsMiddleware, StopReason,
};
use prowess_catalog::{Catalog, MemorySource, Snapshot};
use prowess_runtime::{
    Effect, Invocation, Message, Role, SessionKey, Tool, ToolCall, ToolDeclaration, ToolFuture,
    ToolOutcome, Usage, tool_fn,
};
use serde_json::json;

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn declaration(name: &str) -> ToolDeclaration {
    ToolDeclaration::new(name, "Does it.", json!({"type": "object"}))
}

/// A tool, and how often it ran.
fn counted(name: &str) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let tool = tool_fn(declaration(name), move |_| {
        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { ToolOutcome::text(format!("time {now}")) }
    });
    (tool, ran)
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, json!({}))
}

async fn transcript(agent: &Agent) -> Vec<Message> {
    agent.runtime().sessions().messages(&session(), agent.name()).await.unwrap()
}

/// Every call is answered right behind the message that makes it, and no id is used twice.
fn assert_valid(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    let mut all = std::collections::HashSet::new();
    for message in messages {
        match message.role {
            Role::Tool => {
                for result in message.tool_results() {
                    assert_eq!(open.remove(0), result.call_id);
                }
            }
            _ => {
                assert!(open.is_empty(), "calls without an answer: {open:?}");
                open.extend(message.tool_calls().map(|call| call.id.clone()));
                assert!(open.iter().all(|id| !id.is_empty() && all.insert(id.clone())));
            }
        }
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
}

async fn events(mut stream: prowess_agent::RunStream) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    stream.outcome().await.unwrap();
    events
}

#[tokio::test]
async fn no_event_is_lost_however_many_there_are_at_once() {
    for buffer in [1, 2, 256, 4096] {
        for chunks in [1, 60, 100, 120, 200, 1000] {
            let model = ScriptedModel::new([Reply::chunks(vec!["x"; chunks])]);
            let limits = RunLimits::default().with_event_buffer(buffer);
            let agent = Agent::builder(Arc::new(model)).limits(limits).build().unwrap();
            let events = events(agent.stream(RunRequest::new(session(), "Go."))).await;
            let texts = events.iter().filter(|it| matches!(it, AgentEvent::Text { .. })).count();
            assert_eq!(texts, chunks, "with room for {buffer}");
            assert!(matches!(events.last(), Some(AgentEvent::Finished { .. })));
        }
    }
}

#[tokio::test]
async fn a_model_whose_ids_repeat_gets_its_calls_carried_out() {
    let (tool, ran) = counted("poll");
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([call("call_0", "poll")]),
        Reply::calls([call("call_0", "poll")]),
        Reply::calls([call("call_0", "poll"), call("", "poll"), call("call_0", "poll")]),
        Reply::text("Done."),
    ]));
    let agent = Agent::builder(model.clone()).tool(tool).build().unwrap();
    let events = events(agent.stream(RunRequest::new(session(), "Go."))).await;
    assert_eq!(ran.load(Ordering::SeqCst), 5);
    let stored = transcript(&agent).await;
    assert_valid(&stored);
    assert_valid(&model.requests()[3].messages);
    assert_eq!(stored.len(), 1 + 2 + 2 + 4 + 1);
    let problems = events.iter().filter(|it| matches!(it, AgentEvent::Problem { .. })).count();
    assert_eq!(problems, 1, "it is told, once");
    // A later run knows of the ids too.
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([call("call_0", "poll")]),
        Reply::text("Done."),
    ]));
    let (tool, ran) = counted("poll");
    let sessions = Arc::clone(agent.runtime().sessions());
    let agent = Agent::builder(model).tool(tool).engine(|it| it.sessions(sessions)).build();
    let agent = agent.unwrap();
    agent.run(RunRequest::new(session(), "Again.")).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_valid(&transcript(&agent).await);
}

#[tokio::test]
async fn ten_thousand_calls_in_one_message_are_answered() {
    let (tool, ran) = counted("work");
    let calls = (0..10_000).map(|number| call(&format!("c{number}"), "work"));
    let model = Arc::new(ScriptedModel::new([Reply::calls(calls), Reply::text("Done.")]));
    let agent = Agent::builder(model).tool(tool).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!((outcome.text().as_str(), ran.load(Ordering::SeqCst)), ("Done.", 10_000));
    assert_valid(&transcript(&agent).await);
}

/// Changes the state, and so runs in its turn.
struct InOrder(&'static str, CancellationToken, Arc<Mutex<Vec<&'static str>>>, ToolDeclaration);

impl Tool for InOrder {
    fn declaration(&self) -> &ToolDeclaration {
        &self.3
    }

    fn effect(&self, _: &ToolCall, _: &Snapshot) -> Effect {
        Effect::State
    }

    fn call<'a>(&'a self, _: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            self.2.lock().unwrap().push(self.0);
            self.1.cancel();
            ToolOutcome::text("ok")
        })
    }
}

#[tokio::test]
async fn what_is_cancelled_before_it_begins_does_not_begin() {
    for _ in 0..20 {
        let cancel = CancellationToken::new();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let tool = |name| {
            Arc::new(InOrder(name, cancel.clone(), Arc::clone(&ran), declaration(name)))
                as Arc<dyn Tool>
        };
        let model = ScriptedModel::new([Reply::calls([call("1", "first"), call("2", "second")])]);
        let agent = Agent::builder(Arc::new(model)).tool(tool("first")).tool(tool("second"));
        let agent = agent.build().unwrap();
        let request = RunRequest::new(session(), "Go.").with_cancel(cancel.clone());
        assert_eq!(agent.run(request).await.unwrap().stop, StopReason::Cancelled);
        assert_eq!(*ran.lock().unwrap(), ["first"]);
        let stored = transcript(&agent).await;
        assert_valid(&stored);
        let said: Vec<&str> =
            stored.iter().flat_map(Message::tool_results).map(|it| it.content.as_str()).collect();
        assert_eq!(said, ["ok", "Error: Tool 'second' was cancelled before it began."]);
    }
}

// Its clock goes on only where everybody waits: the tool is never late by itself.
#[tokio::test(start_paused = true)]
async fn what_a_tool_has_done_counts_however_late_somebody_reads() {
    let tool = tool_fn(declaration("quick"), |_| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        ToolOutcome::text("done")
    });
    for _ in 0..8 {
        let replies = [Reply::calls([call("1", "quick")]), Reply::text("Done.")];
        let limits = RunLimits::default().with_tool_timeout_ms(5);
        let agent = Agent::builder(Arc::new(ScriptedModel::new(replies)));
        let agent = agent.tool(Arc::clone(&tool)).limits(limits).build().unwrap();
        let mut stream = agent.stream(RunRequest::new(session(), "Go."));
        while let Some(event) = stream.next().await {
            if matches!(event, AgentEvent::ToolCalled { .. }) {
                assert!(stream.next().now_or_never().is_none(), "the tool has begun");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert_eq!(stream.outcome().await.unwrap().text(), "Done.");
        let stored = transcript(&agent).await;
        assert_eq!(stored[2].tool_results().next().unwrap().content, "done");
    }
}

/// Never answers, and never listens.
struct Deaf;

impl ChatModel for Deaf {
    fn name(&self) -> &str {
        "deaf"
    }

    fn complete<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(std::future::pending())
    }
}

/// Never comes back.
struct Stuck(&'static str);

impl Middleware for Stuck {
    async fn before_agent(&self, _: &Run) -> Result<(), AgentError> {
        match self.0 {
            "before_agent" => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn before_model(&self, _: &Run, _: &mut ModelCall) -> Result<(), AgentError> {
        match self.0 {
            "before_model" => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn after_model(&self, _: &Run, _: &mut ModelResponse) -> Result<Flow, AgentError> {
        match self.0 {
            "after_model" => std::future::pending().await,
            _ => Ok(Flow::Continue),
        }
    }
}

#[tokio::test]
async fn a_run_ends_when_it_is_cancelled_whoever_does_not_listen() {
    let says = || Arc::new(ScriptedModel::new([Reply::text("Hello.")])) as Arc<dyn ChatModel>;
    for (model, at) in [
        (Arc::new(Deaf) as Arc<dyn ChatModel>, "nowhere"),
        (says(), "before_agent"),
        (says(), "before_model"),
        (says(), "after_model"),
    ] {
        let agent = Agent::builder(model).middleware(Stuck(at)).build().unwrap();
        let runner = Runner::new("app", agent);
        let running = tokio::spawn({
            let runner = runner.clone();
            async move { runner.run("a", "1", "Go.").await }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let closed = tokio::time::timeout(Duration::from_secs(5), runner.close()).await;
        assert!(closed.is_ok(), "stuck: {at}");
        assert_eq!(running.await.unwrap().unwrap().stop, StopReason::Cancelled);
    }
}

/// Asks twice, and takes the second answer.
struct Twice;

impl Middleware for Twice {
    async fn wrap_model_call(
        &self,
        _: &Run,
        call: ModelCall,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, AgentError> {
        next.run(call.clone()).await?;
        next.run(call).await
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_paid_for() {
    let reply = || {
        let mut usage = Usage::default();
        (usage.input_tokens, usage.output_tokens) = (7, 3);
        Reply::text("Hello.").with_usage(usage)
    };
    let model = Arc::new(ScriptedModel::new([reply(), reply()]));
    let agent = Agent::builder(model).middleware(Twice).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!((outcome.usage.input_tokens, outcome.usage.output_tokens), (14, 6));
    assert_eq!(outcome.steps, 1);
}

#[tokio::test]
async fn a_problem_is_told_once_a_run() {
    let text = "---\nname: query\ndescription: Does it.\nmodel: big\n---\nQuery.\n";
    let source = MemorySource::new("memory").with_skill("query", text);
    let (tool, _) = counted("work");
    let replies = [
        Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "query"}))]),
        Reply::calls([call("2", "work")]),
        Reply::calls([call("3", "work")]),
        Reply::text("Done."),
    ];
    let agent = Agent::builder(Arc::new(ScriptedModel::new(replies)))
        .tool(tool)
        .middleware(SkillsMiddleware::new(Catalog::builder().source(source).build()))
        .build()
        .unwrap();
    let events = events(agent.stream(RunRequest::new(session(), "Go."))).await;
    let problems = events.iter().filter(|it| matches!(it, AgentEvent::Problem { .. })).count();
    assert_eq!(problems, 1);
}

struct Panics;

impl Middleware for Panics {
    async fn before_model(&self, _: &Run, _: &mut ModelCall) -> Result<(), AgentError> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_session_is_free_again_after_a_panic() {
    let agent = Agent::builder(Arc::new(ScriptedModel::new([]))).middleware(Panics).build();
    let runner = Runner::new("app", agent.unwrap());
    for _ in 0..2 {
        let other = runner.clone();
        let run = tokio::spawn(async move { other.run("a", "1", "Go.").await });
        assert!(run.await.unwrap_err().is_panic());
    }
    let closed = tokio::time::timeout(Duration::from_secs(5), runner.close()).await;
    assert!(closed.is_ok());
}

/// Drops a run at every event, and goes on with it.
#[tokio::test]
async fn a_run_can_be_dropped_at_every_event() {
    for buffer in [1, 256] {
        let mut at = 1;
        loop {
            let replies = |request: &ModelRequest| match request.messages.len() {
                1 => Reply::calls([call("1", "work"), call("2", "work")]),
                4 => Reply::calls([call("3", "work")]),
                _ => Reply::chunks(["All ", "done."]),
            };
            let (tool, _) = counted("work");
            let limits = RunLimits::default().with_event_buffer(buffer);
            let agent = Agent::builder(Arc::new(ScriptedModel::deciding(replies)));
            let agent = agent.tool(tool).limits(limits).build().unwrap();
            let mut stream = agent.stream(RunRequest::new(session(), "Go."));
            let mut read = 0;
            while read < at && stream.next().await.is_some() {
                read += 1;
            }
            drop(stream);
            assert_valid(&transcript(&agent).await);
            let outcome = agent.resume(session(), CancellationToken::new()).outcome().await;
            assert_eq!(outcome.unwrap().text(), "All done.");
            let stored = transcript(&agent).await;
            assert_valid(&stored);
            assert_eq!(stored.len(), 1 + 3 + 2 + 1, "dropped behind event {at}");
            if read < at {
                break;
            }
            at += 1;
        }
        assert!(at > 10);
    }
}
