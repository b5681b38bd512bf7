//! Skills that run in a sub-agent (S09, 1).

mod agent_support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent_support::{answer, call, catalog, events, load, said, scripted, session};
use prowess_agent::{
    Agent, AgentError, AgentEvent, AgentHubOptions, CancellationToken, ChatModel, Flow, Middleware,
    ModelResponse, Reply, Run, RunLimits, RunRequest, SameAgent, ScriptedModel, SkillsMiddleware,
    StopReason,
};
use prowess_runtime::{
    AgentName, BoxError, Customisation, Dialect, LoadMode, Message, Settings, ToolCall,
    ToolDeclaration, ToolOutcome, Usage, tool_fn,
};
use serde_json::json;

const SKILLS: [(&str, &str, &str); 7] = [
    ("report", "context: fork\n", "Write a report."),
    ("review", "context: fork_with_context\n", "Review it."),
    ("named", "context: fork\nagent: writer\n", "Write it."),
    ("small", "context: fork\nmodel: tiny\n", "Do it cheaply."),
    ("both", "context: fork\nagent: nobody\nmodel: tiny\n", "Both."),
    ("inline", "model: tiny\n", "Here."),
    ("plain", "", "Plain."),
];

fn skills() -> SkillsMiddleware {
    SkillsMiddleware::new(catalog(&SKILLS))
}

fn eino() -> SkillsMiddleware {
    skills().with_dialect(Dialect::named("eino").unwrap())
}

fn agent(model: &Arc<ScriptedModel>, skills: SkillsMiddleware) -> Agent {
    Agent::builder(model.clone()).middleware(skills).build().unwrap()
}

fn usage(input: u64, output: u64) -> Usage {
    let mut usage = Usage::default();
    (usage.input_tokens, usage.output_tokens) = (input, output);
    usage
}

async fn go(agent: &Agent) -> prowess_agent::RunOutcome {
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap()
}

fn eino_call(id: &str, skill: &str) -> ToolCall {
    call(id, "skill", json!({"skill": skill}))
}

fn hub(name: &'static str, agent: Agent) -> HashMap<String, Agent> {
    HashMap::from([(name.to_owned(), agent)])
}

fn worker(model: &Arc<ScriptedModel>) -> Agent {
    Agent::builder(model.clone()).system("You work.").build().unwrap()
}

#[tokio::test]
async fn a_fork_begins_with_the_text_of_the_skill_and_comes_back_as_its_results() {
    let sub = scripted([Reply::text("The report.")]);
    let main = scripted([Reply::calls([eino_call("1", "report")]), Reply::text("Done.")]);
    let agent = agent(&main, eino().with_agents(hub("", worker(&sub))));
    assert_eq!(go(&agent).await.text(), "Done.");
    let begun = "Launching skill: report\nBase directory for this skill: memory:memory/report\n\nWrite a report.";
    assert_eq!(said(&sub.requests()[0]), [format!("User: {begun}")]);
    assert_eq!(sub.requests()[0].system, "You work.");
    let expected = "Skill \"report\" completed (sub-agent execution).\n\nResult:\nThe report.";
    assert_eq!(answer(&main, "1"), expected);
    // It is not loaded here.
    let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
    assert!(state.loaded.is_empty());
}

#[tokio::test]
async fn only_what_the_sub_agent_says_is_a_result() {
    let sub = scripted([
        Reply::text_and_calls("Looking.", [call("t", "look", json!({}))]),
        Reply::text(""),
    ]);
    let look =
        tool_fn(ToolDeclaration::new("look", "Looks.", json!({"type": "object"})), |_| async {
            ToolOutcome::text("SECRET OF A TOOL")
        });
    let worker = Agent::builder(sub.clone()).tool(look).build().unwrap();
    let main = scripted([Reply::calls([eino_call("1", "report")]), Reply::text("Done.")]);
    let agent = agent(&main, eino().with_agents(hub("", worker)));
    go(&agent).await;
    let expected = "Skill \"report\" completed (sub-agent execution).\n\nResult:\nLooking.";
    assert_eq!(answer(&main, "1"), expected);
}

