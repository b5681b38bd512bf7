//! Todos and summaries (S09, 4), with the integration row 3 of the second DeepAgents document.

mod agent_support;

use std::sync::Arc;

use agent_support::{answer, call, catalog, events, load, said, scripted, session};
use prowess_agent::{
    Agent, AgentBuilder, AgentEvent, ModelError, Reply, RunRequest, ScriptedModel,
    SkillsMiddleware, Slot, SummarizationMiddleware, SummarizationSettings, Todo, TodoMiddleware,
    TodoStatus, Todos,
};
use prowess_catalog::{Catalog, DirectorySource};
use prowess_runtime::{LoadMode, Message, Settings, ToolDeclaration, ToolOutcome, tool_fn};
use serde_json::json;

fn settings() -> SummarizationSettings {
    SummarizationSettings::default().with_trigger_tokens(1_500).with_keep_messages(2)
}

fn agent(model: &Arc<ScriptedModel>, summing: &Arc<ScriptedModel>) -> AgentBuilder {
    let skills = catalog(&[("sql", "", "Write SQL carefully."), ("web", "", "Search.")]);
    Agent::builder(model.clone())
        .middleware(
            SummarizationMiddleware::new().with_settings(settings()).with_model(summing.clone()),
        )
        .middleware(SkillsMiddleware::new(skills))
}

fn long() -> String {
    "Words, words. ".repeat(600)
}

/// Row 3: behind a summary a loaded skill is still loaded, its text is there, and the listing is
/// right.
#[tokio::test]
async fn loaded_skills_and_the_listing_survive_a_summary() {
    for order in ["before", "behind"] {
        let summing = scripted([Reply::text("  The user wants a query.  ")]);
        let model = scripted([
            Reply::calls([load("1", "sql")]),
            Reply::text("Loaded."),
            Reply::text("Answered."),
            Reply::text("And on."),
        ]);
        let skills = || SkillsMiddleware::new(catalog(&[("sql", "", "Write SQL carefully.")]));
        let summarization =
            || SummarizationMiddleware::new().with_settings(settings()).with_model(summing.clone());
        let builder = Agent::builder(model.clone());
        let agent = match order {
            "before" => builder.middleware(summarization()).middleware(skills()),
            _ => builder.middleware(skills()).middleware(summarization()),
        };
        let agent = agent.build().unwrap();
        let first = format!("Load it. {}", long());
        agent.run(RunRequest::new(session(), first)).await.unwrap();
        agent.run(RunRequest::new(session(), "And now?")).await.unwrap();
        let requests = model.requests();
        let last = requests.last().unwrap();
        let lines = said(last);
        assert_eq!(lines.len(), 4, "{order}: {lines:#?}");
        assert!(lines[0].starts_with("System: Loaded skill context:\n\n[Loaded] sql\n\nWrite SQL"));
        let summary =
            "User: Here is a summary of the conversation to date:\n\nThe user wants a query.";
        assert_eq!(lines[1], summary);
        assert_eq!(lines[2], "Assistant: Loaded.");
        assert!(last.system.contains("- sql: Does sql."), "{}", last.system);
        let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
        assert_eq!(state.loaded_names(), ["sql"]);
        // What was summed up is what is not sent any more.
        let asked = summing.requests()[0].messages[0].text();
        assert!(asked.starts_with("User: Load it. Words"), "{asked}");
        assert!(asked.contains("\n\nAgent: [calls load_skill with {\"skill\":\"sql\"}]\n\nTool: "));
        assert!(asked.contains("loaded: sql") && !asked.contains("And now?"), "{asked}");
        // The transcript is whole.
        let stored = agent.runtime().sessions().messages(&session(), agent.name()).await.unwrap();
        assert_eq!(stored.len(), 6);
        // The next request extends this one.
        agent.run(RunRequest::new(session(), "Go on.")).await.unwrap();
        let requests = model.requests();
        let next = said(requests.last().unwrap());
        assert_eq!((&next[..4], summing.requests().len()), (&lines[..], 1));
    }
}

