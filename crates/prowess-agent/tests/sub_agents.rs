//! Work that is handed to sub-agents (S09, 2), with the integration row 2 of the second DeepAgents
//! document.

mod agent_support;

use std::sync::Arc;

use agent_support::{answer, call, catalog, events, load, scripted, session};
use prowess_agent::{
    Agent, AgentEvent, Reply, RunLimits, RunRequest, ScriptedModel, SkillsMiddleware, SubAgent,
    SubAgentMiddleware, SubAgentSkills, create_deep_agent,
};
use prowess_catalog::{Catalog, CatalogSkill, Scope};
use prowess_runtime::{
    AgentName, Tool, ToolCall, ToolDeclaration, ToolOutcome, Visibility, tool_fn,
};
use serde_json::json;

fn skills() -> Catalog {
    catalog(&[("sql", "", "Write SQL."), ("web", "", "Search the web."), ("pdf", "", "Read.")])
}

fn task(id: &str, kind: &str, what: &str) -> ToolCall {
    call(id, "task", json!({"description": what, "subagent_type": kind}))
}

fn tool(name: &'static str) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Does it.", json!({"type": "object"}));
    tool_fn(declaration, move |_| async move { ToolOutcome::text(format!("{name} ran")) })
}

fn agent(model: &Arc<ScriptedModel>, sub_agents: SubAgentMiddleware) -> Agent {
    Agent::builder(model.clone())
        .system("You are the parent.")
        .tool(tool("alpha"))
        .tool(tool("beta"))
        .middleware(sub_agents)
        .middleware(SkillsMiddleware::new(skills()))
        .build()
        .unwrap()
}

/// The names of the agents of the session, and what each has loaded.
async fn loaded(agent: &Agent) -> Vec<(String, Vec<String>)> {
    let stored = agent.runtime().sessions().get(&session()).await.unwrap().unwrap();
    let names = |(name, state): (&AgentName, &prowess_runtime::SessionState)| {
        let loaded = state.loaded_names().into_iter().map(str::to_owned).collect();
        (name.label().split('~').next().unwrap().to_owned(), loaded)
    };
    stored.session.agents.iter().map(names).collect()
}

/// Row 2: what a parent and its sub-agent load, the other does not see.
#[tokio::test]
async fn parent_and_sub_agent_load_skills_each_for_itself() {
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let turn = request.messages.iter().filter(|it| it.tool_results().next().is_some()).count();
        match (request.messages[0].text().as_str(), turn) {
            ("Go.", 0) => Reply::calls([load("1", "sql")]),
            ("Go.", 1) => Reply::calls([task("2", "general-purpose", "Do the query.")]),
            ("Do the query.", 0) => {
                assert!(request.system.contains("- sql: Does sql."), "it inherits the sources");
                Reply::calls([load("1", "sql"), load("3", "web")])
            }
            ("Do the query.", _) => Reply::text("42 rows."),
            _ => Reply::text("Done."),
        }
    }));
    let agent = agent(&model, SubAgentMiddleware::new());
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(answer(&model, "2"), "42 rows.");
    let expected = [
        ("main".to_owned(), vec!["sql".to_owned()]),
        ("general-purpose".to_owned(), vec!["sql".to_owned(), "web".to_owned()]),
    ];
    assert_eq!(loaded(&agent).await, expected);
    // The sub-agent was given the text anew, not told that it is loaded already.
    let requests = model.requests();
    let sub = requests.iter().rfind(|it| it.messages[0].text() == "Do the query.").unwrap();
    let given = sub.messages[2].tool_results().next().unwrap();
    assert_eq!(given.content, "Write SQL.");
}

