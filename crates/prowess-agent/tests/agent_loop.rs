//! The loop: what is asked, what is carried out, how it ends (S06, 4).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use prowess_agent::{
    Agent, AgentError, AgentEvent, CancellationToken, FinishReason, ModelError, Reply, RunLimits,
    RunRequest, Runner, ScriptedModel, StopReason,
};
use prowess_runtime::{
    Message, Role, SessionKey, Tool, ToolCall, ToolDeclaration, ToolOutcome, Usage, tool_fn,
};
use serde_json::{Value, json};

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn echo(name: &str) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Says it again.", json!({"type": "object"}));
    tool_fn(declaration, |arguments| async move { ToolOutcome::text(arguments.to_string()) })
}

fn slow(name: &str, millis: u64) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Takes its time.", json!({"type": "object"}));
    tool_fn(declaration, move |_| async move {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        ToolOutcome::text("done")
    })
}

fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(id, tool, arguments)
}

async fn transcript(agent: &Agent) -> Vec<Message> {
    agent.runtime().sessions().messages(&session(), agent.name()).await.unwrap()
}

/// Every call is answered right behind the message that makes it.
fn assert_valid(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.role {
            Role::Tool => {
                for result in message.tool_results() {
                    let at = open.iter().position(|id| *id == result.call_id);
                    open.remove(at.expect("an answer without a call"));
                }
            }
            _ => {
                assert!(open.is_empty(), "calls without an answer: {open:?}");
                open.extend(message.tool_calls().map(|call| call.id.clone()));
            }
        }
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
}

#[tokio::test]
async fn a_model_is_asked_until_it_has_said_its_last_word() {
    let model = Arc::new(ScriptedModel::new([
        Reply::text_and_calls("I look.", [call("1", "echo", json!({"a": 1}))]),
        Reply::text("It says one."),
    ]));
    let agent =
        Agent::builder(model.clone()).system("Be brief.").tool(echo("echo")).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "What does it say?")).await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.steps, outcome.turn), ("It says one.", 2, 1));
    assert_eq!(outcome.stop, StopReason::Answered(FinishReason::Stop));
    let requests = model.requests();
    assert_eq!(requests[0].system, "Be brief.");
    assert_eq!(requests[0].messages[..], requests[1].messages[..1], "a request extends the last");
    let answer = requests[1].messages[2].tool_results().next().unwrap();
    assert_eq!((answer.content.as_str(), answer.call_id.as_str()), (r#"{"a":1}"#, "1"));
    let stored = transcript(&agent).await;
    assert_eq!(stored.len(), 4);
    assert_valid(&stored);
}

#[tokio::test]
async fn calls_of_one_message_run_at_the_same_time_and_are_answered_in_their_order() {
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([
            call("1", "slow", json!({})),
            call("2", "echo", json!({"b": 2})),
            call("3", "slow", json!({})),
        ]),
        Reply::text("Done."),
    ]));
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let declaration = ToolDeclaration::new("slow", "Slow.", json!({"type": "object"}));
    let (inside, high) = (Arc::clone(&running), Arc::clone(&most));
    let tool = tool_fn(declaration, move |_| {
        let (inside, high) = (Arc::clone(&inside), Arc::clone(&high));
        async move {
            high.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            ToolOutcome::text("slow")
        }
    });
    let agent = Agent::builder(model).tool(tool).tool(echo("echo")).build().unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 2, "both slow calls ran at the same time");
    let stored = transcript(&agent).await;
    let order: Vec<&str> =
        stored.iter().flat_map(Message::tool_results).map(|it| it.call_id.as_str()).collect();
    assert_eq!(order, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_wrong_call_is_answered_so_that_the_model_can_recover() {
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([
            call("1", "ecko", json!({})),
            call("2", "echo", json!("{\"a\": ")),
            call("3", "echo", json!([1])),
            call("3", "echo", json!({})),
            call("", "echo", json!({})),
            call("4", "echo", json!("{\"a\": 1}")),
            call("5", "echo", Value::Null),
        ]),
        Reply::text("Sorry."),
    ]));
    let agent = Agent::builder(model.clone()).tool(echo("echo")).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Sorry.");
    let requests = model.requests();
    let answers: Vec<String> = requests[1]
        .messages
        .iter()
        .flat_map(Message::tool_results)
        .map(|result| result.content.clone())
        .collect();
    let expected = [
        "Error: Tool 'ecko' not found.",
        "Error: Invalid arguments for echo: they must be a JSON object",
        "Error: Invalid arguments for echo: they must be a JSON object",
        "{}",
        "{}",
        "{\"a\":1}",
        "{}",
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.starts_with(expected), "{answer}\n{expected}");
    }
    assert_eq!(answers.len(), expected.len());
}