#[tokio::test]
async fn a_second_summary_stands_for_the_first() {
    let summing = scripted([Reply::text("One."), Reply::text("Two.")]);
    let model = scripted((0..4).map(|number| Reply::text(format!("Answer {number}."))));
    let agent = agent(&model, &summing).build().unwrap();
    for turn in 0..4 {
        let message = format!("{turn} {}", long());
        agent.run(RunRequest::new(session(), message)).await.unwrap();
    }
    assert_eq!(summing.requests().len(), 2);
    let second = summing.requests()[1].messages[0].text();
    assert!(second.starts_with("User: Here is a summary of the conversation to date:\n\nOne."));
    let requests = model.requests();
    let lines = said(requests.last().unwrap());
    assert!(lines[0].ends_with("\n\nTwo."), "{lines:?}");
}

#[tokio::test]
async fn what_an_answer_cost_before_a_summary_does_not_count_behind_it() {
    let mut usage = prowess_runtime::Usage::default();
    usage.input_tokens = 10_000;
    let mut small = usage;
    small.input_tokens = 50;
    let summing = scripted([Reply::text("One.")]);
    let model = scripted([
        Reply::text("A.").with_usage(small),
        Reply::text("B.").with_usage(usage),
        Reply::text("C.").with_usage(small),
        Reply::text("D.").with_usage(small),
    ]);
    let agent = agent(&model, &summing).build().unwrap();
    for _ in 0..4 {
        agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    }
    assert_eq!(summing.requests().len(), 1, "only behind the answer that cost too much");
}

#[tokio::test]
async fn without_a_summary_the_run_goes_on_and_that_is_told() {
    let failure = || Reply::error(ModelError::InvalidRequest { message: "no".into() });
    for (reply, expected) in [
        (failure(), "the conversation could not be summed up: "),
        (Reply::text(" "), "the conversation could not be summed up: nothing was said"),
    ] {
        let summing = scripted([reply]);
        let model = scripted([Reply::text("A."), Reply::text("B."), Reply::text("C.")]);
        let agent = agent(&model, &summing).build().unwrap();
        agent.run(RunRequest::new(session(), long())).await.unwrap();
        agent.run(RunRequest::new(session(), "More.")).await.unwrap();
        let told = events(&agent, "Go on.").await;
        let problem = told.iter().find_map(|event| match event {
            AgentEvent::Problem { message } => Some(message.clone()),
            _ => None,
        });
        assert!(problem.as_ref().unwrap().starts_with(expected), "{problem:?}");
        let requests = model.requests();
        assert_eq!(requests.last().unwrap().messages.len(), 5, "all of it is sent");
    }
}

/// A note of changed skills may be in what is summed up: the listing tells of them instead.
#[tokio::test]
async fn behind_a_summary_the_listing_tells_of_skills_that_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        let text = agent_support::skill(name, "", "Do it.");
        std::fs::write(folder.path().join(name).join("SKILL.md"), text).unwrap();
    };
    write("sql");
    let catalog = Catalog::builder().source(DirectorySource::new(folder.path())).build();
    let summing = scripted([Reply::text("Summary.")]);
    let model = scripted((0..4).map(|_| Reply::text("Ok.")));
    let skills = SkillsMiddleware::new(catalog.clone());
    let agent = Agent::builder(model.clone())
        .middleware(SummarizationMiddleware::new().with_settings(settings()).with_model(summing))
        .middleware(skills)
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Hello.")).await.unwrap();
    write("web");
    catalog.refresh().await;
    agent.run(RunRequest::new(session(), "Again.")).await.unwrap();
    let requests = model.requests();
    let (system, told) = (&requests[1].system, said(&requests[1]));
    assert!(!system.contains("- web:") && told.iter().any(|it| it.contains("- web: Does web.")));
    let told = events(&agent, &long()).await;
    assert!(told.contains(&AgentEvent::Compacted { messages: 4 }), "{told:?}");
    let requests = model.requests();
    let last = requests.last().unwrap();
    assert!(last.system.contains("- web: Does web."), "{}", last.system);
    assert!(!said(last).iter().any(|it| it.contains("have changed")), "{:?}", said(last));
}

