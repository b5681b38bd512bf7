//! The one way of every call: visible, gate, interceptors, tool, commit, event.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use prowess_catalog::Snapshot;
use prowess_runtime::{
    AgentName, Blocked, Effect, EventKind, EventLevel, Intercepted, Interception, Interceptor,
    InterceptorFuture, Invocation, Message, SessionKey, Settings, Step, Tool, ToolDeclaration,
    ToolFuture, ToolOutcome, Visibility, WhenFull, tool_fn,
};
use serde_json::{Value, json};
use support::{Plan, skill};

fn declaration(name: &str) -> ToolDeclaration {
    ToolDeclaration::new(name, "A tool of the host.", json!({"type": "object"}))
}

/// A tool that says what it was given.
fn echo(name: &str) -> Arc<dyn Tool> {
    tool_fn(declaration(name), |arguments| async move { ToolOutcome::json(arguments) })
}

#[tokio::test]
async fn tools_of_the_host_take_the_same_way() {
    let world = Plan::new().change(|builder| builder.tool(echo("echo"))).build();
    let outcome = world.call("echo", json!({"a": 1})).await;
    assert_eq!((outcome.content.as_str(), outcome.code.as_ref()), (r#"{"a":1}"#, "ok"));
    let events = world.events_of(EventKind::ToolCalled);
    assert_eq!(events[0].tool.as_deref(), Some("echo"));
    assert_eq!(events[0].content_bytes, Some(7));
    let messages = world.messages().await;
    assert_eq!(messages.len(), 2, "the call and its result");
    assert_eq!(messages[0].tool_calls().next().unwrap().name, "echo");
    assert_eq!(messages[1].tool_results().next().unwrap().content, r#"{"a":1}"#);
}

#[tokio::test]
async fn an_unknown_tool_is_an_outcome() {
    let world = Plan::new().build();
    let outcome = world.call("lod_skill", json!({})).await;
    assert_eq!(
        outcome.content,
        "Error: Tool 'lod_skill' not found. Available tools: list_loaded_skills, load_skill, \
         load_skill_detail, skill_list_docs, skill_select_docs, unload_skill"
    );
    assert_eq!(outcome.hint.as_deref(), Some("Did you mean 'load_skill'?"));
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "unknown_tool"));
}

/// Who may be called, by who declares the tool and what is loaded.
#[tokio::test]
async fn a_tool_waits_for_the_skill_that_declares_it() {
    let declares = |extra: &str| {
        format!(
            "---\nname: sql\ndescription: Queries.\ntool_configs:\n  - name: sql_query\n    \
             description: Query.\n    method: query\n{extra}---\nBody\n"
        )
    };
    let included = "---\nname: sql\ndescription: Queries.\nmetadata:\n  include_tools: sql_query other\n---\nBody\n";
    // The skill's text; whether the host ties the tool to it; free before the load?
    let table: [(&str, String, bool, bool); 5] = [
        ("declared", declares(""), false, false),
        ("does not mind", declares("    requires_skill_loaded: false\n"), false, true),
        ("included", included.to_owned(), false, false),
        ("tied by the host", skill("sql", "Queries.", "Body\n"), true, false),
        ("a plain tool", skill("sql", "Queries.", "Body\n"), false, true),
    ];
    for (case, text, tied, free) in table {
        let plan = Plan::new().file("sql/SKILL.md", text);
        let world = plan
            .change(move |builder| match tied {
                true => builder.skill_tool("sql", echo("sql_query")),
                false => builder.tool(echo("sql_query")),
            })
            .build();
        let before = world.call("sql_query", json!({})).await;
        assert_eq!(before.code == "ok", free, "{case}: before the load");
        if !free {
            assert_eq!(
                before.content,
                "The 'sql_query' tool requires the 'sql' skill to be loaded first.\nPlease use \
                 load_skill('sql') before using this tool.",
                "{case}"
            );
            assert_eq!((before.is_error, before.code.as_ref()), (true, "skill_not_loaded"));
            let blocked = world.events_of(EventKind::ToolBlocked);
            assert_eq!(blocked[0].level, EventLevel::Warning, "{case}");
        }
        world.load("sql").await;
        assert_eq!(world.call("sql_query", json!({})).await.code, "ok", "{case}: loaded");
        world.call("unload_skill", json!({"skill": "sql"})).await;
        let after = world.call("sql_query", json!({})).await;
        assert_eq!(after.code == "ok", free, "{case}: unloaded");
    }
}

#[tokio::test]
async fn no_skill_can_lock_the_load_tools_or_open_what_another_keeps_shut() {
    let declares = |name: &str, tool: &str, requires: bool| {
        format!(
            "---\nname: {name}\ndescription: D.\ntool_configs:\n  - name: {tool}\n    \
             description: D.\n    method: m\n    requires_skill_loaded: {requires}\n---\nBody\n"
        )
    };
    let world = Plan::new()
        .file("evil/SKILL.md", declares("evil", "load_skill", true))
        .file("sql/SKILL.md", declares("sql", "sql_query", true))
        .file("opener/SKILL.md", declares("opener", "sql_query", false))
        .change(|builder| builder.tool(echo("sql_query")))
        .build();
    assert_eq!(world.call("sql_query", json!({})).await.code, "skill_not_loaded");
    assert_eq!(world.load("opener").await.code, "loaded");
    assert_eq!(world.call("sql_query", json!({})).await.code, "skill_not_loaded");
    assert_eq!(world.load("sql").await.code, "loaded");
    assert_eq!(world.call("sql_query", json!({})).await.code, "ok");
}

#[tokio::test]
async fn hiding_a_skill_opens_none_of_its_tools_and_does_not_name_it() {
    let sql =
        "---\nname: sql\ndescription: Queries.\nmetadata:\n  include_tools: sql_query\n---\nx";
    let hidden = Visibility::Hidden;
    let settings = Settings::default().with_visibility([("sql".to_owned(), hidden)].into());
    let world = Plan::new()
        .file("sql/SKILL.md", sql)
        .skill("other", "x")
        .settings(settings)
        .change(|builder| builder.tool(echo("sql_query")))
        .build();
    let refused = world.call("sql_query", json!({})).await;
    let unknown = world.call("no_such_tool", json!({})).await;
    assert_eq!((refused.code.as_ref(), unknown.code.as_ref()), ("unknown_tool", "unknown_tool"));
    assert!(!refused.content.contains("'sql'"), "{}", refused.content);
    let snapshot = world.runtime.snapshot(&world.session, &world.agent).await;
    let checked = world.runtime.check(
        &world.tool_call("sql_query", json!({})),
        &world.state().await,
        &snapshot,
    );
    assert_eq!(checked, Err(Blocked::UnknownTool));
}

#[tokio::test]
async fn a_load_and_the_tool_it_opens_may_be_called_in_one_step() {
    let world = Plan::new()
        .skill("sql", "Body")
        .change(|builder| builder.skill_tool("sql", echo("sql_query")))
        .build();
    let query = || world.tool_call("sql_query", json!({}));
    let load = world.tool_call("load_skill", json!({"skill": "sql"}));
    let result = world.step(vec![query(), load, query()]).await;
    let codes: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.code.as_ref()).collect();
    assert_eq!(codes, ["skill_not_loaded", "loaded", "ok"], "in the order of the calls");
}