#[tokio::test]
async fn nothing_said_is_still_a_result() {
    let sub = scripted([Reply::text("")]);
    let main = scripted([Reply::calls([eino_call("1", "report")]), Reply::text("Done.")]);
    go(&agent(&main, eino().with_agents(hub("", worker(&sub))))).await;
    let expected = "Skill \"report\" completed (sub-agent execution).\n\nResult:\n";
    assert_eq!(answer(&main, "1"), expected);
}

#[tokio::test]
async fn with_context_a_fork_sees_the_conversation_and_no_call_in_it_is_unanswered() {
    let sub = scripted([Reply::text("Reviewed.")]);
    let main = scripted([
        Reply::text("First turn."),
        Reply::text_and_calls("Both.", [load("1", "review"), load("2", "plain")]),
        Reply::text("Done."),
    ]);
    let agent = agent(&main, skills().with_agents(hub("", worker(&sub))));
    go(&agent).await;
    go(&agent).await;
    let expected = [
        "User: Go.",
        "Assistant: First turn.",
        "User: Go.",
        "Assistant: Both., call 1",
        "Tool: result 1",
    ];
    assert_eq!(said(&sub.requests()[0]), expected);
    let given = sub.requests()[0].messages[4].tool_results().next().unwrap().clone();
    assert_eq!((given.name.as_str(), given.content.as_str()), ("load_skill", "Review it."));
    // The other call was answered here.
    assert_eq!(answer(&main, "2"), "Plain.");
}

/// The reference lists what fails first.
#[tokio::test]
async fn what_fails_first_is_told() {
    let none = || None::<HashMap<String, Agent>>;
    let models = |names: &'static [&'static str]| {
        Some(move |name: &str| {
            let model = || scripted([Reply::text("Tiny.")]) as Arc<dyn ChatModel>;
            names.contains(&name).then(model)
        })
    };
    let agents = || Some(hub("", worker(&scripted([Reply::text("Sub.")]))));
    let table = [
        (
            "report",
            none(),
            models(&[]),
            "skill 'report' requires context:fork but AgentHub is not configured",
        ),
        (
            "review",
            none(),
            models(&[]),
            "skill 'review' requires context:fork_with_context but AgentHub is not configured",
        ),
        ("both", none(), None, "skill 'both' requires context:fork but AgentHub is not configured"),
        (
            "both",
            agents(),
            None,
            "skill 'both' requires model 'tiny' but ModelHub is not configured",
        ),
        ("both", agents(), models(&[]), "failed to get model 'tiny' from ModelHub: there is none"),
        (
            "both",
            agents(),
            models(&["tiny"]),
            "failed to get agent 'nobody' from AgentHub: there is none",
        ),
        ("inline", none(), models(&[]), "failed to get model 'tiny' from ModelHub: there is none"),
    ];
    for (name, agents, models, expected) in table {
        let main = scripted([Reply::calls([eino_call("1", name)]), Reply::text("Done.")]);
        let mut skills = eino().with_customisation(
            Customisation::new().build_content(|_, _| async { Err("not reached".into()) }),
        );
        if name == "inline" {
            skills = eino();
        }
        if let Some(agents) = agents {
            skills = skills.with_agents(agents);
        }
        if let Some(models) = models {
            skills = skills.with_models(models);
        }
        let agent = agent(&main, skills);
        go(&agent).await;
        assert_eq!(answer(&main, "1"), expected, "{name}");
        let state = agent.runtime().state(&session(), agent.name()).await.unwrap();
        assert_eq!((state.loaded.len(), state.model), (0, None), "{name}");
    }
}

#[tokio::test]
async fn functions_of_the_host_fail_in_their_order() {
    let failing = |at: usize| {
        let fails = move |step: usize| match step >= at {
            true => Err(BoxError::from(format!("step {step}"))),
            false => Ok(()),
        };
        let customisation = Customisation::new()
            .build_content(move |skill, _| async move { fails(0).map(|()| skill.content) });
        eino()
            .with_customisation(customisation)
            .build_fork_messages(move |input| async move {
                fails(1).map(|()| vec![Message::user(input.skill_content)])
            })
            .format_fork_result(
                move |output| async move { fails(3).map(|()| output.results.join("+")) },
            )
    };
    let expected = [
        "failed to build skill result: step 0",
        "failed to build fork messages: step 1",
        "failed to run agent event",
        "failed to format fork result: step 3",
        "Sub.",
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        let broken = at == 2;
        let sub = scripted(if broken { vec![] } else { vec![Reply::text("Sub.")] });
        let main = scripted([Reply::calls([eino_call("1", "report")]), Reply::text("Done.")]);
        let at = if broken { 9 } else { at };
        go(&agent(&main, failing(at).with_agents(hub("", worker(&sub))))).await;
        let answer = answer(&main, "1");
        assert!(answer.starts_with(expected), "{at}: {answer}");
    }
}