#[tokio::test]
async fn inherit_copies_what_is_loaded_at_spawn() {
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let turn = request.messages.iter().filter(|it| it.tool_results().next().is_some()).count();
        let first = request.messages.iter().find(|it| it.role == prowess_runtime::Role::User);
        match (first.unwrap().text().as_str(), turn) {
            ("Go.", 0) => Reply::calls([load("1", "sql")]),
            ("Go.", 1) => Reply::calls([task("2", "general-purpose", "Sub.")]),
            ("Sub.", 0) => {
                let context = request.messages[0].text();
                assert!(context.contains("[Loaded] sql\n\nWrite SQL."), "{context}");
                Reply::calls([call("u", "unload_skill", json!({"skill": "sql"}))])
            }
            ("Sub.", _) => Reply::text("Unloaded."),
            _ => Reply::text("Done."),
        }
    }));
    let sub_agents = SubAgentMiddleware::new().general_purpose(SubAgentSkills::Inherit);
    let agent = agent(&model, sub_agents);
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let expected =
        [("main".to_owned(), vec!["sql".to_owned()]), ("general-purpose".to_owned(), vec![])];
    assert_eq!(loaded(&agent).await, expected, "what it unloads, the parent keeps");
}

#[tokio::test]
async fn a_list_stays_within_what_the_parent_sees() {
    let narrow = SubAgent::new("narrow", "Does little.")
        .system("You are narrow.")
        .tools(["alpha"])
        .skills(SubAgentSkills::only(["web", "not-there"]));
    let sub = scripted([
        Reply::calls([load("1", "web"), load("2", "sql"), call("3", "beta", json!({}))]),
        Reply::text("Tried."),
    ]);
    let narrow = narrow.model(sub.clone());
    let model = scripted([Reply::calls([task("t", "narrow", "Try.")]), Reply::text("Done.")]);
    let agent = agent(&model, SubAgentMiddleware::new().with(narrow));
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let requests = sub.requests();
    assert!(requests[0].system.starts_with("You are narrow."));
    assert!(requests[0].system.contains("- web:") && !requests[0].system.contains("- sql:"));
    let names: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"alpha") && names.contains(&"load_skill"), "{names:?}");
    assert!(!names.contains(&"beta") && !names.contains(&"task"), "{names:?}");
    assert_eq!(answer(&sub, "1"), "Search the web.");
    assert!(answer(&sub, "2").contains("Skill 'sql' not found. Available skills: web"));
    assert!(answer(&sub, "3").contains("Tool 'beta' not found"));
}

#[tokio::test]
async fn an_agent_of_its_own_is_taken_as_it_is() {
    let own = scripted([Reply::text("Mine.")]);
    let other = Agent::builder(own.clone()).system("Other.").build().unwrap();
    let model = scripted([Reply::calls([task("t", "other", "Go on.")]), Reply::text("Done.")]);
    let middleware = SubAgentMiddleware::empty().with(SubAgent::of("other", "Another.", other));
    agent(&model, middleware).run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(
        (answer(&model, "t").as_str(), own.requests()[0].system.as_str()),
        ("Mine.", "Other.")
    );
}

#[tokio::test]
async fn tasks_that_cannot_be_handed_out_say_why() {
    let deep = |request: &prowess_agent::ModelRequest| match request
        .messages
        .last()
        .unwrap()
        .tool_results()
        .next()
    {
        None => Reply::calls([task("t", "general-purpose", "Deeper.")]),
        Some(result) => Reply::text(result.content.clone()),
    };
    let model = Arc::new(ScriptedModel::deciding(deep));
    let agent = Agent::builder(model)
        .middleware(SubAgentMiddleware::new())
        .limits(RunLimits::default().with_max_depth(1))
        .build()
        .unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let expected = "Error: The sub-agent 'general-purpose' did not finish: at most 1 sub-agents \
                    may stand inside one another";
    assert_eq!(outcome.text(), expected);
    let table = [
        (
            json!({"description": "x", "subagent_type": "nobody"}),
            "There is no sub-agent 'nobody'. Sub-agents: general-purpose",
        ),
        (json!({"description": "x"}), "Invalid arguments for task: missing field `subagent_type`"),
    ];
    for (arguments, expected) in table {
        let model = scripted([Reply::calls([call("t", "task", arguments)]), Reply::text("Done.")]);
        let agent = Agent::builder(model.clone())
            .middleware(SubAgentMiddleware::new())
            .middleware(SkillsMiddleware::new(skills()))
            .build()
            .unwrap();
        agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
        assert!(answer(&model, "t").contains(expected), "{}", answer(&model, "t"));
    }
    let call = task("d", "general-purpose", "Without an agent.");
    let direct = agent.runtime().dispatch(&session(), agent.name(), call).await;
    assert_eq!(direct.unwrap().code, "subagent_failed");
}

