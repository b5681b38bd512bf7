//! An agent of rig that somebody already has gets skills (feature `rig`).
#![cfg(feature = "rig")]

mod rig_support;

use std::sync::{Arc, Mutex};

use prowess_agent::rig::{PROBLEM, RigSkills};
use prowess_runtime::{
    AgentName, AllowedToolsPolicy, Event, EventKind, EventSink, Exposure, LoadMode, Message,
    SessionKey, Settings, TurnRequest,
};
use rig_agent::agent::{
    AgentHook, DispatchAction, DispatchEvent, HookContext, OutcomeAction, OutcomeEvent,
};
use rig_core::completion::Message as RigMessage;
use serde_json::json;

use rig_support::*;

#[tokio::test]
async fn a_skill_is_loaded_its_text_is_in_the_result_and_its_tool_opens() {
    let turns =
        [call("1", "orders", json!({})), load("2", "shop"), call("3", "orders", json!({})), done()];
    let (agent, model, skills) = skilled(Settings::default(), turns);
    let run = agent.prompt("How many?").add_hook(skills.session(session("a")));
    assert_eq!(run.run().await.unwrap().output(), "Done.");
    let requests = model.requests();
    assert!(system(&requests[0]).starts_with("You are a clerk.\n\n"));
    assert!(system(&requests[0]).contains("- shop: Looks at orders."), "{}", system(&requests[0]));
    // The tool is told of when its skill is loaded; called before, it is refused.
    assert!(tools(&requests[0]).contains(&"load_skill") && tools(&requests[0]).contains(&"add"));
    assert!(!tools(&requests[1]).contains(&"orders"));
    let refusal = answers(&requests[1]).remove(0);
    assert!(refusal.1 && refusal.0.contains("shop"), "{refusal:?}");
    assert_eq!(answers(&requests[2])[1], ("Ask for orders first.".to_owned(), false));
    assert_eq!(tools(&requests[2]).last(), Some(&"orders"));
    assert_eq!(answers(&requests[3])[2], ("three orders".to_owned(), false));
}

#[tokio::test]
async fn a_request_extends_the_one_before_it() {
    let settings = Settings::default().with_exposure(Exposure::Declared);
    let turns = [load("1", "shop"), call("2", "orders", json!({})), add("3"), done()];
    let (agent, model, skills) = skilled(settings, turns);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    for pair in model.requests().windows(2) {
        assert_eq!(pair[0].tools, pair[1].tools);
        let (before, after) = (&pair[0].chat_history, &pair[1].chat_history);
        assert_eq!(before.as_slice(), &after[..before.len()]);
    }
}

#[tokio::test]
async fn the_one_tool_for_all_tools_of_skills_works_too() {
    let settings = Settings::default().with_exposure(Exposure::Generic);
    let arguments = json!({"skill": "shop", "tool": "orders", "arguments": {}});
    let turns = [load("1", "shop"), call("2", "skill_tool", arguments), done()];
    let (agent, model, skills) = skilled(settings, turns);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    assert_eq!(last_answers(&model)[1], ("three orders".to_owned(), false));
}

#[tokio::test]
async fn a_policy_restricts_the_tools_that_the_agent_had_before() {
    let settings = Settings::default().with_allowed_tools_policy(AllowedToolsPolicy::Restrict);
    let turns = [add("1"), load("2", "shop"), add("3"), call("4", "orders", json!({})), done()];
    let (agent, model, skills) = skilled(settings, turns);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let answers = last_answers(&model);
    assert_eq!(answers[0], ("42".to_owned(), false));
    assert!(answers[2].1 && answers[2].0.contains("add"), "{answers:?}");
    assert_eq!(answers[3], ("three orders".to_owned(), false));
}

#[tokio::test]
async fn an_error_of_the_engine_reaches_the_model() {
    let (agent, model, skills) = skilled(Settings::default(), [load("1", "shopp"), done()]);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let (text, is_error) = last_answers(&model).remove(0);
    assert!(is_error && text.contains("shopp") && text.contains("shop"), "{text}");
}

#[tokio::test]
async fn two_sessions_of_one_agent_do_not_mix() {
    let turns = [load("1", "shop"), done(), call("1", "orders", json!({})), done()];
    let (agent, model, skills) = skilled(Settings::default(), turns);
    let (alice, bob) = (session("shop/alice/1"), session("shop/bob/1"));
    agent.prompt("Go.").add_hook(skills.session(alice.clone())).run().await.unwrap();
    agent.prompt("Go.").add_hook(skills.session(bob.clone())).run().await.unwrap();
    assert!(last_answers(&model)[0].1);
    let loaded = async |session: &SessionKey| {
        let state = skills.runtime().state(session, &AgentName::default()).await.unwrap();
        state.loaded.into_iter().map(|skill| skill.name).collect::<Vec<_>>()
    };
    assert_eq!((loaded(&alice).await, loaded(&bob).await), (vec!["shop".to_owned()], vec![]));
}

