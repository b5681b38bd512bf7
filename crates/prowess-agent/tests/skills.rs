//! The engine as middleware (S06, 5), and the integration rows 4 to 6 of the second DeepAgents
//! document through the real loop.

use std::sync::Arc;

use proptest::prelude::*;
use prowess_agent::{
    Agent, AgentBuilder, AgentEvent, ChatModel, Reply, RunRequest, Runner, ScriptedModel,
    SkillsMiddleware, create_deep_agent,
};
use prowess_catalog::{Catalog, MemoryFile, MemorySource};
use prowess_runtime::{
    AllowedToolsPolicy, Budget, Change, Dialect, Exposure, LoadMode, LoadRequest, Message,
    Placement, PromptRequest, SessionKey, Settings, Tool, ToolCall, ToolDeclaration, ToolOutcome,
    TurnRequest, tool_fn,
};
use serde_json::{Value, json};

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn tool(name: &str) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new(name, "Does it.", json!({"type": "object"}));
    tool_fn(declaration, |_| async { ToolOutcome::text("ok") })
}

fn skill(name: &str, lines: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\n{body}\n")
}

fn catalog() -> Catalog {
    let source = MemorySource::new("memory")
        .with_skill("deploy", skill("deploy", "allowed-tools: tool_x\n", "Deploy it."))
        .with_file("deploy", "scripts/run.sh", MemoryFile::executable("echo"))
        .with_file("deploy", "guide.md", MemoryFile::new("The guide."))
        .with_skill("query", skill("query", "allowed-tools: tool_z\nmodel: big\n", "Query it."))
        .with_skill("third", skill("third", "", "Third."));
    Catalog::builder().source(source).build()
}

fn deepagents(change: impl FnOnce(Settings) -> Settings) -> SkillsMiddleware {
    let dialect = Dialect::named("deepagents").unwrap();
    let settings = change(dialect.settings().clone());
    SkillsMiddleware::new(catalog()).with_dialect(dialect).with_settings(settings)
}

fn load(id: &str, skill: &str) -> ToolCall {
    ToolCall::new(id, "load_skill", json!({"skill_name": skill}))
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, json!({}))
}

/// Whether each answer in the last request is an error.
fn errors(model: &ScriptedModel) -> Vec<bool> {
    let requests = model.requests();
    let last = requests.last().unwrap();
    last.messages.iter().flat_map(Message::tool_results).map(|result| result.is_error).collect()
}