#[tokio::test]
async fn todos_are_kept_for_the_agent() {
    let todos = |status: &str| json!({"todos": [{"content": "Count", "status": status}]});
    let model = scripted([
        Reply::calls([
            call("1", "write_todos", todos("pending")),
            call("2", "write_todos", todos("in_progress")),
        ]),
        Reply::calls([
            call("3", "write_todos", json!({"todos": [{"content": " ", "status": "pending"}]})),
            call("4", "write_todos", json!({"todos": [{"content": "x", "status": "late"}]})),
            call(
                "5",
                "write_todos",
                json!({"todos": (0..3).map(|_| json!({"content": "x"})).collect::<Vec<_>>()}),
            ),
        ]),
        Reply::text("Done."),
    ]);
    let skills = SkillsMiddleware::new(catalog(&[]));
    let agent = Agent::builder(model.clone())
        .middleware(TodoMiddleware::new().with_max_todos(2))
        .middleware(skills)
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let expected = r#"Updated todo list to [{"content":"Count","status":"in_progress"}]"#;
    assert_eq!(answer(&model, "2"), expected);
    for (id, expected) in
        [("3", "a todo says nothing"), ("4", "unknown variant `late`"), ("5", "at most 2 todos")]
    {
        assert!(answer(&model, id).contains(expected), "{}", answer(&model, id));
    }
    let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
    let expected = [Todo::new("Count").with_status(TodoStatus::InProgress)];
    assert_eq!(Todos::get(&state).unwrap(), expected);
}

/// Under every load mode what a model is told behind a summary is what the state says.
#[tokio::test]
async fn load_modes_hold_behind_a_summary() {
    for mode in [LoadMode::Session, LoadMode::Turn, LoadMode::Once] {
        let summing = scripted([Reply::text("S1."), Reply::text("S2."), Reply::text("S3.")]);
        let model = scripted([
            Reply::text("A."),
            Reply::calls([load("1", "sql")]),
            Reply::text("B."),
            Reply::text("C."),
        ]);
        let skills = SkillsMiddleware::new(catalog(&[("sql", "", "Write SQL.")]))
            .with_settings(Settings::default().with_load_mode(mode));
        let agent = Agent::builder(model.clone())
            .middleware(
                SummarizationMiddleware::new().with_settings(settings()).with_model(summing),
            )
            .middleware(skills)
            .build()
            .unwrap();
        for _ in 0..3 {
            agent.run(RunRequest::new(session(), long())).await.unwrap();
        }
        let requests = model.requests();
        let holds = |at: usize| {
            let texts = requests[at].messages.iter().flat_map(|message| {
                let results = message.tool_results().map(|it| it.content.clone());
                results.chain([message.text()]).collect::<Vec<_>>()
            });
            texts.into_iter().any(|text| text.contains("Write SQL."))
        };
        assert!(holds(2), "{mode:?}: the request behind the load");
        assert_eq!(holds(3), mode == LoadMode::Session, "{mode:?}: the next turn");
    }
}

/// A step with more results than messages are kept is not cut apart, and not summed up again and
/// again.
#[tokio::test]
async fn a_long_step_stays_together_and_is_summed_up_once() {
    let calls = (0..5).map(|at| call(&format!("c{at}"), "nothing", json!({})));
    let summing = scripted([Reply::text("S."), Reply::text("Never.")]);
    let model = scripted([
        Reply::text("A."),
        Reply::calls(calls),
        Reply::calls([call("last", "nothing", json!({}))]),
        Reply::text("B."),
    ]);
    let agent = agent(&model, &summing).build().unwrap();
    agent.run(RunRequest::new(session(), "Hello.")).await.unwrap();
    let told = events(&agent, &long()).await;
    let compacted = told.iter().filter(|it| matches!(it, AgentEvent::Compacted { .. })).count();
    assert_eq!((compacted, summing.requests().len()), (1, 1), "{told:?}");
    let requests = model.requests();
    for request in &requests {
        let made: Vec<&str> = request
            .messages
            .iter()
            .flat_map(Message::tool_calls)
            .map(|it| it.id.as_str())
            .collect();
        let answered: Vec<&str> = request
            .messages
            .iter()
            .flat_map(Message::tool_results)
            .map(|it| it.call_id.as_str())
            .collect();
        assert_eq!(made, answered);
    }
}