#[tokio::test]
async fn functions_of_the_host_see_everything_and_decide() {
    let sub = scripted([Reply::text("One."), Reply::text("Two.")]);
    let arguments = json!({"skill": "review", "depth": 3});
    let main = scripted([Reply::calls([call("c1", "skill", arguments)]), Reply::text("Done.")]);
    let skills = eino()
        .with_agents(hub("", worker(&sub)))
        .build_fork_messages(|input| async move {
            assert_eq!((input.skill.name(), input.mode.as_str()), ("review", "fork_with_context"));
            assert_eq!(input.tool_call_id, "c1");
            assert_eq!(input.history.len(), 2);
            assert!(input.raw_arguments.contains(r#""depth":3"#), "{}", input.raw_arguments);
            Ok(vec![Message::user(format!("Please: {}", input.skill_content))])
        })
        .format_fork_result(|output| async move {
            assert_eq!(output.messages.len(), 1);
            Ok(format!("{} says {}", output.skill.name(), output.results.join("; ")))
        });
    go(&agent(&main, skills)).await;
    assert_eq!(answer(&main, "c1"), "review says One.");
    let begun = &said(&sub.requests()[0]);
    assert_eq!(begun.len(), 1, "the text of the skill is not given a second time: {begun:?}");
    assert!(begun[0].starts_with("User: Please: Launching skill: review\n"), "{begun:?}");
}

#[tokio::test]
async fn the_model_that_a_skill_names_goes_to_the_hub() {
    let tiny = Arc::new(ScriptedModel::new([Reply::text("Tiny.")]).named("tiny"));
    let own = scripted([]);
    let main = scripted([Reply::calls([load("1", "small")]), Reply::text("Done.")]);
    let models = HashMap::from([("tiny".to_owned(), tiny.clone() as Arc<dyn ChatModel>)]);
    let agent = agent(&main, skills().with_agents(hub("", worker(&own))).with_models(models));
    go(&agent).await;
    assert_eq!((tiny.requests().len(), own.requests().len()), (1, 0));
    assert!(answer(&main, "1").ends_with("\nTiny."));
}

#[tokio::test]
async fn a_hub_can_be_a_function_that_knows_who_asks() {
    let sub = scripted([Reply::text("Written.")]);
    let model = sub.clone();
    let agents = move |name: &str, options: AgentHubOptions| {
        assert_eq!((name, options.current.name().as_str()), ("writer", "main"));
        assert!(options.model.is_none());
        Ok(options.current.with_model(model.clone()).with_system("You write."))
    };
    let main = scripted([Reply::calls([load("1", "named")]), Reply::text("Done.")]);
    go(&agent(&main, skills().with_agents(agents))).await;
    assert!(sub.requests()[0].system.starts_with("You write."));
}

/// A fork of an agent like this one: a fork inside a fork, side by side, and no deeper than may be.
#[tokio::test]
async fn forks_stand_inside_one_another_as_deep_as_may_be() {
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let next = match request.messages[0].text().as_str() {
            "Go." => "report",
            "Write a report." => "named",
            "Write it." => "review",
            _ => "small",
        };
        match request.messages.last().unwrap().tool_results().next() {
            None => Reply::calls([load("deeper", next)]),
            Some(result) => Reply::text(format!("<{}>", result.content)),
        }
    }));
    let agents = |_: &str, options: AgentHubOptions| Ok(options.current);
    let agent = Agent::builder(model.clone())
        .middleware(skills().with_agents(agents))
        .limits(RunLimits::default().with_max_depth(2))
        .build()
        .unwrap();
    let outcome = go(&agent).await;
    assert_eq!(outcome.text().matches("completed (sub-agent execution)").count(), 2);
    assert!(outcome.text().contains("at most 2 sub-agents may stand inside one another"));
    let stored = agent.runtime().sessions().get(&session()).await.unwrap().unwrap();
    let names: Vec<&str> = stored.session.agents.keys().map(AgentName::as_str).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&"main"));
}