/// Row 4: the system prompt shows `[Loaded]` and resources in the request behind the load.
#[tokio::test]
async fn row_4_the_next_system_prompt_shows_what_was_loaded() {
    let replies = [Reply::calls([load("1", "deploy")]), Reply::text("Deployed.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = Agent::builder(model.clone()).middleware(deepagents(|it| it)).build().unwrap();
    agent.run(RunRequest::new(session(), "Deploy.")).await.unwrap();
    let requests = model.requests();
    assert!(requests[0].system.contains("  -> Use `load_skill(\"deploy\")`"));
    assert!(!requests[0].system.contains("[Loaded]"));
    assert!(requests[1].system.contains("- **deploy** [Loaded]: Does deploy."));
    assert!(requests[1].system.contains("  -> Resources: 1 other, 1 script"));
    let loaded = requests[1].messages[2].tool_results().next().unwrap();
    assert!(loaded.content.starts_with("---\nname: deploy\n"), "{}", loaded.content);
}

/// Row 5: what is allowed grows with every skill that is loaded.
#[tokio::test]
async fn row_5_restrictions_accumulate_across_skills() {
    let replies = [
        Reply::calls([load("1", "deploy")]),
        Reply::calls([call("2", "tool_x"), call("3", "tool_z"), call("4", "execute")]),
        Reply::calls([load("5", "query")]),
        Reply::calls([call("6", "tool_x"), call("7", "tool_z"), call("8", "execute")]),
        Reply::text("Done."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let restrict = |it: Settings| it.with_allowed_tools_policy(AllowedToolsPolicy::Restrict);
    let tools = ["tool_x", "tool_z", "execute"].map(tool);
    let builder = Agent::builder(model.clone()).middleware(deepagents(restrict));
    let agent = tools.into_iter().fold(builder, AgentBuilder::tool).build().unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(errors(&model), [false, false, true, true, false, false, false, true]);
}

/// Row 6: what the listing leaves out can be loaded by its name.
#[tokio::test]
async fn row_6_a_skill_that_is_not_shown_can_be_loaded() {
    let replies = [Reply::calls([load("1", "third")]), Reply::text("Done.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let small = |mut it: Settings| {
        it.listing.budget = Budget::Characters(120);
        it
    };
    let agent = Agent::builder(model.clone()).middleware(deepagents(small)).build().unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    let requests = model.requests();
    assert!(!requests[0].system.contains("**third**"));
    assert!(requests[0].system.contains("additional skill(s) not shown"));
    assert_eq!(errors(&model), [false]);
    assert!(requests[1].system.contains("**third** [Loaded]"));
}

#[tokio::test]
async fn a_skill_can_ask_for_another_model_until_it_is_unloaded() {
    let big: Arc<ScriptedModel> = Arc::new(ScriptedModel::new([Reply::calls([ToolCall::new(
        "2",
        "unload_skill",
        json!({"skill": "query"}),
    )])]));
    let replies = [
        Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "query"}))]),
        Reply::text("Back."),
    ];
    let own = Arc::new(ScriptedModel::new(replies));
    let hub = {
        let big = big.clone();
        move |name: &str| (name == "big").then(|| big.clone() as Arc<dyn ChatModel>)
    };
    let skills = SkillsMiddleware::new(catalog()).with_models(hub);
    let agent = Agent::builder(own.clone()).middleware(skills).build().unwrap();
    let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Back.");
    assert_eq!((own.requests().len(), big.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_model_that_is_not_there_is_reported_and_the_own_one_goes_on() {
    let replies = [
        Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "query"}))]),
        Reply::text("Still me."),
    ];
    let agent = Agent::builder(Arc::new(ScriptedModel::new(replies)))
        .middleware(SkillsMiddleware::new(catalog()))
        .build()
        .unwrap();
    let mut stream = agent.stream(RunRequest::new(session(), "Go."));
    let mut problems = Vec::new();
    while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
        if let AgentEvent::Problem { message } = event {
            problems.push(message);
        }
    }
    assert_eq!(stream.outcome().await.unwrap().text(), "Still me.");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("'query' asks for the model 'big'"), "{problems:?}");
}

