//! Edges of skills for an agent of rig: its own tools, streams, ids, and what must not happen.
#![cfg(feature = "rig")]

mod rig_support;

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use prowess_agent::rig::{RigSkills, RigSkillsError, rig_tool};
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{AgentName, ListingSlot, Message, Runtime, Settings, result_of};
use rig_agent::AgentBuilder;
use rig_agent::agent::{AgentHook, HookContext, OutcomeAction, OutcomeEvent};
use rig_agent::test_utils::{
    MockAddTool, MockContextProbeTool, MockDeniedTool, MockImageOutputTool, MockMetadataTool,
    MockRequestId, MockSubtractTool, MockToolIndex, SessionId,
};
use rig_agent::tool::{DynamicTool, ToolContext, ToolOutput, ToolSet};
use rig_core::message::ToolResultContent;
use rig_core::test_utils::{MockCompletionModel, MockStreamEvent, MockTurn};
use serde_json::json;

use rig_support::*;

/// What hooks see of the metadata of a tool.
#[derive(Clone, Default)]
struct Metadata(Arc<Mutex<Vec<MockRequestId>>>);

impl AgentHook for Metadata {
    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let found = event.tool_context().and_then(|it| it.result::<MockRequestId>().unwrap());
        self.0.lock().unwrap().extend(found);
        OutcomeAction::proceed()
    }
}

#[tokio::test]
async fn own_tools_keep_their_context_their_metadata_their_pictures_and_their_refusals() {
    let turns = [
        call("1", "context_probe", json!({})),
        call("2", "with_meta", json!({})),
        call("3", "image_output", json!({})),
        call("4", MockDeniedTool::name(), json!({})),
        done(),
    ];
    let model = MockCompletionModel::from_turns(turns);
    let agent = AgentBuilder::new(model.clone())
        .tool(MockContextProbeTool::default())
        .tool(MockMetadataTool)
        .tool(MockImageOutputTool)
        .tool(MockDeniedTool)
        .default_max_turns(9)
        .build();
    let skills = RigSkills::attach(&runtime(Settings::default()), &agent).unwrap();
    let mut context = ToolContext::new();
    context.insert(SessionId("s-1".to_owned())).unwrap();
    let metadata = Metadata::default();
    let run = agent.prompt("Go.").tool_context(context).add_hook(metadata.clone());
    run.add_hook(skills.session(session("a"))).run().await.unwrap();
    let requests = model.requests();
    let results = results(requests.last().unwrap());
    assert_eq!(results[0].content[0].as_text(), Some("session:s-1"));
    assert_eq!(metadata.0.lock().unwrap()[0], MockRequestId("req-7".to_owned()));
    assert!(matches!(results[2].content[0], ToolResultContent::Image(_)));
    assert!(results[3].is_error);
}

trait Named {
    fn name() -> &'static str;
}

impl<T: rig_agent::tool::Tool> Named for T {
    fn name() -> &'static str {
        T::NAME
    }
}

#[tokio::test]
async fn a_skill_can_bring_a_tool_that_the_agent_had_before() {
    let text = "---\nname: sums\ndescription: Adds.\ntool_configs:\n  - name: add\n    method: add\n---\nAdd.\n";
    let source = MemorySource::new("memory").with_skill("sums", text);
    let runtime = Runtime::builder(Catalog::builder().source(source).build()).build().unwrap();
    let (agent, model) = owned([add("1"), load("2", "sums"), add("3"), done()]);
    let skills = RigSkills::attach(&runtime, &agent).unwrap();
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let requests = model.requests();
    assert!(!tools(&requests[0]).contains(&"add"));
    let answers = last_answers(&model);
    assert_eq!((answers[0].1, answers[2].0.as_str()), (true, "42"));
}

#[tokio::test]
async fn a_tool_of_rig_can_be_tied_to_a_skill_by_the_host() {
    let echo = DynamicTool::new("echo".try_into().unwrap(), "Echoes.", json!({}), |it| {
        Box::pin(async move { Ok(ToolOutput::json(it)) })
    });
    let runtime = builder().skill_tool("greet", rig_tool(echo)).build().unwrap();
    let say = |id| call(id, "echo", json!({"a": 1}));
    let (agent, model) = owned([say("1"), load("2", "greet"), say("3"), done()]);
    let skills = RigSkills::attach(&runtime, &agent).unwrap();
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let answers = last_answers(&model);
    assert!(answers[0].1);
    assert_eq!(answers[2], (json!({"a": 1}).to_string(), false));
}