#[tokio::test]
async fn calls_of_one_step_are_committed_at_once_and_answered_in_order() {
    let plan = Plan::new().skill("a", "A").skill("b", "B").skill("c", "C");
    let world = plan.settings(Settings::default().with_max_loaded_skills(2)).build();
    let load = |name: &str| world.tool_call("load_skill", json!({"skill": name}));
    let calls = vec![load("a"), load("a"), load("b"), load("c")];
    let result = world.step(calls).await;
    let codes: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.code.as_ref()).collect();
    assert_eq!(codes, ["loaded", "already_loaded", "loaded", "load_limit"]);
    assert_eq!(world.state().await.loaded_names(), ["a", "b"]);
    assert_eq!((result.revision.0, world.revision().await), (1, 1), "one commit");
    assert_eq!(world.messages().await.len(), 5, "what the model said, and four results");
}

#[tokio::test]
async fn tools_that_do_not_change_the_state_run_at_the_same_time() {
    // Each waits until all of them have begun: one after the other would never end.
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let tool = tool_fn(declaration("meet"), move |_| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            ToolOutcome::text("met")
        }
    });
    let world = Plan::new().change(move |builder| builder.tool(tool)).build();
    let calls = (0..3).map(|_| world.tool_call("meet", json!({}))).collect();
    let result = world.step(calls).await;
    assert!(result.outcomes.iter().all(|outcome| outcome.content == "met"));
}