#[tokio::test]
async fn a_sub_agent_that_fails_is_an_outcome_and_the_parent_goes_on() {
    let sub = scripted([]);
    let broken = SubAgent::new("broken", "Breaks.").model(sub);
    let model = scripted([Reply::calls([task("t", "broken", "Go on.")]), Reply::text("Done.")]);
    let agent = agent(&model, SubAgentMiddleware::new().with(broken));
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Done.");
    assert!(answer(&model, "t").starts_with("Error: The sub-agent 'broken' did not finish: "));
}

/// Two agents in one session, at work at the same time.
#[tokio::test]
async fn agents_of_one_session_work_side_by_side() {
    let replies = |name: &str| {
        scripted([Reply::calls([load("1", name)]), Reply::text(format!("{name} done."))])
    };
    let store = Arc::new(prowess_runtime::MemorySessions::new());
    let build = |name: &str| {
        let store = store.clone();
        Agent::builder(replies(name))
            .name(AgentName::new(name).unwrap())
            .engine(|engine| engine.sessions(store))
            .middleware(SkillsMiddleware::new(skills()))
            .build()
            .unwrap()
    };
    let (sql, web) = (build("sql"), build("web"));
    let (one, two) = tokio::join!(
        sql.run(RunRequest::new(session(), "Go.")),
        web.run(RunRequest::new(session(), "Go.")),
    );
    assert_eq!(
        (one.unwrap().text(), two.unwrap().text()),
        ("sql done.".into(), "web done.".into())
    );
    let expected =
        [("sql".to_owned(), vec!["sql".to_owned()]), ("web".to_owned(), vec!["web".to_owned()])];
    assert_eq!(loaded(&sql).await, expected);
}

#[tokio::test]
async fn a_deep_agent_forks_and_hands_out_tasks() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("report")).unwrap();
    let text = agent_support::skill("report", "context: fork\n", "Write a report.");
    std::fs::write(folder.path().join("report/SKILL.md"), text).unwrap();
    let model = Arc::new(ScriptedModel::deciding(|request| {
        let last = request.messages.last().unwrap();
        match (request.messages[0].text().as_str(), last.tool_results().next()) {
            ("Go.", None) => Reply::calls([
                load("1", "report"),
                task("2", "general-purpose", "Count."),
                call(
                    "3",
                    "write_todos",
                    json!({"todos": [{"content": "Count", "status": "pending"}]}),
                ),
            ]),
            ("Go.", Some(_)) => Reply::text("Done."),
            (first, _) => Reply::text(format!("[{first}]")),
        }
    }));
    let agent = create_deep_agent(model.clone(), [folder.path()]).build().unwrap();
    let told = events(&agent, "Go.").await;
    assert!(told.iter().any(|event| matches!(event, AgentEvent::SubAgent { .. })));
    assert!(answer(&model, "1").ends_with("[Write a report.]"), "{}", answer(&model, "1"));
    assert_eq!(answer(&model, "2"), "[Count.]");
    assert!(answer(&model, "3").starts_with("Updated todo list to [{"));
}

