//! How a model comes to know of the tools that a skill brings.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prowess_catalog::{Catalog, CatalogSkill, MemorySource, Precedence, Scope};
use prowess_runtime::{
    AgentName, Exposure, Prompt, PromptRequest, Runtime, RuntimeBuilder, SessionKey, Settings,
    ToolCall, ToolDeclaration, ToolOutcome, TurnRequest, Visibility, tool_fn,
};
use serde_json::json;
use support::{Plan, World, echo};

const SQL: &str = "---
name: sql
description: Queries.
tool_configs:
  - name: sql_query
    description: Runs a query.
    method: query
  - name: sql_dialect
    description: Says which dialect.
    method: dialect
    requires_skill_loaded: false
---
Write SQL.
";

fn world(exposure: Exposure) -> World {
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["query"],
        "additionalProperties": false,
    });
    let declaration = ToolDeclaration::new("sql_query", "Runs a query.", schema);
    let query = tool_fn(declaration, |it| async move { ToolOutcome::text(it.to_string()) });
    Plan::new()
        .file("sql/SKILL.md", SQL)
        .file(
            "notes/SKILL.md",
            "---\nname: notes\ndescription: N.\nmetadata:\n  include_tools: note_add\n---\nx",
        )
        .skill("jira", "Ask Jira.")
        .settings(Settings::default().with_exposure(exposure))
        .change(|it| {
            it.tool(query)
                .tool(echo("sql_dialect"))
                .tool(echo("note_add"))
                .tool(echo("plain"))
                .skill_tool("jira", echo("jira_search"))
        })
        .build()
}

async fn prompt(world: &World) -> Prompt {
    world.runtime.prompt(&world.session, &world.agent, PromptRequest::new()).await.unwrap()
}

/// The tools of the prompt that are no load tools.
async fn tools(world: &World) -> Vec<String> {
    let loading = |name: &str| name.contains("skill") && name != "skill_tool";
    let prompt = prompt(world).await;
    let names = prompt.tools.iter().map(|tool| tool.name.clone());
    names.filter(|name| !loading(name)).collect()
}

#[tokio::test]
async fn on_load_they_appear_with_the_load_and_go_with_it() {
    let world = world(Exposure::OnLoad);
    assert_eq!(tools(&world).await, ["plain", "sql_dialect"]);
    let before = prompt(&world).await.tools;
    world.load("sql").await;
    assert_eq!(tools(&world).await, ["plain", "sql_dialect", "sql_query"]);
    world.load("jira").await;
    world.load("notes").await;
    let after = prompt(&world).await.tools;
    assert_eq!(
        tools(&world).await,
        ["plain", "sql_dialect", "sql_query", "jira_search", "note_add"],
        "in the order of loading, behind what was there"
    );
    assert_eq!(after[..before.len()], before[..]);
    world.call("unload_skill", json!({"skill": "sql"})).await;
    assert_eq!(tools(&world).await, ["plain", "sql_dialect", "jira_search", "note_add"]);
}

#[tokio::test]
async fn declared_they_are_always_there_and_refuse() {
    let world = world(Exposure::Declared);
    let before = prompt(&world).await.tools;
    assert_eq!(
        tools(&world).await,
        ["jira_search", "note_add", "plain", "sql_dialect", "sql_query"]
    );
    let refused = world.call("sql_query", json!({"query": "SELECT 1"})).await;
    assert_eq!((refused.is_error, refused.code.as_ref()), (true, "skill_not_loaded"));
    assert_eq!(
        refused.content,
        "The 'sql_query' tool requires the 'sql' skill to be loaded first.\nPlease use \
         load_skill('sql') before using this tool."
    );
    world.load("sql").await;
    assert_eq!(world.call("sql_query", json!({"query": "SELECT 1"})).await.code, "ok");
    assert_eq!(prompt(&world).await.tools, before, "the declarations never change");
}

#[tokio::test]
async fn what_requires_no_skill_is_callable_at_once() {
    for exposure in [Exposure::OnLoad, Exposure::Declared, Exposure::Generic] {
        let world = world(exposure);
        for tool in ["sql_dialect", "plain"] {
            assert_eq!(world.call(tool, json!({})).await.code, "ok", "{exposure:?} {tool}");
            assert!(tools(&world).await.contains(&tool.to_owned()), "{exposure:?} {tool}");
        }
    }
}