#[tokio::test]
async fn a_run_tells_what_happens_while_it_happens() {
    let usage = |input| {
        let mut usage = Usage::default();
        usage.input_tokens = input;
        usage
    };
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([call("1", "echo", json!({}))]).with_usage(usage(10)),
        Reply::chunks(["For", "ty", "-two."]).with_usage(usage(20)),
    ]));
    let agent = Agent::builder(model).tool(echo("echo")).build().unwrap();
    let mut stream = agent.stream(RunRequest::new(session(), "How many?"));
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        let event = serde_json::to_value(event).unwrap();
        events.push(event["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        events,
        [
            "turn_began",
            "model_called",
            "model_answered",
            "tool_called",
            "tool_answered",
            "model_called",
            "text",
            "text",
            "text",
            "model_answered",
            "finished",
        ]
    );
    let outcome = stream.outcome().await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.usage.input_tokens), ("Forty-two.", 30));
}

#[tokio::test]
async fn steps_and_tokens_are_limited_at_the_edge() {
    for (limit, asked) in [(0, 0), (1, 1), (3, 3)] {
        let model = Arc::new(ScriptedModel::deciding(|request| {
            let id = request.messages.len().to_string();
            Reply::calls([call(&id, "echo", json!({}))])
        }));
        let limits = RunLimits::default().with_max_steps(limit);
        let agent =
            Agent::builder(model.clone()).tool(echo("echo")).limits(limits).build().unwrap();
        let outcome = agent.run(RunRequest::new(session(), "Go on.")).await.unwrap();
        assert_eq!((outcome.stop, outcome.steps), (StopReason::StepLimit, asked));
        assert_eq!(model.requests().len(), asked);
        assert_valid(&transcript(&agent).await);
    }
    for (limit, asked) in [(19, 2), (20, 3)] {
        let model = Arc::new(ScriptedModel::deciding(|request| {
            let id = request.messages.len().to_string();
            let mut usage = Usage::default();
            (usage.input_tokens, usage.output_tokens) = (7, 3);
            Reply::calls([call(&id, "echo", json!({}))]).with_usage(usage)
        }));
        let limits = RunLimits::default().with_max_tokens(limit);
        let agent = Agent::builder(model).tool(echo("echo")).limits(limits).build().unwrap();
        let outcome = agent.run(RunRequest::new(session(), "Go on.")).await.unwrap();
        assert_eq!((outcome.stop, outcome.steps), (StopReason::TokenLimit, asked), "{limit}");
    }
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_given_up_and_the_model_is_told() {
    let replies = [Reply::calls([call("1", "slow", json!({}))]), Reply::text("Too slow.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let limits = RunLimits::default().with_tool_timeout_ms(20);
    let tool = slow("slow", 60_000);
    let agent = Agent::builder(model.clone()).tool(tool).limits(limits).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Too slow.");
    let told = &model.requests()[1].messages[2];
    let told = told.tool_results().next().unwrap();
    assert_eq!(
        (told.is_error, told.content.as_str()),
        (true, "Error: Tool 'slow' took longer than 20 ms and was given up.")
    );
}

#[tokio::test]
async fn cancelling_leaves_a_transcript_that_can_be_gone_on_with() {
    // While the model thinks.
    let replies = [Reply::text("Never.").after(Duration::from_secs(60)), Reply::text("Here.")];
    let agent = Agent::builder(Arc::new(ScriptedModel::new(replies))).build().unwrap();
    let cancel = CancellationToken::new();
    let request = RunRequest::new(session(), "Go.").with_cancel(cancel.clone());
    let (outcome, ()) = tokio::join!(agent.run(request), async { cancel.cancel() });
    assert_eq!(outcome.unwrap().stop, StopReason::Cancelled);
    assert_valid(&transcript(&agent).await);
    let outcome = agent.run(RunRequest::new(session(), "And now?")).await.unwrap();
    assert_eq!(outcome.text(), "Here.");
    // While a tool works: it is answered, and so are the others.
    let calls = [call("1", "slow", json!({})), call("2", "echo", json!({}))];
    let model = Arc::new(ScriptedModel::new([Reply::calls(calls), Reply::text("Never.")]));
    let agent =
        Agent::builder(model).tool(slow("slow", 60_000)).tool(echo("echo")).build().unwrap();
    let cancel = CancellationToken::new();
    let mut stream = agent.stream(RunRequest::new(session(), "Go.").with_cancel(cancel.clone()));
    while let Some(event) = stream.next().await {
        if matches!(&event, AgentEvent::ToolCalled { call } if call.id == "2") {
            cancel.cancel();
        }
    }
    assert_eq!(stream.outcome().await.unwrap().stop, StopReason::Cancelled);
    let stored = transcript(&agent).await;
    assert_valid(&stored);
    let results: Vec<_> = stored.iter().flat_map(Message::tool_results).collect();
    assert!(results[0].content.contains("was cancelled"), "{results:?}");
}

#[tokio::test]
async fn a_run_that_was_dropped_goes_on_from_the_last_step_that_was_committed() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ran);
    let declaration = ToolDeclaration::new("work", "Works.", json!({"type": "object"}));
    let tool = tool_fn(declaration, move |arguments| {
        seen.lock().unwrap().push(arguments["n"].as_u64().unwrap());
        async { ToolOutcome::text("ok") }
    });
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([call("1", "work", json!({"n": 1}))]),
        Reply::calls([call("2", "work", json!({"n": 2}))]),
        Reply::calls([call("3", "work", json!({"n": 3}))]),
        Reply::text("All done."),
    ]));
    let agent = Agent::builder(model.clone()).tool(tool).build().unwrap();
    // The process dies when the second step is committed and the third was not asked for.
    let mut stream = agent.stream(RunRequest::new(session(), "Work."));
    let mut answered = 0;
    while let Some(event) = stream.next().await {
        answered += usize::from(matches!(event, AgentEvent::ToolAnswered { .. }));
        if answered == 2 {
            break;
        }
    }
    drop(stream);
    assert_valid(&transcript(&agent).await);
    let outcome = agent.resume(session(), CancellationToken::new()).outcome().await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.turn), ("All done.", 1));
    assert_eq!(*ran.lock().unwrap(), [1, 2, 3], "nothing ran twice");
    // There is nothing more to do; the model is not asked.
    let before = model.requests().len();
    let again = agent.resume(session(), CancellationToken::new()).outcome().await.unwrap();
    assert_eq!((again.text().as_str(), again.steps), ("All done.", 0));
    assert_eq!(model.requests().len(), before);
    let other = agent.resume("nobody".parse().unwrap(), CancellationToken::new()).outcome().await;
    assert_eq!(other.unwrap().message, None);
}