#[tokio::test]
async fn two_sessions_at_the_same_time_do_not_mix() {
    // Whoever asks first gets the first answer: both load, and both call.
    let turns = [
        load("1", "shop"),
        load("1", "shop"),
        call("2", "orders", json!({})),
        call("2", "orders", json!({})),
        done(),
        done(),
    ];
    let (agent, _, skills) = skilled(Settings::default(), turns);
    let run = |name: &str| agent.prompt("Go.").add_hook(skills.session(session(name))).run();
    let (a, b) = tokio::join!(run("a"), run("b"));
    assert_eq!((a.unwrap().output(), b.unwrap().output()), ("Done.".into(), "Done.".into()));
    for name in ["a", "b"] {
        let store = skills.runtime().sessions();
        let said = store.messages(&session(name), &AgentName::default()).await.unwrap();
        assert_eq!(said.iter().flat_map(Message::tool_calls).count(), 2);
        assert_eq!(said.last().unwrap().text(), "Done.");
    }
}

#[tokio::test]
async fn a_turn_ends_what_was_loaded_for_it() {
    let settings = Settings::default().with_load_mode(LoadMode::Turn);
    let turns = [load("1", "shop"), done(), call("2", "orders", json!({})), done()];
    let (agent, model, skills) = skilled(settings, turns);
    let hook = || skills.session(session("a"));
    let first = agent.prompt("Go.").add_hook(hook()).run().await.unwrap();
    let history: Vec<RigMessage> = first.messages.clone();
    agent.prompt("On.").history(history).add_hook(hook()).run().await.unwrap();
    let requests = model.requests();
    assert_eq!(answers(&requests[1])[0].0, "Ask for orders first.");
    assert_eq!(answers(&requests[2])[0].0, "loaded: shop");
    assert!(answers(&requests[3])[1].1);
}

#[tokio::test]
async fn what_the_conversation_has_lost_is_given_again() {
    let turns = [load("1", "shop"), done(), done(), load("2", "shop"), done()];
    let (agent, model, skills) = skilled(Settings::default(), turns);
    // Without a history, rig's conversation begins anew; the session goes on.
    for _ in 0..3 {
        agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    }
    let requests = model.requests();
    assert!(!system(&requests[1]).contains("Ask for orders first."));
    assert!(system(&requests[2]).contains("Ask for orders first."));
    assert!(tools(&requests[2]).contains(&"orders"));
    // Whoever loads it again gets it in the result, and then only there.
    assert_eq!(answers(&requests[4])[0].0, "Ask for orders first.");
    assert!(!system(&requests[4]).contains("Ask for orders first."));
}

#[tokio::test]
async fn a_turn_begins_with_pinned_skills_and_tells_of_those_that_are_missing() {
    let (agent, model, skills) = skilled(Settings::default(), [done(), done()]);
    let turn = TurnRequest::new().with_pinned("greet").with_pinned("gone");
    let hook = || skills.session(session("a")).with_turn(turn.clone());
    let first = agent.prompt("Go.").add_hook(Problems).add_hook(hook());
    let first = first.run().await.unwrap();
    let history = first.messages.clone();
    agent.prompt("On.").history(history).add_hook(hook()).run().await.unwrap();
    for request in model.requests() {
        let said = serde_json::to_string(&request.chat_history).unwrap();
        assert_eq!(said.matches("Say: good day.").count(), 1, "{said}");
    }
}

/// Sees to it that problems are told.
struct Problems;

impl AgentHook for Problems {
    async fn on_outcome(&self, context: &HookContext, _: OutcomeEvent<'_>) -> OutcomeAction {
        let told = context.entries(PROBLEM);
        match told.iter().any(|entry| entry.value.to_string().contains("gone")) {
            true => OutcomeAction::proceed(),
            false => OutcomeAction::stop("nothing was told"),
        }
    }
}

/// Allows nothing.
struct Nothing;

impl AgentHook for Nothing {
    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        match event.tool_name() {
            Some(_) => DispatchAction::skip("not now"),
            None => DispatchAction::proceed(),
        }
    }
}

#[tokio::test]
async fn a_call_that_another_hook_denies_does_not_reach_the_engine() {
    let (agent, model, skills) = skilled(Settings::default(), [load("1", "shop"), done()]);
    let run = agent.prompt("Go.").add_hook(skills.session(session("a"))).add_hook(Nothing);
    run.run().await.unwrap();
    assert_eq!(last_answers(&model)[0].0, "not now");
    let state = skills.runtime().state(&session("a"), &AgentName::default()).await.unwrap();
    assert!(state.loaded.is_empty());
}

#[derive(Default)]
struct Log(Mutex<Vec<(EventKind, Option<String>)>>);

impl EventSink for Log {
    fn event(&self, _: &SessionKey, event: &Event) {
        self.0.lock().unwrap().push((event.kind, event.tool.clone()));
    }
}

#[tokio::test]
async fn every_call_is_an_event() {
    let log = Arc::new(Log::default());
    let (agent, _) = owned([add("1"), call("2", "orders", json!({})), load("3", "shop"), done()]);
    let runtime = builder().sink(log.clone()).build().unwrap();
    let skills = RigSkills::attach(&runtime, &agent).unwrap();
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let log = log.0.lock().unwrap();
    let of =
        |kind| log.iter().filter(|it| it.0 == kind).map(|it| it.1.as_deref()).collect::<Vec<_>>();
    assert_eq!(of(EventKind::TurnBegun).len(), 1);
    assert_eq!(of(EventKind::SkillLoaded).len(), 1);
    assert_eq!(of(EventKind::ToolBlocked), [Some("orders")]);
    assert!(of(EventKind::ToolCalled).contains(&Some("add")));
}