#[tokio::test]
async fn a_skill_does_not_run_itself_again() {
    let model = Arc::new(ScriptedModel::deciding(|request| {
        match request.messages.last().unwrap().tool_results().next() {
            None => Reply::calls([load("again", "report")]),
            Some(result) => Reply::text(result.content.clone()),
        }
    }));
    let agent = agent(&model, skills().with_agents(SameAgent));
    let outcome = go(&agent).await;
    assert!(
        outcome
            .text()
            .ends_with("Skill 'report' is already loaded. Its instructions are already active.")
    );
}

#[tokio::test]
async fn forks_of_one_step_run_side_by_side() {
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let wait = {
        let barrier = Arc::clone(&barrier);
        tool_fn(ToolDeclaration::new("wait", "Waits.", json!({"type": "object"})), move |_| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                ToolOutcome::text("met")
            }
        })
    };
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let first = request.messages[0].text();
        let has_result = request.messages.iter().any(|it| it.tool_results().next().is_some());
        match (first.as_str(), has_result) {
            ("Go.", false) => Reply::calls([load("a", "report"), load("b", "named")]),
            ("Go.", true) => Reply::text("Done."),
            (_, false) => Reply::calls([call("w", "wait", json!({}))]),
            (first, true) => Reply::text(format!("Did: {first}")),
        }
    }));
    let agents = |_: &str, options: AgentHubOptions| Ok(options.current);
    let agent =
        Agent::builder(model).tool(wait).middleware(skills().with_agents(agents)).build().unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), events(&agent, "Go.")).await.unwrap();
    let answers: Vec<&str> = told
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolAnswered { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), 2);
    assert!(answers[0].ends_with("Did: Write a report."), "{answers:?}");
    assert!(answers[1].ends_with("Did: Write it."), "{answers:?}");
}

#[tokio::test]
async fn whoever_follows_the_run_sees_what_a_sub_agent_does_and_what_it_costs() {
    let sub = scripted([Reply::text("Sub.").with_usage(usage(100, 7))]);
    let main = scripted([
        Reply::calls([load("1", "report")]).with_usage(usage(10, 1)),
        Reply::text("Done.").with_usage(usage(20, 2)),
    ]);
    let agent = agent(&main, skills().with_agents(hub("", worker(&sub))));
    let told = events(&agent, "Go.").await;
    let inner: Vec<&AgentEvent> = told
        .iter()
        .filter_map(|event| match event {
            AgentEvent::SubAgent { call_id, agent, event } => {
                assert_eq!(call_id, "1");
                assert!(agent.starts_with("main>report~"), "{agent}");
                Some(&**event)
            }
            _ => None,
        })
        .collect();
    assert!(matches!(inner.first(), Some(AgentEvent::TurnBegan { turn: 1 })));
    assert!(matches!(inner.last(), Some(AgentEvent::Finished { .. })));
    let Some(AgentEvent::Finished { usage, .. }) = told.last() else { panic!() };
    assert_eq!((usage.input_tokens, usage.output_tokens), (130, 10));
}

#[tokio::test]
async fn a_sub_agent_does_not_spend_more_than_is_left() {
    let again = || Reply::calls([call("x", "nothing", json!({}))]).with_usage(usage(50, 0));
    let sub = scripted([again(), again(), again(), Reply::text("Never.")]);
    let main = scripted([
        Reply::calls([load("1", "report")]).with_usage(usage(40, 0)),
        Reply::text("Done."),
    ]);
    let agent = Agent::builder(main.clone())
        .middleware(skills().with_agents(hub("", worker(&sub))))
        .limits(RunLimits::default().with_max_tokens(100))
        .build()
        .unwrap();
    let outcome = go(&agent).await;
    assert_eq!(outcome.stop, StopReason::TokenLimit);
    assert_eq!(sub.requests().len(), 2, "50 of 60 are spent, then 100");
}