/// What is hidden from an agent is hidden from its sub-agents, and what is for it is for them.
#[tokio::test]
async fn sub_agents_stay_within_what_their_parent_sees() {
    for allowed in ["main", "other"] {
        let filter = move |scope: &Scope, skill: &CatalogSkill| {
            let is_shown = skill.name() != "sql" || scope.agent.as_deref() == Some(allowed);
            if is_shown { Visibility::Listed } else { Visibility::Hidden }
        };
        let model = Arc::new(ScriptedModel::deciding(|request| {
            match (request.messages[0].text().as_str(), request.messages.len()) {
                ("Go.", 1) => Reply::calls([task("t", "general-purpose", "Sub.")]),
                ("Sub.", 1) => Reply::calls([load("l", "sql")]),
                _ => Reply::text(
                    request.messages.last().unwrap().tool_results().next().unwrap().content.clone(),
                ),
            }
        }));
        let agent = Agent::builder(model)
            .engine(|engine| engine.visibility(Arc::new(filter)))
            .middleware(SubAgentMiddleware::new())
            .middleware(SkillsMiddleware::new(skills()))
            .build()
            .unwrap();
        let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
        assert_eq!(outcome.text() == "Write SQL.", allowed == "main", "{}", outcome.text());
    }
}

#[tokio::test]
async fn limits_of_a_run_hold_for_the_runs_inside_of_it() {
    // However deep the agent of a hub would let others stand: its caller's limit holds.
    let deep = |request: &prowess_agent::ModelRequest| match request
        .messages
        .last()
        .unwrap()
        .tool_results()
        .next()
    {
        None => Reply::calls([task("t", "other", "Deeper.")]),
        Some(result) => Reply::text(result.content.clone()),
    };
    let other = Agent::builder(Arc::new(ScriptedModel::deciding(deep)))
        .middleware(SubAgentMiddleware::new().with(SubAgent::new("other", "Deeper.")))
        .build()
        .unwrap();
    let agent = Agent::builder(Arc::new(ScriptedModel::deciding(deep)))
        .middleware(SubAgentMiddleware::empty().with(SubAgent::of("other", "Another.", other)))
        .limits(RunLimits::default().with_max_depth(2))
        .build()
        .unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert!(outcome.text().contains("at most 2 sub-agents"), "{}", outcome.text());
    // Side by side they share what is left.
    let mut usage = prowess_runtime::Usage::default();
    usage.input_tokens = 30;
    let again = move |_: &prowess_agent::ModelRequest| {
        Reply::calls([call("x", "nothing", json!({}))]).with_usage(usage)
    };
    let child = Arc::new(ScriptedModel::deciding(again));
    let calls = (0..6).map(|at| task(&format!("t{at}"), "child", "Go on."));
    let model = scripted([Reply::calls(calls)]);
    let agent = Agent::builder(model)
        .middleware(SubAgentMiddleware::empty().with(SubAgent::new("child", "C.").model(child)))
        .limits(RunLimits::default().with_max_tokens(100))
        .build()
        .unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert!(outcome.usage.input_tokens <= 6 * 30 + 100, "{:?}", outcome.usage);
    assert!(outcome.usage.input_tokens > 100, "{:?}", outcome.usage);
}

/// A sub-agent that is given up has cost what it has cost.
#[tokio::test]
async fn what_a_sub_agent_costs_is_paid_also_if_it_is_given_up() {
    let mut usage = prowess_runtime::Usage::default();
    usage.input_tokens = 1_000;
    let hang = tool_fn(ToolDeclaration::new("hang", "Hangs.", json!({"type": "object"})), |_| {
        std::future::pending()
    });
    let child = scripted([Reply::calls([call("h", "hang", json!({}))]).with_usage(usage)]);
    let model = scripted([Reply::calls([task("t", "child", "Go on.")]), Reply::text("Done.")]);
    let agent = Agent::builder(model)
        .tool(hang)
        .middleware(SubAgentMiddleware::empty().with(SubAgent::new("child", "C.").model(child)))
        .limits(RunLimits::default().with_tool_timeout_ms(300))
        .build()
        .unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.usage.input_tokens, 1_000);
}