#[tokio::test]
async fn a_call_that_was_committed_is_not_carried_out_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let tool = tool_fn(declaration("roll"), move |_| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { ToolOutcome::text(format!("rolled {number}")) }
    });
    let world =
        Plan::new().skill("a", "Text of a").change(move |builder| builder.tool(tool)).build();
    let calls = vec![
        world.tool_call("roll", json!({})),
        world.tool_call("load_skill", json!({"skill": "a"})),
    ];
    let first = world.step(calls.clone()).await;
    let (messages, events) = (world.messages().await, world.events().len());
    let second = world.step(calls).await;
    let texts = |outcomes: &[ToolOutcome]| -> Vec<String> {
        outcomes.iter().map(|outcome| outcome.content.clone()).collect()
    };
    assert_eq!(texts(&first.outcomes), ["rolled 1", "Text of a"]);
    assert_eq!(texts(&second.outcomes), ["rolled 1", "Text of a"], "the whole text, not the stub");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!((world.messages().await, world.events().len()), (messages, 0), "{events}");
    assert_eq!(world.state().await.loaded("a").unwrap().load_count, 1);
}

#[tokio::test]
async fn a_call_with_the_id_of_another_call_is_refused_and_changes_nothing() {
    let world = Plan::new().skill("a", "Text of a").skill("b", "Text of b").build();
    let load = |id: &str, skill: &str| {
        prowess_runtime::ToolCall::new(id, "load_skill", json!({"skill": skill}))
    };
    // Within a step: the first one counts.
    let result = world.step(vec![load("x", "a"), load("x", "b"), load("", "b")]).await;
    let codes: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.code.as_ref()).collect();
    assert_eq!(codes, ["loaded", "invalid_call_id", "invalid_call_id"]);
    assert_eq!(
        result.outcomes[1].content,
        "Error: Tool 'load_skill' was not called: the id of the call is wrong: another call of \
         this step has it"
    );
    assert_eq!(world.state().await.loaded_names(), ["a"]);
    assert_eq!(world.events_of(EventKind::SkillLoaded).len(), 1);
    // Later: other arguments, and another tool.
    let other = world.step(vec![load("x", "c")]).await.outcomes.remove(0);
    assert_eq!((other.is_error, other.code.as_ref()), (true, "invalid_call_id"));
    let tool = prowess_runtime::ToolCall::new("x", "unload_skill", json!({"skill": "a"}));
    assert_eq!(world.step(vec![tool]).await.outcomes[0].code, "invalid_call_id");
    assert_eq!(world.state().await.loaded_names(), ["a"]);
    // The call itself is still answered as it was.
    let again = world.step(vec![load("x", "a")]).await.outcomes.remove(0);
    assert_eq!((again.code.as_ref(), again.content.as_str()), ("repeated", "Text of a"));
}

#[tokio::test]
async fn a_call_that_is_repeated_beside_a_new_one_is_answered_behind_both_messages() {
    let world = Plan::new().skill("a", "Text of a").skill("b", "Text of b").build();
    let load = |id: &str, skill: &str| {
        prowess_runtime::ToolCall::new(id, "load_skill", json!({"skill": skill}))
    };
    world.step(vec![load("x", "a")]).await;
    world.step(vec![load("x", "a"), load("y", "b")]).await;
    let stored = world.messages().await;
    let answered: Vec<&str> =
        stored.iter().flat_map(Message::tool_results).map(|it| it.call_id.as_str()).collect();
    assert_eq!(answered, ["x", "x", "y"]);
    let results: Vec<_> = stored.iter().flat_map(Message::tool_results).collect();
    assert_eq!(results[0], results[1], "as a stub, both times");
    assert_eq!(world.events_of(EventKind::SkillLoaded).len(), 2, "nothing ran twice");
}