/// Ids of calls that are not sent any more are still taken: what is called again is run again.
#[tokio::test]
async fn a_call_behind_a_summary_is_carried_out_whatever_its_id() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tool = {
        let count = Arc::clone(&count);
        let declaration = ToolDeclaration::new("count", "Counts.", json!({"type": "object"}));
        tool_fn(declaration, move |_| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            async move { ToolOutcome::text(format!("count {number}")) }
        })
    };
    let summing = scripted([Reply::text("S."), Reply::text("S."), Reply::text("S.")]);
    let model = scripted([
        Reply::calls([call("call_0", "count", json!({}))]),
        Reply::text("A."),
        Reply::text("B."),
        Reply::calls([call("call_0", "count", json!({}))]),
        Reply::text("C."),
    ]);
    let agent = agent(&model, &summing).tool(tool).build().unwrap();
    for message in ["Hello.".to_owned(), long(), "Again.".to_owned()] {
        agent.run(RunRequest::new(session(), message)).await.unwrap();
    }
    assert!(!summing.requests().is_empty(), "it was summed up");
    let requests = model.requests();
    let last =
        requests.last().unwrap().messages.last().unwrap().tool_results().next().unwrap().clone();
    assert_eq!((last.content.as_str(), last.call_id == "call_0"), ("count 2", false));
}

/// What others say while a summary is made is not lost: it stands behind the summary.
#[tokio::test]
async fn what_comes_while_a_summary_is_made_stays() {
    let model = scripted([Reply::text("A."), Reply::text("B."), Reply::text("C.")]);
    let agent = agent(&model, &scripted([])).build().unwrap();
    for message in ["One.", "Two."] {
        agent.run(RunRequest::new(session(), message)).await.unwrap();
    }
    let (runtime, name) = (agent.runtime(), agent.name());
    let old = runtime.compactable(&session(), name, 2).await.unwrap();
    let more = vec![Message::user("Meanwhile."), Message::assistant("Yes.")];
    runtime.append(&session(), name, more).await.unwrap();
    runtime.compact(&session(), name, &old, "Sum.").await.unwrap();
    let sent = runtime.transcript(&session(), name).await.unwrap();
    let texts: Vec<String> = sent.iter().map(Message::text).collect();
    let summary = "Here is a summary of the conversation to date:\n\nSum.";
    assert_eq!(texts, [summary, "Two.", "B.", "Meanwhile.", "Yes."]);
}

/// However long messages are, an earlier summary is read, and what is left out is told.
#[tokio::test]
async fn an_earlier_summary_is_always_read() {
    let settings = SummarizationSettings::default()
        .with_trigger_tokens(1_500)
        .with_keep_messages(2)
        .with_max_read_bytes(400);
    let summing = scripted([Reply::text("EARLIER."), Reply::text("LATER.")]);
    let model = scripted((0..6).map(|_| Reply::text("Ok.")));
    let agent = Agent::builder(model)
        .middleware(
            SummarizationMiddleware::new().with_settings(settings).with_model(summing.clone()),
        )
        .build()
        .unwrap();
    let mut told = Vec::new();
    for _ in 0..5 {
        told.extend(events(&agent, &long()).await);
    }
    let second = summing.requests()[1].messages[0].text();
    assert!(second.contains("EARLIER."), "{second}");
    assert!(second.contains("bytes are left out here]"), "{second}");
    assert!(second.len() < 1_000, "{}", second.len());
}