#[tokio::test]
async fn a_model_that_fails_ends_the_run_and_nothing_is_lost() {
    let error = || Reply::error(ModelError::Auth { message: "no".to_owned() });
    let model = Arc::new(ScriptedModel::new([
        Reply::calls([call("1", "echo", json!({}))]),
        error(),
        Reply::text("Better."),
    ]));
    let agent = Agent::builder(model).tool(echo("echo")).build().unwrap();
    let failed = agent.run(RunRequest::new(session(), "Go.")).await.unwrap_err();
    assert_eq!((failed.code(), failed.to_string().as_str()), ("auth", "not authorised: no"));
    assert_valid(&transcript(&agent).await);
    let outcome = agent.resume(session(), CancellationToken::new()).outcome().await.unwrap();
    assert_eq!(outcome.text(), "Better.");
}

#[tokio::test]
async fn an_answer_without_words_is_no_message() {
    let model = Arc::new(ScriptedModel::new([Reply::events([])]));
    let agent = Agent::builder(model).build().unwrap();
    let cut = agent.run(RunRequest::new(session(), "Go.")).await.unwrap_err();
    assert_eq!(cut.code(), "cut_stream");
    let model = Arc::new(ScriptedModel::new([Reply::calls([])]));
    let agent = Agent::builder(model).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "");
    assert_eq!(transcript(&agent).await.len(), 1, "only what the user said");
}