#[tokio::test]
async fn a_call_that_was_blocked_is_answered_the_same_way_again() {
    let world = Plan::new()
        .skill("sql", "Body")
        .change(|builder| builder.skill_tool("sql", echo("sql_query")))
        .build();
    let call = world.tool_call("sql_query", json!({}));
    let first = world.step(vec![call.clone()]).await.outcomes.remove(0);
    assert_eq!(first.code, "skill_not_loaded");
    world.load("sql").await;
    let second = world.step(vec![call]).await.outcomes.remove(0);
    assert_eq!((second.code.as_ref(), second.content), ("repeated", first.content));
}

/// Lets another delivery of the call be committed while the first one is on its way.
struct DeliverTwice(Arc<Mutex<Option<prowess_runtime::Runtime>>>);

impl Interceptor for DeliverTwice {
    fn after<'a>(
        &'a self,
        call: Intercepted<'a>,
        outcome: ToolOutcome,
    ) -> InterceptorFuture<'a, ToolOutcome> {
        let runtime = self.0.lock().unwrap().take();
        Box::pin(async move {
            if let Some(runtime) = runtime {
                runtime.dispatch(call.session, call.agent, call.call.clone()).await.unwrap();
            }
            outcome
        })
    }
}

#[tokio::test]
async fn a_call_that_is_delivered_twice_at_once_is_committed_once() {
    let slot: Arc<Mutex<Option<prowess_runtime::Runtime>>> = Arc::default();
    let twice = Arc::new(DeliverTwice(Arc::clone(&slot)));
    let world =
        Plan::new().skill("a", "A").change(move |builder| builder.interceptor(twice)).build();
    *slot.lock().unwrap() = Some(world.runtime.clone());
    let outcome = world.load("a").await;
    assert_eq!((outcome.code.as_ref(), outcome.content.as_str()), ("repeated", "A"));
    assert_eq!(world.messages().await.len(), 2, "one call, one result");
    let kinds: Vec<EventKind> = world.events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::SkillsDiscovered, EventKind::SkillLoaded]);
}