#[tokio::test]
async fn a_deep_agent_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("greet")).unwrap();
    let text = skill("greet", "", "Say good day.");
    std::fs::write(folder.path().join("greet/SKILL.md"), text).unwrap();
    let replies = [
        Reply::calls([ToolCall::new("1", "load_skill", json!({"skill": "greet"}))]),
        Reply::text("Good day."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let agent = create_deep_agent(model.clone(), [folder.path()]).build().unwrap();
    let outcome = Runner::new("app", agent).run("alice", "s1", "Hello!").await.unwrap();
    assert_eq!(outcome.text(), "Good day.");
    assert!(model.requests()[0].system.contains("- greet: Does greet."));
}

/// What a model does in a random conversation.
#[derive(Clone, Debug)]
enum Act {
    Load(&'static str, bool),
    Unload(&'static str),
    Docs,
    Tool,
    /// The turn is over.
    Say,
}

fn act() -> impl Strategy<Value = Act> {
    let name = prop::sample::select(vec!["deploy", "query", "third"]);
    prop_oneof![
        (name.clone(), any::<bool>()).prop_map(|(name, docs)| Act::Load(name, docs)),
        name.prop_map(Act::Unload),
        Just(Act::Docs),
        Just(Act::Tool),
        Just(Act::Say),
    ]
}

fn reply(act: &Act, id: usize) -> Reply {
    let call = |tool: &str, arguments: Value| {
        Reply::calls([ToolCall::new(format!("c{id}"), tool, arguments)])
    };
    match act {
        Act::Load(skill, docs) => {
            call("load_skill", json!({"skill": skill, "include_all_docs": docs}))
        }
        Act::Unload(skill) => call("unload_skill", json!({"skill": skill})),
        Act::Docs => call("skill_select_docs", json!({"skill": "deploy", "docs": ["guide.md"]})),
        Act::Tool => call("work", json!({})),
        Act::Say => Reply::text(format!("Said {id}.")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, a conversation that is kept says exactly what one that is read anew says.
    #[test]
    fn keeping_a_conversation_changes_nothing(
        acts in prop::collection::vec(act(), 1..24),
        mode in prop::sample::select(vec![LoadMode::Session, LoadMode::Turn]),
        placement in prop::sample::select(vec![Placement::ToolResult, Placement::System]),
        exposure in prop::sample::select(vec![Exposure::OnLoad, Exposure::Generic]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let settings = Settings::default()
                .with_load_mode(mode)
                .with_placement(placement)
                .with_exposure(exposure);
            let mut replies: Vec<Reply> =
                acts.iter().enumerate().map(|(id, act)| reply(act, id)).collect();
            replies.push(Reply::text("The end."));
            let model = Arc::new(ScriptedModel::new(replies));
            let agent = Agent::builder(model.clone())
                .system("S")
                .tool(tool("work"))
                .middleware(SkillsMiddleware::new(catalog()).with_settings(settings))
                .middleware(Compare)
                .build()
                .unwrap();
            while model.remaining() > 0 {
                agent.run(RunRequest::new(session(), "Go on.")).await.unwrap();
            }
        });
    }
}

/// Somebody else who writes into the session during a step.
fn meddling(agent: &Arc<std::sync::OnceLock<Agent>>) -> Arc<dyn Tool> {
    let agent = Arc::clone(agent);
    let declaration = ToolDeclaration::new("meddle", "Meddles.", json!({"type": "object"}));
    tool_fn(declaration, move |arguments| {
        let agent = agent.get().unwrap().clone();
        async move {
            let (runtime, name, key) = (agent.runtime(), agent.name(), session());
            match arguments["how"].as_str() {
                Some("turn") => {
                    let turn = TurnRequest::new().with_load(LoadRequest::new("third"));
                    runtime.begin_turn(&key, name, turn).await.unwrap();
                }
                Some("unload") => {
                    let skill = "deploy".to_owned();
                    runtime.change(&key, name, vec![Change::Unload { skill }]).await.unwrap();
                }
                _ => {
                    let said = vec![Message::user("Me too.")];
                    runtime.append(&key, name, said).await.unwrap();
                }
            }
            ToolOutcome::text("meddled")
        }
    })
}

/// Also if somebody else writes into the session, a conversation that is kept says what one that is
/// read anew says, and every call is answered right behind its message.
#[tokio::test]
async fn others_may_write_into_the_session_during_a_run() {
    for mode in [LoadMode::Session, LoadMode::Turn] {
        for placement in [Placement::ToolResult, Placement::System] {
            let settings = Settings::default().with_load_mode(mode).with_placement(placement);
            let load = |id: &str| ToolCall::new(id, "load_skill", json!({"skill": "deploy"}));
            let meddle = |id: &str, how: &str| ToolCall::new(id, "meddle", json!({"how": how}));
            let model = Arc::new(ScriptedModel::new([
                Reply::calls([load("1")]),
                Reply::calls([meddle("2", "say")]),
                Reply::calls([meddle("3", "unload"), call("4", "work")]),
                Reply::calls([load("5"), meddle("6", "turn")]),
                Reply::calls([call("7", "work")]),
                Reply::text("Done."),
            ]));
            let own = Arc::new(std::sync::OnceLock::new());
            let agent = Agent::builder(model.clone())
                .system("S")
                .tool(tool("work"))
                .tool(meddling(&own))
                .middleware(SkillsMiddleware::new(catalog()).with_settings(settings))
                .middleware(Compare)
                .build()
                .unwrap();
            own.set(agent.clone()).unwrap();
            let outcome = agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
            assert_eq!(outcome.text(), "Done.", "{mode:?} {placement:?}");
            let stored = agent.runtime().sessions().messages(&session(), agent.name()).await;
            let stored = stored.unwrap();
            for (at, message) in stored.iter().enumerate() {
                for (place, call) in message.tool_calls().enumerate() {
                    let answer = stored[at + 1 + place].tool_results().next().unwrap();
                    assert_eq!(answer.call_id, call.id, "{mode:?} {placement:?}");
                }
            }
        }
    }
}

/// Compares every request with one that is made from the store.
struct Compare;

impl prowess_agent::Middleware for Compare {
    async fn before_model(
        &self,
        run: &prowess_agent::Run,
        call: &mut prowess_agent::ModelCall,
    ) -> Result<(), prowess_agent::AgentError> {
        let request = PromptRequest::new().with_system(run.system());
        let prompt = run.runtime().prompt(run.session(), run.agent(), request).await?;
        assert_eq!(prompt.system, call.request.system);
        assert_eq!(prompt.messages, call.request.messages);
        assert_eq!(prompt.tools, call.request.tools);
        Ok(())
    }
}