#[tokio::test]
async fn generic_they_are_described_in_the_load_and_called_through_one_tool() {
    let world = world(Exposure::Generic);
    assert_eq!(tools(&world).await, ["plain", "skill_tool", "sql_dialect"]);
    let before = prompt(&world).await.tools;
    let loaded = world.load("sql").await;
    insta::assert_snapshot!(loaded.content);
    assert_eq!(prompt(&world).await.tools, before, "the declarations never change");
    let arguments = json!({"skill": "sql", "tool": "sql_query", "arguments": {"query": "S"}});
    let outcome = world.call("skill_tool", arguments).await;
    assert_eq!((outcome.code.as_ref(), outcome.content.as_str()), ("ok", r#"{"query":"S"}"#));
    // Models write objects as text.
    let arguments = json!({"skill": "sql", "tool": "sql_query", "arguments": r#"{"query":"S"}"#});
    assert_eq!(world.call("skill_tool", arguments).await.content, r#"{"query":"S"}"#);
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_refused_and_the_fault_is_named() {
    let world = world(Exposure::Generic);
    world.load("sql").await;
    let table = [
        (json!({}), "\"query\" is a required property"),
        (json!({"query": 7}), "/query: 7 is not of type \"string\""),
        (json!({"query": "S", "limit": 0}), "/limit: 0 is less than the minimum of 1"),
        (json!({"query": "S", "other": 1}), "'other' was unexpected"),
    ];
    for (arguments, fault) in table {
        let call = json!({"skill": "sql", "tool": "sql_query", "arguments": arguments});
        let outcome = world.call("skill_tool", call).await;
        assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "invalid_arguments"));
        let expected = "Error: Invalid arguments for sql_query: ";
        assert!(outcome.content.starts_with(expected), "{}", outcome.content);
        assert!(outcome.content.contains(fault), "{}", outcome.content);
    }
}

#[tokio::test]
async fn a_call_through_the_one_tool_names_a_loaded_skill_and_its_tool() {
    let world = world(Exposure::Generic);
    let call = |arguments| world.call("skill_tool", arguments);
    let arguments = json!({"skill": "sql", "tool": "sql_query", "arguments": {"query": "S"}});
    let outcome = call(arguments.clone()).await;
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "skill_not_loaded"));
    world.load("sql").await;
    let table = [
        (json!({"tool": "sql_query"}), "skill is required"),
        (json!({"skill": "sql"}), "tool is required"),
        (json!({"skill": "sql", "tool": "sql_query", "arguments": [1]}), "must be an object"),
        (json!({"skill": "sql", "tool": "sql_query", "arguments": "{"}), "must be an object"),
        (
            json!({"skill": "sql", "tool": "plain"}),
            "Tool 'plain' not found. Available tools: sql_query",
        ),
        (json!({"skill": "jira", "tool": "sql_query"}), "Available tools: jira_search"),
        (json!({"skill": "sql", "tool": "sql_qery"}), "Tool 'sql_qery' not found"),
    ];
    for (arguments, expected) in table {
        let outcome = call(arguments).await;
        assert!(outcome.is_error && outcome.content.contains(expected), "{}", outcome.content);
    }
}

#[tokio::test]
async fn the_transcript_keeps_the_call_that_was_made_and_events_the_tool_that_ran() {
    let world = world(Exposure::Generic);
    world.load("sql").await;
    world.events();
    let arguments = json!({"skill": "sql", "tool": "sql_query", "arguments": {"query": "S"}});
    let call = world.tool_call("skill_tool", arguments);
    let result = world.step(vec![call.clone()]).await;
    let answer = result.messages[0].tool_results().next().unwrap();
    assert_eq!((answer.name.as_str(), answer.call_id.as_str()), ("skill_tool", call.id.as_str()));
    assert_eq!(world.events()[0].tool.as_deref(), Some("sql_query"));
    // The same call again is answered, not carried out.
    let again = world.step(vec![call]).await;
    assert_eq!(again.outcomes[0].code, "repeated");
}

#[tokio::test]
async fn tools_are_described_wherever_the_text_of_their_skill_stands() {
    let world = world(Exposure::Generic);
    let load = prowess_runtime::LoadRequest::new("sql");
    let request = TurnRequest::new().with_load(load).with_pinned("jira");
    let turn = world.runtime.begin_turn(&world.session, &world.agent, request).await.unwrap();
    assert!(turn.messages[0].text().contains("- sql_query: Runs a query."));
    assert!(turn.messages[1].text().contains("- jira_search: Does jira_search."));
    let other = world_with_system();
    other.load("sql").await;
    assert!(prompt(&other).await.system.contains("- sql_query: Does sql_query."));
}

fn world_with_system() -> World {
    let settings = Settings::default()
        .with_exposure(Exposure::Generic)
        .with_placement(prowess_runtime::Placement::System);
    let plan = Plan::new().file("sql/SKILL.md", SQL).settings(settings);
    plan.change(|it| it.tool(echo("sql_query")).tool(echo("sql_dialect"))).build()
}

/// Two skills can bring the same tool; whoever names one of them means that one.
#[tokio::test]
async fn a_call_through_the_one_tool_does_not_pass_by_another_skill() {
    let schema = json!({"type": "object", "required": ["query"]});
    let declaration = ToolDeclaration::new("shared", "Shared.", schema);
    let shared = tool_fn(declaration, |it| async move { ToolOutcome::text(it.to_string()) });
    let text = |name| {
        format!("---\nname: {name}\ndescription: D.\nmetadata:\n  include_tools: shared\n---\nx")
    };
    let world = Plan::new()
        .file("one/SKILL.md", text("one"))
        .file("two/SKILL.md", text("two"))
        .settings(Settings::default().with_exposure(Exposure::Generic))
        .change(|it| it.tool(shared))
        .build();
    world.load("one").await;
    world.events();
    let call = |skill| json!({"skill": skill, "tool": "shared", "arguments": {}});
    // Nobody has checked the arguments, and the skill is not loaded.
    let outcome = world.call("skill_tool", call("two")).await;
    assert_eq!(outcome.code, "skill_not_loaded", "{}", outcome.content);
    assert_eq!((outcome.data["skill"].as_str(), outcome.is_error), (Some("two"), true));
    let blocked = world.events_of(prowess_runtime::EventKind::ToolBlocked);
    assert_eq!(blocked[0].message, "Tool 'shared' blocked: skill 'two' is not loaded");
    assert_eq!(world.call("skill_tool", call("one")).await.code, "invalid_arguments");
    world.load("two").await;
    assert_eq!(world.call("skill_tool", call("two")).await.code, "invalid_arguments");
}

#[tokio::test]
async fn a_skill_that_is_gone_keeps_its_tools_as_long_as_it_is_loaded() {
    let world = world(Exposure::Generic);
    let call = json!({"skill": "jira", "tool": "jira_search"});
    world.load("jira").await;
    world.remove("jira/SKILL.md");
    world.catalog.refresh().await;
    assert_eq!(world.call("skill_tool", call.clone()).await.code, "ok");
    assert_eq!(world.call("jira_search", json!({})).await.code, "ok");
    world.call("unload_skill", json!({"skill": "jira"})).await;
    assert_eq!(world.call("skill_tool", call).await.code, "unknown_tool");
    assert_eq!(world.call("jira_search", json!({})).await.code, "unknown_tool");
}

#[tokio::test]
async fn a_tool_of_the_host_takes_the_place_of_the_one_tool() {
    let world = Plan::new()
        .file("sql/SKILL.md", SQL)
        .settings(Settings::default().with_exposure(Exposure::Generic))
        .change(|it| it.tool(echo("sql_query")).tool(echo("skill_tool")))
        .build();
    assert_eq!(tools(&world).await, ["skill_tool"], "once");
    assert_eq!(world.call("skill_tool", json!({"a": 1})).await.content, r#"{"a":1}"#);
}

/// A skill of this name that brings a tool.
fn bringing(name: &str, tool: &str) -> String {
    format!("---\nname: {name}\ndescription: D.\nmetadata:\n  include_tools: {tool}\n---\nx")
}

#[tokio::test]
async fn who_is_seen_opens_tools_where_a_hidden_one_would_stand_before_it() {
    let source = |id: &str, tool| MemorySource::new(id).with_skill("sql", bringing("sql", tool));
    let other = MemorySource::new("other").with_skill("jira", bringing("jira", "jira_search"));
    let sources = Catalog::builder().source(source("low", "low_query")).source(other);
    let catalog = sources.source(source("high", "high_query")).build();
    let filter = |_: &Scope, skill: &CatalogSkill| match skill.source_id() {
        "high" => Visibility::Hidden,
        _ => Visibility::Listed,
    };
    let tools = ["low_query", "high_query", "jira_search"].map(echo);
    let builder = tools.into_iter().fold(Runtime::builder(catalog), RuntimeBuilder::tool);
    let world = builder.visibility(Arc::new(filter)).build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let number = AtomicUsize::new(0);
    let call = async |tool: &str, arguments| {
        let id = number.fetch_add(1, Ordering::Relaxed).to_string();
        world.dispatch(&session, &agent, ToolCall::new(id, tool, arguments)).await.unwrap()
    };
    for (tool, skill) in [("low_query", "sql"), ("jira_search", "jira")] {
        let refused = call(tool, json!({})).await;
        assert_eq!(refused.code, "skill_not_loaded", "{tool}");
        assert_eq!(refused.data["skill"], skill);
        assert_eq!(call("load_skill", json!({"skill": skill})).await.code, "loaded");
        assert_eq!(call(tool, json!({})).await.code, "ok");
    }
    // The text that declares it is not the one that was loaded, and nothing is said of it.
    assert_eq!(call("high_query", json!({})).await.code, "unknown_tool");
}

#[tokio::test]
async fn skills_with_one_name_open_their_own_tools() {
    let source = |id: &str, tool| MemorySource::new(id).with_skill("sql", bringing("sql", tool));
    let catalog = Catalog::builder()
        .source(source("a", "a_query"))
        .source(source("b", "b_query"))
        .precedence(Precedence::RefuseAmbiguous)
        .build();
    let builder = Runtime::builder(catalog).tool(echo("a_query")).tool(echo("b_query"));
    let world = builder.build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let table = [
        ("a_query", json!({}), "skill_not_loaded"),
        ("load_skill", json!({"skill": "sql"}), "skill_ambiguous"),
        ("load_skill", json!({"skill": "sql@a"}), "loaded"),
        ("a_query", json!({}), "ok"),
        ("b_query", json!({}), "skill_not_loaded"),
    ];
    for (at, (tool, arguments, expected)) in table.into_iter().enumerate() {
        let call = ToolCall::new(at.to_string(), tool, arguments);
        let outcome = world.dispatch(&session, &agent, call).await.unwrap();
        assert_eq!(outcome.code, expected, "{at}: {}", outcome.content);
    }
}

#[tokio::test]
async fn a_host_that_must_know_all_tools_beforehand_is_told_all() {
    let names = |world: &World| {
        world.runtime.tools().into_iter().map(|tool| tool.name).collect::<Vec<String>>()
    };
    let on_load = names(&world(Exposure::OnLoad));
    assert!(on_load.is_sorted());
    for name in ["load_skill", "jira_search", "note_add", "plain", "sql_dialect", "sql_query"] {
        assert!(on_load.iter().any(|it| it == name), "{name}");
    }
    assert!(!on_load.iter().any(|it| it == "skill_tool"));
    assert!(names(&world(Exposure::Generic)).iter().any(|it| it == "skill_tool"));
}

#[tokio::test]
async fn an_engine_with_more_tools_has_the_same_sessions_and_the_same_gate() {
    let mut world = world(Exposure::OnLoad);
    let more = world.runtime.with_tools([echo("more"), echo("plain")]);
    assert!(!world.runtime.tools().iter().any(|tool| tool.name == "more"));
    world.runtime = more;
    let call = async |world: &World, id: &str, tool: &str| {
        let call = ToolCall::new(id, tool, json!({"query": "x"}));
        world.runtime.dispatch(&world.session, &world.agent, call).await.unwrap().code
    };
    assert_eq!(call(&world, "1", "more").await, "ok");
    assert_eq!(call(&world, "2", "sql_query").await, "skill_not_loaded");
    let load = ToolCall::new("3", "load_skill", json!({"skill": "sql"}));
    world.runtime.dispatch(&world.session, &world.agent, load).await.unwrap();
    assert_eq!(call(&world, "4", "sql_query").await, "ok");
}