/// A tool that counts how often it is called, and takes a while.
fn slow(calls: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let calls = Arc::clone(calls);
    tool_fn(declaration("slow"), move |_| {
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ToolOutcome::text(format!("run {number}"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_again_while_it_runs_is_carried_out_once() {
    let calls = Arc::default();
    let tool = slow(&calls);
    let world = Plan::new().change(move |builder| builder.tool(tool)).build();
    let call = |id: &str| {
        let call = prowess_runtime::ToolCall::new(id, "slow", json!({}));
        world.runtime.dispatch(&world.session, &world.agent, call)
    };
    let outcomes = join_all((0..8).map(|_| call("same"))).await;
    let contents: Vec<String> = outcomes.into_iter().map(|it| it.unwrap().content).collect();
    assert_eq!(contents, ["run 1"; 8]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // The control: calls of other ids do not wait for each other.
    let began = tokio::time::Instant::now();
    let others = ["a", "b", "c"].map(call);
    join_all(others).await;
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_does_not_keep_the_next_one_waiting() {
    let calls = Arc::default();
    let tool = slow(&calls);
    let world = Plan::new().change(move |builder| builder.tool(tool)).build();
    let call = || {
        let call = prowess_runtime::ToolCall::new("same", "slow", json!({}));
        world.runtime.dispatch(&world.session, &world.agent, call)
    };
    let given_up = tokio::time::timeout(Duration::from_secs(1), call()).await;
    assert!(given_up.is_err());
    assert_eq!(call().await.unwrap().content, "run 2");
}

#[tokio::test]
async fn a_tool_that_panics_fails_alone() {
    let tool = tool_fn(declaration("break"), |_| async { panic!("on purpose") });
    let world = Plan::new().skill("a", "A").change(move |builder| builder.tool(tool)).build();
    let calls = vec![
        world.tool_call("break", json!({})),
        world.tool_call("load_skill", json!({"skill": "a"})),
    ];
    let outcomes = world.step(calls).await.outcomes;
    assert_eq!(outcomes[0].content, "Error: Tool 'break' broke down.");
    assert_eq!((outcomes[0].is_error, outcomes[0].code.as_ref()), (true, "tool_panicked"));
    assert_eq!(outcomes[1].code, "loaded");
    assert_eq!(world.events_of(EventKind::CallFailed).len(), 1);
    assert_eq!(world.state().await.loaded_names(), ["a"]);
}

/// Makes every outcome a failure, and leaves the rest of it as it is.
struct Spoiler;

impl Interceptor for Spoiler {
    fn after<'a>(
        &'a self,
        _call: Intercepted<'a>,
        mut outcome: ToolOutcome,
    ) -> InterceptorFuture<'a, ToolOutcome> {
        outcome.is_error = true;
        Box::pin(std::future::ready(outcome))
    }
}

#[tokio::test]
async fn a_failure_changes_nothing_whoever_makes_it_one() {
    let change = || prowess_runtime::Change::SetContext { skill: "a".to_owned(), value: json!(1) };
    let tool = tool_fn(declaration("fail"), move |_| async move {
        ToolOutcome::error("failed", "Failed.").with_change(change())
    });
    let world = Plan::new().change(move |builder| builder.tool(tool)).build();
    assert!(world.call("fail", json!({})).await.changes.is_empty());
    assert!(world.state().await.context.is_empty());
    let spoilt = Plan::new()
        .skill("a", "A")
        .change(|builder| builder.interceptor(Arc::new(Spoiler)))
        .build();
    assert!(spoilt.load("a").await.is_error);
    assert!(spoilt.state().await.loaded.is_empty());
    assert!(spoilt.events_of(EventKind::SkillLoaded).is_empty());
    // Nor does it say that something is loaded, now or in the transcript.
    let system = Settings::default().with_placement(prowess_runtime::Placement::System);
    for settings in [Settings::default(), system] {
        let spoilt = Plan::new()
            .skill("a", "A")
            .settings(settings)
            .change(|builder| builder.interceptor(Arc::new(Spoiler)))
            .build();
        assert_eq!(spoilt.load("a").await.content, "A");
        let messages = spoilt.messages().await;
        assert_eq!(messages[1].tool_results().next().unwrap().content, "A");
    }
}

/// Notes what passes.
struct Watcher {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
    verdict: Interception,
}

impl Interceptor for Watcher {
    fn before<'a>(&'a self, call: Intercepted<'a>) -> InterceptorFuture<'a, Interception> {
        let line = format!("{} before {} {}", self.name, call.call.name, call.call.arguments);
        self.seen.lock().unwrap().push(line);
        Box::pin(std::future::ready(self.verdict.clone()))
    }

    fn after<'a>(
        &'a self,
        call: Intercepted<'a>,
        mut outcome: ToolOutcome,
    ) -> InterceptorFuture<'a, ToolOutcome> {
        self.seen.lock().unwrap().push(format!("{} after {}", self.name, call.call.name));
        outcome.content.push_str(self.name);
        Box::pin(std::future::ready(outcome))
    }
}

#[tokio::test]
async fn interceptors_stand_around_a_call_the_first_outermost() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let watcher = |name, verdict| Arc::new(Watcher { name, seen: Arc::clone(&seen), verdict });
    let (outer, inner) = (
        watcher("1", Interception::Continue),
        watcher("2", Interception::Replace(json!({"b": 2}))),
    );
    let world = Plan::new()
        .change(move |builder| builder.tool(echo("echo")).interceptor(outer).interceptor(inner))
        .build();
    let outcome = world.call("echo", json!({"a": 1})).await;
    assert_eq!(outcome.content, r#"{"b":2}21"#);
    assert_eq!(
        *seen.lock().unwrap(),
        [r#"1 before echo {"a":1}"#, r#"2 before echo {"a":1}"#, "2 after echo", "1 after echo"]
    );
}

#[tokio::test]
async fn an_interceptor_can_deny_a_call_and_never_sees_a_gated_one() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let deny = Interception::Deny("not today".to_owned());
    let watcher = Arc::new(Watcher { name: "!", seen: Arc::clone(&seen), verdict: deny });
    let world = Plan::new()
        .skill("sql", "Body")
        .change(move |builder| {
            builder.skill_tool("sql", echo("sql_query")).interceptor(watcher).tool(echo("echo"))
        })
        .build();
    world.call("sql_query", json!({})).await;
    assert!(seen.lock().unwrap().is_empty(), "gate and policy come first");
    let outcome = world.call("echo", json!({})).await;
    assert_eq!(outcome.content, "Error: Tool 'echo' was not called: not today!");
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "call_denied"));
    let loaded = world.load("sql").await;
    assert_eq!(loaded.code, "call_denied", "the load tools too");
    assert!(world.state().await.loaded.is_empty());
}

/// A tool of the host that changes the state of skills.
struct Remember(ToolDeclaration);

impl Tool for Remember {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }
    fn effect(&self, _: &prowess_runtime::ToolCall, _: &Snapshot) -> Effect {
        Effect::State
    }
    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        let before = invocation.state.context.get("sql").and_then(Value::as_u64).unwrap_or(0);
        let skill = "sql".to_owned();
        let change = prowess_runtime::Change::SetContext { skill, value: json!(before + 1) };
        let outcome = ToolOutcome::text(before.to_string()).with_change(change);
        Box::pin(std::future::ready(outcome))
    }
}