#[tokio::test]
async fn a_runner_keeps_users_and_sessions_apart_and_runs_one_turn_of_a_session_at_a_time() {
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let last = request.messages.last().map(Message::text).unwrap_or_default();
        Reply::text(format!("{} of {}", last, request.messages.len()))
    }));
    let runner = Runner::new("app", Agent::builder(model).build().unwrap());
    let say = async |user, session, text| runner.run(user, session, text).await.unwrap().text();
    assert_eq!(say("a", "1", "x").await, "x of 1");
    assert_eq!(say("a", "1", "y").await, "y of 3");
    assert_eq!(say("b", "1", "z").await, "z of 1");
    assert_eq!(say("a", "2", "z").await, "z of 1");
    let first = runner.stream("a", "1", "first");
    let busy = runner.run("a", "1", "second").await.unwrap_err();
    assert_eq!(busy.code(), "session_busy");
    drop(first);
    assert_eq!(say("a", "1", "third").await, "third of 5", "a dropped run gives the session free");
    let invalid = runner.run("", "1", "x").await.unwrap_err();
    assert!(matches!(invalid, AgentError::InvalidSession(_)), "{invalid:?}");
}

#[tokio::test]
async fn closing_a_runner_ends_its_runs_and_begins_no_more() {
    let reply = Reply::text("Never.").after(Duration::from_secs(60));
    let runner =
        Runner::new("app", Agent::builder(Arc::new(ScriptedModel::new([reply]))).build().unwrap());
    let running = tokio::spawn({
        let runner = runner.clone();
        async move { runner.run("a", "1", "Go.").await }
    });
    tokio::task::yield_now().await;
    runner.close().await;
    assert_eq!(running.await.unwrap().unwrap().stop, StopReason::Cancelled);
    assert_eq!(runner.run("a", "2", "Go.").await.unwrap_err().code(), "runner_closed");
    assert!(!runner.cancel("a", "1"));
}

#[tokio::test]
async fn many_runs_do_not_wait_for_each_other() {
    let model = Arc::new(ScriptedModel::deciding(|request| match request.messages.len() {
        1 => Reply::calls([call("1", "slow", json!({}))]),
        _ => Reply::text("Done."),
    }));
    let agent = Agent::builder(model).tool(slow("slow", 200)).build().unwrap();
    let runner = Runner::new("app", agent);
    let runs = (0..200).map(|number| {
        let runner = runner.clone();
        async move { runner.run("u", &number.to_string(), "Go.").await.unwrap().text() }
    });
    let all = tokio::time::timeout(Duration::from_secs(20), futures_util::future::join_all(runs));
    let texts = all.await.expect("one after the other they would take 40 seconds");
    assert!(texts.iter().all(|text| text == "Done."));
}