/// Ends the run of whoever says so.
struct StopsAt(&'static str);

impl Middleware for StopsAt {
    async fn after_model(
        &self,
        _run: &Run,
        response: &mut ModelResponse,
    ) -> Result<Flow, AgentError> {
        Ok(if response.message.text() == self.0 { Flow::End } else { Flow::Continue })
    }
}

#[tokio::test]
async fn a_sub_agent_that_is_interrupted_is_not_done_and_neither_is_who_waits_for_it() {
    let sub = scripted([Reply::text("Ask a person.")]);
    let worker = Agent::builder(sub).middleware(StopsAt("Ask a person.")).build().unwrap();
    let main = scripted([Reply::calls([load("1", "report")]), Reply::text("Never.")]);
    let agent = agent(&main, skills().with_agents(hub("", worker)));
    let outcome = go(&agent).await;
    assert_eq!((outcome.stop, main.requests().len()), (StopReason::Ended, 1));
    let messages = agent.runtime().transcript(&session(), agent.name()).await.unwrap();
    let result = messages.last().unwrap().tool_results().next().unwrap().clone();
    assert!(result.is_error);
    assert!(result.content.contains("did not come to its end (sub-agent execution)"), "{result:?}");
}

#[tokio::test]
async fn whoever_cancels_a_run_cancels_its_sub_agents() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let sub = Arc::new(ScriptedModel::deciding(move |_| {
        token.cancel();
        Reply::calls([call("x", "nothing", json!({}))])
    }));
    let main = scripted([Reply::calls([load("1", "report")]), Reply::text("Never.")]);
    let agent = agent(&main, skills().with_agents(hub("", worker(&sub))));
    let request = RunRequest::new(session(), "Go.").with_cancel(cancel);
    let outcome = agent.run(request).await.unwrap();
    assert_eq!((outcome.stop, sub.requests().len()), (StopReason::Cancelled, 1));
}

/// The sub-agent has the skill loaded: its tools are open, and its restrictions hold.
#[tokio::test]
async fn the_tools_of_a_skill_are_open_where_it_runs() {
    let gated = "context: fork\nmetadata:\n  include_tools: \"stamp\"\n";
    let catalog = catalog(&[("stamps", gated, "Stamp it.")]);
    let stamp =
        tool_fn(ToolDeclaration::new("stamp", "Stamps.", json!({"type": "object"})), |_| async {
            ToolOutcome::text("stamped")
        });
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let first = request.messages[0].text();
        let result = request.messages.last().unwrap().tool_results().next().cloned();
        match (first.as_str(), result) {
            ("Go.", None) => Reply::calls([call("s", "stamp", json!({})), load("1", "stamps")]),
            ("Go.", Some(_)) => Reply::text("Done."),
            (_, None) => Reply::calls([call("s", "stamp", json!({}))]),
            (_, Some(result)) => Reply::text(result.content),
        }
    }));
    let agent = Agent::builder(model.clone())
        .engine(|engine| engine.skill_tool("stamps", stamp))
        .middleware(SkillsMiddleware::new(catalog).with_agents(SameAgent))
        .build()
        .unwrap();
    go(&agent).await;
    assert!(answer(&model, "s").contains("requires the 'stamps' skill"), "here it is shut");
    assert!(answer(&model, "1").ends_with("stamped"), "{}", answer(&model, "1"));
}

/// However long loaded text stays elsewhere, a sub-agent keeps what it is there for.
#[tokio::test]
async fn a_sub_agent_keeps_its_skill_under_every_load_mode() {
    for mode in [LoadMode::Session, LoadMode::Turn, LoadMode::Once] {
        for name in ["report", "review"] {
            let steps = ["x", "y"].map(|id| Reply::calls([call(id, "nothing", json!({}))]));
            let sub = scripted(steps.into_iter().chain([Reply::text("Done.")]));
            let main = scripted([Reply::calls([load("1", name)]), Reply::text("Done.")]);
            let settings = Settings::default().with_load_mode(mode);
            let worker = Agent::builder(sub.clone())
                .middleware(skills().with_settings(settings.clone()))
                .build()
                .unwrap();
            let agent = agent(&main, skills().with_settings(settings).with_agents(hub("", worker)));
            go(&agent).await;
            let requests = sub.requests();
            assert_eq!(requests.len(), 3);
            for request in requests {
                let texts = request.messages.iter().map(|message| {
                    let results = message.tool_results().map(|it| it.content.clone());
                    results.chain([message.text()]).collect::<String>()
                });
                let body = if name == "report" { "Write a report." } else { "Review it." };
                assert_eq!(texts.filter(|it| it.contains(body)).count(), 1, "{mode:?} {name}");
            }
        }
    }
}