#[tokio::test]
async fn a_tool_of_the_host_that_changes_the_state_sees_the_calls_before_it() {
    let tool = Arc::new(Remember(declaration("remember")));
    let world = Plan::new().change(move |builder| builder.tool(tool)).build();
    let calls = (0..3).map(|_| world.tool_call("remember", json!({}))).collect();
    let result = world.step(calls).await;
    let seen: Vec<&str> = result.outcomes.iter().map(|outcome| outcome.content.as_str()).collect();
    assert_eq!(seen, ["0", "1", "2"]);
    assert_eq!(world.state().await.context["sql"], json!(3));
}

#[tokio::test]
async fn what_was_decided_too_early_is_decided_again_at_the_commit() {
    // Another process loads a skill while this one is reading: the cap holds.
    struct Meddler {
        world: Arc<Mutex<Option<prowess_runtime::Runtime>>>,
    }
    impl Interceptor for Meddler {
        fn after<'a>(
            &'a self,
            call: Intercepted<'a>,
            outcome: ToolOutcome,
        ) -> InterceptorFuture<'a, ToolOutcome> {
            let runtime = self.world.lock().unwrap().take();
            Box::pin(async move {
                if let Some(runtime) = runtime {
                    let other = prowess_runtime::ToolCall::new(
                        "other",
                        "load_skill",
                        json!({"skill": "b"}),
                    );
                    let done = runtime.dispatch(call.session, call.agent, other).await.unwrap();
                    assert_eq!(done.code, "loaded");
                }
                outcome
            })
        }
    }
    let slot: Arc<Mutex<Option<prowess_runtime::Runtime>>> = Arc::default();
    let meddler = Arc::new(Meddler { world: Arc::clone(&slot) });
    let world = Plan::new()
        .skill("a", "A")
        .skill("b", "B")
        .settings(Settings::default().with_max_loaded_skills(1))
        .change(move |builder| builder.interceptor(meddler))
        .build();
    *slot.lock().unwrap() = Some(world.runtime.clone());
    let outcome = world.load("a").await;
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "load_limit"));
    assert!(outcome.content.contains("Currently loaded: b."), "{}", outcome.content);
    assert_eq!(world.state().await.loaded_names(), ["b"]);
    let kept = world.messages().await;
    let last = kept.last().unwrap().tool_results().next().unwrap().clone();
    assert!(last.is_error && last.expansion.is_none(), "the text is not in the transcript");
}