#[tokio::test]
async fn a_stream_has_skills_too() {
    let end = MockStreamEvent::final_response_with_default_usage;
    let calls = |id: &str, name: &str, arguments| {
        vec![MockStreamEvent::tool_call(id, name, arguments), end()]
    };
    let model = MockCompletionModel::from_stream_turns([
        calls("1", "load_skill", json!({"skill": "shop"})),
        calls("2", "orders", json!({})),
        vec![MockStreamEvent::text("Done."), end()],
    ]);
    let agent = AgentBuilder::new(model.clone()).default_max_turns(9).build();
    let skills = RigSkills::attach(&runtime(Settings::default()), &agent).unwrap();
    let mut run = agent.prompt("Go.").add_hook(skills.session(session("a"))).stream();
    while let Some(item) = run.next().await {
        item.unwrap();
    }
    let answers = last_answers(&model);
    assert_eq!(answers[0].0, "Ask for orders first.");
    assert_eq!(answers[1].0, "three orders");
}

#[tokio::test]
async fn ids_that_a_model_uses_again_name_new_calls() {
    let turns = [add("0"), load("0", "shop"), done(), load("0", "greet"), done()];
    let (agent, model, skills) = skilled(Settings::default(), turns);
    for _ in 0..2 {
        agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    }
    assert_eq!(last_answers(&model)[0].0, "Say: good day.");
    let store = skills.runtime().sessions();
    let said = store.messages(&session("a"), &AgentName::default()).await.unwrap();
    let ids: Vec<&str> =
        said.iter().flat_map(Message::tool_calls).map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["0", "0~again-2", "0~again-3"]);
    assert!(ids.iter().all(|id| result_of(&said, id).is_some()));
}

#[tokio::test]
async fn the_listing_can_stand_in_the_description_of_the_load_tool() {
    let mut settings = Settings::default();
    settings.listing.slot = ListingSlot::ToolDescription;
    let (agent, model, skills) = skilled(settings, [done()]);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let requests = model.requests();
    let load = requests[0].tools.iter().find(|tool| tool.name == "load_skill").unwrap();
    assert!(load.description.contains("- greet: Greets people."));
    assert!(!system(&requests[0]).contains("- greet"));
}

#[tokio::test]
async fn skills_are_attached_once_and_names_do_not_clash() {
    let (agent, _, _) = skilled(Settings::default(), []);
    let error = RigSkills::attach(&runtime(Settings::default()), &agent).unwrap_err();
    assert!(matches!(&error, RigSkillsError::SameName { name } if !name.is_empty()));
    assert_eq!(error.code(), "same_tool_name");
}

#[tokio::test]
async fn a_tool_that_is_added_later_goes_past_nobody() {
    let turns = [call("1", "subtract", json!({"x": 2, "y": 1})), done()];
    let (agent, model, skills) = skilled(Settings::default(), turns);
    agent.tool_server_handle().add_tool(MockSubtractTool);
    agent.prompt("Go.").add_hook(skills.session(session("a"))).run().await.unwrap();
    let (text, is_error) = last_answers(&model).remove(0);
    assert!(is_error && text.contains("after its skills"), "{text}");
}

#[tokio::test]
async fn a_run_without_a_session_is_the_agent_as_it_was_and_loads_nothing() {
    let (agent, model, _skills) =
        skilled(Settings::default(), [add("1"), load("2", "shop"), done()]);
    agent.prompt("Go.").run().await.unwrap();
    let answers = last_answers(&model);
    assert_eq!(answers[0], ("42".to_owned(), false));
    assert!(answers[1].1 && answers[1].0.contains("session"), "{answers:?}");
    assert_eq!(system(&model.requests()[0]), "You are a clerk.");
}

#[tokio::test]
async fn two_sessions_in_one_run_are_refused() {
    let (agent, model, skills) = skilled(Settings::default(), [load("1", "shop"), done()]);
    let run = agent.prompt("Go.").add_hook(skills.session(session("a")));
    run.add_hook(skills.session(session("b"))).run().await.unwrap();
    let (text, is_error) = last_answers(&model).remove(0);
    assert!(is_error && text.contains("two sessions"), "{text}");
}

#[tokio::test]
async fn tools_that_are_retrieved_stay_so() {
    let model = MockCompletionModel::from_turns([MockTurn::text("Done.")]);
    let mut toolset = ToolSet::default();
    toolset.add_tool(MockAddTool);
    toolset.add_tool(MockSubtractTool);
    let agent = AgentBuilder::new(model.clone())
        .retrieved_tools(1, MockToolIndex::new(["add"]), toolset)
        .build();
    let skills = RigSkills::attach(&runtime(Settings::default()), &agent).unwrap();
    agent.prompt("Add!").add_hook(skills.session(session("a"))).run().await.unwrap();
    let requests = model.requests();
    assert!(tools(&requests[0]).contains(&"add"));
    assert!(!tools(&requests[0]).contains(&"subtract"));
}