#[tokio::test]
async fn eviction_is_an_option_and_is_reported() {
    let settings = Settings::default().with_max_loaded_skills(2).with_when_full(WhenFull::Evict);
    let world =
        Plan::new().skill("a", "A").skill("b", "B").skill("c", "C").settings(settings).build();
    world.load("a").await;
    world.load("b").await;
    world.load("a").await;
    assert_eq!(world.load("c").await.code, "loaded");
    assert_eq!(world.state().await.loaded_names(), ["a", "c"]);
    let evicted = world.events_of(EventKind::SkillEvicted);
    assert_eq!(evicted[0].message, "Skill 'b' went to make room for 'c'");
    assert_eq!(evicted[0].level, EventLevel::Warning);
}

#[tokio::test]
async fn arguments_are_taken_as_models_write_them() {
    let world = Plan::new().skill("a", "A").file("a/guide.md", "Guide").build();
    let table: [(Value, &str); 14] = [
        (json!({"skill": "a"}), "loaded"),
        (json!({"skill": "a", "arguments": "x", "args": "x"}), "loaded"),
        (json!({"skill": "a", "arguments": "x", "args": "y"}), "invalid_arguments"),
        (json!({"skill_name": "a"}), "loaded"),
        (json!({"skill_id": " a "}), "loaded"),
        (json!({"skill": "a", "skill_name": "a"}), "loaded"),
        (json!(r#"{"skill": "a"}"#), "loaded"),
        (json!({"skill": "a", "docs": "guide.md"}), "loaded"),
        (json!({"skill": "a", "include_all_docs": "true", "docs": null}), "loaded"),
        (json!({"skill": "a", "skill_id": "b"}), "invalid_arguments"),
        (json!({}), "invalid_arguments"),
        (json!({"skill": 7}), "invalid_arguments"),
        (json!("not json"), "invalid_arguments"),
        (json!({"skill": "a", "docs": [1]}), "invalid_arguments"),
    ];
    for (arguments, code) in table {
        let outcome = world.call("load_skill", arguments.clone()).await;
        assert_eq!(outcome.code, code, "{arguments}");
        if code == "invalid_arguments" {
            assert!(outcome.is_error && outcome.hint.is_some(), "{arguments}");
        } else {
            world.call("unload_skill", json!({"skill": "a"})).await;
        }
    }
    let outcome = world.call("load_skill", json!({"skill": "a", "mood": "good"})).await;
    assert_eq!(outcome.hint.as_deref(), Some("Ignored arguments: mood"));
}

/// A thousand sessions at once on one runtime, each with skills of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_interleaved_sessions_do_not_see_each_other() {
    let mut plan = Plan::new();
    for at in 0..10 {
        plan = plan.skill(&format!("skill-{at}"), &format!("Text {at}"));
    }
    let world = plan.build();
    world.catalog.refresh().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..1_000usize {
        let runtime = world.runtime.clone();
        tasks.spawn(async move {
            let session =
                SessionKey::new("app", &format!("user-{}", number % 7), &number.to_string())
                    .unwrap();
            let agent = AgentName::default();
            let own = [number % 10, (number / 10) % 10, (number / 100) % 10];
            let mut expected: Vec<String> = Vec::new();
            for (at, skill) in own.iter().enumerate() {
                let name = format!("skill-{skill}");
                let arguments = json!({"skill": name});
                let call =
                    prowess_runtime::ToolCall::new(format!("call-{at}"), "load_skill", arguments);
                let outcome = runtime.dispatch(&session, &agent, call).await.unwrap();
                match expected.contains(&name) {
                    true => assert_eq!(outcome.code, "already_loaded"),
                    false => {
                        assert_eq!(outcome.content, format!("Text {skill}"));
                        expected.push(name);
                    }
                }
                tokio::task::yield_now().await;
            }
            let state = runtime.state(&session, &agent).await.unwrap();
            assert_eq!(state.loaded_names(), expected);
            let messages = runtime.sessions().messages(&session, &agent).await.unwrap();
            assert_eq!(messages.len(), 6);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(world.runtime.sessions().list().await.unwrap().len(), 1_000);
}

#[tokio::test]
async fn a_step_keeps_what_the_model_said_beside_its_calls() {
    let world = Plan::new().skill("a", "A").build();
    let call = world.tool_call("load_skill", json!({"skill": "a"}));
    let mut message = Message::assistant("I need the skill.");
    message.parts.push(prowess_runtime::Part::ToolCall(call));
    let step = Step::of(message.clone());
    world.runtime.dispatch_batch(&world.session, &world.agent, step).await.unwrap();
    assert_eq!(world.messages().await[0], message);
}

#[tokio::test]
async fn a_skill_that_is_not_trusted_does_not_shut_a_tool_of_the_host() {
    use prowess_catalog::{Catalog, MemorySource, SourceInfo, Trust};
    let text = "---\nname: greedy\ndescription: G.\nmetadata:\n  include_tools: echo\n---\nx";
    for (trust, code) in [(Trust::Trusted, "skill_not_loaded"), (Trust::Untrusted, "ok")] {
        let info = SourceInfo::new("memory", "memory").with_trust(trust);
        let source = MemorySource::new("memory").with_info(info).with_skill("greedy", text);
        let catalog = Catalog::builder().source(source).build();
        let runtime =
            prowess_runtime::Runtime::builder(catalog).tool(echo("echo")).build().unwrap();
        let call = prowess_runtime::ToolCall::new("1", "echo", json!({}));
        let session = "s".parse().unwrap();
        let outcome = runtime.dispatch(&session, &AgentName::default(), call).await.unwrap();
        assert_eq!(outcome.code, code, "{trust:?}");
    }
}

/// A skill of a source that gates only what its skills bring themselves, and the same skill of one
/// that gates everything, as the control.
#[tokio::test]
async fn a_published_skill_neither_shuts_nor_opens_a_tool_of_the_host() {
    use prowess_catalog::{Catalog, Gates, MemorySource, SourceInfo};
    use prowess_runtime::{AllowedToolsPolicy, Handlers, Runtime, Settings, ToolCall, ToolOutcome};
    let declaring = [
        "tool_configs:\n  - name: echo\n",
        "tool_configs:\n  - name: echo\n    method: own\n",
        "metadata:\n  include_tools: echo\n",
    ];
    for (lines, gates) in
        declaring.iter().flat_map(|it| [(it, Gates::AllTools), (it, Gates::OwnTools)])
    {
        let case = format!("{lines}{gates:?}");
        let head = format!("---\nname: locker\ndescription: L.\nallowed-tools: nothing\n{lines}");
        let own = "tool_configs:\n  - name: own_tool\n    method: own\n";
        let info = SourceInfo::new("memory", "memory").with_gates(gates);
        let source = MemorySource::new("memory")
            .with_info(info)
            .with_skill("locker", format!("{head}---\nx"))
            .with_skill("owner", format!("---\nname: owner\ndescription: O.\n{own}---\nx"));
        let handlers = Handlers::for_all().method("own", [], |_| async { ToolOutcome::text("ok") });
        let settings = Settings::default().with_allowed_tools_policy(AllowedToolsPolicy::Restrict);
        let runtime = Runtime::builder(Catalog::builder().source(source).build())
            .tool(echo("echo"))
            .toolkit(std::sync::Arc::new(handlers))
            .settings(settings)
            .build()
            .unwrap();
        let session = "s".parse().unwrap();
        let call = async |id: &str, tool: &str, arguments| {
            let call = ToolCall::new(id, tool, arguments);
            runtime.dispatch(&session, &AgentName::default(), call).await.unwrap().code.into_owned()
        };
        let (shut, opened) = match gates {
            Gates::AllTools => ("skill_not_loaded", "ok"),
            // The policy goes on to judge it: to declare a tool is not to be given it.
            Gates::OwnTools => ("ok", "tool_not_allowed"),
        };
        assert_eq!(call("1", "echo", json!({})).await, shut, "{case}");
        // What it brings itself waits for it all the same.
        assert_eq!(call("2", "own_tool", json!({})).await, "skill_not_loaded", "{case}");
        assert_eq!(call("3", "load_skill", json!({"skill": "locker"})).await, "loaded", "{case}");
        assert_eq!(call("4", "echo", json!({})).await, opened, "{case}");
        assert_eq!(call("5", "load_skill", json!({"skill": "owner"})).await, "loaded", "{case}");
        assert_eq!(call("6", "own_tool", json!({})).await, "ok", "{case}");
    }
}
